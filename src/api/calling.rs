//! The calls of a tool: what is sent for it, how often, and the one result that it ends in. What a
//! client may call at all was decided before, by the gate.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use http::StatusCode;
use sha2::{Digest as _, Sha256};

use super::bound_tool::BoundTool;
use super::closed_paths::closed_paths;
use super::{Api, CallStart, ToolIndex};
use crate::call_error::CallError;
use crate::caller::Caller;
use crate::json::JsonObject;
use crate::observe::call::record_begin;
use crate::observe::metrics::labels::CallOutcome;
use crate::outbound::request::Request;
use crate::proxy::request::closed_paths::ClosedPaths;
use crate::proxy::waiting::handle::OpenedWait;
use crate::proxy::{Ask, Call, CheckedArguments, Ending, OnMissingCredential, RequestedPages};
use crate::results::Reply;
use crate::results::render::render_error;
use crate::results::result_notes::NoteKind;
use crate::results::tool_result::ToolResult;
use crate::spec::schema::object_size;

/// Arguments of more bytes are checked on a thread that may block: it takes more than a few
/// milliseconds.
const MAX_SMALL_BYTES: usize = 64 << 10;

impl Api {
    /// Calls a tool. Every failure, here or at the API, is a result with `isError`; `None` means
    /// that there is no such tool. Dropping the future ends the request.
    ///
    /// It asks nobody for consent, and checks no scope: a server does so before.
    pub async fn call(
        self: &Arc<Self>,
        name: &str,
        arguments: Option<JsonObject>,
        mut caller: Caller,
    ) -> Option<ToolResult> {
        let index = self.find(name)?;
        let checked = self
            .check(index, arguments.unwrap_or_default(), &caller)
            .await;
        Some(*match checked {
            Ok(checked) => {
                let mut start = CallStart::Checked(checked);
                self.call_at(index, &mut start, &mut caller).await
            }
            Err(refused) => refused,
        })
    }

    /// Checks the arguments for a call of a client, once it is sure that the call has a credential.
    ///
    /// # Errors
    /// The result that the call ends in.
    pub(crate) async fn check(
        self: &Arc<Self>,
        index: ToolIndex,
        arguments: JsonObject,
        caller: &Caller,
    ) -> Result<CheckedArguments, Box<ToolResult>> {
        let target = &self.tool(index).target;
        let checked = match self.proxy.require_credential(target, caller) {
            Ok(()) => self.checked_arguments(index, arguments).await,
            Err(error) => Err(error),
        };
        checked.map_err(|error| render_error(&target.operation, &error))
    }

    /// Calls the tool at that place, like [`Api::call`]. A panic is a bug of ours; it must not take
    /// down the calls of others.
    pub(crate) async fn call_at(
        self: &Arc<Self>,
        index: ToolIndex,
        start: &mut CallStart,
        caller: &mut Caller,
    ) -> Box<ToolResult> {
        let call = async {
            match start {
                CallStart::Checked(checked) => self.run(index, checked, caller).await,
                CallStart::Wait(wait) => Box::pin(self.resume(index, wait, caller)).await,
            }
        };
        let tool = self.tool(index);
        match AssertUnwindSafe(call).catch_unwind().await {
            Ok(Ok(result)) => result,
            Ok(Err(error)) => render_error(&tool.operation, &error),
            Err(_) => {
                tracing::error!(tool = %tool.name, "a call ended in a panic; please report this");
                let why = "The call failed because of an error inside this server.";
                Box::new(ToolResult::error(why).ended_as(CallOutcome::Panic))
            }
        }
    }

    /// Returns the request that a call of that client would make, with `***` for the operator's
    /// credentials; or the result with `isError` that it would end in before anything is sent.
    /// `None` means that there is no such tool.
    #[must_use]
    pub fn preview(
        &self,
        name: &str,
        arguments: Option<JsonObject>,
        on_missing: OnMissingCredential,
        caller: &Caller,
    ) -> Option<Result<Request, Box<ToolResult>>> {
        Some(self.preview_at(self.find(name)?, arguments, on_missing, caller))
    }

