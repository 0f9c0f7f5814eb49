//! The memory that requests and replies in flight may take, over all clients of the process.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{Caller, ClientKey, may_take_place};

/// The unit of counting. What is smaller is not counted, so that small messages are never refused.
pub(crate) const BLOCK_BYTES: usize = 8 << 10;

/// One long reply is made into a result at a time for each of so many bytes, because several copies
/// of it exist meanwhile. One thread is left for short ones.
const BYTES_PER_TURN: usize = 64 << 20;

/// The memory that requests and replies in flight may take. Clones count together.
#[derive(Debug, Clone)]
pub struct MemoryBudget(Arc<CountedMemory>);

#[derive(Debug)]
struct CountedMemory {
    blocks: usize,
    held: Mutex<HeldBlocks>,
    turns: Semaphore,
}

#[derive(Debug, Default)]
struct HeldBlocks {
    all: usize,
    of_clients: HashMap<ClientKey, usize>,
}

/// No memory is left for a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutOfMemory;

impl Default for MemoryBudget {
    fn default() -> Self {
        Self::new(Self::DEFAULT_BYTES)
    }
}

impl MemoryBudget {
    /// 256 MiB.
    const DEFAULT_BYTES: usize = 256 << 20;

    /// Makes a budget of so many bytes. A client may hold at most half of those that others leave
    /// free.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self(Arc::new(CountedMemory {
            blocks: bytes / BLOCK_BYTES,
            held: Mutex::default(),
            turns: Semaphore::new((bytes / BYTES_PER_TURN).clamp(1, (cores - 1).max(1))),
        }))
    }

    /// Memory that nothing is held of yet.
    pub(crate) fn begin(&self) -> HeldMemory {
        HeldMemory {
            budget: self.clone(),
            client: None,
            blocks: 0,
        }
    }

    /// Memory that is taken already, and by no client.
    pub(crate) fn taken(&self, bytes: usize) -> HeldMemory {
        let mut held = self.begin();
        held.blocks = bytes / BLOCK_BYTES;
        self.0.held.lock().all += held.blocks;
        held
    }

    /// Returns the number of bytes that a client may hold if others hold none.
    pub(crate) fn share(&self) -> usize {
        (self.0.blocks / 2).saturating_mul(BLOCK_BYTES)
    }

    /// A quarter of all, which a client without anything in flight may always hold while no other
    /// holds much.
    pub(crate) fn quarter(&self) -> usize {
        (self.0.blocks / 4).saturating_mul(BLOCK_BYTES)
    }

    /// Waits for the turn to make a long reply into a result.
    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.0.turns.acquire().await.ok()
    }
}

/// Memory that a client holds, until this is dropped.
#[derive(Debug)]
pub(crate) struct HeldMemory {
    budget: MemoryBudget,
    /// `None` if no client holds anything.
    client: Option<ClientKey>,
    blocks: usize,
}

impl HeldMemory {
    /// Holds so many bytes in all.
    ///
    /// # Errors
    /// They are more than the client may hold now.
    pub(crate) fn grow_to(&mut self, bytes: usize, caller: &Caller) -> Result<(), OutOfMemory> {
        let more = (bytes / BLOCK_BYTES).saturating_sub(self.blocks);
        if more == 0 {
            return Ok(());
        }
        let client = *self.client.get_or_insert_with(|| caller.key());
        let mut held = self.budget.0.held.lock();
        let own = held.of_clients.get(&client).copied().unwrap_or_default();
        // The last of them decides, because each takes from what is free.
        let before_last = more - 1;
        if !may_take_place(
            own.saturating_add(before_last),
            held.all.saturating_add(before_last),
            self.budget.0.blocks,
        ) {
            return Err(OutOfMemory);
        }
        held.all += more;
        held.of_clients.insert(client, own + more);
        self.blocks += more;
        Ok(())
    }

    /// Returns true if any memory is held.
    pub(crate) fn is_held(&self) -> bool {
        self.blocks > 0
    }

    /// Holds the memory as long as these bytes live.
    pub(crate) fn keep_with(self, bytes: Bytes) -> Bytes {
        if self.blocks == 0 {
            return bytes;
        }
        Bytes::from_owner(HeldBytes {
            bytes,
            _memory: self,
        })
    }
}

impl Drop for HeldMemory {
    fn drop(&mut self) {
        if self.blocks == 0 {
            return;
        }
        let mut held = self.budget.0.held.lock();
        held.all = held.all.saturating_sub(self.blocks);
        if let Some(client) = self.client
            && let Entry::Occupied(mut own) = held.of_clients.entry(client)
        {
            *own.get_mut() = own.get().saturating_sub(self.blocks);
            if *own.get() == 0 {
                own.remove();
            }
        }
    }
}

struct HeldBytes {
    bytes: Bytes,
    _memory: HeldMemory,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(last: u8) -> Caller {
        Caller {
            address: Some([192, 0, 2, last].into()),
            ..Caller::default()
        }
    }

    #[test]
    fn p45_a_client_holds_at_most_half_of_what_others_leave_free() {
        let budget = MemoryBudget::new(100 * BLOCK_BYTES);
        let (one, other) = (client(1), client(2));
        let mut first = budget.begin();
        assert_eq!(first.grow_to(50 * BLOCK_BYTES, &one), Ok(()));
        assert_eq!(first.grow_to(51 * BLOCK_BYTES, &one), Err(OutOfMemory));
        assert_eq!(budget.begin().grow_to(BLOCK_BYTES, &one), Err(OutOfMemory));
        assert_eq!(
            budget.begin().grow_to(BLOCK_BYTES - 1, &one),
            Ok(()),
            "a small message is not counted"
        );
        let mut second = budget.begin();
        assert_eq!(second.grow_to(26 * BLOCK_BYTES, &other), Err(OutOfMemory));
        assert_eq!(second.grow_to(25 * BLOCK_BYTES, &other), Ok(()));
        let bytes = first.keep_with(Bytes::from_static(b"reply"));
        assert_eq!(budget.begin().grow_to(BLOCK_BYTES, &one), Err(OutOfMemory));
        drop((bytes, second));
        assert_eq!(budget.begin().grow_to(50 * BLOCK_BYTES, &one), Ok(()));
        assert!(budget.0.held.lock().of_clients.is_empty());
    }
}
