//! The public keys of an OAuth issuer (JWKS, RFC 7517), and their discovery (RFC 8414, `OpenID`
//! Connect Discovery). The keys are cached, read again every [`REFRESH_INTERVAL`] and when a token
//! names an unknown key, and kept while the issuer is unavailable.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use parking_lot::RwLock;
use serde_json::Value;
use tokio::sync::Mutex;
use url::Url;

use crate::credentials::tokens::issuer_metadata::metadata_urls;
use crate::outbound::HttpClient;
use crate::outbound::fetch::Fetch;
use crate::spec::document::source::redacted;

/// Interval at which the keys are read again.
const REFRESH_INTERVAL: Duration = Duration::from_mins(10);
/// Interval of requests to the issuer while no key is known.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// Shortest interval of requests to the issuer because of unknown keys in tokens: a key may have
/// been replaced, but any client can send such a token.
const UNKNOWN_INTERVAL: Duration = Duration::from_secs(5);
/// Keys that could not be read again for this long are discarded.
const MAX_KEY_AGE: Duration = Duration::from_hours(24);
/// Time limit of one request to the issuer.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest document that is read from the issuer, in bytes.
const MAX_KEY_SET_BYTES: usize = 1 << 20;

const RSA: [Algorithm; 6] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
];

/// A key and the algorithms that it may be used with. The key determines the algorithm, not the
/// token (RFC 8725 section 3.1).
pub(crate) struct IssuerKey {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    pub(crate) public: DecodingKey,
}

impl IssuerKey {
    /// Reads a JWK; `None` if it cannot verify signatures: symmetric keys, keys for encryption,
    /// unknown types.
    fn new(jwk: &Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(jwk.clone()).ok()?;
        let common = &jwk.common;
        let verifies = common
            .public_key_use
            .as_ref()
            .is_none_or(|usage| *usage == PublicKeyUse::Signature)
            && common
                .key_operations
                .as_ref()
                .is_none_or(|operations| operations.contains(&KeyOperations::Verify));
        let possible: &[Algorithm] = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => &RSA,
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
                &[Algorithm::ES256]
            }
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P384 => {
                &[Algorithm::ES384]
            }
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
                &[Algorithm::EdDSA]
            }
            _ => return None,
        };
        let named = common.key_algorithm.map(|algorithm| algorithm.to_string());
        let algorithms: Vec<Algorithm> = possible
            .iter()
            .copied()
            .filter(|algorithm| {
                named
                    .as_ref()
                    .is_none_or(|named| *named == format!("{algorithm:?}"))
            })
            .collect();
        (verifies && !algorithms.is_empty()).then_some(())?;
        Some(Self {
            id: common.key_id.clone(),
            algorithms,
            public: DecodingKey::from_jwk(&jwk).ok()?,
        })
    }

    fn suits(&self, id: Option<&str>, algorithm: Algorithm) -> bool {
        // A token that names no key may be signed by any (RFC 7515 section 4.1.4 makes the name
        // optional).
        self.algorithms.contains(&algorithm)
            && id.is_none_or(|id| self.id.as_deref().is_none_or(|own| own == id))
    }
}

fn is_symmetric(algorithm: Algorithm) -> bool {
    matches!(
        algorithm,
        Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512
    )
}

struct KeySet {
    keys: Vec<Arc<IssuerKey>>,
    read: Instant,
}

/// The keys of one issuer.
pub(crate) struct Keys {
    client: HttpClient,
    issuer: String,
    url: Option<Url>,
    current: RwLock<Option<Arc<KeySet>>>,
    /// Time at which an unknown key last caused a request. The lock is held during requests to the
    /// issuer.
    flight: Mutex<Option<Instant>>,
}

/// The issuer cannot be asked now, so that it is unknown whether the key exists.
pub(crate) struct Unavailable;

impl Keys {
    /// The keys of `issuer`, read from `url` or from the `jwks_uri` of the issuer's metadata.
    pub(crate) fn new(client: HttpClient, issuer: String, url: Option<Url>) -> Self {
        Self {
            client,
            issuer,
            url,
            current: RwLock::default(),
            flight: Mutex::default(),
        }
    }

    /// Reads the keys, and then again at intervals.
    pub(crate) async fn keep_fresh(self: Arc<Self>) {
        let mut told = String::new();
        loop {
            let outcome = {
                let _flight = self.flight.lock().await;
                self.read().await
            };
            match outcome {
                Ok(count) if !told.is_empty() => {
                    tracing::info!(
                        "the keys of {} can be read again; there are {count}",
                        self.issuer
                    );
                    told.clear();
                }
                Ok(_) => {}
                Err(problem) if problem != told => {
                    tracing::warn!("the keys of {} cannot be read: {problem}", self.issuer);
                    told = problem;
                }
                Err(_) => {}
            }
            tokio::time::sleep(if self.current().is_some() {
                REFRESH_INTERVAL
            } else {
                RETRY_INTERVAL
            })
            .await;
        }
    }

