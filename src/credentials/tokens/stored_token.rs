//! Tokens that are kept beyond the process, and whose they are; also those that could not be written
//! to the token store yet, although the refresh tokens in the file before them are used up.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use url::Origin;

use super::oauth_client::OauthClient;
use crate::text::hex;

/// The last second that a date of HTTP can have: the end of the year 9999. A later one in a file is
/// damage.
const LAST_SECOND: u64 = 253_402_300_799;
/// Generations are counted from 1; one above this is damage.
const LAST_GENERATION: u64 = 1 << 62;

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
    /// Facts about the login that they come of, if there was one.
    pub(crate) login: Option<LoginFacts>,
}

/// Facts about a login; no secret is among them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LoginFacts {
    /// The scopes, separated by spaces.
    pub(crate) scopes: String,
    /// `sub` of the ID token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) subject: Option<String>,
    /// `email` of the ID token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) email: Option<String>,
    /// Time of the login, in seconds since 1970.
    pub(crate) since: u64,
}

/// Owner of tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TokenOwner {
    /// Security scheme, token endpoint and client; of a login, the origin of the API as well.
    pub(crate) id: String,
    /// A digest of the refresh token in the settings: with another one there, the stored one counts
    /// no more. `login` for a login.
    pub(crate) configured: String,
}

impl TokenOwner {
    /// The owner of the tokens of a login of a client for the API at an origin.
    pub(crate) fn of_login(client: &OauthClient, api: &Origin) -> Self {
        let id = client
            .id
            .as_ref()
            .map(SecretString::expose_secret)
            .unwrap_or_default();
        let parts = [
            "login",
            &client.scheme,
            client.endpoint.url().as_str(),
            id,
            &api.ascii_serialization(),
        ];
        Self {
            // As JSON, in which no part can be taken for another one.
            id: json!(parts).to_string(),
            configured: "login".into(),
        }
    }
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    login: Option<LoginFacts>,
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
            expires: token
                .expires
                .and_then(|at| Some(at.duration_since(UNIX_EPOCH).ok()?.as_secs())),
            lifetime: token.lifetime.map(|lifetime| lifetime.as_secs()),
            generation: token.generation,
            login: token.login.clone(),
        }
    }
}

impl From<TokenRecord> for StoredToken {
    fn from(text: TokenRecord) -> Self {
        Self {
            refresh_token: text.refresh_token.into(),
            access_token: text.access_token.into(),
            expires: text
                .expires
                .map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds.min(LAST_SECOND))),
            lifetime: text
                .lifetime
                .map(|seconds| Duration::from_secs(seconds.min(LAST_SECOND))),
            generation: text.generation.min(LAST_GENERATION),
            login: text.login,
        }
    }
}

/// Returns a digest that distinguishes secrets without revealing them.
pub(crate) fn digest_secret(secret: &SecretString) -> String {
    hex(&Sha256::digest(secret.expose_secret()))
}

/// The newest tokens of each owner that the file lacks.
#[derive(Debug, Default)]
pub(crate) struct UnsavedTokens(Mutex<Unsaved>);

#[derive(Debug, Default)]
struct Unsaved {
    tokens: Vec<(TokenOwner, StoredToken)>,
    /// True if a task tries to write them.
    is_retried: bool,
}

impl UnsavedTokens {
    /// Keeps a token unless a newer one is kept. Returns true if the caller must begin to write it.
    pub(crate) fn keep(&self, owner: &TokenOwner, token: &StoredToken) -> bool {
        let mut unsaved = self.0.lock();
        if unsaved
            .of(owner)
            .is_none_or(|known| known.generation <= token.generation)
        {
            unsaved.tokens.retain(|(other, _)| other.id != owner.id);
            unsaved.tokens.push((owner.clone(), token.clone()));
        }
        !std::mem::replace(&mut unsaved.is_retried, true)
    }

    /// The token of an owner that is kept here, or the one that is `stored`, whichever is newer.
    pub(crate) fn newest(
        &self,
        owner: &TokenOwner,
        stored: Option<StoredToken>,
    ) -> Option<StoredToken> {
        let unsaved = self.0.lock().of(owner).cloned();
        match (unsaved, stored) {
            (Some(unsaved), Some(stored)) if stored.generation > unsaved.generation => Some(stored),
            (unsaved, stored) => unsaved.or(stored),
        }
    }

    /// Returns the tokens that are kept here.
    pub(crate) fn all(&self) -> Vec<(TokenOwner, StoredToken)> {
        self.0.lock().tokens.clone()
    }

    /// A token of that generation is written.
    pub(crate) fn forget(&self, owner: &TokenOwner, generation: u64) {
        let is_left = |(other, token): &(TokenOwner, StoredToken)| {
            other.id != owner.id || token.generation > generation
        };
        self.0.lock().tokens.retain(is_left);
    }

    /// Returns true if there is nothing left to write; the task that wrote may then end.
    pub(crate) fn is_done(&self) -> bool {
        let mut unsaved = self.0.lock();
        unsaved.is_retried = !unsaved.tokens.is_empty();
        !unsaved.is_retried
    }
}

impl Unsaved {
    fn of(&self, owner: &TokenOwner) -> Option<&StoredToken> {
        let found = self.tokens.iter().find(|(other, _)| other == owner);
        found.map(|(_, token)| token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_beyond_all_dates_are_damage_that_ends_nothing() {
        for number in [u64::MAX, 253_402_300_800] {
            let record = serde_json::json!({
                "id": "", "configured": "", "refresh_token": "r", "access_token": "a", "expires": number, "lifetime": number,
                "generation": number,
            });
            let token = StoredToken::from(serde_json::from_value::<TokenRecord>(record).unwrap());
            assert!(httpdate::fmt_http_date(token.expires.unwrap()).contains("9999"));
            assert!(token.generation.checked_add(1).is_some());
        }
    }
}
