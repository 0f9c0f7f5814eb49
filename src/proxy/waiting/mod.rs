//! Waiting for an operation that is done after its first reply: the call asks for the status until
//! the operation is done, or its time ends; then it gives a handle, with which another call goes
//! on.
//!
//! Between two requests a call holds no place, turn or connection of the API. The first request is
//! not sent again, whatever happens here.
//!
//! The number of waits is limited: each holds a reply and a timer.

pub(crate) mod handle;
pub(crate) mod requests;
pub(crate) mod status;

use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use http::header::LOCATION;

use self::handle::{HandleScope, Schedule, UrlRefusal, WaitState, path_and_query, seconds};
use self::requests::{checked_url, location_of};
use self::status::{
    FoundStatus, StatusBody, StatusKind, StatusVerdict, header_url, is_possible, recognize,
    settings,
};
use super::call::ask::Ask;
use super::call::{Call, Ending};
use crate::call_error::CallError;
use crate::caller::memory_budget::{BLOCK_BYTES, HeldMemory, MemoryBudget, OutOfMemory};
use crate::caller::{Caller, ReportProgress};
use crate::results::remarks::{Progress, WaitRemark};
use crate::results::{Reply, status_line};

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
                self.wait(state, progress, Some(reply), false).await
            }
            Err(why) => Ending::Waited(Some(reply), WaitRemark::NotAsked(why)),
        }
    }

    /// Goes on with a wait. With `is_look`, asks for the status once, and at once.
    pub(crate) async fn resume(&self, state: WaitState, is_look: bool) -> Ending {
        self.wait(state, Progress::default(), None, is_look).await
    }

    /// Asks for the status until there is nothing more to wait for. `latest` is the last reply that
    /// says something.
    async fn wait(
        &self,
        state: WaitState,
        progress: Progress,
        latest: Option<Reply>,
        is_look: bool,
    ) -> Ending {
        let reported = self.caller.progress.as_ref().map(ReportProgress::last);
        let mut wait = Wait {
            call: self,
            state,
            latest,
            progress,
            failure: None,
            reported: reported.unwrap_or_default(),
        };
        let remark = wait.ask_until_done(is_look).await;
        Ending::Waited(wait.latest, remark)
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
        let (kind, text) = match found {
            FoundStatus::Url(kind, text) => (kind, text),
            FoundStatus::Own => (StatusKind::Own, path_and_query(&original)),
            FoundStatus::Operation(named) => {
                let url = self.url_of_named(named, body, &self.arguments);
                let url = url.ok_or(
                    "the reply lacks an argument of the operation that the operator names for it",
                )?;
                (StatusKind::Operation, path_and_query(&url))
            }
        };
        let url = checked_url(self, &text, &original, kind).map_err(UrlRefusal::describe)?;
        let schedule = Schedule::begin(settings.and_then(|settings| settings.interval), reply, now);
        Ok(WaitState {
            tool: self.target.tool.to_string(),
            url: path_and_query(&url),
            kind,
            is_done: false,
            original: path_and_query(&original),
            location: location_of(self, reply, &original),
            schedule,
            started: seconds(now),
            expires: 0,
            arguments: self.arguments_of_result(),
        })
    }
}

/// Time of a call that is kept for its result.
const RESERVE: Duration = Duration::from_secs(2);
/// A sentence about a result that is not requested.
fn result_not_requested(refusal: UrlRefusal) -> String {
    format!(
        "This server does not request the URL of its result: {}.",
        refusal.describe()
    )
}

/// A wait in progress.
struct Wait<'c> {
    call: &'c Call<'c>,
    state: WaitState,
    /// The last reply that says something.
    latest: Option<Reply>,
    progress: Progress,
    /// Failure of the last request, as a sentence.
    failure: Option<String>,
    /// Progress that was reported before the wait.
    reported: u64,
}

