//! The operator's values for the security schemes of a document, by the name of the scheme, and the
//! parts of a credential.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use heck::ToShoutySnakeCase as _;
use secrecy::{ExposeSecret as _, SecretString};
use strum::VariantArray as _;
use url::{Origin, Url};

use super::credential_part::{CredentialPart, CredentialValues, basic_forms, user_and_password};
use super::signatures::Signatures;
use super::tokens::oauth_client::{ClientSigner, ExchangeOptions, GrantKind};
use super::tokens::token_store::TokenStore;
use crate::outbound::is_encrypted_or_local;
use crate::redact::secrets::is_common;
use crate::shared_state::state::SharedApiState;
use crate::spec::{OAuthFlow, SecurityScheme};
use crate::text;

/// The prefix of the environment variables of credentials.
pub(crate) const PREFIX: &str = "OPENAPI_MCP_AUTH_";

/// Settings of the server whose variables have the same prefix, without it. The credential of a
/// scheme with such a name can only be set in the configuration file.
pub(crate) const RESERVED_SUFFIXES: [&str; 2] = ["TOKEN_ENV", "TOKEN_FILE"];

/// Place in which the operator sets the credentials of an API.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum CredentialPlace {
    /// Variables with this prefix, or `auth` in the configuration file.
    Variables(String),
    /// The entry of each tenant in the configuration file.
    Tenants,
}

/// The settings for all schemes.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    /// The name of the API in the names of its variables, if there are several APIs: `PETS` of
    /// `OPENAPI_MCP_AUTH_PETS_KEY`.
    pub api: Option<String>,
    /// Values by the name of the variable, without `OPENAPI_MCP_AUTH_` and the name of the API.
    pub variables: BTreeMap<String, SecretString>,
    /// Values from the configuration file, by the name of the scheme. A variable overrides them.
    pub schemes: BTreeMap<String, CredentialValues>,
    /// Origins that headers and credentials may go to besides the API's own.
    pub origins: Vec<Origin>,
    /// True if a client certificate is presented to the API.
    pub client_certificate: bool,
    /// True if a call is made without the credential that it requires if none is set.
    pub optional: bool,
    /// Storage of replaced tokens.
    pub token_store: Option<TokenStore>,
    /// Storage of the tokens of logins; `None` if nobody can sign in.
    pub login_store: Option<TokenStore>,
    /// State in which replicas share replaced tokens.
    pub shared: Option<SharedApiState>,
    /// The tenant that they belong to, if there are several.
    pub tenant: Option<String>,
    /// Further settings of OAuth clients from the configuration file, by the name of the scheme.
    pub clients: BTreeMap<String, OauthClientOptions>,
    /// Signatures of requests from the configuration file, by the name of the scheme.
    pub signatures: Signatures,
}

/// Authentication and requests of the OAuth client of a scheme, besides its values.
#[derive(Debug, Clone, Default)]
pub struct OauthClientOptions {
    /// Its key, in place of a secret.
    pub signer: Option<Arc<ClientSigner>>,
    /// The exchange of the token of the user who calls.
    pub exchange: Option<ExchangeOptions>,
    /// The authorization endpoint, for logins.
    pub authorization_url: Option<Url>,
    /// The device authorization endpoint, for logins.
    pub device_authorization_url: Option<Url>,
}

impl OauthClientOptions {
    /// Returns true if the operator names an endpoint for logins.
    pub(crate) fn logs_in(&self) -> bool {
        self.authorization_url.is_some() || self.device_authorization_url.is_some()
    }
}

/// Returns true if an HTTP scheme takes `user:password`.
pub(crate) fn takes_pair(kind: &str) -> bool {
    kind.eq_ignore_ascii_case("basic")
}

/// Returns true for HTTP digest authentication (RFC 7616), which no call can use.
pub(crate) fn is_digest(kind: &str) -> bool {
    kind.eq_ignore_ascii_case("digest")
}

