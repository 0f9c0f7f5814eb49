//! Repetition of requests: conditions, pauses and a limit.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use http::StatusCode;
use http::header::RETRY_AFTER;
use parking_lot::Mutex;

use crate::call_error::CallError;
use crate::results::Reply;

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
    let text = response.headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
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
    calls: AtomicU64,
    saved: Mutex<Saved>,
}

struct Saved {
    repetitions: f64,
    at: Instant,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            calls: AtomicU64::new(0),
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
        let calls =
            f64::from(u32::try_from(self.calls.swap(0, Ordering::Relaxed)).unwrap_or(u32::MAX));
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
