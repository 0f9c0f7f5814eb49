//! What authenticates a request: the parts of a credential that are sent as they are, and headers that
//! are created for each request, access tokens and signatures.

use std::sync::{Arc, Weak};
use std::time::Duration;

use http::StatusCode;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout_at};

use super::signatures::Signer;
use super::tokens::access_token::AccessToken;
use super::tokens::token_exchange::TokenExchange;
use super::tokens::token_source::TokenSource;
use crate::call_error::CallError;
use crate::caller::Caller;
use crate::outbound::request::Request;
use crate::redact::Redactor;
use crate::spec::Location;

/// The header of everything but a signature.
static TOKEN_HEADERS: [HeaderName; 1] = [AUTHORIZATION];

/// Makes the headers of an operation that change between requests, `Authorization` among them.
#[derive(Clone)]
pub(crate) enum Authenticator {
    /// An access token (RFC 6750).
    Token(Arc<TokenSource>),
    /// An access token of the user who calls (RFC 8693).
    Exchange(Arc<TokenExchange>),
    /// A signature of the whole request.
    Signature(Arc<Signer>),
}

impl Authenticator {
    /// The headers that it sets.
    pub(crate) fn headers(&self) -> &'static [HeaderName] {
        match self {
            Self::Signature(signer) => signer.kind().headers,
            Self::Token(_) | Self::Exchange(_) => &TOKEN_HEADERS,
        }
    }

    /// Returns a sentence about the probable cause if the API refuses what it made.
    pub(crate) fn describe_refusal(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Option<String> {
        match self {
            Self::Signature(signer) => (signer.kind().describe_refusal)(status, headers),
            Self::Token(_) | Self::Exchange(_) => None,
        }
    }

    /// The same for an operation that needs these scopes.
    pub(super) fn for_operation(self, scopes: &[String]) -> Self {
        match self {
            Self::Exchange(exchange) => Self::Exchange(exchange.for_operation(scopes)),
            Self::Token(_) | Self::Signature(_) => self,
        }
    }

    /// Values that it derives from the credentials, and that must not appear in a reply.
    pub(crate) fn secrets(&self) -> Option<Vec<u8>> {
        let pair = match self {
            Self::Token(source) => source.endpoint.client_pair(),
            Self::Exchange(exchange) => exchange.source.endpoint.client_pair(),
            Self::Signature(_) => None,
        };
        pair.map(String::into_bytes)
    }

    /// A token for a caller, other than a `refused` one; `None` if it does not send tokens.
    async fn token(
        &self,
        caller: &Caller,
        refused: Option<&Arc<AccessToken>>,
        deadline: Instant,
    ) -> Result<Option<Arc<AccessToken>>, CallError> {
        let token = match self {
            Self::Token(source) => timeout_at(deadline, source.token(refused)).await,
            Self::Exchange(exchange) => timeout_at(deadline, exchange.token(caller, refused)).await,
            Self::Signature(_) => return Ok(None),
        };
        let late = match refused {
            Some(_) => "no other access token came in time",
            None => "no access token came in time; nothing was sent",
        };
        let token = token.map_err(|_| CallError::Credential(late.into()))?;
        token.map(Some)
    }
}

/// The authentication of one call, which may take more than one request.
pub(crate) struct CallAuthentication<'c> {
    authenticator: Option<&'c Authenticator>,
    caller: &'c Caller,
    /// New tokens that the operation has refused.
    refused_tokens: &'c RefusedTokens,
    /// The current access token.
    token: Option<Arc<AccessToken>>,
    /// Redactors for tokens that the API refused during the call, and for signatures; they may
    /// appear in a reply as well.
    spent: Vec<Arc<Redactor>>,
    is_renewed: bool,
}

impl<'c> CallAuthentication<'c> {
    /// Fetches an access token if the operation needs one; `None` is an operation whose credentials
    /// never change.
    ///
    /// # Errors
    /// [`CallError::Credential`] or [`CallError::SignIn`] if no token can be had before the
    /// deadline.
    pub(crate) async fn begin(
        authenticator: Option<&'c Authenticator>,
        caller: &'c Caller,
        refused_tokens: &'c RefusedTokens,
        deadline: Instant,
    ) -> Result<Self, CallError> {
        let token = match authenticator {
            Some(authenticator) => Box::pin(authenticator.token(caller, None, deadline)).await?,
            None => None,
        };
        Ok(Self {
            authenticator,
            caller,
            refused_tokens,
            token,
            spent: Vec::new(),
            is_renewed: false,
        })
    }

