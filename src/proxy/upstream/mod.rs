//! One upstream, and its calls. A call may take more than one request: after a refused token, or if
//! the API is busy for a moment. All of them share the deadline of the call.
//!
//! # Changing when a request is sent again
//!
//! - `pause` in `proxy/upstream/retry.rs` decides after which outcome and after which pause;
//!   `Budget` there limits the share of retries.
//! - `MAX_ATTEMPTS` in `proxy/upstream/mod.rs` and the setting in `config/upstream.rs` limit how
//!   often.
//! - The hint `idempotentHint` decides for which tools. After a 401,
//!   `renews_credential` in `proxy/upstream/mod.rs` allows one more request of any tool.

pub(crate) mod limit;
pub(crate) mod retry;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tokio::sync::SemaphorePermit;
use tokio::time::{Instant, sleep, timeout_at};
use url::Origin;

use self::limit::{ConcurrencyLimit, RequestRate};
use self::retry::Budget;
use super::auth::authenticator::CallAuthentication;
use super::auth::refused_tokens::RefusedTokens;
use super::auth::resolve::Credential;
use super::breaker::{Breaker, Outcome};
use super::caller::Caller;
use super::error::CallError;
use super::exchange::{self, CallOptions};
use super::files::FilePlan;
use super::redact::Redactor;
use super::redact::json::NumberMark;
use super::request::Request;
use super::request::target::BaseUrl;
use crate::observe;
use crate::observe::call::note;
use crate::observe::metrics::OriginLabels;
use crate::observe::metrics::gauges::UpstreamGauges;
use crate::observe::metrics::labels::ApiLabel;
use crate::observe::upstream::{RequestTimer, origin_labels, watch_upstream};
use crate::outbound::{Clients, HttpClient};
use crate::proxy::response::Response;
use crate::shared_state::rate::SharedRate;
use crate::shared_state::state::SharedApiState;

/// Number of times that a request is sent at most, for any settings and answers.
const MAX_ATTEMPTS: u32 = 4;

/// The operator's settings for an upstream.
#[derive(Debug, Clone)]
pub struct UpstreamOptions {
    /// Calls in flight at a time; four times as many wait for a place.
    pub concurrency: usize,
    /// Requests a second.
    pub rate: Option<f64>,
    /// Number of repetitions of a request, if they are allowed.
    pub retries: u32,
    /// Number of failures in a row after which the breaker opens; 0 is never.
    pub breaker_failures: u32,
    /// Pause without requests once the breaker is open.
    pub breaker_pause: Duration,
    /// True if requests to the API's own origin carry the trace that they belong to (W3C Trace
    /// Context).
    pub propagates_trace: bool,
    /// State in which the limits of all replicas are counted.
    pub shared: Option<SharedApiState>,
}

impl Default for UpstreamOptions {
    fn default() -> Self {
        Self {
            concurrency: 256,
            rate: None,
            retries: 2,
            breaker_failures: 20,
            breaker_pause: Duration::from_secs(30),
            propagates_trace: false,
            shared: None,
        }
    }
}

/// One origin, with its limits and its circuit breaker.
#[derive(Debug)]
pub(crate) struct Upstream {
    client: HttpClient,
    concurrency: ConcurrencyLimit,
    rate: Option<RequestRate>,
    breaker: Breaker,
    /// API, host and port, for metrics and traces.
    labels: OriginLabels,
    /// True if requests carry the trace that they belong to.
    propagates_trace: bool,
    budget: Budget,
    retries: u32,
}

/// The upstreams of an API, one for each origin; almost all have one.
#[derive(Debug)]
pub(crate) struct Upstreams<'o> {
    clients: Clients,
    options: &'o UpstreamOptions,
    api: ApiLabel,
    known: HashMap<Origin, Arc<Upstream>>,
}

impl<'o> Upstreams<'o> {
    /// Makes an empty set.
    #[must_use]
    pub(crate) fn new(clients: Clients, options: &'o UpstreamOptions, api: ApiLabel) -> Self {
        Self {
            clients,
            options,
            api,
            known: HashMap::new(),
        }
    }

    /// The one that a base belongs to; `elsewhere` says that it is none of those that credentials
    /// may go to.
    pub(crate) fn of(
        &mut self,
        base: &BaseUrl,
        elsewhere: bool,
        propagates_trace: bool,
    ) -> Arc<Upstream> {
        let client = if elsewhere {
            &self.clients.other
        } else {
            &self.clients.own
        };
        let fresh = || {
            let url = base.url();
            let (host, port) = (
                url.host_str().unwrap_or_default(),
                url.port_or_known_default().unwrap_or_default(),
            );
            let upstream = Arc::new(Upstream {
                propagates_trace,
                labels: origin_labels(&self.api, host, port),
                ..Upstream::new(client.clone(), &base.url().origin(), self.options)
            });
            watch_upstream(&upstream.labels, &upstream);
            upstream
        };
        Arc::clone(self.known.entry(base.url().origin()).or_insert_with(fresh))
    }
}