/// Returns true if a scheme takes an access token (RFC 6750).
pub(crate) fn takes_access_token(scheme: &SecurityScheme) -> bool {
    match scheme {
        SecurityScheme::OAuth2 { .. } | SecurityScheme::OpenIdConnect => true,
        SecurityScheme::Http(kind) => kind.eq_ignore_ascii_case("bearer"),
        _ => false,
    }
}

/// Returns true if a credential of that kind may have that part, besides its value.
fn uses(scheme: &SecurityScheme, part: CredentialPart) -> bool {
    let by_user = matches!(part, CredentialPart::Username | CredentialPart::Password);
    match scheme {
        SecurityScheme::OAuth2 {
            flow: OAuthFlow::Password,
            ..
        } => part != CredentialPart::Value,
        SecurityScheme::OAuth2 { .. } | SecurityScheme::OpenIdConnect => {
            part != CredentialPart::Value && !by_user
        }
        SecurityScheme::Http(kind) => by_user && takes_pair(kind),
        _ => false,
    }
}

impl Credentials {
    /// The environment variable for a scheme, without `OPENAPI_MCP_AUTH_`: its name in upper snake
    /// case.
    #[must_use]
    pub fn suffix(scheme: &str) -> String {
        // `OAuth2` is one word: OAUTH2, not O_AUTH2.
        Self::plain_suffix(&scheme.replace("OAuth", "Oauth").to_shouty_snake_case())
    }

    /// Returns the prefix of its variables.
    fn variable_prefix(&self) -> String {
        self.api
            .as_ref()
            .map_or_else(|| PREFIX.to_owned(), |api| format!("{PREFIX}{api}_"))
    }

    /// Returns the place in which the operator sets them.
    pub(crate) fn place(&self) -> CredentialPlace {
        match self.tenant {
            Some(_) => CredentialPlace::Tenants,
            None => CredentialPlace::Variables(self.variable_prefix()),
        }
    }

    /// The exchange of users' tokens for a scheme.
    pub(crate) fn exchange(&self, scheme: &str) -> Option<&ExchangeOptions> {
        self.clients.get(scheme)?.exchange.as_ref()
    }

    /// A sentence for each grant that cannot take effect with a document: another credential must
    /// not take its place.
    pub(crate) fn wrong_grants(&self, schemes: &BTreeMap<String, SecurityScheme>) -> Vec<String> {
        let mut wrong = Vec::new();
        for (name, options) in &self.clients {
            let Some(exchange) = &options.exchange else {
                continue;
            };
            let scheme = schemes.get(name);
            let values = self.of(name);
            let has = |part: CredentialPart| values.contains_key(&part);
            let has_scopes = has(CredentialPart::Scopes);
            let endpoint = values.get(&CredentialPart::TokenUrl);
            let endpoint = endpoint.or_else(|| values.get(&CredentialPart::Issuer));
            let is_safe = endpoint.map(|url| {
                Url::parse(url.expose_secret()).is_ok_and(|url| is_encrypted_or_local(&url))
            });
            let others = [
                CredentialPart::Value,
                CredentialPart::Username,
                CredentialPart::Password,
                CredentialPart::RefreshToken,
            ];
            let faults = [
                (
                    scheme.is_none(),
                    "the document has no security scheme of this name",
                ),
                (
                    scheme.is_some_and(|scheme| !takes_access_token(scheme)),
                    "it needs a security scheme of the type oauth2, openIdConnect or http bearer, and the document's is of another type",
                ),
                (!has(CredentialPart::ClientId), "it needs `client_id`"),
                (is_safe.is_none(), "it needs `token_url` or `issuer`"),
                (
                    is_safe == Some(false),
                    "its endpoint must be an https URL, because it gets the tokens of users",
                ),
                (
                    others.into_iter().any(has),
                    "another credential is set for this scheme; with a grant, the API gets the user's token alone",
                ),
                (
                    has_scopes && exchange.operation_scopes,
                    "`scopes` and `operation_scopes` are both set; one is enough",
                ),
                (
                    exchange.grant == GrantKind::OnBehalfOf
                        && !has_scopes
                        && !exchange.operation_scopes,
                    "on-behalf-of needs `scopes`, as in `api://CLIENT_ID/.default`",
                ),
            ];
            let shown = text::one_line(name);
            let faults = faults.into_iter().filter(|(is_there, _)| *is_there);
            wrong.extend(faults.map(|(_, fault)| format!("`auth.{shown}.grant`: {fault}")));
        }
        wrong
    }

