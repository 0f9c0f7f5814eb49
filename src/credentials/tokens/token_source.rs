//! Access tokens (RFC 6749 sections 4.3, 4.4 and 6): fetched when a call first needs one, cached,
//! refreshed before they expire, and fetched once for all calls that wait.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::RwLock;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::OwnedMutexGuard;
use tokio::time::{sleep, timeout};

use super::access_token::{AccessToken, Grant, TokenRequest, seconds};
use super::oauth_client::exposed;
use super::stored_token::StoredToken;
use super::token_endpoint::TokenEndpoint;
use super::token_keeper::{FOLLOW_INTERVAL, TokenKeeper};
use crate::call_error::CallError;
use crate::observe::metrics::{CountedEvent, outcome_of};
use crate::{observe, text};

/// A token is refreshed this long before it expires, or after nine tenths of its lifetime if that
/// is later.
const EXPIRY_MARGIN: Duration = Duration::from_mins(1);
/// Time after a failed refresh for which a token that is still valid is not refreshed again.
const FAILURE_PAUSE: Duration = Duration::from_secs(5);
/// Time limit of a renewal for which others wait: less than the lifetime of their lock.
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(45);

/// Source of a scheme's tokens.
pub(crate) struct TokenSource {
    pub(crate) endpoint: TokenEndpoint,
    request: TokenRequest,
    current: RwLock<Option<Arc<AccessToken>>>,
    /// Locked by the task that fetches a token.
    renewal: Arc<tokio::sync::Mutex<RenewalState>>,
    /// Storage of refresh tokens that were replaced.
    keeper: Option<TokenKeeper>,
    /// True if a task looks for what other replicas have stored.
    follows: AtomicBool,
}

/// State kept from one fetch of a token to the next.
#[derive(Default)]
struct RenewalState {
    refresh_token: Option<SecretString>,
    /// The endpoint has refused the refresh token for good (RFC 6749 section 5.2).
    is_invalid_grant: bool,
    /// Outcome of the last attempt, and its time.
    last: Option<(Instant, Result<Arc<AccessToken>, CallError>)>,
}

impl TokenSource {
    /// A source without a token.
    pub(crate) fn new(
        endpoint: TokenEndpoint,
        request: TokenRequest,
        keeper: Option<TokenKeeper>,
    ) -> Self {
        Self {
            endpoint,
            request,
            current: RwLock::default(),
            renewal: Arc::default(),
            keeper,
            follows: AtomicBool::new(false),
        }
    }

    /// A token that is valid now, and not `spent`, which the API has just refused.
    ///
    /// # Errors
    /// [`CallError::Credential`] if there is none.
    pub(crate) async fn token(
        self: &Arc<Self>,
        spent: Option<&Arc<AccessToken>>,
    ) -> Result<Arc<AccessToken>, CallError> {
        let asked = Instant::now();
        let is_spent =
            |token: &Arc<AccessToken>| spent.is_some_and(|spent| Arc::ptr_eq(spent, token));
        let usable = || {
            self.current()
                .filter(|token| token.is_good(Instant::now()) && !is_spent(token))
        };
        let has_failed = |renewal: &RenewalState| matches!(&renewal.last, Some((at, Err(_))) if at.elapsed() <= FAILURE_PAUSE);
        let renewal = match usable() {
            Some(token) if token.is_fresh(asked) => return Ok(token),
            // It will expire soon: one caller refreshes, and the others use it meanwhile.
            Some(token) => match Arc::clone(&self.renewal).try_lock_owned() {
                Ok(renewal) if !has_failed(&renewal) => renewal,
                _ => return Ok(token),
            },
            None => Arc::clone(&self.renewal).lock_owned().await,
        };
        let current = self.current();
        if let Some(token) = &current
            && token.is_fresh(Instant::now())
            && !is_spent(token)
        {
            return Ok(Arc::clone(token));
        }
        match &renewal.last {
            // Every caller that waited uses it, even if its lifetime is short.
            Some((at, Ok(token))) if *at > asked && !is_spent(token) => {
                return Ok(Arc::clone(token));
            }
            // Every caller that waited for that attempt gets its outcome.
            Some((at, Err(error))) if *at > asked => return usable().ok_or_else(|| error.clone()),
            _ => {}
        }
        // In a task of its own: if the caller were cancelled, a refresh token that was exchanged
        // meanwhile would be lost.
        let replaced = current.into_iter().chain(spent.cloned()).collect();
        let fetched = tokio::spawn(Arc::clone(self).renew(renewal, replaced)).await;
        let fetched =
            fetched.unwrap_or_else(|_| Err(self.endpoint.failure("asking for it failed")));
        fetched.or_else(|error| usable().ok_or(error))
    }

