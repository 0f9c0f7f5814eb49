//! Tokens that are kept beyond the process, and whose they are.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::text::hex;

/// Tokens of one scheme.
#[derive(Debug, Clone)]
pub(crate) struct StoredToken {
    pub(crate) refresh_token: SecretString,
    pub(crate) access_token: SecretString,
    /// End of the access token, if it has one.
    pub(crate) expires: Option<SystemTime>,
    /// Lifetime of the token when it was granted.
    pub(crate) lifetime: Option<Duration>,
    /// Number of earlier tokens, as far as they were kept: of two tokens, the later one counts.
    pub(crate) generation: u64,
}

/// Owner of tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TokenOwner {
    /// Security scheme, token endpoint and client.
    pub(crate) id: String,
    /// A digest of the refresh token in the settings: with another one there, the stored one counts no more.
    pub(crate) configured: String,
}

/// Tokens as they are written. In a file, with their owner.
#[derive(Serialize, Deserialize)]
pub(crate) struct TokenRecord {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) id: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) configured: String,
    refresh_token: String,
    access_token: String,
    /// Seconds since 1970.
    expires: Option<u64>,
    /// Seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lifetime: Option<u64>,
    #[serde(default)]
    generation: u64,
}

impl TokenRecord {
    /// Tokens with their owner.
    pub(crate) fn of(owner: &TokenOwner, token: &StoredToken) -> Self {
        Self {
            id: owner.id.clone(),
            configured: owner.configured.clone(),
            ..Self::from(token)
        }
    }

    /// Returns true if the record holds tokens of that owner.
    pub(crate) fn is_of(&self, owner: &TokenOwner) -> bool {
        self.id == owner.id && self.configured == owner.configured
    }

    /// Returns true if its tokens came later than these.
    pub(crate) fn is_newer_than(&self, token: &StoredToken) -> bool {
        self.generation > token.generation
    }
}

impl From<&StoredToken> for TokenRecord {
    fn from(token: &StoredToken) -> Self {
        Self {
            id: String::new(),
            configured: String::new(),
            refresh_token: token.refresh_token.expose_secret().to_owned(),
            access_token: token.access_token.expose_secret().to_owned(),
            expires: token.expires.and_then(|at| Some(at.duration_since(UNIX_EPOCH).ok()?.as_secs())),
            lifetime: token.lifetime.map(|lifetime| lifetime.as_secs()),
            generation: token.generation,
        }
    }
}

impl From<TokenRecord> for StoredToken {
    fn from(text: TokenRecord) -> Self {
        Self {
            refresh_token: text.refresh_token.into(),
            access_token: text.access_token.into(),
            expires: text.expires.map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds)),
            lifetime: text.lifetime.map(Duration::from_secs),
            generation: text.generation,
        }
    }
}

/// Returns a digest that distinguishes secrets without revealing them.
pub(crate) fn digest_secret(secret: &SecretString) -> String {
    hex(&Sha256::digest(secret.expose_secret()))
}
