//! An access token, how long it may be used, and the answer of a token endpoint that gives it (RFC
//! 6749 section 5).

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::header::HeaderValue;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use url::form_urlencoded;

use crate::credentials::sensitive_header;
use crate::outbound::fetch::Fetched;
use crate::redact::Redactor;
use crate::spec::media_type::{content_type, essence};

/// An access token.
pub(crate) struct AccessToken {
    /// `Authorization` with it.
    pub header: HeaderValue,
    /// Redacts the token in replies.
    pub redactor: Arc<Redactor>,
    fresh_until: Option<Instant>,
    pub(super) expires: Option<Instant>,
}

impl AccessToken {
    /// A token that replies do not show, and neither what can renew it; `ends` are the times from
    /// when on it is renewed, and from when on it is not valid any more. `None` if no header can
    /// hold it.
    pub(super) fn new(
        access: &str,
        refresh: Option<&str>,
        ends: Option<[Instant; 2]>,
    ) -> Option<Self> {
        Some(Self {
            header: sensitive_header(format!("Bearer {access}").as_bytes()).ok()?,
            redactor: Arc::new(Redactor::for_tokens(std::iter::once(access).chain(refresh))),
            fresh_until: ends.map(|[fresh_until, _]| fresh_until),
            expires: ends.map(|[_, expires]| expires),
        })
    }

    pub(super) fn is_fresh(&self, now: Instant) -> bool {
        self.fresh_until.is_none_or(|until| now < until)
    }

    /// The token itself.
    pub(super) fn bearer(&self) -> &str {
        let text = self.header.to_str().unwrap_or_default();
        text.strip_prefix("Bearer ").unwrap_or(text)
    }

    pub(super) fn is_good(&self, now: Instant) -> bool {
        self.expires.is_none_or(|until| now < until)
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
        return Value::Object(
            fields
                .map(|(name, value)| (name, Value::String(value)))
                .collect(),
        );
    }
    serde_json::from_slice(&reply.body).unwrap_or_default()
}

/// The error code, if it is a known one: any other text could contain a credential of the request.
pub(super) fn error_code(reply: &Fetched) -> Option<String> {
    #[derive(Deserialize)]
    struct Refused {
        error: String,
    }
    let code = serde_json::from_value::<Refused>(token_reply(reply))
        .ok()?
        .error;
    CODES.contains(&code.as_str()).then_some(code)
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
    for problem in said
        .get("detail")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let place = problem
            .get("loc")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let place: Vec<&str> = place.filter_map(Value::as_str).collect();
        let message = problem
            .get("msg")
            .and_then(Value::as_str)
            .unwrap_or_default();
        reasons.push(format!("detail: {}: {message}", place.join(".")));
    }
    (!reasons.is_empty()).then(|| reasons.join("; "))
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
