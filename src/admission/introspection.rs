//! Introspection of access tokens that are not JWTs (RFC 7662): the authorization server says
//! whether a token is active, and its claims.
//!
//! Some questions at the endpoint are kept for tokens that were active before, and one address has
//! few, so that made-up tokens do not delay other clients.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lru::LruCache;
use parking_lot::Mutex;
use secrecy::SecretString;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::timeout;
use url::Url;

use super::claims::{Claims, Refusal, invalid, since_epoch};
use super::limits::Stranger;
use crate::caller::ClientKey;
use crate::credentials::tokens::oauth_client::{Endpoint, OauthClient, PartsDigest};
use crate::credentials::tokens::token_endpoint::TokenEndpoint;
use crate::credentials::{Flight, begin_flight};
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

/// Answers about tokens, which are there or on their way, by a digest: the tokens themselves are not
/// kept.
type KeptAnswers = LruCache<TokenDigest, Flight<Introspected>>;

/// Asks the introspection endpoint, once at a time for each token.
pub(crate) struct Introspection {
    endpoint: TokenEndpoint,
    turns: Arc<QuestionTurns>,
    kept: Mutex<KeptAnswers>,
    /// Tokens that were active when they were last asked about, apart from `kept`, so that made-up
    /// tokens do not take their places.
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
    /// [`Refusal::InvalidToken`] if it is not active, [`Refusal::Unavailable`] if that is not
    /// known now, [`Refusal::TooOften`] if the address may not ask now.
    pub(super) async fn claims(
        self: &Arc<Self>,
        token: &str,
        client: &mut Stranger<'_>,
    ) -> Result<Arc<JsonObject>, Refusal> {
        let key = PartsDigest::default().with(Some(token)).finish();
        let kept = useful(&mut self.kept.lock(), &key);
        let answer = if let Some(answer) = kept {
            answer
        } else {
            let was_active = self.active.lock().contains(&key);
            if !was_active {
                client.count().await.map_err(Refusal::TooOften)?;
            }
            self.begin(key, token, (!was_active).then_some(client.address))
        };
        match answer.await.state {
            TokenState::Active(claims) => Ok(claims),
            TokenState::Inactive => invalid("the token is not active"),
            TokenState::Unknown => Err(Refusal::Unavailable),
        }
    }

