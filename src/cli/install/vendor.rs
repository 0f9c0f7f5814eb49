//! The command line of Claude Code, which writes its own state file.

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use super::edit::{InstallMode, agrees};
use super::entry::ClientEntry;
use crate::annotate::KnownClient;
use crate::config::variables;
use crate::error::Failure;
use crate::text::shell_word;

/// The arguments that add an entry for all projects of the user.
pub(super) fn add_arguments(entry: &ClientEntry) -> Vec<String> {
    let value = entry.value(KnownClient::ClaudeCode).to_string();
    ["mcp", "add-json", "--scope", "user", &entry.name, &value]
        .map(str::to_owned)
        .to_vec()
}

/// The arguments that remove such an entry.
pub(super) fn remove_arguments(name: &str) -> Vec<String> {
    ["mcp", "remove", "--scope", "user", name]
        .map(str::to_owned)
        .to_vec()
}

/// The command for a person to run in a POSIX shell.
pub(super) fn command_line(arguments: &[String]) -> String {
    let words: Vec<String> = arguments.iter().map(|word| shell_word(word)).collect();
    format!("claude {}", words.join(" "))
}

/// Runs the command line of Claude Code. The exit code says whether the user declined.
///
/// # Errors
/// An error if there is no such program, or it fails.
pub(super) fn run_claude(arguments: &[String], mode: InstallMode) -> Result<ExitCode, Failure> {
    let shown = command_line(arguments);
    let Some(program) = claude() else {
        return Err(Failure::setting(format!(
            "Claude Code's state file is written by its own command, and there is no `claude` on PATH that can be started without a shell; where it is, run: {shown}"
        )));
    };
    if mode != InstallMode::Write && !agrees(&format!("Run {shown}?"))? {
        return Ok(ExitCode::FAILURE);
    }
    let status = Command::new(&program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(std::io::stderr())
        .status()
        .map_err(|error| {
            Failure::Io(format!("`{}` cannot be started", program.display()), error)
        })?;
    if status.success() {
        Ok(ExitCode::SUCCESS)
    } else {
        Err(Failure::setting(format!(
            "`{}` failed; correct what its output above reports, and try again",
            program.display()
        )))
    }
}

/// A batch file would need its arguments quoted for a shell, and is not started.
fn claude() -> Option<PathBuf> {
    let found = variables::on_path("claude")?;
    let extension = found
        .extension()
        .map(std::ffi::OsStr::to_ascii_lowercase)
        .unwrap_or_default();
    (found.is_absolute() && extension != "cmd" && extension != "bat").then_some(found)
}
