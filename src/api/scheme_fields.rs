//! Fields of a security scheme that a user fills in, and the variables in which the server reads
//! them.

use crate::credentials::credential_part::CredentialPart;
use crate::credentials::values::{
    CredentialPlace, Credentials, RESERVED_SUFFIXES, is_digest, takes_pair,
};
use crate::spec::{OAuthFlow, SecurityScheme};

/// One value that a person fills in.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SchemeField {
    /// The variable that the server reads.
    pub(crate) variable: String,
    /// Label of the field.
    pub(crate) label: &'static str,
    /// True if the value must not be shown.
    pub(crate) is_secret: bool,
}

/// A part of a credential, with the label of its field.
type SchemePart = (CredentialPart, &'static str);

/// The fields of a user name with its password.
const PAIR: [SchemePart; 2] = [
    (CredentialPart::Username, "user name"),
    (CredentialPart::Password, "password"),
];

/// Returns the fields of a scheme of an API whose credentials are set at that place; none if a
/// variable cannot give them (a client certificate, a scheme under the name of a setting, tenants).
pub(crate) fn scheme_fields(
    place: &CredentialPlace,
    name: &str,
    scheme: Option<&SecurityScheme>,
) -> Vec<SchemeField> {
    let CredentialPlace::Variables(prefix) = place else {
        return Vec::new();
    };
    let suffix = Credentials::suffix(name);
    if RESERVED_SUFFIXES.contains(&suffix.as_str()) {
        return Vec::new();
    }
    let parts: &[SchemePart] = match scheme {
        Some(SecurityScheme::Http(kind)) if is_digest(kind) => &[],
        Some(SecurityScheme::Http(kind)) if takes_pair(kind) => &PAIR,
        Some(SecurityScheme::OAuth2 { flow, .. }) => match flow {
            OAuthFlow::ClientCredentials => &[
                (CredentialPart::ClientId, "client id"),
                (CredentialPart::ClientSecret, "client secret"),
            ],
            OAuthFlow::Password => &PAIR,
            OAuthFlow::Consent => &[
                (CredentialPart::ClientId, "client id"),
                (CredentialPart::RefreshToken, "refresh token"),
            ],
            OAuthFlow::Implicit => &[(CredentialPart::Value, "access token")],
        },
        Some(SecurityScheme::OpenIdConnect) => &[
            (CredentialPart::Issuer, "issuer"),
            (CredentialPart::ClientId, "client id"),
            (CredentialPart::ClientSecret, "client secret"),
        ],
        Some(SecurityScheme::Http(_)) => &[(CredentialPart::Value, "token")],
        Some(SecurityScheme::ApiKey { .. }) => &[(CredentialPart::Value, "API key")],
        Some(SecurityScheme::AwsSignature | SecurityScheme::MutualTls) | None => &[],
    };
    let field = |(part, label): &SchemePart| SchemeField {
        variable: format!("{prefix}{suffix}{}", part.suffix()),
        label,
        is_secret: part.is_secret(),
    };
    parts.iter().map(field).collect()
}
