//! The calls of further pages of a list.

use std::time::Instant;

use serde_json::Value;

use super::Call;
use crate::call_error::CallError;
use crate::json::JsonObject;
use crate::redact::json::NumberMark;
use crate::redact::secrets::MARK;
use crate::results::failure::{KnownOfCall, describe_failure};
use crate::results::pagination::NextPage;
use crate::results::shape::max_shaped_bytes;
use crate::results::{Reply, status_line};

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
        let rule = self.target.operation.rules.response.as_ref();
        let of_rule = rule.and_then(max_shaped_bytes).unwrap_or(usize::MAX);
        self.max_bytes.min(of_rule)
    }

    /// Describes a page that is not a success, without what a rule keeps back.
    pub(crate) fn describe_refused_page(&self, response: &Reply) -> String {
        const MAX_BYTES: usize = 300;
        let status = status_line(response.status);
        let operation = &self.target.operation;
        if operation
            .rules
            .response
            .as_ref()
            .is_some_and(|rule| !rule.drop.is_empty())
        {
            return status;
        }
        let mut response = response.clone();
        if let Some(masks) = &self.target.masks {
            masks.redact(&mut response, NumberMark::Text);
        }
        let known = KnownOfCall {
            advice: self.credential.advice.as_ref(),
            document: None,
            arguments: None,
        };
        describe_failure(operation, &response, known, MAX_BYTES).0
    }
}
