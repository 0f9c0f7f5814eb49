//! An access token: the grants by which it is requested (RFC 6749 sections 4.3, 4.4 and 6, RFC 8693,
//! RFC 7523), the answer of a token endpoint that gives it (RFC 6749 section 5), and how long it may
//! be used.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::header::HeaderValue;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use url::form_urlencoded;

use crate::credentials::credential_part::{CredentialPart, CredentialValues};
use crate::credentials::sensitive_header;
use crate::outbound::fetch::Fetched;
use crate::redact::Redactor;
use crate::spec::media_type::{content_type, essence};
use crate::spec::{OAuthFlow, SecurityScheme};

/// An access token.
pub(crate) struct AccessToken {
    /// `Authorization` with it.
    pub(crate) header: HeaderValue,
    /// Redacts the token in replies.
    pub(crate) redactor: Arc<Redactor>,
    /// The times from when on it is renewed, and from when on it is not valid any more.
    pub(super) ends: Option<[Instant; 2]>,
}

impl AccessToken {
    /// A token that replies do not show, and neither what can renew it. `None` if no header can hold
    /// it.
    pub(super) fn new(
        access: &str,
        refresh: Option<&str>,
        ends: Option<[Instant; 2]>,
    ) -> Option<Self> {
        Some(Self {
            header: sensitive_header(format!("Bearer {access}").as_bytes()).ok()?,
            redactor: Arc::new(Redactor::for_tokens(std::iter::once(access).chain(refresh))),
            ends,
        })
    }

    pub(super) fn is_fresh(&self, now: Instant) -> bool {
        self.ends.is_none_or(|[until, _]| now < until)
    }

    /// The token itself.
    pub(super) fn bearer(&self) -> &str {
        let text = self.header.to_str().unwrap_or_default();
        text.strip_prefix("Bearer ").unwrap_or_default()
    }

    pub(super) fn is_good(&self, now: Instant) -> bool {
        self.ends.is_none_or(|[_, until]| now < until)
    }
}

/// RFC 6749 section 5.1.
#[derive(Deserialize)]
pub(crate) struct Granted {
    pub(crate) access_token: SecretString,
    pub(super) token_type: Option<String>,
    pub(crate) expires_in: Option<Value>,
    /// `None` if it is empty.
    #[serde(default, deserialize_with = "present_secret")]
    pub(crate) refresh_token: Option<SecretString>,
    /// RFC 8693 section 2.2.1.
    pub(super) issued_token_type: Option<String>,
    /// The scopes, if they are not those that were asked for.
    pub(crate) scope: Option<Value>,
    /// `OpenID` Connect Core 1.0 section 3.1.3.3.
    pub(crate) id_token: Option<Value>,
}

fn present_secret<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SecretString>, D::Error> {
    let given = Option::<SecretString>::deserialize(deserializer)?;
    Ok(given.filter(|secret| !secret.expose_secret().trim().is_empty()))
}

/// Known error codes of token endpoints (RFC 6749 section 5.2, RFC 8707 section 2, RFC 8628 section
/// 3.5, `OpenID` Connect Core 1.0 section 3.1.2.6, and common others).
const CODES: [&str; 16] = [
    "invalid_request",
    "invalid_client",
    "invalid_grant",
    "unauthorized_client",
    "unsupported_grant_type",
    "invalid_scope",
    "invalid_target",
    "access_denied",
    "interaction_required",
    "login_required",
    "consent_required",
    "server_error",
    "temporarily_unavailable",
    "slow_down",
    "authorization_pending",
    "expired_token",
];

/// The members of a token endpoint's answer: JSON (RFC 6749 section 5.1), or a form, as GitHub
/// writes it.
pub(super) fn token_reply(reply: &Fetched) -> Value {
    if essence(content_type(&reply.headers))
        .eq_ignore_ascii_case("application/x-www-form-urlencoded")
    {
        let fields = form_urlencoded::parse(&reply.body).into_owned();
        return fields.collect();
    }
    serde_json::from_slice(&reply.body).unwrap_or_default()
}

/// The error code, if it is a known one: any other text could contain a credential of the request.
pub(super) fn error_code(reply: &Fetched) -> Option<&'static str> {
    let said = token_reply(reply);
    let code = said.get("error")?.as_str()?;
    CODES.into_iter().find(|known| *known == code)
}

