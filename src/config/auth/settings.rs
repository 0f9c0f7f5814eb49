//! Settings of credentials: which values the operator gives for the document's security schemes,
//! always by reference.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use schemars::JsonSchema;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use strum::VariantArray as _;
use url::Url;

use super::references::{Reference, parse_secret, read_secret};
use super::signature::SignatureSettings;
use crate::config::problems::{Problems, join_path};
use crate::config::tables::to_map;
use crate::config::values::one_or_several;
use crate::credentials::credential_part::{CredentialPart, CredentialValues};
use crate::credentials::signatures::Signature;
use crate::credentials::tokens::oauth_client::GrantKind;
use crate::spec::operation::server;

/// Settings of credentials.
#[derive(Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct CredentialSettings {
    /// Credentials by the name of the document's security scheme. Each secret is a reference,
    /// `{ env: NAME }` or `{ file: PATH }` (docs/reference/credentials.md). Without this key,
    /// credentials come from variables named `OPENAPI_MCP_AUTH_` and the scheme's name in upper snake
    /// case. Only in the configuration file.
    #[arg(skip)]
    #[schemars(example = &"{ apiKey: { env: PETSTORE_KEY } }")]
    pub(crate) auth: BTreeMap<String, SchemeSettings>,

    /// An origin besides the API's own that headers and credentials may be sent to, as in
    /// `https://uploads.example` (a list)
    #[arg(
        long,
        hide = true,
        value_delimiter = ',',
        value_name = "ORIGIN",
        help_heading = "Credentials"
    )]
    pub(crate) credential_origin: Vec<String>,

    /// Call operations without the credentials that they require if none are set, instead of
    /// refusing the call
    #[arg(long, help_heading = "Credentials")]
    pub(crate) allow_missing_credentials: Option<bool>,

    /// A file in which refresh tokens are kept that the token endpoint replaces, for the next start
    /// and for other processes, and those of `openapi-mcp login` [default: for logins over stdio,
    /// `openapi-mcp/tokens.json` in the system's folder for state]
    #[arg(long, hide = true, value_name = "FILE", help_heading = "Credentials")]
    pub(crate) token_store: Option<PathBuf>,
}

/// Source of the credential of one scheme.
#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "`{ env: VARIABLE }` or `{ file: PATH }`, or a mapping of parts such as `username` and `password`"
)]
pub(crate) struct SchemeSettings {
    /// A variable with the key, the token, or `user:password`
    pub(crate) env: Option<String>,
    /// A file with the same
    pub(crate) file: Option<PathBuf>,
    /// The user's name, if it is separate from the password
    pub(crate) username: Option<Reference>,
    /// The user's password, if it is separate from the name
    pub(crate) password: Option<Reference>,
    /// The OAuth client's identifier
    pub(crate) client_id: Option<ClientId>,
    /// The OAuth client's secret
    pub(crate) client_secret: Option<Reference>,
    /// A refresh token, which is exchanged for access tokens
    pub(crate) refresh_token: Option<Reference>,
    /// The scopes to request, separated by spaces
    pub(crate) scopes: Option<String>,
    /// The audience to request; with a grant, several
    #[schemars(with = "crate::config::overrides::Globs")]
    #[serde(deserialize_with = "one_or_several")]
    pub(crate) audience: Vec<String>,
    /// The token endpoint
    pub(crate) token_url: Option<String>,
    /// The issuer, whose metadata names the token endpoint
    pub(crate) issuer: Option<String>,
    /// For `openapi-mcp login`: the authorization endpoint, if the issuer does not name it
    pub(crate) authorization_url: Option<String>,
    /// For `openapi-mcp login --device`: the device authorization endpoint, if the issuer does not
    /// name it
    pub(crate) device_authorization_url: Option<String>,
    /// The OAuth client's private key in PEM, in place of a secret (`private_key_jwt`)
    pub(crate) client_key: Option<Reference>,
    /// The name of that key (`kid`)
    pub(crate) client_key_id: Option<String>,
    /// A file with the certificate of that key in PEM, as Microsoft Entra asks for
    pub(crate) client_certificate: Option<PathBuf>,
    /// The audience of what that key signs, if it is neither `issuer` nor `token_url`
    pub(crate) assertion_audience: Option<String>,
    /// Call the API as the user: how the token of the client becomes one of the API
    pub(crate) grant: Option<GrantKind>,
    /// With a grant: the resource to request (RFC 8707)
    #[schemars(with = "crate::config::overrides::Globs")]
    #[serde(deserialize_with = "one_or_several")]
    pub(crate) resource: Vec<String>,
    /// With a grant: request the scopes that the document names for the operation, in place of
    /// `scopes`
    pub(crate) operation_scopes: Option<bool>,
    /// With a grant: the type of the client's token, `access_token`, `jwt`, or a URI (RFC 8693
    /// section 3)
    pub(crate) subject_token_type: Option<String>,
    /// Sign requests for AWS (Signature Version 4)
    pub(crate) sigv4: Option<SignatureSettings>,
}

