//! The groups of settings. Each is a key of the configuration file; the flag and the variable that a
//! setting may have too are named after it. One with `hide = true` has neither. What no flag could
//! hold is in `apis`, `clients` and `overrides`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::builder::{BoolishValueParser, OsStringValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, value_parser};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::about::AboutSettings;
use super::auth::settings::{CredentialSettings, SchemeSettings};
use super::clients::HttpSettings;
use super::documents::DocumentSettings;
use super::observability::ObservabilitySettings;
use super::observability::shared_state::SharedStateSettings;
use super::paths::utf8_path;
use super::saved_files::{FileStoreSettings, SavedFileSettings};
use super::upstream::UpstreamSettings;
pub(crate) use super::values::{ConfirmBy, LogFormat, LogLevel, ResponseFilter, TransportKind};
use super::values::{one_or_several, read_seconds};
use crate::annotate::{
    AccessRule, DescriptionDetail, HintTrust, KnownClient, OutputSchemas, Policy, Rule,
};
use crate::mcp::api_slot::ListMode;

/// Settings that every command takes.
#[derive(Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct CommandSettings {
    /// The only API.
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) api: ApiSettings,

    /// The process.
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) process: ProcessSettings,
}

/// Settings of one API. Nothing but its [`CommonSettings`] is inherited if there are several.
#[derive(Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct ApiSettings {
    /// The document.
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) document: DocumentSettings,

    /// The URL that requests go to, instead of the servers that the document names
    #[arg(long, value_name = "URL", help_heading = "Upstream")]
    #[schemars(example = &"https://api.example/v1")]
    pub(crate) base_url: Option<String>,

    /// The document's server that is called: its number from 1, or its URL as the document writes
    /// it [default: 1]
    #[arg(
        long,
        hide = true,
        value_name = "NUMBER|URL",
        help_heading = "Upstream"
    )]
    #[serde(deserialize_with = "text_or_number")]
    pub(crate) server: Option<String>,

    /// A value for a variable in the URL of a server (repeatable)
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME=VALUE",
        help_heading = "Upstream"
    )]
    pub(crate) server_var: Vec<String>,

    /// A header of every request to the API (repeatable; for secrets, use --header-env)
    #[arg(
        long,
        value_delimiter = '\n',
        value_name = "NAME: VALUE",
        help_heading = "Credentials"
    )]
    pub(crate) header: Vec<String>,

    /// A header of every request to the API, with its value in an environment variable (repeatable)
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME=VARIABLE",
        help_heading = "Credentials"
    )]
    pub(crate) header_env: Vec<String>,

    /// A header of every request to the API, with its value in a file (repeatable)
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME=PATH",
        help_heading = "Credentials"
    )]
    pub(crate) header_file: Vec<String>,

    /// Credentials.
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) credentials: CredentialSettings,

    /// Connections to the API.
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) upstream: UpstreamSettings,

    /// Offer only tools that are read-only by their hints
    #[arg(long, help_heading = "Tools")]
    pub(crate) read_only: Option<bool>,

    /// Offer no tool that is destructive by its hints, which are then those of the policy strict
    #[arg(long, help_heading = "Tools")]
    pub(crate) no_destructive: Option<bool>,

    /// Basis of the hints of tools, before overrides; strict with --no-destructive or --confirm
    /// destructive [default: careful]
    #[arg(long, value_name = "POLICY", help_heading = "Tools")]
    pub(crate) annotation_policy: Option<Policy>,

    /// Trust in the document's own hints (x-mcp and the like) [default: tighten]
    #[arg(long, hide = true, value_name = "TRUST", help_heading = "Tools")]
    pub(crate) document_hints: Option<HintTrust>,

    /// Set hints of the tools that match: `PATTERN HINT=BOOL ...`, as in "searchPets
    /// readOnly=true"; stronger than all other sources (repeatable)
    #[arg(
        long,
        value_delimiter = '\n',
        value_name = "PATTERN HINT=BOOL",
        help_heading = "Tools"
    )]
    pub(crate) hint: Vec<String>,

    /// The introduction of the server to clients and people; what is left out comes from the document
    /// (docs/reference/about.md). Only in the configuration file.
    #[arg(skip)]
    #[schemars(
            example = &"{ title: Orders, instructions: Ask for the number of the order first. }"
        )]
    pub(crate) about: AboutSettings,

    /// Several tenants of the API, each with a base URL and credentials of its own; a client that is
    /// none of them is refused (docs/guides/tenants.md). Only over HTTP. Only in the configuration
    /// file.
    #[arg(skip)]
    #[schemars(
            example = &"{ claim: tenant, entries: { acme: { base_url: https://acme.example/v1, auth: { apiKey: { env: ACME_KEY } } } } }"
        )]
    pub(crate) tenants: Option<TenantSettings>,

    /// Offer only operations that match: [operation:|tag:|method:|path:]GLOB (repeatable)
    #[arg(long, value_name = "PATTERN", help_heading = "Tools")]
    pub(crate) tool_include: Vec<String>,

    /// Leave out operations that match, even if --tool-include matches them (repeatable)
    #[arg(long, value_name = "PATTERN", help_heading = "Tools")]
    pub(crate) tool_exclude: Vec<String>,

    /// A prefix of every tool name
    #[arg(long, value_name = "TEXT", help_heading = "Tools")]
    pub(crate) tool_prefix: Option<String>,

    /// The maximum length of a tool name, in characters [default: 64]
    #[arg(long, hide = true, value_name = "NUMBER", help_heading = "Tools")]
    pub(crate) max_tool_name_length: Option<usize>,

    /// Settings that may be given for several APIs at once.
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) common: CommonSettings,

    /// List operations that match as tools in search mode as well: a pattern as in --tool-include
    /// (a list)
    #[arg(long, hide = true, value_name = "PATTERN", help_heading = "Tools")]
    pub(crate) pin: Vec<String>,

    /// Output schemas that are offered [default: auto]
    #[arg(long, hide = true, value_name = "WHICH", help_heading = "Tools")]
    pub(crate) output_schemas: Option<OutputSchemas>,

    /// Detail of the descriptions of tools [default: plain]
    #[arg(long, hide = true, value_name = "DETAIL", help_heading = "Tools")]
    pub(crate) describe: Option<DescriptionDetail>,

    /// The maximum size of one tool's input schema, in bytes; deeper levels are left out [default:
    /// 65536]
    #[arg(long, hide = true, value_name = "BYTES", help_heading = "Tools")]
    pub(crate) max_schema_bytes: Option<usize>,

    /// Refuse a document if any part of it is left out or not read exactly
    #[arg(long, hide = true, help_heading = "Document")]
    pub(crate) strict: Option<bool>,

    /// The limit for a whole call, in seconds [default: 30]
    #[arg(long, value_parser = read_seconds, value_name = "SECONDS", help_heading = "Calls")]
    pub(crate) timeout: Option<f64>,

    /// The maximum size of a reply, in bytes after decompression [default: 10485760]
    #[arg(long, value_name = "BYTES", help_heading = "Calls")]
    pub(crate) max_response_bytes: Option<usize>,

    /// A folder with files that calls may send by naming their `path`, instead of giving base64
    #[arg(long, value_name = "DIR", help_heading = "Calls")]
    pub(crate) allow_file_args: Option<PathBuf>,

    /// Offer an argument with which the model selects parts of a JSON reply [default: off]
    #[arg(long, hide = true, value_name = "LANGUAGE", help_heading = "Calls")]
    pub(crate) response_filter: Option<ResponseFilter>,

    /// Offer an argument with which a call collects the pages of a list, up to this number, at most
    /// 100; 0 offers none [default: 0]
    #[arg(long, hide = true, value_name = "PAGES", help_heading = "Calls")]
    pub(crate) collect_pages: Option<usize>,
}

