//! Replies that replicas keep for each other. A generation is part of each name: what may change
//! something raises it, and with that drops everything that was kept before.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::client::{RedisCommand, RedisScript};
use super::link::{StatePurpose, StateUnavailable};
use super::state::SharedState;
use crate::text::hex;

/// Lifetime of a generation: longer than that of any reply.
const GENERATION_LIFETIME: Duration = Duration::from_hours(48);
/// The longest time for which a reply is kept.
const MAX_LIFETIME: Duration = Duration::from_hours(24);
/// The largest reply that is kept, in bytes.
const MAX_BYTES: usize = 1 << 20;
/// Interval of tries to raise a generation.
const RAISE_INTERVAL: Duration = Duration::from_secs(1);

/// The generation of `KEYS[1]`, which begins at the server's time: if it was lost, no earlier one
/// is repeated. `ARGV`: 1 to raise it, and its lifetime.
static GENERATION: RedisScript = RedisScript::new(
    r"
local known = tonumber(redis.call('GET', KEYS[1]) or '') or 0
if known > 0 and ARGV[1] == '0' then return string.format('%.0f', known) end
local time = redis.call('TIME')
local next = tonumber(time[1]) * 1000000 + tonumber(time[2])
if next <= known then next = known + 1 end
redis.call('SET', KEYS[1], string.format('%.0f', next), 'PX', ARGV[2])
return string.format('%.0f', next)
",
);
/// A value and for how many milliseconds it is kept.
static FIND: RedisScript =
    RedisScript::new(r"return {redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1])}");

/// The replies of one API.
#[derive(Clone)]
pub(crate) struct SharedReplies(Arc<RepliesState>);

struct RepliesState {
    state: Arc<SharedState>,
    /// Key of the generation.
    key: String,
    /// True if a change is not yet counted in the generation; until it is, no reply is shared.
    is_behind: AtomicBool,
    /// True if a task tries to raise it.
    is_raised_later: AtomicBool,
}

/// A kept reply.
pub(crate) struct KeptReply {
    pub(crate) value: Vec<u8>,
    /// Remaining lifetime.
    pub(crate) left: Duration,
}

impl SharedReplies {
    /// The replies of the API of that name.
    pub(crate) fn new(state: &Arc<SharedState>, api: &str) -> Self {
        Self(Arc::new(RepliesState {
            state: Arc::clone(state),
            key: state.hashed_key("replies", &[api.as_bytes()]),
            is_behind: AtomicBool::new(false),
            is_raised_later: AtomicBool::new(false),
        }))
    }

    /// Returns the lifetime of a reply that is fresh for so long; `None` if it is too short.
    pub(crate) fn lifetime(fresh: Duration) -> Option<Duration> {
        (fresh >= Duration::from_secs(1)).then(|| fresh.min(MAX_LIFETIME))
    }

    /// The generation of now.
    pub(crate) async fn generation(&self) -> Result<u64, StateUnavailable> {
        if self.0.is_behind.load(Ordering::Acquire) {
            return self.0.raise().await;
        }
        self.0.generation(false).await
    }

    /// Raises the generation for a change: replies that were kept before are not used any more.
    pub(crate) async fn raise(&self) {
        if self.0.raise().await.is_err() && !self.0.is_raised_later.swap(true, Ordering::AcqRel) {
            tokio::spawn(raise_later(Arc::downgrade(&self.0)));
        }
    }

    /// Raises the generation without a wait.
    pub(crate) fn raise_later(&self) {
        self.0.is_behind.store(true, Ordering::Release);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let replies = self.clone();
            runtime.spawn(async move { replies.raise().await });
        }
    }

    /// The reply of that generation.
    pub(crate) async fn find(
        &self,
        generation: u64,
        key: &[u8],
    ) -> Result<Option<KeptReply>, StateUnavailable> {
        let name = self.name(generation, key);
        let invocation = FIND.key(&name);
        let state = &self.0.state;
        let found = state
            .link
            .run(StatePurpose::Cache, state.call_timeout, &invocation)
            .await?;
        let (Some(sealed), left): (Option<Vec<u8>>, i64) = found else {
            return Ok(None);
        };
        // What cannot be opened is of another version or another key, and counts as nothing.
        let value = self.0.state.keys.open(&name, &sealed).ok();
        let left = u64::try_from(left).ok().map(Duration::from_millis);
        Ok(value
            .zip(left)
            .map(|(value, left)| KeptReply { value, left }))
    }

    /// Keeps a reply for that generation, unless it is too large. Returns at once.
    pub(crate) fn keep(&self, generation: u64, key: &[u8], value: &[u8], lifetime: Duration) {
        let name = self.name(generation, key);
        let sealed = (value.len() <= MAX_BYTES)
            .then(|| self.0.state.keys.seal(&name, value))
            .flatten();
        let Some(sealed) = sealed else { return };
        let state = Arc::clone(&self.0.state);
        tokio::spawn(async move {
            let mut command = RedisCommand::new("SET");
            let milliseconds = u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX);
            command.arg(name).arg(sealed).arg("PX").number(milliseconds);
            let _: Result<(), _> = state
                .link
                .run(StatePurpose::Cache, state.call_timeout, &command)
                .await;
        });
    }

    fn name(&self, generation: u64, key: &[u8]) -> String {
        format!("{}:{generation}:{}", self.0.key, hex(key))
    }
}

impl RepliesState {
    async fn generation(&self, raise: bool) -> Result<u64, StateUnavailable> {
        let mut invocation = GENERATION.key(&self.key);
        let lifetime = u64::try_from(GENERATION_LIFETIME.as_millis()).unwrap_or(u64::MAX);
        invocation.number(raise.into()).number(lifetime);
        self.state
            .link
            .run(StatePurpose::Cache, self.state.call_timeout, &invocation)
            .await
    }

    /// Raises the generation. Until it has succeeded, no reply that was kept before is used.
    async fn raise(&self) -> Result<u64, StateUnavailable> {
        self.is_behind.store(true, Ordering::Release);
        let raised = self.generation(true).await;
        // What fails here must not be hidden by what succeeded meanwhile.
        self.is_behind.store(raised.is_err(), Ordering::Release);
        raised
    }
}

/// Raises a generation as soon as the server answers: until then, other replicas use what may have
/// changed.
async fn raise_later(replies: Weak<RepliesState>) {
    loop {
        tokio::time::sleep(RAISE_INTERVAL).await;
        let Some(replies) = replies.upgrade() else {
            return;
        };
        if !replies.is_behind.load(Ordering::Acquire) || replies.raise().await.is_ok() {
            replies.is_raised_later.store(false, Ordering::Release);
            return;
        }
    }
}
