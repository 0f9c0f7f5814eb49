//! The help of the commands: the most needed settings with `-h`, and with `--help` all that have a
//! flag, but for `install`; and what was probably meant by a command line that is wrong.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, ValueEnum as _};

use crate::annotate::KnownClient;
use crate::config::settings::{is_key_alone, refuse_key};
use crate::config::variables;

/// The settings that `-h` shows: the section there, because one screen has no room for a heading
/// per setting, the name, and words that fit into a line.
const SHORT_HELP_SETTINGS: [(&str, &str, &str); 11] = [
    ("API", "spec", "The OpenAPI document"),
    (
        "API",
        "base_url",
        "Where requests go [default: the document's]",
    ),
    ("API", "header_env", "A header for the API, from a variable"),
    ("API", "mock", "Answer from the document's examples"),
    ("Tools", "read_only", "Offer only read-only tools"),
    ("Tools", "tool_include", "Offer only these, as in tag:pets"),
    ("Clients", "transport", "stdio (the default) or http"),
    (
        "Clients",
        "bind",
        "Where to listen [default: 127.0.0.1:8080]",
    ),
    (
        "Clients",
        "allow_host",
        "A name of this host that clients may use",
    ),
    (
        "Clients",
        "auth_token_env",
        "A variable with the token of clients",
    ),
    (
        "Tools",
        "confirm",
        "Ask first: destructive, write or a pattern",
    ),
];

/// The settings that `-h` of `install` leaves out.
const NOT_NEEDED_TO_INSTALL: [&str; 6] = [
    "mock",
    "confirm",
    "transport",
    "bind",
    "allow_host",
    "auth_token_env",
];

/// Text after the flags of `serve`.
pub(crate) const SERVE_EXAMPLES: &str = "\
Examples:
  openapi-mcp serve --spec petstore.yaml --mock
  openapi-mcp serve --spec https://api.example/openapi.json --read-only
  openapi-mcp serve --spec petstore.yaml --transport http --bind 127.0.0.1:9000

Credentials: OPENAPI_MCP_AUTH_<SCHEME> for a security scheme of the document, as
OPENAPI_MCP_AUTH_API_KEY for `apiKey`; `openapi-mcp check` names them all.
Each of these settings is a variable, too: --base-url is OPENAPI_MCP_BASE_URL.
All others are keys of the file that --config names.";

/// Text after the flags of `call`.
pub(crate) const CALL_EXAMPLES: &str = "\
Examples:
  openapi-mcp call --spec petstore.yaml --mock get_pet petId=7
  openapi-mcp call --spec petstore.yaml list_pets limit=2 'tags=[\"calm\"]'
  openapi-mcp call --spec petstore.yaml --dry-run=curl create_pet body=@pet.json

Credentials: OPENAPI_MCP_AUTH_<SCHEME> for a security scheme of the document, as
OPENAPI_MCP_AUTH_API_KEY for `apiKey`; `openapi-mcp check` names them all.
Each of these settings is a variable, too: --base-url is OPENAPI_MCP_BASE_URL.";

/// Text after the flags of `login`.
pub(crate) const LOGIN_EXAMPLES: &str = "\
Examples:
  openapi-mcp login --config crm.yaml
  openapi-mcp login --config crm.yaml --device
  openapi-mcp login --config crm.yaml --callback http://localhost:8765/cb
  openapi-mcp login --config crm.yaml --status

The scheme needs `client_id`, and `issuer` or `authorization_url` and `token_url`.
Exit codes: 0 signed in, 1 nobody is, 2 wrong settings, 3 no document.";

/// Text after the flags of `install`.
pub(crate) const INSTALL_EXAMPLES: &str = "\
Examples:
  openapi-mcp install --client cursor --spec petstore.yaml
  openapi-mcp install --client vscode --scope project --spec api.yaml --write
  openapi-mcp install --client codex --url https://mcp.example/mcp

On a terminal it shows the change and asks; else it prints the entry, without
any secret. Exit codes: 0 written or already there, 1 declined, 2 refused.";

