//! `openapi-mcp install` and `uninstall`: the entry for a client, printed, as a link, or written
//! into the client's file.
//!
//! # Adding a client to install into
//!
//! - A variant of `KnownClient` and its `ClientProfile`, both in `annotate/client_profile.rs`.
//! - A row of `CLIENTS` in `cli/install/clients.rs`: its file, and the forms of its entries.
//! - A row in `tests/it/install/entries.rs`; the table of clients in the book follows with
//!   `UPDATE=1`.

mod client_file;
mod client_table;
mod clients;
mod edit;
pub(crate) mod entry;
mod flags;
mod json_file;
mod needs;
mod place;
mod toml_file;

use std::process::ExitCode;

use clap::ArgMatches;

use self::client_file::ClientFile;
use self::clients::{CLIENTS, InstallableClient, installable};
use self::edit::{EntryChange, InstallMode, edit, mode};
use self::entry::{ClientEntry, EntryTarget};
use self::needs::EntryNeeds;
use self::place::{ClientPlace, TargetFile};
use super::operating_system::OperatingSystem;
use super::{ConfigFile, output, whole_command};
use crate::annotate::KnownClient;
use crate::config::settings::{ApiSettings, CommandSettings, ServerSettings};
use crate::config::{Problems, variables};
use crate::error::Failure;
use crate::text::name_from_title;

#[derive(clap::Args)]
#[command(after_help = super::help::INSTALL_EXAMPLES)]
pub(crate) struct InstallCommand {
    #[command(flatten)]
    target: TargetFile,
    /// The server's name [default: from the title]
    ///
    /// The client shows it, and puts it before the names of tools.
    #[arg(long, value_name = "NAME", help_heading = "Entry")]
    name: Option<String>,
    /// The address of a server that runs already
    ///
    /// It replaces the settings of a server that the client starts.
    #[arg(long, value_name = "URL", help_heading = "Entry")]
    url: Option<String>,
    /// The variable with the token for --url
    ///
    /// The client reads it; the file never holds the token.
    #[arg(
        long,
        value_name = "VARIABLE",
        requires = "url",
        help_heading = "Entry"
    )]
    url_token_env: Option<String>,
    /// Only print what can be pasted
    #[arg(long, conflicts_with_all = ["write", "link"], help_heading = "Entry")]
    print: bool,
    /// Print a link that installs with a click
    ///
    /// VS Code, Cursor and Goose have such links.
    #[arg(long, conflicts_with = "write", help_heading = "Entry")]
    link: bool,
    /// Show the clients found on this machine
    #[arg(long, help_heading = "Entry")]
    list: bool,
    #[command(flatten)]
    settings: CommandSettings,
    #[command(flatten)]
    server: ServerSettings,
    #[command(flatten)]
    config: ConfigFile,
}

#[derive(clap::Args)]
pub(crate) struct UninstallCommand {
    /// The client
    #[arg(long, value_name = "CLIENT", value_enum)]
    client: KnownClient,
    /// The server's name [default: that of the only entry of `install`]
    #[arg(long, value_name = "NAME", help_heading = "Entry")]
    name: Option<String>,
    #[command(flatten)]
    target: TargetFile,
}

