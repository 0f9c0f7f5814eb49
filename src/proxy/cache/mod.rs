//! Keeps replies for later calls that ask for the same (RFC 9111), for each caller's credentials
//! apart. Only replies to GET of read-only tools are kept; a call of any other tool drops the
//! replies that it may have changed.
//!
//! # Changing which replies are kept
//!
//! - `send` in `proxy/call.rs` asks the cache for tools that `Enforcement` in
//!   `annotate/enforcement.rs` calls read-only.
//! - `consider` in `proxy/cache/mod.rs` selects the calls, and `may_be_kept` there selects the
//!   replies.
//! - `Freshness` in `proxy/cache/freshness.rs` decides how long a reply may be used.
//! - `StoredReply` in `proxy/cache/store.rs` is what is kept of it.

mod change;
pub(crate) mod flight;
pub(crate) mod freshness;
pub(crate) mod key;
mod shared_reply;
pub(crate) mod store;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use tokio::time::timeout_at;

use self::flight::{FlightOutcome, FlightPlace, Flights};
use self::freshness::{CacheClock, Freshness};
use self::key::{KeyMaker, ReplyKey};
use self::shared_reply::{read_reply, write_reply};
use self::store::{ReplyStore, StoredReply, detached_headers, updated_headers};
use super::error::CallError;
use super::redact::Redactor;
use super::request::Request;
use super::response::records::Framing;
use super::response::{Response, content_type};
use super::upstream::{Reply, Upstream};
use crate::observe;
use crate::observe::call::note;
use crate::observe::metrics::gauges::CacheGauge;
use crate::observe::metrics::labels::ApiLabel;
use crate::shared_state::replies::SharedReplies;
use crate::shared_state::state::SharedApiState;

/// Longest time for which a call waits for the reply to another one; it is never more than a
/// quarter of its own time.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// The operator's settings for the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheOptions {
    /// Bytes of replies that are kept at the most.
    pub bytes: usize,
    /// Freshness of a reply that does not declare any.
    pub default_ttl: Option<Duration>,
}

/// The cache of one API.
pub(crate) struct ReplyCache {
    options: CacheOptions,
    keys: KeyMaker,
    clock: CacheClock,
    store: Arc<Mutex<ReplyStore>>,
    /// The label of its API in metrics.
    api: ApiLabel,
    flights: Flights,
    /// Replies that all replicas keep.
    shared: Option<SharedReplies>,
}

/// A call that the cache may answer.
pub(crate) struct CacheableCall {
    key: ReplyKey,
    path: Box<str>,
    /// The generation of the API when the call began.
    generation: u64,
    /// Generation of all replicas; `None` if it is not known, in which case this process acts
    /// alone.
    shared_generation: Option<u64>,
}

/// Decision for a call.
pub(crate) enum CacheDecision<'c> {
    /// This is the reply.
    Reply(Reply),
    /// The API has to be asked.
    Ask(Box<Inquiry<'c>>),
}

/// A question to the API whose answer may be kept.
pub(crate) struct Inquiry<'c> {
    call: CacheableCall,
    stored: Option<StoredReply>,
    place: Option<FlightPlace<'c>>,
    /// Headers that make the request conditional (RFC 9110 section 13).
    pub(crate) conditions: HeaderMap,
}

impl ReplyCache {
    /// Makes an empty cache; `None` if there is no randomness for its keys.
    pub(crate) fn new(
        options: CacheOptions,
        api: ApiLabel,
        shared: Option<&SharedApiState>,
    ) -> Option<Self> {
        let keys = match shared {
            Some(shared) => KeyMaker::shared(shared.state.hash_key("replies")?),
            None => KeyMaker::new()?,
        };
        let store = Arc::new(Mutex::new(ReplyStore::new(options.bytes)));
        if let Some(metrics) = observe::metrics() {
            let weak = Arc::downgrade(&store);
            metrics.watch_cache(api.clone(), weak);
        }
        Some(Self {
            options,
            keys,
            shared: shared.map(|shared| SharedReplies::new(&shared.state, &shared.api)),
            clock: CacheClock::start(),
            store,
            api,
            flights: Flights::default(),
        })
    }

