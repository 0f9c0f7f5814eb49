//! Authenticates clients before their requests are read: compares or verifies the bearer token, and
//! applies the rate limit of the client. The challenges are those of RFC 6750 section 3, RFC 9728
//! section 5.1, and MCP (basic/authorization).
//!
//! This layer removes the `Authorization` header, so that no later layer can pass it on or log it
//! (MCP forbids token passthrough).

pub(crate) mod access_options;
mod approvers;
mod claims;
pub(crate) mod introspection;
pub(crate) mod jwks;
pub(crate) mod jwt;
pub(crate) mod limits;
mod protected_resources;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lru::LruCache;
use parking_lot::Mutex;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use url::Url;

pub(crate) use self::access_options::{AccessOptions, watch_files};
use self::access_options::{KnownToken, NamedToken, reload_tokens};
use self::claims::{Refusal, invalid};
use self::jwt::{Oauth, OauthOptions, ProtectedResource};
use self::limits::{RateLimit, Stranger};
use self::protected_resources::Resources;
use crate::call_error::SignInChallenge;
use crate::caller::client_grant::{NO_TOKEN, ScopeDemand};
use crate::caller::{AuthenticatedClient, Caller, ClientKey, Peer};
use crate::mcp::connections::request_origin::sole_header;
use crate::mcp::endpoints::served_apis::{MCP_PATH, ServedApis};
use crate::observe;
use crate::outbound::HttpClient;

/// The users of whom it is known when they were asked to sign in again.
const MAX_ASKED: NonZeroUsize = NonZeroUsize::new(8192).unwrap();

/// Failed sign-ins of one address on the page of a link, without another limit: ten a minute.
const FAILED_SIGN_INS_PER_SECOND: f64 = 10.0 / 60.0;

/// Admission of clients: authenticates each of them and counts its requests.
pub(crate) struct ClientAdmission {
    tokens: watch::Receiver<Arc<[KnownToken]>>,
    named: Vec<NamedToken>,
    oauth: Option<Oauth>,
    resources: Resources,
    is_open: bool,
    approver_scope: Option<String>,
    rate: Option<RateLimit>,
    /// Limits failed sign-ins of those who agree to calls, if nothing else does.
    sign_ins: RateLimit,
    /// Times at which users were asked to sign in again, without and with claims.
    asked: Mutex<LruCache<(ClientKey, bool), Instant>>,
}

impl Refusal {
    /// Returns its name in metrics and the audit log.
    fn reason(&self) -> &'static str {
        match self {
            Self::NoToken => "no_token",
            Self::InvalidToken(_) | Self::Claims(_) | Self::NotAnApprover => "invalid_token",
            Self::SeveralTokens => "several_tokens",
            Self::Scope(_) => "insufficient_scope",
            Self::Unavailable => "keys_unavailable",
            Self::TooOften(_) => "rate_limit",
        }
    }
}

impl ClientAdmission {
    /// Makes it; `None` if there is neither authentication nor a rate limit. `client` fetches the
    /// keys of an issuer.
    pub(crate) fn new(
        access: &AccessOptions,
        rate: Option<RateLimit>,
        whole: Option<Url>,
        apis: &ServedApis,
        client: Option<HttpClient>,
        stop: &CancellationToken,
    ) -> Option<Arc<Self>> {
        if access.is_open() && rate.is_none() && !access.has_approvers() {
            return None;
        }
        let resources = access.oauth.as_ref().zip(whole);
        let resources = resources
            .map(|(options, whole)| Resources::new(&whole, options, apis))
            .unwrap_or_default();
        let oauth = access.oauth.clone().zip(client);
        let oauth = oauth.map(|(options, client)| Oauth::new(options, client));
        if let Some(oauth) = &oauth {
            let keys = Arc::clone(&oauth.keys);
            tokio::spawn(stop.clone().run_until_cancelled_owned(keys.keep_fresh()));
        }
        let (sender, tokens) = watch::channel(access.known_tokens());
        if !access.token_files.is_empty() || access.named.iter().any(|named| named.file.is_some()) {
            let reloading = reload_tokens(access.clone(), sender);
            tokio::spawn(stop.clone().run_until_cancelled_owned(reloading));
        }
        Some(Arc::new(Self {
            tokens,
            named: access.named.clone(),
            oauth,
            resources,
            is_open: access.is_open(),
            approver_scope: access.approver_scope.clone(),
            rate,
            sign_ins: RateLimit::new(FAILED_SIGN_INS_PER_SECOND, None),
            asked: Mutex::new(LruCache::new(MAX_ASKED)),
        }))
    }