pub(crate) async fn run(
    command: &InstallCommand,
    matches: &ArgMatches,
) -> Result<ExitCode, Failure> {
    if command.list {
        return list_clients(&command.target);
    }
    let Some(client) = command.settings.api.common.client else {
        return Err(Failure::setting(
            "--client says which client; --list shows those found on this machine".into(),
        ));
    };
    let folder = variables::current_folder().map_err(Failure::setting)?;
    let place = installable(client).and_then(|client| command.target.place(client, &folder));
    let place = place.map_err(Failure::setting)?;
    let client = place.client;
    let rules = flags::PathRules {
        scope: command.target.scope,
        place: &place,
        folder: &folder,
    };
    let (entry, remarks) = match &command.url {
        Some(url) => url_entry(command, client, url, matches)?,
        None => command_entry(command, &rules, matches).await?,
    };
    for remark in &remarks {
        output::print_remark(remark);
    }
    if command.link {
        output::print_result(&(entry.link(client).map_err(Failure::setting)? + "\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mode = mode(command.print, command.target.write);
    if mode == InstallMode::Print {
        return print_entry(&entry, &place, &command.target);
    }
    if let Some(why) = command.target.print_only(&place) {
        if mode == InstallMode::Write {
            return Err(Failure::setting(format!(
                "{why}; --print shows the entry to paste"
            )));
        }
        output::print_remark(&format!("note: {why}"));
        return print_entry(&entry, &place, &command.target);
    }
    let force = command.target.force;
    let change = EntryChange {
        name: &entry.name,
        entry: Some(&entry),
    };
    if command.target.is_state_file_of_claude_code(&place) {
        return edit::edit_by_claude(&place, change, mode, force);
    }
    command.target.require_home(&place)?;
    remark_alternative(&place);
    edit(&place, change, mode, force)
}

fn serve_command() -> clap::Command {
    let all = whole_command();
    all.find_subcommand("serve").cloned().unwrap_or_default()
}

fn url_entry(
    command: &InstallCommand,
    client: &InstallableClient,
    url: &str,
    matches: &ArgMatches,
) -> Result<(ClientEntry, Vec<String>), Failure> {
    let serve = serve_command();
    let mut given = flags::given_settings(&serve, matches);
    let of_server = given.find(|argument| argument.get_id() != "client");
    if let Some(flag) = of_server.and_then(clap::Arg::get_long) {
        return Err(Failure::setting(format!(
            "--url names a server that has its own settings; --{flag} belongs to that server"
        )));
    }
    if client.address.is_none() {
        return Err(Failure::setting(
            "Claude Desktop has no entry for an address in its file; add the server under Settings, Connectors, or install one that it starts, with --spec".into(),
        ));
    }
    let parsed = url::Url::parse(url)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let Some(parsed) = parsed else {
        return Err(Failure::setting(
            "--url must be the http(s) address of the MCP endpoint, as in https://mcp.example/mcp"
                .into(),
        ));
    };
    let secrets = flags::written_out_secrets(&ApiSettings::default(), &[url.to_owned()], &[]);
    Problems::from(secrets).check()?;
    let not_names = variables::not_variable_names(command.url_token_env.iter().map(String::as_str));
    Problems::from(not_names).check()?;
    let (token, mut remarks) = (command.url_token_env.clone(), Vec::new());
    let is_local = parsed
        .host_str()
        .is_some_and(|host| ["localhost", "127.0.0.1", "[::1]"].contains(&host));
    if parsed.scheme() == "http" && !is_local && token.is_some() {
        remarks.push(
            "warning: the token goes over http without encryption; use https beyond this machine"
                .into(),
        );
    }
    if token.is_some() && client.client == KnownClient::Zed {
        return Err(Failure::setting(
            "Zed's file takes no variable, and a token is never written into it; use a server that Zed starts, or OAuth".into(),
        ));
    }
    if token.is_some() && client.client != KnownClient::Vscode {
        remarks.extend(needs::dock_remark(client.client));
    }
    let name = entry_name(
        command.name.as_deref(),
        None,
        parsed.host_str().unwrap_or_default(),
        MAX_NAME_LEN,
    )?;
    let target = EntryTarget::Url {
        url: url.to_owned(),
        token,
    };
    Ok((ClientEntry { name, target }, remarks))
}

async fn command_entry(
    command: &InstallCommand,
    rules: &flags::PathRules<'_>,
    matches: &ArgMatches,
) -> Result<(ClientEntry, Vec<String>), Failure> {
    let client = rules.place.client;
    let serve = serve_command();
    let mut problems = Problems::default();
    let settings = flags::serve_arguments(&serve, matches, rules, &mut problems);
    problems.check()?;
    let needs = EntryNeeds::find(
        &command.settings,
        &command.server,
        &command.config,
        &settings,
    )
    .await?;
    let name = entry_name(
        command.name.as_deref(),
        needs.name.as_deref(),
        &needs.title,
        needs.max_server_name(client),
    )?;
    let mut remarks = needs.check(client, &name, command.target.force)?;
    let program = flags::program(rules.scope, OperatingSystem::OWN);
    let mut program = program.map_err(Failure::setting)?;
    if let Some(distribution) = &rules.place.distribution {
        program.through_wsl(distribution);
    }
    remarks.extend(program.warning.map(|warning| format!("warning: {warning}")));
    let of_shell = variables::settings_of_shell(&serve);
    if !of_shell.is_empty() {
        remarks.push(format!(
            "note: the settings in variables of this shell are not copied ({}); give those that the server needs as flags, or as keys of a file for --config",
            of_shell.join(", ")
        ));
    }
    let mut words = program.words;
    words.extend(settings);
    let variables = if entry::hands_over_variables(client.client) {
        needs.variables
    } else {
        Vec::new()
    };
    let target = EntryTarget::Command { words, variables };
    Ok((ClientEntry { name, target }, remarks))
}

/// The maximum length of a server's name, in bytes.
const MAX_NAME_LEN: usize = 32;

/// The name of the server: the one that was given, else that of `about` in the settings, else one
/// of at most `max_bytes` bytes that is made of a title.
fn entry_name(
    given: Option<&str>,
    about: Option<&str>,
    title: &str,
    max_bytes: usize,
) -> Result<String, Failure> {
    let max_bytes = max_bytes.clamp(1, MAX_NAME_LEN);
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let is_name = |name: &str, max_bytes: usize| {
        (1..=max_bytes).contains(&name.len()) && name.bytes().all(is_allowed)
    };
    if let Some(name) = given {
        if !is_name(name, MAX_NAME_LEN) {
            return Err(Failure::setting(format!(
                "--name takes letters, digits, `_` and `-`, at most {MAX_NAME_LEN} of them"
            )));
        }
        return Ok(name.to_owned());
    }
    match about {
        Some(name) if is_name(name, max_bytes) => Ok(name.to_owned()),
        other => Ok(name_from_title(other.unwrap_or(title), max_bytes)),
    }
}

fn print_entry(
    entry: &ClientEntry,
    place: &ClientPlace,
    target: &TargetFile,
) -> Result<ExitCode, Failure> {
    output::print_remark(&format!("put this into {}:", place.file.display()));
    remark_alternative(place);
    output::print_result(&entry.snippet(place.client))?;
    if target.is_state_file_of_claude_code(place) {
        output::print_remark(&format!(
            "or let Claude Code do it: {}",
            edit::command_line(&edit::add_arguments(
                &entry.name,
                &entry.value(place.client)
            ))
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Names the file that another build of the client reads.
fn remark_alternative(place: &ClientPlace) {
    if let Some(other) = &place.alternative {
        output::print_remark(&format!(
            "(the build that is not from the Store reads {})",
            other.display()
        ));
    }
}

pub(crate) fn uninstall(command: &UninstallCommand) -> Result<ExitCode, Failure> {
    let target = &command.target;
    let folder = variables::current_folder().map_err(Failure::setting)?;
    let place = installable(command.client).and_then(|client| target.place(client, &folder));
    let place = place.map_err(Failure::setting)?;
    let name = match &command.name {
        Some(name) => name.clone(),
        None => only_own_entry(&place)?,
    };
    let mode = mode(false, target.write);
    let change = EntryChange {
        name: &name,
        entry: None,
    };
    if target.is_state_file_of_claude_code(&place) {
        return edit::edit_by_claude(&place, change, mode, target.force);
    }
    if let Some(why) = target.print_only(&place) {
        return Err(Failure::setting(format!(
            "{why}; remove the entry `{name}` from {} yourself",
            place.file.display()
        )));
    }
    edit(&place, change, mode, target.force)
}

/// The name of the only entry of a client's file that `install` wrote.
fn only_own_entry(place: &ClientPlace) -> Result<String, Failure> {
    let shown = place.file.display();
    let mut names = ClientFile::read(place)?.own_names()?;
    match names.len() {
        0 => Err(Failure::setting(format!(
            "{shown} has no entry that install wrote; --name takes the name of another one"
        ))),
        1 => Ok(names.remove(0)),
        _ => Err(Failure::setting(format!(
            "{shown} has several entries that install wrote: {}; --name says which",
            names.join(", ")
        ))),
    }
}

/// A line for each client, with its file and its program.
fn list_clients(target: &TargetFile) -> Result<ExitCode, Failure> {
    let folder = variables::current_folder().map_err(Failure::setting)?;
    let mut text = String::new();
    for row in &CLIENTS {
        let program = row.program.and_then(variables::on_path);
        let line = match target.place(row, &folder) {
            Ok(place) if place.file.exists() => format!("found       {}", place.file.display()),
            Ok(place) if place.folder.is_dir() || program.is_some() => {
                format!("found       {} (not there yet)", place.file.display())
            }
            Ok(place) => format!("not found   {}", place.file.display()),
            Err(_) => "-           no configuration per project".to_owned(),
        };
        let program = program.map(|path| format!(", {}", path.display()));
        text.push_str(&format!(
            "{:<15} {line}{}\n",
            row.client.to_string(),
            program.unwrap_or_default()
        ));
    }
    output::print_result(&text)?;
    Ok(ExitCode::SUCCESS)
}
