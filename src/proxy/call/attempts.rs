//! The attempts at a request. A call may take more than one: after a refused token, or if the API is
//! busy for a moment. All of them share the deadline.
//!
//! What is rare is on the heap: a call holds the largest of its steps while it waits, and servers
//! move what waits from place to place.

use std::time::Duration;

use http::StatusCode;
use tokio::sync::SemaphorePermit;
use tokio::time::{Instant, sleep, timeout_at};

use super::Call;
use super::ask::Ask;
use crate::call_error::CallError;
use crate::credentials::authenticator::CallAuthentication;
use crate::files::FilePlan;
use crate::observe;
use crate::observe::call::note;
use crate::observe::upstream::RequestTimer;
use crate::outbound::breaker::Outcome;
use crate::outbound::request::Request;
use crate::proxy::exchange::{ExchangeLimits, exchange};
use crate::proxy::upstream::retry;
use crate::results::Reply;

/// Number of times that a request is sent at most, for any settings and answers.
const MAX_ATTEMPTS: u32 = 4;

impl Call<'_> {
    /// Makes the request, as often as needed and allowed, and reads the reply.
    ///
    /// # Errors
    /// [`CallError`] if it cannot be made, if there is no place for it, and those of [`exchange`].
    pub(super) async fn exchange(&self, ask: Ask<'_>) -> Result<Reply, CallError> {
        let deadline = self.deadline_of(ask).into();
        // What cannot be sent at all takes no permit, and neither does what waits for a token.
        let first = self.request(ask)?;
        let authentication = CallAuthentication::begin(
            self.credential.authenticator.as_ref(),
            self.caller,
            &self.target.refused_tokens,
            deadline,
        )
        .await?;
        let permit = self.upstream.breaker.admit()?;
        let place = Some(self.upstream.concurrency.enter(deadline).await?);
        let repeats = self.target.repeats && matches!(ask, Ask::Operation);
        let retries = if repeats && !permit.is_probe {
            self.upstream.retries
        } else {
            0
        };
        let outcome = self
            .send_until_answered(ask, first, authentication, place, retries, deadline)
            .await;
        permit.settle(judge(&outcome));
        outcome
    }

    /// Sends the request, and once more for each reason that there is: a credential that was
    /// renewed, or a retry.
    async fn send_until_answered<'u>(
        &'u self,
        ask: Ask<'_>,
        first: Request,
        mut authentication: CallAuthentication<'_>,
        mut place: Option<SemaphorePermit<'u>>,
        retries: u32,
        deadline: Instant,
    ) -> Result<Reply, CallError> {
        self.upstream.budget.count();
        let mut request = first;
        let mut attempt = 1;
        let mut before: Option<Box<Result<Reply, CallError>>> = None;
        loop {
            let outcome = self
                .send_once(ask, request, &mut authentication, deadline)
                .await;
            // Errors of a request that did not leave say that nothing was sent.
            if matches!(
                outcome,
                Err(CallError::RateLimited(_) | CallError::Credential(_))
            ) && let Some(before) = before
            {
                return (*before)
                    .map(|reply| reply.without_credentials(authentication.redactors()));
            }
            let is_sent_again = attempt < MAX_ATTEMPTS
                && (renews_credential(&outcome, &mut authentication, deadline).await?
                    || match self.retry_pause(&outcome, attempt, retries, deadline) {
                        Some(pause) => Box::pin(self.pause(pause, deadline, &mut place)).await,
                        None => false,
                    });
            if !is_sent_again {
                return outcome.map(|reply| reply.without_credentials(authentication.redactors()));
            }
            request = self.request(ask)?;
            attempt += 1;
            before = Some(Box::new(outcome));
        }
    }

    /// One request and its reply, within the call's one deadline: a read time-out alone would never
    /// stop a reply that comes drop by drop.
    async fn send_once(
        &self,
        ask: Ask<'_>,
        mut request: Request,
        authentication: &mut CallAuthentication<'_>,
        deadline: Instant,
    ) -> Result<Reply, CallError> {
        let (upstream, options) = (self.upstream, &self.proxy.options);
        if let Some(rate) = &upstream.rate {
            Box::pin(rate.turn(deadline, options.timeout)).await?;
        }
        authentication.set_headers(&mut request, deadline).await?;
        // The last step before a byte leaves: what fails before leaves the agreement as it is.
        if let Some(agreement) = &self.caller.agreement
            && !Box::pin(agreement.take()).await
        {
            note(|record| record.confirmed = false);
            return Err(CallError::NotAgreed);
        }
        let is_of_operation = matches!(ask, Ask::Operation);
        note(|record| match ask {
            Ask::Operation => record.attempts += 1,
            Ask::Status(_) | Ask::Result(_) => record.polls += 1,
        });
        let timer = RequestTimer::start(&request.method, &upstream.labels);
        if upstream.propagates_trace {
            timer.propagate(&mut request.headers);
        }
        let file = self.file_plan(ask);
        let mut token_redactors = Vec::new();
        if file.as_ref().is_some_and(FilePlan::has_destination) {
            token_redactors = authentication.redactors();
        }
        let plan = file.as_ref().map(|plan| plan.with(&token_redactors));
        let limits = ExchangeLimits {
            bytes: self.max_bytes,
            timeout: options.timeout,
            deadline,
            memory: &options.memory,
            caller: self.caller,
            // The bytes of a status are no progress of the wait.
            progress: self.caller.progress.as_ref().filter(|_| is_of_operation),
            plan: plan.as_ref(),
        };
        let exchange = Box::pin(exchange(&upstream.client, request, limits));
        let outcome = timeout_at(deadline, exchange)
            .await
            .unwrap_or(Err(CallError::Timeout(options.timeout)));
        let status = outcome
            .as_ref()
            .map(|reply| reply.status.as_u16())
            .map_err(CallError::outcome);
        timer.end(status);
        outcome
    }

    /// Returns the pause after which the request is to be repeated. The budget pays for every
    /// repetition.
    fn retry_pause(
        &self,
        outcome: &Result<Reply, CallError>,
        attempt: u32,
        retries: u32,
        deadline: Instant,
    ) -> Option<Duration> {
        let pause = retry::pause(outcome, attempt)
            .filter(|pause| attempt <= retries && Instant::now() + *pause < deadline)?;
        self.upstream.budget.spend().then_some(pause)
    }

    /// Waits before a retry, while other calls have its place. Returns true if it has one again.
    async fn pause<'u>(
        &'u self,
        pause: Duration,
        deadline: Instant,
        place: &mut Option<SemaphorePermit<'u>>,
    ) -> bool {
        let upstream = self.upstream;
        drop(place.take());
        sleep(pause).await;
        *place = upstream.concurrency.enter(deadline).await.ok();
        if place.is_none() {
            return false;
        }
        tracing::debug!(ms = pause.as_millis(), "the request is sent again");
        if let Some(metrics) = observe::metrics() {
            metrics.retried(&upstream.labels.api);
        }
        true
    }
}

/// Returns true if a refused credential was renewed, so that the request can leave once more. A
/// request that is refused for its credential was not acted on (RFC 9110 section 15.5.2), so this
/// holds for every method.
async fn renews_credential(
    outcome: &Result<Reply, CallError>,
    authentication: &mut CallAuthentication<'_>,
    deadline: Instant,
) -> Result<bool, CallError> {
    match outcome {
        Ok(reply) if reply.status == StatusCode::UNAUTHORIZED => {
            Box::pin(authentication.on_unauthorized(deadline)).await
        }
        _ => Ok(false),
    }
}

/// Judges the health of the upstream by an outcome.
fn judge(outcome: &Result<Reply, CallError>) -> Outcome {
    match outcome {
        Ok(reply) => match reply.status {
            StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Outcome::Failure,
            _ => Outcome::Success,
        },
        Err(
            CallError::Timeout(_)
            | CallError::NoResponse {
                connected: false, ..
            },
        ) => Outcome::Failure,
        Err(_) => Outcome::Unknown,
    }
}
