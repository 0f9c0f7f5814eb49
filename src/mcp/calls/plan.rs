//! The way from the name of a tool and its arguments to a call of an operation, or to an answer
//! without one: for clients, and for the command line.
//!
//! [`NotAdmitted`] is the reason for which the gate does not let it pass.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use rmcp::model::InputRequiredResult;
use tokio_util::sync::CancellationToken;

use crate::annotate::names::MetaToolKind;
use crate::api::{BoundTool, ToolIndex};
use crate::caller::client_grant::{ClientGrant, Permission, ShownTools};
use crate::caller::{Caller, WaitPlace};
use crate::json::JsonObject;
use crate::mcp::catalog::Catalog;
use crate::mcp::meta_tools::{
    InnerCall, MetaTools, describe_operations, read_handle, read_inner_call, search_operations,
};
use crate::mcp::visible::{VisibleApi, VisibleApis};
use crate::observe::call::note;
use crate::observe::metrics::labels::CallOutcome;
use crate::outbound::request::Request;
use crate::proxy::waiting::handle::OpenedWait;
use crate::proxy::{CheckedArguments, OnMissingCredential};
use crate::results::result_notes::NoteKind;
use crate::results::tool_result::ToolResult;
use crate::shared_state::cells::Agreement;
use crate::text;
use crate::text::hex;

/// Outcome of looking for what a tool is called for.
pub(crate) enum Plan {
    /// A call of an operation.
    Call(OperationCall),
    /// An answer without a call: that of a meta-tool that sends nothing, or the reason for which a
    /// call is refused.
    Answer(BoxFuture<'static, Box<ToolResult>>),
}

/// Answers from the arguments of a meta-tool, which were checked, without sending anything.
type LookUp = fn(&MetaTools, &VisibleApis, JsonObject) -> ToolResult;

/// A call of one operation. The tool's name and the arguments of a message are read once, into this
/// value; the scope check, the confirmation, the limits and the request all use it, so that no two
/// of them can judge different calls.
#[derive(Clone)]
pub(crate) struct OperationCall {
    /// The API as the caller sees it at the endpoint that received the call.
    pub(super) seen: VisibleApi,
    /// The path of that endpoint.
    pub(super) endpoint: Arc<str>,
    pub(super) tool: ToolIndex,
    /// The arguments as the client gave them.
    pub(crate) arguments: Option<JsonObject>,
    /// The meta-tool that calls the operation; `None` for a call by its own name.
    pub(super) through: Option<MetaToolKind>,
    /// The meta-tools of the endpoint.
    meta_tools: Option<Arc<MetaTools>>,
    /// Remarks about values that were read differently from how they were written.
    remarks: Vec<String>,
    /// State of the call, if it goes on.
    pub(super) wait: Option<Box<OpenedWait>>,
}

impl Catalog {
    /// Finds what a tool is called for; `None` if no tool of that name exists for the caller.
    /// Without `granted`, the operator asks. The scopes of the caller are checked later. Only tools
    /// that the caller may list are suggested to it.
    pub(crate) fn plan(
        &self,
        name: &str,
        arguments: Option<JsonObject>,
        granted: Option<&ClientGrant>,
        caller: &Caller,
    ) -> Option<Plan> {
        let named = self.meta_tools.as_ref();
        let named = named.and_then(|meta_tools| Some((meta_tools, meta_tools.kind_of(name)?)));
        let Some((meta_tools, kind)) = named else {
            let (seen, tool) = self.find(name, granted)?;
            return Some(Plan::Call(self.resolved(seen, tool, arguments)));
        };
        let seen = self.visible(granted);
        if !meta_tools.exists(kind, &seen) {
            return None;
        }
        let read = match kind {
            MetaToolKind::Search => {
                return Some(look_up(
                    meta_tools,
                    kind,
                    search_operations,
                    arguments,
                    seen,
                ));
            }
            MetaToolKind::Describe => {
                return Some(look_up(
                    meta_tools,
                    kind,
                    describe_operations,
                    arguments,
                    seen,
                ));
            }
            MetaToolKind::CallRead | MetaToolKind::CallWrite | MetaToolKind::CallDestructive => {
                read_inner_call(meta_tools, kind, arguments, &seen)
            }
            MetaToolKind::Wait => {
                read_handle(meta_tools, arguments, &seen, &self.view.path, caller)
            }
        };
        let (refused, meant) = match read {
            Ok(InnerCall {
                api,
                tool,
                arguments,
                remarks,
                wait,
            }) => {
                let call = |arguments| OperationCall {
                    through: Some(kind),
                    remarks,
                    wait,
                    ..self.resolved(api, tool, Some(arguments))
                };
                match arguments {
                    Ok(arguments) => return Some(Plan::Call(call(arguments))),
                    Err(refused) => (refused, Some(call(JsonObject::new()))),
                }
            }
            Err(refused) => (refused, None),
        };
        Some(Plan::Answer(Box::pin(async move {
            match meant {
                Some(meant) => meant.note(),
                None => note(|record| record.meta_tool = Some(kind.name())),
            }
            Box::new(refused.ended_as(CallOutcome::InvalidArguments))
        })))
    }

