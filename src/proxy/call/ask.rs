//! What a call asks the API: the request, its attempts, and what becomes of its outcome in metrics
//! and logs. A call may take more than one attempt: after a refused token, or if the API is busy for
//! a moment. All of them share the deadline.
//!
//! What is rare is on the heap: a call holds the largest of its steps while it waits, and servers
//! move what waits from place to place.

use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, COOKIE, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use tokio::sync::SemaphorePermit;
use tokio::time::{Instant, sleep, timeout_at};
use url::Url;

use super::{ApiProxy, Call};
use crate::call_error::CallError;
use crate::credentials::authenticator::{CallAuthentication, Injected};
use crate::files::FilePlan;
use crate::json::JsonObject;
use crate::observe::call::note;
use crate::observe::upstream::RequestTimer;
use crate::outbound::breaker::Outcome;
use crate::outbound::request::Request;
use crate::proxy::binding::BoundOperation;
use crate::proxy::exchange::{ExchangeLimits, exchange};
use crate::proxy::request::closed_paths::PathGuard;
use crate::proxy::request::fixed::check_fixed_arguments;
use crate::proxy::request::target::BaseUrl;
use crate::proxy::request::{ExpectedReply, RequestTemplate};
use crate::proxy::{request, upstream};
use crate::redact::Redactor;
use crate::results::Reply;
use crate::spec::operation::request_body::BODY;
use crate::spec::{Location, Operation};
use crate::text::MIN_BYTES_PER_TOKEN;
use crate::{observe, text};

/// Time of a call that is left after its last request for a status.
const LAST_REQUEST: Duration = Duration::from_secs(1);
/// A status is most often JSON, and a result may be anything.
const ACCEPTED: HeaderValue = HeaderValue::from_static("application/json, */*;q=0.8");

