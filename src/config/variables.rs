//! The variables of the environment: which count as set, and which are unknown.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, Command};

use crate::text;

const PREFIX: &str = "OPENAPI_MCP_";

/// Returns the value of a variable; `None` if it is not valid UTF-8, empty, or a placeholder that a
/// client did not fill.
pub(crate) fn read_variable(name: &str) -> Option<String> {
    std::env::var(name)
        .ok()
        .filter(|value| !counts_as_unset(value))
}

/// Returns true if colours and progress may be written to a stream: to a terminal that is not
/// `dumb`, unless `NO_COLOR` is set (<https://no-color.org>).
pub(crate) fn allows_decoration(is_terminal: bool) -> bool {
    is_terminal
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|value| value != "dumb")
}

/// Returns true if the user has a browser on this machine: not over SSH, and in a graphical
/// session.
pub(crate) fn has_browser() -> bool {
    let is_set = |names: &[&str]| {
        names
            .iter()
            .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
    };
    let is_graphical = cfg!(any(windows, target_os = "macos"))
        || is_set(&["DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"]);
    is_graphical && !is_set(&["SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"])
}

/// The program that runs, as it was started.
///
/// # Errors
/// A sentence if the system does not report it.
pub(crate) fn running_program() -> Result<PathBuf, String> {
    std::env::current_exe()
        .map_err(|error| format!("the system does not say where this program is: {error}"))
}

/// The program that runs, as the command line names it.
pub(crate) fn given_program() -> String {
    shown_arguments()
        .next()
        .unwrap_or_else(|| "openapi-mcp".into())
}

/// The current folder.
///
/// # Errors
/// A sentence if there is none.
pub(crate) fn current_folder() -> Result<PathBuf, String> {
    std::env::current_dir().map_err(|error| format!("the current folder cannot be read: {error}"))
}

/// The folder of temporary files.
pub(crate) fn temporary_folder() -> PathBuf {
    std::env::temp_dir()
}

/// The first file of that name in an absolute folder of PATH, as PATH has it.
pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let suffixes: &[&str] = if cfg!(windows) {
        &[".exe", ".cmd", ".bat"]
    } else {
        &[""]
    };
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    let mut files = folders.flat_map(|folder| {
        suffixes
            .iter()
            .map(move |suffix| folder.join(format!("{program}{suffix}")))
    });
    files.find(|file| file.is_file())
}

/// The command line without what only an entry or a bundle is made of: their settings come from
/// flags and files alone, because the surroundings of the one who installs are not those of the
/// server.
fn without_variables(command: Command) -> Command {
    command.mut_args(|argument| argument.env(clap::builder::Resettable::Reset))
}

/// Returns true if a variable with this value counts as one that is not set. Compose files and unit
/// files leave variables empty. Several clients pass the placeholder itself if its variable is not
/// set or a field was left blank.
pub(crate) fn counts_as_unset(value: &str) -> bool {
    value.is_empty() || is_placeholder(value)
}

/// Returns true if a text is exactly one placeholder of a client's configuration: `$X`, `${X}`,
/// `${X:-default}`, `${env:X}`, `{env:X}`, `${input:x}`, `${user_config.x}` or `${{ secrets.X }}`.
pub(crate) fn is_placeholder(text: &str) -> bool {
    let text = text.trim();
    let is_key = |name: &str| {
        let name = name.trim();
        let is_allowed =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        !name.is_empty() && name.bytes().all(is_allowed)
    };
    let is_name = |name: &str| {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        name.bytes().all(is_allowed) && name.starts_with(|first: char| !first.is_ascii_digit())
    };
    // Names of questions and of the environment are free text.
    let is_free = |name: &str| !name.trim().is_empty() && !name.contains(['{', '}']);
    let within = |start: &str, end: &str| {
        text.strip_prefix(start)
            .and_then(|rest| rest.strip_suffix(end))
    };
    if let Some(name) = within("${{", "}}") {
        return is_key(name);
    }
    if let Some(name) = within("{env:", "}") {
        return is_free(name);
    }
    let Some(inner) = within("${", "}") else {
        return text.strip_prefix('$').is_some_and(is_name);
    };
    if let Some(name) = inner.strip_prefix("env:").or(inner.strip_prefix("input:")) {
        return is_free(name);
    }
    match inner.split_once(":-") {
        Some((name, default)) => is_name(name) && !default.contains(['{', '}']),
        None => is_key(inner),
    }
}

