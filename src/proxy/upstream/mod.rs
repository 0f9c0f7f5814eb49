//! One upstream, and a call of it with all that may take more than one request: a token that was refused, an API that is
//! busy for a moment. Everything happens within the call's one deadline.

pub(crate) mod breaker;
pub(crate) mod exchange;
pub(crate) mod limit;
pub(crate) mod retry;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::header::AUTHORIZATION;
use tokio::time::{Instant, sleep, timeout_at};
use url::Origin;

use self::breaker::{Breaker, Outcome};
use self::exchange::{CallOptions, Progress, Response};
use self::limit::{ConcurrencyLimit, RequestRate};
use self::retry::Budget;
use super::auth::digest::Digest;
use super::auth::resolve::Credential;
use super::auth::scheme::Signer;
use super::auth::token_source::{AccessToken, TokenSource};
use super::error::CallError;
use super::redact::Redactor;
use super::request::Request;
use super::request::target::BaseUrl;
use crate::outbound::Clients;

/// No request leaves more often than this, whatever the settings and however the API answers.
const MAX_ATTEMPTS: u32 = 4;

/// What an operator sets about an upstream.
#[derive(Debug, Clone)]
pub struct UpstreamOptions {
    /// Calls in flight at a time.
    pub concurrency: usize,
    /// Calls that wait for a place.
    pub queue: usize,
    /// Requests a second.
    pub rate: Option<f64>,
    /// How often a request is repeated, where that is allowed.
    pub retries: u32,
    /// After so many failures in a row the upstream is left alone; 0 is never.
    pub breaker_failures: u32,
    /// How long it is left alone.
    pub breaker_pause: Duration,
}

impl Default for UpstreamOptions {
    fn default() -> Self {
        Self {
            concurrency: 256,
            queue: 1024,
            rate: None,
            retries: 2,
            breaker_failures: 20,
            breaker_pause: Duration::from_secs(30),
        }
    }
}

/// One origin, and how it fares.
#[derive(Debug)]
pub(crate) struct Upstream {
    client: reqwest::Client,
    gate: ConcurrencyLimit,
    pace: Option<RequestRate>,
    breaker: Breaker,
    budget: Budget,
    retries: u32,
}

/// The upstreams of an API, one for each origin; almost all have one.
#[derive(Debug)]
pub(crate) struct Upstreams<'o> {
    clients: Clients,
    options: &'o UpstreamOptions,
    known: HashMap<Origin, Arc<Upstream>>,
}

impl<'o> Upstreams<'o> {
    /// None yet.
    #[must_use]
    pub(crate) fn new(clients: Clients, options: &'o UpstreamOptions) -> Self {
        Self {
            clients,
            options,
            known: HashMap::new(),
        }
    }

    /// The one that a base belongs to; `elsewhere` says that it is none of those that credentials may go to.
    pub(crate) fn of(&mut self, base: &BaseUrl, elsewhere: bool) -> Arc<Upstream> {
        let client = if elsewhere { &self.clients.other } else { &self.clients.own };
        let fresh = || Arc::new(Upstream::new(client.clone(), self.options));
        Arc::clone(self.known.entry(base.url().origin()).or_insert_with(fresh))
    }
}

/// A call, as far as sending is concerned.
pub(crate) struct OutgoingCall<'c, 'p, M> {
    /// Makes the request, each time anew.
    pub make: M,
    /// What it carries of the operator's.
    pub credential: &'c Credential,
    /// Whether the request may be sent again.
    pub repeats: bool,
    /// Limits of time and size.
    pub options: &'c CallOptions,
    /// Is told how the reply comes in.
    pub progress: Option<Progress<'p>>,
}

impl Upstream {
    /// An upstream that is well, as far as we know.
    #[must_use]
    pub(crate) fn new(client: reqwest::Client, options: &UpstreamOptions) -> Self {
        Self {
            client,
            gate: ConcurrencyLimit::new(options.concurrency, options.queue),
            pace: options.rate.map(RequestRate::new),
            breaker: Breaker::new(options.breaker_failures, options.breaker_pause),
            budget: Budget::default(),
            retries: options.retries,
        }
    }

    /// Makes the request, as often as needed and allowed, and reads the reply.
    ///
    /// # Errors
    /// [`CallError`] where it cannot be made, where there is no place for it, and as [`exchange::exchange`].
    pub(crate) async fn call<M: Fn() -> Result<Request, CallError>>(
        &self,
        outgoing: OutgoingCall<'_, '_, M>,
    ) -> Result<Response, CallError> {
        let deadline = Instant::now() + outgoing.options.timeout;
        // What cannot be sent at all takes no place.
        let first = (outgoing.make)()?;
        let pass = self.breaker.admit()?;
        let _place = self.gate.enter(deadline).await?;
        let retries = if outgoing.repeats && !pass.is_probe() { self.retries } else { 0 };
        let outcome = self.attempts(&outgoing, first, retries, deadline).await;
        pass.settle(health(&outcome));
        outcome
    }