    /// Asks about a token unless another request does already. `address` is that of a token that
    /// was not active before.
    fn begin(
        self: &Arc<Self>,
        key: TokenDigest,
        token: &str,
        address: Option<ClientKey>,
    ) -> Flight<Introspected> {
        let mut kept = self.kept.lock();
        if let Some(answer) = useful(&mut kept, &key) {
            return answer;
        }
        let (this, token) = (Arc::clone(self), SecretString::from(token));
        let asking = async move {
            let answer = this.ask(&token, address).await;
            match answer.state {
                TokenState::Active(_) => drop(this.active.lock().put(key, ())),
                TokenState::Inactive => drop(this.active.lock().pop(&key)),
                TokenState::Unknown => {}
            }
            answer
        };
        let answer = begin_flight(asking, Introspected::unknown);
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
fn useful(kept: &mut KeptAnswers, key: &TokenDigest) -> Option<Flight<Introspected>> {
    let has_ended = |answer: &Introspected| Instant::now() >= answer.until;
    let answer = kept.get(key)?;
    (!answer.peek().is_some_and(has_ended)).then(|| answer.clone())
}

/// Number of questions at a time: tokens of strangers must not become a storm at the authorization
/// server.
const MAX_QUESTIONS: usize = 32;
/// Those of them about tokens that were never active.
const MAX_NEW: usize = 24;
/// Those of them from one address.
const MAX_OF_ADDRESS: usize = 8;
/// Number of questions that wait; one more takes the place of the oldest.
const MAX_WAITING: usize = 1024;

/// Turns that are taken and waited for.
#[derive(Default)]
struct QuestionTurns(Mutex<Questions>);

#[derive(Default)]
struct Questions {
    /// The address that each question comes from; `None` if the token was active before.
    asked: Vec<Option<ClientKey>>,
    waiting: Vec<(Option<ClientKey>, oneshot::Sender<QuestionTurn>)>,
}

/// The turn of a question, until this is dropped.
struct QuestionTurn {
    turns: Arc<QuestionTurns>,
    address: Option<ClientKey>,
}

impl QuestionTurns {
    /// Waits for the turn of a token that comes from an address; `None` for a token that was active
    /// before. Returns `None` if newer questions took its place.
    async fn wait(self: &Arc<Self>, address: Option<ClientKey>) -> Option<QuestionTurn> {
        let receiver = {
            let mut questions = self.0.lock();
            if questions.may_ask(address) {
                questions.asked.push(address);
                return Some(self.turn(address));
            }
            if questions.waiting.len() >= MAX_WAITING {
                questions.waiting.remove(0);
            }
            let (sender, receiver) = oneshot::channel();
            questions.waiting.push((address, sender));
            receiver
        };
        receiver.await.ok()
    }

    fn turn(self: &Arc<Self>, address: Option<ClientKey>) -> QuestionTurn {
        let turns = Arc::clone(self);
        QuestionTurn { turns, address }
    }
}

impl Questions {
    fn may_ask(&self, address: Option<ClientKey>) -> bool {
        let new = self.asked.iter().flatten();
        let own = new.clone().filter(|asked| Some(**asked) == address);
        self.asked.len() < MAX_QUESTIONS
            && (address.is_none() || new.count() < MAX_NEW && own.count() < MAX_OF_ADDRESS)
    }

    /// Takes the next question that may be asked. The newest is first: if there are too many, all
    /// would end in the time limit in the order of their age.
    fn next(&mut self) -> Option<(Option<ClientKey>, oneshot::Sender<QuestionTurn>)> {
        self.waiting.retain(|(_, sender)| !sender.is_closed());
        let mut waiting = self.waiting.iter();
        let was_active = waiting.clone().rposition(|(address, _)| address.is_none());
        let place =
            was_active.or_else(|| waiting.rposition(|(address, _)| self.may_ask(*address)))?;
        let next = self.waiting.remove(place);
        self.asked.push(next.0);
        Some(next)
    }
}

impl Drop for QuestionTurn {
    fn drop(&mut self) {
        let next = {
            let mut questions = self.turns.0.lock();
            let mut asked = questions.asked.iter();
            if let Some(place) = asked.position(|asked| *asked == self.address) {
                questions.asked.swap_remove(place);
            }
            questions.next()
        };
        if let Some((address, sender)) = next {
            // Without a receiver, the turn ends here and goes to another.
            let _ = sender.send(self.turns.turn(address));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::outbound::{OutboundOptions, http_client};

    fn address(last: u8) -> ClientKey {
        ClientKey::at([192, 0, 2, last].into())
    }

    #[tokio::test]
    async fn p45_one_address_asks_few_questions_and_tokens_that_were_active_have_turns_of_their_own()
     {
        let turns = Arc::new(QuestionTurns::default());
        let mut held = Vec::new();
        for last in 1..=3 {
            for _ in 0..MAX_OF_ADDRESS {
                held.push(
                    turns
                        .wait(Some(address(last)))
                        .now_or_never()
                        .flatten()
                        .expect("few for one address"),
                );
            }
            assert!(turns.wait(Some(address(last))).now_or_never().is_none());
        }
        assert!(
            turns.wait(Some(address(4))).now_or_never().is_none(),
            "the rest is for tokens that were active"
        );
        for _ in MAX_NEW..MAX_QUESTIONS {
            held.push(
                turns
                    .wait(None)
                    .now_or_never()
                    .flatten()
                    .expect("a token that was active"),
            );
        }
        assert!(turns.wait(None).now_or_never().is_none());
        drop(held);
        assert!(
            turns.wait(Some(address(1))).now_or_never().is_some(),
            "all turns are free again"
        );
        assert!(turns.0.lock().asked.is_empty());
    }

    #[tokio::test]
    async fn p45_made_up_tokens_do_not_take_the_place_of_one_that_was_active() {
        let endpoint = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", endpoint.local_addr().unwrap());
        tokio::spawn(async move {
            use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
            let (mut stream, _) = endpoint.accept().await.unwrap();
            let (mut request, end) = (Vec::new(), b"token_type_hint=access_token");
            while memchr::memmem::find(&request, end).is_none() {
                assert!(stream.read_buf(&mut request).await.unwrap() > 0);
            }
            let body = r#"{"active":true}"#;
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length";
            let answer = format!("{head}: {}\r\n\r\n{body}", body.len());
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        let options = IntrospectionOptions {
            url: Url::parse(&url).unwrap(),
            client_id: "gateway".into(),
            client_secret: "s3cret".into(),
        };
        let plain = OutboundOptions {
            tls: false,
            ..OutboundOptions::default()
        };
        let introspection = Introspection::new(options, http_client(&plain).unwrap());
        let digest = |token: &str| PartsDigest::default().with(Some(token)).finish();
        let good = introspection.begin(digest("good"), "good", Some(address(1)));
        assert!(matches!(good.await.state, TokenState::Active(_)));
        for number in 0..=MAX_TOKENS.get() {
            let token = format!("made-up-{number}");
            drop(introspection.begin(digest(&token), &token, Some(address(2))));
        }
        assert!(!introspection.kept.lock().contains(&digest("good")));
        assert!(introspection.active.lock().contains(&digest("good")));
    }

    #[tokio::test]
    async fn p45_of_the_questions_that_wait_the_newest_is_first_and_their_number_is_limited() {
        let turns = Arc::new(QuestionTurns::default());
        let mut held: Vec<_> = (0..MAX_OF_ADDRESS)
            .filter_map(|_| turns.wait(Some(address(1))).now_or_never()?)
            .collect();
        let mut waiting: Vec<_> = (0..=MAX_WAITING)
            .map(|_| Box::pin(turns.wait(Some(address(1)))))
            .collect();
        for wait in &mut waiting {
            assert!(wait.as_mut().now_or_never().is_none());
        }
        held.pop();
        let newest = waiting
            .pop()
            .unwrap()
            .now_or_never()
            .flatten()
            .expect("the newest");
        assert!(
            waiting
                .remove(0)
                .now_or_never()
                .expect("the oldest is told")
                .is_none()
        );
        // Those who do not wait any more are passed over.
        waiting.truncate(1);
        drop(newest);
        assert!(waiting.remove(0).now_or_never().flatten().is_some());
    }
}
