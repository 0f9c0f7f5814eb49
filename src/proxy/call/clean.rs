//! The reply as it may leave this room: in UTF-8, without secrets, and after the operator's rules.

use tokio::sync::SemaphorePermit;

use super::Call;
use super::ask::Ask;
use crate::redact::json::NumberMark;
use crate::results::Reply;
use crate::results::pagination::{self, NextPage, PageCall};
use crate::results::render::OutputContract;
use crate::results::shape::{mask_reply, shape_reply};
use crate::results::tool_result::ToolResult;

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
    pub(super) async fn make_readable(&self, reply: &mut Reply) {
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
        if let Some(rule) = &operation.rules.response {
            let sandbox = self.proxy.sandbox.as_ref();
            let shaped = shape_reply(rule, operation, sandbox, &mut reply, self.time_left());
            let mut shaped = Box::pin(shaped).await;
            if let (Ok(_), Some(masks)) = (&shaped, &self.target.masks) {
                shaped = mask_reply(masks, &mut reply).and(shaped);
            }
            cut = shaped
                .map_err(|withheld| withheld.result(operation, &reply, self.target.contract))?;
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
    pub(super) fn time_left(&self) -> std::time::Duration {
        self.proxy
            .options
            .timeout
            .saturating_sub(self.started.elapsed())
    }

    /// The mark of a number that is secret.
    pub(super) fn number_mark(&self) -> NumberMark {
        match self.target.contract {
            OutputContract::AsDeclared => NumberMark::Zero,
            OutputContract::None | OutputContract::AnyObject => NumberMark::Text,
        }
    }
}

/// Yields between two steps of the work on a long reply, so that other calls of the same connection
/// proceed.
pub(super) async fn let_others_run(reply_bytes: usize) {
    if reply_bytes > LONG_REPLY_BYTES {
        tokio::task::yield_now().await;
    }
}