impl Wait<'_> {
    async fn ask_until_done(&mut self, is_look: bool) -> WaitRemark {
        let timeout = self.call.proxy.options.timeout;
        let end = self.call.started + timeout.saturating_sub(RESERVE);
        let Ok(_place) = take_place(self.call.caller) else {
            return self.unfinished(Some("Too many calls wait at this server.".to_owned()));
        };
        let ending = self
            .call
            .caller
            .waiting
            .as_ref()
            .map(|place| place.ending.clone())
            .unwrap_or_default();
        let mut is_first = true;
        loop {
            let budget = end.saturating_duration_since(Instant::now());
            let pause = self.state.schedule.left_within(budget, SystemTime::now());
            let pause = match pause {
                _ if is_look && is_first => Duration::ZERO,
                // A result that is there is fetched at once.
                Ok(pause) if !is_look || pause.is_zero() => pause,
                _ => {
                    let failure = self.failure.take();
                    return self.unfinished(failure);
                }
            };
            is_first = false;
            self.report();
            let step = async {
                tokio::time::sleep(pause).await;
                self.step().await
            };
            let step = tokio::select! {
                step = step => Some(step),
                () = ending.cancelled() => None,
            };
            match step {
                None => {
                    return self.unfinished(Some(
                        "The wait was interrupted, because this process is about to end."
                            .to_owned(),
                    ));
                }
                Some(None) => {}
                Some(Some(remark)) => return remark,
            }
        }
    }

    /// Asks once, and returns the end of the wait; `None` if it goes on.
    async fn step(&mut self) -> Option<WaitRemark> {
        // What is served may have changed since the URL was read.
        let state = &self.state;
        let url = match checked_url(self.call, &state.url, self.call.base.url(), state.kind) {
            Ok(url) => url,
            Err(refusal) => return Some(WaitRemark::NotAsked(refusal.describe())),
        };
        let ask = if self.state.is_done {
            Ask::Result(&url)
        } else {
            Ask::Status(&url)
        };
        let reply = match self.call.ask(ask).await {
            Ok(reply) => reply,
            Err(error) if is_passing(&error) => {
                self.state.schedule.advance(None, SystemTime::now());
                self.failure = Some(format!("The last request for its status failed: {error}."));
                return None;
            }
            Err(error) => {
                self.state.schedule.advance(None, SystemTime::now());
                return Some(
                    self.unfinished(Some(format!("Its status could not be asked for: {error}."))),
                );
            }
        };
        // Of a result, the status code alone is judged.
        let body = if self.state.is_done {
            StatusBody::default()
        } else {
            self.call.read_status(&reply).await
        };
        let verdict = StatusVerdict::of(&reply, &body, settings(&self.call.target.operation));
        self.failure = None;
        if verdict == StatusVerdict::Unknown {
            self.state.schedule.advance(Some(&reply), SystemTime::now());
            let status = status_line(reply.status);
            self.failure = Some(format!(
                "The last request for its status was answered with {status}."
            ));
            return None;
        }
        if self.state.is_done {
            // The reply is the result, whatever it says.
            self.keep(reply);
            return Some(self.done(None));
        }
        match verdict {
            StatusVerdict::Refused | StatusVerdict::Unknown => {
                self.keep(reply);
                Some(WaitRemark::Refused)
            }
            StatusVerdict::Running(_) => {
                self.progress = self.call.progress_of(&reply, &body);
                self.state.schedule.advance(Some(&reply), SystemTime::now());
                let newer = header_url(self.state.kind, &reply);
                let location = location_of(self.call, &reply, &url);
                self.state.location = location.or(self.state.location.take());
                self.keep(reply);
                match newer.map(|newer| self.move_to(&newer, &url)) {
                    Some(Err(refusal)) => Some(WaitRemark::NotAsked(refusal.describe())),
                    Some(Ok(())) | None => None,
                }
            }
            StatusVerdict::Failed(word) => {
                let word = word.map(|word| self.call.without_secrets(&reply, word));
                self.keep(reply);
                Some(WaitRemark::Failed(self.took(), word))
            }
            StatusVerdict::Moved(location) => {
                // The operator has named an operation, and not where it leads.
                self.state.kind = StatusKind::Location;
                match self.move_to(&location, &url) {
                    Ok(()) => {
                        self.keep(reply);
                        self.state.is_done = true;
                        self.state.schedule.at_once();
                        None
                    }
                    Err(UrlRefusal::Elsewhere) => {
                        // The client may request what this server does not.
                        self.keep_whole(reply);
                        Some(self.done(Some(result_not_requested(UrlRefusal::Elsewhere))))
                    }
                    // Such a redirect says nothing: the reply before it is given.
                    Err(refusal) => Some(WaitRemark::NotAsked(refusal.describe())),
                }
            }
            StatusVerdict::Done => {
                let result = self.call.result_url(&self.state, &body, &url);
                self.keep(reply);
                match result {
                    None => Some(self.done(None)),
                    Some(Err(refusal)) => Some(self.done(Some(result_not_requested(refusal)))),
                    Some(Ok((kind, url))) => {
                        self.state.is_done = true;
                        self.state.kind = kind;
                        self.state.url = path_and_query(&url);
                        self.state.schedule.at_once();
                        None
                    }
                }
            }
        }
    }

    /// Continues with another URL of a reply.
    fn move_to(&mut self, text: &str, from: &url::Url) -> Result<(), UrlRefusal> {
        let url = checked_url(self.call, text, from, self.state.kind)?;
        self.state.url = path_and_query(&url);
        Ok(())
    }

    /// Ends the wait for an operation that is done; `why_missing` says why its result is missing.
    fn done(&self, why_missing: Option<String>) -> WaitRemark {
        WaitRemark::Done(self.took(), why_missing)
    }

    fn took(&self) -> Duration {
        let started = UNIX_EPOCH + Duration::from_secs(self.state.started);
        SystemTime::now()
            .duration_since(started)
            .unwrap_or_default()
    }

    /// Keeps a reply in place of the one before it, with the redactors of both.
    fn keep(&mut self, mut reply: Reply) {
        if reply.status.is_redirection() {
            // The URL was judged, and is not repeated.
            reply.headers.remove(LOCATION);
        }
        self.keep_whole(reply);
    }

    /// Keeps a reply and the URL to which it redirects.
    fn keep_whole(&mut self, mut reply: Reply) {
        if let Some(latest) = self.latest.take() {
            reply.keep_redactors(&latest.redactors);
        }
        self.latest = Some(reply);
    }

    fn unfinished(&mut self, why: Option<String>) -> WaitRemark {
        let now = SystemTime::now();
        WaitRemark::Unfinished {
            progress: self.progress.clone(),
            why,
            wanted: self.state.schedule.wanted(now),
            handle: self.handle(now),
        }
    }

    /// The end of a sentence that says how to go on, with the handle.
    ///
    /// # Errors
    /// A sentence that says why nothing can go on.
    fn handle(&mut self, now: SystemTime) -> Result<String, String> {
        let cannot = || "This server cannot wait for it any longer.".to_owned();
        let place = self.call.caller.waiting.clone().ok_or_else(cannot)?;
        let how = place.how.clone()?;
        let scope = HandleScope {
            api: place.api.as_deref(),
            tenant: place.tenant.as_deref(),
            endpoint: &place.endpoint,
            caller: self.call.caller,
        };
        if self.call.holds_secret(&self.state) {
            return Err(cannot());
        }
        let handle = self.state.seal(scope, now).ok_or_else(cannot)?;
        Ok(format!("{how} {handle}"))
    }

    /// Reports the newest state to the client.
    fn report(&self) {
        let caller = self.call.caller;
        if let Some(progress) = &caller.progress {
            progress.report_step(self.reported, self.progress.percent);
        }
        if let Some(report) = caller
            .waiting
            .as_ref()
            .and_then(|place| place.report.as_ref())
        {
            let word = self.progress.word.as_deref().unwrap_or("accepted");
            let percent = self
                .progress
                .percent
                .map(|percent| format!(", {percent} %"))
                .unwrap_or_default();
            report(&format!("the operation is not done yet: {word}{percent}"));
        }
    }
}

