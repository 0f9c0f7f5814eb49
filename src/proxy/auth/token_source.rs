//! Access tokens (RFC 6749 sections 4.3, 4.4 and 6): fetched when a call first needs one, cached, refreshed before they expire, and
//! fetched once for all calls that wait.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use tokio::sync::OwnedMutexGuard;
use tokio::time::{sleep, timeout};
use url::{Url, form_urlencoded};

use crate::observe;
use crate::outbound::{HttpClient, is_encrypted_or_local};
use crate::proxy::auth::access_token::AccessToken;
use crate::proxy::auth::grant::{Endpoint, Grant};
use crate::proxy::auth::sensitive_header;
use crate::proxy::auth::stored_token::StoredToken;
use crate::proxy::auth::token_keeper::{FOLLOW_INTERVAL, TokenKeeper};
use crate::proxy::auth::token_reply::{Granted, error_code, refusal_reason, seconds, token_reply};
use crate::proxy::caller::Caller;
use crate::proxy::error::CallError;
use crate::proxy::redact::Redactor;
use crate::proxy::request::Request;
use crate::proxy::request::style::{self, Keep};
use crate::proxy::response::Response;
use crate::proxy::upstream::exchange::{self, CallOptions};
use crate::text;

/// A token is refreshed this long before it expires, or after nine tenths of its lifetime where that is later.
const EXPIRY_MARGIN: Duration = Duration::from_mins(1);
/// How long after a failed refresh a token that is still valid is not refreshed again.
const FAILURE_PAUSE: Duration = Duration::from_secs(5);
/// How long a token may take to be renewed where others wait: less than their lock lasts.
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(45);
/// The largest reply of a token endpoint, in bytes.
const MAX_REPLY_BYTES: usize = 256 << 10;

/// Where a scheme's tokens come from.
#[derive(Debug)]
pub(crate) struct TokenSource {
    grant: Grant,
    identity: Vec<u8>,
    client: HttpClient,
    current: RwLock<Option<Arc<AccessToken>>>,
    /// Locked by the task that fetches a token.
    renewal: Arc<tokio::sync::Mutex<RenewalState>>,
    /// Where refresh tokens are kept that were replaced.
    keeper: Option<TokenKeeper>,
    /// Whether a task looks for what other replicas have stored.
    follows: AtomicBool,
}

/// What the task that fetches a token knows from those before it.
#[derive(Debug, Default)]
struct RenewalState {
    endpoint: Option<Url>,
    refresh_token: Option<SecretString>,
    /// The client's secret goes into the body, because the endpoint did not take it from a header.
    in_body: bool,
    /// The endpoint has refused the refresh token for good (RFC 6749 section 5.2).
    is_invalid_grant: bool,
    failed: Option<(Instant, CallError)>,
    fetched: Option<(Instant, Arc<AccessToken>)>,
}

#[derive(Deserialize)]
struct Discovered {
    issuer: String,
    token_endpoint: String,
}

impl TokenSource {
    /// A source without a token.
    #[must_use]
    pub(crate) fn new(grant: Grant, client: HttpClient, keeper: Option<TokenKeeper>) -> Self {
        Self {
            identity: grant.identity(),
            grant,
            client,
            current: RwLock::default(),
            renewal: Arc::default(),
            keeper,
            follows: AtomicBool::new(false),
        }
    }

