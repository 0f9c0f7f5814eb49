//! Answers of endpoints that issue access keys: XML of the security token service, JSON of a
//! container's endpoint.

use std::collections::HashMap;
use std::time::SystemTime;

use quick_xml::Reader;
use quick_xml::events::Event;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use super::access_keys::AccessKeys;

/// The answer of an endpoint that gives no keys.
#[derive(Debug, Default)]
pub(super) struct KeyRefusal {
    /// Code, if it is a known one: any other text could contain a credential of the request.
    pub(super) code: Option<String>,
    /// Reason, in the endpoint's words.
    pub(super) message: Option<String>,
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

impl KeyRefusal {
    fn new(code: Option<String>, message: Option<String>) -> Self {
        let is_known =
            |code: &String| CODES.contains(&code.strip_suffix("Exception").unwrap_or(code));
        Self {
            code: code.filter(is_known),
            message,
        }
    }
}

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

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct JsonKeys {
    access_key_id: Option<String>,
    secret_access_key: Option<SecretString>,
    token: Option<SecretString>,
    expiration: Option<String>,
    #[serde(alias = "code")]
    code: Option<String>,
    #[serde(alias = "message")]
    message: Option<String>,
}

/// Reads the answer of a container's endpoint.
///
/// # Errors
/// It holds no keys, or no time of their end.
pub(super) fn keys_in_json(body: &[u8]) -> Result<AccessKeys, KeyRefusal> {
    let read: JsonKeys = serde_json::from_slice(body).map_err(|_| KeyRefusal::default())?;
    let (id, secret) = (
        read.access_key_id.filter(|id| is_key_id(id)),
        read.secret_access_key.filter(is_graphic),
    );
    match (id, secret, end(read.expiration.as_deref())) {
        (Some(id), Some(secret), Some(expires)) => Ok(AccessKeys {
            id,
            secret,
            session_token: read.token.filter(is_graphic),
            expires: Some(expires),
        }),
        _ => Err(KeyRefusal::new(read.code, read.message)),
    }
}

/// Reads the answer to `AssumeRoleWithWebIdentity`.
///
/// # Errors
/// It holds no keys, or no time of their end.
pub(super) fn keys_in_xml(body: &[u8]) -> Result<AccessKeys, KeyRefusal> {
    let mut texts = std::str::from_utf8(body)
        .map(texts_of_elements)
        .unwrap_or_default();
    let mut take = |name: &str| texts.remove(name).filter(|text| !text.is_empty());
    let id = take("AccessKeyId").filter(|id| is_key_id(id));
    let secret = take("SecretAccessKey")
        .map(SecretString::from)
        .filter(is_graphic);
    match (id, secret, end(take("Expiration").as_deref())) {
        (Some(id), Some(secret), Some(expires)) => Ok(AccessKeys {
            id,
            secret,
            session_token: take("SessionToken")
                .map(SecretString::from)
                .filter(is_graphic),
            expires: Some(expires),
        }),
        _ => Err(KeyRefusal::new(take("Code"), take("Message"))),
    }
}

fn end(text: Option<&str>) -> Option<SystemTime> {
    let timestamp: jiff::Timestamp = text?.parse().ok()?;
    Some(timestamp.into())
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
                texts
                    .entry(current.clone())
                    .or_default()
                    .push_str(text.trim());
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
            let secrets: Vec<&str> = keys.secrets().collect();
            assert_eq!(
                (keys.id.as_str(), secrets.as_slice()),
                ("ASIA1", ["s/+=", "t/+=="].as_slice())
            );
            let end = keys
                .expires
                .unwrap()
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap();
            assert_eq!(end.as_secs(), 1_893_553_445);
            assert_eq!(format!("{keys:?}"), "[access keys]");
            assert_eq!(keys.secret.expose_secret(), "s/+=");
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
