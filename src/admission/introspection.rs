//! Introspection of access tokens that are not JWTs (RFC 7662): the authorization server says whether a token is active, and its claims.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, FutureExt as _, Shared};
use lru::LruCache;
use secrecy::SecretString;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use url::Url;

use super::claims::{Claims, TokenError, since_epoch};
use crate::outbound::HttpClient;
use crate::proxy::auth::tokens::oauth_client::{Endpoint, OauthClient, PartsDigest};
use crate::proxy::auth::tokens::token_endpoint::TokenEndpoint;

/// Number of tokens whose answers are kept; the least recently used goes.
const MAX_TOKENS: NonZeroUsize = NonZeroUsize::new(8192).unwrap();
/// Longest time for which an active token counts as active without another question.
const MAX_AGE: Duration = Duration::from_mins(1);
/// Time for which a token that is not active is refused without another question.
const REFUSAL_AGE: Duration = Duration::from_secs(10);
/// Time for which a token is refused after a question that was not answered.
const FAILURE_AGE: Duration = Duration::from_secs(1);
/// Number of questions at a time: tokens of strangers must not become a storm at the authorization server.
const MAX_QUESTIONS: usize = 32;
/// Time limit of a question, and of the wait for its turn.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(10);

/// The operator's settings for introspection.
#[derive(Debug, Clone)]
pub struct IntrospectionOptions {
    /// The introspection endpoint.
    pub url: Url,
    /// The client that asks it.
    pub client_id: String,
    /// The client's secret.
    pub client_secret: SecretString,
}

/// An answer, and when it ends.
#[derive(Clone)]
struct Introspected {
    state: TokenState,
    until: Instant,
}

#[derive(Clone)]
enum TokenState {
    /// The token is valid, with these claims.
    Active(Arc<Map<String, Value>>),
    /// The token is not valid.
    Inactive,
    /// The endpoint did not answer as it should.
    Unknown,
}

/// Asks the introspection endpoint, once at a time for each token.
pub(crate) struct Introspection {
    endpoint: TokenEndpoint,
    questions: Semaphore,
    /// By a digest: the tokens themselves are not kept.
    kept: Mutex<LruCache<[u8; 32], Shared<BoxFuture<'static, Introspected>>>>,
}

impl Introspection {
    pub(crate) fn new(options: IntrospectionOptions, http: HttpClient) -> Arc<Self> {
        let client = OauthClient {
            scheme: "oauth_introspection_url".into(),
            endpoint: Endpoint::Token(options.url),
            id: Some(options.client_id.into()),
            secret: Some(options.client_secret),
            signer: None,
            issuer: None,
        };
        Arc::new(Self {
            endpoint: TokenEndpoint::new(client, http),
            questions: Semaphore::new(MAX_QUESTIONS),
            kept: Mutex::new(LruCache::new(MAX_TOKENS)),
        })
    }

    /// Returns the claims of a token.
    ///
    /// # Errors
    /// [`TokenError::Invalid`] if it is not active, [`TokenError::Unavailable`] if that is not known now.
    pub(crate) async fn claims(self: &Arc<Self>, token: &str) -> Result<Arc<Map<String, Value>>, TokenError> {
        let key = PartsDigest::default().with(Some(token)).finish();
        let flight = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            let useful = kept
                .get(&key)
                .filter(|flight| flight.peek().is_none_or(|answer| Instant::now() < answer.until));
            if let Some(flight) = useful {
                flight.clone()
            } else {
                let (this, token) = (Arc::clone(self), SecretString::from(token));
                // In a task of its own, so that it continues when the client that caused it disconnects.
                let task = tokio::spawn(async move { this.ask(&token).await });
                let flight = async { task.await.unwrap_or_else(|_| Introspected::unknown()) }.boxed().shared();
                kept.put(key, flight.clone());
                flight
            }
        };
        match flight.await.state {
            TokenState::Active(claims) => Ok(claims),
            TokenState::Inactive => Err(TokenError::Invalid("the token is not active")),
            TokenState::Unknown => Err(TokenError::Unavailable),
        }
    }

    async fn ask(&self, token: &SecretString) -> Introspected {
        use secrecy::ExposeSecret as _;
        let asking = async {
            let _turn = self.questions.acquire().await.ok()?;
            let parameters = [("token", token.expose_secret()), ("token_type_hint", "access_token")];
            self.endpoint.introspect(&parameters).await
        };
        let Ok(Some(body)) = timeout(QUESTION_TIMEOUT, asking).await else {
            return Introspected::unknown();
        };
        let Ok(Claims(claims)) = serde_json::from_slice::<Claims>(&body) else {
            tracing::warn!("the introspection endpoint did not answer with an object of JSON in which each name is there once");
            return Introspected::unknown();
        };
        let now = Instant::now();
        // RFC 7662 section 2.2: a boolean.
        if claims.get("active") != Some(&Value::Bool(true)) {
            return Introspected {
                state: TokenState::Inactive,
                until: now + REFUSAL_AGE,
            };
        }
        let left = claims.get("exp").and_then(Value::as_f64);
        let left = left.map(|exp| Duration::try_from_secs_f64(exp - since_epoch()).unwrap_or_default());
        Introspected {
            until: now + left.map_or(MAX_AGE, |left| left.min(MAX_AGE)),
            state: TokenState::Active(Arc::new(claims)),
        }
    }
}

impl Introspected {
    fn unknown() -> Self {
        Self {
            state: TokenState::Unknown,
            until: Instant::now() + FAILURE_AGE,
        }
    }
}
