//! OAuth clients, their token endpoints, and the operator's settings for the exchange of users'
//! tokens. A client has a secret, or authenticates with a signed JWT (`private_key_jwt`, RFC 7523
//! section 2.2, `OpenID` Connect Core 1.0 section 9).

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use url::Url;

use crate::text;

/// An OAuth client of a token endpoint.
pub(crate) struct OauthClient {
    /// The security scheme, for messages.
    pub(crate) scheme: String,
    /// The endpoint.
    pub(crate) endpoint: Endpoint,
    /// The client's identifier; a public client has no secret.
    pub(crate) id: Option<SecretString>,
    /// The client's secret.
    pub(crate) secret: Option<SecretString>,
    /// The client's key, in place of a secret.
    pub(crate) signer: Option<Arc<ClientSigner>>,
    /// The issuer whose endpoint it is, to the letter, if the operator names it.
    pub(crate) issuer: Option<String>,
}

/// Grant by which the calling user's token is exchanged for one of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GrantKind {
    /// RFC 8693
    TokenExchange,
    /// The on-behalf-of flow of Microsoft Entra
    OnBehalfOf,
}

/// The operator's settings for the exchange of tokens of a security scheme.
#[derive(Debug, Clone)]
pub struct ExchangeOptions {
    /// The grant.
    pub grant: GrantKind,
    /// Each `audience` of the request.
    pub audiences: Vec<String>,
    /// Each `resource` of the request.
    pub resources: Vec<String>,
    /// Asks for the scopes that the document names for the operation, in place of the same ones
    /// always.
    pub operation_scopes: bool,
    /// `subject_token_type`: a URI, or `None` for an access token.
    pub subject_token_type: Option<String>,
}

/// Endpoint at which tokens are requested.
#[derive(Clone)]
pub(crate) enum Endpoint {
    /// The token endpoint.
    Token(Url),
    /// The endpoint that this issuer names (`OpenID` Connect Discovery 1.0 section 4).
    Issuer(Url),
}

impl Endpoint {
    /// The URL from the settings or the document.
    pub(crate) fn url(&self) -> &Url {
        match self {
            Self::Token(url) | Self::Issuer(url) => url,
        }
    }
}

/// A digest of parts that may be missing: each is counted with its length.
#[derive(Clone, Default)]
pub(crate) struct PartsDigest(Sha256);

impl PartsDigest {
    /// The same with one more part.
    pub(crate) fn with(mut self, part: Option<&str>) -> Self {
        let text = part.unwrap_or_default();
        self.0.update([u8::from(part.is_some())]);
        self.0.update(text.len().to_be_bytes());
        self.0.update(text);
        self
    }

    /// The digest of all parts.
    pub(crate) fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

/// The text of a secret that may be missing.
pub(crate) fn exposed(secret: Option<&SecretString>) -> Option<&str> {
    secret.map(SecretString::expose_secret)
}

impl OauthClient {
    /// The beginning of a digest of everything that decides which tokens are given.
    pub(crate) fn digest(&self) -> PartsDigest {
        PartsDigest::default()
            .with(Some(&self.scheme))
            .with(Some(self.endpoint.url().as_str()))
            .with(exposed(self.id.as_ref()))
            .with(exposed(self.secret.as_ref()))
    }
}

/// `client_assertion_type` (RFC 7523 section 2.2).
pub(crate) const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// Time for which an assertion is valid.
const LIFETIME: Duration = Duration::from_mins(1);

/// Signs the assertions of an OAuth client.
pub struct ClientSigner {
    key: EncodingKey,
    header: Header,
    /// The `aud` that the operator sets.
    audience: Option<String>,
}

/// The operator's settings for a [`ClientSigner`].
#[derive(Debug, Clone, Copy, Default)]
pub struct ClientKeyOptions<'o> {
    /// `kid` of the header.
    pub key_id: Option<&'o str>,
    /// A certificate in PEM, whose digest becomes `x5t#S256` of the header; the algorithm of an RSA
    /// key is PS256 then, as Entra asks.
    pub certificate: Option<&'o str>,
    /// `aud`, if it is not the issuer or the token endpoint.
    pub audience: Option<&'o str>,
}

impl fmt::Debug for ClientSigner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[key]")
    }
}

impl ClientSigner {
    /// Reads a private key in PEM: RSA signs with RS256, P-256 with ES256, Ed25519 with `EdDSA`.
    ///
    /// # Errors
    /// The end of a sentence about the key, without the key.
    pub fn read(pem: &str, options: ClientKeyOptions<'_>) -> Result<Self, &'static str> {
        let of_rsa = if options.certificate.is_some() {
            Algorithm::PS256
        } else {
            Algorithm::RS256
        };
        let pem = pem.as_bytes();
        let known = EncodingKey::from_rsa_pem(pem)
            .map(|key| (key, of_rsa))
            .or_else(|_| EncodingKey::from_ec_pem(pem).map(|key| (key, Algorithm::ES256)))
            .or_else(|_| EncodingKey::from_ed_pem(pem).map(|key| (key, Algorithm::EdDSA)));
        let (key, algorithm) = known
            .map_err(|_| "is not a private key in PEM of RSA, P-256 or Ed25519 (`openssl pkcs8 -topk8 -nocrypt` converts other forms)")?;
        let mut header = Header::new(algorithm);
        header.kid = options.key_id.map(str::to_owned);
        if let Some(certificate) = options.certificate {
            let certificate = CertificateDer::from_pem_slice(certificate.as_bytes())
                .map_err(|_| "has a certificate that is not in PEM")?;
            header.x5t_s256 = Some(URL_SAFE_NO_PAD.encode(Sha256::digest(&certificate)));
        }
        let signer = Self {
            key,
            header,
            audience: options.audience.map(str::to_owned),
        };
        // A key of another curve is found out only by using it.
        match signer.assertion("", "") {
            Some(_) => Ok(signer),
            None => Err("cannot sign: keys of elliptic curves must be of P-256 or Ed25519"),
        }
    }

    /// An assertion that the client is `client_id`, for that audience unless the operator set
    /// another; `None` if the key cannot sign.
    pub(super) fn assertion(&self, client_id: &str, audience: &str) -> Option<String> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs();
        let claims = json!({
            "iss": client_id, "sub": client_id, "aud": self.audience.as_deref().unwrap_or(audience),
            "jti": text::random_id(), "iat": now, "exp": now + LIFETIME.as_secs(),
        });
        jsonwebtoken::encode(&self.header, &claims, &self.key).ok()
    }
}
