//! Forms of values that settings share: words, seconds, lists of texts, claims and URLs.

use std::net::SocketAddr;

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use url::Url;

use super::problems::Problems;
use crate::outbound::is_encrypted_or_local;
use crate::spec::operation::server;

/// Who agrees to calls.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ConfirmBy {
    /// The user of the client, which shows the question
    Client,
    /// A person who opens a link, on a page of this server
    Link,
    /// The client if it can ask its user, else the link
    #[value(name = "client,link")]
    #[serde(rename = "client,link")]
    ClientOrLink,
}

/// The language of filters of replies.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ResponseFilter {
    /// No such argument
    Off,
    /// jq
    Jq,
}

/// Transport by which clients reach the server.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TransportKind {
    /// Standard input and output of this process
    Stdio,
    /// Streamable HTTP at /mcp
    #[value(alias = "streamable-http")]
    Http,
}

/// Level of logging.
#[derive(Clone, Copy, ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogLevel {
    /// Nothing
    Off,
    /// Failures
    Error,
    /// Possible problems
    Warn,
    /// What is served, and how
    Info,
    /// Each call, without its arguments
    Debug,
    /// Everything this program logs
    Trace,
}

/// Format of log lines.
#[derive(Clone, Copy, ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

/// The value of a flag that takes seconds.
///
/// # Errors
/// An error if the value is not a number.
pub(crate) fn read_seconds(text: &str) -> Result<f64, &'static str> {
    text.trim()
        .parse()
        .ok()
        .filter(|seconds: &f64| seconds.is_finite())
        .ok_or("must be a number of seconds, such as 5")
}

/// A list of texts, or one text: `confirm: destructive`.
pub(crate) fn one_or_several<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a text or a list of texts")]
    enum Texts {
        One(String),
        Several(Vec<String>),
    }
    Ok(match Texts::deserialize(deserializer)? {
        Texts::One(text) => vec![text],
        Texts::Several(texts) => texts,
    })
}

/// RFC 6749 section 3.3; any other character would break the challenge that names them.
pub(crate) fn check_scopes<'s>(scopes: impl Iterator<Item = &'s String>, problems: &mut Problems) {
    let legal = |scope: &str| {
        !scope.is_empty()
            && scope
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
    };
    for scope in scopes.filter(|scope| !legal(scope)) {
        problems.push(format!("`{}` is not an OAuth scope", scope.escape_debug()));
    }
}

/// Checks the place of a claim in a token: its name, or its JSON Pointer (RFC 6901).
///
/// # Errors
/// A sentence that says why it is not valid.
pub(crate) fn check_claim(place: &str) -> Result<(), String> {
    if place.is_empty() || place == "/" {
        return Err("the name of a claim is missing".into());
    }
    let escapes = place.split('~').skip(1);
    if place.starts_with('/')
        && escapes
            .into_iter()
            .any(|rest| !rest.starts_with(['0', '1']))
    {
        return Err(format!(
            "`{}` is not a JSON Pointer: in one, `~` is written `~0`, and `/` within a name `~1`",
            place.escape_debug()
        ));
    }
    Ok(())
}

/// The address that a setting gives to listen on.
pub(crate) fn read_address(
    setting: &str,
    text: &str,
    example: &str,
    problems: &mut Problems,
) -> Option<SocketAddr> {
    let address = text.replace("localhost:", "127.0.0.1:").parse().ok();
    problems.some(address, || {
        format!("{setting}: `{text}` is not an address with a port, as in {example}")
    })
}

/// Parts that a URL of a setting may have besides scheme, host, port and path.
#[derive(Clone, Copy)]
pub(crate) enum UrlForm {
    /// None, not even a path.
    Origin,
    /// None.
    Base,
    /// A query.
    Address,
    /// A query, and something secret is sent there: it is encrypted, or on this machine.
    Confidential,
}

/// The http(s) URL of a setting, without user and password, which would be shown with it.
pub(crate) fn plain_url(text: &str, form: UrlForm) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let is_right = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
        && url.fragment().is_none()
        && match form {
            UrlForm::Origin => url.path() == "/" && url.query().is_none(),
            UrlForm::Base => url.query().is_none(),
            UrlForm::Address => true,
            UrlForm::Confidential => is_encrypted_or_local(&url),
        };
    is_right.then_some(url)
}

/// The URL that a setting gives for requests.
pub(crate) fn read_base_url(setting: &str, text: &str) -> Result<Url, String> {
    // `localhost:3000` parses as a URL with the scheme `localhost`.
    let host = text
        .split_once(':')
        .filter(|(_, port)| port.starts_with(|first: char| first.is_ascii_digit()));
    if host.is_some() {
        return Err(format!(
            "{setting} is not a URL: it has no scheme; did you mean http://{text}?"
        ));
    }
    let url = Url::parse(text)
        .map_err(|error| format!("{setting} is not a URL: {error}; write it with its scheme, as in https://api.example/v1"))?;
    server::usable(url).map_err(|error| format!("{setting}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_a_name_or_a_pointer() {
        for place in [
            "groups",
            "https://acme.example/roles",
            "a.b",
            "~",
            "/realm_access/roles",
            "/a~1b/c~0d",
            "//",
        ] {
            assert_eq!(check_claim(place), Ok(()), "{place}");
        }
        for place in ["", "/", "/a~", "/a~2b", "/~x"] {
            assert!(check_claim(place).is_err(), "{place}");
        }
    }
}