    async fn attempts<M: Fn() -> Result<Request, CallError>>(
        &self,
        outgoing: &OutgoingCall<'_, '_, M>,
        first: Request,
        retries: u32,
        deadline: Instant,
    ) -> Result<Response, CallError> {
        self.budget.count();
        let (mut request, mut renewed) = (first, false);
        // What was refused may come back as well.
        let mut spent: Vec<Arc<Redactor>> = Vec::new();
        let mut signing = match &outgoing.credential.signer {
            None => Signing::Not,
            Some(Signer::Token(source)) => Signing::Token(source, token(source, None, deadline).await?),
            Some(Signer::Digest(digest)) => Signing::Digest(digest),
        };
        for attempt in 1.. {
            if let Some(pace) = &self.pace {
                pace.turn(deadline).await?;
            }
            let authorization = match &signing {
                Signing::Not => None,
                Signing::Token(_, token) => Some(token.header.clone()),
                Signing::Digest(digest) => digest.answer(&request),
            };
            if let Some(authorization) = authorization {
                request.headers.insert(AUTHORIZATION, authorization);
            }
            let exchange = exchange::exchange(&self.client, request, outgoing.options, deadline, outgoing.progress);
            // One deadline for everything: a read time-out alone would never stop a reply that comes drop by drop.
            let mut outcome = timeout_at(deadline, exchange)
                .await
                .unwrap_or(Err(CallError::Timeout(outgoing.options.timeout)));
            if attempt < MAX_ATTEMPTS {
                // A request that is refused for its credential was not acted on. A token may be revoked before its time, and
                // a challenge comes with the first refusal.
                let before = signing.redactor();
                if !renewed && signing.renew(&outcome, deadline).await? {
                    renewed = true;
                    spent.extend(before);
                    request = (outgoing.make)()?;
                    continue;
                }
                let pause = retry::pause(&outcome, attempt).filter(|pause| attempt <= retries && Instant::now() + *pause < deadline);
                if let Some(pause) = pause.filter(|_| self.budget.spend()) {
                    tracing::debug!(attempt, ms = pause.as_millis(), "the request is sent again");
                    sleep(pause).await;
                    request = (outgoing.make)()?;
                    continue;
                }
            }
            if let (Signing::Token(_, token), Ok(response)) = (&signing, &mut outcome) {
                spent.push(Arc::clone(&token.redactor));
                spent.iter().for_each(|redactor| redactor.redact(response));
                response.redactors = spent;
            }
            return outcome;
        }
        Err(CallError::Timeout(outgoing.options.timeout))
    }
}

/// How the requests of one call are signed.
enum Signing<'c> {
    Not,
    Token(&'c Arc<TokenSource>, Arc<AccessToken>),
    Digest(&'c Digest),
}

impl Signing<'_> {
    fn redactor(&self) -> Option<Arc<Redactor>> {
        match self {
            Self::Token(_, token) => Some(Arc::clone(&token.redactor)),
            Self::Not | Self::Digest(_) => None,
        }
    }

    /// Makes good what a 401 complains about; whether the request can be sent again with that.
    async fn renew(&mut self, outcome: &Result<Response, CallError>, deadline: Instant) -> Result<bool, CallError> {
        let Ok(response) = outcome else { return Ok(false) };
        if response.status != StatusCode::UNAUTHORIZED {
            return Ok(false);
        }
        match self {
            Self::Not => Ok(false),
            Self::Token(source, spent) => {
                *spent = token(source, Some(&*spent), deadline).await?;
                Ok(true)
            }
            Self::Digest(digest) => Ok(digest.learn(response)),
        }
    }
}

async fn token(source: &Arc<TokenSource>, spent: Option<&Arc<AccessToken>>, deadline: Instant) -> Result<Arc<AccessToken>, CallError> {
    let late = |_| CallError::Credential("no access token came in time; nothing was sent".into());
    timeout_at(deadline, source.token(spent)).await.map_err(late)?
}

fn health(outcome: &Result<Response, CallError>) -> Outcome {
    match outcome {
        Ok(response)
            if matches!(
                response.status,
                StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
            ) =>
        {
            Outcome::Failure
        }
        Ok(_) => Outcome::Success,
        Err(CallError::Timeout(_) | CallError::NoResponse { connected: false, .. }) => Outcome::Failure,
        Err(_) => Outcome::Unknown,
    }
}
