//! Settings of requests that are signed for AWS: region, service, and access keys by reference or
//! from the environment that AWS gives its containers and functions.

use std::sync::Arc;

use schemars::JsonSchema;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use url::Url;

use super::references::{Reference, parse_secret, parse_variable, read_secret};
use crate::config::problems::Problems;
use crate::config::values::{UrlForm, plain_url};
use crate::config::variables::read_variable;
use crate::credentials::signatures::aws::access_keys::{
    ContainerToken, KeyEndpoint, access_keys, is_container_endpoint, regional_sts,
};
use crate::credentials::signatures::aws::{AccessKeyOptions, AwsSignature};

/// Address that ECS has for the endpoint of a container.
const CONTAINER_HOST: &str = "http://169.254.170.2";

/// Signatures of the requests of a scheme.
#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "a mapping with `credentials: environment`, or with `access_key_id` and `secret_access_key`"
)]
pub(crate) struct SignatureSettings {
    /// The region; by default that of the host, if AWS names it there
    pub(crate) region: Option<String>,
    /// The signing name of the service, such as `execute-api` or `s3`; by default that of the host,
    /// if AWS names it there
    pub(crate) service: Option<String>,
    /// Take the credentials from the variables of AWS
    pub(crate) credentials: Option<AwsCredentials>,
    /// The identifier of the access key, if `credentials` is not set
    pub(crate) access_key_id: Option<Reference>,
    /// The secret access key
    pub(crate) secret_access_key: Option<Reference>,
    /// The session token, if the access key is temporary
    pub(crate) session_token: Option<Reference>,
}

/// Source of credentials of AWS.
#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AwsCredentials {
    /// The variables that AWS sets in containers and functions, and that its tools read
    Environment,
}

impl SignatureSettings {
    /// Resolves the settings at `key` in the file; faults are pushed to `problems`.
    pub(super) fn resolve(&self, key: &str, problems: &mut Problems) -> Option<Arc<AwsSignature>> {
        let (region, service) = (self.region.clone(), self.service.clone());
        for (part, text) in [("region", &region), ("service", &service)] {
            if text.as_ref().is_some_and(|text| !is_word(text)) {
                problems.push(format!(
                    "`{key}.{part}` must be of letters, digits, `-` and `_`, as in `eu-central-1` and `execute-api`"
                ));
            }
        }
        let before = problems.len();
        let keys = match self.credentials {
            Some(AwsCredentials::Environment) => of_environment(key, self, problems),
            None => of_references(key, self, problems),
        };
        let keys = keys.filter(|_| problems.len() == before)?;
        Some(Arc::new(AwsSignature {
            region,
            service,
            keys,
        }))
    }
}

fn is_word(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !text.is_empty() && text.bytes().all(is_allowed)
}

/// The keys that the settings refer to.
fn of_references(
    key: &str,
    settings: &SignatureSettings,
    problems: &mut Problems,
) -> Option<AccessKeyOptions> {
    let mut read = |name: &str, reference: &Option<Reference>| {
        let read = reference.as_ref().map(read_secret)?;
        problems.ok(format!("`{key}.{name}`"), read)
    };
    let id = read("access_key_id", &settings.access_key_id);
    let secret = read("secret_access_key", &settings.secret_access_key);
    let session_token = read("session_token", &settings.session_token);
    if settings.access_key_id.is_none() || settings.secret_access_key.is_none() {
        problems.push(format!(
            "`{key}` needs `credentials: environment`, or `access_key_id` and `secret_access_key` as references"
        ));
    }
    Some(fixed(&id?, &secret?, session_token.as_ref()))
}

fn fixed(
    id: &SecretString,
    secret: &SecretString,
    session_token: Option<&SecretString>,
) -> AccessKeyOptions {
    let keys = access_keys(id.expose_secret(), secret, session_token, None);
    AccessKeyOptions::Fixed(keys)
}

