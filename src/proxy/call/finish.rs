//! The last step of a call: the result that is made of its reply.

use std::sync::Arc;

use http::header::ETAG;
use tokio::sync::SemaphorePermit;

use super::{ApiProxy, PreparedCall};
use crate::proxy::redact::json::NumberMark;
use crate::proxy::response::page_report::PageReport;
use crate::proxy::response::pagination::{self, NextPage, PageCall};
use crate::proxy::response::render::{self, OutputContract, Rendering};
use crate::proxy::response::reply_headers::ShownHeaders;
use crate::proxy::response::result_notes::NoteKind;
use crate::proxy::response::shape::shape_reply;
use crate::proxy::response::tool_result::ToolResult;
use crate::proxy::response::{self, Response};
use crate::proxy::upstream::Reply;

/// Work on a longer reply is done in steps, and on a few of them at a time.
const LONG_REPLY_BYTES: usize = 256 << 10;

impl ApiProxy {
    /// Waits for the turn of a long reply.
    pub(crate) async fn long_reply_turn(&self, response: &Response) -> Option<SemaphorePermit<'_>> {
        if response.body.len() > LONG_REPLY_BYTES {
            return self.options.memory.turn().await;
        }
        None
    }

    /// Decodes a reply, and takes out the secrets of the operator, its tenant and the client.
    pub(super) async fn redact_reply(&self, call: &PreparedCall<'_>, response: &mut Response) {
        let length = response.body.len();
        response.decode_charset();
        for redactor in self.redactors(call) {
            redactor.redact(response, call.number_mark());
            let_others_run(length).await;
        }
    }

    /// Reads what a successful reply says about the next page.
    pub(super) fn next_page(
        &self,
        call: &PreparedCall<'_>,
        response: &Response,
    ) -> Option<NextPage> {
        let page_call = PageCall {
            operation: &call.target.operation,
            document: &self.document,
            arguments: &call.arguments,
            url: &|| self.outgoing_request(call).ok().map(|request| request.url),
        };
        response
            .status
            .is_success()
            .then(|| pagination::next(page_call, response))?
    }

    /// Makes the result of a call: the reply without secrets, filtered if the arguments require it,
    /// and cut to the limit of a result. It names no tool that the caller may not list. `pages` is
    /// the report on the pages of the reply, if several were collected.
    pub(crate) async fn finish(
        &self,
        call: &PreparedCall<'_>,
        reply: Reply,
        pages: Option<PageReport>,
    ) -> ToolResult {
        let Reply {
            mut response,
            redactors,
        } = reply;
        let redact = self.redactors(call);
        let length = response.body.len();
        let _turn = self.long_reply_turn(&response).await;
        self.redact_reply(call, &mut response).await;
        let operation = &call.target.operation;
        let rule = operation.rules.response.as_ref();
        let left = || self.options.timeout.saturating_sub(call.started.elapsed());
        // Read from the whole reply: a rule or a filter may drop what says so.
        let (mut next, mut count, mut shaped) = (None, None, None);
        if response.status.is_success() {
            next = pages
                .is_none()
                .then(|| self.next_page(call, &response))
                .flatten();
            count = pagination::count_without_items(&response);
        }
        if let Some(rule) = rule {
            match shape_reply(
                rule,
                operation,
                self.sandbox.as_ref(),
                &mut response,
                left(),
            )
            .await
            {
                Ok(remark) => shaped = remark,
                Err(withheld) => {
                    return withheld.result(operation, &response, call.target.contract);
                }
            }
        }
        let (mut remark, mut is_filtered) = (None, false);
        let filter_key = self.sandbox.is_some().then(|| operation.filter_key());
        if let Some(sandbox) = &self.sandbox
            && let Some(filter) = filter_key
                .as_ref()
                .and_then(|key| call.arguments.get(key)?.as_str())
        {
            is_filtered = true;
            remark = response::sandbox::apply_filter(sandbox, filter, &mut response, left())
                .await
                .err();
        }
        let pages_key = pages
            .as_ref()
            .filter(|report| report.pages.len() > 1)
            .map(|_| operation.pages_key());
        let etag_use = call
            .target
            .etag_use
            .as_ref()
            .filter(|_| response.headers.contains_key(ETAG));
        let etag_advice = etag_use.and_then(|etag_use| etag_use.advice(&call.caller.shown));
        let rendering = Rendering {
            promise: call.target.contract,
            max_bytes: self.max_result_bytes(rule),
            hides_images: self.options.hides_images,
            delivery: Some(&self.options.delivery),
            is_file: rule.is_some_and(|rule| rule.file == Some(true)),
            advice: call.credential.advice.as_ref(),
            document: Some(&self.document),
            filter: filter_key.as_deref(),
            pages_key: pages_key.as_deref(),
            arguments: Some(&call.arguments),
            headers: ShownHeaders {
                declared: call.target.declared_headers(&self.document),
                etag_advice: etag_advice.as_ref(),
                base: Some(call.base.url()),
            },
        };
        let mut result = render::render_reply(operation, &response, rendering);
        shaped
            .into_iter()
            .for_each(|remark| result.note(NoteKind::Cut, remark));
        next.into_iter()
            .for_each(|next| result.note_next_page(next));
        let is_made_anew = rule.is_some_and(|rule| rule.jq.is_some()) || is_filtered;
        pages
            .into_iter()
            .for_each(|pages| pages.add_to(&mut result, is_made_anew));
        if let Some(count) = count {
            result.note(
                NoteKind::Form,
                format!("The reply has no items, although the API counts {count}."),
            );
        }
        let_others_run(length).await;
        remark
            .into_iter()
            .for_each(|remark| result.note(NoteKind::Form, remark));
        let authenticator = call.credential.authenticator.as_ref();
        let refusal =
            authenticator.and_then(|authenticator| authenticator.describe_refusal(&response));
        refusal
            .into_iter()
            .for_each(|remark| result.note(NoteKind::Form, remark));
        self.name_blobs(call, &mut result);
        // Only now are charsets decoded and escapes resolved.
        for redactor in redact.chain(redactors.iter().map(Arc::as_ref)) {
            redactor.redact_result(&mut result, call.number_mark());
        }
        result
    }

    /// Calls embedded bytes by the path of the request, without its query, which may hold a key.
    fn name_blobs(&self, call: &PreparedCall<'_>, result: &mut ToolResult) {
        for (index, uri) in result.blob_uris().enumerate() {
            if let Ok(request) = self.outgoing_request(call) {
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

/// Yields between two steps of the work on a long reply, so that other calls of the same connection
/// proceed.
async fn let_others_run(reply_bytes: usize) {
    if reply_bytes > LONG_REPLY_BYTES {
        tokio::task::yield_now().await;
    }
}

impl PreparedCall<'_> {
    /// The mark of a number that is secret.
    pub(super) fn number_mark(&self) -> NumberMark {
        match self.target.contract {
            OutputContract::AsDeclared => NumberMark::Zero,
            OutputContract::None | OutputContract::AnyObject => NumberMark::Text,
        }
    }
}