/// The rules of `overrides` and `access`, which only the configuration file can have.
#[derive(Clone, Default)]
pub(crate) struct FileRules {
    pub(crate) overrides: Vec<Rule>,
    pub(crate) access: Vec<AccessRule>,
    /// Both keys as they are in the file, if they are there.
    pub(crate) written: Map<String, Value>,
}

/// Settings of one API that apply to each of several if they are beside `apis`.
#[derive(Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct CommonSettings {
    /// Adapt the tools to a known client, as `openapi-mcp install --list` names it, or to openai:
    /// length of names, references in schemas, number of tools [default: generic]
    #[arg(
        long,
        value_name = "CLIENT",
        hide_possible_values = true,
        help_heading = "Clients"
    )]
    pub(crate) client: Option<KnownClient>,

    /// Tools that clients list: every operation, or a few tools that search, describe and call the
    /// operations [default: all, or search if all take more than 6 MiB; auto with --client vscode,
    /// cursor, windsurf or openai]
    #[arg(long, value_name = "MODE", help_heading = "Tools")]
    pub(crate) tools: Option<ListMode>,

    /// Number of tokens of the list above which --tools auto means search [default: 20000]
    #[arg(long, hide = true, value_name = "TOKENS", help_heading = "Tools")]
    pub(crate) max_list_tokens: Option<usize>,

    /// The approximate maximum length of a result, in tokens; a longer one is shortened, stays
    /// valid JSON and states what is missing; 0 means no limit [default: 20000]
    #[arg(long, value_name = "TOKENS", help_heading = "Calls")]
    pub(crate) max_result_tokens: Option<usize>,

    /// Answer calls from the document's own examples instead of calling the API
    #[arg(long, help_heading = "Upstream")]
    pub(crate) mock: Option<bool>,
}

