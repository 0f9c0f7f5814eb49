//! The access token with which a user called this server.

use std::time::{Duration, SystemTime};

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use crate::json::JsonObject;

/// The verified token of a user. It is sent only to a token endpoint that exchanges it, and lives
/// as long as its request.
pub(crate) struct SubjectToken {
    token: SecretString,
    expires: SystemTime,
}

impl SubjectToken {
    /// The token with these claims, if it is a user's: it names one who is not the client itself.
    pub(crate) fn of_user(token: &str, claims: &JsonObject, expires: SystemTime) -> Option<Self> {
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let subject = text("sub").filter(|subject| !subject.is_empty())?;
        // As Okta, Entra, Auth0 and Keycloak name a client that acts for itself.
        let is_client = ["client_id", "azp", "cid", "appid"]
            .into_iter()
            .filter_map(text)
            .any(|client| {
                subject.strip_suffix("@clients").unwrap_or(subject) == client
                    || text("preferred_username")
                        .and_then(|name| name.strip_prefix("service-account-"))
                        == Some(client)
            });
        let is_application =
            text("idtyp") == Some("app") || text("gty") == Some("client-credentials");
        (!is_client && !is_application).then(|| Self {
            token: token.into(),
            expires,
        })
    }

    /// The token itself.
    pub(crate) fn expose(&self) -> &str {
        self.token.expose_secret()
    }

    /// Returns the time for which it is still valid; `None` if it has ended.
    pub(crate) fn lifetime(&self) -> Option<Duration> {
        self.expires.duration_since(SystemTime::now()).ok()
    }
}
