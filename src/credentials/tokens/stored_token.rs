//! Tokens that are kept beyond the process, and whose they are; also those that could not be written
//! to the token store yet, although the refresh tokens in the file before them are used up.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use url::Origin;

use super::oauth_client::{OauthClient, exposed};
use crate::text::hex;

/// The last second that a date of HTTP can have: the end of the year 9999. A later one in a file is
/// damage.
const LAST_SECOND: u64 = 253_402_300_799;
/// Generations are counted from 1; one above this is damage.
const LAST_GENERATION: u64 = 1 << 62;

/// Tokens of one scheme, as they are kept too.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StoredToken {
    /// Their owner, in a file.
    #[serde(flatten)]
    pub(crate) owner: TokenOwner,
    #[serde(serialize_with = "write_secret")]
    pub(crate) refresh_token: SecretString,
    #[serde(serialize_with = "write_secret")]
    pub(crate) access_token: SecretString,
    /// End of the access token in seconds since 1970, if it has one.
    expires: Option<u64>,
    /// Lifetime of the token when it was granted, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lifetime: Option<u64>,
    /// Number of earlier tokens, as far as they were kept: of two tokens, the later one counts.
    #[serde(default, deserialize_with = "read_generation")]
    pub(super) generation: u64,
    /// Facts about the login that they come of, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TokenOwner {
    /// Security scheme, token endpoint and client; of a login, the origin of the API as well.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) id: String,
    /// A digest of the refresh token in the settings: with another one there, the stored one counts
    /// no more. `login` for a login.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) configured: String,
}

impl TokenOwner {
    /// The owner of the tokens of a login of a client for the API at an origin.
    pub(crate) fn of_login(client: &OauthClient, api: &Origin) -> Self {
        let parts = [
            "login",
            &client.scheme,
            client.endpoint.url().as_str(),
            exposed(client.id.as_ref()).unwrap_or_default(),
            &api.ascii_serialization(),
        ];
        Self {
            // As JSON, in which no part can be taken for another one.
            id: json!(parts).to_string(),
            configured: "login".into(),
        }
    }
}

fn write_secret<S: Serializer>(secret: &SecretString, serializer: S) -> Result<S::Ok, S::Error> {
    secret.expose_secret().serialize(serializer)
}

fn read_generation<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Ok(u64::deserialize(deserializer)?.min(LAST_GENERATION))
}

impl StoredToken {
    /// Tokens that nobody owns yet; the access token ends after the time that is `left`.
    pub(crate) fn new(
        refresh_token: SecretString,
        access_token: SecretString,
        left: Option<Duration>,
        lifetime: Option<Duration>,
    ) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            owner: TokenOwner::default(),
            refresh_token,
            access_token,
            expires: left.map(|left| (now.unwrap_or_default() + left).as_secs()),
            lifetime: lifetime.map(|lifetime| lifetime.as_secs()),
            generation: 0,
            login: None,
        }
    }

    /// End of the access token, if it has one.
    pub(crate) fn expires(&self) -> Option<SystemTime> {
        let seconds = self.expires?.min(LAST_SECOND);
        Some(UNIX_EPOCH + Duration::from_secs(seconds))
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
    tokens: Vec<StoredToken>,
    /// True if a task tries to write them.
    is_retried: bool,
}

impl UnsavedTokens {
    /// Keeps a token unless a newer one is kept. Returns true if the caller must begin to write it.
    pub(crate) fn keep(&self, token: StoredToken) -> bool {
        let mut unsaved = self.0.lock();
        let known = unsaved.of(&token.owner).map(|known| known.generation);
        if known <= Some(token.generation) {
            unsaved
                .tokens
                .retain(|other| other.owner.id != token.owner.id);
            unsaved.tokens.push(token);
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
        stored
            .into_iter()
            .chain(unsaved)
            .max_by_key(|token| token.generation)
    }

    /// Returns the tokens that are kept here.
    pub(crate) fn all(&self) -> Vec<StoredToken> {
        self.0.lock().tokens.clone()
    }

    /// A token is written.
    pub(crate) fn forget(&self, token: &StoredToken) {
        self.0.lock().tokens.retain(|other| {
            other.owner.id != token.owner.id || other.generation > token.generation
        });
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
        self.tokens.iter().find(|token| token.owner == *owner)
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
            let token: StoredToken = serde_json::from_value(record).unwrap();
            assert!(httpdate::fmt_http_date(token.expires().unwrap()).contains("9999"));
            assert!(token.generation.checked_add(1).is_some());
        }
    }
}
