//! The public keys of an OAuth issuer (JWKS, RFC 7517), and their discovery (RFC 8414, `OpenID`
//! Connect Discovery). The keys are cached, read again every [`REFRESH_INTERVAL`] and when a token
//! names an unknown key, and kept while the issuer is unavailable.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use parking_lot::RwLock;
use serde::Deserialize as _;
use serde_json::Value;
use tokio::sync::Mutex;
use url::Url;

use super::claims::Refusal;
use crate::credentials::tokens::issuer_metadata::metadata_urls;
use crate::outbound::HttpClient;
use crate::outbound::fetch::Fetch;
use crate::spec::document::source::redacted;

/// Interval at which the keys are read again.
const REFRESH_INTERVAL: Duration = Duration::from_mins(10);
/// Interval of requests to the issuer while no key is known, and the shortest one of those because
/// of unknown keys in tokens: a key may have been replaced, but any client can send such a token.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
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
        let jwk = Jwk::deserialize(jwk).ok()?;
        let common = &jwk.common;
        let (usage, operations) = (&common.public_key_use, &common.key_operations);
        let verifies = usage.iter().all(|usage| *usage == PublicKeyUse::Signature)
            && operations
                .iter()
                .all(|operations| operations.contains(&KeyOperations::Verify));
        let mut algorithms = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => RSA.to_vec(),
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
                vec![Algorithm::ES256]
            }
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P384 => {
                vec![Algorithm::ES384]
            }
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
                vec![Algorithm::EdDSA]
            }
            _ => return None,
        };
        if let Some(named) = common.key_algorithm.map(|algorithm| algorithm.to_string()) {
            algorithms.retain(|algorithm| named == format!("{algorithm:?}"));
        }
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

pub(super) struct KeySet {
    keys: Vec<Arc<IssuerKey>>,
    read: Instant,
}

/// The keys of one issuer.
pub(crate) struct Keys {
    client: HttpClient,
    issuer: String,
    url: Option<Url>,
    pub(super) current: RwLock<Option<Arc<KeySet>>>,
    /// Time at which an unknown key last caused a request. The lock is held during requests to the
    /// issuer.
    flight: Mutex<Option<Instant>>,
}

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
            let flight = self.flight.lock().await;
            let outcome = self.read().await;
            drop(flight);
            let issuer = &self.issuer;
            match outcome {
                Ok(count) if !told.is_empty() => {
                    tracing::info!("the keys of {issuer} can be read again; there are {count}");
                    told.clear();
                }
                Err(problem) if problem != told => {
                    tracing::warn!("the keys of {issuer} cannot be read: {problem}");
                    told = problem;
                }
                Ok(_) | Err(_) => {}
            }
            let pause = self.current().map_or(RETRY_INTERVAL, |_| REFRESH_INTERVAL);
            tokio::time::sleep(pause).await;
        }
    }

    /// Returns the keys that may have signed a token with this header; empty if the issuer has no
    /// such key.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] if no keys are known, or if the issuer was asked too recently to be
    /// asked again: the token may be valid.
    pub(super) async fn find(
        self: &Arc<Self>,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<Vec<Arc<IssuerKey>>, Refusal> {
        let suitable = |set: &KeySet| -> Vec<_> {
            let keys = set.keys.iter();
            keys.filter(|key| key.suits(id, algorithm))
                .cloned()
                .collect()
        };
        let seen = self.current();
        if let Some(set) = &seen {
            let found = suitable(set);
            let is_named = || id.is_some() && set.keys.iter().any(|key| key.id.as_deref() == id);
            let is_symmetric = matches!(
                algorithm,
                Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512
            );
            // A known key is used only with its own algorithms, and the issuer publishes no
            // symmetric keys.
            if !found.is_empty() || is_named() || is_symmetric {
                return Ok(found);
            }
        }
        // In a task of its own, so that it continues when the client that caused it disconnects.
        let (keys, before) = (Arc::clone(self), seen.map(|set| set.read));
        let _ = tokio::spawn(async move { keys.ask_again(before).await }).await;
        let set = self.current().ok_or(Refusal::Unavailable)?;
        let found = suitable(&set);
        if found.is_empty() && before == Some(set.read) {
            return Err(Refusal::Unavailable);
        }
        Ok(found)
    }

    /// Asks the issuer again, unless another task has just done so.
    async fn ask_again(&self, seen: Option<Instant>) {
        let mut asked = self.flight.lock().await;
        let is_newer = self.current().map(|set| set.read) != seen;
        if is_newer || asked.is_some_and(|at| at.elapsed() < RETRY_INTERVAL) {
            return;
        }
        *asked = Some(Instant::now());
        if let Err(problem) = self.read().await {
            tracing::warn!("the keys of {} cannot be read: {problem}", self.issuer);
        }
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
        let keys = keys.iter().filter_map(IssuerKey::new);
        let keys: Vec<_> = keys.map(Arc::new).collect();
        if keys.is_empty() {
            return Err(format!(
                "{url} has no key that verifies signatures (RSA, P-256, P-384 or Ed25519)"
            ));
        }
        let (count, read) = (keys.len(), Instant::now());
        *self.current.write() = Some(Arc::new(KeySet { keys, read }));
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
        let shown = redacted(url);
        let reply = request.send(&self.client).await;
        let reply = reply.map_err(|error| format!("{shown}: {error}"))?;
        if reply.status != http::StatusCode::OK {
            return Err(format!("{shown} answers {}", reply.status));
        }
        serde_json::from_slice(&reply.body)
            .map_err(|error| format!("{shown} is not valid JSON: {error}"))
    }
}
