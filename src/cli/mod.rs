//! The command line: its commands, and the exit codes of the program.
//!
//! # Adding a command
//!
//! - A file in `cli/`; in `cli/mod.rs` its module, a variant of `Command` and an arm of
//!   `run_command`.
//! - Its examples in `cli/help.rs`.

mod call;
mod check;
mod diff;
mod each_api;
mod end_signals;
mod filter;
mod health;
mod help;
mod install;
mod listing;
mod load;
mod log;
mod login;
mod manual;
mod observability;
mod operating_system;
mod output;
mod package;
mod serve;
mod settings;
mod start;
mod tools;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::config::settings::{
    CommandSettings, ServerSettings, is_key_alone, keys_given_elsewhere, with_variables,
};
use crate::config::{ConfigFile, Problems, variables};
use crate::error::Failure;

/// Turns an OpenAPI document into an MCP server: one annotated tool per operation, forwarded to the
/// real API.
#[derive(Parser)]
#[command(
    name = "openapi-mcp",
    version,
    about,
    max_term_width = 120,
    after_help = "Exit codes: 0 success, 1 a call or something else failed, 2 invalid settings, 3 a document that cannot be served."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the tools over stdio or streamable HTTP
    Serve(Box<ServeCommand>),
    /// Show the tools that would be served
    Tools(tools::ToolsCommand),
    /// Report what a document lacks, loses and costs as tools
    Check(check::CheckCommand),
    /// Make one call, as a client would, and show the result
    Call(call::CallCommand),
    /// Sign in once, so that calls from this machine are made as you
    Login(Box<login::LoginCommand>),
    /// End a login: revoke its refresh token, and remove it
    Logout(Box<login::LogoutCommand>),
    /// Write an entry for an MCP client: into its file, as text to paste, or as a link
    ///
    /// The flags of the entry come first. The most needed settings of `openapi-mcp serve`
    /// follow. All others can be given as well; `openapi-mcp serve --help` lists them.
    Install(Box<install::InstallCommand>),
    /// Remove the entry that `install` wrote
    Uninstall(install::UninstallCommand),
    /// Make a bundle (MCPB) that a host installs with a click
    Bundle(Box<package::bundle::BundleCommand>),
    /// Compare the tools of two versions of a document; exit 1 if a client would break
    Diff(Box<diff::DiffCommand>),
    /// Print the completions of a shell
    Completions(manual::CompletionsCommand),
    /// Print a manual page: that of the program, or of a command
    Man(manual::manual_page::ManCommand),
    /// Show the tools of an example API, and one call; nothing needs to be set up
    Demo,
    /// Run one filter over one reply, within limits
    #[command(hide = true)]
    Filter,
    /// Ask a running HTTP server whether it is ready (for container health checks)
    Health(health::HealthCommand),
}

#[derive(clap::Args)]
#[command(after_help = help::SERVE_EXAMPLES)]
struct ServeCommand {
    #[command(flatten)]
    settings: CommandSettings,
    #[command(flatten)]
    server: ServerSettings,
    #[command(flatten)]
    config: ConfigFile,
}

/// Runs the command line and returns the exit code, after errors were written to standard error.
#[must_use]
pub fn run() -> ExitCode {
    let (text, code) = match run_command() {
        Ok(code) => (String::new(), code),
        Err(failure) => (failure.report(), failure.code()),
    };
    log::write_and_wait(&text);
    code
}

/// The command line with the variables of its settings.
fn whole_command() -> clap::Command {
    Cli::command().mut_subcommands(with_variables)
}

/// The same of the command that was given alone: a command has a hundred settings.
fn given_command() -> clap::Command {
    let command = Cli::command();
    match variables::given_command() {
        Some(name) if command.find_subcommand(&name).is_some() => {
            command.mut_subcommand(name, with_variables)
        }
        _ => command,
    }
}

/// The command line without the commands that nobody calls by hand.
fn visible_command() -> clap::Command {
    let all = whole_command();
    let visible = all
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .map(without_keys);
    clap::Command::new("openapi-mcp")
        .version(env!("CARGO_PKG_VERSION"))
        .about(all.get_about().cloned().unwrap_or_default())
        .subcommands(visible)
}

/// A command without the flags that are refused, because their settings are keys alone.
fn without_keys(command: &clap::Command) -> clap::Command {
    let arguments = command
        .get_arguments()
        .filter(|argument| !is_key_alone(argument));
    let about = command.get_about().cloned().unwrap_or_default();
    clap::Command::new(command.get_name().to_owned())
        .long_about(command.get_long_about().cloned().unwrap_or(about.clone()))
        .about(about)
        .after_help(command.get_after_help().cloned().unwrap_or_default())
        .args(arguments)
}

fn run_command() -> Result<ExitCode, Failure> {
    let mut command = variables::without_unset(given_command());
    let parsed = command.try_get_matches_from_mut(variables::command_line());
    if let Ok(matches) = &parsed {
        let problems = keys_given_elsewhere(&command, matches);
        Problems::from(problems).check()?;
    }
    let (cli, matches) =
        match parsed.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches))) {
            Ok(parsed) => parsed,
            Err(error) => {
                let whole = whole_command();
                return output::print_usage(&match error.kind() {
                    // The help is arranged only if it is asked for.
                    ErrorKind::DisplayHelp => help::arranged_help(&whole).unwrap_or(error),
                    _ => help::explain_usage(error, &whole),
                });
            }
        };
    match cli.command {
        // The limits of a filter leave no room for a runtime.
        Command::Filter => filter::run(),
        Command::Completions(command) => manual::print_completions(&command),
        Command::Man(command) => manual::manual_page::print_manual(&command),
        Command::Uninstall(command) => install::uninstall(&command),
        Command::Serve(command) => on_runtime(serve::run(&command)),
        Command::Tools(command) => on_runtime(tools::run(&command)),
        Command::Check(command) => on_runtime(check::run(&command)),
        Command::Call(command) => on_runtime(call::run(&command)),
        Command::Login(command) => on_runtime(login::run(&command)),
        Command::Logout(command) => on_runtime(login::log_out(&command)),
        Command::Health(command) => on_runtime(health::run(&command)),
        Command::Demo => on_runtime(manual::demo::run()),
        Command::Install(command) => {
            let of_command = matches
                .subcommand()
                .map(|(_, matches)| matches.clone())
                .unwrap_or_default();
            on_runtime(install::run(&command, &of_command))
        }
        Command::Bundle(command) => on_runtime(package::bundle::run(&command)),
        Command::Diff(command) => on_runtime(diff::run(&command)),
    }
}

/// Runs a command that waits for something.
fn on_runtime(
    command: impl Future<Output = Result<ExitCode, Failure>>,
) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime =
        runtime.map_err(|error| Failure::Io("the runtime cannot be started".into(), error))?;
    let result = runtime.block_on(async {
        #[cfg(unix)]
        catch_file_limit()
            .map_err(|error| Failure::Io("signals cannot be watched".into(), error))?;
        command.await
    });
    // Reading standard input happens on a thread that cannot be interrupted; do not wait for it.
    runtime.shutdown_background();
    result
}

/// Makes a write beyond the limit on the size of a file (`ulimit -f`) an error: SIGXFSZ would end
/// the process. The handler stays for good.
#[cfg(unix)]
fn catch_file_limit() -> std::io::Result<()> {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::from_raw(libc::SIGXFSZ)).map(drop)
}
