//! Security schemes: the ways to prove who is asking that OpenAPI knows.

use super::parameter::{self, Location};
use crate::spec::node::Object;

/// A way to prove who is asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecurityScheme {
    /// A value under a name in a header, the query or a cookie.
    ApiKey {
        /// Location of the key.
        location: Location,
        /// Name of the key.
        name: String,
    },
    /// `Authorization` with this authentication scheme (RFC 9110 section 11.1): `basic`, `Bearer`,
    /// … in any case.
    Http(String),
    /// An OAuth 2.0 access token.
    OAuth2 {
        /// The flow that a server can follow with the least help of a person.
        flow: OAuthFlow,
        /// The token endpoint of that flow, else of any other one, as the document writes it.
        token_url: Option<String>,
        /// Addresses of the flow in which a person agrees.
        consent: ConsentUrls,
    },
    /// An access token of an `OpenID` provider. Its discovery URL is not read: a document must not
    /// choose what is fetched.
    OpenIdConnect,
    /// A client certificate.
    MutualTls,
    /// `Authorization` with a signature of AWS, as the extension `x-amazon-apigateway-authtype`
    /// says.
    AwsSignature,
}

/// Addresses of a flow in which a person agrees, as the document writes them: `authorizationCode`,
/// or `deviceAuthorization`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConsentUrls {
    /// The authorization endpoint.
    pub authorization: Option<String>,
    /// The device authorization endpoint (RFC 8628).
    pub device_authorization: Option<String>,
    /// The token endpoint.
    pub token: Option<String>,
}

/// Flow that yields access tokens (OAS "OAuth Flows Object"). Flows that a server can run by itself
/// come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OAuthFlow {
    /// `clientCredentials`, `application` in 2.0; also if the document names no flow.
    ClientCredentials,
    /// `password`: with the name and the password of a user.
    Password,
    /// `authorizationCode` (`accessCode` in 2.0) and `deviceAuthorization`: a person agrees once,
    /// and a refresh token is what is left.
    Consent,
    /// `implicit`: there is no token endpoint.
    Implicit,
}

/// Reads an API key.
///
/// # Errors
/// Why it cannot be used.
pub(crate) fn read_api_key(object: &Object<'_>) -> Result<SecurityScheme, String> {
    let kind = object.text("x-amazon-apigateway-authtype");
    if kind.is_some_and(|kind| kind.eq_ignore_ascii_case("awsSigv4")) {
        return Ok(SecurityScheme::AwsSignature);
    }
    let place = object.text("in").unwrap_or_default();
    let Ok(location @ (Location::Header | Location::Query | Location::Cookie)) = place.parse()
    else {
        return Err(format!(
            "its `in: {place}` is not one of header, query and cookie"
        ));
    };
    let name = object
        .text("name")
        .filter(|name| !name.trim().is_empty())
        .ok_or("it has no `name`")?;
    let framing = parameter::is_reserved_header(&name)
        && !["authorization", "cookie"].contains(&name.to_ascii_lowercase().as_str());
    let legal = match location {
        Location::Header => is_token(&name) && !framing,
        Location::Cookie => is_token(&name),
        _ => true,
    };
    if legal {
        Ok(SecurityScheme::ApiKey { location, name })
    } else {
        Err(format!("no {place} of a call can be called `{name}`"))
    }
}

/// Returns true if the text is a token (RFC 9110 section 5.6.2).
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}
