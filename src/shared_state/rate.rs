//! A limit that holds for all replicas together, by the generic cell rate algorithm (ITU-T I.371).
//! The server's clock counts, so that those of the replicas may differ. It takes one place at a time:
//! an amount, such as bytes in a day, needs a file of its own.

use std::sync::Arc;
use std::time::Duration;

use super::client::RedisScript;
use super::connection::{StatePurpose, StateUnavailable};
use super::state::SharedState;

/// Takes a place if the wait for it is short enough. `KEYS[1]` holds the time at which all places
/// taken so far are used up at the even rate. Arguments in microseconds: the interval, the burst,
/// the longest wait, and the longest wait of all callers. Returns if a place was taken, and the
/// wait for it.
static TAKE_A_PLACE: RedisScript = RedisScript::new(
    r"
local interval, burst, max_wait, limit = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local due = tonumber(redis.call('GET', KEYS[1]) or '') or now
-- What nobody can have waited for was written before the clock was set back.
if due < now or due > now + burst + limit + interval then due = now end
local wait = due - now - burst
if wait < 0 then wait = 0 end
if wait > max_wait then return {0, string.format('%.0f', wait)} end
due = due + interval
redis.call('SET', KEYS[1], string.format('%.0f', due), 'PX', string.format('%.0f', math.ceil((due - now) / 1000) + 1))
return {1, string.format('%.0f', wait)}
",
);

/// The longest interval that is sent; the numbers of Lua hold it exactly.
const MAX_MICROSECONDS: u128 = 365 * 24 * 3600 * 1_000_000;

/// A limit of one subject.
pub(crate) struct SharedRate {
    state: Arc<SharedState>,
    key: String,
    interval: Duration,
    burst: Duration,
}

/// Result of a request for a place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TakenPlace {
    /// A place, after this wait.
    After(Duration),
    /// The next one comes only after this wait.
    None(Duration),
}

impl SharedRate {
    /// A limit of one use in each interval, of which those of `burst` may come at once; the parts
    /// of `subject` say whose.
    pub(crate) fn new(
        state: &Arc<SharedState>,
        subject: &[&[u8]],
        interval: Duration,
        burst: Duration,
    ) -> Self {
        // A changed rate begins anew.
        let nanoseconds = (
            interval.as_nanos().to_be_bytes(),
            burst.as_nanos().to_be_bytes(),
        );
        let subject = [subject, &[&nanoseconds.0, &nanoseconds.1]].concat();
        Self {
            state: Arc::clone(state),
            key: state.hashed_key("rate", &subject),
            interval,
            burst,
        }
    }

    /// Takes a place that comes within `max_wait`, which is never more than `limit`.
    ///
    /// # Errors
    /// [`StateUnavailable`] if the server does not answer in time.
    pub(crate) async fn take(
        &self,
        max_wait: Duration,
        limit: Duration,
    ) -> Result<TakenPlace, StateUnavailable> {
        let mut invocation = TAKE_A_PLACE.key(&self.key);
        for duration in [self.interval, self.burst, max_wait, limit] {
            invocation.number(duration.as_micros().min(MAX_MICROSECONDS));
        }
        let taken = self.state.link.run(StatePurpose::Limit, &invocation).await;
        let (taken, wait): (u8, u64) = taken?;
        let wait = Duration::from_micros(wait);
        Ok(if taken == 1 {
            TakenPlace::After(wait)
        } else {
            TakenPlace::None(wait)
        })
    }
}