/// Settings of the process, whichever command it runs.
#[derive(Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct ProcessSettings {
    /// Shared state of replicas.
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) shared_state: SharedStateSettings,

    /// Level of the log on standard error [default: info for serve, warn for tools and call, else
    /// error]
    #[arg(long, value_name = "LEVEL", help_heading = "Log")]
    pub(crate) log_level: Option<LogLevel>,

    /// The format of the log: text, or json, which is one object a line [default: text]
    #[arg(
        long,
        value_name = "FORMAT",
        hide_possible_values = true,
        help_heading = "Log"
    )]
    pub(crate) log_format: Option<LogFormat>,
}

/// Settings of `serve`: how clients reach the server.
// No `deny_unknown_fields`: serde cannot have it beside `flatten`, and the file's reader knows all
// keys.
#[derive(Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct ServerSettings {
    /// Transport by which clients reach the server: stdio, or http, which is streamable HTTP at /mcp
    /// [default: stdio]
    #[arg(
        long,
        value_name = "TRANSPORT",
        hide_possible_values = true,
        help_heading = "Clients"
    )]
    pub(crate) transport: Option<TransportKind>,

    /// Ask the user, through the client, before calls are made: of destructive tools, of all that
    /// write, or of those that match a pattern as in --tool-include, where `?PATTERN` may match
    /// none (repeatable) [default: none]
    #[arg(
        long,
        value_name = "none|destructive|write|PATTERN",
        help_heading = "Calls"
    )]
    #[schemars(with = "super::overrides::Globs")]
    #[serde(deserialize_with = "one_or_several")]
    pub(crate) confirm: Vec<String>,

    /// Who agrees to the calls that --confirm asks about [default: client]
    #[arg(long, value_name = "WHO", help_heading = "Calls")]
    pub(crate) confirm_by: Option<ConfirmBy>,

    /// Settings of HTTP alone.
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) http: HttpSettings,

    /// With several APIs, start only if each of them can be served
    #[arg(long, hide = true, help_heading = "Operations")]
    pub(crate) require_all: Option<bool>,

    /// Replies that are saved.
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) saved_files: SavedFileSettings,

    /// Replies to which clients get links.
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) file_store: FileStoreSettings,

    /// Observability.
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) observability: ObservabilitySettings,

    /// Memory for requests of clients and replies of APIs that are in flight, in bytes; a client
    /// may take half of what others leave free [default: 268435456]
    #[arg(long, value_name = "BYTES", help_heading = "Operations")]
    pub(crate) max_memory: Option<usize>,

    /// Interval of checks for changes of the document, in seconds; 0 means never [default: 0]
    #[arg(long, value_parser = read_seconds, value_name = "SECONDS", help_heading = "Operations")]
    pub(crate) reload: Option<f64>,
}