impl UpstreamGauges for Upstream {
    fn in_flight(&self) -> usize {
        self.concurrency.in_flight()
    }

    fn waiting(&self) -> usize {
        self.concurrency.waiting()
    }

    fn is_open(&self) -> bool {
        self.breaker.is_open()
    }
}

/// A call, as far as sending is concerned.
pub(crate) struct OutgoingCall<'c, M> {
    /// Makes the request, each time anew.
    pub make: M,
    /// The operator's credential.
    pub credential: &'c Credential,
    /// New access tokens that its operation has refused.
    pub refused_tokens: &'c RefusedTokens,
    /// True if the request may be sent again.
    pub repeats: bool,
    /// Limits of time and size.
    pub options: &'c CallOptions,
    /// Deadline of the call.
    pub deadline: std::time::Instant,
    /// Caller of the tool.
    pub caller: &'c Caller,
    /// Conditions under which the reply becomes a file; `None` if it never does.
    pub file: Option<FilePlan<'c>>,
}

impl Upstream {
    /// An upstream with a closed circuit breaker.
    #[must_use]
    pub(crate) fn new(client: HttpClient, origin: &Origin, options: &UpstreamOptions) -> Self {
        Self {
            client,
            concurrency: ConcurrencyLimit::new(options.concurrency),
            rate: options.rate.map(|rate| {
                RequestRate::new(rate, |interval| {
                    Some(share_rate(options.shared.as_ref()?, origin, interval))
                })
            }),
            breaker: Breaker::new(options.breaker_failures, options.breaker_pause),
            labels: OriginLabels::default(),
            propagates_trace: false,
            budget: Budget::default(),
            retries: options.retries,
        }
    }

    /// Makes the request, as often as needed and allowed, and reads the reply.
    ///
    /// # Errors
    /// [`CallError`] if it cannot be made, if there is no place for it, and those of
    /// [`exchange::exchange`].
    pub(crate) async fn call<M: Fn() -> Result<Request, CallError>>(
        &self,
        call: OutgoingCall<'_, M>,
    ) -> Result<Reply, CallError> {
        let deadline = call.deadline.into();
        // What cannot be sent at all takes no permit, and neither does what waits for a token.
        let first = (call.make)()?;
        let authentication = CallAuthentication::begin(
            call.credential.authenticator.as_ref(),
            call.caller,
            call.refused_tokens,
            deadline,
        )
        .await?;
        let permit = self.breaker.admit()?;
        let place = Some(self.concurrency.enter(deadline).await?);
        let retries = if call.repeats && !permit.is_probe() {
            self.retries
        } else {
            0
        };
        let outcome = self
            .send_until_answered(&call, first, authentication, place, retries, deadline)
            .await;
        permit.settle(judge(&outcome));
        outcome
    }