    /// A call of that operation by its own name.
    fn resolved(
        &self,
        seen: VisibleApi,
        tool: ToolIndex,
        arguments: Option<JsonObject>,
    ) -> OperationCall {
        OperationCall {
            seen,
            endpoint: Arc::clone(&self.view.path),
            tool,
            arguments,
            through: None,
            meta_tools: self.meta_tools.clone(),
            remarks: Vec::new(),
            wait: None,
        }
    }
}

/// Answers without a call, once the answer is awaited. The first search of an API builds its index,
/// which takes long for a large one: not on an asynchronous thread.
fn look_up(
    meta_tools: &Arc<MetaTools>,
    kind: MetaToolKind,
    answer: LookUp,
    arguments: Option<JsonObject>,
    seen: VisibleApis,
) -> Plan {
    let meta_tools = Arc::clone(meta_tools);
    let answer = move || {
        let checked = match meta_tools.check(kind, arguments) {
            Ok(checked) => checked,
            Err(refused) => return refused,
        };
        let mut result = answer(&meta_tools, &seen, checked.arguments);
        checked
            .repairs
            .into_iter()
            .for_each(|repair| result.note(NoteKind::Repair, repair));
        Box::new(result)
    };
    Plan::Answer(Box::pin(async move {
        note(|record| record.lookup = Some(kind.name()));
        let result = tokio::task::spawn_blocking(answer).await;
        let result = result.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        if result.is_error() {
            Box::new(result.ended_as(CallOutcome::InvalidArguments))
        } else {
            result
        }
    }))
}

impl OperationCall {
    /// The tool.
    pub(crate) fn offered(&self) -> &BoundTool {
        self.seen.api.tool(self.tool)
    }

    /// Returns the scopes that the caller lacks for the operation, besides those that the whole
    /// server asks for.
    pub(crate) fn lacking_scopes(&self, caller: &Caller) -> Vec<&str> {
        if self.seen.may(self.tool) == Permission::Granted {
            return Vec::new();
        }
        let api = &self.seen.api;
        api.lacking_scopes(caller.granted(), self.tool)
    }

    /// The tools of its API that the caller may list at the endpoint.
    pub(super) fn shown_tools(&self) -> ShownTools {
        let search_tools = self.meta_tools.as_ref().filter(|tools| tools.searches);
        ShownTools {
            permissions: self.seen.rights.clone(),
            reads_only: self.seen.reads_only,
            meta_tools: search_tools.map(|tools| Arc::clone(&tools.calling_names)),
        }
    }

    /// Returns the arguments as they are sent, after repairs; those of the client if they are not
    /// valid.
    pub(crate) fn repaired_arguments(&self) -> JsonObject {
        let given = self.arguments.clone().unwrap_or_default();
        self.seen.api.repaired_arguments(self.tool, given)
    }

