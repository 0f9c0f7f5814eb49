//! The part that a security scheme adds to a call, made of the operator's values for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderName, HeaderValue};
use secrecy::ExposeSecret as _;
use url::Url;

use super::authenticator::Authenticator;
use super::credential_part::{CredentialPart, CredentialValues, user_and_password};
use super::forward::Forwarding;
use super::signatures::kind::SignatureKind;
use super::signatures::kind_of;
use super::tokens::access_token::{Grant, TokenRequest};
use super::tokens::oauth_client::{Endpoint, ExchangeOptions, OauthClient, exposed};
use super::tokens::token_endpoint::TokenEndpoint;
use super::tokens::token_exchange::TokenExchange;
use super::tokens::token_keeper::TokenKeeper;
use super::tokens::token_source::TokenSource;
use super::values::{
    CredentialPlace, Credentials, PREFIX, RESERVED_SUFFIXES, is_digest, takes_access_token,
    takes_pair,
};
use crate::credentials::sensitive_header;
use crate::outbound::request::{Keep, percent_encode};
use crate::outbound::{Clients, HttpClient, is_encrypted_or_local};
use crate::spec::{Location, OAuthFlow, SecurityScheme};
use crate::text;

/// The part that one scheme adds to a call.
#[derive(Clone)]
pub(crate) enum Applied {
    /// A credential that is present anyway: a header of the operator's, a client certificate.
    AlreadyProvided,
    /// A header.
    Header(HeaderName, HeaderValue),
    /// A query pair, encoded.
    Query(String, String),
    /// A cookie pair, encoded.
    Cookie(String),
    /// An `Authorization` header that is made anew for each request.
    Authenticator(Authenticator),
    /// A header of the client's, and what the API calls it.
    Client(HeaderName, HeaderName),
}

impl Applied {
    /// The headers that it sets, that of the credential first.
    pub(super) fn headers(&self) -> &[HeaderName] {
        match self {
            Self::Header(name, _) => std::slice::from_ref(name),
            Self::Authenticator(authenticator) => authenticator.headers(),
            _ => &[],
        }
    }
}

/// Reason for which a scheme adds nothing.
#[derive(Clone)]
pub(crate) struct MissingCredential {
    /// The setting that is missing, for all readers.
    pub(crate) setting: String,
    /// The cause, if it is not a missing setting; for the operator only.
    pub(crate) cause: Option<String>,
}

/// Cause without its setting; `None` if nothing was set.
type MissingCause = Option<&'static str>;

const UNSENDABLE: &str = "no header can hold its value";

/// Location of an API.
#[derive(Debug, Clone)]
pub(crate) struct ApiLocation {
    /// Base URL of calls, if it is known for the API as a whole.
    pub(crate) base: Option<Url>,
    /// URL of the document.
    pub(crate) document: Option<Url>,
    /// Ask for tokens.
    pub(crate) clients: Clients,
}

/// Values by which schemes are resolved.
pub(crate) struct SchemeResolver<'a> {
    /// The document's schemes.
    pub(crate) schemes: &'a BTreeMap<String, SecurityScheme>,
    /// The operator's values for them.
    pub(crate) credentials: &'a Credentials,
    /// The operator's headers, which every call carries.
    pub(crate) headers: &'a HeaderMap,
    /// The client's headers that go upstream.
    pub(crate) forward: &'a Forwarding,
    /// Location of the API.
    pub(crate) site: ApiLocation,
}

/// Returns true if a scheme of the document is an API key in the header of that name.
pub(crate) fn is_api_key_header(
    schemes: &BTreeMap<String, SecurityScheme>,
    name: &HeaderName,
) -> bool {
    let is_key = |scheme: &SecurityScheme| matches!(scheme, SecurityScheme::ApiKey { location, name: key } if *location == Location::Header && key.eq_ignore_ascii_case(name.as_str()));
    schemes.values().any(is_key)
}

