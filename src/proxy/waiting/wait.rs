//! One wait: the requests for a status, one after the other, until the operation is done or the
//! time ends.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use http::header::LOCATION;

use super::handle::{HandleScope, WaitState};
use super::places::WaitingPlace;
use super::recognize::{StatusKind, header_url, settings};
use super::remark::{Unfinished, WaitRemark};
use super::requests::{FoundResult, checked_url, location_of, url_of_state};
use super::status_body::StatusBody;
use super::status_url::{UrlRefusal, path_and_query};
use super::verdict::{Progress, StatusVerdict};
use crate::proxy::call::{ApiProxy, PreparedCall};
use crate::proxy::caller::Caller;
use crate::proxy::error::CallError;
use crate::proxy::response::status_line;
use crate::proxy::upstream::Reply;

/// Time of a call that is kept for its result.
const RESERVE: Duration = Duration::from_secs(2);
/// Part of it that the last request for a status may take.
const LAST_REQUEST: Duration = Duration::from_secs(1);

/// End of a wait.
pub(crate) struct EndedWait {
    /// The last reply that says something, if one came.
    pub(crate) reply: Option<Reply>,
    pub(crate) remark: Option<WaitRemark>,
}

/// A sentence about a result that is not requested.
pub(super) fn result_not_requested(refusal: UrlRefusal) -> String {
    format!(
        "This server does not request the URL of its result: {}.",
        refusal.describe()
    )
}

/// A wait in progress.
pub(super) struct Wait<'c> {
    pub(super) proxy: &'c ApiProxy,
    pub(super) call: &'c PreparedCall<'c>,
    /// The caller, whose progress is not that of single requests.
    pub(super) caller: Caller,
    pub(super) state: WaitState,
    /// The last reply that says something.
    pub(super) latest: Option<Reply>,
    pub(super) progress: Progress,
    /// Failure of the last request, as a sentence.
    pub(super) failure: Option<String>,
    /// Progress that was reported before the wait.
    pub(super) reported: u64,
}

/// Step of a wait.
enum Step {
    /// It goes on.
    Again,
    /// It ends.
    End(WaitRemark),
}

