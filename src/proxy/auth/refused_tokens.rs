//! Access tokens that an operation refuses although they are new: then the token is not what is wrong.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::access_token::AccessToken;

/// How long an operation that has refused a new token gets no other one for its next refusal.
const RENEWAL_PAUSE: Duration = Duration::from_mins(5);

/// The last new token that an operation refused.
#[derive(Debug, Default)]
pub(crate) struct RefusedTokens(Mutex<Option<(Weak<AccessToken>, Instant)>>);

impl RefusedTokens {
    /// The token was fetched a moment ago because another one was refused, and was refused as well.
    pub(super) fn note(&self, token: &Arc<AccessToken>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Arc::downgrade(token), Instant::now()));
    }

    /// Whether another token would be refused, too.
    pub(super) fn is_like(&self, token: &Arc<AccessToken>) -> bool {
        let refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        refused
            .as_ref()
            .is_some_and(|(known, at)| at.elapsed() < RENEWAL_PAUSE && std::ptr::eq(known.as_ptr(), Arc::as_ptr(token)))
    }
}