impl SchemeResolver<'_> {
    /// Returns the part that a scheme adds to a call, or what is missing.
    pub(crate) fn resolve(&self, name: &str) -> Result<Applied, MissingCredential> {
        let (values, owner) = self.credentials.of_document(name, self.schemes);
        if let Some(options) = self.credentials.exchange(name) {
            return self.exchange(name, options, &values);
        }
        if let Some(signature) = self.credentials.signatures.get(name) {
            let signer = signature.signer(name, self.site.base.as_ref(), &self.site.clients);
            let signer = signer.map_err(|cause| MissingCredential {
                setting: signature_setting(name, signature.kind(), &self.credentials.place()),
                cause: Some(cause),
            })?;
            return Ok(Applied::Authenticator(Authenticator::Signature(signer)));
        }
        let applied = match self.schemes.get(name) {
            None => Err(Some("the document does not define it")),
            Some(SecurityScheme::ApiKey {
                location,
                name: key,
            }) => self.api_key(*location, key, &values),
            Some(SecurityScheme::AwsSignature) => {
                self.api_key(Location::Header, AUTHORIZATION.as_str(), &values)
            }
            Some(SecurityScheme::Http(kind)) => self.authorization(kind, &values),
            Some(SecurityScheme::MutualTls) if self.credentials.client_certificate => {
                Ok(Applied::AlreadyProvided)
            }
            Some(SecurityScheme::MutualTls) => Err(None),
            Some(scheme @ (SecurityScheme::OAuth2 { .. } | SecurityScheme::OpenIdConnect)) => {
                let client = self.credentials.clients.get(name);
                let has_key = client.is_some_and(|client| client.signer.is_some());
                match (
                    Grant::select(scheme, &values, has_key),
                    self.source_of_login(name),
                ) {
                    // What is stored for this client was put there by a person.
                    (Ok(Some(Grant::ClientCredentials)), Some((source, true)))
                    | (Err((CredentialPart::ClientSecret, _)), Some((source, _))) => {
                        return Ok(by_token(source));
                    }
                    (Ok(Some(grant)), _) => return self.token_source(name, scheme, &values, grant),
                    (Ok(None), _) => self.authorization("Bearer", &values),
                    (Err((part, cause)), _) => return Err(self.missing_part(name, part, cause)),
                }
            }
        };
        applied.map_err(|cause| MissingCredential {
            setting: self.setting(name),
            cause: cause.map(str::to_owned).or_else(|| {
                let owner = text::truncate(&text::one_line(owner?), 100);
                Some(format!(
                    "its variable holds a part of the credential of `{owner}`; give this one in the configuration file"
                ))
            }),
        })
    }

    fn api_key(
        &self,
        location: Location,
        key: &str,
        values: &CredentialValues,
    ) -> Result<Applied, MissingCause> {
        if let Some(value) = values.get(&CredentialPart::Value) {
            return apply_api_key(location, key, value.expose_secret()).ok_or(Some(UNSENDABLE));
        }
        if self.has_key(location, key) {
            return Ok(Applied::AlreadyProvided);
        }
        match HeaderName::from_bytes(key.as_bytes()) {
            Ok(name) if location == Location::Header => self.of_client(name).ok_or(None),
            _ => Err(None),
        }
    }

    /// An `Authorization` header of an HTTP authentication scheme (RFC 9110 section 11.1).
    fn authorization(
        &self,
        kind: &str,
        values: &CredentialValues,
    ) -> Result<Applied, MissingCause> {
        let value = exposed(values.get(&CredentialPart::Value));
        let text = match kind.to_ascii_lowercase().as_str() {
            "basic" => {
                user_and_password(values).map(|pair| format!("Basic {}", STANDARD.encode(pair)))
            }
            "bearer" => value.map(|value| format!("Bearer {}", bare_token(value))),
            _ if is_digest(kind) => None,
            _ => value.map(|value| format!("{kind} {value}")),
        };
        match text.map(|text| sensitive_header(text.as_bytes())) {
            Some(Ok(value)) => Ok(Applied::Header(AUTHORIZATION, value)),
            Some(Err(_)) => Err(Some(UNSENDABLE)),
            None if self.headers.contains_key(AUTHORIZATION) => Ok(Applied::AlreadyProvided),
            None if self.forward.sets(AUTHORIZATION.as_str()) => {
                self.of_client(AUTHORIZATION).ok_or(None)
            }
            None if value.is_some() && takes_pair(kind) => Err(Some("its value has no colon")),
            None => Err(None),
        }
    }

    /// Access tokens that this server asks for (RFC 6749 sections 4.3, 4.4 and 6).
    fn token_source(
        &self,
        name: &str,
        scheme: &SecurityScheme,
        values: &CredentialValues,
        grant: Grant,
    ) -> Result<Applied, MissingCredential> {
        let client = self.oauth_client(name, self.token_endpoint(name, scheme, values)?, values);
        let http = self.client_for(client.endpoint.url());
        let request = TokenRequest {
            grant: Some(grant),
            scopes: values.get(&CredentialPart::Scopes).cloned(),
            audience: values.get(&CredentialPart::Audience).cloned(),
        };
        let keeper = TokenKeeper::new(&client, request.refresh_token(), self.credentials);
        let endpoint = TokenEndpoint::new(client, http.clone());
        Ok(by_token(TokenSource::new(endpoint, request, keeper)))
    }

    /// Access tokens of the users who call (RFC 8693). The document names no part of it.
    fn exchange(
        &self,
        name: &str,
        options: &ExchangeOptions,
        values: &CredentialValues,
    ) -> Result<Applied, MissingCredential> {
        let missing = |part, cause| Err(self.missing_part(name, part, cause));
        if !self.schemes.get(name).is_some_and(takes_access_token) {
            let why = "its scheme does not take access tokens";
            return missing(CredentialPart::Value, why);
        }
        let Some(endpoint) = configured_endpoint(values) else {
            let why = "users' tokens go to no other endpoint";
            return missing(CredentialPart::TokenUrl, why);
        };
        if !is_encrypted_or_local(endpoint.url()) {
            let why = "users' tokens go to an https URL, or to this machine";
            return missing(CredentialPart::TokenUrl, why);
        }
        let client = self.oauth_client(name, endpoint, values);
        if client.id.is_none() {
            let why = "an exchange of tokens needs a client";
            return missing(CredentialPart::ClientId, why);
        }
        let scope = exposed(values.get(&CredentialPart::Scopes));
        let Credentials { api, tenant, .. } = self.credentials;
        let owner = [api, tenant].map(Clone::clone);
        let endpoint = TokenEndpoint::new(client, self.site.clients.other.clone());
        let mut options = options.clone();
        // One that is set alone may be in a variable.
        if let Some(audience) = exposed(values.get(&CredentialPart::Audience))
            && options.audiences.len() < 2
        {
            options.audiences = vec![audience.to_owned()];
        }
        let exchange = Arc::new(TokenExchange::new(endpoint, options, scope, owner));
        Ok(Applied::Authenticator(Authenticator::Exchange(exchange)))
    }

    /// The HTTP client that asks a token endpoint.
    pub(super) fn client_for(&self, endpoint: &Url) -> &HttpClient {
        match &self.site.base {
            Some(base) if base.origin() == endpoint.origin() => &self.site.clients.own,
            _ => &self.site.clients.other,
        }
    }

    /// A URL of the document, if it lies on the API's own origin and is encrypted or local.
    pub(super) fn own_url(&self, text: &str) -> Option<Url> {
        let base = self.site.document.as_ref().or(self.site.base.as_ref());
        let own = self.site.base.as_ref().map(Url::origin)?;
        let url = Url::options().base_url(base).parse(text).ok()?;
        (url.origin() == own && is_encrypted_or_local(&url)).then_some(url)
    }

    pub(super) fn oauth_client(
        &self,
        name: &str,
        endpoint: Endpoint,
        values: &CredentialValues,
    ) -> OauthClient {
        let options = self.credentials.clients.get(name);
        OauthClient {
            scheme: name.to_owned(),
            endpoint,
            id: values.get(&CredentialPart::ClientId).cloned(),
            secret: values.get(&CredentialPart::ClientSecret).cloned(),
            signer: options.and_then(|options| options.signer.clone()),
            issuer: exposed(values.get(&CredentialPart::Issuer)).map(str::to_owned),
        }
    }

    /// Names the setting of a part of a credential.
    pub(super) fn part_setting(&self, name: &str, part: CredentialPart) -> String {
        match self.credentials.place() {
            CredentialPlace::Variables(prefix) => {
                format!("{prefix}{}{}", Credentials::suffix(name), part.suffix())
            }
            CredentialPlace::Tenants => format!(
                "`auth.{name}.{}` of its tenant in the configuration file",
                part.key()
            ),
        }
    }

    /// Returns the missing setting of a part of a credential.
    fn missing_part(&self, name: &str, part: CredentialPart, cause: &str) -> MissingCredential {
        MissingCredential {
            setting: self.part_setting(name, part),
            cause: Some(cause.to_owned()),
        }
    }

    fn of_client(&self, name: HeaderName) -> Option<Applied> {
        let ours = self.forward.source(&name)?.clone();
        Some(Applied::Client(ours, name))
    }

    /// Returns true if the operator's headers hold an API key already.
    fn has_key(&self, location: Location, name: &str) -> bool {
        let has_cookie = |header: &HeaderValue| {
            let pairs = header.to_str().unwrap_or_default().split(';');
            let mut keys = pairs.filter_map(|pair| pair.split_once('='));
            keys.any(|(key, _)| key.trim() == name)
        };
        match location {
            Location::Header => self.headers.contains_key(name),
            Location::Cookie => self.headers.get_all(COOKIE).iter().any(has_cookie),
            _ => false,
        }
    }

    /// Returns the endpoint at which tokens of a scheme are requested. The document's token URL
    /// counts only on the API's own origin: a document must not be able to choose who gets the
    /// client's secret.
    fn token_endpoint(
        &self,
        name: &str,
        scheme: &SecurityScheme,
        given: &CredentialValues,
    ) -> Result<Endpoint, MissingCredential> {
        if let Some(endpoint) = configured_endpoint(given) {
            return Ok(endpoint);
        }
        let missing = |part, cause: &str| Err(self.missing_part(name, part, cause));
        match scheme {
            SecurityScheme::OAuth2 {
                token_url: Some(text),
                ..
            } => {
                if let Some(url) = self.own_url(text) {
                    return Ok(Endpoint::Token(url));
                }
                let text = text::truncate(&text::one_line(text), 200);
                let cause = format!(
                    "the document's own, `{text}`, is not on the API's origin over https, and a document does not decide who gets a client's secret"
                );
                missing(CredentialPart::TokenUrl, &cause)
            }
            SecurityScheme::OpenIdConnect => missing(
                CredentialPart::Issuer,
                "a document does not decide who gets a client's secret",
            ),
            _ => missing(
                CredentialPart::TokenUrl,
                "the document names no token endpoint",
            ),
        }
    }

    /// Names the setting of the operator for a scheme.
    pub(crate) fn setting(&self, name: &str) -> String {
        scheme_setting(name, self.schemes.get(name), &self.credentials.place())
    }
}

