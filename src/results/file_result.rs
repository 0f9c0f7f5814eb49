//! The result of a reply that became a file, or should have.

use serde_json::json;

use super::tool_result::{MediaBlock, MediaBlockKind, TextForm, ToolResult};
use super::{Reply, essence_or_bytes, status_line};
use crate::call_error::CallError;
use crate::files::{DeliveredFile, ReceivedFile, URL_LIFETIME};
use crate::spec::media_type::content_type;

/// The result of a reply in a file: its place, type, size and digest. Without `is_structured` it is
/// text, for a tool whose output schema describes something else.
///
/// # Errors
/// [`CallError::NotSaved`].
pub(super) fn file_result(
    response: &Reply,
    file: &ReceivedFile,
    is_structured: bool,
    form: TextForm,
) -> Result<ToolResult, CallError> {
    let media_type = essence_or_bytes(content_type(&response.headers));
    let (described, link) = match file.deliver()? {
        DeliveredFile::Path(path) => (
            json!({
                "path": path.to_string_lossy(),
                "type": media_type,
                "bytes": file.length,
                "sha256": file.sha256,
            }),
            None,
        ),
        DeliveredFile::Url { url, name } => {
            let described = json!({
                "url": url.as_str(),
                "expires_in_seconds": URL_LIFETIME.as_secs(),
                "name": name,
                "type": media_type,
                "bytes": file.length,
                "sha256": file.sha256,
            });
            let link = MediaBlock {
                kind: MediaBlockKind::Link {
                    uri: url.into(),
                    name,
                    length: file.length,
                },
                media_type,
                data: String::new(),
            };
            (described, Some(link))
        }
    };
    let result = if is_structured {
        ToolResult::of_compact_json(json!({ "file": described }).to_string(), false)
    } else {
        ToolResult::of_text(described.to_string(), form)
    };
    Ok(result.with_media(link.into_iter().collect()))
}

/// The result of a reply that a rule makes a file, if the operator has not made this setting.
pub(super) fn missing_destination(response: &Reply, setting: &str, form: TextForm) -> ToolResult {
    let text = format!(
        "{}: {}, {} bytes; left out, because a rule of this server gives it as a file, for which its operator sets {setting}.",
        status_line(response.status),
        essence_or_bytes(content_type(&response.headers)),
        response.body.len()
    );
    ToolResult::of_text(text, form)
}
