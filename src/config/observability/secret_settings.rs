//! Secrets that two settings can name: one a variable, and one a file.

use std::path::PathBuf;

use crate::config::auth::references::{parse_file, parse_variable};
use crate::config::problems::Problems;

/// Parses by `parse` the secret that one of two settings, with these names, names; `None` if neither is given.
/// Faults are pushed to `problems`, including the end of a sentence about the variable or the file
/// that `parse` returns.
pub(crate) fn resolve_secret<T>(
    [by_variable, by_file]: [&str; 2],
    variable: Option<&str>,
    file: Option<&PathBuf>,
    parse: impl FnOnce(&str) -> Result<T, &'static str>,
    problems: &mut Problems,
) -> Option<T> {
    let (setting, secret) = match (variable, file) {
        // Both exclude each other, which is reported.
        (None, None) | (Some(_), Some(_)) => return None,
        (Some(variable), None) => (by_variable, parse_variable(variable, parse)),
        (None, Some(path)) => (by_file, parse_file(path, parse)),
    };
    problems.ok(setting, secret)
}
