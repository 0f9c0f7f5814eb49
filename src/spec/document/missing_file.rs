//! The message for a file that does not exist.

use std::io::{Error, ErrorKind};
use std::path::Path;

use crate::text::one_line;

/// Adds to the error of a missing file the URL that it may be, or else the path that was looked for.
pub(super) fn explain_missing(path: &Path, error: Error) -> Error {
    if error.kind() != ErrorKind::NotFound {
        return error;
    }
    let hint = if let Some(meant) = address(path) {
        format!("did you mean `{meant}`?")
    } else if let Ok(whole) = std::path::absolute(path)
        && path.is_relative()
    {
        // A client often starts its servers in another folder than its user is in.
        let whole = one_line(&whole.display().to_string());
        format!("it was looked for at `{whole}`")
    } else {
        return error;
    };
    Error::new(ErrorKind::NotFound, format!("{error}; {hint}"))
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