/// Reads the claims that the user's next token must have, as Entra writes them beside an error;
/// they are passed on to the client.
pub(super) fn demanded_claims(reply: &Fetched) -> Option<String> {
    const MAX_CLAIMS_BYTES: usize = 4096;
    let claims = token_reply(reply).get("claims")?.as_str()?.to_owned();
    (claims.len() <= MAX_CLAIMS_BYTES).then_some(claims)
}

/// Reads the reason of a refusal: `error` and `error_description` (RFC 6749 section 5.2), and the
/// `detail` of frameworks: a text, or a list of problems of which only place and message are taken,
/// because they may repeat what was sent.
pub(super) fn refusal_reason(reply: &Fetched) -> Option<String> {
    let said = token_reply(reply);
    let mut reasons: Vec<String> = ["error", "error_description", "detail"]
        .iter()
        .filter_map(|key| Some(format!("{key}: {}", said.get(key)?.as_str()?)))
        .collect();
    for problem in items(&said, "detail") {
        let place: Vec<&str> = items(problem, "loc").filter_map(Value::as_str).collect();
        let message = problem.get("msg").and_then(Value::as_str);
        let (place, message) = (place.join("."), message.unwrap_or_default());
        reasons.push(format!("detail: {place}: {message}"));
    }
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// The items of a member that is a list.
pub(super) fn items<'v>(object: &'v Value, member: &str) -> impl Iterator<Item = &'v Value> {
    let list = object.get(member).and_then(Value::as_array);
    list.into_iter().flatten()
}

/// Reads a number of seconds, with or without a fraction, or a string with one, as some servers
/// send.
pub(crate) fn seconds(value: &Value) -> Option<Duration> {
    const MAX_LIFETIME_SECONDS: f64 = 366.0 * 24.0 * 3600.0;
    let seconds: f64 = value.as_f64().or_else(|| value.as_str()?.parse().ok())?;
    if !seconds.is_finite() {
        return None;
    }
    Duration::try_from_secs_f64(seconds.min(MAX_LIFETIME_SECONDS)).ok()
}

/// Grant by which a client requests a token.
#[derive(Clone)]
pub(crate) enum Grant {
    /// The client's own credentials (RFC 6749 section 4.4).
    ClientCredentials,
    /// The name and the password of a user (RFC 6749 section 4.3).
    Password {
        /// The name.
        username: SecretString,
        /// The password.
        password: SecretString,
    },
    /// A refresh token (RFC 6749 section 6).
    RefreshToken(SecretString),
    /// The code that the browser brought from the authorization endpoint (RFC 6749 section 4.1, RFC
    /// 7636).
    AuthorizationCode {
        /// The code.
        code: SecretString,
        /// The address that the browser was sent back to.
        redirect_uri: String,
        /// The verifier of PKCE.
        verifier: SecretString,
    },
    /// The device code of a person who signs in on another device (RFC 8628).
    DeviceCode(SecretString),
    /// The token of the user who calls (RFC 8693).
    TokenExchange {
        /// The token.
        subject_token: SecretString,
        /// Its type, a URI.
        subject_token_type: String,
    },
    /// The token of the user who calls, in the on-behalf-of flow of Microsoft Entra (RFC 7523
    /// section 2.1).
    OnBehalfOf(SecretString),
}

/// Request for the tokens of a client.
pub(crate) struct TokenRequest {
    /// The grant; `None` if tokens come only of a login, whose refresh token is stored.
    pub(crate) grant: Option<Grant>,
    /// `scope` of the request.
    pub(crate) scopes: Option<SecretString>,
    /// `audience` of the request, which some servers want.
    pub(crate) audience: Option<SecretString>,
}

