//! The images, sounds and documents that a result embeds: their kinds, and the room for them.

use super::multipart::ReplyPart;
use super::tool_result::MediaBlockKind;
use super::{ReplyKind, reply_kind};

/// Blobs above this size are named, not embedded: base64 of more than this helps no model.
pub(super) const MAX_BLOB_BYTES: usize = 4 << 20;
/// Approximate number of bytes of the description of a file.
pub(super) const MAX_LINE_BYTES: usize = 150;

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
    let room = if max_bytes == 0 {
        usize::MAX
    } else {
        max_bytes
    };
    match kind {
        ReplyKind::Json | ReplyKind::Text | ReplyKind::Multipart => None,
        ReplyKind::Image => Some(MAX_BLOB_BYTES),
        ReplyKind::Audio | ReplyKind::Blob => {
            Some(max_blob_bytes(media_room(room, MAX_LINE_BYTES)))
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