    /// Authenticates the sender of a request.
    async fn caller(
        &self,
        headers: &HeaderMap,
        path: &str,
        stranger: &mut Stranger<'_>,
    ) -> Result<AuthenticatedClient, Refusal> {
        let known = |key, name| AuthenticatedClient::new(key, name, NO_TOKEN.clone());
        let token = match bearer(headers) {
            Ok(token) => token,
            Err(_) if self.is_open => return Ok(known(stranger.address, None)),
            Err(refusal) => return Err(refusal),
        };
        let tokens = Arc::clone(&self.tokens.borrow());
        if let Some(found) = KnownToken::find(token, &tokens) {
            if let Some(named) = found.named.and_then(|place| self.named.get(place)) {
                return named.client().ok_or(Refusal::InvalidToken(
                    "with this token, people agree to calls, and do nothing else",
                ));
            }
            let name = observe::audit().map(|audit| audit.name_of_secret("token", token).into());
            return Ok(AuthenticatedClient {
                digest: Some(found.token.0),
                ..known(ClientKey::named("token", token), name)
            });
        }
        match self.oauth.as_ref().zip(self.resources.at(path)) {
            _ if self.is_open => Ok(known(stranger.address, None)),
            None => invalid("the token is not known here"),
            Some((oauth, resource)) => oauth.verify(token, resource, stranger).await,
        }
    }

    /// Returns true if no client can be admitted yet, because the issuer's keys were never read and
    /// there are no other tokens.
    pub(crate) fn awaits_keys(&self) -> bool {
        let approves = |place: usize| self.named.get(place).is_some_and(|named| named.approves);
        let tokens = self.tokens.borrow();
        let has_tokens = tokens
            .iter()
            .any(|token| !token.named.is_some_and(approves));
        let oauth = self.oauth.as_ref().filter(|_| !has_tokens);
        oauth.is_some_and(Oauth::awaits_keys)
    }

    /// Lets a request in and counts it, or refuses it: the client, if clients authenticate. What
    /// proves who it is goes no further.
    pub(crate) async fn admit(
        &self,
        parts: &mut Parts,
    ) -> Result<Option<AuthenticatedClient>, Box<Response>> {
        let mut stranger = self.stranger(&parts.extensions);
        let path = parts.uri.path();
        let caller = match (
            self.caller(&parts.headers, path, &mut stranger).await,
            &self.rate,
        ) {
            (Ok(caller), Some(rate)) => {
                let counted = rate.admit(caller.key).await;
                counted.map_err(Refusal::TooOften).map(|()| caller)
            }
            (Ok(caller), None) => Ok(caller),
            (Err(refusal), _) => Err(stranger
                .count()
                .await
                .map_or_else(Refusal::TooOften, |()| refusal)),
        };
        let caller = caller.map_err(|refusal| Box::new(self.refused(&refusal, path)))?;
        if self.is_open {
            return Ok(None);
        }
        parts.headers.remove(header::AUTHORIZATION);
        Ok(Some(caller))
    }

    /// Counts a request that needs no authentication for the address that it comes from, or refuses
    /// it.
    pub(crate) async fn count_stranger(
        &self,
        extensions: &Extensions,
    ) -> Result<(), Box<Response>> {
        let counted = self.stranger(extensions).count().await;
        counted.map_err(|wait| Box::new(self.refused(&Refusal::TooOften(wait), MCP_PATH)))
    }

