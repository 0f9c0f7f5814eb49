//! Settings of credentials: which values the operator gives for the document's security schemes, always by reference.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use url::{Origin, Url};

use super::variables::called;
use crate::proxy::auth::values::PREFIX;
use crate::proxy::{CredentialPart, CredentialValues, Credentials};
use crate::spec::operation::server;

/// Settings of credentials.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub(crate) struct CredentialSettings {
    /// Credentials by the name of the document's security scheme, each by reference; only in the file. Beside it,
    /// environment variables called `OPENAPI_MCP_AUTH_SCHEME` count.
    #[arg(skip)]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub auth: BTreeMap<String, SchemeSettings>,

    /// An origin that headers and credentials may go to besides the API's own, as in `https://uploads.example` (repeatable)
    #[arg(long, env = "OPENAPI_MCP_CREDENTIAL_ORIGIN", value_delimiter = ',', value_name = "ORIGIN")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub credential_origin: Vec<String>,

    /// Call operations without the credentials that they ask for where none are set, instead of refusing the call
    #[arg(long, env = "OPENAPI_MCP_ALLOW_MISSING_CREDENTIALS", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = clap::builder::BoolishValueParser::new(), value_name = "BOOL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_missing_credentials: Option<bool>,
}

/// Where the credential of one scheme is taken from.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SchemeSettings {
    /// A variable that holds the key, the token, or `user:password`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<String>,
    /// A file that holds it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The user's name, where it is given alone
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<Reference>,
    /// The user's password, where it is given alone
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<Reference>,
    /// The OAuth client's name
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<Reference>,
    /// The OAuth client's secret
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<Reference>,
    /// A refresh token, which is exchanged for access tokens
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<Reference>,
    /// The scopes to ask for, with spaces between
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scopes: Option<String>,
    /// The audience to ask for
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
    /// The token endpoint
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_url: Option<String>,
    /// The issuer, which names the token endpoint
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
}

/// Where a secret is taken from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum Reference {
    /// An environment variable
    Env(String),
    /// A file, read at start
    File(PathBuf),
}

impl CredentialSettings {
    /// The files that are named.
    pub(crate) fn files(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        self.auth.values_mut().flat_map(|scheme| {
            let parts = [
                &mut scheme.username,
                &mut scheme.password,
                &mut scheme.client_id,
                &mut scheme.client_secret,
                &mut scheme.refresh_token,
            ];
            let of_parts = parts.into_iter().flatten().filter_map(|reference| match reference {
                Reference::File(path) => Some(path),
                Reference::Env(_) => None,
            });
            scheme.file.iter_mut().chain(of_parts)
        })
    }
}

/// Settings of our own whose variables are called like those of credentials. The credential of a scheme of such a name can
/// only be given in the file.
const SETTINGS: [&str; 2] = ["TOKEN_ENV", "TOKEN_FILE"];

/// The credentials with their values; everything wrong with them is pushed to `problems`, and no value is.
pub(crate) fn resolve_credentials(settings: &CredentialSettings, problems: &mut Vec<String>) -> Credentials {
    let mut credentials = Credentials {
        origins: origins(settings, problems),
        optional: settings.allow_missing_credentials.unwrap_or(false),
        ..Credentials::default()
    };
    for (name, value) in std::env::vars_os() {
        let Some(suffix) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else {
            continue;
        };
        if SETTINGS.contains(&suffix) {
            continue;
        }
        match value
            .into_string()
            .map_err(|_| "is no text")
            .and_then(|value| checked(CredentialPart::of_variable(suffix), secret(&value)?))
        {
            Ok(value) => {
                credentials.variables.insert(suffix.to_owned(), value);
            }
            Err(why) => problems.push(format!("the variable {PREFIX}{suffix} {why}")),
        }
    }
    for (scheme, settings) in &settings.auth {
        let key = format!("auth.{scheme}");
        let own = match (&settings.env, &settings.file) {
            (Some(name), None) => Some(Reference::Env(name.clone())),
            (None, Some(path)) => Some(Reference::File(path.clone())),
            (None, None) => None,
            (Some(_), Some(_)) => {
                problems.push(format!("`{key}` has both `env` and `file`; one is enough"));
                None
            }
        };
        let mut given = CredentialValues::new();
        for (part, reference) in [
            (CredentialPart::Value, &own),
            (CredentialPart::Username, &settings.username),
            (CredentialPart::Password, &settings.password),
            (CredentialPart::ClientId, &settings.client_id),
            (CredentialPart::ClientSecret, &settings.client_secret),
            (CredentialPart::RefreshToken, &settings.refresh_token),
        ] {
            let Some(reference) = reference else { continue };
            match read_secret(reference) {
                Ok(value) => {
                    given.insert(part, value);
                }
                Err(why) => problems.push(format!("`{key}{}`: {why}", member(part))),
            }
        }
        for (part, text) in [
            (CredentialPart::Scopes, &settings.scopes),
            (CredentialPart::Audience, &settings.audience),
            (CredentialPart::TokenUrl, &settings.token_url),
            (CredentialPart::Issuer, &settings.issuer),
        ] {
            let Some(text) = text else { continue };
            match secret(text).and_then(|value| checked(part, value)) {
                Ok(value) => {
                    given.insert(part, value);
                }
                Err(why) => problems.push(format!("`{key}{}` {why}", member(part))),
            }
        }
        credentials.schemes.insert(scheme.clone(), given);
    }
    credentials
}