    /// The request of the tool at that place, like [`Api::preview`].
    pub(crate) fn preview_at(
        &self,
        index: ToolIndex,
        arguments: Option<JsonObject>,
        on_missing: OnMissingCredential,
        caller: &Caller,
    ) -> Result<Request, Box<ToolResult>> {
        let target = &self.tool(index).target;
        let check = || {
            if on_missing == OnMissingCredential::Refuse {
                self.proxy.require_credential(target, caller)?;
            }
            self.wire_arguments(index, arguments.unwrap_or_default())
        };
        let checked = check().map_err(|error| render_error(&target.operation, &error))?;
        self.preview_checked(index, checked.arguments, on_missing, caller)
    }

    /// The request of the tool at that place with arguments that fit the input schema.
    pub(crate) fn preview_checked(
        &self,
        index: ToolIndex,
        arguments: JsonObject,
        on_missing: OnMissingCredential,
        caller: &Caller,
    ) -> Result<Request, Box<ToolResult>> {
        let bound = self.tool(index);
        let (target, paths) = (&bound.target, self.paths_of(bound));
        self.proxy
            .preview(target, arguments, on_missing, caller, paths)
            .map_err(|error| render_error(&target.operation, &error))
    }

    /// The arguments that the tool at that place sends for a caller: with the values of rules,
    /// secret ones too.
    pub(crate) fn completed_arguments(
        &self,
        index: ToolIndex,
        arguments: JsonObject,
        caller: &Caller,
    ) -> Result<JsonObject, Box<ToolResult>> {
        let target = &self.tool(index).target;
        let completed = target.completed(arguments, true, caller);
        completed
            .map(|(arguments, _)| arguments)
            .map_err(|error| render_error(&target.operation, &error))
    }

    /// Returns the hash of all files of the document.
    pub(crate) fn document_digest(&self) -> &[u8] {
        self.document_digest.get_or_init(|| {
            let files = self.proxy.document.files.iter();
            let mut digest = Sha256::new();
            files.for_each(|file| digest.update(Sha256::digest(file.root().text())));
            digest.finalize().into()
        })
    }

    /// The paths of all operations of the document.
    fn closed_paths(&self) -> &ClosedPaths {
        self.closed_paths
            .get_or_init(|| closed_paths(&self.proxy.document, &self.tools))
    }

    /// The same for a tool whose values are part of its path.
    fn paths_of(&self, bound: &BoundTool) -> Option<&ClosedPaths> {
        let has_values = bound.target.operation.template.variables().next().is_some();
        has_values.then(|| self.closed_paths())
    }

    async fn run(
        self: &Arc<Self>,
        index: ToolIndex,
        checked: &mut CheckedArguments,
        caller: &mut Caller,
    ) -> Result<Box<ToolResult>, CallError> {
        let bound = self.tool(index);
        let target = &bound.target;
        let mut arguments = std::mem::take(&mut checked.arguments);
        let pages = RequestedPages::take(&target.operation, &mut arguments, caller);
        let caller = &*caller;
        let paths = self.paths_of(bound);
        let mut call = self.proxy.begin(target, arguments, true, caller, paths)?;
        record_begin().await.map_err(|()| CallError::NotRecorded)?;
        // On the heap: they are most of what a call holds, and what waits for a call is moved from
        // place to place.
        let reply = Box::pin(call.ask(Ask::Operation)).await?;
        let is_refused = matches!(
            reply.status,
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY
        );
        let pages = pages.filter(|_| reply.status.is_success());
        // Pages are replies of an operation that reads.
        let ending = match pages {
            Some(pages) => Box::pin(self.collect_pages(index, pages, &call, caller, reply)).await,
            None if call.is_awaited(&reply) => {
                call.paths = Some(self.closed_paths());
                Box::pin(call.await_end(reply)).await
            }
            None => Ending::Reply(reply),
        };
        let mut result = Box::pin(call.finish(ending)).await;
        let mismatch = checked.format_mismatch.take().filter(|_| is_refused);
        let remarks = checked.repairs.take().into_iter();
        remarks
            .chain(checked.body_problems.take())
            .chain(mismatch)
            .for_each(|remark| result.note(NoteKind::Repair, remark));
        Ok(result)
    }

