//! Acting as the user: the client's verified access token is exchanged for one of the API (RFC
//! 8693, or the on-behalf-of flow of Microsoft Entra, which is RFC 7523 section 2.1).
//!
//! No call falls back to another credential: without a user, or without a token, nothing is sent.
//! The tokens are kept in this process alone, and each is asked for once at a time.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use lru::LruCache;
use parking_lot::Mutex;
use secrecy::ExposeSecret as _;
use tokio::time::timeout;

use super::access_token::{AccessToken, Grant, Granted, seconds};
use super::oauth_client::{ExchangeOptions, GrantKind, PartsDigest};
use super::token_endpoint::{TokenEndpoint, TokenRefusal};
use crate::call_error::{CallError, SignInChallenge};
use crate::caller::{Caller, ClientKey, SubjectToken, may_take_place};
use crate::credentials::{Flight, begin_flight};
use crate::observe::call::{ExchangeRecord, note};
use crate::outbound::breaker::{Breaker, Outcome};
use crate::{observe, text};

/// RFC 8693 section 3.
const TOKEN_TYPES: [&str; 2] = [
    "urn:ietf:params:oauth:token-type:access_token",
    "urn:ietf:params:oauth:token-type:jwt",
];
/// Time limit of one request for a token.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
/// Number of failures in a row after which the endpoint is not asked for some time.
const MAX_FAILURES: u32 = 5;
/// Time for which it is not asked then.
const FAILURE_PAUSE: Duration = Duration::from_secs(5);
/// Lifetime of a token that does not declare one.
const USUAL_LIFETIME: Duration = Duration::from_mins(5);
/// Beginning of a refusal before the request.
const NOTHING_SENT: &str = "nothing was sent, because ";
/// A token is not used for the last moments of its lifetime.
const EXPIRY_MARGIN: Duration = Duration::from_secs(15);

/// Exchanges the tokens of users for those of one security scheme.
pub(crate) struct TokenExchange {
    pub(crate) source: Arc<ExchangeSource>,
    /// `scope` of the request.
    scope: Option<Box<str>>,
    /// All that decides which token is given, but for the user's.
    key: PartsDigest,
}

pub(crate) struct ExchangeSource {
    pub(crate) endpoint: TokenEndpoint,
    options: ExchangeOptions,
    /// The API, and its tenant.
    owner: [Option<String>; 2],
    breaker: Breaker,
}

impl TokenExchange {
    /// Asks for tokens with that scope at an endpoint; `owner` are the names of the API and of its
    /// tenant.
    pub(crate) fn new(
        endpoint: TokenEndpoint,
        options: ExchangeOptions,
        scope: Option<&str>,
        owner: [Option<String>; 2],
    ) -> Self {
        let breaker = Breaker::new(MAX_FAILURES, FAILURE_PAUSE);
        let source = ExchangeSource {
            endpoint,
            options,
            owner,
            breaker,
        };
        Self::with_scope(Arc::new(source), scope)
    }

    fn with_scope(source: Arc<ExchangeSource>, scope: Option<&str>) -> Self {
        let options = &source.options;
        let kind = match options.grant {
            GrantKind::TokenExchange => "token-exchange",
            GrantKind::OnBehalfOf => "on-behalf-of",
        };
        let owner = source.owner.iter().map(Option::as_deref);
        let texts = [Some(kind), options.subject_token_type.as_deref(), scope];
        let lists = [&options.audiences, &options.resources].into_iter();
        let lists = lists.flat_map(|list| {
            let items = list.iter().map(|item| Some(item.as_str()));
            items.chain([None])
        });
        let parts = owner.chain(texts).chain(lists);
        let key = parts.fold(source.endpoint.client.digest(), PartsDigest::with);
        Self {
            scope: scope.map(Into::into),
            key,
            source,
        }
    }

    /// The same for an operation that needs these scopes, if each operation gets a token of its own
    /// scopes.
    pub(crate) fn for_operation(self: Arc<Self>, scopes: &[String]) -> Arc<Self> {
        if !self.source.options.operation_scopes {
            return self;
        }
        let mut scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        scopes.sort_unstable();
        scopes.dedup();
        let scope = (!scopes.is_empty()).then(|| scopes.join(" "));
        Arc::new(Self::with_scope(Arc::clone(&self.source), scope.as_deref()))
    }

