//! The upstreams of an API, one for each origin: client, circuit breaker, limits and repetition.
//! The limits are places for calls in flight, a queue before them, and a rate.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use http::StatusCode;
use http::header::RETRY_AFTER;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until, timeout_at};
use url::Origin;

use super::request::target::BaseUrl;
use crate::call_error::CallError;
use crate::observe::metrics::OriginLabels;
use crate::observe::metrics::labels::ApiLabel;
use crate::observe::upstream::{origin_labels, watch_upstream};
use crate::outbound::HttpClient;
use crate::outbound::breaker::Breaker;
use crate::results::Reply;
use crate::shared_state::rate::{SharedRate, TakenPlace};
use crate::shared_state::state::SharedApiState;

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
pub(crate) struct Upstream {
    pub(super) client: HttpClient,
    pub(super) concurrency: ConcurrencyLimit,
    pub(super) rate: Option<RequestRate>,
    pub(super) breaker: Breaker,
    /// API, host and port, for metrics and traces.
    pub(super) labels: OriginLabels,
    /// True if requests carry the trace that they belong to.
    pub(super) propagates_trace: bool,
    pub(super) budget: Budget,
    pub(super) retries: u32,
}

impl Upstream {
    /// The upstream of a base of this API, which metrics watch.
    pub(crate) fn watched(
        client: &HttpClient,
        base: &BaseUrl,
        options: &UpstreamOptions,
        api: &ApiLabel,
        propagates_trace: bool,
    ) -> Arc<Self> {
        let url = base.url();
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or_default();
        let upstream = Arc::new(Self {
            client: client.clone(),
            concurrency: ConcurrencyLimit::new(options.concurrency),
            rate: options
                .rate
                .map(|rate| RequestRate::new(rate, &url.origin(), options.shared.as_ref())),
            breaker: Breaker::new(options.breaker_failures, options.breaker_pause),
            labels: origin_labels(api, host, port),
            propagates_trace,
            budget: Budget::default(),
            retries: options.retries,
        });
        let weak = Arc::downgrade(&upstream);
        let gauges = move || {
            let upstream = weak.upgrade()?;
            let places = &upstream.concurrency;
            let is_open = upstream.breaker.is_open().into();
            Some([places.in_flight(), places.waiting(), is_open])
        };
        watch_upstream(&upstream.labels, Box::new(gauges));
        upstream
    }
}

/// The number of calls that wait for each place.
const WAITING_PER_PLACE: usize = 4;

/// The places of an upstream.
pub(crate) struct ConcurrencyLimit {
    places: Semaphore,
    capacity: usize,
    /// The places of those that wait.
    queue: Semaphore,
    queue_capacity: usize,
}

impl ConcurrencyLimit {
    /// Makes a limit of that number of calls in flight, and [`WAITING_PER_PLACE`] times as many that
    /// wait.
    pub(crate) fn new(places: usize) -> Self {
        let capacity = places.min(Semaphore::MAX_PERMITS);
        let queue_capacity = places
            .saturating_mul(WAITING_PER_PLACE)
            .min(Semaphore::MAX_PERMITS);
        Self {
            places: Semaphore::new(capacity),
            capacity,
            queue: Semaphore::new(queue_capacity),
            queue_capacity,
        }
    }

    /// Calls in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.capacity
            .saturating_sub(self.places.available_permits())
    }

    /// Calls that wait for a place.
    pub(crate) fn waiting(&self) -> usize {
        self.queue_capacity
            .saturating_sub(self.queue.available_permits())
    }

    /// A place, for as long as what is returned lives.
    ///
    /// # Errors
    /// [`CallError::Busy`] at once if the queue is full, or if no place became free in time.
    pub(crate) async fn enter(&self, deadline: Instant) -> Result<SemaphorePermit<'_>, CallError> {
        if let Ok(place) = self.places.try_acquire() {
            return Ok(place);
        }
        let Ok(waiting) = self.queue.try_acquire() else {
            return Err(CallError::Busy("too many calls are in flight and waiting"));
        };
        let place = Box::pin(timeout_at(deadline, self.places.acquire())).await;
        drop(waiting);
        match place {
            Ok(Ok(place)) => Ok(place),
            _ => Err(CallError::Busy(
                "other calls were in flight for as long as a call may take",
            )),
        }
    }
}