/// How the file calls a part.
fn member(part: CredentialPart) -> String {
    let name = part.suffix().to_ascii_lowercase();
    if name.is_empty() {
        name
    } else {
        format!(".{}", name.trim_start_matches('_'))
    }
}

/// What must be a URL is one that a secret may be sent to.
fn checked(part: CredentialPart, value: SecretString) -> Result<SecretString, &'static str> {
    let usable = |text: &str| Url::parse(text).is_ok_and(|url| server::usable(url).is_ok());
    if part.is_url() && !usable(value.expose_secret()) {
        return Err("is no http(s) URL without user, query and fragment");
    }
    Ok(value)
}

/// The origins of `--credential-origin`.
fn origins(settings: &CredentialSettings, problems: &mut Vec<String>) -> Vec<Origin> {
    let origin = |text: &String| match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.path() == "/" && url.query().is_none() => Some(url.origin()),
        _ => {
            problems.push("--credential-origin wants scheme and host, as in https://uploads.example".into());
            None
        }
    };
    settings.credential_origin.iter().filter_map(origin).collect()
}

fn read_secret(reference: &Reference) -> Result<SecretString, String> {
    match reference {
        Reference::Env(name) => secret_variable(name),
        Reference::File(path) => {
            let shown = path.display();
            let text = text_file(path).map_err(|error| format!("the file `{shown}` cannot be read: {error}"))?;
            secret(&text).map_err(|why| format!("the file `{shown}` {why}"))
        }
    }
}

/// The secret that a variable holds.
pub(crate) fn secret_variable(name: &str) -> Result<SecretString, String> {
    let value = std::env::var(name).map_err(|_| format!("{} is not set, or is no text", called(name)))?;
    secret(&value).map_err(|why| format!("the variable `{name}` {why}"))
}

/// A secret is a line: more than this is another file.
const MAX_FILE_BYTES: u64 = 64 << 10;

fn text_file(path: &Path) -> std::io::Result<String> {
    use std::io::{Error, Read as _};
    let file = std::fs::File::open(path)?;
    let mut text = String::new();
    if file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)? as u64 > MAX_FILE_BYTES {
        return Err(Error::other("it is larger than any credential"));
    }
    Ok(text)
}

/// Files and here-documents end with a line break that belongs to nobody.
fn secret(value: &str) -> Result<SecretString, &'static str> {
    let trimmed = value.trim_end_matches(['\r', '\n']);
    if trimmed.trim().is_empty() {
        return Err("is empty");
    }
    if trimmed.chars().any(char::is_control) {
        return Err("holds a line break or another control character, which no credential can");
    }
    Ok(SecretString::from(trimmed.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, Reference) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        std::fs::write(&path, text).unwrap();
        (directory, Reference::File(path))
    }

    #[test]
    fn a_file_gives_its_line_and_nothing_else() {
        for (text, expected) in [
            ("s3cret\n", Some("s3cret")),
            ("s3cret\r\n\n", Some("s3cret")),
            (" a b ", Some(" a b ")),
            ("\n", None),
            ("a\nb", None),
            ("a\0b", None),
        ] {
            let (_directory, reference) = file(text);
            let read = read_secret(&reference);
            assert_eq!(read.as_ref().ok().map(secrecy::ExposeSecret::expose_secret), expected, "{text:?}");
            assert!(!format!("{read:?}").contains("s3cret"), "{read:?}");
        }
        assert!(read_secret(&Reference::File("/dev/zero".into())).is_err());
    }
}