    /// A sentence for each variable that could hold two parts of the credentials of these schemes.
    pub(crate) fn ambiguous_variables(
        &self,
        schemes: &BTreeMap<String, SecurityScheme>,
    ) -> Vec<String> {
        let ambiguous = self.variables.keys().filter_map(|variable| {
            let found = Self::readings(variable, schemes)
                .filter(|(_, scheme, part)| *part == CredentialPart::Value || uses(scheme, *part));
            let shown = found.map(|(name, _, part)| match (part, text::one_line(name)) {
                (CredentialPart::Value, name) => format!("the value of `{name}`"),
                (part, name) => format!("{} of `{name}`", part.key()),
            });
            let readings: Vec<String> = shown.collect();
            (readings.len() > 1).then(|| {
                format!(
                    "the variable {}{variable} could be {}, and is given to neither; unset it, and name the credential with `auth`",
                    self.variable_prefix(),
                    readings.join(" or ")
                )
            })
        });
        ambiguous.collect()
    }

    /// All values, with the parts that they are.
    fn parts(&self) -> impl Iterator<Item = (CredentialPart, &str)> {
        let given = self.schemes.values().flatten();
        let given = given.map(|(part, value)| (*part, value));
        let variables = self.variables.iter();
        let variables = variables.map(|(name, value)| (CredentialPart::of_variable(name), value));
        variables
            .chain(given)
            .map(|(part, value)| (part, value.expose_secret()))
    }

