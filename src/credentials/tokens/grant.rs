//! Grants by which access tokens are requested (RFC 6749 sections 4.3, 4.4 and 6, RFC 8693, RFC
//! 7523).

use secrecy::{ExposeSecret as _, SecretString};

use crate::credentials::values::{CredentialPart, CredentialValues};
use crate::spec::{OAuthFlow, SecurityScheme};

/// Grant by which a client requests a token.
#[derive(Clone)]
pub(crate) enum Grant {
    /// The client's own credentials (RFC 6749 section 4.4).
    ClientCredentials,
    /// The name and the password of a user (RFC 6749 section 4.3).
    Password {
        /// The name.
        username: SecretString,
        /// The password.
        password: SecretString,
    },
    /// A refresh token (RFC 6749 section 6).
    RefreshToken(SecretString),
    /// The code that the browser brought from the authorization endpoint (RFC 6749 section 4.1, RFC
    /// 7636).
    AuthorizationCode {
        /// The code.
        code: SecretString,
        /// The address that the browser was sent back to.
        redirect_uri: String,
        /// The verifier of PKCE.
        verifier: SecretString,
    },
    /// The device code of a person who signs in on another device (RFC 8628).
    DeviceCode(SecretString),
    /// The token of the user who calls (RFC 8693).
    TokenExchange {
        /// The token.
        subject_token: SecretString,
        /// Its type, a URI.
        subject_token_type: String,
    },
    /// The token of the user who calls, in the on-behalf-of flow of Microsoft Entra (RFC 7523
    /// section 2.1).
    OnBehalfOf(SecretString),
}

/// Request for the tokens of a client.
pub(crate) struct TokenRequest {
    /// The grant; `None` if tokens come only of a login, whose refresh token is stored.
    pub grant: Option<Grant>,
    /// `scope` of the request.
    pub scopes: Option<SecretString>,
    /// `audience` of the request, which some servers want.
    pub audience: Option<SecretString>,
}

/// Part of a credential that a grant lacks, and the reason for which it is needed.
type LackingPart = (CredentialPart, &'static str);

impl Grant {
    /// Selects the grant by which the tokens of a scheme are requested; `has_key` if the client has
    /// a key. `None` if none are: an access token is set, or no value for a request is.
    ///
    /// # Errors
    /// A part of the credential is missing.
    pub(crate) fn select(
        scheme: &SecurityScheme,
        values: &CredentialValues,
        has_key: bool,
    ) -> Result<Option<Self>, LackingPart> {
        let part = |part: CredentialPart| values.get(&part).cloned();
        let of_user = |kind: CredentialPart| part(kind).filter(|_| has_password_flow(scheme));
        let (username, password) = (
            of_user(CredentialPart::Username),
            of_user(CredentialPart::Password),
        );
        let has_client = values.contains_key(&CredentialPart::ClientId);
        let refresh_token = part(CredentialPart::RefreshToken);
        let has_any =
            has_client || refresh_token.is_some() || username.is_some() || password.is_some();
        if values.contains_key(&CredentialPart::Value) || !has_any {
            return Ok(None);
        }
        let lacking = |part| Err((part, "a user has a name and a password"));
        match (username, password, refresh_token) {
            (Some(_), None, _) => lacking(CredentialPart::Password),
            (None, Some(_), _) => lacking(CredentialPart::Username),
            (_, _, Some(token)) => Ok(Some(Self::RefreshToken(token))),
            (Some(username), Some(password), None) => {
                Ok(Some(Self::Password { username, password }))
            }
            (None, None, None) if has_key || values.contains_key(&CredentialPart::ClientSecret) => {
                Ok(Some(Self::ClientCredentials))
            }
            (None, None, None) => Err((
                CredentialPart::ClientSecret,
                "a client needs a secret or a key to get tokens, or a person signs in with `openapi-mcp login`",
            )),
        }
    }

    /// The refresh token, if it is one.
    pub(crate) fn refresh_token(&self) -> Option<&SecretString> {
        match self {
            Self::RefreshToken(token) => Some(token),
            _ => None,
        }
    }

    /// The value of `grant_type`.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::ClientCredentials => "client_credentials",
            Self::Password { .. } => "password",
            Self::RefreshToken(_) => "refresh_token",
            Self::AuthorizationCode { .. } => "authorization_code",
            Self::DeviceCode(_) => "urn:ietf:params:oauth:grant-type:device_code",
            Self::TokenExchange { .. } => "urn:ietf:params:oauth:grant-type:token-exchange",
            Self::OnBehalfOf(_) => "urn:ietf:params:oauth:grant-type:jwt-bearer",
        }
    }

    /// The parameters of a request besides those that every grant may have.
    pub(crate) fn parameters(&self) -> Vec<(&'static str, &str)> {
        let mut parameters = vec![("grant_type", self.name())];
        match self {
            Self::ClientCredentials => {}
            Self::Password { username, password } => {
                parameters.extend([
                    ("username", username.expose_secret()),
                    ("password", password.expose_secret()),
                ]);
            }
            Self::RefreshToken(token) => parameters.push(("refresh_token", token.expose_secret())),
            Self::AuthorizationCode {
                code,
                redirect_uri,
                verifier,
            } => parameters.extend([
                ("code", code.expose_secret()),
                ("redirect_uri", redirect_uri.as_str()),
                ("code_verifier", verifier.expose_secret()),
            ]),
            Self::DeviceCode(code) => parameters.push(("device_code", code.expose_secret())),
            Self::TokenExchange {
                subject_token,
                subject_token_type,
            } => parameters.extend([
                ("subject_token", subject_token.expose_secret()),
                ("subject_token_type", subject_token_type),
            ]),
            Self::OnBehalfOf(assertion) => {
                parameters.extend([
                    ("assertion", assertion.expose_secret()),
                    ("requested_token_use", "on_behalf_of"),
                ]);
            }
        }
        parameters
    }

    /// Returns true if the code of a refusal may mean that the client was not recognized. A server
    /// may answer an unknown form of authentication with `invalid_request`, which for a user's
    /// token speaks of the token (RFC 8693 section 2.2.2). A code is good for one use.
    pub(crate) fn doubts_client(&self, code: Option<&str>) -> bool {
        match self {
            Self::ClientCredentials | Self::Password { .. } | Self::RefreshToken(_) => {
                code.is_none_or(|code| matches!(code, "invalid_client" | "invalid_request"))
            }
            Self::AuthorizationCode { .. }
            | Self::DeviceCode(_)
            | Self::TokenExchange { .. }
            | Self::OnBehalfOf(_) => code == Some("invalid_client"),
        }
    }
}

impl TokenRequest {
    /// The refresh token of the settings.
    pub(crate) fn refresh_token(&self) -> Option<&SecretString> {
        self.grant.as_ref().and_then(Grant::refresh_token)
    }
}

fn has_password_flow(scheme: &SecurityScheme) -> bool {
    matches!(
        scheme,
        SecurityScheme::OAuth2 {
            flow: OAuthFlow::Password,
            ..
        }
    )
}