    /// Sends the request, and once more for each reason that there is: a credential that was
    /// renewed, or a retry.
    async fn send_until_answered<'u, M: Fn() -> Result<Request, CallError>>(
        &'u self,
        call: &OutgoingCall<'_, M>,
        first: Request,
        mut authentication: CallAuthentication<'_>,
        mut place: Option<SemaphorePermit<'u>>,
        retries: u32,
        deadline: Instant,
    ) -> Result<Reply, CallError> {
        self.budget.count();
        let mut request = first;
        let mut attempt = 1;
        let mut before: Option<Box<Result<Response, CallError>>> = None;
        loop {
            let outcome = self
                .send_once(request, &mut authentication, call, deadline)
                .await;
            // Errors of a request that did not leave say that nothing was sent.
            if matches!(
                outcome,
                Err(CallError::RateLimited(_) | CallError::Credential(_))
            ) && let Some(before) = before
            {
                return (*before).map(|response| Reply::new(response, authentication.redactors()));
            }
            let is_sent_again = attempt < MAX_ATTEMPTS
                && (renews_credential(&outcome, &mut authentication, deadline).await?
                    || self
                        .waits_for_retry(&outcome, attempt, retries, deadline, &mut place)
                        .await);
            if !is_sent_again {
                return outcome.map(|response| Reply::new(response, authentication.redactors()));
            }
            request = (call.make)()?;
            attempt += 1;
            before = Some(Box::new(outcome));
        }
    }

    /// One request and its reply, within the call's one deadline: a read time-out alone would never
    /// stop a reply that comes drop by drop.
    async fn send_once<M>(
        &self,
        mut request: Request,
        authentication: &mut CallAuthentication<'_>,
        call: &OutgoingCall<'_, M>,
        deadline: Instant,
    ) -> Result<Response, CallError> {
        if let Some(rate) = &self.rate {
            rate.turn(deadline, call.options.timeout).await?;
        }
        authentication.set_headers(&mut request, deadline).await?;
        note(|record| record.attempts += 1);
        let timer = RequestTimer::start(&request.method, &self.labels);
        if self.propagates_trace {
            timer.propagate(&mut request.headers);
        }
        // On the heap: it is most of what a call holds while it waits, and servers move what waits
        // for it from place to place.
        let mut token_redactors = Vec::new();
        if call.file.as_ref().is_some_and(FilePlan::has_destination) {
            token_redactors = authentication.redactors();
        }
        let plan = call.file.as_ref().map(|plan| plan.with(&token_redactors));
        let exchange = exchange::exchange(
            &self.client,
            request,
            call.options,
            deadline,
            call.caller,
            plan.as_ref(),
        );
        let exchange = Box::pin(exchange);
        let outcome = timeout_at(deadline, exchange)
            .await
            .unwrap_or(Err(CallError::Timeout(call.options.timeout)));
        let status = outcome
            .as_ref()
            .map(|response| response.status.as_u16())
            .map_err(CallError::outcome);
        timer.end(status);
        outcome
    }

    /// Returns true if the request is to be repeated, after a wait for its turn, during which other
    /// calls have its place. The budget pays for every repetition.
    async fn waits_for_retry<'u>(
        &'u self,
        outcome: &Result<Response, CallError>,
        attempt: u32,
        retries: u32,
        deadline: Instant,
        place: &mut Option<SemaphorePermit<'u>>,
    ) -> bool {
        let pause = retry::pause(outcome, attempt)
            .filter(|pause| attempt <= retries && Instant::now() + *pause < deadline);
        let Some(pause) = pause.filter(|_| self.budget.spend()) else {
            return false;
        };
        drop(place.take());
        sleep(pause).await;
        *place = self.concurrency.enter(deadline).await.ok();
        if place.is_none() {
            return false;
        }
        tracing::debug!(attempt, ms = pause.as_millis(), "the request is sent again");
        if let Some(metrics) = observe::metrics() {
            metrics.retried(&self.labels.api);
        }
        true
    }
}

/// The limit of all replicas for one origin.
fn share_rate(shared: &SharedApiState, origin: &Origin, interval: Duration) -> SharedRate {
    let origin = origin.ascii_serialization();
    let subject = [b"upstream", shared.api.as_bytes(), origin.as_bytes()];
    SharedRate::new(&shared.state, &subject, interval, Duration::ZERO)
}

/// Returns true if a refused credential was renewed, so that the request can leave once more. A
/// request that is refused for its credential was not acted on (RFC 9110 section 15.5.2), so this
/// holds for every method.
async fn renews_credential(
    outcome: &Result<Response, CallError>,
    authentication: &mut CallAuthentication<'_>,
    deadline: Instant,
) -> Result<bool, CallError> {
    match outcome {
        Ok(response) => authentication.on_unauthorized(response, deadline).await,
        Err(_) => Ok(false),
    }
}

/// A reply, and what takes the credentials that were fetched for it out of what is made of it.
#[derive(Debug)]
pub(crate) struct Reply {
    /// The reply, without those credentials as they are on the wire.
    pub(crate) response: Response,
    /// Redactors for the texts that are made of the reply, after charsets and escapes were decoded.
    pub(crate) redactors: Vec<Arc<Redactor>>,
}

impl Reply {
    fn new(mut response: Response, redactors: Vec<Arc<Redactor>>) -> Self {
        redactors
            .iter()
            .for_each(|redactor| redactor.redact(&mut response, NumberMark::Text));
        Self {
            response,
            redactors,
        }
    }
}

/// Judges the health of the upstream by an outcome.
fn judge(outcome: &Result<Reply, CallError>) -> Outcome {
    match outcome {
        Ok(reply)
            if matches!(
                reply.response.status,
                StatusCode::BAD_GATEWAY
                    | StatusCode::SERVICE_UNAVAILABLE
                    | StatusCode::GATEWAY_TIMEOUT
            ) =>
        {
            Outcome::Failure
        }
        Ok(_) => Outcome::Success,
        Err(
            CallError::Timeout(_)
            | CallError::NoResponse {
                connected: false, ..
            },
        ) => Outcome::Failure,
        Err(_) => Outcome::Unknown,
    }
}
