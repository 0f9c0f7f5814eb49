//! Headers of requests to the API: those of settings, written out or by the name of the variable that
//! holds the value, and those that are forwarded from clients.

use clap::Args;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};

use super::auth::references::{describe_unset, parse_file, parse_secret};
use super::paths::split_header_file;
use super::problems::Problems;
use super::variables::read_variable;
use crate::credentials::forward::Forwarding;
use crate::redact::carries_credential;
use crate::spec::operation::parameter;

/// The headers of two flags, one that takes values and one that takes the names of variables. What
/// comes from a variable is marked as a secret; what is written out is one only under a name that
/// carries credentials.
pub(crate) fn read_headers(
    [flag, env_flag]: [&str; 2],
    given: &[String],
    from_env: &[String],
    problems: &mut Problems,
) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for text in given.iter().filter(|text| !text.trim().is_empty()) {
        match text.split_once(':') {
            Some((name, value)) => add_header(&mut headers, flag, (name, value), false, problems),
            // The text may be a secret that lost its name; it is not repeated.
            None => problems.push(format!(
                "{flag} must be `Name: value`, with a colon between"
            )),
        }
    }
    for text in from_env {
        let Some((name, value)) = text.split_once('=') else {
            problems.push(format!(
                "{env_flag} must be `Name=VARIABLE` or `Name=Scheme VARIABLE`"
            ));
            continue;
        };
        let (scheme, variable) = scheme_and_variable(value);
        match read_variable(variable) {
            Some(value) if value.trim().is_empty() => {
                problems.push(format!("{env_flag}: the variable `{variable}` for the header `{name}` is empty"));
            }
            Some(value) => add_header(&mut headers, env_flag, (name, &with_scheme(scheme, &value)), true, problems),
            // The text after a scheme may be the credential itself; it is not repeated.
            None if !scheme.is_empty() => problems.push(format!(
                "{env_flag}, for the header `{name}`: there is no such variable; give the variable's name after `{scheme}`, not the credential"
            )),
            None => problems.push(format!("{env_flag}, for the header `{name}`: {}", describe_unset(variable))),
        }
    }
    headers
}

/// Adds the headers of `--header-file`, whose values are secrets.
pub(crate) fn read_files(files: &[String], headers: &mut HeaderMap, problems: &mut Problems) {
    const FLAG: &str = "--header-file";
    for file in files {
        let Some((name, scheme, path)) = split_header_file(file) else {
            problems.push(format!("{FLAG} must be `Name=PATH` or `Name=Scheme PATH`"));
            continue;
        };
        match parse_file(path.as_ref(), parse_secret) {
            Ok(value) => add_header(
                headers,
                FLAG,
                (name, &with_scheme(scheme, value.expose_secret())),
                true,
                problems,
            ),
            Err(why) => problems.push(format!("{FLAG}, for the header `{name}`: {why}")),
        }
    }
}

/// A value with an authentication scheme before it, unless there is none or the value begins with
/// it.
fn with_scheme(scheme: &str, value: &str) -> String {
    let value = value.trim();
    let prefix = format!("{scheme} ");
    if scheme.is_empty() || value.starts_with(&prefix) {
        value.to_owned()
    } else {
        prefix + value
    }
}

/// Returns a sentence if an Authorization header has no authentication scheme (RFC 9110 section
/// 11.4): users often give the token alone. It is sent nevertheless, because some APIs require
/// that.
pub(crate) fn warn_about_missing_scheme(
    [flag, env_flag]: [&str; 2],
    headers: &HeaderMap,
) -> Option<String> {
    let has_scheme = |value: &HeaderValue| value.as_bytes().contains(&b' ');
    let lacks = headers
        .get_all(AUTHORIZATION)
        .iter()
        .any(|value| !has_scheme(value));
    lacks.then(|| {
        format!("{flag} or {env_flag}: the value of `Authorization` has no authentication scheme and is sent as it is; if the API expects one, put it in front, as in `Bearer …`")
    })
}

/// A sentence for each header, of those of requests and of those for fetching the document, whose
/// value is written out under the name of a credential.
pub(crate) fn secret_headers(of_requests: &[String], of_document: &[String]) -> Vec<String> {
    let pairs = [
        ("--header", "--header-env", of_requests),
        ("`spec_header`", "--spec-header-env", of_document),
    ];
    let given = pairs.into_iter().flat_map(|(name, by_variable, headers)| {
        headers
            .iter()
            .map(move |header| (name, by_variable, header))
    });
    given
        .filter_map(|(setting, by_variable, header)| {
            let name = header.split(':').next().unwrap_or_default().trim();
            let parsed = HeaderName::from_bytes(name.as_bytes()).ok()?;
            carries_credential(&parsed).then(|| {
                format!("{setting}: the value of `{parsed}` is a credential and would be written out; put it into a variable, and give {by_variable} {parsed}=VARIABLE")
            })
        })
        .collect()
}

/// The variables in pairs of the form `NAME=VARIABLE` or `NAME=SCHEME VARIABLE`.
pub(crate) fn named_variables(pairs: &[String]) -> impl Iterator<Item = &str> {
    let values = pairs.iter().filter_map(|pair| pair.split_once('='));
    values.map(|(_, value)| scheme_and_variable(value).1)
}

