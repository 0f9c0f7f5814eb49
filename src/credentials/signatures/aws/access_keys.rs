//! Access keys of AWS, and the endpoints that issue them for some time: the security token service,
//! for a web identity, which answers in XML, and the endpoint of a container, which answers in JSON.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use http::StatusCode;
use http::header::{ACCEPT, AUTHORIZATION};
use quick_xml::Reader;
use quick_xml::events::Event;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use url::{Host, Url, form_urlencoded};

use crate::credentials::sensitive_header;
use crate::outbound::fetch::{Fetch, Fetched};
use crate::outbound::{
    Clients, HttpClient, OutboundError, OutboundOptions, http_client, is_encrypted_or_local,
};
use crate::redact::Redactor;
use crate::text;

/// Keys that sign requests. They show no secret.
pub(crate) type AccessKeys = aws_credential_types::Credentials;

/// Makes keys of their identifier, the secret key, the session token if they are temporary, and the
/// end of their validity if they have one.
pub(crate) fn access_keys(
    id: &str,
    secret: &SecretString,
    session_token: Option<&SecretString>,
    expires: Option<SystemTime>,
) -> AccessKeys {
    let token = session_token.map(|token| token.expose_secret().to_owned());
    AccessKeys::new(id, secret.expose_secret(), token, expires, "openapi-mcp")
}

/// The secret values of keys: key and session token.
pub(super) fn secrets(keys: &AccessKeys) -> impl Iterator<Item = &str> {
    std::iter::once(keys.secret_access_key()).chain(keys.session_token())
}

/// Returns true if keys are valid for that time from now on.
pub(super) fn last(keys: &AccessKeys, time: Duration) -> bool {
    keys.expiry()
        .is_none_or(|expires| SystemTime::now() + time < expires)
}

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
                let request = web_identity_request(url, &token, role, session);
                (request, Some(token))
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
            Self::WebIdentity { .. } => keys_in_xml(&reply.body)?,
            Self::Container { .. } => keys_in_json(&reply.body)?,
        };
        if reply.status.is_success() {
            Ok(keys)
        } else {
            Err(KeyRefusal::default())
        }
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
        let value = sensitive_header(token.expose_secret().as_bytes())
            .map_err(|_| "no header can hold the token for credentials")?;
        request.headers.insert(AUTHORIZATION, value);
    }
    Ok(request)
}