    /// Returns the scheme and its scopes that are requested.
    pub(crate) fn asked(&self) -> (&str, Option<&str>) {
        (&self.source.endpoint.client.scheme, self.scope.as_deref())
    }

    /// Returns an identity of the tokens that a caller gets.
    fn identity(&self, caller: &Caller) -> [u8; 32] {
        self.key
            .clone()
            .with(caller.subject().map(|subject| subject.expose()))
            .finish()
    }

    /// The API's token for a caller, other than a `refused` one. Asked for once for all calls that
    /// need the same.
    ///
    /// # Errors
    /// [`CallError::Credential`] if the caller is not a user, or the endpoint gives no token;
    /// [`CallError::SignIn`] if the user can mend that.
    pub(crate) async fn token(
        &self,
        caller: &Caller,
        refused: Option<&Arc<AccessToken>>,
    ) -> Result<Arc<AccessToken>, CallError> {
        let (scheme, scope) = self.asked();
        let Some(subject) = caller.subject() else {
            let scheme = text::one_line(scheme);
            let why = format!(
                "this operation is called as the user (security scheme `{scheme}`), and the client's token is not one of a user"
            );
            return Err(sign_in(NOTHING_SENT, &why, None));
        };
        let user = caller.key();
        let begin = if refused.is_some() {
            "the API refused the user's token, and "
        } else {
            NOTHING_SENT
        };
        let expired = || {
            let challenge = SignInChallenge {
                user,
                claims: None,
                is_expired: true,
            };
            sign_in(begin, "the user's token has ended", Some(challenge))
        };
        if subject.lifetime().is_none() {
            return Err(expired());
        }
        let started = Instant::now();
        let (flight, is_cached) = find_or_begin(self.identity(caller), user, refused, || {
            let (source, subject) = (Arc::clone(&self.source), Arc::clone(subject));
            let scope = self.scope.clone();
            let exchange = async move { source.exchange(&subject, scope.as_deref(), user).await };
            begin_flight(exchange, || {
                let why = "the exchange of the user's token failed inside this server";
                Err(ExchangeFailure::OfEndpoint(CallError::Setting(why.into())))
            })
        });
        let outcome = flight.await;
        if let Some(metrics) = observe::metrics() {
            let judged = match &outcome {
                Ok(_) if is_cached => "cached",
                Ok(_) => "ok",
                Err(ExchangeFailure::OfUser { .. }) => "refused",
                Err(ExchangeFailure::OfEndpoint(_)) => "failed",
            };
            metrics.exchanged(judged, started.elapsed());
        }
        note(|record| {
            record.exchange = Some(ExchangeRecord {
                scheme: scheme.to_owned(),
                scope: scope.map(str::to_owned),
                is_cached,
            });
        });
        let token = outcome.map_err(|failure| match failure {
            ExchangeFailure::OfEndpoint(error) => error,
            ExchangeFailure::OfUser { why, challenge, .. } => sign_in(begin, why, challenge),
        })?;
        // The exchange may have taken a while.
        subject.lifetime().map(|_| token).ok_or_else(expired)
    }
}

impl ExchangeSource {
    /// The grant with a user's token.
    fn grant(&self, subject: &SubjectToken) -> Grant {
        let token = subject.expose().into();
        match self.options.grant {
            GrantKind::TokenExchange => {
                let kind = self.options.subject_token_type.as_deref();
                Grant::TokenExchange {
                    subject_token: token,
                    subject_token_type: kind.unwrap_or(TOKEN_TYPES[0]).to_owned(),
                }
            }
            GrantKind::OnBehalfOf => Grant::OnBehalfOf(token),
        }
    }

    fn failed(&self, why: &str) -> ExchangeFailure {
        ExchangeFailure::OfEndpoint(self.endpoint.failure(why))
    }

