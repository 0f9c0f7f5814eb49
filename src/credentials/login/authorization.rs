//! The two grants by which a person agrees: the authorization code flow with PKCE on a loopback
//! address (RFC 6749 section 4.1, RFC 7636, RFC 8252, RFC 9207), and the device authorization grant
//! (RFC 8628), for which the person signs in on any device, and this process asks until that is done.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use url::{Url, form_urlencoded};

use crate::credentials::tokens::access_token::{Grant, seconds};
use crate::credentials::tokens::issuer_metadata::IssuerMetadata;
use crate::credentials::tokens::token_endpoint::TokenRefusal;
use crate::text;

/// Scope of refresh tokens (`OpenID` Connect Core 1.0 section 11).
pub(super) const OFFLINE_ACCESS: &str = "offline_access";

/// A request that the browser carries to the authorization endpoint.
pub(crate) struct AuthorizationRequest {
    /// The address that the browser opens.
    pub(crate) url: Url,
    redirect: String,
    state: SecretString,
    verifier: SecretString,
    issuer: Option<String>,
    /// True if each answer names the issuer.
    needs_issuer: bool,
    /// The scopes that it asks for.
    pub(super) scopes: String,
}

impl AuthorizationRequest {
    /// A client's request to an authorization endpoint, whose answer goes to `redirect`.
    ///
    /// # Errors
    /// The system has no randomness.
    pub(super) fn new(
        mut url: Url,
        redirect: &str,
        client_id: &str,
        scopes: String,
        audience: Option<&str>,
        metadata: Option<&IssuerMetadata>,
    ) -> Result<Self, String> {
        let (state, verifier) = (random_text()?, random_text()?);
        url.set_fragment(None);
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.expose_secret()));
        let mut query = url.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", client_id)
            .append_pair("redirect_uri", redirect)
            .append_pair("state", state.expose_secret())
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        if !scopes.is_empty() {
            query.append_pair("scope", &scopes);
        }
        if let Some(audience) = audience {
            query.append_pair("audience", audience);
        }
        // OpenID Connect Core 1.0 section 11: without it, the scope counts for nothing.
        if scopes.split(' ').any(|scope| scope == OFFLINE_ACCESS) {
            query.append_pair("prompt", "consent");
        }
        drop(query);
        Ok(Self {
            url,
            redirect: redirect.to_owned(),
            state,
            verifier,
            issuer: metadata.map(|metadata| metadata.issuer.clone()),
            scopes,
            needs_issuer: metadata.is_some_and(|metadata| metadata.names_itself),
        })
    }

    /// Reads the query of an answer: the code, or a refusal in words for the user. `None` if it is
    /// not an answer to this request.
    pub(crate) fn read_answer(&self, query: &str) -> Option<Result<SecretString, String>> {
        let pairs: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        // RFC 6749 section 3.1: no parameter is there twice.
        let only = |name: &str| {
            let mut values = pairs.iter().filter(|(key, _)| key == name);
            let value = values.next().map(|(_, value)| value.as_str());
            (value, values.next().is_some())
        };
        let members = ["state", "code", "error", "iss"].map(only);
        if members.iter().any(|(_, is_twice)| *is_twice) {
            return None;
        }
        let [state, code, error, issuer] =
            members.map(|(value, _)| value.filter(|value| !value.is_empty()));
        let own = self.state.expose_secret().as_bytes();
        if !bool::from(state?.as_bytes().ct_eq(own)) {
            return None;
        }
        let refused = |why: &str| Some(Err(why.to_owned()));
        let issuers = issuer.zip(self.issuer.as_deref());
        match (code, error) {
            (None, None) | (Some(_), Some(_)) => None,
            _ if issuers.is_some_and(|(named, own)| named != own) => {
                refused("the answer is that of another issuer (`iss`)")
            }
            _ if self.needs_issuer && issuer.is_none() => refused(
                "the answer does not name its issuer (`iss`), although the issuer's metadata promise it",
            ),
            (Some(code), None) => Some(Ok(code.into())),
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

/// Interval between requests for the token if the server names none (RFC 8628 section 3.2).
const USUAL_INTERVAL: Duration = Duration::from_secs(5);
/// Increase of the interval after `slow_down` (RFC 8628 section 3.5).
const SLOW_DOWN: Duration = Duration::from_secs(5);
/// The shortest interval between two requests.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// The longest one.
const MAX_INTERVAL: Duration = Duration::from_mins(1);

/// Answer of the device authorization endpoint (RFC 8628 section 3.2).
#[derive(Deserialize)]
pub(crate) struct DeviceAuthorization {
    pub(super) device_code: SecretString,
    /// The code that the person enters.
    pub(crate) user_code: String,
    /// The page on which to enter it. Google calls it `verification_url`.
    #[serde(alias = "verification_url")]
    pub(crate) verification_uri: String,
    /// The same page with the code.
    pub(crate) verification_uri_complete: Option<String>,
    expires_in: Option<Value>,
    interval: Option<Value>,
    /// The scopes that were asked for.
    #[serde(skip)]
    pub(super) scopes: String,
}

impl DeviceAuthorization {
    /// Lifetime of the code, if it has one.
    pub(crate) fn lifetime(&self) -> Option<Duration> {
        self.expires_in.as_ref().and_then(seconds)
    }

    /// Interval between the first requests for the token.
    pub(super) fn interval(&self) -> Duration {
        let interval = self.interval.as_ref().and_then(seconds);
        interval
            .unwrap_or(USUAL_INTERVAL)
            .clamp(MIN_INTERVAL, MAX_INTERVAL)
    }
}

/// The next interval after a refusal with this code; `None` if the refusal is final. An endpoint
/// that cannot be reached or is busy is asked less often (RFC 8628 section 3.5).
pub(super) fn next_interval(interval: Duration, refusal: &TokenRefusal) -> Option<Duration> {
    let (status, code) = match refusal {
        TokenRefusal::Refused { status, code, .. } => (*status, *code),
        TokenRefusal::Unreachable(_) => (StatusCode::SERVICE_UNAVAILABLE, None),
        TokenRefusal::Failed(_) => return None,
    };
    let is_busy = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
    match code {
        Some("authorization_pending") => Some(interval),
        Some("slow_down") => Some(interval + SLOW_DOWN),
        None if is_busy => Some((interval * 2).min(MAX_INTERVAL)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_the_servers_within_limits() {
        for (interval, expected) in [
            ("null", 5),
            ("1", 1),
            ("\"7\"", 7),
            ("0", 1),
            ("-3", 5),
            ("86400", 60),
        ] {
            let text = format!(
                "{{\"device_code\":\"d\",\"user_code\":\"u\",\"verification_url\":\"v\",\"interval\":{interval}}}"
            );
            let read: DeviceAuthorization = serde_json::from_str(&text).unwrap();
            assert_eq!(read.interval(), Duration::from_secs(expected), "{interval}");
        }
        let five = Duration::from_secs(5);
        let refused = |code: &'static str| TokenRefusal::Refused {
            status: http::StatusCode::BAD_REQUEST,
            code: Some(code),
            claims: None,
        };
        assert_eq!(
            next_interval(five, &refused("authorization_pending")),
            Some(five)
        );
        assert_eq!(next_interval(five, &refused("slow_down")), Some(five * 2));
        assert_eq!(next_interval(five, &refused("access_denied")), None);
        let busy = |status| TokenRefusal::Refused {
            status,
            code: None,
            claims: None,
        };
        assert_eq!(
            next_interval(five, &busy(StatusCode::SERVICE_UNAVAILABLE)),
            Some(five * 2)
        );
        assert_eq!(
            next_interval(MAX_INTERVAL, &busy(StatusCode::TOO_MANY_REQUESTS)),
            Some(MAX_INTERVAL)
        );
        assert_eq!(next_interval(five, &busy(StatusCode::BAD_REQUEST)), None);
    }
}