impl Wait<'_> {
    /// Asks for the status until there is nothing more to wait for.
    pub(super) async fn run(&mut self, is_look: bool) -> WaitRemark {
        let timeout = self.proxy.options.timeout;
        let end = self.call.started + timeout.saturating_sub(RESERVE);
        let last = self.call.started + timeout.saturating_sub(LAST_REQUEST.min(timeout / 4));
        let Some(_place) = WaitingPlace::take(self.call.caller.key()) else {
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
                self.step(last).await
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
                Some(Step::Again) => {}
                Some(Step::End(remark)) => return remark,
            }
        }
    }

    /// Asks once.
    async fn step(&mut self, deadline: Instant) -> Step {
        let url = url_of_state(self.call, &self.state);
        let url = match url {
            Ok(url) => url,
            Err(refusal) => return Step::End(WaitRemark::NotAsked(refusal.describe())),
        };
        let asked =
            self.proxy
                .ask_status(self.call, &self.caller, &url, self.state.is_done, deadline);
        let reply = match asked.await {
            Ok(reply) => reply,
            Err(error) if is_passing(&error) => {
                self.state.schedule.advance(None, SystemTime::now());
                self.failure = Some(format!("The last request for its status failed: {error}."));
                return Step::Again;
            }
            Err(error) => {
                self.state.schedule.advance(None, SystemTime::now());
                return Step::End(
                    self.unfinished(Some(format!("Its status could not be asked for: {error}."))),
                );
            }
        };
        // Of a result, the status code alone is judged.
        let body = if self.state.is_done {
            StatusBody::default()
        } else {
            self.proxy.read_status(self.call, &reply).await
        };
        let verdict = StatusVerdict::of(
            &reply.response,
            &body,
            settings(&self.call.target.operation),
        );
        self.failure = None;
        if verdict == StatusVerdict::Unknown {
            self.state
                .schedule
                .advance(Some(&reply.response), SystemTime::now());
            let status = status_line(reply.response.status);
            self.failure = Some(format!(
                "The last request for its status was answered with {status}."
            ));
            return Step::Again;
        }
        if self.state.is_done {
            // The reply is the result, whatever it says.
            self.keep(reply);
            return self.done(None);
        }
        match verdict {
            StatusVerdict::Refused | StatusVerdict::Unknown => {
                self.keep(reply);
                Step::End(WaitRemark::Refused)
            }
            StatusVerdict::Running(_) => {
                self.progress = self.proxy.progress_of(self.call, &reply, &body);
                self.state
                    .schedule
                    .advance(Some(&reply.response), SystemTime::now());
                let newer = header_url(self.state.kind, &reply.response);
                let location = location_of(self.call, &reply.response, &url);
                self.state.location = location.or(self.state.location.take());
                self.keep(reply);
                match newer.map(|newer| self.move_to(&newer, &url)) {
                    Some(Err(refusal)) => Step::End(WaitRemark::NotAsked(refusal.describe())),
                    Some(Ok(())) | None => Step::Again,
                }
            }
            StatusVerdict::Failed(word) => {
                let word = word.map(|word| self.proxy.without_secrets(self.call, &reply, word));
                self.keep(reply);
                Step::End(WaitRemark::Failed(self.took(), word))
            }
            StatusVerdict::Moved(location) => {
                // The operator has named an operation, and not where it leads.
                self.state.kind = StatusKind::Location;
                match self.move_to(&location, &url) {
                    Ok(()) => {
                        self.keep(reply);
                        self.state.is_done = true;
                        self.state.schedule.at_once();
                        Step::Again
                    }
                    Err(UrlRefusal::Elsewhere) => {
                        // The client may request what this server does not.
                        self.keep_whole(reply);
                        self.done(Some(result_not_requested(UrlRefusal::Elsewhere)))
                    }
                    // Such a redirect says nothing: the reply before it is given.
                    Err(refusal) => Step::End(WaitRemark::NotAsked(refusal.describe())),
                }
            }
            StatusVerdict::Done => {
                let result = self.proxy.result_url(self.call, &self.state, &body, &url);
                self.keep(reply);
                match result {
                    FoundResult::Status => self.done(None),
                    FoundResult::Refused(refusal) => self.done(Some(result_not_requested(refusal))),
                    FoundResult::Url(kind, url) => {
                        self.state.is_done = true;
                        self.state.kind = kind;
                        self.state.url = path_and_query(&url);
                        self.state.schedule.at_once();
                        Step::Again
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
    fn done(&self, why_missing: Option<String>) -> Step {
        Step::End(WaitRemark::Done(self.took(), why_missing))
    }

    fn took(&self) -> Duration {
        let started = UNIX_EPOCH + Duration::from_secs(self.state.started);
        SystemTime::now()
            .duration_since(started)
            .unwrap_or_default()
    }

    /// Keeps a reply in place of the one before it, with the redactors of both.
    fn keep(&mut self, mut reply: Reply) {
        if reply.response.status.is_redirection() {
            // The URL was judged, and is not repeated.
            reply.response.headers.remove(LOCATION);
        }
        self.keep_whole(reply);
    }

    /// Keeps a reply and the URL to which it redirects.
    fn keep_whole(&mut self, mut reply: Reply) {
        for redactor in self
            .latest
            .take()
            .into_iter()
            .flat_map(|latest| latest.redactors)
        {
            if !reply
                .redactors
                .iter()
                .any(|known| known.has_tokens_of(&redactor))
            {
                reply.redactors.push(redactor);
            }
        }
        self.latest = Some(reply);
    }

    fn unfinished(&mut self, why: Option<String>) -> WaitRemark {
        let now = SystemTime::now();
        WaitRemark::Unfinished(Unfinished {
            progress: self.progress.clone(),
            why,
            wanted: self.state.schedule.wanted(now),
            handle: self.handle(now),
        })
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
        if self.proxy.holds_secret(self.call, &self.state) {
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

    pub(super) fn end(self, remark: WaitRemark) -> EndedWait {
        EndedWait {
            reply: self.latest,
            remark: Some(remark),
        }
    }
}

/// The same caller without progress: bytes of single requests are not progress of the wait.
pub(super) fn quiet(caller: &Caller) -> Caller {
    Caller {
        progress: None,
        ..caller.clone()
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
