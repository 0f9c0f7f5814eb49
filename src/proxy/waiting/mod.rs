//! Waiting for an operation that is done after its first reply: the call asks for the status until
//! the operation is done, or its time ends; then it gives a handle, with which another call goes
//! on.
//!
//! Between two requests a call holds no place, turn or connection of the API. The first request is
//! not sent again, whatever happens here.

pub(crate) mod handle;
pub(crate) mod places;
pub(crate) mod recognize;
pub(crate) mod remark;
pub(crate) mod requests;
pub(crate) mod schedule;
mod status_body;
pub(crate) mod status_url;
pub(crate) mod verdict;
mod wait;

use std::time::SystemTime;

use self::handle::WaitState;
use self::recognize::{FoundStatus, StatusKind, is_possible, recognize, settings};
use self::remark::WaitRemark;
use self::requests::{checked_url, location_of};
use self::schedule::Schedule;
use self::status_body::StatusBody;
use self::status_url::{UrlRefusal, path_and_query};
use self::verdict::{Progress, StatusVerdict};
use self::wait::{EndedWait, Wait, quiet};
use super::call::{ApiProxy, PreparedCall};
use super::caller::ReportProgress;
use super::response::result_notes::NoteKind;
use super::response::tool_result::ToolResult;
use super::upstream::Reply;

impl PreparedCall<'_> {
    /// Returns true if its operation may be done only after this reply, or keeps such replies from
    /// becoming files at once.
    pub(crate) fn is_awaited(&self, reply: &Reply) -> bool {
        let operation = &self.target.operation;
        operation.may_wait() || is_possible(operation, &reply.response)
    }
}

impl ApiProxy {
    /// Waits until the operation is done whose first reply is given.
    pub(crate) async fn await_end(&self, call: &PreparedCall<'_>, reply: Reply) -> EndedWait {
        let operation = &call.target.operation;
        let body = if is_possible(operation, &reply.response) {
            self.read_status(call, &reply).await
        } else {
            StatusBody::default()
        };
        let Some(found) = recognize(operation, &reply.response, &body) else {
            return EndedWait {
                reply: Some(reply),
                remark: None,
            };
        };
        let state = match self.state_of(call, found, &reply, &body) {
            Ok(state) => state,
            Err(why) => {
                return EndedWait {
                    reply: Some(reply),
                    remark: Some(WaitRemark::NotAsked(why)),
                };
            }
        };
        let mut wait = Wait {
            proxy: self,
            call,
            caller: quiet(call.caller),
            state,
            failure: None,
            reported: call
                .caller
                .progress
                .as_ref()
                .map(ReportProgress::last)
                .unwrap_or_default(),
            progress: self.progress_of(call, &reply, &body),
            latest: Some(reply),
        };
        let remark = wait.run(false).await;
        wait.end(remark)
    }

    /// Goes on with a wait. With `is_look`, asks for the status once, and at once.
    pub(crate) async fn resume(
        &self,
        call: &PreparedCall<'_>,
        state: WaitState,
        is_look: bool,
    ) -> EndedWait {
        let mut wait = Wait {
            proxy: self,
            call,
            caller: quiet(call.caller),
            state,
            failure: None,
            reported: call
                .caller
                .progress
                .as_ref()
                .map(ReportProgress::last)
                .unwrap_or_default(),
            latest: None,
            progress: Progress::default(),
        };
        let remark = wait.run(is_look).await;
        wait.end(remark)
    }

    /// Makes the result of a call whose wait has ended.
    pub(crate) async fn finish_awaited(
        &self,
        call: &PreparedCall<'_>,
        awaited: EndedWait,
    ) -> ToolResult {
        let mut unsaved = None;
        let result = match awaited.reply {
            Some(mut reply) => {
                if matches!(awaited.remark, None | Some(WaitRemark::Done(_, None))) {
                    unsaved = self.save_result(call, &mut reply).await.err();
                }
                Box::pin(self.finish(call, reply, None)).await
            }
            None => ToolResult::of_text(
                "The operation was accepted; there is no reply about it to show.",
                call.target.contract.text_form(),
            ),
        };
        let mut result = match awaited.remark {
            Some(remark) => remark.apply(result),
            None => result,
        };
        unsaved
            .iter()
            .for_each(|why| result.note(NoteKind::Wait, format!("It is not in a file: {why}.")));
        result
    }

    /// Reads what a reply says of its operation; a long one in turn with other long replies.
    async fn read_status(&self, call: &PreparedCall<'_>, reply: &Reply) -> StatusBody {
        let _turn = self.long_reply_turn(&reply.response).await;
        StatusBody::read(&reply.response, settings(&call.target.operation))
    }

    /// The words of a reply about an operation that runs, without secrets.
    fn progress_of(&self, call: &PreparedCall<'_>, reply: &Reply, body: &StatusBody) -> Progress {
        match StatusVerdict::of(&reply.response, body, settings(&call.target.operation)) {
            StatusVerdict::Running(progress) => Progress {
                word: progress
                    .word
                    .map(|word| self.without_secrets(call, reply, word)),
                ..progress
            },
            _ => Progress::default(),
        }
    }

    /// The state of a wait that begins with this reply.
    ///
    /// # Errors
    /// The reason for which the status is not asked for, as the end of a sentence.
    fn state_of(
        &self,
        call: &PreparedCall<'_>,
        found: FoundStatus<'_>,
        reply: &Reply,
        body: &StatusBody,
    ) -> Result<WaitState, &'static str> {
        let operation = &call.target.operation;
        let response = &reply.response;
        let settings = settings(operation);
        let now = SystemTime::now();
        let original = self
            .original_url(call)
            .ok_or("its request cannot be made again")?;
        let (kind, url) = match found {
            FoundStatus::Url(kind, text) => {
                let url =
                    checked_url(call, &text, &original, kind).map_err(UrlRefusal::describe)?;
                (kind, path_and_query(&url))
            }
            FoundStatus::Own => {
                let own = path_and_query(&original);
                checked_url(call, &own, &original, StatusKind::Own)
                    .map_err(UrlRefusal::describe)?;
                (StatusKind::Own, own)
            }
            FoundStatus::Operation(named) => {
                let url = self.url_of_named(call, named, body, &call.arguments);
                let url = url.ok_or(
                    "the reply lacks an argument of the operation that the operator names for it",
                )?;
                let checked = checked_url(
                    call,
                    &path_and_query(&url),
                    &original,
                    StatusKind::Operation,
                );
                (
                    StatusKind::Operation,
                    path_and_query(&checked.map_err(UrlRefusal::describe)?),
                )
            }
        };
        let schedule = Schedule::begin(
            settings.and_then(|settings| settings.interval),
            response,
            now,
        );
        let mut state = WaitState::new(
            &call.target.tool,
            url,
            kind,
            path_and_query(&original),
            schedule,
            now,
        );
        state.location = location_of(call, response, &original);
        state.arguments = self.arguments_of_result(call);
        Ok(state)
    }
}
