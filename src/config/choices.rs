//! Settings whose value is one of a few words that only the settings know.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Who agrees to calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum ResponseFilter {
    /// No such argument
    Off,
    /// jq
    Jq,
}

/// Transport by which clients reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum TransportKind {
    /// Standard input and output of this process
    Stdio,
    /// Streamable HTTP at /mcp
    #[value(alias = "streamable-http")]
    Http,
}

/// Level of logging.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
