//! Small values with an end, which are changed only by who has read them: in the process, or in the
//! server for all replicas, encrypted. Only agreements so far: the key `approval` and
//! `StatePurpose::Confirm` are fixed, and another user gives both.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::client::{RedisCommand, RedisScript};
use super::connection::{StatePurpose, StateUnavailable};
use super::state::{SharedState, digest_key};

/// Replaces a value that is still the one that was read. `KEYS`: value. `ARGV`: what it must be, or
/// nothing; what it becomes, or nothing; milliseconds.
static SWAP: RedisScript = RedisScript::new(
    r"
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
if ARGV[2] == '' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
return 1
",
);

/// The values of one process, or of all replicas.
pub(crate) struct Cells {
    shared: Option<Arc<SharedState>>,
    local: Mutex<HashMap<String, (Vec<u8>, Instant)>>,
}

/// A value that was read.
pub(crate) struct CellValue {
    pub(crate) value: Vec<u8>,
    /// The same as it is kept.
    stored: Vec<u8>,
}

impl Cells {
    pub(crate) fn new(shared: Option<Arc<SharedState>>) -> Self {
        Self {
            shared,
            local: Mutex::default(),
        }
    }

    /// Reads a value; one of the parts of its name is random, or the hash of a secret.
    ///
    /// # Errors
    /// [`StateUnavailable`], also if the value cannot be decrypted.
    pub(crate) async fn read(&self, name: &str) -> Result<Option<CellValue>, StateUnavailable> {
        let Some(shared) = &self.shared else {
            let kept = self.local.lock().get(name).cloned();
            let kept = kept.filter(|(_, until)| *until > Instant::now());
            return Ok(kept.map(|(value, _)| CellValue {
                stored: value.clone(),
                value,
            }));
        };
        let key = digest_key("approval", &[name.as_bytes()]);
        let mut command = RedisCommand::new("GET");
        command.arg(key.as_str());
        let stored: Option<Vec<u8>> = shared.link.run(StatePurpose::Confirm, &command).await?;
        let open = |stored: Vec<u8>| {
            let value = shared.keys.open(&key, &stored);
            let value = value.map_err(|_| StateUnavailable)?;
            Ok(CellValue { value, stored })
        };
        stored.map(open).transpose()
    }

    /// Replaces the value that was read, or makes one where there was none, or removes it. Returns
    /// false if another has done so meanwhile.
    ///
    /// # Errors
    /// [`StateUnavailable`]: it may have been replaced.
    pub(crate) async fn swap(
        &self,
        name: &str,
        old: Option<&CellValue>,
        new: Option<&[u8]>,
        lifetime: Duration,
    ) -> Result<bool, StateUnavailable> {
        let old = old.map(|old| old.stored.as_slice()).unwrap_or_default();
        let Some(shared) = &self.shared else {
            let now = Instant::now();
            let mut local = self.local.lock();
            local.retain(|_, (_, until)| *until > now);
            let kept = local.get(name).map(|(kept, _)| kept.as_slice());
            if kept.unwrap_or_default() != old {
                return Ok(false);
            }
            match new {
                Some(new) => drop(local.insert(name.to_owned(), (new.to_vec(), now + lifetime))),
                None => drop(local.remove(name)),
            }
            return Ok(true);
        };
        let key = digest_key("approval", &[name.as_bytes()]);
        let sealed = match new {
            Some(new) => shared.keys.seal(&key, new).ok_or(StateUnavailable)?,
            None => Vec::new(),
        };
        let mut invocation = SWAP.key(&key);
        invocation.arg(old).arg(sealed).number(lifetime.as_millis());
        let swapped: u8 = shared.link.run(StatePurpose::Confirm, &invocation).await?;
        Ok(swapped == 1)
    }
}

/// The agreement of a person to one call: a value that is gone once the call was made.
pub(crate) struct Agreement {
    cells: Arc<Cells>,
    name: String,
    value: CellValue,
    is_taken: OnceCell<bool>,
}

impl Agreement {
    /// The agreement that this value is.
    pub(crate) fn new(cells: Arc<Cells>, name: String, value: CellValue) -> Self {
        Self {
            cells,
            name,
            value,
            is_taken: OnceCell::new(),
        }
    }

    /// Uses it up, once for all replicas. Returns true also for each further request of the same
    /// call; false if another call has used it, or if that cannot be known.
    pub(crate) async fn take(&self) -> bool {
        let take = || async {
            let taken = self
                .cells
                .swap(&self.name, Some(&self.value), None, Duration::ZERO);
            taken.await.unwrap_or(false)
        };
        *self.is_taken.get_or_init(take).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    #[tokio::test]
    async fn p89_a_value_is_changed_only_by_who_has_read_it_and_is_gone_at_its_end() {
        let cells = Cells::new(None);
        assert!(cells.read("a").await.unwrap().is_none());
        assert!(cells.swap("a", None, Some(b"1"), MINUTE).await.unwrap());
        assert!(!cells.swap("a", None, Some(b"2"), MINUTE).await.unwrap());
        let one = cells.read("a").await.unwrap();
        assert!(
            cells
                .swap("a", one.as_ref(), Some(b"2"), MINUTE)
                .await
                .unwrap()
        );
        assert!(
            !cells
                .swap("a", one.as_ref(), Some(b"3"), MINUTE)
                .await
                .unwrap()
        );
        let two = cells.read("a").await.unwrap();
        assert!(
            cells
                .swap("a", two.as_ref(), Some(b"3"), Duration::ZERO)
                .await
                .unwrap()
        );
        assert!(cells.read("a").await.unwrap().is_none(), "it has ended");
        assert!(
            !cells
                .swap("a", two.as_ref(), Some(b"4"), MINUTE)
                .await
                .unwrap()
        );
    }

    #[tokio::test]
    async fn p89_an_agreement_is_for_one_call_with_all_its_requests() {
        let cells = Arc::new(Cells::new(None));
        assert!(cells.swap("a", None, Some(b"yes"), MINUTE).await.unwrap());
        let mut agreements = Vec::new();
        for _ in 0..2 {
            let value = cells.read("a").await.unwrap().unwrap();
            agreements.push(Agreement::new(Arc::clone(&cells), "a".into(), value));
        }
        assert!(agreements[0].take().await);
        assert!(agreements[0].take().await, "a request that is sent again");
        assert!(!agreements[1].take().await, "another call");
    }
}
