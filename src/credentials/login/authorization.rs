//! The authorization code flow with PKCE on a loopback address (RFC 6749 section 4.1, RFC 7636, RFC
//! 8252, RFC 9207).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use url::{Url, form_urlencoded};

use crate::credentials::tokens::grant::Grant;
use crate::text;

/// Scope of refresh tokens (`OpenID` Connect Core 1.0 section 11).
pub(super) const OFFLINE_ACCESS: &str = "offline_access";

/// A request that the browser carries to the authorization endpoint.
pub(crate) struct AuthorizationRequest {
    url: Url,
    redirect: String,
    state: SecretString,
    verifier: SecretString,
    issuer: Option<String>,
    /// True if each answer names the issuer.
    needs_issuer: bool,
    /// The scopes that it asks for.
    pub(super) scopes: String,
}

/// What the request asks for.
pub(super) struct AuthorizationParameters<'p> {
    pub(super) client_id: &'p str,
    pub(super) scopes: &'p str,
    pub(super) audience: Option<&'p str>,
    /// The issuer, and true if it names itself in each answer.
    pub(super) issuer: Option<(&'p str, bool)>,
}

/// The answer of the authorization server.
pub(crate) enum AuthorizationAnswer {
    /// The code.
    Code(SecretString),
    /// A refusal, in words for the user.
    Refused(String),
}

impl AuthorizationRequest {
    /// A request to an authorization endpoint, whose answer goes to `redirect`.
    ///
    /// # Errors
    /// The system has no randomness.
    pub(super) fn new(
        endpoint: &Url,
        redirect: &str,
        asked: &AuthorizationParameters<'_>,
    ) -> Result<Self, String> {
        let (state, verifier) = (random_text()?, random_text()?);
        let mut url = endpoint.clone();
        url.set_fragment(None);
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.expose_secret()));
        let mut query = url.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", asked.client_id)
            .append_pair("redirect_uri", redirect)
            .append_pair("state", state.expose_secret())
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        if !asked.scopes.is_empty() {
            query.append_pair("scope", asked.scopes);
        }
        if let Some(audience) = asked.audience {
            query.append_pair("audience", audience);
        }
        // OpenID Connect Core 1.0 section 11: without it, the scope counts for nothing.
        if asked.scopes.split(' ').any(|scope| scope == OFFLINE_ACCESS) {
            query.append_pair("prompt", "consent");
        }
        drop(query);
        Ok(Self {
            url,
            redirect: redirect.to_owned(),
            state,
            verifier,
            issuer: asked.issuer.map(|(issuer, _)| issuer.to_owned()),
            scopes: asked.scopes.to_owned(),
            needs_issuer: asked.issuer.is_some_and(|(_, names_itself)| names_itself),
        })
    }

    /// The address that the browser opens.
    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// Reads the query of an answer; `None` if it is not an answer to this request.
    pub(crate) fn read_answer(&self, query: &str) -> Option<AuthorizationAnswer> {
        let pairs: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        // RFC 6749 section 3.1: no parameter is there twice.
        let only = |name: &str| {
            let mut values = pairs
                .iter()
                .filter(|(key, _)| key == name)
                .map(|(_, value)| value.as_str());
            (values.next(), values.next().is_some())
        };
        let members = ["state", "code", "error", "iss"].map(only);
        if members.iter().any(|(_, is_twice)| *is_twice) {
            return None;
        }
        let [state, code, error, issuer] =
            members.map(|(value, _)| value.filter(|value| !value.is_empty()));
        if !bool::from(
            state?
                .as_bytes()
                .ct_eq(self.state.expose_secret().as_bytes()),
        ) {
            return None;
        }
        let refused = |why: &str| Some(AuthorizationAnswer::Refused(why.to_owned()));
        let (is_missing, is_other) = (
            issuer.is_none(),
            issuer
                .zip(self.issuer.as_deref())
                .is_some_and(|(a, b)| a != b),
        );
        match (code, error) {
            (None, None) | (Some(_), Some(_)) => None,
            _ if is_other => refused("the answer is that of another issuer (`iss`)"),
            _ if self.needs_issuer && is_missing => refused(
                "the answer does not name its issuer (`iss`), although the issuer's metadata promise it",
            ),
            (Some(code), None) => Some(AuthorizationAnswer::Code(code.into())),
            (None, Some(error)) => {
                let description = only("error_description").0.unwrap_or_default();
                let both = format!("{error} {description}");
                refused(&text::truncate(&text::one_line(both.trim()), 300))
            }
        }
    }

    /// The grant of a code.
    pub(super) fn grant(&self, code: SecretString) -> Grant {
        Grant::AuthorizationCode {
            code,
            redirect_uri: self.redirect.clone(),
            verifier: self.verifier.clone(),
        }
    }
}

/// 256 random bits (RFC 7636 section 4.1).
fn random_text() -> Result<SecretString, String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| format!("the system gives no random numbers: {error}"))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes).into())
}