fn describe(status: StatusCode, refusal: &KeyRefusal) -> String {
    if status.is_success() {
        return "the answer of the endpoint for credentials holds none".into();
    }
    let code = refusal.code.as_ref().map(|code| format!(" ({code})"));
    let (status, code) = (status.as_u16(), code.unwrap_or_default());
    format!("the endpoint for credentials answered {status}{code}")
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

/// The answer of an endpoint that gives no keys.
#[derive(Debug, Default)]
struct KeyRefusal {
    /// Code, if it is a known one: any other text could contain a credential of the request.
    code: Option<String>,
    /// Reason, in the endpoint's words.
    message: Option<String>,
}

/// Known error codes of the security token service and of the endpoints of containers; `Exception`
/// may follow.
const CODES: [&str; 24] = [
    "AccessDenied",
    "ExpiredToken",
    "IDPCommunicationError",
    "IDPRejectedClaim",
    "IncompleteSignature",
    "InternalFailure",
    "InternalServer",
    "InvalidAction",
    "InvalidClientTokenId",
    "InvalidIdentityToken",
    "InvalidIdInRequest",
    "InvalidParameter",
    "InvalidParameterValue",
    "InvalidRequest",
    "InvalidToken",
    "MalformedPolicyDocument",
    "NoIdInRequest",
    "NotAuthorized",
    "RegionDisabled",
    "RequestExpired",
    "ResourceNotFound",
    "ServiceUnavailable",
    "Throttling",
    "ValidationError",
];

/// Returns true for an identifier of an access key, which stands between a comma and a slash in a
/// signature.
fn is_key_id(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Returns true for a secret or a session token that a header can carry.
fn is_graphic(secret: &SecretString) -> bool {
    let text = secret.expose_secret();
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The answer of an endpoint, in both forms.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct KeyAnswer {
    access_key_id: Option<String>,
    secret_access_key: Option<SecretString>,
    #[serde(alias = "SessionToken")]
    token: Option<SecretString>,
    expiration: Option<String>,
    #[serde(alias = "code")]
    code: Option<String>,
    #[serde(alias = "message")]
    message: Option<String>,
}

impl KeyAnswer {
    /// # Errors
    /// It holds no keys, or no time of their end.
    fn keys(self) -> Result<AccessKeys, KeyRefusal> {
        let id = self.access_key_id.filter(|id| is_key_id(id));
        let secret = self.secret_access_key.filter(is_graphic);
        let end = self.expiration.and_then(|end| end.parse().ok());
        if let (Some(id), Some(secret), Some(end)) = (id, secret, end) {
            let (token, end) = (self.token.filter(is_graphic), jiff::Timestamp::into(end));
            return Ok(access_keys(&id, &secret, token.as_ref(), Some(end)));
        }
        let is_known =
            |code: &String| CODES.contains(&code.strip_suffix("Exception").unwrap_or(code));
        Err(KeyRefusal {
            code: self.code.filter(is_known),
            message: self.message,
        })
    }
}

/// Reads the answer of a container's endpoint.
fn keys_in_json(body: &[u8]) -> Result<AccessKeys, KeyRefusal> {
    let answer: KeyAnswer = serde_json::from_slice(body).unwrap_or_default();
    answer.keys()
}

/// Reads the answer to `AssumeRoleWithWebIdentity`.
fn keys_in_xml(body: &[u8]) -> Result<AccessKeys, KeyRefusal> {
    let texts = texts_of_elements(std::str::from_utf8(body).unwrap_or_default());
    let answer: KeyAnswer = serde_json::from_value(json!(texts)).unwrap_or_default();
    answer.keys()
}

/// The texts of elements by their local names. References are left out: values that count have
/// none.
fn texts_of_elements(xml: &str) -> HashMap<String, String> {
    let mut reader = Reader::from_str(xml);
    let mut texts: HashMap<String, String> = HashMap::new();
    let mut current = String::new();
    loop {
        match reader.read_event() {
            Ok(Event::Start(start)) => start.local_name().as_ref().clone_into(&mut current),
            Ok(Event::End(_)) => current.clear(),
            Ok(Event::Text(text)) if !current.is_empty() => {
                let whole = texts.entry(current.clone()).or_default();
                whole.push_str(text.trim());
            }
            Ok(Event::Eof) | Err(_) => return texts,
            Ok(_) => {}
        }
    }
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

    #[test]
    fn keys_are_read_from_both_forms_and_refusals_name_a_code() {
        let xml = "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><AssumeRoleWithWebIdentityResult>\n\
            <Credentials>\n<AccessKeyId>ASIA1</AccessKeyId><SecretAccessKey>s/+=</SecretAccessKey>\n<SessionToken>t/+==</SessionToken>\
            <Expiration>2030-01-02T03:04:05Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>";
        let json =
            br#"{"RoleArn":"arn","AccessKeyId":"ASIA1","SecretAccessKey":"s/+=","Token":"t/+==","Expiration":"2030-01-02T03:04:05Z"}"#;
        for keys in [
            keys_in_xml(xml.as_bytes()).unwrap(),
            keys_in_json(json).unwrap(),
        ] {
            let secrets: Vec<&str> = secrets(&keys).collect();
            assert_eq!(
                (keys.access_key_id(), secrets.as_slice()),
                ("ASIA1", ["s/+=", "t/+=="].as_slice())
            );
            let end = keys
                .expiry()
                .unwrap()
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap();
            assert_eq!(end.as_secs(), 1_893_553_445);
            let shown = format!("{keys:?}");
            assert!(!secrets.iter().any(|secret| shown.contains(secret)));
        }
        let xml = "<ErrorResponse><Error><Code>ExpiredTokenException</Code><Message>Token expired</Message></Error></ErrorResponse>";
        let json = br#"{"code":"ExpiredTokenException","message":"Token expired"}"#;
        for refusal in [
            keys_in_xml(xml.as_bytes()).unwrap_err(),
            keys_in_json(json).unwrap_err(),
        ] {
            assert_eq!(
                (refusal.code.as_deref(), refusal.message.as_deref()),
                (Some("ExpiredTokenException"), Some("Token expired"))
            );
        }
        for broken in [
            "",
            "<a",
            "<Credentials><AccessKeyId>A</AccessKeyId></Credentials>",
            "{}",
            "[1]",
            "<Code>a b\nc</Code>",
            // A code that nobody knows may be the credential that was sent.
            "<Code>CONTTOKabcdef</Code>",
            r#"{"code":"CONTTOKabcdef"}"#,
            r#"{"AccessKeyId":"","SecretAccessKey":"s","Expiration":"2030-01-02T03:04:05Z"}"#,
            r#"{"AccessKeyId":"A, b","SecretAccessKey":"s","Expiration":"2030-01-02T03:04:05Z"}"#,
            r#"{"AccessKeyId":"A","SecretAccessKey":"s\n","Expiration":"2030-01-02T03:04:05Z"}"#,
        ] {
            assert_eq!(
                keys_in_xml(broken.as_bytes()).unwrap_err().code,
                None,
                "{broken}"
            );
            assert_eq!(
                keys_in_json(broken.as_bytes()).unwrap_err().code,
                None,
                "{broken}"
            );
        }
    }
}
