//! How access tokens are asked for (RFC 6749 sections 4.3, 4.4 and 6).

use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use url::Url;

/// How tokens are asked for.
#[derive(Debug)]
pub(crate) struct Grant {
    /// The security scheme, for messages.
    pub scheme: String,
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The client's identifier; a public client has no secret.
    pub client_id: Option<SecretString>,
    /// The client's secret.
    pub client_secret: Option<SecretString>,
    /// The refresh token, if the grant is `refresh_token`.
    pub refresh_token: Option<SecretString>,
    /// The name and the password of the user, if the grant is `password`.
    pub user: Option<(SecretString, SecretString)>,
    /// `scope` of the request.
    pub scopes: Option<SecretString>,
    /// `audience` of the request, which some servers want.
    pub audience: Option<SecretString>,
}

/// Where tokens are asked for.
#[derive(Debug, Clone)]
pub(crate) enum Endpoint {
    /// At the token endpoint.
    Token(Url),
    /// At the one that this issuer names (`OpenID` Connect Discovery 1.0 section 4).
    Issuer(Url),
}

impl Endpoint {
    /// The URL from the settings or the document.
    #[must_use]
    pub(crate) fn url(&self) -> &Url {
        match self {
            Self::Token(url) | Self::Issuer(url) => url,
        }
    }
}

impl Grant {
    /// The secrets that a request for a token holds.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        let password = self.user.as_ref().map(|(_, password)| password);
        let secrets = self.client_secret.iter().chain(&self.refresh_token).chain(password);
        secrets.map(SecretString::expose_secret)
    }

    /// A digest of everything that decides which tokens are given.
    pub(crate) fn identity(&self) -> Vec<u8> {
        let secrets = [
            self.client_id.as_ref(),
            self.client_secret.as_ref(),
            self.refresh_token.as_ref(),
            self.user.as_ref().map(|(name, _)| name),
            self.user.as_ref().map(|(_, password)| password),
            self.scopes.as_ref(),
            self.audience.as_ref(),
        ];
        let mut digest = Sha256::new();
        for part in [self.scheme.as_str(), self.endpoint.url().as_str()] {
            digest.update(part.len().to_be_bytes());
            digest.update(part);
        }
        for secret in secrets {
            let text = secret.map(SecretString::expose_secret).unwrap_or_default();
            digest.update(text.len().to_be_bytes());
            digest.update(text);
        }
        digest.finalize().to_vec()
    }
}
