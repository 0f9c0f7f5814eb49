//! The one end of a call: the result that is made of what it has come to.

use std::sync::Arc;

use http::header::ETAG;

use super::ask::Ask;
use super::clean::{Cleaned, let_others_run};
use super::{Call, Ending};
use crate::call_error::CallError;
use crate::proxy::exchange::save_reply;
use crate::results::page_report::PageReport;
use crate::results::render::{self, Rendering};
use crate::results::reply_headers::ShownHeaders;
use crate::results::result_notes::NoteKind;
use crate::results::tool_result::ToolResult;
use crate::results::wait_remark::WaitRemark;
use crate::results::{self, Reply};

impl Call<'_> {
    /// Makes the result of the call: the reply without secrets, filtered if the arguments require
    /// it, and cut to the limit of a result. It names no tool that the caller may not list.
    pub(crate) async fn finish(&self, ending: Ending) -> ToolResult {
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
            return remark
                .into_iter()
                .fold(result, |result, remark| remark.apply(result));
        };
        let is_result = pages.is_none() && matches!(remark, None | Some(WaitRemark::Done(_, None)));
        let (mut result, unsaved) = self.result_of(reply, pages, is_result).await;
        if let Some(remark) = remark {
            result = remark.apply(result);
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
    ) -> (ToolResult, Option<String>) {
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
            Err(withheld) => withheld,
        };
        let_others_run(length).await;
        // Only now are charsets decoded and escapes resolved. The path and the digest of a file must
        // not change.
        let of_reply = redactors.iter().map(Arc::as_ref);
        let masks = masks.filter(|_| !is_file);
        for redactor in self.secret_redactors().chain(of_reply).chain(masks) {
            redactor.redact_result(&mut result, self.number_mark());
        }
        (result, unsaved)
    }

    /// The result of a reply, with notes about what it does not show.
    async fn render(&self, cleaned: Cleaned, pages: Option<PageReport>) -> ToolResult {
        let Cleaned {
            mut reply,
            next,
            count,
            cut,
        } = cleaned;
        let operation = &self.target.operation;
        let rule = operation.rules.response.as_ref();
        let (mut remark, mut is_filtered) = (None, false);
        let filter_key = self.proxy.sandbox.is_some().then(|| operation.filter_key());
        if let Some(sandbox) = &self.proxy.sandbox
            && let Some(filter) = filter_key
                .as_ref()
                .and_then(|key| self.arguments.get(key)?.as_str())
        {
            is_filtered = true;
            let filtered =
                results::sandbox::apply_filter(sandbox, filter, &mut reply, self.time_left());
            remark = Box::pin(filtered).await.err();
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
            max_bytes: self.max_result_bytes(rule),
            hides_images: options.hides_images,
            delivery: Some(&options.delivery),
            is_file: rule.is_some_and(|rule| rule.file == Some(true)),
            advice: self.credential.advice.as_ref(),
            document: Some(&self.proxy.document),
            filter: filter_key.as_deref(),
            pages_key: pages_key.as_deref(),
            arguments: Some(&self.arguments),
            headers: ShownHeaders {
                declared: self.target.declared_headers(&self.proxy.document),
                etag_advice: etag_advice.as_ref(),
                base: Some(self.base.url()),
            },
        };
        let mut result = render::render_reply(operation, &reply, rendering);
        if let Some(cut) = cut {
            result.note(NoteKind::Cut, cut);
        }
        if let Some(next) = next {
            result.note_next_page(next);
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
        let plan = self.plan_of_file(Ask::Operation);
        let redactors = reply.redactors.clone();
        let plan = plan.with(&redactors);
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