/// Rate of requests: they leave evenly, so that no second has more than its share.
pub(crate) struct RequestRate {
    interval: Duration,
    next: Mutex<Instant>,
    /// The same limit for all replicas together. That of this process stays in force, so that there
    /// is one without it as well.
    shared: Option<SharedRate>,
}

impl RequestRate {
    /// Makes a rate in requests a second, more than 0, for an origin; with shared state, also for
    /// all replicas together.
    fn new(rate: f64, origin: &Origin, shared: Option<&SharedApiState>) -> Self {
        let interval = Duration::try_from_secs_f64(1.0 / rate).unwrap_or(Duration::MAX);
        let of_all = |shared: &SharedApiState| {
            let origin = origin.ascii_serialization();
            let subject = [b"upstream", shared.api.as_bytes(), origin.as_bytes()];
            SharedRate::new(&shared.state, &subject, interval, Duration::ZERO)
        };
        Self {
            interval,
            next: Mutex::new(Instant::now()),
            shared: shared.map(of_all),
        }
    }

    /// Waits for the next turn. `max_wait` is the longest that any request waits.
    ///
    /// # Errors
    /// [`CallError::RateLimited`] at once if the turn would be after the deadline.
    pub(crate) async fn turn(
        &self,
        deadline: Instant,
        max_wait: Duration,
    ) -> Result<(), CallError> {
        let mut shared_turn = Instant::now();
        if let Some(shared) = &self.shared {
            match shared
                .take(deadline.saturating_duration_since(shared_turn), max_wait)
                .await
            {
                Ok(TakenPlace::After(wait)) => shared_turn += wait,
                Ok(TakenPlace::None(wait)) => return Err(CallError::RateLimited(wait)),
                Err(_) => {}
            }
        }
        let now = Instant::now();
        let turn = {
            let mut next = self.next.lock();
            let turn = now.max(*next);
            if turn >= deadline {
                return Err(CallError::RateLimited(turn - now));
            }
            *next = turn
                .checked_add(self.interval)
                .unwrap_or(turn + Duration::from_hours(24));
            turn
        };
        let turn = turn.max(shared_turn);
        if turn > now {
            sleep_until(turn).await;
        }
        Ok(())
    }
}

/// The pause before the first repetition; it doubles with each one.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// Longest pause of this server. Longer ones are reported to the model, which may call again after
/// them.
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// Repetitions a second that are always allowed.
const FREE_RETRIES_PER_SECOND: f64 = 10.0;
/// Repetitions per call beyond that.
const RETRY_SHARE: f64 = 0.1;
/// Largest number of saved repetitions.
const MAX_SAVED_RETRIES: f64 = 100.0;

/// Returns the pause before a request with this outcome is sent again; `None` if it must not be.
/// `attempt` counts from 1.
pub(crate) fn pause(outcome: &Result<Reply, CallError>, attempt: u32) -> Option<Duration> {
    let backoff = || {
        let whole = FIRST_PAUSE.saturating_mul(1 << attempt.saturating_sub(1).min(8));
        // Between half of it and all of it, so that those who failed together do not come back
        // together.
        whole.mul_f64(0.5 + random() / 2.0)
    };
    match outcome {
        Err(CallError::NoResponse { .. }) => Some(backoff()),
        Ok(response) if is_transient(response.status) => {
            match wanted(response, SystemTime::now()) {
                Some(wanted) => (wanted <= MAX_PAUSE).then(|| wanted.max(backoff())),
                None => Some(backoff()),
            }
        }
        _ => None,
    }
}

/// 429, 502, 503 and 504 may be gone at the next attempt.
fn is_transient(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

/// `Retry-After`, in seconds or as a date (RFC 9110 section 10.2.3).
pub(crate) fn wanted(response: &Reply, now: SystemTime) -> Option<Duration> {
    let text = response.header(&RETRY_AFTER)?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

/// Returns a number from 0 to 1, random enough to spread requests.
fn random() -> f64 {
    f64::from(u32::try_from(RandomState::new().hash_one(0) >> 32).unwrap_or(0))
        / f64::from(u32::MAX)
}

/// Keeps repetitions a small part of all requests, so that an API in trouble does not get more of
/// them than usual.
pub(crate) struct Budget {
    calls: AtomicU32,
    saved: Mutex<Saved>,
}

struct Saved {
    repetitions: f64,
    at: Instant,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            calls: AtomicU32::new(0),
            saved: Mutex::new(Saved {
                repetitions: FREE_RETRIES_PER_SECOND,
                at: Instant::now(),
            }),
        }
    }
}

