//! The message for a file that does not exist.

use std::io::{Error, ErrorKind};
use std::path::Path;

use crate::text::{nearest, one_line};

/// More files of a folder are not compared.
const MAX_COMPARED_FILES: usize = 1000;
/// Smallest similarity of two names at which one is suggested for the other.
const MIN_LIKENESS: f64 = 0.85;

/// Adds to the error of a missing file the most similar name beside it, or else the path that was
/// looked for.
pub(super) fn explain_missing(path: &Path, error: Error) -> Error {
    if error.kind() != ErrorKind::NotFound {
        return error;
    }
    let hint = address(path)
        .or_else(|| neighbour(path))
        .map(|meant| format!("did you mean `{meant}`?"))
        .or_else(|| whole_path(path).filter(|_| path.is_relative()));
    match hint {
        Some(hint) => Error::new(ErrorKind::NotFound, format!("{error}; {hint}")),
        None => error,
    }
}

/// The URL that is meant by `localhost:8000/openapi.json`.
fn address(path: &Path) -> Option<String> {
    let text = path.to_str()?;
    let (host, port) = text.split('/').next()?.rsplit_once(':')?;
    let is_host = !host.is_empty()
        && host
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'));
    (is_host && port.parse::<u16>().is_ok()).then(|| one_line(&format!("http://{text}")))
}

/// The path of the file in the same folder whose name is most like the missing one's.
fn neighbour(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let files = std::fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?;
    let files = files
        .filter_map(Result::ok)
        .filter(|file| file.path().is_file());
    let names: Vec<String> = files
        .take(MAX_COMPARED_FILES)
        .filter_map(|file| file.file_name().into_string().ok())
        .collect();
    let meant = nearest(name, names.iter().map(String::as_str), MIN_LIKENESS)?;
    Some(one_line(&path.with_file_name(meant).display().to_string()))
}

/// The whole path: a client often starts its servers in another folder than its user is in.
fn whole_path(path: &Path) -> Option<String> {
    let whole = std::path::absolute(path).ok()?;
    Some(format!(
        "it was looked for at `{}`",
        one_line(&whole.display().to_string())
    ))
}