/// Returns true if an error may be gone in a moment.
fn is_passing(error: &CallError) -> bool {
    error.is_of_the_api()
        || matches!(
            error,
            CallError::Busy(_) | CallError::RateLimited(_) | CallError::NoMemory
        )
}

/// The most calls of a process that wait.
const MAX_WAITING: usize = 1024;

/// The places of calls that wait: each is counted as a block of memory is.
static PLACES: LazyLock<MemoryBudget> =
    LazyLock::new(|| MemoryBudget::new(MAX_WAITING * BLOCK_BYTES));

/// Takes a place, which is free again once it is dropped.
///
/// # Errors
/// There is none for this client.
fn take_place(caller: &Caller) -> Result<HeldMemory, OutOfMemory> {
    let mut place = PLACES.begin();
    place.grow_to(BLOCK_BYTES, caller)?;
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p45_one_client_gets_half_of_the_places_and_places_come_back() {
        let [one, other] = [1, 2].map(|last| Caller {
            address: Some([198, 51, 100, last].into()),
            ..Caller::default()
        });
        let held: Vec<HeldMemory> = std::iter::from_fn(|| take_place(&one).ok()).collect();
        assert_eq!(held.len(), MAX_WAITING / 2);
        assert!(take_place(&other).is_ok());
        drop(held);
        assert!(take_place(&one).is_ok());
    }
}