impl Budget {
    /// One more call.
    pub(crate) fn count(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns true if the budget allows one more repetition, and spends it.
    pub(crate) fn spend(&self) -> bool {
        let mut saved = self.saved.lock();
        let calls = f64::from(self.calls.swap(0, Ordering::Relaxed));
        let free = (saved.at.elapsed().as_secs_f64() * FREE_RETRIES_PER_SECOND)
            .min(FREE_RETRIES_PER_SECOND);
        saved.at = Instant::now();
        saved.repetitions = (saved.repetitions + free + calls * RETRY_SHARE).min(MAX_SAVED_RETRIES);
        let affordable = saved.repetitions >= 1.0;
        if affordable {
            saved.repetitions -= 1.0;
        }
        affordable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_full_queue_refuses_at_once_and_a_free_place_goes_to_who_waits() {
        let limit = ConcurrencyLimit::new(1);
        let soon = || Instant::now() + Duration::from_mins(1);
        let first = limit.enter(soon()).await.unwrap();
        let mut waiting: Vec<_> = (0..WAITING_PER_PLACE)
            .map(|_| Box::pin(limit.enter(soon())))
            .collect();
        for place in &mut waiting {
            assert!(futures_util::poll!(place).is_pending());
        }
        assert!(matches!(limit.enter(soon()).await, Err(CallError::Busy(_))));
        drop(first);
        for place in waiting {
            drop(place.await.unwrap());
        }
        assert_eq!(limit.waiting(), 0);
    }

    fn reply(status: u16, after: Option<&str>) -> Reply {
        let mut headers = http::HeaderMap::new();
        if let Some(after) = after {
            headers.insert(RETRY_AFTER, after.parse().unwrap());
        }
        Reply {
            status: StatusCode::from_u16(status).unwrap(),
            headers,
            ..Reply::default()
        }
    }

    #[test]
    fn passing_failures_are_repeated_after_a_pause_that_grows_and_differs() {
        for (status, again) in [
            (200, false),
            (400, false),
            (401, false),
            (500, false),
            (501, false),
            (429, true),
            (502, true),
            (503, true),
            (504, true),
        ] {
            assert_eq!(
                pause(&Ok(reply(status, None)), 1).is_some(),
                again,
                "{status}"
            );
        }
        let unanswered = || {
            Err(CallError::NoResponse {
                sentence: "x",
                cause: String::new(),
                connected: false,
            })
        };
        for (attempt, least, most) in [(1, 100, 200), (2, 200, 400), (3, 400, 800)] {
            let pauses: Vec<Duration> = (0..50)
                .map(|_| pause(&unanswered(), attempt).unwrap())
                .collect();
            assert!(
                pauses
                    .iter()
                    .all(|pause| (least..=most).contains(&pause.as_millis())),
                "{pauses:?}"
            );
            assert!(pauses.iter().any(|pause| *pause != pauses[0]), "{pauses:?}");
        }
        assert_eq!(pause(&Err(CallError::Timeout(Duration::ZERO)), 1), None);
        let cut = CallError::Network {
            sentence: "cut",
            cause: String::new(),
        };
        assert_eq!(pause(&Err(cut), 1), None);
    }

    #[test]
    fn retry_after_is_honoured_or_left_to_the_model() {
        assert_eq!(
            pause(&Ok(reply(503, Some("3"))), 1),
            Some(Duration::from_secs(3))
        );
        assert!(pause(&Ok(reply(503, Some("0"))), 1).unwrap() >= Duration::from_millis(100));
        for long in [
            "6",
            "99999999999999999999999",
            "Fri, 31 Dec 9999 23:59:59 GMT",
        ] {
            assert_eq!(pause(&Ok(reply(429, Some(long))), 1), None, "{long}");
        }
        for odd in ["Sun, 06 Nov 1994 08:49:37 GMT", "soon", ""] {
            assert!(
                pause(&Ok(reply(429, Some(odd))), 1).unwrap() < Duration::from_secs(1),
                "{odd}"
            );
        }
    }

    #[test]
    fn repetitions_are_a_tenth_of_the_calls_and_a_few() {
        let budget = Budget::default();
        (0..1000).for_each(|_| budget.count());
        let spent = (0..1000).filter(|_| budget.spend()).count();
        assert!((100..=125).contains(&spent), "{spent}");
    }
}
