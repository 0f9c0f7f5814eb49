//! The caller: its key for limits, the scopes of its token, and the values that rules and tenants
//! take from it.

pub(crate) mod client_grant;
pub(crate) mod client_key;
pub(crate) mod fair_share;
pub(crate) mod memory_budget;
pub(crate) mod scopes;
pub(crate) mod shown_tools;
pub(crate) mod subject;
pub(crate) mod wait_place;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::header::HeaderMap;

use self::client_grant::{ClientGrant, NO_TOKEN};
use self::client_key::ClientKey;
use self::shown_tools::ShownTools;
use self::subject::SubjectToken;
use self::wait_place::WaitPlace;
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
        match percent {
            Some(percent) if before.saturating_add(percent) > self.last() => {
                self.report(
                    before.saturating_add(percent),
                    Some(before.saturating_add(100)),
                );
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

impl Caller {
    /// The same with the headers of the client's HTTP request, which may be forwarded to the API.
    #[must_use]
    pub fn with_headers(self, headers: HeaderMap) -> Self {
        Self { headers, ..self }
    }

    /// The headers of its HTTP request.
    pub(crate) fn into_headers(self) -> HeaderMap {
        self.headers
    }

    /// The same with the claims of the client's verified access token.
    #[must_use]
    pub fn with_claims(self, claims: JsonObject) -> Self {
        let client = AuthenticatedClient {
            key: self.key(),
            name: None,
            granted: ClientGrant::of_claims(claims),
            subject: None,
            digest: None,
        };
        Self {
            client: Some(client),
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
        let claims = granted.claims.as_deref();
        let text = |name: &str| claims?.get(name)?.as_str().filter(|text| !text.is_empty());
        let issuer = text("iss").unwrap_or_default();
        let name = ["sub", "client_id", "azp"].into_iter().find_map(|claim| {
            let value = text(claim)?;
            Some(format!("{issuer} {claim} {value}"))
        });
        // A token without a subject identifies only itself.
        name.unwrap_or_else(|| {
            claims
                .map(|claims| serde_json::json!(claims).to_string())
                .unwrap_or_default()
        })
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
