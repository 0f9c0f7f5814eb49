//! Endpoints that issue access keys for some time: the security token service, for a web identity,
//! and the endpoint of a container.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::StatusCode;
use http::header::{ACCEPT, AUTHORIZATION};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::io::AsyncReadExt as _;
use url::{Host, Url, form_urlencoded};

use super::access_keys::AccessKeys;
use super::key_reply::{KeyRefusal, keys_in_json, keys_in_xml};
use crate::credentials::sensitive_header;
use crate::outbound::fetch::{Fetch, Fetched};
use crate::outbound::{
    Clients, HttpClient, OutboundError, OutboundOptions, http_client, is_encrypted_or_local,
};
use crate::redact::Redactor;
use crate::text;

/// The largest reply of an endpoint, in bytes.
const MAX_REPLY_BYTES: usize = 256 << 10;
const TIMEOUT: Duration = Duration::from_secs(30);
/// The largest file with a token, in bytes.
const MAX_TOKEN_BYTES: u64 = 64 << 10;

/// Endpoint that issues access keys.
#[derive(Debug, Clone)]
pub(crate) enum KeyEndpoint {
    /// The security token service, for a token of a web identity (`AssumeRoleWithWebIdentity`).
    WebIdentity {
        /// URL of the service.
        url: Url,
        /// File with the token, which is read each time.
        token_file: PathBuf,
        /// ARN of the role.
        role: String,
        /// Name of the session.
        session: String,
    },
    /// The endpoint of a container (ECS, EKS).
    Container {
        /// URL.
        url: Url,
        /// `Authorization` of the request.
        authorization: Option<ContainerToken>,
    },
}

/// `Authorization` for the endpoint of a container.
#[derive(Debug, Clone)]
pub(crate) enum ContainerToken {
    /// The value.
    Value(SecretString),
    /// A file with the value, which is read each time.
    File(PathBuf),
}

/// URL of the security token service of a region.
pub(crate) fn regional_sts(region: &str) -> Option<Url> {
    let suffix = if region.starts_with("cn-") { ".cn" } else { "" };
    Url::parse(&format!("https://sts.{region}.amazonaws.com{suffix}/")).ok()
}

/// Returns true if credentials may be requested there: over TLS, from this machine, or from the
/// addresses that containers have for it.
pub(crate) fn is_container_endpoint(url: &Url) -> bool {
    let is_link_local = match url.host() {
        Some(Host::Ipv4(address)) => {
            [[169, 254, 170, 2], [169, 254, 170, 23]].contains(&address.octets())
        }
        Some(Host::Ipv6(address)) => address.segments() == [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23],
        Some(Host::Domain(_)) | None => false,
    };
    is_encrypted_or_local(url) || (url.scheme() == "http" && is_link_local)
}

impl KeyEndpoint {
    /// URL of its requests.
    pub(crate) fn url(&self) -> &Url {
        match self {
            Self::WebIdentity { url, .. } | Self::Container { url, .. } => url,
        }
    }

    /// The client of its requests. What is not encrypted does not leave the machine, and goes
    /// through no proxy.
    ///
    /// # Errors
    /// No client can be made.
    pub(super) fn client(&self, clients: &Clients) -> Result<HttpClient, OutboundError> {
        if self.url().scheme() == "https" {
            return Ok(clients.other.clone());
        }
        http_client(&OutboundOptions {
            tls: false,
            ..OutboundOptions::default()
        })
    }

    /// Requests keys. The log gets the reason of a refusal.
    ///
    /// # Errors
    /// The end of a sentence, without the answer's own words.
    pub(super) async fn ask(&self, http: &HttpClient) -> Result<AccessKeys, String> {
        let (request, token) = match self {
            Self::WebIdentity {
                url,
                token_file,
                role,
                session,
            } => {
                let token = read_token(token_file).await?;
                (
                    web_identity_request(url, &token, role, session),
                    Some(token),
                )
            }
            Self::Container { url, authorization } => {
                let token = match authorization {
                    None => None,
                    Some(ContainerToken::Value(value)) => Some(value.clone()),
                    Some(ContainerToken::File(file)) => Some(read_token(file).await?),
                };
                (container_request(url, token.as_ref())?, token)
            }
        };
        let reply = request.send(http).await.map_err(|error| {
            tracing::warn!("the endpoint for AWS credentials did not answer: {error}");
            "the endpoint for credentials did not answer".to_owned()
        })?;
        self.read(&reply).map_err(|refusal| {
            log_refusal(reply.status, &refusal, token.as_ref());
            describe(reply.status, &refusal)
        })
    }