    /// Sets the headers of a request that are made anew for each. Nothing else of the request changes
    /// after that but for headers of the connection and of the trace.
    ///
    /// # Errors
    /// [`CallError`] if the request cannot be signed.
    pub(crate) async fn set_headers(
        &mut self,
        request: &mut Request,
        deadline: Instant,
    ) -> Result<(), CallError> {
        if let Some(token) = &self.token {
            let authorization = token.header.clone();
            request.headers.insert(AUTHORIZATION, authorization);
        }
        if let Some(Authenticator::Signature(signer)) = self.authenticator {
            let signing = Box::pin(timeout_at(deadline, signer.sign(request)));
            let late = "the request could not be signed in time; nothing was sent";
            let signed = signing.await;
            let signed = signed.map_err(|_| CallError::Credential(late.into()))?;
            self.spent.push(signed?);
        }
        Ok(())
    }

    /// Fetches another token in place of one that a 401 refused. Returns whether
    /// the request can be sent once more with that. A call renews once, and not for an operation
    /// that refused the current token when it was new: it would refuse the next one, and an
    /// endpoint may revoke the token that all others use.
    ///
    /// # Errors
    /// [`CallError::Credential`] or [`CallError::SignIn`] if no other token can be had before the
    /// deadline.
    pub(crate) async fn on_unauthorized(&mut self, deadline: Instant) -> Result<bool, CallError> {
        let (Some(authenticator), Some(token)) = (self.authenticator, &self.token) else {
            return Ok(false);
        };
        if self.is_renewed {
            self.refused_tokens.note(token);
            return Ok(false);
        }
        if self.refused_tokens.is_like(token) {
            return Ok(false);
        }
        let fresh = authenticator.token(self.caller, Some(token), deadline);
        let fresh = fresh.await.map_err(|error| match error {
            CallError::Credential(why) => CallError::Credential(
                format!("the API answered 401 to the access token of this server, and {why}")
                    .into(),
            ),
            other => other,
        })?;
        self.spent.push(Arc::clone(&token.redactor));
        self.token = fresh;
        self.is_renewed = true;
        Ok(true)
    }

    /// The redactors for the tokens and signatures so far.
    pub(crate) fn redactors(&self) -> Vec<Arc<Redactor>> {
        let token = self.token.as_ref().map(|token| &token.redactor);
        self.spent.iter().chain(token).cloned().collect()
    }
}

/// Time for which an operation that has refused a new token gets no other one.
const RENEWAL_PAUSE: Duration = Duration::from_mins(5);
/// Each user who calls as themselves has a token.
const MAX_TOKENS: usize = 64;

/// The last new tokens that an operation refused.
#[derive(Default)]
pub(crate) struct RefusedTokens(Mutex<Vec<(Weak<AccessToken>, Instant)>>);

impl RefusedTokens {
    /// The token was fetched a moment ago because another one was refused, and was refused as well.
    fn note(&self, token: &Arc<AccessToken>) {
        let mut refused = self.0.lock();
        refused.retain(|(known, at)| at.elapsed() < RENEWAL_PAUSE && known.strong_count() > 0);
        if refused.len() == MAX_TOKENS {
            refused.remove(0);
        }
        refused.push((Arc::downgrade(token), Instant::now()));
    }

    /// Returns true if another token would be refused too.
    fn is_like(&self, token: &Arc<AccessToken>) -> bool {
        let refused = self.0.lock();
        let is_same = |known: &Weak<AccessToken>| std::ptr::eq(known.as_ptr(), Arc::as_ptr(token));
        refused
            .iter()
            .any(|(known, at)| at.elapsed() < RENEWAL_PAUSE && is_same(known))
    }
}

/// The operator's additions to a request, which are always sent as they are; no argument can
/// replace them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Injected {
    /// Headers.
    pub(crate) headers: HeaderMap,
    /// Query pairs, encoded.
    pub(crate) query: Vec<(String, String)>,
    /// Cookie pairs, encoded.
    pub(crate) cookies: Vec<String>,
}

impl Injected {
    /// The same to be shown: with `***` for headers that are marked as sensitive, and for all keys
    /// and cookies.
    pub(crate) fn masked(&self) -> Self {
        let mut shown = self.clone();
        for value in shown.headers.values_mut() {
            if value.is_sensitive() {
                *value = HeaderValue::from_static("***");
            }
        }
        for (_, value) in &mut shown.query {
            "***".clone_into(value);
        }
        for pair in &mut shown.cookies {
            *pair = format!("{}=***", pair.split('=').next().unwrap_or_default());
        }
        shown
    }

    /// Returns true if it sets the query key or the cookie of that name.
    pub(crate) fn claims(&self, location: Location, name: &str) -> bool {
        match location {
            Location::Query | Location::QueryString => {
                self.query.iter().any(|(key, _)| same_key(key, name))
            }
            Location::Cookie => self
                .cookies
                .iter()
                .any(|pair| pair.split_once('=').is_some_and(|(key, _)| key == name)),
            _ => false,
        }
    }
}

/// Returns true if an encoded key is `name`.
pub(crate) fn same_key(encoded: &str, name: &str) -> bool {
    encoded == name || percent_encoding::percent_decode_str(encoded).eq(name.bytes())
}
