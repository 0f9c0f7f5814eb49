//! The result of a reply that became a file, or should have.

use serde_json::json;

use super::tool_result::{TextForm, ToolResult};
use super::{Response, content_type, essence_or_bytes, status_line};
use crate::proxy::error::CallError;
use crate::proxy::files::{DeliveredFile, ReceivedFile};

/// The result of a reply in a file: its place, type, size and digest. Without `is_structured` it is text, for a tool whose output schema
/// describes something else.
///
/// # Errors
/// [`CallError::NotSaved`].
pub(super) fn file_result(response: &Response, file: &ReceivedFile, is_structured: bool, form: TextForm) -> Result<ToolResult, CallError> {
    let DeliveredFile::Path(path) = file.deliver()?;
    let described = json!({
        "path": path.to_string_lossy(),
        "type": essence_or_bytes(content_type(&response.headers)),
        "bytes": file.length,
        "sha256": file.sha256,
    });
    Ok(if is_structured {
        ToolResult::of_compact_json(json!({ "file": described }).to_string(), false)
    } else {
        ToolResult::of_text(described.to_string(), form)
    })
}

/// The result of a reply that a rule makes a file, if the operator has not made this setting.
pub(super) fn missing_destination(response: &Response, setting: &str, form: TextForm) -> ToolResult {
    let text = format!(
        "{}: {}, {} bytes; left out, because a rule of this server gives it as a file, for which its operator sets {setting} DIR.",
        status_line(response.status),
        essence_or_bytes(content_type(&response.headers)),
        response.body.len()
    );
    ToolResult::of_text(text, form)
}