    fn store(&self) -> MutexGuard<'_, ReplyStore> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the call as the cache sees it; `None` if it bypasses the cache: another method, or a
    /// request that is conditional already, asks for a part, or has its own directives for caches.
    /// `credential` distinguishes callers in addition to the headers.
    pub(crate) fn consider(&self, request: &Request, credential: &[u8]) -> Option<CacheableCall> {
        const OF_THE_CALLER: [header::HeaderName; 8] = [
            header::IF_MATCH,
            header::IF_NONE_MATCH,
            header::IF_MODIFIED_SINCE,
            header::IF_UNMODIFIED_SINCE,
            header::IF_RANGE,
            header::RANGE,
            header::CACHE_CONTROL,
            header::PRAGMA,
        ];
        let passes_by = request.method != Method::GET
            || request.body.is_some()
            || OF_THE_CALLER
                .iter()
                .any(|name| request.headers.contains_key(name));
        if passes_by {
            return None;
        }
        Some(CacheableCall {
            key: self.keys.key(request, credential),
            path: request.url.path().into(),
            generation: self.store().generation(),
            shared_generation: None,
        })
    }

    /// The kept reply, or what to ask the API. Of calls that ask for the same at a time, one asks,
    /// and the others wait for it, but not for long: it may hang.
    ///
    /// # Errors
    /// [`CallError::Busy`] if too many calls wait for this upstream.
    pub(crate) async fn decide(
        &self,
        mut call: CacheableCall,
        upstream: &Upstream,
        deadline: Instant,
    ) -> Result<CacheDecision<'_>, CallError> {
        let left = deadline.saturating_duration_since(Instant::now());
        let patience = Instant::now() + MAX_WAIT.min(left / 4);
        if let Some(shared) = &self.shared {
            call.shared_generation = shared.generation().await.ok();
        }
        loop {
            let stored = self.stored(&call);
            let now = self.clock.now();
            if let Some(reply) = stored
                .as_ref()
                .filter(|stored| stored.freshness.is_fresh(now))
            {
                self.tell("hit", true);
                return Ok(CacheDecision::Reply(reply.reply(self.clock.now())));
            }
            let waited = match self.flights.enter(&call.key) {
                Ok(mut place) => {
                    if stored.is_none() && self.fetch_shared(&call).await {
                        place.end(FlightOutcome::Stored);
                        continue;
                    }
                    return Ok(CacheDecision::Ask(Box::new(Inquiry::new(
                        call,
                        stored,
                        Some(place),
                        now,
                    ))));
                }
                Err(mut flight) => {
                    let _waiting = upstream.wait()?;
                    timeout_at(
                        patience.into(),
                        flight.wait_for(|outcome| *outcome != FlightOutcome::Pending),
                    )
                    .await
                    .map(|ended| ended.map(|outcome| *outcome))
                }
            };
            match waited {
                Err(_) | Ok(Ok(FlightOutcome::Pending | FlightOutcome::NotStored)) => {
                    return Ok(CacheDecision::Ask(Box::new(Inquiry::new(
                        call, stored, None, now,
                    ))));
                }
                // The reply is there now, or its request was given up; then the next call asks.
                Ok(Ok(FlightOutcome::Stored) | Err(_)) => {}
            }
        }
    }

    /// The reply that is kept here, unless another replica has made a change since.
    fn stored(&self, call: &CacheableCall) -> Option<StoredReply> {
        let is_current = |stored: &StoredReply| {
            call.shared_generation.is_none() || stored.shared_generation == call.shared_generation
        };
        self.store().get(&call.key).filter(is_current)
    }

    /// Keeps a fresh reply of another replica here as well; whether there is one.
    async fn fetch_shared(&self, call: &CacheableCall) -> bool {
        let (Some(shared), Some(generation)) = (&self.shared, call.shared_generation) else {
            return false;
        };
        let Ok(Some(kept)) = shared.find(generation, call.key.as_ref()).await else {
            return false;
        };
        let Some(foreign) = read_reply(kept.value, kept.left) else {
            return false;
        };
        let now = self.clock.now();
        let received = now.checked_sub(foreign.kept_for).unwrap_or(now);
        let Some(freshness) = Freshness::new(&foreign.response, received, self.options.default_ttl)
        else {
            return false;
        };
        let is_fresh = freshness.is_fresh(now);
        let stored = StoredReply {
            response: foreign.response,
            redactors: foreign.redactors,
            freshness: Arc::new(freshness),
            path: call.path.clone(),
            shared_generation: call.shared_generation,
        };
        is_fresh && self.store().put(call.key, stored, call.generation)
    }

    /// Keeps a fresh reply for other replicas.
    fn share(&self, call: &CacheableCall, reply: &StoredReply, now: SystemTime) {
        if let (Some(shared), Some(generation)) = (&self.shared, call.shared_generation)
            && let Some(lifetime) = SharedReplies::lifetime(reply.freshness.time_left(now))
            && let Some(text) = write_reply(reply, lifetime)
        {
            shared.keep(generation, call.key.as_ref(), &text, lifetime);
        }
    }

    /// Returns the reply to the call from the API's answer, and keeps it if that is allowed.
    ///
    /// # Errors
    /// Those of `outcome`, unless the API allows an old reply then (RFC 5861).
    pub(crate) fn settle(
        &self,
        mut inquiry: Inquiry<'_>,
        outcome: Result<Reply, CallError>,
    ) -> Result<Reply, CallError> {
        let place = inquiry.place.take();
        let settled = self.settle_reply(inquiry, outcome);
        if let Some(mut place) = place {
            let is_kept = settled.as_ref().is_ok_and(|(_, is_kept)| *is_kept);
            place.end(if is_kept {
                FlightOutcome::Stored
            } else {
                FlightOutcome::NotStored
            });
        }
        settled.map(|(reply, _)| reply)
    }

    /// The reply to the call, and whether those that wait for it find it kept.
    fn settle_reply(
        &self,
        inquiry: Inquiry<'_>,
        outcome: Result<Reply, CallError>,
    ) -> Result<(Reply, bool), CallError> {
        let now = self.clock.now();
        let Inquiry {
            call,
            stored,
            conditions,
            ..
        } = inquiry;
        let failed = match &outcome {
            Ok(reply) => matches!(reply.response.status.as_u16(), 500 | 502 | 503 | 504),
            Err(error) => error.is_of_the_api(),
        };
        if failed
            && let Some(stored) = stored
                .as_ref()
                .filter(|stored| stored.freshness.may_be_stale_on_error(now))
        {
            self.tell("hit", true);
            return Ok((stored.reply(now), false));
        }
        let mut reply = outcome.inspect_err(|_| self.tell("miss", false))?;
        let asked_about = stored.filter(|_| !conditions.is_empty());
        let is_revalidated = asked_about.is_some_and(|stored| revalidate(stored, &mut reply));
        self.tell(
            if is_revalidated {
                "revalidated"
            } else {
                "miss"
            },
            is_revalidated,
        );
        reply.response.headers = detached_headers(&reply.response.headers);
        let is_kept = self.keep(&call, &reply, now);
        Ok((reply, is_kept))
    }

    /// Keeps a reply if that is allowed. Returns true if the next call with the same key gets it.
    fn keep(&self, call: &CacheableCall, reply: &Reply, now: SystemTime) -> bool {
        let freshness = Freshness::new(&reply.response, now, self.options.default_ttl)
            .filter(|_| may_be_kept(&reply.response));
        let is_fresh = freshness
            .as_ref()
            .is_some_and(|freshness| freshness.is_fresh(now));
        // What can neither be used nor asked about would only drop what can.
        let is_of_use = |freshness: &Freshness| {
            is_fresh
                || freshness.may_be_stale_on_error(now)
                || !freshness.conditions(now).is_empty()
        };
        let Some(freshness) = freshness.filter(is_of_use) else {
            self.store().remove(&call.key);
            return false;
        };
        let stored = StoredReply {
            response: Response {
                // Detached from the buffer of the connection, as the headers are.
                body: Bytes::copy_from_slice(&reply.response.body),
                ..reply.response.clone()
            },
            redactors: reply.redactors.clone(),
            freshness: Arc::new(freshness),
            path: call.path.clone(),
            shared_generation: call.shared_generation,
        };
        let fresh = is_fresh.then(|| stored.clone());
        let is_stored = self.store().put(call.key, stored, call.generation);
        if let Some(fresh) = fresh.as_ref().filter(|_| is_stored) {
            self.share(call, fresh, now);
        }
        is_stored && is_fresh
    }

    fn tell(&self, kind: &'static str, is_hit: bool) {
        note(|record| record.cache = Some(kind));
        if let Some(metrics) = observe::metrics() {
            metrics.cache_asked(&self.api, is_hit);
        }
    }
}

