//! Settings that only HTTP uses.

use clap::Args;
use serde::{Deserialize, Serialize};

use super::choices::read_seconds;
use super::clients::access::AccessSettings;
use super::forward::ForwardSettings;
use crate::transport::http::page::PageKind;

/// Settings that only HTTP uses; over stdio each of them is reported, because it would have no
/// effect.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub(crate) struct HttpSettings {
    /// The address to listen on with --transport http; port 0 takes a free port [default:
    /// 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "HTTP")]
    pub bind: Option<String>,

    /// A host name, or name:port, that clients may ask for besides loopback (repeatable)
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME",
        help_heading = "HTTP"
    )]
    pub allow_host: Vec<String>,

    /// A web origin besides loopback whose pages may call, as in `https://app.example` (a list)
    #[arg(
        long,
        hide = true,
        value_delimiter = ',',
        value_name = "ORIGIN",
        help_heading = "HTTP"
    )]
    pub allow_origin: Vec<String>,

    /// Listen on an address that others can reach, although clients need no credentials
    #[arg(long, value_name = "BOOL", help_heading = "Authentication")]
    pub allow_unauthenticated: Option<bool>,

    /// Time for which requests are still answered after SIGTERM while /readyz answers 503, so that
    /// a balancer stops sending before the listener closes, in seconds [default: 0]
    #[arg(long, value_parser = read_seconds, value_name = "SECONDS", help_heading = "Operations")]
    pub drain_delay: Option<f64>,

    /// Answer to a browser at / and /mcp: a page with the tools, one with only the steps to
    /// connect, or none [default: full on loopback if clients need no token, else public]
    #[arg(
        long,
        hide = true,
        value_name = "WHICH",
        value_enum,
        help_heading = "HTTP"
    )]
    pub page: Option<PageKind>,

    /// The text that OpenAI gives to verify the domain of an app; it is answered at
    /// `/.well-known/openai-apps-challenge` without a token. Only in the configuration file.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub openai_apps_challenge: Option<String>,

    /// Headers that are forwarded from a client's request to the API.
    #[command(flatten)]
    #[serde(flatten)]
    pub forward: ForwardSettings,

    /// Admission and limits of clients over HTTP
    #[command(flatten)]
    #[serde(flatten)]
    pub access: AccessSettings,
}