    fn stranger(&self, extensions: &Extensions) -> Stranger<'_> {
        Stranger::new(peer_key(extensions), self.rate.as_ref())
    }

    /// The answer to a request for that path, which is counted as refused.
    fn refused(&self, refusal: &Refusal, path: &str) -> Response {
        observe::refused_request(refusal.reason());
        self.refuse(refusal, path)
    }

    /// The scopes that calls need at the endpoint at a path.
    pub(crate) fn scope_demand(&self, path: &str) -> Option<ScopeDemand> {
        let resource = self.resources.by_path.get(path)?;
        Some(self.oauth.as_ref()?.demand(resource))
    }

    /// The answer to a call whose client lacks scopes.
    pub(crate) fn refuse_scopes(&self, needed: Vec<String>, path: &str) -> Response {
        self.refuse(&Refusal::Scope(needed), path)
    }

    /// The answer to a call whose user's token is not good enough for the API; `None` if that
    /// client was asked a moment ago: its fresh token has failed in the same way, and it would sign
    /// in forever.
    pub(crate) fn ask_to_sign_in(
        &self,
        challenge: &SignInChallenge,
        path: &str,
    ) -> Option<Response> {
        const PAUSE: Duration = Duration::from_mins(5);
        if !challenge.is_expired {
            let mut asked = self.asked.lock();
            let key = (challenge.user, challenge.claims.is_some());
            if asked.get(&key).is_some_and(|at| at.elapsed() < PAUSE) {
                return None;
            }
            asked.put(key, Instant::now());
        }
        let refusal = match &challenge.claims {
            Some(claims) => Refusal::Claims(STANDARD.encode(claims)),
            None if challenge.is_expired => Refusal::InvalidToken("the token has expired"),
            None => Refusal::InvalidToken("the API needs another token of the user"),
        };
        Some(self.refused(&refusal, path))
    }

    /// The answer to a request for that path.
    fn refuse(&self, refusal: &Refusal, path: &str) -> Response {
        let resource = self.resources.at(path);
        let first = || {
            let oauth = self.oauth.as_ref().zip(resource);
            oauth.map(|(oauth, resource)| oauth.first_scopes(resource))
        };
        let (status, error, why, scopes) = match refusal {
            // RFC 6750 section 3.1: the challenge to a request without credentials has no error
            // code.
            Refusal::NoToken => (
                StatusCode::UNAUTHORIZED,
                "",
                "a bearer token is needed",
                first(),
            ),
            Refusal::InvalidToken(why) => {
                (StatusCode::UNAUTHORIZED, "invalid_token", *why, first())
            }
            // The scope is in no challenge: a client would ask for it.
            Refusal::NotAnApprover => {
                let text = "a token of a person who may agree to calls is needed\n";
                let challenge = [(header::WWW_AUTHENTICATE, "Bearer realm=\"openapi-mcp\"")];
                return (StatusCode::UNAUTHORIZED, challenge, text).into_response();
            }
            Refusal::SeveralTokens => (
                StatusCode::BAD_REQUEST,
                "invalid_request",
                "there are two Authorization headers",
                None,
            ),
            Refusal::Scope(needed) => (
                StatusCode::FORBIDDEN,
                "insufficient_scope",
                "the token lacks a scope that this needs",
                Some(needed.clone()),
            ),
            Refusal::Claims(_) => (
                StatusCode::UNAUTHORIZED,
                "insufficient_claims",
                "the API needs another token of the user",
                first(),
            ),
            Refusal::Unavailable => {
                let text = "the token cannot be verified, because its issuer cannot be asked; try again later\n";
                let later = [(header::RETRY_AFTER, "5")];
                return (StatusCode::SERVICE_UNAVAILABLE, later, text).into_response();
            }
            Refusal::TooOften(wait) => {
                // Whole seconds (RFC 9110 section 10.2.3), rounded up so that the next try can
                // succeed.
                let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
                let text = format!("too many requests; the next one is answered in {seconds} s\n");
                let later = [(header::RETRY_AFTER, seconds)];
                return (StatusCode::TOO_MANY_REQUESTS, later, text).into_response();
            }
        };
        tracing::debug!("a request was not let in: {why}");
        let claims = match refusal {
            Refusal::Claims(claims) => claims,
            _ => "",
        };
        let scopes = scopes.unwrap_or_default().join(" ");
        let challenge = challenge(resource, error, why, &scopes, claims);
        let challenge = [(header::WWW_AUTHENTICATE, challenge)];
        (status, challenge, format!("{why}\n")).into_response()
    }
}

