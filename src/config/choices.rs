//! Settings whose value is one of a few words, and what each of the words means to the rest of the
//! program.
//!
//! The types of the rest know nothing of a command line, so that each has its words here.

use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::annotate::{DescriptionDetail, HintTrust, KnownClient, OutputSchemas, Policy};
use crate::mcp::meta_tools::ListMode;
use crate::spec::ExternalReferences;
use crate::transport::http::page::PageKind;

/// The references into other files that are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum ExternalRefs {
    /// None
    None,
    /// Those into the document's own folder, or below its own address
    Local,
    /// Any file and any URL; only for a document whose author you trust
    Any,
}

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

/// Source of the hints of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum AnnotationPolicy {
    /// The HTTP method, preconditions that the operation requires, and words that say that
    /// something is removed, ended or moved, or that a GET acts
    Careful,
    /// As careful, and words that say that something is changed; a POST is destructive unless a
    /// word says that it adds or reads
    Strict,
    /// The HTTP method
    Method,
    /// The method, and what the operation requires: preconditions and idempotency keys
    Spec,
    /// As spec and strict, and words that may make a tool look less dangerous, which is a guess
    Infer,
}

/// Trust in the document's own hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum DocumentHints {
    /// They can only make a tool look more dangerous, or hide it
    Tighten,
    /// They are applied; for an API of your own
    Trust,
    /// They are ignored
    Ignore,
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

/// Contents of `tools/list`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum ToolsMode {
    /// Every operation as a tool
    All,
    /// A few tools that search, describe and call the operations
    Search,
    /// search if the list would be longer than `max_list_tokens`, or than the client takes
    Auto,
}

/// A client to shape the tools for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ClientName {
    /// Any client that follows the specification
    Generic,
    /// Claude Desktop, Claude Code
    #[value(alias = "claude-ai")]
    Claude,
    /// `ChatGPT` and the models behind it
    #[value(alias = "chatgpt")]
    Openai,
    /// VS Code Copilot
    #[value(alias = "copilot")]
    Vscode,
    /// Cursor
    Cursor,
    /// Gemini CLI
    Gemini,
    /// Codex
    Codex,
    /// Claude Desktop
    ClaudeDesktop,
    /// Claude Code
    ClaudeCode,
    /// Windsurf
    Windsurf,
    /// Zed
    Zed,
    /// Goose
    Goose,
    /// Continue
    Continue,
    /// opencode
    Opencode,
}

impl fmt::Display for ClientName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_possible_value().unwrap_or_default().get_name())
    }
}

/// The output schemas that are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum OutputSchemasName {
    /// Lenient ones while the whole list stays below 1 MiB, else none
    Auto,
    /// Schemas that describe replies and accept every reply
    Lenient,
    /// The document's own schemas; clients refuse replies that do not match. With
    /// `response_filter`, as lenient
    Strict,
    /// None
    Off,
}

/// Detail of the descriptions of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum DescribeName {
    /// The document's own words
    Plain,
    /// Also the fields of replies, and the replacement of a deprecated operation
    Brief,
    /// The first sentence of the document's own words
    Title,
}

/// Content of the web page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum PageName {
    /// Steps to connect, and the tools
    Full,
    /// Steps to connect, without any text of the document
    Public,
    /// There is no page
    Off,
}

/// Transport by which clients reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum TransportKind {
    /// Standard input and output of this process
    Stdio,
    /// Streamable HTTP at /mcp
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

/// The meaning of each word of a setting.
macro_rules! meaning {
    ($setting:ident means $meaning:ident: $($word:ident => $variant:ident),+) => {
        impl From<$setting> for $meaning {
            fn from(setting: $setting) -> Self {
                match setting {
                    $($setting::$word => Self::$variant,)+
                }
            }
        }
    };
}

meaning!(ExternalRefs means ExternalReferences: None => None, Local => Local, Any => Any);
meaning!(AnnotationPolicy means Policy: Careful => Careful, Strict => Strict, Method => Method, Spec => Spec, Infer => Infer);
meaning!(DocumentHints means HintTrust: Tighten => Tighten, Trust => Trust, Ignore => Ignore);
meaning!(DescribeName means DescriptionDetail: Plain => Plain, Brief => Brief, Title => Title);
meaning!(OutputSchemasName means OutputSchemas: Auto => Auto, Lenient => Lenient, Strict => Strict, Off => Off);
meaning!(ClientName means KnownClient: Generic => Generic, Claude => Claude, Openai => OpenAi, Vscode => VsCode, Cursor => Cursor, Gemini => Gemini, Codex => Codex, ClaudeDesktop => ClaudeDesktop, ClaudeCode => Claude, Windsurf => Windsurf, Zed => Zed, Goose => Goose, Continue => Continue, Opencode => Opencode);
meaning!(PageName means PageKind: Full => Full, Public => Public, Off => Off);
meaning!(ToolsMode means ListMode: All => All, Search => Search, Auto => Auto);

/// The value of a flag that takes seconds.
///
/// # Errors
/// An error if the value is not a number.
pub(crate) fn read_seconds(text: &str) -> Result<f64, &'static str> {
    text.trim()
        .parse()
        .map_err(|_| "must be a number of seconds, such as 5")
}
