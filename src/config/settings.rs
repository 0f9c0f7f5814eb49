//! Every setting, once: its flag, its variable and its key in the configuration file have the same name.

use clap::{Args, ValueEnum};
use serde::{Deserialize, Deserializer, Serialize};

pub(crate) use super::access::AccessSettings;
use super::credentials::CredentialSettings;
use super::forward::ForwardSettings;
use super::upstream::UpstreamSettings;

/// Settings of the API: what `serve`, `tools` and `call` share.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub(crate) struct ApiSettings {
    /// The OpenAPI document: a file, an http(s) URL, or - for standard input
    #[arg(long, env = "OPENAPI_MCP_SPEC", hide_env_values = true, value_name = "FILE|URL|-")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<String>,

    /// A header for fetching the document from a URL (repeatable; for secrets use --spec-header-env)
    #[arg(
        long,
        env = "OPENAPI_MCP_SPEC_HEADER",
        value_delimiter = '\n',
        value_name = "NAME: VALUE",
        hide_env_values = true
    )]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spec_header: Vec<String>,

    /// Such a header whose value is taken from an environment variable (repeatable)
    #[arg(long, env = "OPENAPI_MCP_SPEC_HEADER_ENV", value_delimiter = ',', value_name = "NAME=VARIABLE")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spec_header_env: Vec<String>,

    /// An OpenAPI Overlay that is applied to the document: a file or an http(s) URL (repeatable)
    #[arg(
        long,
        env = "OPENAPI_MCP_OVERLAY",
        hide_env_values = true,
        value_delimiter = ',',
        value_name = "FILE|URL"
    )]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overlay: Vec<String>,

    /// Which references into other files are followed [default: local]
    #[arg(long, env = "OPENAPI_MCP_EXTERNAL_REFS", value_name = "WHICH", value_enum)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_refs: Option<ExternalRefs>,

    /// Where requests go, instead of the servers that the document names
    #[arg(long, env = "OPENAPI_MCP_BASE_URL", hide_env_values = true, value_name = "URL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,

    /// Which of the document's servers is called: its number from 1, or its URL as the document writes it [default: 1]
    #[arg(long, env = "OPENAPI_MCP_SERVER", hide_env_values = true, value_name = "NUMBER|URL")]
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "text_or_number")]
    pub server: Option<String>,

    /// A value for a variable in the URL of a server (repeatable)
    #[arg(
        long,
        env = "OPENAPI_MCP_SERVER_VAR",
        hide_env_values = true,
        value_delimiter = ',',
        value_name = "NAME=VALUE"
    )]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub server_var: Vec<String>,

    /// Answer calls from the document's own examples instead of calling the API
    #[arg(long, env = "OPENAPI_MCP_MOCK", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = clap::builder::BoolishValueParser::new(), value_name = "BOOL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mock: Option<bool>,

    /// A header that every request to the API carries (repeatable; for secrets use --header-env)
    #[arg(
        long,
        env = "OPENAPI_MCP_HEADER",
        value_delimiter = '\n',
        value_name = "NAME: VALUE",
        hide_env_values = true
    )]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub header: Vec<String>,

    /// A header whose value is taken from an environment variable (repeatable)
    #[arg(long, env = "OPENAPI_MCP_HEADER_ENV", value_delimiter = ',', value_name = "NAME=VARIABLE")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub header_env: Vec<String>,

    /// Credentials.
    #[command(flatten)]
    #[serde(flatten)]
    pub credentials: CredentialSettings,

    /// Connections to the API.
    #[command(flatten)]
    #[serde(flatten)]
    pub upstream: UpstreamSettings,

    /// Offer only tools that are read-only, by their hints and by the words of their names
    #[arg(long, env = "OPENAPI_MCP_READ_ONLY", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = clap::builder::BoolishValueParser::new(), value_name = "BOOL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,

    /// Offer no tool that may change or remove what exists, by its hints or by the words of its name
    #[arg(long, env = "OPENAPI_MCP_NO_DESTRUCTIVE", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = clap::builder::BoolishValueParser::new(), value_name = "BOOL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_destructive: Option<bool>,

    /// How tools get their hints before anybody has said anything [default: method]
    #[arg(long, env = "OPENAPI_MCP_ANNOTATION_POLICY", value_name = "POLICY", value_enum)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotation_policy: Option<AnnotationPolicy>,

    /// The API deals with nothing outside: --annotation-policy infer may mark tools of memory, session, config or local
    /// things as closed-world
    #[arg(long, env = "OPENAPI_MCP_LOCAL_API", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = clap::builder::BoolishValueParser::new(), value_name = "BOOL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_api: Option<bool>,

    /// How far what the document says of its tools (x-mcp and the like) is trusted [default: tighten]
    #[arg(long, env = "OPENAPI_MCP_DOCUMENT_HINTS", value_name = "TRUST", value_enum)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub document_hints: Option<DocumentHints>,

    /// Set hints of the tools that match, over everything else: `PATTERN HINT=BOOL ...`, as in "searchPets readOnly=true"
    /// (repeatable)
    #[arg(long, env = "OPENAPI_MCP_HINT", value_delimiter = '\n', value_name = "PATTERN HINT=BOOL")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hint: Vec<String>,

    /// What is said of the tools that match, in order: rules with `match` and what they say. Only in the configuration file.
    #[arg(skip)]
    #[cfg_attr(test, schemars(with = "Vec<super::annotate::OverrideSchema>"))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<serde_json::Value>,

    /// Offer only operations that match: [operation:|tag:|method:|path:]GLOB (repeatable)
    #[arg(long, env = "OPENAPI_MCP_TOOL_INCLUDE", value_name = "PATTERN")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_include: Vec<String>,

    /// Leave out operations that match, whatever else they match (repeatable)
    #[arg(long, env = "OPENAPI_MCP_TOOL_EXCLUDE", value_name = "PATTERN")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_exclude: Vec<String>,

    /// Put before every tool name
    #[arg(long, env = "OPENAPI_MCP_TOOL_PREFIX", value_name = "TEXT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_prefix: Option<String>,

    /// The longest tool name, in characters [default: 64]
    #[arg(long, env = "OPENAPI_MCP_MAX_TOOL_NAME_LENGTH", value_name = "NUMBER")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tool_name_length: Option<usize>,

    /// Shape the tools for a client: name length, references, number of tools [default: generic]
    #[arg(long, env = "OPENAPI_MCP_CLIENT", value_name = "CLIENT", value_enum)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientName>,

    /// Which output schemas are offered [default: auto]
    #[arg(long, env = "OPENAPI_MCP_OUTPUT_SCHEMAS", value_name = "WHICH", value_enum)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schemas: Option<OutputSchemasName>,

    /// The most bytes of one tool's input schema; what is deeper is left out [default: 65536]
    #[arg(long, env = "OPENAPI_MCP_MAX_SCHEMA_BYTES", value_name = "BYTES")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_schema_bytes: Option<usize>,

    /// The most bytes of the whole list of tools; the largest schemas give way [default: 6291456]
    #[arg(long, env = "OPENAPI_MCP_MAX_LIST_BYTES", value_name = "BYTES")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_list_bytes: Option<usize>,

    /// Refuse a document of which anything is left out or read loosely
    #[arg(long, env = "OPENAPI_MCP_STRICT", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = clap::builder::BoolishValueParser::new(), value_name = "BOOL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,

    /// How long one call may take in all, in seconds [default: 30]
    #[arg(long, env = "OPENAPI_MCP_TIMEOUT", value_name = "SECONDS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,

    /// The largest reply that is read, in bytes, counted after decompression [default: 10485760]
    #[arg(long, env = "OPENAPI_MCP_MAX_RESPONSE_BYTES", value_name = "BYTES")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_response_bytes: Option<usize>,

    /// A folder that calls may send files from, named by `path` instead of given as base64
    #[arg(long, env = "OPENAPI_MCP_ALLOW_FILE_ARGS", value_name = "DIR")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_file_args: Option<String>,

    /// About how many tokens a result may take; what is longer is cut, stays valid JSON and says what is missing; 0 is no
    /// limit [default: 20000]
    #[arg(long, env = "OPENAPI_MCP_MAX_RESULT_TOKENS", value_name = "TOKENS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_result_tokens: Option<usize>,

    /// Offer an argument with which the model filters the JSON of a reply before it is given [default: off]
    #[arg(long, env = "OPENAPI_MCP_RESPONSE_FILTER", value_name = "LANGUAGE", value_enum)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_filter: Option<ResponseFilter>,

    /// How much is logged to standard error [default: info for serve, else warn]
    #[arg(long, env = "OPENAPI_MCP_LOG_LEVEL", value_name = "LEVEL", value_enum)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_level: Option<LogLevel>,

    /// How log lines look [default: text]
    #[arg(long, env = "OPENAPI_MCP_LOG_FORMAT", value_name = "FORMAT", value_enum)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_format: Option<LogFormat>,
}