/// A sentence for each setting whose variable holds a placeholder that a client did not fill.
pub(crate) fn unfilled_variables() -> Vec<String> {
    let unfilled = own_variables(|_, value| is_placeholder(value)).into_iter();
    unfilled
        .map(|name| {
            format!("the variable `{name}` holds a placeholder that the client did not fill, and is taken as unset; set the variable or field behind it")
        })
        .collect()
}

/// The names of the variables with our prefix that are meant. The value of one that is not valid
/// UTF-8 is empty.
fn own_variables(is_meant: impl Fn(&str, &str) -> bool) -> BTreeSet<String> {
    let text = |(name, value): (OsString, OsString)| {
        let value = value.into_string().unwrap_or_default();
        let name = name.into_string().ok()?;
        (name.starts_with(PREFIX) && is_meant(&name, &value)).then_some(name)
    };
    std::env::vars_os().filter_map(text).collect()
}

/// The command line, on which a variable that counts as not set gives no value.
pub(crate) fn without_unset(command: Command) -> Command {
    // Commands have hundreds of arguments, and most environments have nothing to take out of them.
    let has_unset =
        std::env::vars_os().any(|(_, value)| value.to_str().is_some_and(counts_as_unset));
    command.mut_subcommands(|command| match command.get_name() {
        "install" | "uninstall" | "bundle" => without_variables(command),
        _ if has_unset => command.mut_args(without_unset_variable),
        _ => command,
    })
}

fn without_unset_variable(argument: Arg) -> Arg {
    let is_unset = argument.get_env().is_some_and(|name| {
        std::env::var_os(name).is_some_and(|value| value.to_str().is_some_and(counts_as_unset))
    });
    if is_unset {
        argument.env(clap::builder::Resettable::Reset)
    } else {
        argument
    }
}

/// Returns true if a text can be the name of a variable, and not its value.
pub(crate) fn is_variable_name(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=64).contains(&text.len()) && text.bytes().all(is_allowed)
}

/// A sentence for each text that is given as the name of a variable and is none. It is not
/// repeated, because it may be a secret.
pub(crate) fn not_variable_names<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let wrong = names.filter(|name| !is_variable_name(name)).count();
    let sentence = "a setting that takes the name of a variable got what looks like a value, which would be written into the file; \
         give the name of a variable (upper-case letters, digits and `_`), and set that variable to the value";
    if wrong == 0 {
        Vec::new()
    } else {
        vec![sentence.to_owned()]
    }
}

/// Returns the name of a variable for an error. Users sometimes give the value (`$TOKEN`) in place
/// of the name; a value is not repeated.
pub(crate) fn called(name: &str) -> String {
    if is_variable_name(name) {
        format!("the variable `{name}`")
    } else {
        "the variable (what is given looks like a value; give the variable's name)".into()
    }
}

/// The command line of this process.
pub(crate) fn command_line() -> std::env::ArgsOs {
    std::env::args_os()
}

/// The words of the command line, of which what is not valid UTF-8 is replaced.
fn shown_arguments() -> impl Iterator<Item = String> {
    std::env::args_os().map(|argument| argument.to_string_lossy().into_owned())
}

/// The value of a flag of this process's command line: behind `=`, or the next argument.
pub(crate) fn given_value(flag: &str) -> Option<String> {
    let mut arguments = shown_arguments();
    let given = arguments.find(|argument| {
        argument
            .strip_prefix(flag)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    })?;
    match given.split_once('=') {
        Some((_, value)) => Some(value.to_owned()),
        None => arguments.next(),
    }
}

/// The flag before an argument of this process's command line.
pub(crate) fn flag_before(value: &str) -> Option<String> {
    let arguments: Vec<String> = shown_arguments().collect();
    let place = arguments.iter().position(|argument| argument == value)?;
    let before = arguments.get(place.checked_sub(1)?)?;
    before.starts_with("--").then(|| before.clone())
}