    /// The settings of these schemes whose values occur in replies by chance, because they are
    /// short or plain words.
    pub(crate) fn common_secrets<'s>(
        &'s self,
        schemes: &'s BTreeMap<String, SecurityScheme>,
    ) -> impl Iterator<Item = String> + 's {
        let is_common = |name: &&String| {
            let given = self.of(name);
            let mut secrets = given.iter().filter(|(part, _)| part.is_secret());
            secrets.any(|(_, secret)| {
                let pair = secret.expose_secret();
                is_common(pair.split_once(':').map_or(pair, |(_, password)| password))
            })
        };
        let setting = |name: &String| match self.place() {
            CredentialPlace::Variables(prefix) if !self.schemes.contains_key(name) => {
                format!("{prefix}{}", Self::suffix(name))
            }
            _ => format!("`auth.{}`", text::one_line(name)),
        };
        schemes.keys().filter(is_common).map(setting)
    }

    /// Returns true if one of the endpoints for tokens is encrypted.
    #[must_use]
    pub fn wants_tls(&self) -> bool {
        let mut parts = self.parts();
        let mut clients = self.clients.values();
        let mut signatures = self.signatures.values();
        parts.any(|(part, url)| part.is_url() && url.starts_with("https:"))
            || clients.any(|client| {
                let url = client.device_authorization_url.as_ref();
                url.is_some_and(|url| url.scheme() == "https")
            })
            || signatures.any(|signature| signature.wants_tls())
    }

    /// The secrets in each form in which they are sent: as they are, as `Basic` writes them, and
    /// the passwords of `user:password`.
    pub(crate) fn exposed(&self) -> Vec<Vec<u8>> {
        let mut forms = Vec::new();
        for (_, value) in self.parts().filter(|(part, _)| part.is_secret()) {
            forms.push(value.to_owned());
            forms.extend(basic_forms(value).into_iter().flatten());
        }
        let suffixes = self.variables.keys();
        let suffixes =
            suffixes.filter_map(|name| name.strip_suffix(CredentialPart::Password.suffix()));
        let given = suffixes
            .map(|suffix| self.of_variables(suffix, CredentialValues::new()))
            .chain(self.schemes.keys().map(|name| self.of(name)));
        let pairs = given.filter_map(|given| user_and_password(&given));
        forms.extend(pairs.map(|pair| STANDARD.encode(pair)));
        let mut forms: Vec<_> = forms.into_iter().map(String::into_bytes).collect();
        for signature in self.signatures.values() {
            forms.extend(signature.secrets());
        }
        forms
    }

    /// Returns the values of a scheme. `petKey` may be written `PET_KEY` and `PETKEY`; the former
    /// takes precedence.
    #[must_use]
    pub fn of(&self, scheme: &str) -> CredentialValues {
        let file = self.schemes.get(scheme).cloned().unwrap_or_default();
        let plain = self.of_variables(&Self::plain_suffix(scheme), file);
        self.of_variables(&Self::suffix(scheme), plain)
    }

    /// Returns the values of a scheme of a document. A variable that holds a part of another
    /// scheme's credential is not this one's value, independent of the names of schemes; the other
    /// one's name is then returned too.
    #[must_use]
    pub fn of_document<'s>(
        &self,
        name: &str,
        schemes: &'s BTreeMap<String, SecurityScheme>,
    ) -> (CredentialValues, Option<&'s str>) {
        let mut given = self.of(name);
        let of_another = |variable: &str| {
            let mut readings = Self::readings(variable, schemes);
            readings
                .find(|(other, scheme, part)| *other != name && uses(scheme, *part))
                .map(|(other, ..)| other)
        };
        let mut value = self
            .schemes
            .get(name)
            .and_then(|given| given.get(&CredentialPart::Value))
            .cloned();
        let mut owner = None;
        for variable in [Self::plain_suffix(name), Self::suffix(name)] {
            if let Some(found) = self.variables.get(&variable) {
                match of_another(&variable) {
                    Some(other) => owner = Some(other),
                    None => value = Some(found.clone()),
                }
            }
        }
        match value {
            Some(value) => given.insert(CredentialPart::Value, value),
            None => given.remove(&CredentialPart::Value),
        };
        (given, owner)
    }

    /// The parts of the credentials of these schemes that a variable may hold by its name.
    fn readings<'s>(
        variable: &str,
        schemes: &'s BTreeMap<String, SecurityScheme>,
    ) -> impl Iterator<Item = (&'s str, &'s SecurityScheme, CredentialPart)> {
        schemes.iter().flat_map(move |(name, scheme)| {
            let names = [Self::suffix(name), Self::plain_suffix(name)];
            let is_named = move |part: &CredentialPart| {
                let stem = variable.strip_suffix(part.suffix());
                stem.is_some_and(|stem| names.iter().any(|name| name == stem))
            };
            let parts = CredentialPart::VARIANTS.iter().copied().filter(is_named);
            parts.map(move |part| (name.as_str(), scheme, part))
        })
    }

    fn plain_suffix(scheme: &str) -> String {
        scheme
            .replace(|character: char| !character.is_ascii_alphanumeric(), "_")
            .to_ascii_uppercase()
    }

    fn of_variables(&self, suffix: &str, mut given: CredentialValues) -> CredentialValues {
        for part in CredentialPart::VARIANTS {
            if let Some(value) = self.variables.get(&format!("{suffix}{}", part.suffix())) {
                given.insert(*part, value.clone());
            }
        }
        given
    }

    /// Settings that belong to no scheme of the document; probably a name is misspelled.
    #[must_use]
    pub fn unmatched_settings(&self, schemes: &BTreeMap<String, SecurityScheme>) -> Vec<String> {
        if self.variables.is_empty() && self.schemes.is_empty() {
            return Vec::new();
        }
        let is_known = |variable: &str| Self::readings(variable, schemes).next().is_some();
        let variables = self.variables.keys().filter(|name| !is_known(name));
        let keys = self.schemes.keys();
        let keys = keys.filter(|name| !schemes.contains_key(*name));
        variables
            .map(|name| format!("the variable {}{name}", self.variable_prefix()))
            .chain(keys.map(|name| format!("the key `auth.{}`", text::one_line(name))))
            .collect()
    }
}
