//! Secrets by reference: each is in a variable or in a file, which one of two settings may name.

use std::path::{Path, PathBuf};

use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use crate::config::problems::Problems;
use crate::config::variables::{called, is_placeholder, read_variable};

/// Source of a secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Reference {
    /// An environment variable
    Env(String),
    /// A file, read at start
    File(PathBuf),
}

/// The secret that a reference leads to.
pub(crate) fn read_secret(reference: &Reference) -> Result<SecretString, String> {
    match reference {
        Reference::Env(name) => parse_variable(name, parse_secret),
        Reference::File(path) => parse_file(path, parse_secret),
    }
}

/// Parses the text of a file with secrets by `parse`; its errors are the end of a sentence about
/// the file.
pub(crate) fn parse_file<T>(
    path: &Path,
    parse: impl FnOnce(&str) -> Result<T, &'static str>,
) -> Result<T, String> {
    let shown = path.display();
    let text =
        text_file(path).map_err(|error| format!("the file `{shown}` cannot be read: {error}"))?;
    parse(&text).map_err(|why| format!("the file `{shown}` {why}"))
}

/// Parses the value of a variable by `parse`; its errors are the end of a sentence about the
/// variable.
pub(crate) fn parse_variable<T>(
    name: &str,
    parse: impl FnOnce(&str) -> Result<T, &'static str>,
) -> Result<T, String> {
    let value = read_variable(name).ok_or_else(|| describe_unset(name))?;
    parse(&value).map_err(|why| format!("the variable `{name}` {why}"))
}

/// Describes why a variable that a setting names has no value.
pub(crate) fn describe_unset(name: &str) -> String {
    match std::env::var(name) {
        Ok(value) if is_placeholder(&value) => {
            format!("the variable `{name}` holds a placeholder that the client did not fill")
        }
        Ok(value) if value.is_empty() => {
            format!("the variable `{name}` is empty")
        }
        Err(std::env::VarError::NotUnicode(_)) => format!("{} is not valid UTF-8", called(name)),
        _ => format!("{} is not set", called(name)),
    }
}

/// A secret is a line: more than this is another file.
const MAX_FILE_BYTES: u64 = 64 << 10;

/// The text of a file that holds secrets.
fn text_file(path: &Path) -> std::io::Result<String> {
    use std::io::{Error, Read as _};
    let file = std::fs::File::open(path)?;
    let mut text = String::new();
    if file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)? as u64 > MAX_FILE_BYTES {
        return Err(Error::other("it is larger than any credential"));
    }
    Ok(text)
}

/// Files and here-documents end with a line break that is not part of the secret.
pub(crate) fn parse_secret(value: &str) -> Result<SecretString, &'static str> {
    let trimmed = value.trim_end_matches(['\r', '\n']);
    if trimmed.trim().is_empty() {
        return Err("is empty");
    }
    if trimmed.chars().any(char::is_control) {
        return Err(
            "contains a line break or another control character, which a credential cannot have",
        );
    }
    Ok(SecretString::from(trimmed.to_owned()))
}

/// Parses by `parse` the secret that one of two settings, with these names, names; `None` if neither is given.
/// Faults are pushed to `problems`, including the end of a sentence about the variable or the file
/// that `parse` returns.
pub(crate) fn resolve_secret<T>(
    [by_variable, by_file]: [&str; 2],
    variable: Option<&str>,
    file: Option<&Path>,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, Reference) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret").display().to_string();
        std::fs::write(&path, text).unwrap();
        (directory, Reference::File(path.into()))
    }

    #[test]
    fn a_file_gives_its_line_and_nothing_else() {
        for (text, expected) in [
            ("s3cret\n", Some("s3cret")),
            ("s3cret\r\n\n", Some("s3cret")),
            (" a b ", Some(" a b ")),
            ("\n", None),
            ("a\nb", None),
            ("a\0b", None),
        ] {
            let (_directory, reference) = file(text);
            let read = read_secret(&reference);
            assert_eq!(
                read.as_ref().ok().map(secrecy::ExposeSecret::expose_secret),
                expected,
                "{text:?}"
            );
            assert!(!format!("{read:?}").contains("s3cret"), "{read:?}");
        }
        assert!(read_secret(&Reference::File("/dev/zero".to_owned().into())).is_err());
    }
}