    /// Asks the endpoint once.
    async fn exchange(
        &self,
        subject: &SubjectToken,
        scope: Option<&str>,
        user: ClientKey,
    ) -> Result<Arc<AccessToken>, ExchangeFailure> {
        let Ok(permit) = self.breaker.admit() else {
            return Err(self.failed("the token endpoint failed several times in a row and is left alone for a few seconds"));
        };
        let started = Instant::now();
        let grant = self.grant(subject);
        let mut parameters = Vec::new();
        if self.options.grant == GrantKind::TokenExchange {
            let audiences = self.options.audiences.iter();
            parameters.extend(audiences.map(|audience| ("audience", audience.as_str())));
            let resources = self.options.resources.iter();
            parameters.extend(resources.map(|resource| ("resource", resource.as_str())));
        }
        parameters.extend(scope.map(|scope| ("scope", scope)));
        let asked = timeout(ATTEMPT_TIMEOUT, self.endpoint.ask(&grant, &parameters)).await;
        let asked = asked.unwrap_or(Err(TokenRefusal::Unreachable(
            "the token endpoint took too long",
        )));
        // One user's token may be what an endpoint fails at; it is dead only if it says so, or
        // nothing.
        permit.settle(match &asked {
            Err(TokenRefusal::Unreachable(_)) => Outcome::Failure,
            Err(TokenRefusal::Refused { status, .. }) if matches!(status.as_u16(), 502..=504) => {
                Outcome::Failure
            }
            Ok(_) | Err(_) => Outcome::Success,
        });
        let granted = asked.map_err(|refusal| self.explain(&refusal, user))?;
        self.read(&granted, subject, started)
    }

    /// The token that was granted. It ends with the user's, and a moment before its own end.
    fn read(
        &self,
        granted: &Granted,
        subject: &SubjectToken,
        started: Instant,
    ) -> Result<Arc<AccessToken>, ExchangeFailure> {
        let kind = granted.issued_token_type.as_deref();
        if self.options.grant == GrantKind::TokenExchange
            && kind.is_some_and(|kind| !TOKEN_TYPES.contains(&kind))
        {
            return Err(self.failed("the token endpoint gives a token that is not an access token"));
        }
        let lifetime = match &granted.expires_in {
            None => USUAL_LIFETIME,
            // What cannot be read is not kept.
            Some(value) => seconds(value).unwrap_or_default(),
        };
        let left = lifetime.min(subject.lifetime().unwrap_or_default());
        let until = started + left.saturating_sub(EXPIRY_MARGIN);
        let token = AccessToken::new(
            granted.access_token.expose_secret(),
            Some(subject.expose()),
            Some([until, until]),
        );
        token.map(Arc::new).ok_or_else(|| {
            self.failed("the token endpoint's answer holds a token that no header can")
        })
    }

    /// Explains a refusal: the user can resolve some, the operator the others.
    fn explain(&self, refusal: &TokenRefusal, user: ClientKey) -> ExchangeFailure {
        let (code, claims) = match refusal {
            TokenRefusal::Refused {
                code: Some(code),
                claims,
                status,
            } if !status.is_server_error() => (*code, claims),
            _ => ("", &None),
        };
        let is_exchange = self.options.grant == GrantKind::TokenExchange;
        let (why, renews) = match code {
            "invalid_grant" => (
                "the token endpoint does not take the user's token (invalid_grant)",
                true,
            ),
            "interaction_required" | "login_required" => {
                ("the token endpoint asks for the user", true)
            }
            "consent_required" => (
                "the user has not agreed to this use of the API (consent_required)",
                false,
            ),
            // RFC 8693 section 2.2.2: the code of a subject token that is not valid.
            "invalid_request" if is_exchange => (
                "the token endpoint does not take the user's token (invalid_request)",
                false,
            ),
            _ => return self.failed(&refusal.describe()),
        };
        let challenge = renews.then(|| SignInChallenge {
            user,
            claims: claims.clone(),
            is_expired: false,
        });
        let at = Instant::now();
        ExchangeFailure::OfUser { why, challenge, at }
    }
}

fn sign_in(begin: &str, why: &str, challenge: Option<SignInChallenge>) -> CallError {
    CallError::SignIn {
        sentence: format!("{begin}{why}; the user must sign in to this server again, or agree")
            .into(),
        challenge,
    }
}

/// The tokens that are kept; the least recently used goes.
const MAX_TOKENS: usize = 8192;
/// Time for which a user whose token was refused gets the same answer.
const REFUSAL_PAUSE: Duration = Duration::from_secs(15);

/// An exchange that all calls for the same token wait for, and its outcome.
type ExchangeFlight = Flight<Result<Arc<AccessToken>, ExchangeFailure>>;