impl CacheGauge for Mutex<ReplyStore> {
    fn bytes(&self) -> usize {
        self.lock().unwrap_or_else(PoisonError::into_inner).bytes()
    }
}

impl<'c> Inquiry<'c> {
    fn new(
        call: CacheableCall,
        stored: Option<StoredReply>,
        place: Option<FlightPlace<'c>>,
        now: SystemTime,
    ) -> Self {
        let conditions = stored
            .as_ref()
            .map(|stored| stored.freshness.conditions(now))
            .unwrap_or_default();
        Self {
            call,
            stored,
            place,
            conditions,
        }
    }

    /// Returns true if the reply confirms another one than the requested one (RFC 9111 section
    /// 4.3.4). It is then no evidence about the kept one, so the API is asked without conditions.
    pub(crate) fn is_contradicted_by(&self, reply: &Response) -> bool {
        let Some(stored) = self
            .stored
            .as_ref()
            .filter(|_| reply.status == StatusCode::NOT_MODIFIED)
        else {
            return false;
        };
        let differs = |name: HeaderName| {
            let said = reply.headers.get(&name).map(opaque_tag);
            said.is_some() && said != stored.response.headers.get(&name).map(opaque_tag)
        };
        differs(header::ETAG)
            || !reply.headers.contains_key(header::ETAG) && differs(header::LAST_MODIFIED)
    }