/// The key of the address that a request comes from.
fn peer_key(extensions: &Extensions) -> ClientKey {
    let peer = extensions.get::<Peer>();
    let unknown = Peer(std::net::Ipv4Addr::UNSPECIFIED.into());
    ClientKey::at(peer.unwrap_or(&unknown).0)
}

/// Returns the value of `WWW-Authenticate`; `resource` is the endpoint that accepts tokens of an
/// issuer.
fn challenge(
    resource: Option<&ProtectedResource>,
    error: &str,
    why: &str,
    scopes: &str,
    claims: &str,
) -> HeaderValue {
    let mut parts = Vec::new();
    let mut part = |name: &str, value: &str| {
        if !value.is_empty() {
            parts.push(format!("{name}=\"{value}\""));
        }
    };
    part("error", error);
    part("error_description", if error.is_empty() { "" } else { why });
    match resource {
        Some(resource) => part("resource_metadata", &resource.metadata_url()),
        None => part("realm", "openapi-mcp"),
    }
    part("scope", scopes);
    part("claims", claims);
    HeaderValue::from_str(&format!("Bearer {}", parts.join(", ")))
        .unwrap_or(HeaderValue::from_static("Bearer"))
}

/// The token of `Authorization: Bearer TOKEN`; the scheme's case does not matter (RFC 9110 section
/// 11.1).
fn bearer(headers: &HeaderMap) -> Result<&[u8], Refusal> {
    let value = sole_header(headers, header::AUTHORIZATION).map_err(|()| Refusal::SeveralTokens)?;
    let value = value.ok_or(Refusal::NoToken)?.as_bytes();
    match value.split_at_checked(7) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"bearer ") => Ok(token.trim_ascii()),
        _ => Err(Refusal::NoToken),
    }
}

/// The caller with an access token, as an endpoint at that URL sees it.
///
/// # Errors
/// Why the token is refused, in words.
pub(crate) async fn verify_once(
    token: &SecretString,
    options: &OauthOptions,
    client: HttpClient,
    url: Url,
) -> Result<Caller, String> {
    let resource = ProtectedResource::new(url, options);
    let oauth = Oauth::new(options.clone(), client);
    let token = token.expose_secret().as_bytes();
    let mut stranger = Stranger::new(Caller::default().key(), None);
    match oauth.verify(token, &resource, &mut stranger).await {
        Ok(client) => Ok(Caller {
            client: Some(client),
            ..Caller::default()
        }),
        Err(Refusal::InvalidToken(why)) => Err(why.into()),
        Err(Refusal::Scope(scopes)) => {
            Err(format!("the token lacks the scopes {}", scopes.join(" ")))
        }
        Err(_) => Err("the token cannot be verified, because its issuer cannot be asked".into()),
    }
}

/// The layer that authenticates, counts and passes on requests.
pub(crate) async fn authenticate(
    State(admission): State<Arc<ClientAdmission>>,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    match admission.admit(&mut parts).await {
        Ok(_) => next.run(Request::from_parts(parts, body)).await,
        Err(refusal) => *refusal,
    }
}

/// Answers with the protected resource metadata (RFC 9728).
pub(crate) async fn metadata(State(admission): State<Arc<ClientAdmission>>, uri: Uri) -> Response {
    let resource = admission.resources.with_metadata_at(uri.path());
    match admission.oauth.as_ref().zip(resource) {
        Some((oauth, resource)) => {
            let cached = [(header::CACHE_CONTROL, "public, max-age=300")];
            (cached, Json(oauth.metadata(resource))).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