impl SchemeSettings {
    /// Returns true if a login is what gives the tokens, as far as the settings say.
    pub(crate) fn needs_login(&self) -> bool {
        let others = [
            self.env.is_some(),
            self.file.is_some(),
            self.refresh_token.is_some(),
            self.password.is_some(),
            self.grant.is_some(),
        ];
        let has_secret = self.client_secret.is_some() || self.client_key.is_some();
        let is_named = self.authorization_url.is_some() || self.device_authorization_url.is_some();
        self.client_id.is_some() && !others.contains(&true) && (is_named || !has_secret)
    }

    /// The environment variables that it names.
    pub(crate) fn variables(&self) -> Vec<String> {
        fn collect(value: &Value, found: &mut Vec<String>) {
            for (key, member) in value.as_object().into_iter().flatten() {
                match member {
                    Value::String(name) if key == "env" => found.push(name.clone()),
                    _ => collect(member, found),
                }
            }
        }
        let mut found = Vec::new();
        collect(&to_map(self).into(), &mut found);
        found
    }

    /// Resolves the signatures of its requests. `key` is its own in the file; faults are pushed to
    /// `problems`.
    pub(super) fn signature(&self, key: &str, problems: &mut Problems) -> Option<Arc<Signature>> {
        let settings = self.sigv4.as_ref()?;
        let others = to_map(self)
            .into_iter()
            .filter(|(other, _)| other != "sigv4");
        problems.extend(others.map(|(other, _)| {
            format!(
                "`{key}` has both `sigv4` and `{other}`; a signed request has no other credential"
            )
        }));
        settings.resolve(&join_path(key, "sigv4"), problems)
    }
}

/// A client identifier: the value itself, or its source.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a text, or `{ env: VARIABLE }` or `{ file: PATH }`"
)]
pub(crate) enum ClientId {
    /// The identifier
    Text(String),
    /// Source of the identifier
    Reference(Reference),
}

/// Resolves the values of the scheme at `key` of the file: each part under its key, and its own.
pub(super) fn scheme_values(
    key: &str,
    settings: &SchemeSettings,
    problems: &mut Problems,
) -> CredentialValues {
    let mut members = to_map(settings);
    let own = ["env", "file"];
    let own = own
        .iter()
        .filter_map(|key| members.shift_remove_entry(*key));
    let own: Map<String, Value> = own.collect();
    match own.len() {
        0 => {}
        1 => drop(members.insert(CredentialPart::Value.key(), own.into())),
        _ => problems.push(format!("`{key}` has both `env` and `file`; one is enough")),
    }
    let mut given = CredentialValues::new();
    for part in CredentialPart::VARIANTS.iter().copied() {
        let name = part.key();
        let Some(value) = members.get(&name) else {
            continue;
        };
        // `audience` may be a list, of which the first is the part.
        let read = match value.get(0).unwrap_or(value) {
            Value::String(text) => read_part(part, text),
            reference => match Reference::deserialize(reference) {
                Ok(reference) => read_secret(&reference),
                Err(_) => Err("it is neither a text nor a reference".to_owned()),
            },
        };
        let place = if name.is_empty() {
            format!("`{key}`")
        } else {
            format!("`{key}.{name}`")
        };
        given.extend(problems.ok(place, read).map(|value| (part, value)));
    }
    given
}

/// The value of a part that is written into the file.
fn read_part(part: CredentialPart, text: &str) -> Result<SecretString, String> {
    let value = parse_secret(text).and_then(|value| check_part(part, value));
    value.map_err(|why| format!("it {why}"))
}

/// Checks that a part that must be a URL is one that a secret may be sent to.
pub(crate) fn check_part(
    part: CredentialPart,
    value: SecretString,
) -> Result<SecretString, &'static str> {
    let usable = |text: &str| Url::parse(text).is_ok_and(|url| server::usable(url).is_ok());
    if part.is_url() && !usable(value.expose_secret()) {
        return Err("is not an http(s) URL without user, query and fragment");
    }
    Ok(value)
}