pub(super) fn url_of(values: &CredentialValues, part: CredentialPart) -> Option<Url> {
    Url::parse(values.get(&part)?.expose_secret()).ok()
}

/// The endpoint that the operator names.
pub(super) fn configured_endpoint(values: &CredentialValues) -> Option<Endpoint> {
    let url = url_of(values, CredentialPart::TokenUrl).map(Endpoint::Token);
    url.or_else(|| url_of(values, CredentialPart::Issuer).map(Endpoint::Issuer))
}

/// Names the setting of the operator for a scheme whose requests are signed.
fn signature_setting(name: &str, kind: &SignatureKind, place: &CredentialPlace) -> String {
    let of_tenant = match place {
        CredentialPlace::Variables(_) => "",
        CredentialPlace::Tenants => " of its tenant",
    };
    let name = text::one_line(name);
    let (key, kind) = (kind.key, kind.name);
    format!("`auth.{name}.{key}`{of_tenant} in the configuration file ({kind})")
}

fn by_token(source: TokenSource) -> Applied {
    Applied::Authenticator(Authenticator::Token(Arc::new(source)))
}

/// Names the setting of the operator for a security scheme.
pub(crate) fn scheme_setting(
    name: &str,
    scheme: Option<&SecurityScheme>,
    place: &CredentialPlace,
) -> String {
    if let Some(kind) = scheme.and_then(kind_of) {
        return signature_setting(name, kind, place);
    }
    let prefix = match (place, scheme) {
        (CredentialPlace::Variables(prefix), _) => prefix,
        (CredentialPlace::Tenants, Some(SecurityScheme::MutualTls)) => {
            return "a client certificate, which tenants cannot have".into();
        }
        (CredentialPlace::Tenants, _) => {
            return format!("`auth.{name}` of its tenant in the configuration file");
        }
    };
    if matches!(scheme, Some(SecurityScheme::Http(kind)) if is_digest(kind)) {
        return "--base-url to a proxy that answers HTTP digest challenges (this server does not)"
            .into();
    }
    let suffix = Credentials::suffix(name);
    let variable = format!("{prefix}{suffix}");
    if prefix == PREFIX && RESERVED_SUFFIXES.contains(&suffix.as_str()) {
        return format!(
            "`auth.{name}` in the configuration file ({variable} is a setting of the server)"
        );
    }
    match scheme {
        Some(SecurityScheme::Http(kind)) if takes_pair(kind) => {
            format!("{variable} (as `user:password`)")
        }
        Some(SecurityScheme::OAuth2 { flow, .. }) => match flow {
            OAuthFlow::ClientCredentials => format!(
                "{variable}_CLIENT_ID and {variable}_CLIENT_SECRET, or {variable} (an access token)"
            ),
            OAuthFlow::Password => format!(
                "{variable}_USERNAME and {variable}_PASSWORD, or {variable} (an access token)"
            ),
            OAuthFlow::Consent => format!(
                "{variable}_CLIENT_ID and a login (`openapi-mcp login`) or {variable}_REFRESH_TOKEN, or {variable} (an access token)"
            ),
            OAuthFlow::Implicit => format!("{variable} (an access token)"),
        },
        Some(SecurityScheme::OpenIdConnect) => {
            format!(
                "{variable}_ISSUER, {variable}_CLIENT_ID and {variable}_CLIENT_SECRET or a login (`openapi-mcp login`), or {variable} (an access token)"
            )
        }
        Some(SecurityScheme::MutualTls) => "`client_cert` and `client_key`".into(),
        Some(_) => variable,
        None => "a header (--header-env)".into(),
    }
}

/// People copy tokens with the word before them.
fn bare_token(value: &str) -> &str {
    match value.split_at_checked(7) {
        Some((word, token)) if word.eq_ignore_ascii_case("bearer ") => token.trim_start(),
        _ => value,
    }
}

fn apply_api_key(location: Location, name: &str, value: &str) -> Option<Applied> {
    Some(match location {
        Location::Query | Location::QueryString => Applied::Query(
            percent_encode(name, Keep::Unreserved),
            percent_encode(value, Keep::Unreserved),
        ),
        Location::Cookie => {
            // RFC 6265 section 4.1.1; what else a key may hold is percent-encoded.
            let octet = |byte: u8| matches!(byte, 0x21 | 0x23..=0x2b | 0x2d..=0x3a | 0x3c..=0x5b | 0x5d..=0x7e);
            let is_legal = value.bytes().all(octet);
            let encoded = (!is_legal).then(|| percent_encode(value, Keep::Unreserved));
            let value = encoded.as_deref().unwrap_or(value);
            Applied::Cookie(format!("{name}={value}"))
        }
        _ => Applied::Header(
            HeaderName::from_bytes(name.as_bytes()).ok()?,
            sensitive_header(value.as_bytes()).ok()?,
        ),
    })
}
