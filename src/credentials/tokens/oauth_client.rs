//! OAuth clients, their token endpoints, and the operator's settings for the exchange of users'
//! tokens.

use std::sync::Arc;

use aws_lc_rs::digest;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use url::Url;

use super::client_signer::ClientSigner;

/// An OAuth client of a token endpoint.
pub(crate) struct OauthClient {
    /// The security scheme, for messages.
    pub scheme: String,
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The client's identifier; a public client has no secret.
    pub id: Option<SecretString>,
    /// The client's secret.
    pub secret: Option<SecretString>,
    /// The client's key, in place of a secret.
    pub signer: Option<Arc<ClientSigner>>,
    /// The issuer whose endpoint it is, to the letter, if the operator names it.
    pub issuer: Option<String>,
}

/// Grant by which the calling user's token is exchanged for one of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum GrantKind {
    /// RFC 8693
    TokenExchange,
    /// The on-behalf-of flow of Microsoft Entra
    OnBehalfOf,
}

/// The operator's settings for the exchange of tokens of a security scheme.
#[derive(Debug, Clone)]
pub struct ExchangeOptions {
    /// The grant.
    pub grant: GrantKind,
    /// Each `audience` of the request.
    pub audiences: Vec<String>,
    /// Each `resource` of the request.
    pub resources: Vec<String>,
    /// Asks for the scopes that the document names for the operation, in place of the same ones
    /// always.
    pub operation_scopes: bool,
    /// `subject_token_type`: a URI, or `None` for an access token.
    pub subject_token_type: Option<String>,
}

/// Endpoint at which tokens are requested.
#[derive(Clone)]
pub(crate) enum Endpoint {
    /// The token endpoint.
    Token(Url),
    /// The endpoint that this issuer names (`OpenID` Connect Discovery 1.0 section 4).
    Issuer(Url),
}

impl Endpoint {
    /// The URL from the settings or the document.
    pub(crate) fn url(&self) -> &Url {
        match self {
            Self::Token(url) | Self::Issuer(url) => url,
        }
    }
}

/// A digest of parts that may be missing: each is counted with its length.
#[derive(Clone)]
pub(crate) struct PartsDigest(digest::Context);

impl Default for PartsDigest {
    fn default() -> Self {
        Self(digest::Context::new(&digest::SHA256))
    }
}

impl PartsDigest {
    /// The same with one more part.
    pub(crate) fn with(mut self, part: Option<&str>) -> Self {
        let text = part.unwrap_or_default();
        self.0.update(&[u8::from(part.is_some())]);
        self.0.update(&text.len().to_be_bytes());
        self.0.update(text.as_bytes());
        self
    }

    /// The digest of all parts.
    pub(crate) fn finish(self) -> [u8; 32] {
        // SHA-256 has 32 bytes.
        self.0.finish().as_ref().try_into().unwrap_or_default()
    }
}

/// The text of a secret that may be missing.
pub(crate) fn exposed(secret: Option<&SecretString>) -> Option<&str> {
    secret.map(SecretString::expose_secret)
}

impl OauthClient {
    /// The beginning of a digest of everything that decides which tokens are given.
    pub(crate) fn digest(&self) -> PartsDigest {
        PartsDigest::default()
            .with(Some(&self.scheme))
            .with(Some(self.endpoint.url().as_str()))
            .with(exposed(self.id.as_ref()))
            .with(exposed(self.secret.as_ref()))
    }
}
