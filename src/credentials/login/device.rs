//! The device authorization grant (RFC 8628): the person signs in on any device, and this process
//! asks until that is done.

use std::time::Duration;

use http::StatusCode;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::Value;

use crate::credentials::tokens::token_endpoint::TokenRefusal;
use crate::credentials::tokens::token_reply::seconds;

/// Interval between requests for the token if the server names none (RFC 8628 section 3.2).
const USUAL_INTERVAL: Duration = Duration::from_secs(5);
/// Increase of the interval after `slow_down` (RFC 8628 section 3.5).
const SLOW_DOWN: Duration = Duration::from_secs(5);
const INTERVALS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));

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
    /// The same, with the scopes that were asked for.
    pub(super) fn with_scopes(self, scopes: String) -> Self {
        Self { scopes, ..self }
    }

    /// Lifetime of the code, if it has one.
    pub(crate) fn lifetime(&self) -> Option<Duration> {
        self.expires_in.as_ref().and_then(seconds)
    }

    /// Interval between the first requests for the token.
    pub(super) fn interval(&self) -> Duration {
        let (least, most) = INTERVALS;
        self.interval
            .as_ref()
            .and_then(seconds)
            .unwrap_or(USUAL_INTERVAL)
            .clamp(least, most)
    }
}

/// The longest interval between two questions.
const MAX_INTERVAL: Duration = Duration::from_mins(1);

/// The next interval after a refusal with this code; `None` if the refusal is final. An endpoint
/// that cannot be reached or is busy is asked less often (RFC 8628 section 3.5).
pub(super) fn next_interval(interval: Duration, refusal: &TokenRefusal) -> Option<Duration> {
    match refusal {
        TokenRefusal::Refused {
            code: Some(code), ..
        } if code == "authorization_pending" => Some(interval),
        TokenRefusal::Refused {
            code: Some(code), ..
        } if code == "slow_down" => Some(interval + SLOW_DOWN),
        TokenRefusal::Unreachable(_) => Some((interval * 2).min(MAX_INTERVAL)),
        TokenRefusal::Refused {
            code: None, status, ..
        } if status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS => {
            Some((interval * 2).min(MAX_INTERVAL))
        }
        TokenRefusal::Refused { .. } | TokenRefusal::Failed(_) => None,
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
        let refused = |code: &str| TokenRefusal::Refused {
            status: http::StatusCode::BAD_REQUEST,
            code: Some(code.into()),
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