/// Text after the flags of `tools`.
pub(crate) const TOOLS_EXAMPLES: &str = "\
Examples:
  openapi-mcp tools --spec petstore.yaml
  openapi-mcp tools --spec petstore.yaml --read-only --explain
  openapi-mcp tools --spec petstore.yaml --search 'order status'
  openapi-mcp tools --config mcp.yaml --as claims.json

Each of these settings is a variable, too: --base-url is OPENAPI_MCP_BASE_URL.";

/// Text after the flags of `check`.
pub(crate) const CHECK_EXAMPLES: &str = "\
Examples:
  openapi-mcp check --spec petstore.yaml
  openapi-mcp check --spec petstore.yaml --client cursor --tool-include tag:pets
  openapi-mcp check --spec petstore.yaml --strict --format github

Exit codes: 0 nothing is lost, 1 an operation is left out, no tool is left or `serve`
would not start (with --strict: or anything is not read exactly), 2 wrong settings, 3 the
document cannot be read.
Each of these settings is a variable, too: --base-url is OPENAPI_MCP_BASE_URL.";

/// Text in `-h` that `--help` does not have.
const SHORT_HELP_MARK: &str = "(see more with '--help')";

/// The help that was asked for, with the settings in sections.
pub(crate) fn arranged_help(command: &Command) -> Option<clap::Error> {
    let arranged = |arrange: fn(&str, Arg) -> Arg| {
        let command = command
            .clone()
            .mut_subcommands(|command| arranged_by(&command, arrange));
        command.try_get_matches().err()
    };
    let long = arranged(arrange_for_asked_help)?;
    if long.render().to_string().contains(SHORT_HELP_MARK) {
        arranged(arrange_for_short_help)
    } else {
        Some(long)
    }
}

/// A command with its settings as `--help` shows them.
pub(crate) fn with_long_help(command: &Command) -> Command {
    arranged_by(command, arrange_for_long_help)
}

fn arranged_by(command: &Command, arrange: fn(&str, Arg) -> Arg) -> Command {
    let name = command.get_name().to_owned();
    command
        .clone()
        .mut_args(|argument| arrange(&name, argument))
}

/// `install --help` shows the settings that `-h` of `serve` does: all others are those of `serve`.
fn arrange_for_asked_help(command: &str, argument: Arg) -> Arg {
    let argument = arrange_for_long_help(command, argument);
    let id = argument.get_id().as_str();
    let is_shown = ["client", "config"].contains(&id)
        || SHORT_HELP_SETTINGS
            .iter()
            .any(|(_, needed, _)| *needed == id);
    if command == "install" && argument.get_env().is_some() && !is_shown {
        return argument.hide_long_help(true);
    }
    argument
}

/// An argument without a variable is not a setting, and stays as it is.
fn arrange_for_long_help(command: &str, argument: Arg) -> Arg {
    if argument.get_env().is_none() {
        return argument;
    }
    // The end of the text says how variables are named.
    let argument = argument.hide_env(true);
    let is_switch = argument
        .get_value_names()
        .is_some_and(|names| names.iter().any(|name| name == "BOOL"));
    let argument = if is_switch {
        argument.hide_possible_values(true)
    } else {
        argument
    };
    if command == "install" && argument.get_id() == "client" {
        return argument.help_heading("Entry").display_order(0);
    }
    argument
}

fn arrange_for_short_help(command: &str, argument: Arg) -> Arg {
    if argument.get_env().is_none() {
        return argument;
    }
    let id = argument.get_id().to_string();
    if command == "install" {
        if id == "client" {
            return argument
                .help("The client, as --list names it")
                .hide_env(true)
                .hide_possible_values(true)
                .help_heading("Entry");
        }
        if NOT_NEEDED_TO_INSTALL.contains(&id.as_str()) {
            return argument.hide_short_help(true);
        }
    }
    if id == "config" {
        return argument
            .help("A YAML file with all these settings")
            .hide_env(true);
    }
    let Some((section, _, words)) = SHORT_HELP_SETTINGS
        .iter()
        .find(|(_, needed, _)| *needed == id)
    else {
        return argument.hide_short_help(true);
    };
    let argument = argument
        .help(*words)
        .help_heading(*section)
        .hide_env(true)
        .hide_possible_values(true);
    if id == "confirm" {
        return argument.value_name("WHICH");
    }
    argument
}