    fn current(&self) -> Option<Arc<AccessToken>> {
        self.current.read().clone()
    }

    /// Gets a token other than those to be replaced.
    async fn renew(
        self: Arc<Self>,
        mut renewal: OwnedMutexGuard<RenewalState>,
        replaced: Vec<Arc<AccessToken>>,
    ) -> Result<Arc<AccessToken>, CallError> {
        if self.keeper.as_ref().is_some_and(TokenKeeper::is_shared)
            && !self.follows.swap(true, Ordering::Relaxed)
        {
            tokio::spawn(Self::follow(Arc::downgrade(&self)));
        }
        let fetched = self.fetch_or_restore(&mut renewal, &replaced).await;
        let fetched = fetched.map(Arc::new);
        observe::count(CountedEvent::TokenRequest, outcome_of(fetched.is_ok()));
        match &fetched {
            Ok(token) => *self.current.write() = Some(Arc::clone(token)),
            Err(error) => tracing::warn!("{error}"),
        }
        renewal.last = Some((Instant::now(), fetched.clone()));
        fetched
    }

    /// The scheme whose refresh token is lost with the process if the token endpoint replaces it.
    pub(crate) fn at_risk(&self) -> Option<&str> {
        let is_kept = self.request.refresh_token().is_none() || self.keeper.is_some();
        (!is_kept).then_some(self.endpoint.client.scheme.as_str())
    }

    /// The scheme for which a person must sign in before the first call.
    pub(crate) fn needs_login(&self) -> Option<&str> {
        let keeper = self
            .keeper
            .as_ref()
            .filter(|_| self.request.grant.is_none())?;
        (keeper.has_login() == Ok(false)).then_some(self.endpoint.client.scheme.as_str())
    }

    /// The error of a call for which a person must sign in.
    fn signed_out(&self, why: &str) -> CallError {
        let scheme = text::shell_word(&text::one_line(&self.endpoint.client.scheme));
        self.endpoint.failure(&format!(
            "{why}: `openapi-mcp login {scheme}`, with the settings of this server"
        ))
    }

    /// Uses what other replicas have stored, for as long as there is a source.
    async fn follow(source: Weak<Self>) {
        loop {
            sleep(FOLLOW_INTERVAL).await;
            let Some(source) = source.upgrade() else {
                return;
            };
            let Some(keeper) = &source.keeper else { return };
            if let Some(newest) = keeper.follow().await
                && let Some(token) = restore(&newest, source.current().as_slice())
            {
                *source.current.write() = Some(Arc::new(token));
            }
        }
    }

    /// Returns the tokens that another process or an earlier run has stored, else those of the
    /// endpoint, which are stored before they are used. No other process uses the refresh token
    /// meanwhile.
    async fn fetch_or_restore(
        &self,
        renewal: &mut RenewalState,
        replaced: &[Arc<AccessToken>],
    ) -> Result<AccessToken, CallError> {
        let Some(keeper) = &self.keeper else {
            return self.fetch(renewal).await;
        };
        let is_login = self.request.grant.is_none();
        let failure = |problem| self.endpoint.failure(problem);
        if is_login && !keeper.has_login().map_err(failure)? {
            renewal.refresh_token = None;
            return Err(self.signed_out("nobody is signed in; sign in"));
        }
        let is_useful = |stored: &_| restore(stored, replaced).is_some();
        let mut turn = keeper.take_turn(is_useful).await.map_err(failure)?;
        let renewed = async {
            if let Some(stored) = &turn.newest {
                renewal.refresh_token = Some(stored.refresh_token.clone());
                if let Some(token) = restore(stored, replaced) {
                    return Ok((token, None));
                }
            } else if is_login {
                // It was removed while this process waited for its turn.
                renewal.refresh_token = None;
                return Err(self.signed_out("nobody is signed in; sign in"));
            }
            turn.begin_renewal().await.map_err(failure)?;
            let renewing = self.renew_by(renewal, turn.newest.is_some());
            let renewed = timeout(RENEWAL_TIMEOUT, renewing).await;
            let token = renewed.map_err(|_| failure("the token endpoint took too long"))??;
            let now = Instant::now();
            let left = token.ends.map(|[_, at]| at.saturating_duration_since(now));
            let refresh_token = renewal.refresh_token.as_ref();
            let stored = refresh_token
                .or(self.request.refresh_token())
                .map(|secret| StoredToken::new(secret.clone(), token.bearer().into(), left, left));
            Ok((token, stored))
        };
        match renewed.await {
            Ok((token, Some(stored))) => {
                turn.store(stored).await;
                Ok(token)
            }
            renewed => {
                turn.end().await;
                renewed.map(|(token, _)| token)
            }
        }
    }

