//! Access tokens that an operation refuses although they are new: then the token is not what is
//! wrong.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::tokens::access_token::AccessToken;

/// Time for which an operation that has refused a new token gets no other one.
const RENEWAL_PAUSE: Duration = Duration::from_mins(5);
/// Each user who calls as themselves has a token.
const MAX_TOKENS: usize = 64;

/// The last new tokens that an operation refused.
#[derive(Default)]
pub(crate) struct RefusedTokens(Mutex<Vec<(Weak<AccessToken>, Instant)>>);

impl RefusedTokens {
    /// The token was fetched a moment ago because another one was refused, and was refused as well.
    pub(super) fn note(&self, token: &Arc<AccessToken>) {
        let mut refused = self.0.lock();
        refused.retain(|(known, at)| at.elapsed() < RENEWAL_PAUSE && known.strong_count() > 0);
        if refused.len() == MAX_TOKENS {
            refused.remove(0);
        }
        refused.push((Arc::downgrade(token), Instant::now()));
    }

    /// Returns true if another token would be refused too.
    pub(super) fn is_like(&self, token: &Arc<AccessToken>) -> bool {
        let refused = self.0.lock();
        let is_same = |known: &Weak<AccessToken>| std::ptr::eq(known.as_ptr(), Arc::as_ptr(token));
        refused
            .iter()
            .any(|(known, at)| at.elapsed() < RENEWAL_PAUSE && is_same(known))
    }
}
