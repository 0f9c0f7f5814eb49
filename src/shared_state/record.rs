//! A value that exactly one replica renews at a time, and whose newest version must not be lost: a
//! refresh token and the access token that came with it.
//!
//! The value is a hash with a generation, which only grows, and with the replica that is about to
//! renew it. The right to renew it is a lock with an owner, which ends by itself.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use super::client::{RedisAnswer, RedisCommand, RedisScript};
use super::connection::{StatePurpose, StateUnavailable};
use super::keys::OpenError;
use super::state::{SharedState, digest_key};
use crate::text::hex;

/// Lifetime of the lock of a renewal.
const LOCK_LIFETIME: Duration = Duration::from_mins(1);
/// Part of that which must be left when the renewal begins: more than the time limit of a renewal.
const MIN_LOCK_LEFT: Duration = Duration::from_secs(50);

/// Takes the lock, or keeps it if the owner has it already: an answer may have been lost. `KEYS`:
/// lock. `ARGV`: owner, milliseconds.
static LOCK: RedisScript = RedisScript::new(
    r"
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('PEXPIRE', KEYS[1], ARGV[2]) return 1 end
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
return 0
",
);
/// Notes that the holder of the lock is about to renew the value. `KEYS`: lock, value. `ARGV`:
/// owner, milliseconds that must be left.
static BEGIN: RedisScript = RedisScript::new(
    r"
if redis.call('GET', KEYS[1]) ~= ARGV[1] or redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[2], 'renewer', ARGV[1])
return 1
",
);
/// Stores a value that is newer than what is there, without an end. `KEYS`: value. `ARGV`: owner,
/// generation, value. Gives the newest generation.
static OFFER: RedisScript = RedisScript::new(
    r"
local known = tonumber(redis.call('HGET', KEYS[1], 'generation') or -1)
if tonumber(ARGV[2]) <= known then return known end
redis.call('HSET', KEYS[1], 'generation', ARGV[2], 'value', ARGV[3])
if redis.call('HGET', KEYS[1], 'renewer') == ARGV[1] then redis.call('HDEL', KEYS[1], 'renewer') end
return tonumber(ARGV[2])
",
);
/// Gives the lock back, if its owner still has it. `KEYS`: lock, value. `ARGV`: owner.
static RELEASE: RedisScript = RedisScript::new(
    r"
if redis.call('HGET', KEYS[2], 'renewer') == ARGV[1] then redis.call('HDEL', KEYS[2], 'renewer') end
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
",
);

/// A value that replicas share.
pub(crate) struct SharedRecord {
    state: Arc<SharedState>,
    key: String,
    lock_key: String,
    /// Random identifier of this process.
    owner: String,
}

/// The right to renew the value.
pub(crate) struct RecordLock(());

/// Value that was found.
#[derive(PartialEq, Eq)]
pub(crate) struct FoundRecord {
    /// The newest version, and the value.
    pub(crate) newest: Option<(u64, Vec<u8>)>,
    /// True if a replica began to renew it and has not reported the end.
    pub(crate) is_being_renewed: bool,
}

/// Reason for which the value is not available.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum RecordError {
    #[error(transparent)]
    Unavailable(#[from] StateUnavailable),
    /// The value exists but cannot be read; it is not overwritten.
    #[error(transparent)]
    Unreadable(#[from] OpenError),
}

impl SharedRecord {
    /// Makes the record; one of the parts of `subject` is random, or the digest of a secret. `None`
    /// if there is no randomness.
    pub(crate) fn new(state: &Arc<SharedState>, subject: &[&[u8]]) -> Option<Self> {
        let mut owner = [0; 16];
        getrandom::fill(&mut owner).ok()?;
        let key = digest_key("token", subject);
        Some(Self {
            state: Arc::clone(state),
            lock_key: format!("{key}:lock"),
            key,
            owner: hex(&owner),
        })
    }

    /// Takes the right to renew the value; `None` if another replica has it. A process that has it
    /// does not request it a second time.
    pub(crate) async fn try_lock(&self) -> Result<Option<RecordLock>, StateUnavailable> {
        let mut invocation = LOCK.key(&self.lock_key);
        invocation
            .arg(self.owner.as_str())
            .number(LOCK_LIFETIME.as_millis());
        let locked: u8 = self.run(&invocation).await?;
        Ok((locked == 1).then_some(RecordLock(())))
    }

    async fn run<T: RedisAnswer>(&self, command: &RedisCommand) -> Result<T, StateUnavailable> {
        self.state.link.run(StatePurpose::Refresh, command).await
    }

    /// The newest version.
    pub(crate) async fn read(&self) -> Result<FoundRecord, RecordError> {
        let mut command = RedisCommand::new("HMGET");
        command
            .arg(self.key.as_str())
            .arg("generation")
            .arg("value")
            .arg("renewer");
        let (generation, value, renewer): (Option<u64>, Option<Vec<u8>>, Option<String>) =
            self.run(&command).await?;
        let open = |value: Vec<u8>| self.state.keys.open(&self.key, &value);
        Ok(FoundRecord {
            newest: generation.zip(value.map(open).transpose()?),
            is_being_renewed: renewer.is_some(),
        })
    }

    /// Notes that the value is about to be renewed; `false` if the lock has ended or ends too soon.
    pub(crate) async fn begin_renewal(&self, _lock: &RecordLock) -> Result<bool, StateUnavailable> {
        let mut invocation = BEGIN.key(&self.lock_key);
        invocation
            .key(&self.key)
            .arg(self.owner.as_str())
            .number(MIN_LOCK_LEFT.as_millis());
        let begun: u8 = self.run(&invocation).await?;
        Ok(begun == 1)
    }

    /// Stores a version unless a newer one is there, and gives the newest generation. Who has a
    /// lock and stores has renewed.
    pub(crate) async fn offer(
        &self,
        lock: Option<&RecordLock>,
        generation: u64,
        value: &[u8],
    ) -> Result<u64, StateUnavailable> {
        let sealed = self.state.keys.seal(&self.key, value);
        let mut invocation = OFFER.key(&self.key);
        let owner = lock.map(|_| self.owner.as_str()).unwrap_or_default();
        invocation.arg(owner).number(generation.into());
        invocation.arg(sealed.ok_or(StateUnavailable)?);
        self.run(&invocation).await
    }

    /// Gives the right to renew back. If that fails, it ends by itself.
    pub(crate) async fn release(&self, _lock: RecordLock) {
        let mut invocation = RELEASE.key(&self.lock_key);
        invocation.key(&self.key).arg(self.owner.as_str());
        if self.run::<u8>(&invocation).await.is_err() {
            tracing::debug!(
                "the lock of a refresh token could not be given back; it ends by itself"
            );
        }
    }

    /// Returns the time for which the server has been connected without a break: before, it may
    /// have lost values.
    pub(crate) fn connected_for(&self) -> Duration {
        self.state.link.connected_for().unwrap_or_default()
    }
}