/// Part of a credential that a grant lacks, and the reason for which it is needed.
type LackingPart = (CredentialPart, &'static str);

impl Grant {
    /// Selects the grant by which the tokens of a scheme are requested; `has_key` if the client has
    /// a key. `None` if none are: an access token is set, or no value for a request is.
    ///
    /// # Errors
    /// A part of the credential is missing.
    pub(crate) fn select(
        scheme: &SecurityScheme,
        values: &CredentialValues,
        has_key: bool,
    ) -> Result<Option<Self>, LackingPart> {
        let part = |part: CredentialPart| values.get(&part).cloned();
        let has_password_flow =
            matches!(scheme, SecurityScheme::OAuth2 { flow, .. } if *flow == OAuthFlow::Password);
        let of_user = |kind: CredentialPart| part(kind).filter(|_| has_password_flow);
        let username = of_user(CredentialPart::Username);
        let password = of_user(CredentialPart::Password);
        let has_client = values.contains_key(&CredentialPart::ClientId);
        let refresh_token = part(CredentialPart::RefreshToken);
        let has_any =
            has_client || refresh_token.is_some() || username.is_some() || password.is_some();
        if values.contains_key(&CredentialPart::Value) || !has_any {
            return Ok(None);
        }
        let lacking = |part| Err((part, "a user has a name and a password"));
        match (username, password, refresh_token) {
            (Some(_), None, _) => lacking(CredentialPart::Password),
            (None, Some(_), _) => lacking(CredentialPart::Username),
            (_, _, Some(token)) => Ok(Some(Self::RefreshToken(token))),
            (Some(username), Some(password), None) => {
                Ok(Some(Self::Password { username, password }))
            }
            (None, None, None) if has_key || values.contains_key(&CredentialPart::ClientSecret) => {
                Ok(Some(Self::ClientCredentials))
            }
            (None, None, None) => Err((
                CredentialPart::ClientSecret,
                "a client needs a secret or a key to get tokens, or a person signs in with `openapi-mcp login`",
            )),
        }
    }

    /// The parameters of a request besides those that every grant may have.
    pub(crate) fn parameters(&self) -> Vec<(&'static str, &str)> {
        let (kind, more) = match self {
            Self::ClientCredentials => ("client_credentials", vec![]),
            Self::Password { username, password } => (
                "password",
                vec![
                    ("username", username.expose_secret()),
                    ("password", password.expose_secret()),
                ],
            ),
            Self::RefreshToken(token) => (
                "refresh_token",
                vec![("refresh_token", token.expose_secret())],
            ),
            Self::AuthorizationCode {
                code,
                redirect_uri,
                verifier,
            } => (
                "authorization_code",
                vec![
                    ("code", code.expose_secret()),
                    ("redirect_uri", redirect_uri.as_str()),
                    ("code_verifier", verifier.expose_secret()),
                ],
            ),
            Self::DeviceCode(code) => (
                "urn:ietf:params:oauth:grant-type:device_code",
                vec![("device_code", code.expose_secret())],
            ),
            Self::TokenExchange {
                subject_token,
                subject_token_type,
            } => (
                "urn:ietf:params:oauth:grant-type:token-exchange",
                vec![
                    ("subject_token", subject_token.expose_secret()),
                    ("subject_token_type", subject_token_type.as_str()),
                ],
            ),
            Self::OnBehalfOf(assertion) => (
                "urn:ietf:params:oauth:grant-type:jwt-bearer",
                vec![
                    ("assertion", assertion.expose_secret()),
                    ("requested_token_use", "on_behalf_of"),
                ],
            ),
        };
        [vec![("grant_type", kind)], more].concat()
    }

    /// Returns true if the code of a refusal may mean that the client was not recognized. A server
    /// may answer an unknown form of authentication with `invalid_request`, which for a user's
    /// token speaks of the token (RFC 8693 section 2.2.2). A code is good for one use.
    pub(crate) fn doubts_client(&self, code: Option<&str>) -> bool {
        match self {
            Self::ClientCredentials | Self::Password { .. } | Self::RefreshToken(_) => {
                code.is_none_or(|code| matches!(code, "invalid_client" | "invalid_request"))
            }
            _ => code == Some("invalid_client"),
        }
    }
}

impl TokenRequest {
    /// The refresh token of the settings.
    pub(crate) fn refresh_token(&self) -> Option<&SecretString> {
        match &self.grant {
            Some(Grant::RefreshToken(token)) => Some(token),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_numbers_or_texts_with_or_without_a_fraction() {
        for (text, expected) in [
            ("3600", Some(3600.0)),
            ("3600.0", Some(3600.0)),
            ("3.6e3", Some(3600.0)),
            ("\"3600\"", Some(3600.0)),
            ("\"0.5\"", Some(0.5)),
            ("1e300", Some(31_622_400.0)),
            ("-1", None),
            ("\"NaN\"", None),
            ("\"soon\"", None),
            ("null", None),
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(
                seconds(&value).map(|seconds| seconds.as_secs_f64()),
                expected,
                "{text}"
            );
        }
    }
}
