//! What a token endpoint answers (RFC 6749 section 5).

use std::time::Duration;

use secrecy::SecretString;
use serde::Deserialize;
use serde_json::Value;
use url::form_urlencoded;

use crate::proxy::response::{Response, content_type};
use crate::spec::media_type::essence;

/// RFC 6749 section 5.1.
#[derive(Deserialize)]
pub(super) struct Granted {
    pub(super) access_token: SecretString,
    pub(super) token_type: Option<String>,
    pub(super) expires_in: Option<Value>,
    pub(super) refresh_token: Option<SecretString>,
}

/// Known error codes of token endpoints (RFC 6749 section 5.2, RFC 8707 section 2, RFC 8628 section 3.5, and common others).
const CODES: [&str; 11] = [
    "invalid_request",
    "invalid_client",
    "invalid_grant",
    "unauthorized_client",
    "unsupported_grant_type",
    "invalid_scope",
    "invalid_target",
    "access_denied",
    "server_error",
    "temporarily_unavailable",
    "slow_down",
];

/// The members of a token endpoint's answer: JSON (RFC 6749 section 5.1), or a form, as GitHub writes it.
pub(super) fn token_reply(reply: &Response) -> Value {
    if essence(content_type(&reply.headers)).eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        let fields = form_urlencoded::parse(&reply.body).into_owned();
        return Value::Object(fields.map(|(name, value)| (name, Value::String(value))).collect());
    }
    serde_json::from_slice(&reply.body).unwrap_or_default()
}

/// The error code, if it is a known one: any other text could contain a credential of the request.
pub(super) fn error_code(reply: &Response) -> Option<String> {
    #[derive(Deserialize)]
    struct Refused {
        error: String,
    }
    let code = serde_json::from_value::<Refused>(token_reply(reply)).ok()?.error;
    CODES.contains(&code.as_str()).then_some(code)
}

/// Reads a number of seconds, or a string with one, as some servers send.
pub(super) fn seconds(value: &Value) -> Option<Duration> {
    const MAX_LIFETIME_SECONDS: u64 = 366 * 24 * 3600;
    let seconds = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
    Some(Duration::from_secs(seconds.min(MAX_LIFETIME_SECONDS)))
}