/// The command of this process's command line.
pub(crate) fn given_command() -> Option<String> {
    shown_arguments().nth(1)
}

/// The settings that variables of this shell hold and that an entry does not carry: names without
/// values. Credentials are not among them, because their names go into the entry.
pub(crate) fn settings_of_shell(command: &Command) -> Vec<String> {
    let mut known = BTreeSet::new();
    gather_variables(command, &mut known);
    let is_set =
        |name: &String| read_variable(name).is_some() && !name.starts_with("OPENAPI_MCP_AUTH_");
    known.into_iter().filter(is_set).collect()
}

/// A sentence for each variable that looks like a setting and is not one.
pub(crate) fn unknown_variables(command: impl FnOnce() -> Command) -> Vec<String> {
    let set = own_variables(|name, value| !is_of_others(name, value));
    if set.is_empty() {
        return Vec::new();
    }
    let mut known = BTreeSet::new();
    gather_variables(&command(), &mut known);
    set.difference(&known)
        .map(|name| {
            let nearest = |least| text::nearest(name, known.iter().map(String::as_str), least);
            let is_credential = CREDENTIAL_WORDS.iter().any(|word| name.contains(word));
            // A misspelled setting is very like one; less likeness is chance if the name says what
            // it is for.
            let hint = match nearest(if is_credential { 0.97 } else { 0.9 }) {
                Some(nearest) => format!("; did you mean `{nearest}`?"),
                None if is_credential => {
                    "; a credential of the API is in `OPENAPI_MCP_AUTH_` and the name of its security scheme, which `openapi-mcp check` shows".to_owned()
                }
                None => String::new(),
            };
            format!("the variable `{name}` is not a setting and is ignored{hint}")
        })
        .collect()
}

/// Words in names of variables that hold credentials.
const CREDENTIAL_WORDS: [&str; 7] = [
    "API_KEY", "APIKEY", "AUTH", "BEARER", "PASSWORD", "SECRET", "TOKEN",
];

/// Credentials have names of the operator's choice. Kubernetes names the ports of a Service
/// `openapi-mcp` in this way.
fn is_of_others(name: &str, value: &str) -> bool {
    let rest = name.strip_prefix(PREFIX).unwrap_or_default();
    rest.starts_with("AUTH_")
        || rest.starts_with("SERVICE_")
        || (rest.starts_with("PORT") && (rest.starts_with("PORT_") || value.contains("://")))
}

fn gather_variables(command: &Command, known: &mut BTreeSet<String>) {
    let names = command
        .get_arguments()
        .filter_map(|argument| argument.get_env()?.to_str());
    known.extend(names.map(str::to_owned));
    command
        .get_subcommands()
        .for_each(|command| gather_variables(command, known));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placeholder_is_the_whole_value_and_nothing_else() {
        for (text, expected) in [
            ("${X}", true),
            ("${env:PETS_KEY}", true),
            ("{env:PETS_KEY}", true),
            ("${input:pets-apiKey}", true),
            ("${user_config.api_key}", true),
            ("${{ secrets.PETS }}", true),
            ("  ${X}\n", true),
            ("$PETS_KEY", true),
            ("$X", true),
            ("${PETS_KEY:-}", true),
            ("${PETS_KEY:-none yet}", true),
            ("${input:API key of pets}", true),
            ("${env:MY KEY}", true),
            ("{env:MY KEY}", true),
            ("${}", false),
            ("${X", false),
            ("x${X}", false),
            ("Bearer ${X}", false),
            ("${X}${Y}", false),
            ("$", false),
            ("$1", false),
            ("$X$Y", false),
            ("$X-1", false),
            ("a$X", false),
            ("${a b:-x}", false),
            ("${:-x}", false),
            ("${input:}", false),
            ("${input:a}${input:b}", false),
            ("{X}", false),
            ("${a b}", false),
            ("${env:}", false),
        ] {
            assert_eq!(is_placeholder(text), expected, "{text:?}");
        }
    }
}
