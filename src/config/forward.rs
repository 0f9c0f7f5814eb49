//! Settings of which headers of a client's request are passed on to the API.

use clap::Args;
use http::header::{AUTHORIZATION, HeaderName};
use serde::{Deserialize, Serialize};

use crate::config::problems::Problems;
use crate::credentials::forward::Forwarding;
use crate::spec::operation::parameter;

/// Settings of which headers of a client's request are passed on to the API.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    pub forward_header: Vec<String>,

    /// Pass the client's Authorization header on to the API
    #[arg(long, hide = true, value_name = "BOOL", help_heading = "Credentials")]
    pub forward_authorization: Option<bool>,
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
