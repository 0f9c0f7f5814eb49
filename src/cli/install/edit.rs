//! The change of a client's file: shown, agreed to, written, and once more where somebody else wrote meanwhile.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use super::client_file::{ClientFile, FileChange, WriteError};
use super::place::ClientPlace;
use crate::cli::output;
use crate::config::settings::ClientName;
use crate::error::Failure;

/// What comes of a change: the exit code says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InstallOutcome {
    Done,
    Declined,
}

impl From<InstallOutcome> for ExitCode {
    fn from(outcome: InstallOutcome) -> Self {
        match outcome {
            InstallOutcome::Done => Self::SUCCESS,
            InstallOutcome::Declined => Self::FAILURE,
        }
    }
}

/// What happens with the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InstallMode {
    Print,
    Ask,
    Write,
}

/// What the flags ask for; a question needs a terminal.
pub(super) fn mode(print: bool, write: bool) -> InstallMode {
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    match (print, write) {
        (_, true) => InstallMode::Write,
        (false, false) if is_terminal => InstallMode::Ask,
        _ => InstallMode::Print,
    }
}

/// Reads the file, makes the change and writes it; once more where somebody else wrote the file meanwhile.
pub(super) fn edit(
    place: &ClientPlace,
    client: ClientName,
    mode: InstallMode,
    name: &str,
    is_added: bool,
    change: impl Fn(&ClientFile<'_>) -> Result<Option<FileChange>, Failure>,
) -> Result<InstallOutcome, Failure> {
    let mut is_agreed = mode == InstallMode::Write;
    for _ in 0..2 {
        let file = ClientFile::read(place, client).map_err(Failure::setting)?;
        let Some(change) = change(&file)? else {
            return Ok(InstallOutcome::Done);
        };
        if !is_agreed {
            let after = change.after.as_deref().unwrap_or_default();
            let shown = changed_lines(file.before(), after);
            if mode == InstallMode::Print {
                // What goes cannot be pasted, so that it does not belong on standard output.
                output::print_remark(&format!("{shown}nothing was changed; --write does it"));
                return Ok(InstallOutcome::Done);
            }
            if !agrees(&format!("{shown}Change {}?", place.file.display()))? {
                return Ok(InstallOutcome::Declined);
            }
            is_agreed = true;
        }
        match file.write(&change, name, is_added) {
            Ok(()) => {
                let kept = file.backup(name);
                let kept = if is_added && kept.exists() {
                    format!("; it is kept as it was in {}", kept.display())
                } else {
                    String::new()
                };
                output::print_remark(&format!("changed {}{kept}; restart the client", place.file.display()));
                return Ok(InstallOutcome::Done);
            }
            Err(WriteError::Changed) => {}
            Err(WriteError::Failed(why)) => return Err(Failure::setting(why)),
        }
    }
    Err(Failure::setting(format!(
        "{} is being written by another program; try again",
        place.file.display()
    )))
}

/// The lines that differ. The lines around them may hold secrets of other servers, and are not shown.
fn changed_lines(before: &str, after: &str) -> String {
    let diff = similar::TextDiff::from_lines(before, after);
    let changed = diff.iter_all_changes().filter(|change| change.tag() != similar::ChangeTag::Equal);
    changed
        .map(|change| format!("{}{}\n", change.tag(), change.value().trim_end_matches(['\r', '\n'])))
        .collect()
}

/// Asks on the terminal; anything but yes is no.
pub(super) fn agrees(question: &str) -> Result<bool, Failure> {
    let failed = |error| Failure::Io("the terminal cannot be read".into(), error);
    let mut terminal = std::io::stderr().lock();
    write!(terminal, "{question} [y/N] ")
        .and_then(|()| terminal.flush())
        .map_err(failed)?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(failed)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