    fn read(&self, reply: &Fetched) -> Result<AccessKeys, KeyRefusal> {
        let keys = match self {
            Self::WebIdentity { .. } => keys_in_xml(&reply.body),
            Self::Container { .. } => keys_in_json(&reply.body),
        };
        keys.and_then(|keys| {
            if reply.status.is_success() {
                Ok(keys)
            } else {
                Err(KeyRefusal::default())
            }
        })
    }
}

/// The token in a file, which other programs replace.
async fn read_token(file: &Path) -> Result<SecretString, String> {
    let read = async {
        let mut text = String::new();
        let file = tokio::fs::File::open(file).await?;
        file.take(MAX_TOKEN_BYTES).read_to_string(&mut text).await?;
        std::io::Result::Ok(text)
    };
    match read.await {
        Ok(text) if !text.trim().is_empty() => Ok(SecretString::from(text.trim())),
        Ok(_) => Err("the file with the token for credentials is empty".into()),
        Err(error) => {
            tracing::warn!(
                "the file `{}` with the token for AWS credentials cannot be read: {error}",
                file.display()
            );
            Err("the file with the token for credentials cannot be read".into())
        }
    }
}

fn web_identity_request(url: &Url, token: &SecretString, role: &str, session: &str) -> Fetch {
    let form = form_urlencoded::Serializer::new(String::new())
        .append_pair("Action", "AssumeRoleWithWebIdentity")
        .append_pair("Version", "2011-06-15")
        .append_pair("RoleArn", role)
        .append_pair("RoleSessionName", session)
        .append_pair("WebIdentityToken", token.expose_secret())
        .finish();
    let mut request = Fetch::post(url.clone(), form, MAX_REPLY_BYTES, TIMEOUT);
    // The service would answer with JSON.
    request.headers.remove(ACCEPT);
    request
}

fn container_request(url: &Url, token: Option<&SecretString>) -> Result<Fetch, String> {
    let mut request = Fetch::get(url.clone(), MAX_REPLY_BYTES, TIMEOUT);
    if let Some(token) = token {
        let value = sensitive_header(token.expose_secret().as_bytes());
        request.headers.insert(
            AUTHORIZATION,
            value.map_err(|_| "no header can hold the token for credentials")?,
        );
    }
    Ok(request)
}

fn describe(status: StatusCode, refusal: &KeyRefusal) -> String {
    if status.is_success() {
        return "the answer of the endpoint for credentials holds none".into();
    }
    let code = refusal
        .code
        .as_ref()
        .map(|code| format!(" ({code})"))
        .unwrap_or_default();
    format!(
        "the endpoint for credentials answered {}{code}",
        status.as_u16()
    )
}

fn log_refusal(status: StatusCode, refusal: &KeyRefusal, token: Option<&SecretString>) {
    const MAX_REASON_BYTES: usize = 500;
    let mut reason = refusal.message.clone().unwrap_or_default();
    Redactor::for_tokens(token.into_iter().map(SecretString::expose_secret))
        .redact_line(&mut reason);
    let reason = text::truncate(&text::one_line(&reason), MAX_REASON_BYTES);
    let what = describe(status, refusal);
    tracing::warn!("no AWS credentials: {what} {reason}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_come_from_this_machine_from_the_addresses_of_containers_or_over_tls() {
        for (url, expected) in [
            ("http://169.254.170.2/v2/credentials/1", true),
            ("http://169.254.170.23/v1/credentials", true),
            ("http://[fd00:ec2::23]/v1/credentials", true),
            ("http://127.0.0.1:8080/", true),
            ("http://127.9.8.7/", true),
            ("http://[::1]/", true),
            ("http://localhost/", true),
            ("https://credentials.example/", true),
            ("http://169.254.169.254/latest", false),
            ("http://169.254.170.24/", false),
            ("http://[fd00:ec2::24]/", false),
            ("http://localhost.example/", false),
            ("http://credentials.example/", false),
            ("ftp://127.0.0.1/", false),
        ] {
            assert_eq!(
                is_container_endpoint(&Url::parse(url).unwrap()),
                expected,
                "{url}"
            );
        }
    }

    #[test]
    fn each_region_has_a_token_service() {
        let host = |region: &str| regional_sts(region).unwrap().to_string();
        assert_eq!(
            host("eu-central-1"),
            "https://sts.eu-central-1.amazonaws.com/"
        );
        assert_eq!(
            host("cn-north-1"),
            "https://sts.cn-north-1.amazonaws.com.cn/"
        );
    }
}