/// Names of settings of other servers, and the ones with the same effect here.
const NAMES_ELSEWHERE: [(&str, &str); 29] = [
    ("api-key", CREDENTIALS_OF_API),
    ("api-base-url", "--base-url URL"),
    ("bearer-token", CREDENTIALS_OF_API),
    ("exclude-tags", "--tool-exclude 'tag:NAME'"),
    (
        "headers",
        "--header-env NAME=VARIABLE, or --header 'NAME: VALUE' for what is not secret",
    ),
    ("host", "--transport http --bind 127.0.0.1:8080"),
    ("http", "--transport http"),
    ("include-tags", "--tool-include 'tag:NAME'"),
    ("input", "--spec FILE"),
    ("json", "--format json"),
    (
        "mode",
        "--tools all, or --tools search; --transport http chooses the transport",
    ),
    (
        "name",
        "--name only with install, uninstall and bundle; clients name a server in their own settings",
    ),
    ("openapi", "--spec FILE"),
    ("openapi-spec", "--spec FILE"),
    ("openapi-url", "--spec URL"),
    ("output", "--format json"),
    ("port", "--transport http --bind 127.0.0.1:8080"),
    ("schema", "--spec FILE"),
    ("server-url", "--base-url URL"),
    ("spec-url", "--spec URL"),
    ("sse", "--transport http, which is streamable HTTP"),
    (
        "stateless",
        "--transport http, which keeps no sessions unless --confirm needs them",
    ),
    ("stdio", "--transport stdio, which is the default"),
    ("streamable-http", "--transport http"),
    ("swagger", "--spec FILE"),
    ("tags", "--tool-include 'tag:NAME'"),
    (
        "verbose",
        "--log-level debug for the log; `check --format json` shows every finding",
    ),
    (
        "token",
        "--auth-token-env VARIABLE for the token of clients; OPENAPI_MCP_AUTH_<SCHEME> holds a credential of the API",
    ),
    (
        "url",
        "--spec URL for the document, --base-url URL for the API",
    ),
];

const CREDENTIALS_OF_API: &str = "nothing: the variable OPENAPI_MCP_AUTH_<SCHEME> holds a credential of the API, and `openapi-mcp check` names it";

/// Names of commands of other programs, and what does the same here.
const COMMANDS_ELSEWHERE: [(&str, &str); 14] = [
    ("list", "tools"),
    ("list-tools", "tools"),
    ("ls", "tools"),
    ("inspect", "tools"),
    ("validate", "check"),
    ("lint", "check"),
    ("run", "serve"),
    ("start", "serve"),
    ("http", "serve --transport http"),
    ("stdio", "serve"),
    ("test", "call"),
    ("auth", "login"),
    ("version", "--version"),
    ("completion", "completions"),
];

/// Adds what was probably meant to an error of the command line.
pub(crate) fn explain_usage(mut error: clap::Error, command: &Command) -> clap::Error {
    if let Some(hint) = usage_hint(&error, command) {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![StyledStr::from(hint)]),
        );
    }
    // Usage would repeat the flag that was suggested, or show others than it.
    if [ContextKind::Suggested, ContextKind::SuggestedArg]
        .iter()
        .any(|kind| error.get(*kind).is_some())
    {
        error.remove(ContextKind::Usage);
    }
    error
}

