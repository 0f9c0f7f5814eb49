//! Waiting for an operation that is done after its first reply: the call asks for the status until
//! the operation is done, or its time ends; then it gives a handle, with which another call goes
//! on.
//!
//! Between two requests a call holds no place, turn or connection of the API. The first request is
//! not sent again, whatever happens here.

pub(crate) mod handle;
pub(crate) mod requests;
pub(crate) mod status;
pub(crate) mod status_url;
mod wait;

use std::time::SystemTime;

use self::handle::{Schedule, WaitState};
use self::requests::{checked_url, location_of};
use self::status::{
    FoundStatus, StatusBody, StatusKind, StatusVerdict, is_possible, recognize, settings,
};
use self::status_url::{UrlRefusal, path_and_query};
use self::wait::Wait;
use super::call::{Call, Ending};
use crate::results::Reply;
use crate::results::remarks::{Progress, WaitRemark};

impl Call<'_> {
    /// Returns true if its operation may be done only after this reply, or keeps such replies from
    /// becoming files at once.
    pub(crate) fn is_awaited(&self, reply: &Reply) -> bool {
        let operation = &self.target.operation;
        operation.may_wait() || is_possible(operation, reply)
    }

    /// Waits until the operation is done whose first reply is given.
    pub(crate) async fn await_end(&self, reply: Reply) -> Ending {
        let operation = &self.target.operation;
        let body = if is_possible(operation, &reply) {
            self.read_status(&reply).await
        } else {
            StatusBody::default()
        };
        let Some(found) = recognize(operation, &reply, &body) else {
            return Ending::Reply(reply);
        };
        match self.state_of(found, &reply, &body) {
            Ok(state) => {
                let progress = self.progress_of(&reply, &body);
                let wait = Wait::new(self, state, progress, Some(reply));
                wait.run(false).await
            }
            Err(why) => Ending::Waited(Some(reply), WaitRemark::NotAsked(why)),
        }
    }

    /// Goes on with a wait. With `is_look`, asks for the status once, and at once.
    pub(crate) async fn resume(&self, state: WaitState, is_look: bool) -> Ending {
        let wait = Wait::new(self, state, Progress::default(), None);
        wait.run(is_look).await
    }

    /// Reads what a reply says of its operation; a long one in turn with other long replies.
    async fn read_status(&self, reply: &Reply) -> StatusBody {
        let _turn = self.long_reply_turn(reply).await;
        StatusBody::read(reply, settings(&self.target.operation))
    }

    /// The words of a reply about an operation that runs, without secrets.
    fn progress_of(&self, reply: &Reply, body: &StatusBody) -> Progress {
        match StatusVerdict::of(reply, body, settings(&self.target.operation)) {
            StatusVerdict::Running(progress) => Progress {
                word: progress.word.map(|word| self.without_secrets(reply, word)),
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
        found: FoundStatus<'_>,
        reply: &Reply,
        body: &StatusBody,
    ) -> Result<WaitState, &'static str> {
        let operation = &self.target.operation;
        let settings = settings(operation);
        let now = SystemTime::now();
        let original = self
            .original_url()
            .ok_or("its request cannot be made again")?;
        let (kind, url) = match found {
            FoundStatus::Url(kind, text) => {
                let url =
                    checked_url(self, &text, &original, kind).map_err(UrlRefusal::describe)?;
                (kind, path_and_query(&url))
            }
            FoundStatus::Own => {
                let own = path_and_query(&original);
                checked_url(self, &own, &original, StatusKind::Own)
                    .map_err(UrlRefusal::describe)?;
                (StatusKind::Own, own)
            }
            FoundStatus::Operation(named) => {
                let url = self.url_of_named(named, body, &self.arguments);
                let url = url.ok_or(
                    "the reply lacks an argument of the operation that the operator names for it",
                )?;
                let checked = checked_url(
                    self,
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
        let schedule = Schedule::begin(settings.and_then(|settings| settings.interval), reply, now);
        let mut state = WaitState::new(
            &self.target.tool,
            url,
            kind,
            path_and_query(&original),
            schedule,
            now,
        );
        state.location = location_of(self, reply, &original);
        state.arguments = self.arguments_of_result();
        Ok(state)
    }
}