/// Request of a call.
#[derive(Clone, Copy)]
pub(crate) enum Ask<'u> {
    /// The request of its operation.
    Operation,
    /// A GET of the status of an operation that takes long.
    Status(&'u Url),
    /// A GET of its result.
    Result(&'u Url),
}

impl Call<'_> {
    /// Asks the API, as often as allowed, and returns its reply. Dropping the future ends the
    /// request. The wait for an operation has its own pauses: its requests are sent once.
    ///
    /// # Errors
    /// [`CallError`] if the request cannot be made or no complete reply comes.
    pub(crate) async fn ask(&self, ask: Ask<'_>) -> Result<Reply, CallError> {
        let is_of_wait = !matches!(ask, Ask::Operation);
        let mut outcome = self.exchange(ask).await;
        let (tool, ms) = (&self.target.tool, self.started.elapsed().as_millis());
        match &mut outcome {
            Ok(reply) => {
                reply.is_of_wait = is_of_wait;
                let (status, bytes) = (reply.status.as_u16(), reply.length());
                if is_of_wait {
                    tracing::debug!(%tool, status, "asked for the status of an operation");
                } else {
                    tracing::debug!(%tool, status, bytes, ms, "called");
                }
                note(|record| (record.status, record.bytes) = (Some(status), Some(bytes)));
            }
            Err(error) if is_of_wait => {
                tracing::debug!(%tool, "the status of an operation could not be asked for: {error}");
            }
            Err(error) if error.is_the_callers() => {}
            Err(error) => {
                let host = self.base.url().host_str().unwrap_or_default();
                let port = self.base.url().port_or_known_default().unwrap_or_default();
                let cause = self.log_cause(error);
                tracing::warn!(%tool, host, port, ms, "the call failed: {error}{cause}");
            }
        }
        outcome
    }

    /// The request, with everything but the headers that are made anew for each attempt.
    ///
    /// # Errors
    /// The arguments make no request.
    pub(super) fn request(&self, ask: Ask<'_>) -> Result<Request, CallError> {
        let injected = &self.credential.fixed;
        let mut request = match ask {
            Ask::Operation => self.proxy.request(
                self.target,
                self.base,
                &self.arguments,
                injected,
                self.guard(),
            )?,
            Ask::Status(url) | Ask::Result(url) => return Ok(self.status_request(url)),
        };
        if let Some((headers, _)) = &self.forwarded {
            let headers = headers.iter();
            let headers = headers.map(|(name, value)| (name.clone(), value.clone()));
            request.headers.extend(headers);
        }
        Ok(request)
    }

    /// Deadline of the reply.
    fn deadline_of(&self, ask: Ask<'_>) -> Instant {
        let timeout = self.proxy.options.timeout;
        match ask {
            Ask::Operation => self.deadline.into(),
            Ask::Status(_) | Ask::Result(_) => {
                let timeout = timeout.saturating_sub(LAST_REQUEST.min(timeout / 4));
                (self.started + timeout).into()
            }
        }
    }

    /// Returns true if the reply may become a file while it is received. A rule that removes parts of
    /// replies does not reach into one, and what is masked becomes one later.
    fn may_be_file(&self) -> bool {
        self.rule()
            .is_none_or(|rule| !rule.withholds() && rule.masks.is_empty())
    }

    /// The conditions under which a reply becomes a file, in which `redactors` apply as well. A
    /// status that becomes one could not be read.
    pub(super) fn file_plan<'p>(
        &'p self,
        ask: Ask<'_>,
        redactors: &'p [Arc<Redactor>],
    ) -> FilePlan<'p> {
        let rule = self.rule();
        let delivery = &self.proxy.options.delivery;
        FilePlan {
            delivery,
            tool: &self.target.tool,
            is_ruled: rule.is_some_and(|rule| rule.file == Some(true))
                && !matches!(ask, Ask::Status(_)),
            may_be_status: match ask {
                Ask::Operation => self.target.operation.may_wait(),
                Ask::Status(_) => true,
                Ask::Result(_) => false,
            },
            max_result_bytes: self.max_result_bytes(),
            redactors: if delivery.destination.is_some() {
                let of_reply = redactors.iter().map(Arc::as_ref);
                self.secret_redactors().chain(of_reply).collect()
            } else {
                Vec::new()
            },
        }
    }

    /// Number of bytes that a result may have; 0 is no limit. A rule can only lower it.
    pub(super) fn max_result_bytes(&self) -> usize {
        let max_bytes = self.proxy.options.max_result_bytes;
        match self.rule().and_then(|rule| rule.max_tokens) {
            Some(tokens) if max_bytes == 0 => tokens.saturating_mul(MIN_BYTES_PER_TOKEN),
            Some(tokens) => tokens.saturating_mul(MIN_BYTES_PER_TOKEN).min(max_bytes),
            None => max_bytes,
        }
    }

    /// The causes of an error for the log, in brackets and without secrets.
    pub(super) fn log_cause(&self, error: &CallError) -> String {
        let Some(cause) = error.cause() else {
            return String::new();
        };
        let mut cause = cause.to_owned();
        for redactor in self.redactors() {
            redactor.redact_line(&mut cause);
        }
        format!(" ({})", text::one_line(&cause))
    }

    /// The URL of the request of a call, without the operator's additions.
    pub(crate) fn original_url(&self) -> Option<Url> {
        let mut arguments = self.arguments.clone();
        arguments.remove(BODY);
        self.bare_url(&self.target.operation, &arguments)
    }

    /// The URL of an operation with these arguments, without the operator's additions.
    pub(crate) fn bare_url(&self, operation: &Operation, arguments: &JsonObject) -> Option<Url> {
        let template = RequestTemplate {
            document: &self.proxy.document,
            operation,
            base: self.base,
            expected: &ExpectedReply::new(&self.proxy.document, operation),
            injected: &Injected::default(),
            files: None,
            guard: None,
        };
        request::build(&template, arguments)
            .ok()
            .map(|request| request.url)
    }

    /// The request for a status or a result of the operation at that URL.
    fn status_request(&self, url: &Url) -> Request {
        let injected = &self.credential.fixed;
        let mut url = url.clone();
        for (name, value) in &injected.query {
            let query = match url.query() {
                Some(query) => format!("{query}&{name}={value}"),
                None => format!("{name}={value}"),
            };
            url.set_query(Some(&query));
        }
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, ACCEPTED);
        if let Ok(cookies) = HeaderValue::from_str(&injected.cookies.join("; "))
            && !injected.cookies.is_empty()
        {
            headers.insert(COOKIE, cookies);
        }
        for fixed in &self.target.operation.rules.fixed {
            let parameter = &fixed.parameter;
            let value = self
                .arguments
                .get(&parameter.key)
                .or(parameter.default.as_ref());
            if let Some(value) = value.filter(|_| parameter.location == Location::Header) {
                // What cannot be sent was refused with the request of the self.
                let _ = request::header(parameter, value, &mut headers);
            }
        }
        // A header that is there is replaced, and each of several values stays.
        headers.extend(injected.headers.clone());
        headers.extend(
            self.forwarded
                .iter()
                .flat_map(|(headers, _)| headers.clone()),
        );
        Request {
            method: Method::GET,
            url,
            headers,
            body: None,
            may_stream: false,
        }
    }
}

impl ApiProxy {
    pub(super) fn request(
        &self,
        target: &BoundOperation,
        base: &BaseUrl,
        arguments: &JsonObject,
        injected: &Injected,
        guard: Option<PathGuard<'_>>,
    ) -> Result<Request, CallError> {
        let operation = &target.operation;
        let expected = target
            .expected
            .get_or_init(|| ExpectedReply::new(&self.document, operation));
        let template = RequestTemplate {
            document: &self.document,
            operation,
            base,
            expected,
            injected,
            files: self.options.files.as_ref(),
            guard,
        };
        let request = request::build(&template, arguments)?;
        check_fixed_arguments(&template, arguments, &request)?;
        Ok(request)
    }
}

/// Number of times that a request is sent at most, for any settings and answers.
const MAX_ATTEMPTS: u32 = 4;

impl Call<'_> {
    /// Makes the request, as often as needed and allowed, and reads the reply.
    ///
    /// # Errors
    /// [`CallError`] if it cannot be made, if there is no place for it, and those of [`exchange`].
    pub(super) async fn exchange(&self, ask: Ask<'_>) -> Result<Reply, CallError> {
        let deadline = self.deadline_of(ask);
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
        let may_be_file = self.may_be_file();
        let mut token_redactors = Vec::new();
        if may_be_file && options.delivery.destination.is_some() {
            token_redactors = authentication.redactors();
        }
        let plan = may_be_file.then(|| self.file_plan(ask, &token_redactors));
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
        let pause = upstream::pause(outcome, attempt)
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