fn usage_hint(error: &clap::Error, command: &Command) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let given = text(ContextKind::InvalidArg)?;
            match given.strip_prefix("--") {
                Some(flag) => flag_hint(given, flag, error, command),
                None if given.starts_with('-') => None,
                None if ["true", "false"].contains(&given) => {
                    let flag = variables::flag_before(given)?;
                    Some(format!("write {flag}={given}"))
                }
                None if KnownClient::from_str(given, true).is_ok() => {
                    Some(format!("did you mean --client {given}?"))
                }
                None => Some(format!("did you mean --spec {given}?")),
            }
        }
        ErrorKind::InvalidSubcommand => {
            let given = text(ContextKind::InvalidSubcommand)?;
            if let Some((_, here)) = COMMANDS_ELSEWHERE
                .iter()
                .find(|(name, _)| given.eq_ignore_ascii_case(name))
            {
                return Some(format!("write openapi-mcp {here}"));
            }
            let is_document = given.contains(['.', '/']);
            is_document.then(|| format!("did you mean openapi-mcp serve --spec {given}?"))
        }
        ErrorKind::InvalidValue if text(ContextKind::InvalidValue) == Some("sse") => Some(
            "the transport SSE is deprecated; write --transport http, which is streamable HTTP"
                .to_owned(),
        ),
        ErrorKind::ValueValidation => {
            let given = text(ContextKind::InvalidArg)?;
            let is_number = ["<SECONDS>", "<NUMBER>", "<BYTES>", "<TOKENS>"]
                .iter()
                .any(|name| given.ends_with(name));
            is_number.then(|| "write a number without a unit, as in 5".to_owned())
        }
        _ => None,
    }
}

/// The advice about a flag that the command does not have; `given` is the whole argument.
fn flag_hint(given: &str, flag: &str, error: &clap::Error, command: &Command) -> Option<String> {
    let flag = flag.split('=').next().unwrap_or(flag);
    let mut arguments = command
        .get_subcommands()
        .flat_map(Command::get_arguments)
        .filter(|argument| is_key_alone(argument));
    if arguments.any(|argument| argument.get_long() == Some(flag)) {
        return Some(refuse_key(given, &flag.replace('-', "_")));
    }
    let is_given = |name: &str| variables::given_command().as_deref() == Some(name);
    if flag == "url" && is_given("health") {
        return Some("write openapi-mcp health URL".to_owned());
    }
    let owners = flag_owners(flag, command);
    let elsewhere = NAMES_ELSEWHERE.iter().find(|(name, _)| *name == flag);
    match elsewhere {
        Some((_, here)) if is_known_here(here, command) => Some(format!("write {here}")),
        _ if !owners.is_empty() => Some(format!("--{flag} belongs to {}", owners.join(", "))),
        Some((_, here)) => {
            let port = variables::given_value(given).filter(|_| flag == "port");
            Some(format!("write {}", with_port(here, port)))
        }
        None if is_given("call") && error.get(ContextKind::SuggestedArg).is_none() => {
            Some(format!("write {flag}=VALUE for an argument of the tool"))
        }
        None => None,
    }
}

/// Returns true if the command that is given has the flag that an advice begins with.
fn is_known_here(advice: &str, command: &Command) -> bool {
    let flag = advice.split(' ').next().unwrap_or_default();
    let owners = flag_owners(flag.trim_start_matches("--"), command);
    variables::given_command().is_some_and(|given| owners.contains(&format!("openapi-mcp {given}")))
        && flag != "--transport"
}

/// Puts a port in place of the one of an example.
fn with_port(example: &str, port: Option<String>) -> String {
    let is_port = |port: &String| port.parse::<u16>().is_ok();
    port.filter(is_port)
        .map_or_else(|| example.to_owned(), |port| example.replace("8080", &port))
}

/// The commands that have a flag.
fn flag_owners(flag: &str, command: &Command) -> Vec<String> {
    let has_flag = |command: &&Command| {
        command
            .get_arguments()
            .any(|argument| argument.get_long() == Some(flag) && !argument.is_hide_set())
    };
    let visible = command
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    visible
        .filter(has_flag)
        .map(|owner| format!("openapi-mcp {}", owner.get_name()))
        .collect()
}
