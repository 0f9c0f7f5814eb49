//! The calls of further pages of a list.

use std::borrow::Cow;
use std::time::Instant;

use serde_json::Value;

use super::{ApiProxy, PreparedCall};
use crate::json::JsonObject;
use crate::proxy::arguments::ruled::RuledCall;
use crate::proxy::error::CallError;
use crate::proxy::exchange::CallOptions;
use crate::proxy::redact::Redactor;
use crate::proxy::redact::secrets::MARK;
use crate::proxy::response::failure::{KnownOfCall, describe_failure};
use crate::proxy::response::pagination::NextPage;
use crate::proxy::response::shape::max_shaped_bytes;
use crate::proxy::response::{Response, status_line};

impl ApiProxy {
    /// The call of a further page, with arguments that fit the input schema and a reply of at most
    /// `max_bytes`. A tenth of the time for the whole call is left for the work on the pages.
    ///
    /// # Errors
    /// As [`ApiProxy::prepare`], and [`CallError::Timeout`] if the time is over.
    pub(crate) fn prepare_page<'c>(
        &'c self,
        first: &PreparedCall<'c>,
        arguments: JsonObject,
        max_bytes: usize,
    ) -> Result<PreparedCall<'c>, CallError> {
        let deadline = first
            .deadline
            .checked_sub(self.options.timeout / 10)
            .unwrap_or(first.deadline);
        if Instant::now() >= deadline {
            return Err(CallError::Timeout(self.options.timeout));
        }
        let RuledCall { arguments, secrets } =
            first
                .target
                .complete_arguments(arguments, true, Some(first.caller))?;
        Ok(PreparedCall {
            arguments,
            client_secrets: (!secrets.is_empty())
                .then(|| Redactor::for_values(secrets.iter().map(String::as_bytes))),
            forwarded: self.forwarded(first.credential, first.caller)?,
            deadline,
            options: Cow::Owned(CallOptions {
                max_response_bytes: max_bytes,
                ..self.options.clone()
            }),
            ..*first
        })
    }

    /// Takes secrets out of the reply to one of several pages, and reads what it says about the
    /// next one. Arguments that hold a secret get none.
    pub(crate) async fn read_page(
        &self,
        call: &PreparedCall<'_>,
        response: &mut Response,
    ) -> Option<NextPage> {
        let _turn = self.long_reply_turn(response).await;
        self.redact_reply(call, response).await;
        self.next_page(call, response).map(|next| match next {
            NextPage::Arguments(arguments)
                if Value::Object(arguments.clone()).to_string().contains(MARK) =>
            {
                NextPage::Unreachable
            }
            next => next,
        })
    }

    /// The number of bytes that all pages of a call may have together.
    pub(crate) fn max_page_bytes(&self, call: &PreparedCall<'_>) -> usize {
        let rule = call.target.operation.rules.response.as_ref();
        let of_rule = rule.and_then(max_shaped_bytes).unwrap_or(usize::MAX);
        self.options.max_response_bytes.min(of_rule)
    }
}

impl PreparedCall<'_> {
    /// Describes a page that is not a success, without what a rule keeps back.
    pub(crate) fn describe_refused_page(&self, response: &Response) -> String {
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
        let known = KnownOfCall {
            advice: self.credential.advice.as_ref(),
            document: None,
            arguments: None,
        };
        describe_failure(operation, response, known, MAX_BYTES).0
    }
}