    /// Returns the keys that may have signed a token with this header; empty if the issuer has no
    /// such key.
    ///
    /// # Errors
    /// [`Unavailable`] if no keys are known, or if the issuer was asked too recently to be asked
    /// again: the token may be valid.
    pub(crate) async fn find(
        self: &Arc<Self>,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<Vec<Arc<IssuerKey>>, Unavailable> {
        let suitable = |set: &KeySet| -> Vec<Arc<IssuerKey>> {
            set.keys
                .iter()
                .filter(|key| key.suits(id, algorithm))
                .cloned()
                .collect()
        };
        let seen = self.current();
        if let Some(set) = &seen {
            let found = suitable(set);
            let is_named = || id.is_some() && set.keys.iter().any(|key| key.id.as_deref() == id);
            // A known key is used only with its own algorithms, and the issuer publishes no
            // symmetric keys.
            if !found.is_empty() || is_named() || is_symmetric(algorithm) {
                return Ok(found);
            }
        }
        // In a task of its own, so that it continues when the client that caused it disconnects.
        let (keys, before) = (Arc::clone(self), seen.map(|set| set.read));
        let _ = tokio::spawn(async move { keys.ask_again(before).await }).await;
        let set = self.current().ok_or(Unavailable)?;
        let found = suitable(&set);
        if found.is_empty() && before == Some(set.read) {
            return Err(Unavailable);
        }
        Ok(found)
    }

    /// Asks the issuer again, unless another task has just done so.
    async fn ask_again(&self, seen: Option<Instant>) {
        let mut asked = self.flight.lock().await;
        let is_newer = self.current().map(|set| set.read) != seen;
        let interval = if seen.is_some() {
            UNKNOWN_INTERVAL
        } else {
            RETRY_INTERVAL
        };
        if is_newer || asked.is_some_and(|at| at.elapsed() < interval) {
            return;
        }
        *asked = Some(Instant::now());
        if let Err(problem) = self.read().await {
            tracing::warn!("the keys of {} cannot be read: {problem}", self.issuer);
        }
    }

    /// Returns true if the issuer has given its keys once.
    pub(crate) fn were_read(&self) -> bool {
        self.current.read().is_some()
    }

    fn current(&self) -> Option<Arc<KeySet>> {
        let set = self.current.read().clone();
        set.filter(|set| set.read.elapsed() < MAX_KEY_AGE)
    }

    async fn read(&self) -> Result<usize, String> {
        let url = match &self.url {
            Some(url) => url.clone(),
            None => self.discover().await?,
        };
        let document = self.get(&url).await?;
        let keys = document
            .get("keys")
            .and_then(Value::as_array)
            .ok_or_else(|| format!("{url} has no `keys`"))?;
        let keys: Vec<Arc<IssuerKey>> = keys
            .iter()
            .filter_map(IssuerKey::new)
            .map(Arc::new)
            .collect();
        if keys.is_empty() {
            return Err(format!(
                "{url} has no key that verifies signatures (RSA, P-256, P-384 or Ed25519)"
            ));
        }
        let count = keys.len();
        let set = KeySet {
            keys,
            read: Instant::now(),
        };
        *self.current.write() = Some(Arc::new(set));
        Ok(count)
    }

    /// The `jwks_uri` of the issuer's metadata.
    async fn discover(&self) -> Result<Url, String> {
        let issuer = Url::parse(&self.issuer)
            .map_err(|error| format!("the issuer is not a valid URL: {error}"))?;
        let mut problems = Vec::new();
        for url in metadata_urls(&issuer) {
            match self.get(&url).await {
                Ok(document) => {
                    return self
                        .keys_url(&issuer, &document)
                        .map_err(|problem| format!("{}: {problem}", redacted(&url)));
                }
                Err(problem) => problems.push(problem),
            }
        }
        Err(problems.join("; "))
    }

    fn keys_url(&self, issuer: &Url, document: &Value) -> Result<Url, String> {
        // RFC 8414 section 3.3: the metadata must name the issuer that was asked for.
        match document.get("issuer").and_then(Value::as_str) {
            Some(named) if named == self.issuer => {}
            Some(named) => {
                return Err(format!(
                    "it names the issuer `{named}`; --oauth-issuer must be the same to the letter"
                ));
            }
            None => return Err("it names no issuer".into()),
        }
        let url = document
            .get("jwks_uri")
            .and_then(Value::as_str)
            .and_then(|text| Url::parse(text).ok())
            .ok_or("it has no `jwks_uri`")?;
        // An issuer on loopback may use plain HTTP, and so may its keys.
        if url.scheme() != "https" && url.scheme() != issuer.scheme() {
            return Err("its `jwks_uri` is not https".into());
        }
        Ok(url)
    }

    async fn get(&self, url: &Url) -> Result<Value, String> {
        let request = Fetch::get(url.clone(), MAX_KEY_SET_BYTES, FETCH_TIMEOUT);
        let reply = request.send(&self.client).await;
        let reply = reply.map_err(|error| format!("{}: {error}", redacted(url)))?;
        if reply.status != http::StatusCode::OK {
            return Err(format!("{} answers {}", redacted(url), reply.status));
        }
        serde_json::from_slice(&reply.body)
            .map_err(|error| format!("{} is not valid JSON: {error}", redacted(url)))
    }
}