    /// Uses the refresh token; of a stored one that the endpoint refuses, what the operator has set
    /// instead.
    async fn renew_by(
        &self,
        renewal: &mut RenewalState,
        is_stored: bool,
    ) -> Result<AccessToken, CallError> {
        let mut fetched = self.fetch(renewal).await;
        if fetched.is_err() && renewal.is_invalid_grant && is_stored {
            renewal.refresh_token = None;
            if self.request.grant.is_none() {
                return Err(self.signed_out(
                    "the stored login is not valid any more (invalid_grant); sign in again",
                ));
            }
            fetched = self.fetch(renewal).await;
        }
        fetched
    }

    /// Asks the endpoint for a token.
    async fn fetch(&self, renewal: &mut RenewalState) -> Result<AccessToken, CallError> {
        let started = Instant::now();
        let renewed = renewal.refresh_token.clone().map(Grant::RefreshToken);
        let Some(grant) = renewed.as_ref().or(self.request.grant.as_ref()) else {
            return Err(self.signed_out("nobody is signed in; sign in"));
        };
        let scope = exposed(self.request.scopes.as_ref()).map(|scope| ("scope", scope));
        let audience = exposed(self.request.audience.as_ref()).map(|name| ("audience", name));
        let more: Vec<_> = scope.into_iter().chain(audience).collect();
        let granted = self.endpoint.ask(grant, &more).await.map_err(|refusal| {
            renewal.is_invalid_grant = refusal.is_invalid_grant();
            self.endpoint.failure(&refusal.describe())
        })?;
        self.note_refresh_token(granted.refresh_token.as_ref(), renewal);
        let lifetime = granted.expires_in.as_ref().and_then(seconds);
        let ends = lifetime.map(|lifetime| {
            [
                started + lifetime.saturating_sub(renewal_margin(lifetime)),
                started + lifetime,
            ]
        });
        let refresh_token = exposed(granted.refresh_token.as_ref());
        let token = AccessToken::new(granted.access_token.expose_secret(), refresh_token, ends);
        token.ok_or_else(|| {
            self.endpoint
                .failure("the token endpoint's answer holds a token that no header can")
        })
    }

    /// Uses the refresh token that the endpoint grants from now on, if there was one before.
    fn note_refresh_token(&self, granted: Option<&SecretString>, renewal: &mut RenewalState) {
        let Some(next) = granted else { return };
        let before = renewal.refresh_token.as_ref();
        let before = before.or(self.request.refresh_token());
        if self.keeper.is_none()
            && before.is_some_and(|before| before.expose_secret() != next.expose_secret())
        {
            tracing::warn!(
                "the refresh token of `{}` was replaced by the token endpoint; the one in the settings may not work at the next start; `token_store` keeps it",
                text::one_line(&self.endpoint.client.scheme)
            );
        }
        renewal.refresh_token = before.is_some().then(|| next.clone());
    }
}

/// Returns the time before its end at which a token of that lifetime is renewed.
fn renewal_margin(lifetime: Duration) -> Duration {
    EXPIRY_MARGIN.min(lifetime / 10)
}

/// A stored access token, unless it ends soon or is one of those to be replaced.
/// `TokenSource::current` says nothing about that: the task that follows other replicas may have
/// put the stored token there.
fn restore(stored: &StoredToken, replaced: &[Arc<AccessToken>]) -> Option<AccessToken> {
    let lifetime = stored.lifetime.map(Duration::from_secs);
    let margin = lifetime.map_or(EXPIRY_MARGIN, renewal_margin);
    let left = |end: SystemTime| end.duration_since(SystemTime::now()).unwrap_or_default();
    let left = stored.expires().map(left);
    let access = stored.access_token.expose_secret();
    if left.is_some_and(|left| left <= margin)
        || replaced.iter().any(|token| token.bearer() == access)
    {
        return None;
    }
    let now = Instant::now();
    let ends = left.map(|left| [now + left.saturating_sub(margin), now + left]);
    AccessToken::new(access, Some(stored.refresh_token.expose_secret()), ends)
}
