//! The claims of a token: reading, the times of their validity, and why a token is refused.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json::JsonObject;

/// The tolerated clock difference, in seconds.
const LEEWAY: f64 = 30.0;

pub(super) const INCOMPLETE: &str = "the token lacks a valid exp, iss or aud";

/// Reason for which a request is refused.
pub(super) enum Refusal {
    /// No bearer token.
    NoToken,
    /// No token of a person who may agree to calls.
    NotAnApprover,
    /// An invalid token.
    InvalidToken(&'static str),
    /// Several `Authorization` headers.
    SeveralTokens,
    /// The token lacks a scope; with all scopes that are needed.
    Scope(Vec<String>),
    /// The API needs a token with these claims, in base64.
    Claims(String),
    /// The issuer cannot be asked now, so that it is unknown whether the token is valid.
    Unavailable,
    /// There are too many requests; the next one is answered after this time.
    TooOften(Duration),
}

/// Refuses an invalid token.
pub(super) fn invalid<T>(why: &'static str) -> Result<T, Refusal> {
    Err(Refusal::InvalidToken(why))
}

/// The seconds since 1970.
pub(super) fn since_epoch() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64()
}

/// Checks `exp` and `nbf`. Returns the former.
pub(super) fn check_times(claims: &JsonObject) -> Result<Option<SystemTime>, Refusal> {
    let now = since_epoch();
    let incomplete = || Refusal::InvalidToken(INCOMPLETE);
    let seconds = |name: &str| {
        let value = claims.get(name);
        value
            .map(|value| value.as_f64().ok_or_else(incomplete))
            .transpose()
    };
    let expires = seconds("exp")?;
    if expires.is_some_and(|expires| expires + LEEWAY < now) {
        return invalid("the token has expired");
    }
    if seconds("nbf")?.is_some_and(|begins| begins > now + LEEWAY) {
        return invalid("the token is not valid yet");
    }
    let time = |seconds: f64| {
        let since = Duration::try_from_secs_f64(seconds).ok()?;
        // A time that the system cannot represent.
        UNIX_EPOCH.checked_add(since)
    };
    expires
        .map(|seconds| time(seconds).ok_or_else(incomplete))
        .transpose()
}

/// The claims of a token, each of which is there once (RFC 7519 section 4), like each member of
/// them: of two, this server and another one could take different ones.
pub(super) struct Claims(pub(super) JsonObject);

impl<'de> Deserialize<'de> for Claims {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct UniqueClaims;

        impl<'de> Visitor<'de> for UniqueClaims {
            type Value = Claims;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Claims, A::Error> {
                let mut claims = JsonObject::new();
                while let Some((name, text)) = members.next_entry::<String, Box<RawValue>>()? {
                    // It limits the depth, and so what follows.
                    let value: Value =
                        serde_json::from_str(text.get()).map_err(A::Error::custom)?;
                    if claims.insert(name, value).is_some() || !has_unique_members(text.get()) {
                        return Err(A::Error::custom("a claim is there twice"));
                    }
                }
                Ok(Claims(claims))
            }
        }

        deserializer.deserialize_map(UniqueClaims)
    }
}

/// Returns true if no object of a JSON text has two members of the same name.
fn has_unique_members(text: &str) -> bool {
    match text.as_bytes().first() {
        Some(b'{') => serde_json::from_str::<Claims>(text).is_ok(),
        Some(b'[') => serde_json::from_str::<Vec<Box<RawValue>>>(text)
            .is_ok_and(|items| items.iter().all(|item| has_unique_members(item.get()))),
        _ => true,
    }
}
