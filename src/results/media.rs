//! Results that are more than text: images, sounds and documents that a result embeds, the parts of
//! multipart replies (RFC 2046 section 5.1), and replies that became files.

use bytes::Bytes;
use memchr::memmem;
use serde_json::json;

use super::tool_result::{MediaBlock, MediaBlockKind, ResultForm, ToolResult};
use super::{Reply, ReplyKind, essence_or_bytes, reply_kind, status_line};
use crate::call_error::CallError;
use crate::files::{DeliveredFile, ReceivedFile, URL_LIFETIME};
use crate::spec::media_type;
use crate::spec::media_type::content_type;

/// Blobs above this size are named, not embedded: base64 of more than this helps no model.
pub(super) const MAX_BLOB_BYTES: usize = 4 << 20;
/// Approximate number of bytes of the description of a file.
pub(super) const MAX_LINE_BYTES: usize = 150;

/// Returns the number of bytes that a result may have, of a setting in which 0 is no limit.
pub(super) fn room_of(max_bytes: usize) -> usize {
    if max_bytes == 0 {
        usize::MAX
    } else {
        max_bytes
    }
}

/// Returns the number of bytes for parts that are not text, of which half is for texts that need
/// it.
pub(super) fn media_room(room: usize, text_bytes: usize) -> usize {
    room - text_bytes.min(room / 2)
}

/// Returns the largest number of bytes that fit as base64.
pub(super) fn max_blob_bytes(media_room: usize) -> usize {
    MAX_BLOB_BYTES.min(media_room / 4 * 3)
}

/// Returns the number of bytes that a reply of this kind may have to be embedded in a result of
/// `max_bytes`; `None` if it is text.
pub(crate) fn max_embedded_bytes(kind: &ReplyKind, max_bytes: usize) -> Option<usize> {
    match kind {
        ReplyKind::Json | ReplyKind::Text | ReplyKind::Multipart => None,
        ReplyKind::Image => Some(MAX_BLOB_BYTES),
        ReplyKind::Audio | ReplyKind::Blob => {
            let room = media_room(room_of(max_bytes), MAX_LINE_BYTES);
            Some(max_blob_bytes(room))
        }
    }
}

/// The content of MCP that a part becomes; `None` for text.
pub(super) fn media_kind(part: &ReplyPart) -> Option<MediaBlockKind> {
    match reply_kind(&part.content_type, &part.body) {
        ReplyKind::Json | ReplyKind::Text | ReplyKind::Multipart => None,
        ReplyKind::Image => Some(MediaBlockKind::Image),
        ReplyKind::Audio => Some(MediaBlockKind::Audio),
        ReplyKind::Blob => Some(MediaBlockKind::Blob { uri: String::new() }),
    }
}

/// More parts than this are not taken apart.
const MAX_PARTS: usize = 256;

/// One part of a multipart body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReplyPart {
    /// The part's own media type; `text/plain` if it names none (RFC 2046 section 5.1).
    pub(crate) content_type: String,
    /// Disposition of the part; empty if it has none.
    pub(crate) disposition: String,
    /// The part's bytes.
    pub(crate) body: Bytes,
}

/// Returns the parts, or `None` if there is no boundary or no part.
pub(crate) fn parts(content_type: &str, body: &Bytes) -> Option<Vec<ReplyPart>> {
    let boundary = media_type::parameter(content_type, "boundary")?;
    let delimiter = format!("--{boundary}");
    // RFC 2046 section 5.1.1: a boundary has 1 to 70 characters.
    if !(3..=72).contains(&delimiter.len()) {
        return None;
    }
    let starts: Vec<usize> = delimiters(body, delimiter.as_bytes());
    let mut parts = Vec::new();
    for pair in starts.windows(2).take(MAX_PARTS) {
        let [start, end] = pair else { continue };
        let inner = body.get(start + delimiter.len()..*end)?;
        let inner = trim_line_end(skip_line_end(inner));
        let (head, content) = split_head(inner);
        let offset = content.as_ptr() as usize - body.as_ptr() as usize;
        parts.push(ReplyPart {
            content_type: header(head, "content-type").unwrap_or_else(|| "text/plain".into()),
            disposition: header(head, "content-disposition").unwrap_or_default(),
            body: body.slice(offset..offset + content.len()),
        });
    }
    (!parts.is_empty()).then_some(parts)
}

