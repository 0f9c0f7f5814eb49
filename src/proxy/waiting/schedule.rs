//! Times at which the status of an operation is asked for.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::proxy::upstream::retry;
use crate::results::Reply;

/// The shortest pause, in seconds, whatever the API says.
const MIN_PAUSE: u64 = 1;
/// The pause up to which pauses double, in seconds.
const MAX_DOUBLED_PAUSE: u64 = 30;
/// The longest pause that counts, in seconds: a longer one is one of an API that cannot count.
const MAX_PAUSE: u64 = 24 * 3600;

/// The pauses between requests for a status.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Schedule {
    /// Seconds before the next request if the API names none.
    pause: u64,
    /// Time of the next request, in milliseconds since 1970.
    due: u64,
    /// True if the API named the time.
    #[serde(default)]
    is_wanted: bool,
}

impl Schedule {
    /// A schedule that begins with this reply. `interval` is the operator's pause in seconds.
    pub(crate) fn begin(interval: Option<u64>, reply: &Reply, now: SystemTime) -> Self {
        let mut schedule = Self {
            pause: interval.unwrap_or(MIN_PAUSE).max(MIN_PAUSE),
            due: 0,
            is_wanted: false,
        };
        schedule.advance(Some(reply), now);
        schedule
    }

    /// Continues after a reply, or after none: at `Retry-After`, else after a pause that doubles.
    pub(crate) fn advance(&mut self, reply: Option<&Reply>, now: SystemTime) {
        let wanted = reply.and_then(|reply| retry::wanted(reply, now));
        self.is_wanted = wanted.is_some();
        let pause = if let Some(wanted) = wanted {
            wanted.as_secs() + u64::from(wanted.subsec_nanos() > 0)
        } else {
            let pause = self.pause;
            self.pause = pause.max(pause.saturating_mul(2).min(MAX_DOUBLED_PAUSE));
            pause
        };
        let pause = Duration::from_secs(pause.clamp(MIN_PAUSE, MAX_PAUSE));
        self.due = milliseconds(now + pause);
    }

    /// The next request may be sent at once.
    pub(crate) fn at_once(&mut self) {
        self.due = 0;
        self.is_wanted = false;
    }

    /// The time until the next request, of a call that may wait so long: a pause of our own ends
    /// with it, if it is not too short.
    ///
    /// # Errors
    /// The next request is later than that.
    pub(crate) fn left_within(
        &self,
        budget: Duration,
        now: SystemTime,
    ) -> Result<Duration, Duration> {
        let left = self.left(now);
        if left < budget {
            Ok(left)
        } else if self.is_wanted || budget < Duration::from_secs(MIN_PAUSE) {
            Err(left)
        } else {
            Ok(budget)
        }
    }

    /// The time that the API wants to pass before the next request.
    pub(crate) fn wanted(&self, now: SystemTime) -> Option<Duration> {
        self.is_wanted.then(|| self.left(now))
    }

    /// The time until the next request.
    pub(crate) fn left(&self, now: SystemTime) -> Duration {
        let left = self.due.saturating_sub(milliseconds(now));
        Duration::from_millis(left).min(Duration::from_secs(MAX_PAUSE))
    }
}

/// Whole seconds since 1970.
pub(crate) fn seconds(now: SystemTime) -> u64 {
    now.duration_since(UNIX_EPOCH)
        .map(|since| since.as_secs())
        .unwrap_or_default()
}

fn milliseconds(now: SystemTime) -> u64 {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use http::header::RETRY_AFTER;

    use super::*;

    fn reply(after: Option<&str>) -> Reply {
        let mut reply = Reply::default();
        after.map(|after| reply.headers.insert(RETRY_AFTER, after.parse().unwrap()));
        reply
    }

    fn pauses(interval: Option<u64>, after: &[Option<&str>]) -> Vec<u64> {
        let now = UNIX_EPOCH + Duration::from_secs(1_000_000);
        let mut schedule = Schedule::begin(interval, &reply(after[0]), now);
        let mut pauses = vec![schedule.left(now).as_secs()];
        for after in &after[1..] {
            schedule.advance(Some(&reply(*after)), now);
            pauses.push(schedule.left(now).as_secs());
        }
        pauses
    }

    #[test]
    fn pauses_double_up_to_half_a_minute_and_the_api_may_name_another() {
        assert_eq!(pauses(None, &[None; 8]), [1, 2, 4, 8, 16, 30, 30, 30]);
        assert_eq!(pauses(Some(5), &[None; 5]), [5, 10, 20, 30, 30]);
        assert_eq!(pauses(Some(90), &[None; 3]), [90, 90, 90]);
        assert_eq!(
            pauses(None, &[Some("7"), None, Some("0"), None]),
            [7, 1, 1, 2]
        );
        assert_eq!(pauses(None, &[Some("Mon, 12 Jan 1970 13:46:50 GMT")]), [10]);
        assert_eq!(pauses(None, &[Some("Mon, 12 Jan 1970 13:46:30 GMT")]), [1]);
        assert_eq!(pauses(None, &[Some("99999999999999999999")]), [MAX_PAUSE]);
        assert_eq!(pauses(None, &[Some("/bar"), Some("-1")]), [1, 2]);
    }

    #[test]
    fn a_pause_of_our_own_ends_with_the_time_of_a_call_and_one_of_the_api_does_not() {
        let now = UNIX_EPOCH + Duration::from_secs(1_000_000);
        let second = Duration::from_secs(1);
        let own = Schedule::begin(Some(30), &reply(None), now);
        assert_eq!(own.left_within(31 * second, now), Ok(30 * second));
        assert_eq!(own.left_within(28 * second, now), Ok(28 * second));
        assert_eq!(own.left_within(second / 2, now), Err(30 * second));
        let wanted = Schedule::begin(Some(1), &reply(Some("30")), now);
        assert_eq!(wanted.left_within(31 * second, now), Ok(30 * second));
        assert_eq!(wanted.left_within(28 * second, now), Err(30 * second));
        assert_eq!(
            (own.wanted(now), wanted.wanted(now)),
            (None, Some(30 * second))
        );
    }
}
