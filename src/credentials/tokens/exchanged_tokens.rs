//! Tokens that were exchanged, by what they were given for. They are kept in this process alone,
//! and asked for once at a time.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, Shared};
use lru::LruCache;
use parking_lot::Mutex;

use super::access_token::AccessToken;
use crate::call_error::{CallError, SignInChallenge};
use crate::caller::{ClientKey, may_take_place};

/// The tokens that are kept; the least recently used goes.
const MAX_TOKENS: usize = 8192;
/// Time for which a user whose token was refused gets the same answer.
const REFUSAL_PAUSE: Duration = Duration::from_secs(15);

/// An exchange that all calls for the same token wait for, and its outcome.
pub(super) type Flight = Shared<BoxFuture<'static, Result<Arc<AccessToken>, ExchangeFailure>>>;

/// Reason for which no token was given.
#[derive(Clone)]
pub(super) enum ExchangeFailure {
    /// The endpoint refused the user, who can mend it.
    OfUser {
        /// The end of a sentence.
        why: &'static str,
        challenge: Option<SignInChallenge>,
        at: Instant,
    },
    /// The operator must mend it.
    OfEndpoint(CallError),
}

struct Exchanged {
    user: ClientKey,
    flight: Flight,
}

impl Exchanged {
    /// Returns true if the entry can answer a call: its exchange is in progress, or its outcome
    /// still counts.
    fn is_useful(&self, refused: Option<&Arc<AccessToken>>) -> bool {
        match self.flight.peek() {
            None => true,
            Some(Ok(token)) => {
                token.is_good(Instant::now())
                    && refused.is_none_or(|refused| !Arc::ptr_eq(refused, token))
            }
            Some(Err(ExchangeFailure::OfUser { at, .. })) => at.elapsed() < REFUSAL_PAUSE,
            Some(Err(ExchangeFailure::OfEndpoint(_))) => false,
        }
    }
}

/// The tokens of this process, and how many of them each user has.
struct ExchangedTokens {
    tokens: LruCache<[u8; 32], Exchanged>,
    by_user: HashMap<ClientKey, usize>,
}

static TOKENS: LazyLock<Mutex<ExchangedTokens>> = LazyLock::new(|| {
    Mutex::new(ExchangedTokens {
        tokens: LruCache::new(NonZeroUsize::new(MAX_TOKENS).unwrap_or(NonZeroUsize::MIN)),
        by_user: HashMap::new(),
    })
});

/// The exchange for that key, and whether it was there before; `begin` starts one. A user has at
/// most half of the places that others leave free.
pub(super) fn find_or_begin(
    key: [u8; 32],
    user: ClientKey,
    refused: Option<&Arc<AccessToken>>,
    begin: impl FnOnce() -> Flight,
) -> (Flight, bool) {
    let mut kept = TOKENS.lock();
    if let Some(known) = kept.tokens.get(&key)
        && known.is_useful(refused)
    {
        return (known.flight.clone(), true);
    }
    let flight = begin();
    kept.insert(
        key,
        Exchanged {
            user,
            flight: flight.clone(),
        },
    );
    (flight, false)
}

impl ExchangedTokens {
    fn insert(&mut self, key: [u8; 32], exchanged: Exchanged) {
        self.remove(&key);
        let user = exchanged.user;
        let own = self.by_user.get(&user).copied().unwrap_or_default();
        if !may_take_place(own, self.tokens.len(), MAX_TOKENS) {
            let oldest = if own > 0 {
                let of_user = self
                    .tokens
                    .iter()
                    .rev()
                    .find(|(_, known)| known.user == user);
                of_user.map(|(key, _)| *key)
            } else {
                self.tokens.peek_lru().map(|(key, _)| *key)
            };
            oldest.iter().for_each(|key| self.remove(key));
        }
        *self.by_user.entry(user).or_default() += 1;
        self.tokens.push(key, exchanged);
    }

    fn remove(&mut self, key: &[u8; 32]) {
        let Some(removed) = self.tokens.pop(key) else {
            return;
        };
        if let Some(count) = self.by_user.get_mut(&removed.user) {
            *count -= 1;
            if *count == 0 {
                self.by_user.remove(&removed.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn pending() -> Flight {
        std::future::pending().boxed().shared()
    }

    #[test]
    fn one_user_leaves_places_for_others_and_the_oldest_goes() {
        let mut kept = ExchangedTokens {
            tokens: LruCache::new(NonZeroUsize::new(MAX_TOKENS).unwrap()),
            by_user: HashMap::new(),
        };
        let insert = |kept: &mut ExchangedTokens, user: u64, number: u32| {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&user.to_be_bytes());
            key[8..12].copy_from_slice(&number.to_be_bytes());
            let user = ClientKey(user);
            kept.insert(
                key,
                Exchanged {
                    user,
                    flight: pending(),
                },
            );
        };
        for number in 0..20_000 {
            insert(&mut kept, 1, number);
        }
        assert_eq!(kept.tokens.len(), MAX_TOKENS / 2);
        for user in 2..20_000 {
            insert(&mut kept, user, 0);
        }
        assert_eq!(kept.tokens.len(), MAX_TOKENS);
        assert_eq!(kept.by_user.values().sum::<usize>(), MAX_TOKENS);
    }
}