/// The authentication scheme that is sent before the value of a variable, or an empty text, and the
/// variable.
fn scheme_and_variable(value: &str) -> (&str, &str) {
    let value = value.trim();
    let (scheme, variable) = value.rsplit_once(' ').unwrap_or(("", value));
    (scheme.trim_end(), variable)
}

fn add_header(
    headers: &mut HeaderMap,
    flag: &str,
    (name, value): (&str, &str),
    is_secret: bool,
    problems: &mut Problems,
) {
    let name = name.trim();
    let Ok(parsed) = HeaderName::from_bytes(name.as_bytes()) else {
        problems.push(format!(
            "{flag}: `{}` is not a header name",
            name.escape_debug()
        ));
        return;
    };
    let framing = parameter::is_reserved_header(parsed.as_str())
        && !matches!(parsed.as_str(), "accept" | "authorization" | "cookie")
        && !parsed.as_str().starts_with("x-forwarded-");
    if framing {
        problems.push(format!(
            "{flag}: `{parsed}` belongs to the connection or to the body and cannot be set"
        ));
        return;
    }
    match HeaderValue::from_str(value.trim()) {
        Ok(mut value) => {
            value.set_sensitive(is_secret || carries_credential(&parsed));
            headers.append(parsed, value);
        }
        Err(_) => problems.push(format!(
            "{flag}: the value of `{parsed}` contains characters that a header cannot have"
        )),
    }
}

/// Settings of which headers of a client's request are passed on to the API.
#[derive(Clone, Default, Args, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub(crate) struct ForwardSettings {
    /// A header of the client's HTTP request that is forwarded to the API, under this name or
    /// another one (a list)
    #[arg(
        long,
        hide = true,
        value_delimiter = ',',
        value_name = "NAME[=AS]",
        help_heading = "Credentials"
    )]
    pub(crate) forward_header: Vec<String>,

    /// Pass the client's Authorization header on to the API
    #[arg(long, hide = true, help_heading = "Credentials")]
    pub(crate) forward_authorization: Option<bool>,
}

/// Resolves the headers that are forwarded; faults are pushed to `problems`.
pub(crate) fn resolve_forwarding(
    settings: &ForwardSettings,
    problems: &mut Problems,
) -> Forwarding {
    let allowed = settings.forward_authorization == Some(true);
    let mut headers: Vec<(HeaderName, HeaderName)> = Vec::new();
    for text in &settings.forward_header {
        let (ours, theirs) = text.split_once('=').unwrap_or((text, text));
        let names = HeaderName::from_bytes(ours.trim().as_bytes())
            .ok()
            .zip(HeaderName::from_bytes(theirs.trim().as_bytes()).ok());
        let Some((ours, theirs)) = names else {
            problems.push(format!(
                "`forward_header` must be `Name` or `Name=As`; `{}` is neither",
                text.escape_debug()
            ));
            continue;
        };
        if ours == AUTHORIZATION && !allowed {
            problems.push("`forward_header`: the client's Authorization is forwarded only with `forward_authorization`");
        } else if let Some(name) = [&ours, &theirs].into_iter().find(|name| stays(name)) {
            problems.push(format!(
                "`forward_header`: `{name}` belongs to the connection, to the body or to MCP, and is not forwarded"
            ));
        } else {
            headers.push((ours, theirs));
        }
    }
    if allowed && !headers.iter().any(|(ours, _)| ours == AUTHORIZATION) {
        headers.push((AUTHORIZATION, AUTHORIZATION));
    }
    for (index, (_, theirs)) in headers.iter().enumerate() {
        if headers.iter().take(index).any(|(_, other)| other == theirs) {
            problems.push(format!(
                "`forward_header`: two headers would become `{theirs}`"
            ));
        }
    }
    Forwarding { headers }
}

/// The name of a header of clients whose value a setting uses.
///
/// # Errors
/// In words: it is not a name, or not a header that is passed on.
pub(super) fn read_client_header(name: &str) -> Result<HeaderName, String> {
    let header = HeaderName::from_bytes(name.trim().as_bytes())
        .map_err(|_| format!("`{}` is not the name of a header", name.escape_debug()))?;
    if header == AUTHORIZATION || stays(&header) {
        return Err(format!(
            "the header `{header}` belongs to the connection, to the body, to MCP or to this server, and is not forwarded"
        ));
    }
    Ok(header)
}

/// Hop-by-hop and framing headers (RFC 9110 section 7.6.1), those of the body, cookies, and MCP's
/// own.
fn stays(name: &HeaderName) -> bool {
    let name = name.as_str();
    let reserved = parameter::is_reserved_header(name)
        && !matches!(name, "authorization")
        && !name.starts_with("x-forwarded-");
    reserved
        || name.starts_with("mcp-")
        || matches!(
            name,
            "content-encoding"
                | "accept-encoding"
                | "origin"
                | "range"
                | "http2-settings"
                | "set-cookie"
        )
}
