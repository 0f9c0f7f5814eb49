//! The change of a client's file: shown, agreed to, written, and made again if another program wrote
//! the file meanwhile. Claude Code writes its own state file, by its command line.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use serde_json::Value;

use super::client_file::{ClientFile, is_own_entry};
use super::entry::ClientEntry;
use super::place::ClientPlace;
use crate::cli::output;
use crate::config::variables;
use crate::error::Failure;
use crate::text::shell_word;

/// The use that is made of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum InstallMode {
    Print,
    Ask,
    Write,
}

/// The mode that the flags choose; a question needs a terminal.
pub(super) fn mode(print: bool, write: bool) -> InstallMode {
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    match (print, write) {
        (_, true) => InstallMode::Write,
        (false, false) if is_terminal => InstallMode::Ask,
        _ => InstallMode::Print,
    }
}

/// A change of one entry of a client's file.
#[derive(Clone, Copy)]
pub(super) struct EntryChange<'e> {
    pub(super) name: &'e str,
    /// The entry that is installed; without one, that of the name is removed.
    pub(super) entry: Option<&'e ClientEntry>,
}

/// Reads the file, makes the change and writes it, at most twice. The exit code says whether the
/// user declined.
///
/// # Errors
/// The file cannot be read, edited or written; or the entry of that name is another program's, and
/// `force` is not set.
pub(super) fn edit(
    place: &ClientPlace,
    change: EntryChange<'_>,
    mode: InstallMode,
    force: bool,
) -> Result<ExitCode, Failure> {
    let shown_place = place.file.display();
    let mut is_agreed = mode == InstallMode::Write;
    for _ in 0..2 {
        let file = ClientFile::read(place)?;
        let Some(after) = edited(&file, change, force)? else {
            return Ok(ExitCode::SUCCESS);
        };
        if !is_agreed {
            let shown = changed_lines(file.before(), &after);
            if mode == InstallMode::Print {
                // Removed lines cannot be pasted, so that they do not belong on standard output.
                output::print_remark(&format!("{shown}nothing was changed; --write does it"));
                return Ok(ExitCode::SUCCESS);
            }
            if !agrees(&format!("{shown}Change {shown_place}?"))? {
                return Ok(ExitCode::FAILURE);
            }
            is_agreed = true;
        }
        if file.write(&after)? {
            let kept = if file.is_new() {
                String::new()
            } else {
                format!("; it is kept as it was in {}", file.backup().display())
            };
            output::print_remark(&format!("changed {shown_place}{kept}; restart the client"));
            return Ok(ExitCode::SUCCESS);
        }
    }
    Err(Failure::setting(format!(
        "{shown_place} is being written by another program; try again"
    )))
}

/// The text of the file after the change; `None` if there is nothing to change.
fn edited(
    file: &ClientFile<'_>,
    change: EntryChange<'_>,
    force: bool,
) -> Result<Option<String>, Failure> {
    let (client, name) = (file.place.client, change.name);
    let shown_place = file.place.file.display();
    let found = file.find(name)?;
    let meant = change.entry.map(|entry| entry.value(client));
    if found == meant {
        output::print_remark(&match meant {
            Some(_) => format!("`{name}` is already in {shown_place}"),
            None => format!("there is no entry `{name}` in {shown_place}"),
        });
        return Ok(None);
    }
    if !force && found.is_some_and(|found| !is_own_entry(client, name, &found)) {
        return Err(Failure::setting(match meant {
            Some(_) => format!(
                "{shown_place} has another entry `{name}`; --name takes another name, --force replaces it"
            ),
            None => format!(
                "the entry `{name}` in {shown_place} is not one that install writes; --force removes it"
            ),
        }));
    }
    file.set(name, change.entry).map(Some)
}

/// The lines that differ. The lines around them may hold secrets of other servers, and are not
/// shown.
fn changed_lines(before: &str, after: &str) -> String {
    let diff = similar::TextDiff::from_lines(before, after);
    let changed = diff
        .iter_all_changes()
        .filter(|change| change.tag() != similar::ChangeTag::Equal);
    changed
        .map(|change| {
            format!(
                "{}{}\n",
                change.tag(),
                change.value().trim_end_matches(['\r', '\n'])
            )
        })
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
    Ok(matches!(
        answer.trim().to_ascii_lowercase().as_str(),
        "y" | "yes"
    ))
}

/// The arguments that add an entry for all projects of the user.
pub(super) fn add_arguments(name: &str, value: &Value) -> Vec<String> {
    [
        "mcp",
        "add-json",
        "--scope",
        "user",
        name,
        &value.to_string(),
    ]
    .map(str::to_owned)
    .to_vec()
}

/// The arguments that remove such an entry.
fn remove_arguments(name: &str) -> Vec<String> {
    ["mcp", "remove", "--scope", "user", name]
        .map(str::to_owned)
        .to_vec()
}

/// The command for a person to run in a POSIX shell.
pub(super) fn command_line(arguments: &[String]) -> String {
    let words: Vec<String> = arguments.iter().map(|word| shell_word(word)).collect();
    format!("claude {}", words.join(" "))
}

/// Lets Claude Code make a change of its own state file, by its command line, which refuses a name
/// that is taken. The exit code says whether the user declined.
///
/// # Errors
/// As [`edit`]; and there is no such program, or it fails.
pub(super) fn edit_by_claude(
    place: &ClientPlace,
    change: EntryChange<'_>,
    mode: InstallMode,
    force: bool,
) -> Result<ExitCode, Failure> {
    let EntryChange { name, entry } = change;
    // A file that cannot be read here is left to Claude Code.
    let mut before = None;
    if let Ok(file) = ClientFile::read(place)
        && let Ok(found) = file.find(name)
    {
        if edited(&file, change, force)?.is_none() {
            return Ok(ExitCode::SUCCESS);
        }
        before = found;
    }
    let is_removed = before.is_some() || entry.is_none();
    let removal = is_removed.then(|| remove_arguments(name));
    let addition = entry.map(|entry| add_arguments(name, &entry.value(place.client)));
    let lines: Vec<String> = removal
        .iter()
        .chain(&addition)
        .map(|words| command_line(words))
        .collect();
    let shown = lines.join(" && ");
    let Some(program) = claude() else {
        return Err(Failure::setting(format!(
            "Claude Code changes its file by its own command, and there is no program `claude` on the PATH; run this where it is: {shown}"
        )));
    };
    if mode != InstallMode::Write && !agrees(&format!("Run {shown}?"))? {
        return Ok(ExitCode::FAILURE);
    }
    if let Some(arguments) = &removal {
        run(&program, arguments)?;
    }
    let Some(arguments) = &addition else {
        return Ok(ExitCode::SUCCESS);
    };
    let added = run(&program, arguments);
    if let (Err(_), Some(before)) = (&added, &before) {
        let is_back = run(&program, &add_arguments(name, before)).is_ok();
        let state = if is_back { "is back" } else { "is lost" };
        output::print_remark(&format!("the entry `{name}` that was there {state}"));
    }
    added.map(|()| ExitCode::SUCCESS)
}

fn run(program: &Path, arguments: &[String]) -> Result<(), Failure> {
    let status = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(std::io::stderr())
        .status()
        .map_err(|error| {
            Failure::Io(format!("`{}` cannot be started", program.display()), error)
        })?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::setting(format!(
        "`{}` failed; correct what its output above reports, and try again",
        program.display()
    )))
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
