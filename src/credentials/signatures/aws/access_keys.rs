//! Access keys of AWS.

use std::fmt;
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials as SdkCredentials;
use secrecy::{ExposeSecret as _, SecretString};

/// Keys that sign requests.
#[derive(Clone)]
pub(crate) struct AccessKeys {
    /// Identifier, which is no secret.
    pub id: String,
    /// Secret key.
    pub secret: SecretString,
    /// Session token, if the keys are temporary.
    pub session_token: Option<SecretString>,
    /// End of their validity, if they have one.
    pub expires: Option<SystemTime>,
}

impl fmt::Debug for AccessKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[access keys]")
    }
}

impl AccessKeys {
    /// The secret values: key and session token.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.secret)
            .chain(&self.session_token)
            .map(SecretString::expose_secret)
    }

    pub(super) fn for_sdk(&self) -> SdkCredentials {
        let token = self
            .session_token
            .as_ref()
            .map(|token| token.expose_secret().to_owned());
        SdkCredentials::new(
            &self.id,
            self.secret.expose_secret(),
            token,
            self.expires,
            "openapi-mcp",
        )
    }

    /// Returns true if they are valid for that time from now on.
    pub(super) fn lasts(&self, time: Duration) -> bool {
        self.expires
            .is_none_or(|expires| SystemTime::now() + time < expires)
    }
}