    /// The request that the call would make, without credentials, or the result that it would end
    /// in before anything is sent.
    pub(crate) fn preview(
        &self,
        on_missing: OnMissingCredential,
        caller: &Caller,
    ) -> Result<Request, Box<ToolResult>> {
        let caller = Caller {
            shown: self.shown_tools(),
            ..caller.clone()
        };
        self.seen
            .api
            .preview_at(self.tool, self.arguments.clone(), on_missing, &caller)
    }

    /// Checks its arguments, which it keeps only if a question shows them.
    ///
    /// # Errors
    /// The result that the call ends in.
    pub(super) async fn check(
        &mut self,
        caller: &Caller,
        keeps: bool,
    ) -> Result<CheckedArguments, Box<ToolResult>> {
        let arguments = if keeps {
            self.arguments.clone()
        } else {
            self.arguments.take()
        };
        let arguments = arguments.unwrap_or_default();
        self.seen.api.api.check(self.tool, arguments, caller).await
    }

    /// Notes that the current request is this call.
    pub(crate) fn note(&self) {
        note(|record| {
            record.meta_tool = self.through.map(MetaToolKind::name);
            record.resolve(
                self.seen.api.called_operation(self.tool),
                self.arguments.as_ref(),
            );
        });
    }

    /// Returns the place with which a later call goes on waiting; `None` if no tool of the endpoint
    /// does so.
    pub(crate) fn wait_place(
        &self,
        caller: &Caller,
        ending: CancellationToken,
    ) -> Option<WaitPlace> {
        let tool = self.meta_tools.as_ref()?.wait_tool()?;
        Some(WaitPlace {
            api: self.seen.label().map(str::to_owned),
            tenant: self.seen.api.tenant(caller).map(str::to_owned),
            endpoint: Arc::clone(&self.endpoint),
            how: Ok(format!("to go on waiting, call `{tool}` with this handle:")),
            ending,
            report: None,
        })
    }

    /// Adds to a result what was read differently on the way from the client.
    pub(super) fn add_notes(&mut self, result: &mut ToolResult) {
        if let Some((kind, meta_tools)) = self.through.zip(self.meta_tools.as_ref()) {
            let (tool, meta_tool) = (&self.offered().name, meta_tools.name_of(kind));
            tracing::debug!(%tool, meta_tool, "called through a meta-tool");
            result.notes.call_through(&meta_tool, tool);
        }
        for remark in self.remarks.drain(..) {
            result.note(NoteKind::Repair, remark);
        }
    }
}

/// Reason for which a call is not made.
pub(crate) enum NotAdmitted {
    /// The caller lacks a scope; with all scopes to ask for.
    Scopes(Vec<String>),
    /// The call is refused, with this result.
    Refused(Box<ToolResult>),
    /// The client must ask its user and call again.
    Ask(Box<InputRequiredResult>),
}

impl From<Box<ToolResult>> for NotAdmitted {
    fn from(refused: Box<ToolResult>) -> Self {
        Self::Refused(refused)
    }
}

/// The outcome of a question: the call may be made, once if the agreement is kept.
pub(super) type Verdict = Result<Option<Arc<Agreement>>, NotAdmitted>;

/// Joins the lines of the question and of its answer in the audit log.
pub(super) fn note_question(id: &[u8]) {
    note(|record| record.question = Some(hex(id)));
}

/// Refuses a call: `why` follows its name.
pub(super) fn refuse_as(outcome: CallOutcome, call: &OperationCall, why: &str) -> Verdict {
    let offered = call.offered();
    let operation = text::one_line(&offered.operation.label());
    let text = format!("{} ({operation}) was not called{why}", offered.name);
    Err(Box::new(ToolResult::error(text).ended_as(outcome)).into())
}

/// Refuses a call to which nobody has agreed.
pub(super) fn refuse(call: &OperationCall, why: &str) -> Verdict {
    refuse_as(CallOutcome::Unanswered, call, why)
}

/// The text with invisible characters written as escapes.
pub(super) fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if text::has_hidden_characters(character.encode_utf8(&mut [0; 4])) {
            out.extend(character.escape_unicode());
        } else {
            out.push(character);
        }
    }
    out
}