    /// A token that is valid now, and not `spent`, which the API has just refused.
    ///
    /// # Errors
    /// [`CallError::Credential`] where none can be had.
    pub(crate) async fn token(self: &Arc<Self>, spent: Option<&Arc<AccessToken>>) -> Result<Arc<AccessToken>, CallError> {
        let asked = Instant::now();
        let is_spent = |token: &Arc<AccessToken>| spent.is_some_and(|spent| Arc::ptr_eq(spent, token));
        let usable = || self.current().filter(|token| token.is_good(Instant::now()) && !is_spent(token));
        let renewal = match usable() {
            Some(token) if token.is_fresh(asked) => return Ok(token),
            // It will expire soon: one caller refreshes, and the others use it meanwhile.
            Some(token) => match Arc::clone(&self.renewal).try_lock_owned() {
                Ok(renewal) if renewal.failed.as_ref().is_none_or(|(at, _)| at.elapsed() > FAILURE_PAUSE) => renewal,
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
        // Every caller that waited uses it, even if its lifetime is short.
        if let Some((at, token)) = &renewal.fetched
            && *at > asked
            && !is_spent(token)
        {
            return Ok(Arc::clone(token));
        }
        if let Some((at, error)) = &renewal.failed
            && *at > asked
        {
            // Every caller that waited for that attempt gets its outcome.
            return usable().ok_or_else(|| error.clone());
        }
        // In a task of its own: if the caller were cancelled, a refresh token that was exchanged meanwhile would be lost.
        let replaced = current.into_iter().chain(spent.cloned()).collect();
        let fetched = tokio::spawn(Arc::clone(self).renew(renewal, replaced)).await;
        let fetched = fetched.unwrap_or_else(|_| Err(self.failure("asking for it failed")));
        fetched.or_else(|error| usable().ok_or(error))
    }

    fn current(&self) -> Option<Arc<AccessToken>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Gets a token other than those to be replaced.
    async fn renew(
        self: Arc<Self>,
        mut renewal: OwnedMutexGuard<RenewalState>,
        replaced: Vec<Arc<AccessToken>>,
    ) -> Result<Arc<AccessToken>, CallError> {
        if self.keeper.as_ref().is_some_and(TokenKeeper::is_shared) && !self.follows.swap(true, Ordering::Relaxed) {
            tokio::spawn(Self::follow(Arc::downgrade(&self)));
        }
        let fetched = self.fetch_or_restore(&mut renewal, &replaced).await;
        if let Some(metrics) = observe::metrics() {
            metrics.refreshed(fetched.is_ok());
        }
        match fetched {
            Ok(token) => {
                renewal.failed = None;
                let token = Arc::new(token);
                renewal.fetched = Some((Instant::now(), Arc::clone(&token)));
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&token));
                Ok(token)
            }
            Err(error) => {
                tracing::warn!("{error}");
                renewal.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    /// The scheme whose refresh token is lost with the process if the token endpoint replaces it.
    pub(crate) fn at_risk(&self) -> Option<&str> {
        let is_kept = self.grant.refresh_token.is_none() || self.keeper.is_some();
        (!is_kept).then_some(self.grant.scheme.as_str())
    }

    /// What tells its tokens from those of others, whichever token there is at the moment.
    pub(crate) fn identity(&self) -> &[u8] {
        &self.identity
    }

    /// The client's name and secret as they are sent in `Basic`.
    #[must_use]
    pub(crate) fn client_pair(&self) -> Option<String> {
        let (id, secret) = (self.grant.client_id.as_ref()?, self.grant.client_secret.as_ref()?);
        // Both are form-encoded first (RFC 6749 section 2.3.1).
        let encode = |value: &SecretString| style::percent_encode(value.expose_secret(), Keep::Unreserved);
        Some(STANDARD.encode(format!("{}:{}", encode(id), encode(secret))))
    }

    /// Uses what other replicas have stored, for as long as there is a source.
    async fn follow(source: Weak<Self>) {
        loop {
            sleep(FOLLOW_INTERVAL).await;
            let Some(source) = source.upgrade() else { return };
            let Some(keeper) = &source.keeper else { return };
            if let Some(newest) = keeper.follow().await
                && let Some(token) = restore(&newest, source.current().as_slice())
            {
                *source.current.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(token));
            }
        }
    }

    /// The tokens that another process or an earlier run has stored, else those of the endpoint, which are stored before they are
    /// used. Nobody else uses the refresh token meanwhile.
    async fn fetch_or_restore(&self, renewal: &mut RenewalState, replaced: &[Arc<AccessToken>]) -> Result<AccessToken, CallError> {
        let (Some(keeper), Some(configured)) = (&self.keeper, &self.grant.refresh_token) else {
            return self.fetch(renewal).await;
        };
        let mut turn = keeper
            .take_turn(|stored| restore(stored, replaced).is_some())
            .await
            .map_err(|problem| self.failure(problem))?;
        if let Some(stored) = turn.newest() {
            renewal.refresh_token = Some(stored.refresh_token.clone());
            if let Some(token) = restore(stored, replaced) {
                turn.end().await;
                return Ok(token);
            }
        }
        let renewed = match turn.begin_renewal().await {
            Ok(()) => timeout(RENEWAL_TIMEOUT, self.renew_by(renewal, turn.newest().is_some()))
                .await
                .unwrap_or_else(|_| Err(self.failure("the token endpoint took too long"))),
            Err(problem) => Err(self.failure(problem)),
        };
        let token = match renewed {
            Ok(token) => token,
            Err(error) => {
                turn.end().await;
                return Err(error);
            }
        };
        let now = Instant::now();
        turn.store(StoredToken {
            refresh_token: renewal.refresh_token.as_ref().unwrap_or(configured).clone(),
            access_token: token.bearer().into(),
            expires: token.expires.map(|at| SystemTime::now() + at.saturating_duration_since(now)),
            lifetime: token.expires.map(|at| at.saturating_duration_since(now)),
            generation: 0,
        })
        .await;
        Ok(token)
    }

    /// Uses the refresh token; of a stored one that the endpoint refuses, what the operator has set instead.
    async fn renew_by(&self, renewal: &mut RenewalState, is_stored: bool) -> Result<AccessToken, CallError> {
        let mut fetched = self.fetch(renewal).await;
        if fetched.is_err() && renewal.is_invalid_grant && is_stored {
            renewal.refresh_token = None;
            fetched = self.fetch(renewal).await;
        }
        fetched
    }

    /// Asks the endpoint for a token.
    async fn fetch(&self, renewal: &mut RenewalState) -> Result<AccessToken, CallError> {
        let endpoint = match (&self.grant.endpoint, &renewal.endpoint) {
            (Endpoint::Token(url), _) | (Endpoint::Issuer(_), Some(url)) => url.clone(),
            (Endpoint::Issuer(issuer), None) => self.discover(issuer).await?,
        };
        renewal.endpoint = Some(endpoint.clone());
        let started = Instant::now();
        let reply = self.ask_as_accepted(&endpoint, renewal).await?;
        let granted = self.read_grant(&reply, renewal)?;
        self.note_refresh_token(granted.refresh_token.as_ref(), renewal);
        let access = granted.access_token.expose_secret();
        let header = sensitive_header(format!("Bearer {access}").as_bytes())
            .map_err(|_| self.failure("the token endpoint's answer holds a token that no header can"))?;
        let lifetime = granted.expires_in.as_ref().and_then(seconds);
        Ok(AccessToken {
            header,
            redactor: Arc::new(Redactor::for_tokens(
                std::iter::once(access).chain(granted.refresh_token.as_ref().map(ExposeSecret::expose_secret)),
            )),
            fresh_until: lifetime.map(|lifetime| started + lifetime.saturating_sub(renewal_margin(lifetime))),
            expires: lifetime.map(|lifetime| started + lifetime),
        })
    }

    /// Asks with the client's secret in the header, and in the body where the endpoint takes it only from there.
    async fn ask_as_accepted(&self, endpoint: &Url, renewal: &mut RenewalState) -> Result<Response, CallError> {
        let reply = self.ask(endpoint, renewal).await?;
        // RFC 6749 section 2.3.1: every server must accept the header, but some accept only the body.
        let may_want_body = !renewal.in_body
            && self.grant.client_secret.is_some()
            && matches!(reply.status, StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED)
            && error_code(&reply).is_none_or(|code| matches!(code.as_str(), "invalid_client" | "invalid_request"));
        if !may_want_body {
            return Ok(reply);
        }
        renewal.in_body = true;
        let second = self.ask(endpoint, renewal).await?;
        // Another error than `invalid_client` means that the client was recognized.
        if second.status.is_success() || error_code(&second).is_some_and(|code| code != "invalid_client") {
            return Ok(second);
        }
        renewal.in_body = false;
        Ok(reply)
    }

    /// What the endpoint grants: a token that can be sent as `Bearer`.
    fn read_grant(&self, reply: &Response, renewal: &mut RenewalState) -> Result<Granted, CallError> {
        if !reply.status.is_success() {
            let code = error_code(reply);
            renewal.is_invalid_grant = code.as_deref() == Some("invalid_grant");
            self.log_refusal(reply);
            let code = code.map(|code| format!(" ({code})")).unwrap_or_default();
            return Err(self.failure(&format!("the token endpoint answered {}{code}", reply.status.as_u16())));
        }
        let granted: Granted = serde_json::from_value(token_reply(reply)).map_err(|_| {
            let code = error_code(reply).map(|code| format!(" ({code})")).unwrap_or_default();
            self.failure(&format!("the token endpoint's answer holds no `access_token`{code}"))
        })?;
        // An empty token would be sent to the API as `Bearer `.
        if granted.access_token.expose_secret().trim().is_empty() {
            return Err(self.failure("the token endpoint's answer holds an empty `access_token`"));
        }
        if granted
            .token_type
            .as_deref()
            .is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer"))
        {
            return Err(self.failure("the token endpoint gives tokens of another type than Bearer"));
        }
        Ok(granted)
    }

    /// Logs why the endpoint refuses a token, without the secrets of the request. A model reads no more than the code.
    fn log_refusal(&self, reply: &Response) {
        const MAX_REASON_BYTES: usize = 500;
        let Some(mut reason) = refusal_reason(reply) else { return };
        Redactor::for_tokens(self.grant.secrets()).redact_line(&mut reason);
        let scheme = text::one_line(&self.grant.scheme);
        let reason = text::truncate(&text::one_line(&reason), MAX_REASON_BYTES);
        tracing::warn!("the token endpoint of `{scheme}` answered {}: {reason}", reply.status.as_u16());
    }

    /// Uses the refresh token that the endpoint grants from now on, where there was one before.
    fn note_refresh_token(&self, granted: Option<&SecretString>, renewal: &mut RenewalState) {
        let Some(next) = granted else { return };
        let before = renewal.refresh_token.as_ref().or(self.grant.refresh_token.as_ref());
        if self.keeper.is_none() && before.is_some_and(|before| before.expose_secret() != next.expose_secret()) {
            tracing::warn!(
                "the refresh token of `{}` was replaced by the token endpoint; the one in the settings may not work at the next start; --token-store FILE keeps it",
                text::one_line(&self.grant.scheme)
            );
        }
        renewal.refresh_token = before.is_some().then(|| next.clone());
    }

    async fn ask(&self, endpoint: &Url, renewal: &RenewalState) -> Result<Response, CallError> {
        self.send(self.token_request(endpoint, renewal)?).await
    }

    fn token_request(&self, endpoint: &Url, renewal: &RenewalState) -> Result<Request, CallError> {
        let grant = &self.grant;
        let mut form = form_urlencoded::Serializer::new(String::new());
        match renewal.refresh_token.as_ref().or(grant.refresh_token.as_ref()) {
            Some(refresh) => form
                .append_pair("grant_type", "refresh_token")
                .append_pair("refresh_token", refresh.expose_secret()),
            None => match &grant.user {
                Some((name, password)) => form
                    .append_pair("grant_type", "password")
                    .append_pair("username", name.expose_secret())
                    .append_pair("password", password.expose_secret()),
                None => form.append_pair("grant_type", "client_credentials"),
            },
        };
        for (name, value) in [("scope", &grant.scopes), ("audience", &grant.audience)] {
            if let Some(value) = value {
                form.append_pair(name, value.expose_secret());
            }
        }
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        match (&grant.client_id, &grant.client_secret) {
            (Some(_), Some(_)) if !renewal.in_body => {
                let pair = self.client_pair().unwrap_or_default();
                let value = sensitive_header(format!("Basic {pair}").as_bytes());
                headers.insert(AUTHORIZATION, value.map_err(|_| self.failure("the client's name cannot be sent"))?);
            }
            (Some(id), secret) => {
                form.append_pair("client_id", id.expose_secret());
                if let Some(secret) = secret {
                    form.append_pair("client_secret", secret.expose_secret());
                }
            }
            (None, _) => {}
        }
        Ok(Request {
            method: Method::POST,
            url: endpoint.clone(),
            headers,
            body: Some(form.finish().into()),
        })
    }

    async fn discover(&self, issuer: &Url) -> Result<Url, CallError> {
        let own = issuer.as_str().trim_end_matches('/');
        let url =
            Url::parse(&format!("{own}/.well-known/openid-configuration")).map_err(|_| self.failure("the issuer is not a valid URL"))?;
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let request = Request {
            method: Method::GET,
            url,
            headers,
            body: None,
        };
        let reply = self.send(request).await?;
        if !reply.status.is_success() {
            return Err(self.failure(&format!(
                "the issuer answered {} when asked for its token endpoint",
                reply.status.as_u16()
            )));
        }
        let found: Discovered = serde_json::from_slice(&reply.body).map_err(|_| self.failure("the issuer names no token endpoint"))?;
        if found.issuer.trim_end_matches('/') != own {
            return Err(self.failure("what answers at the issuer's address is another issuer"));
        }
        match Url::parse(&found.token_endpoint) {
            Ok(url) if is_encrypted_or_local(&url) || url.origin() == issuer.origin() => Ok(url),
            _ => Err(self.failure("the issuer's token endpoint is neither encrypted nor on this machine")),
        }
    }

    async fn send(&self, request: Request) -> Result<Response, CallError> {
        let options = CallOptions {
            max_response_bytes: MAX_REPLY_BYTES,
            ..CallOptions::default()
        };
        let sent = exchange::send_with_timeout(&self.client, request, &options, &Caller::default()).await;
        sent.map_err(|error| {
            let scheme = text::one_line(&self.grant.scheme);
            let cause = error.cause().map(|cause| format!(" ({cause})")).unwrap_or_default();
            tracing::warn!("the token endpoint of `{scheme}` did not answer: {error}{cause}");
            self.failure("the token endpoint cannot be reached, or did not answer as it should")
        })
    }

    fn failure(&self, why: &str) -> CallError {
        let scheme = text::one_line(&self.grant.scheme);
        CallError::Credential(format!("no access token could be obtained for the security scheme `{scheme}`: {why}").into())
    }
}

/// How long before its end a token of that lifetime is renewed.
fn renewal_margin(lifetime: Duration) -> Duration {
    EXPIRY_MARGIN.min(lifetime / 10)
}

/// A stored access token, unless it ends soon or is one of those to be replaced. `TokenSource::current` says nothing about that:
/// the task that follows other replicas may have put the stored token there.
fn restore(stored: &StoredToken, replaced: &[Arc<AccessToken>]) -> Option<AccessToken> {
    let margin = stored.lifetime.map_or(EXPIRY_MARGIN, renewal_margin);
    let left = match stored.expires {
        Some(at) => Some(at.duration_since(SystemTime::now()).ok().filter(|left| *left > margin)?),
        None => None,
    };
    let access = stored.access_token.expose_secret();
    if replaced.iter().any(|token| token.bearer() == access) {
        return None;
    }
    let secrets = [access, stored.refresh_token.expose_secret()];
    let now = Instant::now();
    Some(AccessToken {
        header: sensitive_header(format!("Bearer {access}").as_bytes()).ok()?,
        redactor: Arc::new(Redactor::for_tokens(secrets.into_iter())),
        fresh_until: left.map(|left| now + left.saturating_sub(margin)),
        expires: left.map(|left| now + left),
    })
}