/// Returns the indexes at which delimiter lines begin.
fn delimiters(body: &[u8], delimiter: &[u8]) -> Vec<usize> {
    let at_line_start = |index: usize| index == 0 || body.get(index - 1) == Some(&b'\n');
    memmem::find_iter(body, delimiter)
        .filter(|index| at_line_start(*index))
        .take(MAX_PARTS + 1)
        .collect()
}

fn skip_line_end(bytes: &[u8]) -> &[u8] {
    let end = bytes
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or(bytes.len(), |at| at + 1);
    bytes.get(end..).unwrap_or_default()
}

fn trim_line_end(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}

fn split_head(part: &[u8]) -> (&[u8], &[u8]) {
    if let Some(content) = part
        .strip_prefix(b"\r\n")
        .or_else(|| part.strip_prefix(b"\n"))
    {
        return (&[], content);
    }
    for separator in [&b"\r\n\r\n"[..], &b"\n\n"[..]] {
        if let Some(at) = memmem::find(part, separator) {
            return (
                part.get(..at).unwrap_or_default(),
                part.get(at + separator.len()..).unwrap_or_default(),
            );
        }
    }
    (part, part.get(part.len()..).unwrap_or_default())
}

fn header(head: &[u8], wanted: &str) -> Option<String> {
    let head = String::from_utf8_lossy(head);
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(name, _)| name.trim().eq_ignore_ascii_case(wanted))?;
    Some(value.trim().to_owned())
}

/// The result of a reply in a file: its place, type, size and digest. Without `is_structured` it is
/// text, for a tool whose output schema describes something else.
///
/// # Errors
/// [`CallError::NotSaved`].
pub(super) fn file_result(
    response: &Reply,
    file: &ReceivedFile,
    is_structured: bool,
    form: ResultForm,
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
pub(super) fn missing_destination(response: &Reply, setting: &str, form: ResultForm) -> ToolResult {
    let text = format!(
        "{}: {}, {} bytes; left out, because a rule of this server gives it as a file, for which its operator sets {setting}.",
        status_line(response.status),
        essence_or_bytes(content_type(&response.headers)),
        response.body.len()
    );
    ToolResult::of_text(text, form)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_with_their_types() {
        let body = Bytes::from_static(
            b"preamble\r\n--x\r\nContent-Type: image/png\r\nX: y\r\n\r\n\x89PNG\r\n\r\n--x\r\n\r\nhello --x\r\n--x--\r\nend",
        );
        let found = parts("multipart/mixed; boundary=\"x\"", &body).unwrap();
        assert_eq!(
            found,
            [
                ReplyPart {
                    content_type: "image/png".into(),
                    disposition: String::new(),
                    body: Bytes::from_static(b"\x89PNG\r\n")
                },
                ReplyPart {
                    content_type: "text/plain".into(),
                    disposition: String::new(),
                    body: Bytes::from_static(b"hello --x")
                }
            ]
        );
    }

    #[test]
    fn what_has_no_boundary_is_not_taken_apart() {
        for (content_type, body) in [
            ("multipart/mixed", "--x\r\n\r\na\r\n--x--"),
            ("multipart/mixed; boundary=", "--"),
            ("multipart/mixed; boundary=x", "nothing"),
        ] {
            assert_eq!(
                parts(content_type, &Bytes::from_static(body.as_bytes())),
                None,
                "{content_type}"
            );
        }
    }
}