/// Settings of `serve`: how clients reach us.
// No `deny_unknown_fields`: serde cannot have it beside `flatten`, and the file's reader knows all keys.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub(crate) struct ServerSettings {
    /// How clients reach the server [default: stdio]
    #[arg(long, env = "OPENAPI_MCP_TRANSPORT", value_name = "TRANSPORT", value_enum)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<TransportKind>,

    /// The address to listen on with --transport http; port 0 takes a free one [default: 127.0.0.1:8080]
    #[arg(long, env = "OPENAPI_MCP_BIND", value_name = "ADDRESS:PORT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bind: Option<String>,

    /// A host name, or name:port, that clients may ask for besides loopback (repeatable)
    #[arg(long, env = "OPENAPI_MCP_ALLOW_HOST", value_delimiter = ',', value_name = "NAME")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_host: Vec<String>,

    /// A web origin whose pages may call besides loopback, as in `https://app.example` (repeatable)
    #[arg(long, env = "OPENAPI_MCP_ALLOW_ORIGIN", value_delimiter = ',', value_name = "ORIGIN")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_origin: Vec<String>,

    /// Serve on an address that others can reach although nobody has to prove who they are
    #[arg(long, env = "OPENAPI_MCP_ALLOW_UNAUTHENTICATED", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = clap::builder::BoolishValueParser::new(), value_name = "BOOL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_unauthenticated: Option<bool>,

    /// Ask the user, through the client, before calls are made: of destructive tools, of all that write, or of those that
    /// match a pattern as in --tool-include, where `?PATTERN` may match none (repeatable) [default: none]
    #[arg(long, env = "OPENAPI_MCP_CONFIRM", value_name = "none|destructive|write|PATTERN")]
    #[cfg_attr(test, schemars(with = "super::annotate::Globs"))]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_several")]
    pub confirm: Vec<String>,

    /// What goes from a client's request to the API's.
    #[command(flatten)]
    #[serde(flatten)]
    pub forward: ForwardSettings,

    /// Who may call over HTTP, and how much
    #[command(flatten)]
    #[serde(flatten)]
    pub access: AccessSettings,

    /// How often to look whether the document changed, in seconds; 0 is never [default: 0]
    #[arg(long, env = "OPENAPI_MCP_RELOAD", value_name = "SECONDS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reload: Option<f64>,
}

