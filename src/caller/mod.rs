//! The caller: its key for limits, its share of what all clients use, its token, and its place if a
//! later call goes on waiting for its operation.

pub(crate) mod client_grant;
pub(crate) mod memory_budget;

use std::fmt;
use std::hash::BuildHasher as _;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::{Duration, SystemTime};

use aws_lc_rs::hmac;
use http::header::HeaderMap;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use self::client_grant::{ClientGrant, NO_TOKEN, ShownTools};
use crate::json::JsonObject;
use crate::shared_state::cells::Agreement;
use crate::text::hex;

/// Reports how many bytes of how many have left, and then have arrived as well. It never waits.
#[derive(Clone)]
pub(crate) struct ReportProgress {
    send: Arc<dyn Fn(u64, Option<u64>) + Send + Sync>,
    last: Arc<AtomicU64>,
}

impl ReportProgress {
    /// Reports to this function.
    pub(crate) fn new(send: impl Fn(u64, Option<u64>) + Send + Sync + 'static) -> Self {
        Self {
            send: Arc::new(send),
            last: Arc::default(),
        }
    }

    /// Reports how much of how much is done.
    pub(crate) fn report(&self, done: u64, total: Option<u64>) {
        self.last.fetch_max(done, Ordering::Relaxed);
        (self.send)(done, total);
    }

    /// Returns the most that was reported.
    pub(crate) fn last(&self) -> u64 {
        self.last.load(Ordering::Relaxed)
    }

    /// Reports a step of a wait on top of what was reported `before` it: the percentage, else one
    /// more. Progress only ever grows.
    pub(crate) fn report_step(&self, before: u64, percent: Option<u64>) {
        match percent.map(|percent| before.saturating_add(percent)) {
            Some(done) if done > self.last() => {
                self.report(done, Some(before.saturating_add(100)));
            }
            Some(_) => {}
            None => self.report(self.last().saturating_add(1), None),
        }
    }
}

/// Caller of a tool. It is made when a client is admitted, and passed down to the authentication at
/// the API.
#[derive(Clone, Default)]
pub struct Caller {
    /// The client that authenticated.
    pub(crate) client: Option<AuthenticatedClient>,
    /// The address at the other end of the connection, if anything depends on it.
    pub(crate) address: Option<IpAddr>,
    /// The headers of the client's HTTP request, without its credentials.
    pub(crate) headers: HeaderMap,
    /// Reports how the call goes on, if the client asked for it.
    pub(crate) progress: Option<ReportProgress>,
    /// The tools that it may list.
    pub(crate) shown: ShownTools,
    /// Place of its call, with which it goes on waiting for an operation.
    pub(crate) waiting: Option<Arc<WaitPlace>>,
    /// The agreement to its call, which is used up as the request leaves.
    pub(crate) agreement: Option<Arc<Agreement>>,
}

/// A client that has authenticated.
#[derive(Clone)]
pub(crate) struct AuthenticatedClient {
    /// Identifies the client for limits.
    pub(crate) key: ClientKey,
    /// The name that was proved, if there is an audit log.
    pub(crate) name: Option<Arc<str>>,
    /// Scopes and claims of its token.
    pub(crate) granted: ClientGrant,
    /// Its token, if it is a user's and some API is called as the user.
    pub(crate) subject: Option<Arc<SubjectToken>>,
    /// SHA-256 of its static token without a name.
    pub(crate) digest: Option<[u8; 32]>,
}

impl AuthenticatedClient {
    /// A client whose token is neither exchanged nor a static one without a name.
    pub(crate) fn new(key: ClientKey, name: Option<Arc<str>>, granted: ClientGrant) -> Self {
        Self {
            key,
            name,
            granted,
            subject: None,
            digest: None,
        }
    }
}

/// The claim that names the client of a token, and the name.
pub(crate) fn client_name(claims: &JsonObject) -> Option<(&'static str, &str)> {
    let mut names = ["sub", "client_id", "azp"].into_iter();
    names.find_map(|claim| {
        let name = claims.get(claim)?.as_str()?;
        (!name.is_empty()).then_some((claim, name))
    })
}

impl Caller {
    /// The same with the headers of the client's HTTP request, which may be forwarded to the API.
    #[must_use]
    pub fn with_headers(self, headers: HeaderMap) -> Self {
        Self { headers, ..self }
    }

    /// The same with the claims of the client's verified access token.
    #[must_use]
    pub fn with_claims(self, claims: JsonObject) -> Self {
        let granted = ClientGrant::of_claims(Arc::new(claims));
        Self {
            client: Some(AuthenticatedClient::new(self.key(), None, granted)),
            ..self
        }
    }

    /// Returns the key by which requests of the client are counted: the authenticated client, else
    /// the address, else the only client of a pipe.
    pub(crate) fn key(&self) -> ClientKey {
        match (&self.client, self.address) {
            (Some(client), _) => client.key,
            (None, Some(address)) => ClientKey::at(address),
            (None, None) => ClientKey::named("local", &[]),
        }
    }

    /// Returns a text that tells the client from every other one: the name or the digest of its
    /// token, or the issuer and the subject. All clients without a credential have one.
    pub(crate) fn identity(&self) -> String {
        let Some(client) = &self.client else {
            return "local".into();
        };
        let granted = &client.granted;
        if let Some(token) = &granted.token {
            return format!("token:{}", token.name);
        }
        if let Some(digest) = client.digest {
            return format!("token with SHA-256 {}", hex(&digest));
        }
        let Some(claims) = &granted.claims else {
            return String::new();
        };
        let issuer = claims
            .get("iss")
            .and_then(Value::as_str)
            .unwrap_or_default();
        match client_name(claims) {
            Some((claim, name)) => format!("{issuer} {claim} {name}"),
            // A token without a subject identifies only itself.
            None => serde_json::json!(claims).to_string(),
        }
    }

