//! Secrets that two settings can name: one a variable, and one a file.

use crate::config::auth::references::{parse_file, parse_variable};
use crate::config::keys::path::ConfigPath;

/// Parses by `parse` the secret that one of two settings, with these names, names; `None` if neither is given.
/// Faults are pushed to `problems`, including the end of a sentence about the variable or the file
/// that `parse` returns.
pub(crate) fn resolve_secret<T>(
    [by_variable, by_file]: [&str; 2],
    variable: Option<&str>,
    file: Option<&ConfigPath>,
    parse: impl FnOnce(&str) -> Result<T, &'static str>,
    problems: &mut Vec<String>,
) -> Option<T> {
    let (setting, secret) = match (variable, file) {
        (None, None) => return None,
        (Some(_), Some(_)) => {
            problems.push(format!("{by_variable} and {by_file} exclude each other"));
            return None;
        }
        (Some(variable), None) => (by_variable, parse_variable(variable, parse)),
        (None, Some(path)) => (by_file, parse_file(path, parse)),
    };
    secret
        .map_err(|why| problems.push(format!("{setting}: {why}")))
        .ok()
}