/// A text, or a number as its text: `server: 2`.
fn text_or_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Option::<serde_json::Value>::deserialize(deserializer)? {
        None | Some(serde_json::Value::Null) => None,
        Some(serde_json::Value::String(text)) => Some(text),
        Some(serde_json::Value::Number(number)) => Some(number.to_string()),
        Some(_) => return Err(serde::de::Error::custom("expected a number or a text")),
    })
}

/// A list of texts, or one text: `confirm: destructive`.
fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
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

/// Which references into other files are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum ExternalRefs {
    /// None
    None,
    /// Those into the document's own folder, or below its own address
    Local,
    /// Any file and any URL: only for a document whose author you trust
    Any,
}

/// How tools get their hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum AnnotationPolicy {
    /// By the HTTP method
    Method,
    /// By the method, and by what is written in the operation: required preconditions and idempotency keys
    Spec,
    /// As spec, and by the words of the operation's name: a guess
    Infer,
}

/// How far the document's own hints are trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum DocumentHints {
    /// They can only make a tool look more careful
    Tighten,
    /// They are taken at their word: for an API of one's own
    Trust,
    /// They say nothing
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

/// A client to shape the tools for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum ClientName {
    /// Any client that follows the specification
    Generic,
    /// Claude Desktop, Claude Code
    Claude,
    /// `ChatGPT` and the models behind it
    Openai,
    /// VS Code Copilot
    Vscode,
    /// Cursor
    Cursor,
    /// Gemini CLI
    Gemini,
    /// Codex
    Codex,
}

/// Which output schemas are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum OutputSchemasName {
    /// Lenient ones while the whole list stays below 1 MiB, else none
    Auto,
    /// Describe replies and accept whatever comes
    Lenient,
    /// The document's own: clients refuse replies that do not fit
    Strict,
    /// None
    Off,
}

/// How clients reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum TransportKind {
    /// Standard input and output of this process
    Stdio,
    /// Streamable HTTP at /mcp
    Http,
}

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogLevel {
    /// Nothing
    Off,
    /// What failed
    Error,
    /// What may be wrong
    Warn,
    /// What was started and with what
    Info,
    /// Each call, without its arguments
    Debug,
    /// Everything of this program
    Trace,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}