    /// Returns the scopes and claims of the client's token.
    pub(crate) fn granted(&self) -> &ClientGrant {
        self.client
            .as_ref()
            .map_or(&NO_TOKEN, |client| &client.granted)
    }

    /// The user's token, to be exchanged.
    pub(crate) fn subject(&self) -> Option<&Arc<SubjectToken>> {
        self.client.as_ref()?.subject.as_ref()
    }

    /// The claims of the client's verified access token.
    pub(crate) fn claims(&self) -> Option<&JsonObject> {
        self.granted().claims.as_deref()
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Caller")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// The address at the other end of a connection.
#[derive(Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// Identifies the client that a request counts for: a hash, so that neither tokens nor subjects are
/// kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ClientKey(pub(crate) u64);

impl ClientKey {
    /// An authenticated client.
    pub(crate) fn named(kind: &str, name: &[u8]) -> Self {
        let Some(key) = SHARED_KEY.get() else {
            return Self(SEEDS.hash_one((kind, name)));
        };
        let mut context = hmac::Context::with_key(key);
        for part in [&kind.len().to_be_bytes(), kind.as_bytes(), name] {
            context.update(part);
        }
        let first = context.sign().as_ref().first_chunk().copied();
        Self(u64::from_be_bytes(first.unwrap_or_default()))
    }

    /// Makes replicas with the same key identify a client in the same way. Called once, before the
    /// first client.
    pub(crate) fn share(key: hmac::Key) {
        let _ = SHARED_KEY.set(key);
    }

    /// The client at an address; an IPv6 /64 network counts as one client (RFC 6177).
    pub(crate) fn at(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::named("v4", &address.octets()),
            IpAddr::V6(address) => Self::named("v6", address.octets().get(..8).unwrap_or_default()),
        }
    }
}

/// The key that replicas share.
static SHARED_KEY: OnceLock<hmac::Key> = OnceLock::new();

static SEEDS: LazyLock<foldhash::quality::RandomState> = LazyLock::new(Default::default);

/// The verified token of a user. It is sent only to a token endpoint that exchanges it, and lives
/// as long as its request.
pub(crate) struct SubjectToken {
    token: SecretString,
    expires: SystemTime,
}

impl SubjectToken {
    /// The token with these claims, if it is a user's: it names one who is not the client itself.
    pub(crate) fn of_user(token: &str, claims: &JsonObject, expires: SystemTime) -> Option<Self> {
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let subject = text("sub").filter(|subject| !subject.is_empty())?;
        // As Okta, Entra, Auth0 and Keycloak name a client that acts for itself.
        let is_client = ["client_id", "azp", "cid", "appid"]
            .into_iter()
            .filter_map(text)
            .any(|client| {
                subject.strip_suffix("@clients").unwrap_or(subject) == client
                    || text("preferred_username")
                        .and_then(|name| name.strip_prefix("service-account-"))
                        == Some(client)
            });
        let is_application =
            text("idtyp") == Some("app") || text("gty") == Some("client-credentials");
        (!is_client && !is_application).then(|| Self {
            token: token.into(),
            expires,
        })
    }

    /// The token itself.
    pub(crate) fn expose(&self) -> &str {
        self.token.expose_secret()
    }

    /// Returns the time for which it is still valid; `None` if it has ended.
    pub(crate) fn lifetime(&self) -> Option<Duration> {
        self.expires.duration_since(SystemTime::now()).ok()
    }
}

/// Takes words about an operation that is waited for.
type ReportWait = Arc<dyn Fn(&str) + Send + Sync>;

/// Place of a call, with which a later call goes on waiting for its operation.
#[derive(Clone)]
pub(crate) struct WaitPlace {
    /// The name of the API, if a server has several.
    pub(crate) api: Option<String>,
    /// The value of the caller's tenant.
    pub(crate) tenant: Option<String>,
    /// The path of the endpoint.
    pub(crate) endpoint: Arc<str>,
    /// The beginning of a sentence that says how to go on, before a handle.
    ///
    /// # Errors
    /// A sentence that says why nothing can go on.
    pub(crate) how: Result<String, String>,
    /// Cancelled when the server is about to end.
    pub(crate) ending: CancellationToken,
    /// Takes the newest state of an operation, in words.
    pub(crate) report: Option<ReportWait>,
}

/// Returns true if a client that holds `own` of `taken` places may take one more of `capacity`. It
/// may hold at most half of the capacity that others leave free, and the last tenth is for clients
/// that hold nothing yet.
pub(crate) fn may_take_place(own: usize, taken: usize, capacity: usize) -> bool {
    let free = capacity.saturating_sub(taken);
    if own == 0 {
        return free > 0;
    }
    let left_by_others = capacity.saturating_sub(taken.saturating_sub(own));
    free > capacity / 10 && own < left_by_others / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p45_a_client_gets_half_of_what_is_free_and_newcomers_get_the_last_tenth() {
        for (own, taken, allowed) in [
            (0, 0, true),
            (49, 49, true),
            (50, 50, false),
            (24, 74, true),
            (25, 75, false),
            (1, 90, false),
            (0, 90, true),
            (0, 99, true),
            (0, 100, false),
        ] {
            assert_eq!(may_take_place(own, taken, 100), allowed, "{own} of {taken}");
        }
    }
}