    /// Goes on with a call that waits.
    async fn resume(
        self: &Arc<Self>,
        index: ToolIndex,
        OpenedWait { state, is_look }: &OpenedWait,
        caller: &Caller,
    ) -> Result<Box<ToolResult>, CallError> {
        let bound = self.tool(index);
        let (arguments, paths) = (state.arguments.clone(), Some(self.closed_paths()));
        let call = self
            .proxy
            .begin(&bound.target, arguments, false, caller, paths)?;
        record_begin().await.map_err(|()| CallError::NotRecorded)?;
        let ending = Box::pin(call.resume(state.clone(), *is_look)).await;
        Ok(Box::pin(call.finish(ending)).await)
    }

    /// Collects the pages after the first one, each by a call of its own: its arguments are checked
    /// as those of a model are.
    async fn collect_pages(
        self: &Arc<Self>,
        index: ToolIndex,
        request: RequestedPages<'_>,
        call: &Call<'_>,
        caller: &Caller,
        mut first: Reply,
    ) -> Ending {
        let next = call.read_page(&mut first).await;
        let mut pages = request.begin(
            caller,
            first,
            next,
            call.max_page_bytes(),
            &self.proxy.options.memory,
        );
        while let Some((arguments, max_bytes)) = pages.next_call() {
            let page = async {
                let checked = self.checked_arguments(index, arguments).await?;
                let call = call.again(checked.arguments, max_bytes)?;
                let mut reply = call.ask(Ask::Operation).await?;
                let next = call.read_page(&mut reply).await;
                Ok::<_, CallError>((reply, next))
            };
            match page.await {
                Ok((reply, next)) if reply.status.is_success() => pages.add(&reply, next),
                Ok((reply, _)) => pages.refuse(&reply, call.describe_refused_page(&reply)),
                Err(error) => pages.fail(&error),
            }
        }
        let (reply, report) = pages.finish();
        Ending::Pages(reply, report)
    }

    /// Checks arguments like [`Api::wire_arguments`], within the time limit of a call. Much work is
    /// done on a separate thread.
    ///
    /// # Errors
    /// All that is wrong with them, or that it could not be found out in time.
    pub(super) async fn checked_arguments(
        self: &Arc<Self>,
        index: ToolIndex,
        arguments: JsonObject,
    ) -> Result<CheckedArguments, CallError> {
        if object_size(&arguments) <= MAX_SMALL_BYTES {
            return self.wire_arguments(index, arguments);
        }
        let (api, limit) = (Arc::clone(self), self.proxy.options.timeout);
        let checking = tokio::task::spawn_blocking(move || api.wire_arguments(index, arguments));
        match Box::pin(tokio::time::timeout(limit, checking)).await {
            Ok(Ok(checked)) => checked,
            Ok(Err(failed)) => match failed.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(CallError::Arguments(
                    "The server ends; nothing was sent.".to_owned(),
                )),
            },
            Err(_) => Err(CallError::Arguments(format!(
                "The arguments of {} could not be checked within {} s; nothing was sent. Give less in one call.",
                self.tool(index).name,
                limit.as_secs()
            ))),
        }
    }

    /// Returns the arguments of the tool at that index after repairs; unchanged if they are not
    /// valid.
    pub(crate) fn repaired_arguments(&self, index: ToolIndex, arguments: JsonObject) -> JsonObject {
        let tool = self.tool(index);
        let checked = self.with_text(index, |text| tool.check_arguments(text, arguments.clone()));
        checked.map_or(arguments, |checked| checked.arguments)
    }

    /// The arguments of the tool at that place, checked and repaired, with the names on the wire.
    ///
    /// # Errors
    /// All that is wrong with them.
    pub(super) fn wire_arguments(
        &self,
        index: ToolIndex,
        arguments: JsonObject,
    ) -> Result<CheckedArguments, CallError> {
        self.with_text(index, |text| {
            self.tool(index).wire_arguments(text, arguments)
        })
    }

    /// Returns true if it is said of one of its operations how a call waits.
    pub(crate) fn says_how_to_wait(&self) -> bool {
        self.tools
            .iter()
            .any(|tool| tool.operation.says_how_to_wait())
    }
}
