//! What becomes of the reply to a call: `clean` makes it UTF-8 without secrets and applies the
//! operator's rules, `read_page` reads one of several pages, and `finish` makes the result.

use std::sync::Arc;
use std::time::Instant;

use http::header::ETAG;
use serde_json::Value;
use tokio::sync::SemaphorePermit;

use super::ask::Ask;
use super::{Call, Ending};
use crate::call_error::CallError;
use crate::json::JsonObject;
use crate::proxy::exchange::save_reply;
use crate::redact::json::NumberMark;
use crate::redact::secrets::MARK;
use crate::results::failure::{KnownOfCall, describe_failure};
use crate::results::filter::{FILTER_TIMEOUT, FilterFailure, apply_filter};
use crate::results::pagination::{NextPage, PageCall};
use crate::results::remarks::{PageReport, WaitRemark};
use crate::results::render::{OutputContract, Rendering};
use crate::results::reply_headers::ShownHeaders;
use crate::results::result_notes::NoteKind;
use crate::results::shape::{mask_reply, max_shaped_bytes, shape_reply, withheld_result};
use crate::results::tool_result::ToolResult;
use crate::results::{Reply, pagination, render, status_line};

impl Call<'_> {
    /// Makes the result of the call: the reply without secrets, filtered if the arguments require
    /// it, and cut to the limit of a result. It names no tool that the caller may not list.
    pub(crate) async fn finish(&self, ending: Ending) -> Box<ToolResult> {
        let (reply, pages, remark) = match ending {
            Ending::Reply(reply) => (Some(reply), None, None),
            Ending::Pages(reply, report) => (Some(reply), Some(report), None),
            Ending::Waited(reply, remark) => (reply, None, Some(remark)),
        };
        let Some(reply) = reply else {
            let result = ToolResult::of_text(
                "The operation was accepted; there is no reply about it to show.",
                self.target.contract.text_form(),
            );
            let remarked = remark
                .into_iter()
                .fold(result, |result, remark| remark.apply(result));
            return Box::new(remarked);
        };
        let is_result = pages.is_none() && matches!(remark, None | Some(WaitRemark::Done(_, None)));
        let (mut result, unsaved) = self.result_of(reply, pages, is_result).await;
        if let Some(remark) = remark {
            *result = remark.apply(*result);
        }
        if let Some(why) = unsaved {
            result.note(NoteKind::Wait, format!("It is not in a file: {why}."));
        }
        result
    }

    /// The result of a reply, and the reason for which it is not in a file, if it should be.
    async fn result_of(
        &self,
        mut reply: Reply,
        pages: Option<PageReport>,
        is_result: bool,
    ) -> (Box<ToolResult>, Option<String>) {
        let length = reply.body.len();
        let masks = self.target.masks.as_deref();
        let mut unsaved = None;
        // What could have been a status is in memory.
        if is_result && self.target.operation.may_wait() && masks.is_none() {
            unsaved = Box::pin(self.save_result(&mut reply)).await.err();
        }
        let _turn = self.long_reply_turn(&reply).await;
        let redactors = std::mem::take(&mut reply.redactors);
        let mut is_file = false;
        let mut result = match self.clean(reply, pages.is_some()).await {
            Ok(mut cleaned) => {
                // What is masked was in memory as well.
                if is_result && masks.is_some() {
                    unsaved = Box::pin(self.save_result(&mut cleaned.reply)).await.err();
                }
                is_file = cleaned.reply.file.is_some();
                self.render(cleaned, pages).await
            }
            Err(withheld) => Box::new(withheld),
        };
        let_others_run(length).await;
        // Only now are charsets decoded and escapes resolved. The path and the digest of a file must
        // not change.
        let of_reply = redactors.iter().map(Arc::as_ref);
        let masks = masks.filter(|_| !is_file);
        for redactor in self.secret_redactors().chain(of_reply).chain(masks) {
            result.redact(redactor, self.number_mark());
        }
        (result, unsaved)
    }

    /// The result of a reply, with notes about what it does not show.
    async fn render(&self, cleaned: Cleaned, pages: Option<PageReport>) -> Box<ToolResult> {
        let Cleaned {
            mut reply,
            next,
            count,
            cut,
        } = cleaned;
        let operation = &self.target.operation;
        let rule = self.rule();
        let (mut remark, mut is_filtered) = (None, false);
        let filter_key = self.proxy.sandbox.is_some().then(|| operation.filter_key());
        if let Some(sandbox) = &self.proxy.sandbox
            && let Some(filter) = filter_key
                .as_ref()
                .and_then(|key| self.arguments.get(key)?.as_str())
        {
            is_filtered = true;
            if reply.status.is_success() {
                let filtered = apply_filter(
                    sandbox,
                    filter,
                    &mut reply,
                    self.time_left(),
                    FILTER_TIMEOUT,
                );
                let failed = Box::pin(filtered).await.err();
                remark = failed.map(FilterFailure::describe);
            }
        }
        let pages_key = pages
            .as_ref()
            .filter(|report| report.pages.len() > 1)
            .map(|_| operation.pages_key());
        let etag_use = self
            .target
            .etag_use
            .as_ref()
            .filter(|_| reply.headers.contains_key(ETAG));
        let etag_advice = etag_use.and_then(|etag_use| etag_use.advice(&self.caller.shown));
        let options = &self.proxy.options;
        let rendering = Rendering {
            promise: self.target.contract,
            max_bytes: self.max_result_bytes(),
            hides_images: options.hides_images,
            delivery: Some(&options.delivery),
            is_file: rule.is_some_and(|rule| rule.file == Some(true)),
            known: KnownOfCall {
                advice: self.credential.advice.as_ref(),
                document: Some(&self.proxy.document),
                arguments: Some(&self.arguments),
            },
            filter: filter_key.as_deref(),
            pages_key: pages_key.as_deref(),
            headers: ShownHeaders {
                declared: self.target.declared_headers(&self.proxy.document),
                etag_advice: etag_advice.as_deref(),
                base: Some(self.base.url()),
            },
        };
        let mut result = Box::new(render::render_reply(operation, &reply, rendering));
        if let Some(cut) = cut {
            result.note(NoteKind::Cut, cut);
        }
        if let Some(next) = next {
            result.notes.add_next_page(next);
        }
        let is_made_anew = rule.is_some_and(|rule| rule.jq.is_some()) || is_filtered;
        if let Some(pages) = pages {
            pages.add_to(&mut result, is_made_anew);
        }
        let counted =
            count.map(|count| format!("The reply has no items, although the API counts {count}."));
        let authenticator = self.credential.authenticator.as_ref();
        let refusal = authenticator
            .and_then(|authenticator| authenticator.describe_refusal(reply.status, &reply.headers));
        for note in [counted, remark, refusal].into_iter().flatten() {
            result.note(NoteKind::Form, note);
        }
        self.name_blobs(&mut result);
        result
    }

    /// Saves a result that could have been a status, if a rule makes it a file.
    ///
    /// # Errors
    /// The reason for which it stays in memory, as the end of a sentence.
    async fn save_result(&self, reply: &mut Reply) -> Result<(), String> {
        let redactors = reply.redactors.clone();
        let plan = self.file_plan(Ask::Operation, &redactors);
        let path = self
            .original_url()
            .map(|url| url.path().to_owned())
            .unwrap_or_default();
        let saved = save_reply(&plan, self.caller, reply, path).await;
        saved.map_err(|error| {
            tracing::warn!(tool = %self.target.tool, "a result could not be saved: {error}{}", self.log_cause(&error));
            match error {
                CallError::NotSaved { sentence, .. } => sentence.to_owned(),
                error => error.to_string(),
            }
        })
    }

    /// Calls embedded bytes by the path of the request, without its query, which may hold a key.
    fn name_blobs(&self, result: &mut ToolResult) {
        for (index, uri) in result.blob_uris().enumerate() {
            if let Ok(request) = self.request(Ask::Operation) {
                let method = request.method.as_str().to_ascii_lowercase();
                let part = if index == 0 {
                    String::new()
                } else {
                    format!("#{index}")
                };
                *uri = format!("openapi-mcp:{method}{}{part}", request.url.path());
            }
        }
    }
}

