//! The parts of a credential, and their values.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretString};
use strum::VariantArray as _;

/// A part of a credential.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr, strum::VariantArray,
)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE", prefix = "_")]
pub enum CredentialPart {
    /// The key, the token, or `user:password`.
    Value,
    /// The user's name, if it is given alone.
    Username,
    /// The user's password, if it is given alone.
    Password,
    /// The OAuth client's name.
    ClientId,
    /// The OAuth client's secret.
    ClientSecret,
    /// A refresh token, which is exchanged for access tokens.
    RefreshToken,
    /// The scopes to ask for.
    Scopes,
    /// The audience to ask for.
    Audience,
    /// The token endpoint.
    TokenUrl,
    /// The issuer, which names the token endpoint.
    Issuer,
}

impl CredentialPart {
    /// The suffix of the name of its variable.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Value => "",
            part => part.into(),
        }
    }

    /// The key of the part in the configuration file, below that of its scheme; none of the value.
    pub(crate) fn key(self) -> String {
        self.suffix().trim_start_matches('_').to_ascii_lowercase()
    }

    /// Returns true if the part is a secret.
    #[must_use]
    pub fn is_secret(self) -> bool {
        matches!(
            self,
            Self::Value | Self::Password | Self::ClientSecret | Self::RefreshToken
        )
    }

    /// Returns true if the part is an http(s) URL.
    #[must_use]
    pub fn is_url(self) -> bool {
        matches!(self, Self::TokenUrl | Self::Issuer)
    }

    /// The part that a variable holds, by the end of its name.
    #[must_use]
    pub fn of_variable(name: &str) -> Self {
        let ends = |part: &&Self| **part != Self::Value && name.ends_with(part.suffix());
        let part = Self::VARIANTS.iter().find(ends);
        part.copied().unwrap_or(Self::Value)
    }
}

/// The settings for one scheme. Values have no control characters and are not empty.
pub(crate) type CredentialValues = BTreeMap<CredentialPart, SecretString>;

/// Returns `user:password` as `Basic` writes it, and the password alone; `None` if there is no
/// colon.
pub(crate) fn basic_forms(pair: &str) -> Option<[String; 2]> {
    let (_, password) = pair.split_once(':')?;
    Some([STANDARD.encode(pair), password.to_owned()])
}

/// `user:password`, as far as both are there.
pub(crate) fn user_and_password(given: &CredentialValues) -> Option<String> {
    let part = |part: CredentialPart| Some(given.get(&part)?.expose_secret());
    let parts = part(CredentialPart::Username).zip(part(CredentialPart::Password));
    if let Some((user, password)) = parts {
        return Some(format!("{user}:{password}"));
    }
    let value = part(CredentialPart::Value)?;
    value.contains(':').then(|| value.to_owned())
}