    /// Forgets what is kept, so that the API is asked for the whole reply.
    pub(crate) fn forget_stored(&mut self) {
        self.stored = None;
        self.conditions.clear();
    }
}

/// A validator without the mark of a weak one (RFC 9110 section 8.8.3.2, weak comparison).
fn opaque_tag(validator: &HeaderValue) -> &[u8] {
    let bytes = validator.as_bytes();
    bytes.strip_prefix(b"W/").unwrap_or(bytes)
}

/// Makes a reply that confirms the stored one (RFC 9111 section 4.3.4) that one, with its headers
/// updated; whether it does.
fn revalidate(stored: StoredReply, reply: &mut Reply) -> bool {
    if reply.response.status != StatusCode::NOT_MODIFIED {
        return false;
    }
    reply.response = Response {
        headers: updated_headers(&stored.response.headers, &reply.response.headers),
        ..stored.response
    };
    // The token that asked again is most often the one that asked first.
    let is_new = |redactor: &Arc<Redactor>| {
        !reply
            .redactors
            .iter()
            .any(|known| known.has_tokens_of(redactor))
    };
    let more: Vec<Arc<Redactor>> = stored.redactors.into_iter().filter(is_new).collect();
    reply.redactors.extend(more);
    true
}

/// Returns true if a reply is of a kind that is kept, independent of its freshness.
fn may_be_kept(response: &Response) -> bool {
    let is_error = matches!(response.status, StatusCode::NOT_FOUND | StatusCode::GONE);
    let says_how_long = response.headers.contains_key(header::CACHE_CONTROL)
        || response.headers.contains_key(header::EXPIRES);
    matches!(response.status.as_u16(), 200 | 203 | 301 | 308 | 404 | 410)
        && (!is_error || says_how_long)
        && response.stopped.is_none()
        && response.file.is_none()
        && !response.headers.contains_key(header::SET_COOKIE)
        && Framing::of(content_type(&response.headers)).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_that_is_revalidated_again_and_again_has_one_redactor_for_each_token() {
        let now = SystemTime::now();
        let of = |token: &str| Arc::new(Redactor::for_tokens(std::iter::once(token)));
        let reply = |status, token| Reply {
            response: Response {
                status,
                ..Response::default()
            },
            redactors: vec![of(token)],
            age: None,
        };
        let mut kept = reply(StatusCode::OK, "a-first-token");
        for token in ["a-first-token", "a-second-token"] {
            for _ in 0..1000 {
                let stored = StoredReply {
                    response: kept.response.clone(),
                    redactors: kept.redactors.clone(),
                    freshness: Arc::new(
                        Freshness::new(&kept.response, now, Some(Duration::from_secs(1))).unwrap(),
                    ),
                    path: "/".into(),
                    shared_generation: None,
                };
                kept = reply(StatusCode::NOT_MODIFIED, token);
                assert!(revalidate(stored, &mut kept));
            }
        }
        assert_eq!(kept.redactors.len(), 2);
    }
}
