//! Places of calls that wait for the end of an operation: each holds a reply and a timer, and
//! nothing of the API.

use std::sync::LazyLock;

use foldhash::HashMap;
use parking_lot::Mutex;

use crate::caller::client_key::ClientKey;
use crate::caller::fair_share::may_take_place;

/// The most calls of a process that wait.
const MAX_WAITING: usize = 1024;

static WAITING: LazyLock<Mutex<HashMap<ClientKey, usize>>> = LazyLock::new(Mutex::default);

/// Place of a call that waits; it is free again once this is dropped.
pub(crate) struct WaitingPlace(ClientKey);

impl WaitingPlace {
    /// Takes a place; `None` if there is none for this client.
    pub(crate) fn take(client: ClientKey) -> Option<Self> {
        let mut waiting = WAITING.lock();
        let taken = waiting.values().sum();
        let own = waiting.get(&client).copied().unwrap_or_default();
        may_take_place(own, taken, MAX_WAITING).then(|| {
            *waiting.entry(client).or_default() += 1;
            Self(client)
        })
    }
}

impl Drop for WaitingPlace {
    fn drop(&mut self) {
        let mut waiting = WAITING.lock();
        if let Some(count) = waiting.get_mut(&self.0) {
            *count -= 1;
            if *count == 0 {
                waiting.remove(&self.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p45_one_client_gets_half_of_the_places_and_places_come_back() {
        let one = ClientKey::named("waits", b"1");
        let held: Vec<WaitingPlace> = std::iter::from_fn(|| WaitingPlace::take(one)).collect();
        assert_eq!(held.len(), MAX_WAITING / 2);
        assert!(WaitingPlace::take(ClientKey::named("waits", b"2")).is_some());
        drop(held);
        assert!(WaitingPlace::take(one).is_some());
    }
}