/// Work on a longer reply is done in steps, and on a few of them at a time.
const LONG_REPLY_BYTES: usize = 256 << 10;

/// A reply without secrets, after the operator's rules, and what it says of the whole list.
pub(super) struct Cleaned {
    pub(super) reply: Reply,
    /// The next page, read before a rule could drop it.
    pub(super) next: Option<NextPage>,
    /// The number of items that the API counts, of a reply that has none.
    pub(super) count: Option<u64>,
    /// What of a page a rule leaves out, as a sentence.
    pub(super) cut: Option<String>,
}

impl Call<'_> {
    /// Waits for the turn of a long reply.
    pub(crate) async fn long_reply_turn(&self, reply: &Reply) -> Option<SemaphorePermit<'_>> {
        if reply.body.len() > LONG_REPLY_BYTES {
            return self.proxy.options.memory.turn().await;
        }
        None
    }

    /// Decodes a reply, and takes out the secrets of the operator, its tenant and the client.
    async fn make_readable(&self, reply: &mut Reply) {
        let length = reply.body.len();
        reply.decode_charset();
        for redactor in self.secret_redactors() {
            redactor.redact(reply, self.number_mark());
            let_others_run(length).await;
        }
    }

    /// Makes a reply readable and applies the rules. `has_pages` says that it has all pages that
    /// were asked for.
    ///
    /// # Errors
    /// The result in its place, if a rule cannot be applied.
    pub(super) async fn clean(
        &self,
        mut reply: Reply,
        has_pages: bool,
    ) -> Result<Cleaned, ToolResult> {
        self.make_readable(&mut reply).await;
        let operation = &self.target.operation;
        let (mut next, mut count, mut cut) = (None, None, None);
        if reply.status.is_success() {
            next = (!has_pages).then(|| self.next_page(&reply)).flatten();
            count = pagination::count_without_items(&reply);
        }
        if let Some(rule) = self.rule() {
            let sandbox = self.proxy.sandbox.as_ref();
            let shaped = shape_reply(rule, operation, sandbox, &mut reply, self.time_left());
            let mut shaped = Box::pin(shaped).await;
            if let (Ok(_), Some(masks)) = (&shaped, &self.target.masks) {
                shaped = mask_reply(masks, &mut reply).and(shaped);
            }
            let contract = self.target.contract;
            cut = shaped.map_err(|why| withheld_result(operation, &reply, &why, contract))?;
        }
        Ok(Cleaned {
            reply,
            next,
            count,
            cut,
        })
    }

    /// Reads what a successful reply says about the next page.
    pub(super) fn next_page(&self, reply: &Reply) -> Option<NextPage> {
        let page_call = PageCall {
            operation: &self.target.operation,
            document: &self.proxy.document,
            arguments: &self.arguments,
            url: &|| Some(self.request(Ask::Operation).ok()?.url),
        };
        let next = reply
            .status
            .is_success()
            .then(|| pagination::next(page_call, reply))?;
        match (next?, &self.target.masks) {
            (NextPage::Arguments(arguments), Some(masks)) if masks.is_in(&arguments) => {
                Some(NextPage::Unreachable)
            }
            (next, _) => Some(next),
        }
    }

    /// What is left of the call's time.
    fn time_left(&self) -> std::time::Duration {
        self.proxy
            .options
            .timeout
            .saturating_sub(self.started.elapsed())
    }

    /// The mark of a number that is secret.
    fn number_mark(&self) -> NumberMark {
        match self.target.contract {
            OutputContract::AsDeclared => NumberMark::Zero,
            OutputContract::None | OutputContract::AnyObject => NumberMark::Text,
        }
    }
}