/// The keys that the variables of AWS lead to, in the order of its SDKs.
fn of_environment(
    key: &str,
    settings: &SignatureSettings,
    problems: &mut Problems,
) -> Option<AccessKeyOptions> {
    let mut problem = |why: String| problems.push(format!("`{key}.credentials`: {why}"));
    let references = [
        &settings.access_key_id,
        &settings.secret_access_key,
        &settings.session_token,
    ];
    if references.iter().any(|reference| reference.is_some()) {
        problem(
            "`environment` excludes `access_key_id`, `secret_access_key` and `session_token`"
                .into(),
        );
        return None;
    }
    let found = if read_variable("AWS_ACCESS_KEY_ID").is_some()
        || read_variable("AWS_SECRET_ACCESS_KEY").is_some()
    {
        of_key_variables()
    } else if let Some(file) = read_variable("AWS_WEB_IDENTITY_TOKEN_FILE") {
        web_identity(file, settings.region.as_deref()).map(AccessKeyOptions::Issued)
    } else if let Some(url) = container_url() {
        container(&url).map(AccessKeyOptions::Issued)
    } else {
        Err("the environment has none of AWS_ACCESS_KEY_ID, AWS_WEB_IDENTITY_TOKEN_FILE, AWS_CONTAINER_CREDENTIALS_RELATIVE_URI and AWS_CONTAINER_CREDENTIALS_FULL_URI".into())
    };
    found.map_err(problem).ok()
}

fn of_key_variables() -> Result<AccessKeyOptions, String> {
    let secret = |name: &str| parse_variable(name, parse_secret);
    let id = secret("AWS_ACCESS_KEY_ID")?;
    let session_token = secret_if_set("AWS_SESSION_TOKEN")?;
    let secret = secret("AWS_SECRET_ACCESS_KEY")?;
    Ok(fixed(&id, &secret, session_token.as_ref()))
}

fn secret_if_set(variable: &str) -> Result<Option<SecretString>, String> {
    let value = read_variable(variable);
    value
        .map(|_| parse_variable(variable, parse_secret))
        .transpose()
}

fn web_identity(file: String, region: Option<&str>) -> Result<KeyEndpoint, String> {
    let role =
        read_variable("AWS_ROLE_ARN").ok_or("AWS_WEB_IDENTITY_TOKEN_FILE needs AWS_ROLE_ARN")?;
    let url = if let Some(text) = read_variable("AWS_ENDPOINT_URL_STS") {
        let url = plain_url(&text, UrlForm::Confidential);
        url.ok_or("AWS_ENDPOINT_URL_STS must be an https URL, or on this machine")?
    } else {
        let named = ["AWS_REGION", "AWS_DEFAULT_REGION"]
            .into_iter()
            .find_map(read_variable);
        let region = named
            .or_else(|| region.map(str::to_owned))
            .filter(|region| is_word(region));
        let url = region.and_then(|region| regional_sts(&region));
        url.ok_or("AWS_WEB_IDENTITY_TOKEN_FILE needs AWS_REGION, or `region` beside `credentials`")?
    };
    Ok(KeyEndpoint::WebIdentity {
        url,
        token_file: file.into(),
        role,
        session: read_variable("AWS_ROLE_SESSION_NAME").unwrap_or_else(|| "openapi-mcp".to_owned()),
    })
}

/// URL of the endpoint of this container.
fn container_url() -> Option<String> {
    let relative = read_variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
        .map(|path| format!("{CONTAINER_HOST}{path}"));
    relative.or_else(|| read_variable("AWS_CONTAINER_CREDENTIALS_FULL_URI"))
}

fn container(url: &str) -> Result<KeyEndpoint, String> {
    let parsed = Url::parse(url).ok().filter(is_container_endpoint);
    let url = parsed.ok_or(
        "the endpoint of AWS_CONTAINER_CREDENTIALS_… must be an https URL, or on this machine, 169.254.170.2, 169.254.170.23 or fd00:ec2::23",
    )?;
    let authorization = match read_variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
        Some(file) => Some(ContainerToken::File(file.into())),
        None => secret_if_set("AWS_CONTAINER_AUTHORIZATION_TOKEN")?.map(ContainerToken::Value),
    };
    Ok(KeyEndpoint::Container { url, authorization })
}