/// Reason for which no token was given.
#[derive(Clone)]
enum ExchangeFailure {
    /// The endpoint refused the user, who can mend it.
    OfUser {
        /// The end of a sentence.
        why: &'static str,
        challenge: Option<SignInChallenge>,
        at: Instant,
    },
    /// The operator must mend it.
    OfEndpoint(CallError),
}

struct Exchanged {
    user: ClientKey,
    flight: ExchangeFlight,
}

impl Exchanged {
    /// Returns true if the entry can answer a call: its exchange is in progress, or its outcome
    /// still counts.
    fn is_useful(&self, refused: Option<&Arc<AccessToken>>) -> bool {
        match self.flight.peek() {
            None => true,
            Some(Ok(token)) => {
                token.is_good(Instant::now())
                    && refused.is_none_or(|refused| !Arc::ptr_eq(refused, token))
            }
            Some(Err(ExchangeFailure::OfUser { at, .. })) => at.elapsed() < REFUSAL_PAUSE,
            Some(Err(ExchangeFailure::OfEndpoint(_))) => false,
        }
    }
}

/// The tokens of this process, and how many of them each user has.
struct ExchangedTokens {
    tokens: LruCache<[u8; 32], Exchanged>,
    by_user: HashMap<ClientKey, usize>,
}

static TOKENS: LazyLock<Mutex<ExchangedTokens>> = LazyLock::new(|| {
    Mutex::new(ExchangedTokens {
        tokens: LruCache::unbounded(),
        by_user: HashMap::new(),
    })
});

/// The exchange for that key, and whether it was there before; `begin` starts one. A user has at
/// most half of the places that others leave free.
fn find_or_begin(
    key: [u8; 32],
    user: ClientKey,
    refused: Option<&Arc<AccessToken>>,
    begin: impl FnOnce() -> ExchangeFlight,
) -> (ExchangeFlight, bool) {
    let mut kept = TOKENS.lock();
    if let Some(known) = kept.tokens.get(&key)
        && known.is_useful(refused)
    {
        return (known.flight.clone(), true);
    }
    let flight = begin();
    let exchanged = Exchanged {
        user,
        flight: flight.clone(),
    };
    kept.insert(key, exchanged);
    (flight, false)
}

impl ExchangedTokens {
    fn insert(&mut self, key: [u8; 32], exchanged: Exchanged) {
        self.remove(&key);
        let user = exchanged.user;
        let own = self.by_user.get(&user).copied().unwrap_or_default();
        if !may_take_place(own, self.tokens.len(), MAX_TOKENS) {
            let mut oldest = self.tokens.iter().rev();
            let oldest = oldest.find(|(_, known)| own == 0 || known.user == user);
            if let Some(key) = oldest.map(|(key, _)| *key) {
                self.remove(&key);
            }
        }
        *self.by_user.entry(user).or_default() += 1;
        self.tokens.push(key, exchanged);
    }

    fn remove(&mut self, key: &[u8; 32]) {
        let Some(removed) = self.tokens.pop(key) else {
            return;
        };
        if let Some(count) = self.by_user.get_mut(&removed.user) {
            *count -= 1;
            if *count == 0 {
                self.by_user.remove(&removed.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn pending() -> ExchangeFlight {
        std::future::pending().boxed().shared()
    }

    #[test]
    fn one_user_leaves_places_for_others_and_the_oldest_goes() {
        let mut kept = ExchangedTokens {
            tokens: LruCache::unbounded(),
            by_user: HashMap::new(),
        };
        let insert = |kept: &mut ExchangedTokens, user: u64, number: u32| {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&user.to_be_bytes());
            key[8..12].copy_from_slice(&number.to_be_bytes());
            let user = ClientKey(user);
            kept.insert(
                key,
                Exchanged {
                    user,
                    flight: pending(),
                },
            );
        };
        for number in 0..20_000 {
            insert(&mut kept, 1, number);
        }
        assert_eq!(kept.tokens.len(), MAX_TOKENS / 2);
        for user in 2..20_000 {
            insert(&mut kept, user, 0);
        }
        assert_eq!(kept.tokens.len(), MAX_TOKENS);
        assert_eq!(kept.by_user.values().sum::<usize>(), MAX_TOKENS);
    }
}
