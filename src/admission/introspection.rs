//! Introspection of access tokens that are not JWTs (RFC 7662): the authorization server says
//! whether a token is active, and its claims.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, FutureExt as _, Shared};
use lru::LruCache;
use parking_lot::Mutex;
use secrecy::SecretString;
use serde_json::Value;
use tokio::time::timeout;
use url::Url;

use super::claims::{Claims, TokenError, since_epoch};
use super::introspection_turns::QuestionTurns;
use super::limits::Stranger;
use crate::caller::ClientKey;
use crate::credentials::tokens::oauth_client::{Endpoint, OauthClient, PartsDigest};
use crate::credentials::tokens::token_endpoint::TokenEndpoint;
use crate::json::JsonObject;
use crate::outbound::HttpClient;

/// Number of tokens whose answers are kept; the least recently used goes.
const MAX_TOKENS: NonZeroUsize = NonZeroUsize::new(8192).unwrap();
/// Longest time for which an active token counts as active without another question.
const MAX_AGE: Duration = Duration::from_mins(1);
/// Time for which a token that is not active is refused without another question.
const REFUSAL_AGE: Duration = Duration::from_secs(10);
/// Time for which a token is refused after a question that was not answered.
const FAILURE_AGE: Duration = Duration::from_secs(1);
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
    Active(Arc<JsonObject>),
    /// The token is not valid.
    Inactive,
    /// The endpoint did not answer as it should.
    Unknown,
}

type TokenDigest = [u8; 32];

/// An answer about a token that is there, or on its way.
type TokenAnswer = Shared<BoxFuture<'static, Introspected>>;

/// Asks the introspection endpoint, once at a time for each token.
pub(crate) struct Introspection {
    endpoint: TokenEndpoint,
    turns: Arc<QuestionTurns>,
    /// By a digest: the tokens themselves are not kept.
    kept: Mutex<LruCache<TokenDigest, TokenAnswer>>,
    /// Tokens that were active when they were last asked about.
    active: Mutex<LruCache<TokenDigest, ()>>,
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
            turns: Arc::default(),
            kept: Mutex::new(LruCache::new(MAX_TOKENS)),
            active: Mutex::new(LruCache::new(MAX_TOKENS)),
        })
    }

    /// Returns the claims of a token that a client shows. A question about a token that was not
    /// active before counts for its address.
    ///
    /// # Errors
    /// [`TokenError::Invalid`] if it is not active, [`TokenError::Unavailable`] if that is not
    /// known now, [`TokenError::TooOften`] if the address may not ask now.
    pub(super) async fn claims(
        self: &Arc<Self>,
        token: &str,
        client: &mut Stranger<'_>,
    ) -> Result<Arc<JsonObject>, TokenError> {
        let key = PartsDigest::default().with(Some(token)).finish();
        let kept = useful(&mut self.kept.lock(), &key);
        let answer = if let Some(answer) = kept {
            answer
        } else {
            let was_active = self.active.lock().contains(&key);
            if !was_active {
                client.count().await.map_err(TokenError::TooOften)?;
            }
            self.begin(key, token, (!was_active).then_some(client.address))
        };
        match answer.await.state {
            TokenState::Active(claims) => Ok(claims),
            TokenState::Inactive => Err(TokenError::Invalid("the token is not active")),
            TokenState::Unknown => Err(TokenError::Unavailable),
        }
    }

    /// Asks about a token unless another request does already. `address` is that of a token that
    /// was not active before.
    fn begin(
        self: &Arc<Self>,
        key: TokenDigest,
        token: &str,
        address: Option<ClientKey>,
    ) -> TokenAnswer {
        let mut kept = self.kept.lock();
        if let Some(answer) = useful(&mut kept, &key) {
            return answer;
        }
        let (this, token) = (Arc::clone(self), SecretString::from(token));
        // In a task of its own, so that it continues when the client that caused it disconnects.
        let task = tokio::spawn(async move {
            let answer = this.ask(&token, address).await;
            match answer.state {
                TokenState::Active(_) => drop(this.active.lock().put(key, ())),
                TokenState::Inactive => drop(this.active.lock().pop(&key)),
                TokenState::Unknown => {}
            }
            answer
        });
        let answer = async { task.await.unwrap_or_else(|_| Introspected::unknown()) }
            .boxed()
            .shared();
        kept.put(key, answer.clone());
        answer
    }

    async fn ask(&self, token: &SecretString, address: Option<ClientKey>) -> Introspected {
        use secrecy::ExposeSecret as _;
        let asking = async {
            let _turn = self.turns.wait(address).await?;
            let parameters = [
                ("token", token.expose_secret()),
                ("token_type_hint", "access_token"),
            ];
            self.endpoint.introspect(&parameters).await
        };
        let Ok(Some(body)) = timeout(QUESTION_TIMEOUT, asking).await else {
            return Introspected::unknown();
        };
        let Ok(Claims(claims)) = serde_json::from_slice::<Claims>(&body) else {
            tracing::warn!(
                "the introspection endpoint did not answer with an object of JSON in which each name is there once"
            );
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
        let left =
            left.map(|exp| Duration::try_from_secs_f64(exp - since_epoch()).unwrap_or_default());
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

/// Returns the answer about a token, unless it has ended.
fn useful(kept: &mut LruCache<TokenDigest, TokenAnswer>, key: &TokenDigest) -> Option<TokenAnswer> {
    let answer = kept.get(key)?;
    let is_useful = answer
        .peek()
        .is_none_or(|answer| Instant::now() < answer.until);
    is_useful.then(|| answer.clone())
}