/// A text, or a number as its text: `server: 2`.
fn text_or_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(
        match Option::<serde_json::Value>::deserialize(deserializer)? {
            None | Some(serde_json::Value::Null) => None,
            Some(serde_json::Value::String(text)) => Some(text),
            Some(serde_json::Value::Number(number)) => Some(number.to_string()),
            Some(_) => return Err(serde::de::Error::custom("expected a number or a text")),
        },
    )
}

/// The sections of `--help` that hold settings.
const SECTIONS: [&str; 10] = [
    "Document",
    "Upstream",
    "Credentials",
    "Tools",
    "Calls",
    "Clients",
    "HTTP",
    "Authentication",
    "Log",
    "Operations",
];

/// A command whose settings have the variables that are named after them. The flag and the variable
/// of a setting that is a key alone take any value, so that [`keys_given_elsewhere`] finds them.
pub(crate) fn with_variables(command: Command) -> Command {
    command.mut_args(|argument| {
        if !is_setting(&argument) {
            return argument;
        }
        let (variable, kind) = (
            variable_of(&argument),
            argument.get_value_parser().type_id(),
        );
        let argument = argument.env(variable).hide_env_values(true);
        let is_switch = kind == value_parser!(bool).type_id();
        let argument = if is_switch {
            argument.value_name("BOOL")
        } else {
            argument
        };
        if is_key_alone(&argument) {
            return argument
                .num_args(0..=1)
                .action(ArgAction::Append)
                .value_parser(OsStringValueParser::new());
        }
        if kind == value_parser!(PathBuf).type_id() {
            argument.value_parser(utf8_path)
        } else if is_switch {
            argument
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true")
                .value_parser(BoolishValueParser::new())
        } else {
            argument
        }
    })
}

/// Returns true if an argument is a setting.
fn is_setting(argument: &Arg) -> bool {
    argument
        .get_help_heading()
        .is_some_and(|section| SECTIONS.contains(&section))
}

/// Returns true if an argument is a setting without a flag and a variable.
pub(crate) fn is_key_alone(argument: &Arg) -> bool {
    is_setting(argument) && argument.is_hide_set()
}

fn variable_of(argument: &Arg) -> String {
    format!(
        "OPENAPI_MCP_{}",
        argument.get_id().as_str().to_ascii_uppercase()
    )
}

/// A sentence about a flag or variable whose setting is a key alone.
pub(crate) fn refuse_key(name: &str, key: &str) -> String {
    format!("`{name}` is a key of the configuration file: set `{key}` there")
}

/// A sentence for each flag and variable that is given to a command although its setting is a key
/// alone.
pub(crate) fn keys_given_elsewhere(program: &Command, matches: &ArgMatches) -> Vec<String> {
    let Some((name, matches)) = matches.subcommand() else {
        return Vec::new();
    };
    let arguments = program
        .find_subcommand(name)
        .into_iter()
        .flat_map(Command::get_arguments);
    let given = arguments
        .filter(|argument| is_key_alone(argument))
        .filter_map(|argument| {
            let key = argument.get_id().as_str();
            let name = match matches.value_source(key)? {
                ValueSource::EnvVariable => variable_of(argument),
                _ => format!("--{}", key.replace('_', "-")),
            };
            Some(refuse_key(&name, key))
        });
    given.collect()
}

/// Tenants: calls go to the base URL of the client's tenant, with the credentials of that tenant
/// alone. A client that is none of them is refused.
#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "a mapping with `claim` or `header`, and `entries`"
)]
pub(crate) struct TenantSettings {
    /// The claim of the client's verified access token that names its tenant, by its name or its
    /// JSON Pointer
    pub(crate) claim: Option<String>,
    /// The header of the client's HTTP request that names its tenant; it proves nothing, so that
    /// only one tenant may have credentials then
    pub(crate) header: Option<String>,
    /// The tenants by the value of the claim or header, compared byte for byte
    pub(crate) entries: BTreeMap<String, TenantEntrySettings>,
}

/// One tenant.
#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a mapping with `base_url`")]
pub(crate) struct TenantEntrySettings {
    /// The complete URL that its calls go to
    pub(crate) base_url: String,
    /// Its credentials by the name of the document's security scheme, each by reference; without
    /// any, none are sent
    pub(crate) auth: BTreeMap<String, SchemeSettings>,
}