/// Yields between two steps of the work on a long reply, so that other calls of the same connection
/// proceed.
async fn let_others_run(reply_bytes: usize) {
    if reply_bytes > LONG_REPLY_BYTES {
        tokio::task::yield_now().await;
    }
}

impl Call<'_> {
    /// The call of a further page, with arguments that fit the input schema and a reply of at most
    /// `max_bytes`. A tenth of the time for the whole call is left for the work on the pages.
    ///
    /// # Errors
    /// As [`ApiProxy::begin`](super::ApiProxy::begin), and [`CallError::Timeout`] if the time is
    /// over.
    pub(crate) fn again(&self, arguments: JsonObject, max_bytes: usize) -> Result<Self, CallError> {
        let timeout = self.proxy.options.timeout;
        let deadline = self
            .deadline
            .checked_sub(timeout / 10)
            .unwrap_or(self.deadline);
        if Instant::now() >= deadline {
            return Err(CallError::Timeout(timeout));
        }
        let (arguments, client_secrets) = self.target.completed(arguments, true, self.caller)?;
        Ok(Self {
            arguments,
            client_secrets,
            forwarded: self.proxy.forwarded(self.credential, self.caller)?,
            deadline,
            max_bytes,
            ..*self
        })
    }

    /// Takes secrets out of the reply to one of several pages, and reads what it says about the
    /// next one. Arguments that hold a secret get none.
    pub(crate) async fn read_page(&self, reply: &mut Reply) -> Option<NextPage> {
        let _turn = self.long_reply_turn(reply).await;
        self.make_readable(reply).await;
        self.next_page(reply).map(|next| match next {
            NextPage::Arguments(arguments)
                if Value::Object(arguments.clone()).to_string().contains(MARK) =>
            {
                NextPage::Unreachable
            }
            next => next,
        })
    }

    /// The number of bytes that all pages of a call may have together.
    pub(crate) fn max_page_bytes(&self) -> usize {
        let of_rule = self.rule().and_then(max_shaped_bytes).unwrap_or(usize::MAX);
        self.max_bytes.min(of_rule)
    }

    /// Describes a page that is not a success, without what a rule keeps back.
    pub(crate) fn describe_refused_page(&self, response: &Reply) -> String {
        const MAX_BYTES: usize = 300;
        let status = status_line(response.status);
        let operation = &self.target.operation;
        if self.rule().is_some_and(|rule| !rule.drop.is_empty()) {
            return status;
        }
        let mut response = response.clone();
        if let Some(masks) = &self.target.masks {
            masks.redact(&mut response, NumberMark::Text);
        }
        let known = KnownOfCall {
            advice: self.credential.advice.as_ref(),
            ..KnownOfCall::default()
        };
        describe_failure(operation, &response, known, MAX_BYTES).0
    }
}
