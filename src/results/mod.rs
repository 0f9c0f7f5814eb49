//! Makes the result that a model gets from the reply of the API.
//!
//! # Adding a media type of replies
//!
//! - `MediaKind` in `spec/media_type.rs` classifies the type, and `reply_kind` in
//!   `results/mod.rs` says what becomes of it.
//! - `results/render.rs` makes the content of the result. A stream of records is a `Framing`
//!   in `results/records.rs`.
//! - A case in `tests/cases/call/replies.yaml`.

pub(crate) mod compact_json;
pub(crate) mod failure;
pub(crate) mod filter;
pub(crate) mod media;
mod page_numbers;
pub(crate) mod pagination;
pub(crate) mod records;
mod redaction;
pub(crate) mod remarks;
pub(crate) mod render;
pub(crate) mod reply_headers;
pub(crate) mod result_notes;
pub(crate) mod shape;
pub(crate) mod tool_result;
pub(crate) mod truncate;

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use self::records::{Framing, list_records};
use crate::files::ReceivedFile;
use crate::json::is_json;
use crate::redact::Redactor;
use crate::redact::json::NumberMark;
use crate::spec::media_type::{MediaKind, content_type, essence, is_textual};
use crate::spec::{Operation, media_type};
use crate::text;

/// A reply that was read to its end, or, of a stream of records, as far as the limits let.
#[derive(Debug, Default, Clone)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, decompressed.
    pub body: Bytes,
    /// The file that has the body instead.
    pub file: Option<Arc<ReceivedFile>>,
    /// Reason for which a stream of records was not read to its end, after "until".
    pub stopped: Option<&'static str>,
    /// True if it answers a request for the status or the result of an operation, and not the
    /// request of the call.
    pub is_of_wait: bool,
    /// Redactors of the credentials that were fetched for it, for the texts that are made of it
    /// after charsets and escapes were decoded. On the wire they are taken out at once.
    pub(crate) redactors: Vec<Arc<Redactor>>,
}

impl Reply {
    /// The same reply without these credentials.
    pub(crate) fn without_credentials(mut self, redactors: Vec<Arc<Redactor>>) -> Self {
        redactors
            .iter()
            .for_each(|redactor| redactor.redact(&mut self, NumberMark::Text));
        self.redactors = redactors;
        self
    }

    /// Adds the redactors of another reply that is a part of this one.
    pub(crate) fn keep_redactors(&mut self, others: &[Arc<Redactor>]) {
        for redactor in others {
            let is_known = |known: &Arc<Redactor>| {
                Arc::ptr_eq(known, redactor) || known.has_tokens_of(redactor)
            };
            if !self.redactors.iter().any(is_known) {
                self.redactors.push(Arc::clone(redactor));
            }
        }
    }

    /// Returns the first header of that name, if it is text.
    pub(crate) fn header(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the number of bytes of the body.
    pub(crate) fn length(&self) -> usize {
        let of_file = self
            .file
            .as_ref()
            .map(|file| usize::try_from(file.length).unwrap_or(usize::MAX));
        of_file.unwrap_or(self.body.len())
    }

    /// Returns its text if it is one JSON value by its media type; whether it is valid is not checked.
    pub(crate) fn json(&self) -> Option<&str> {
        let content_type = content_type(&self.headers);
        let is_json = Framing::of(content_type).is_none()
            && matches!(reply_kind(content_type, &self.body), ReplyKind::Json);
        std::str::from_utf8(strip_bom(&self.body))
            .ok()
            .filter(|_| is_json)
    }

    /// Returns the same, or the records of a stream as a list.
    pub(crate) fn json_or_records(&self) -> Option<Cow<'_, str>> {
        let content_type = content_type(&self.headers);
        let Some(framing) = Framing::of(content_type) else {
            return self.json().map(Cow::Borrowed);
        };
        let text = decode_text(content_type, &self.body);
        let (list, _) = list_records(framing, &text, self.stopped.is_none());
        Some(Cow::Owned(list))
    }

    /// Makes JSON of our own its body.
    pub(crate) fn put_json(&mut self, json: impl Into<Bytes>) {
        let json_type = HeaderValue::from_static("application/json");
        self.headers.insert(CONTENT_TYPE, json_type);
        (self.body, self.stopped) = (json.into(), None);
    }

    /// Makes a body of JSON, records or text UTF-8, if it is in another charset. JSON may be in
    /// UTF-16 without saying so; text may not.
    pub(crate) fn decode_charset(&mut self) {
        if self.file.is_some() {
            return;
        }
        let named = content_type(&self.headers);
        let is_json = match reply_kind(named, &self.body) {
            ReplyKind::Json => true,
            ReplyKind::Text => false,
            _ if Framing::of(named).is_some() => false,
            _ => return,
        };
        let encoding = match (
            encoding_rs::Encoding::for_bom(&self.body),
            self.body.get(..2),
        ) {
            (Some((encoding, _)), _) => encoding,
            // RFC 4627 section 3: JSON begins with two ASCII characters.
            (None, Some([0, _])) if is_json => encoding_rs::UTF_16BE,
            (None, Some([_, 0])) if is_json => encoding_rs::UTF_16LE,
            _ => encoding_of(named),
        };
        if encoding == encoding_rs::UTF_8 {
            return;
        }
        self.body = encoding.decode(&self.body).0.into_owned().into();
        let essence = Some(essence(named)).filter(|essence| !essence.is_empty());
        let utf8 = format!(
            "{}; charset=utf-8",
            essence.as_deref().unwrap_or("text/plain")
        );
        if let Ok(utf8) = HeaderValue::from_str(&utf8) {
            self.headers.insert(CONTENT_TYPE, utf8);
        }
    }
}

/// Form in which a model gets a body, by its media type.
pub(crate) enum ReplyKind {
    /// JSON, which can also be structured content.
    Json,
    /// Other text, in the charset that the type names.
    Text,
    /// An image, as MCP's image content.
    Image,
    /// A sound, as MCP's audio content.
    Audio,
    /// `multipart/*`: each part by its own type.
    Multipart,
    /// Other bytes, as an embedded resource unless they are too many.
    Blob,
}

/// `GET /pets` in words that hide nothing.
pub(crate) fn operation_label(operation: &Operation) -> String {
    text::one_line(&operation.label())
}

pub(crate) fn status_line(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}

/// Returns the type of a body; without one it is bytes (RFC 9110 section 8.3).
pub(crate) fn essence_or_bytes(content_type: &str) -> String {
    let essence = essence(content_type);
    if essence.is_empty() {
        "application/octet-stream".into()
    } else {
        essence.into_owned()
    }
}

pub(crate) fn reply_kind(content_type: &str, body: &[u8]) -> ReplyKind {
    let essence = essence(content_type);
    match (MediaKind::of(&essence), &*essence) {
        (_, "") => match std::str::from_utf8(body) {
            Ok(text) if text.trim_start().starts_with(['{', '[']) && is_json(body) => {
                ReplyKind::Json
            }
            Ok(_) => ReplyKind::Text,
            Err(_) => ReplyKind::Blob,
        },
        (MediaKind::Json, other) if !other.contains('*') => ReplyKind::Json,
        (_, other) if other.starts_with("image/") => ReplyKind::Image,
        (_, other) if other.starts_with("audio/") => ReplyKind::Audio,
        (MediaKind::Multipart, _) => ReplyKind::Multipart,
        (_, other) if is_textual(other) && !is_bytes(content_type, body) => ReplyKind::Text,
        _ => ReplyKind::Blob,
    }
}

/// Returns true if a body with a text type is not text: it holds a zero byte, is not UTF-8, names
/// no other charset, and does not begin as UTF-16 does.
fn is_bytes(content_type: &str, body: &[u8]) -> bool {
    memchr::memchr(0, body).is_some()
        && !matches!(body.get(..2), Some([0, _] | [_, 0]))
        && encoding_rs::Encoding::for_bom(body).is_none()
        && media_type::parameter(content_type, "charset").is_none()
        && std::str::from_utf8(body).is_err()
}

pub(crate) fn strip_bom(body: &[u8]) -> &[u8] {
    body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body)
}

/// Text by the charset it names, else UTF-8; bytes that do not fit become replacement characters,
/// never an error.
pub(crate) fn decode_text(content_type: &str, body: &[u8]) -> String {
    encoding_of(content_type).decode(body).0.into_owned()
}

fn encoding_of(content_type: &str) -> &'static encoding_rs::Encoding {
    media_type::parameter(content_type, "charset")
        .and_then(|label| encoding_rs::Encoding::for_label(label.as_bytes()))
        .unwrap_or(encoding_rs::UTF_8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_called_text_are_bytes() {
        for (content_type, body, is_text) in [
            ("text/csv", &b"PK\x03\x04\x00\xff\xfe"[..], false),
            ("text/csv", b"a,b\n1,2\n", true),
            ("text/csv", b"a\x00b", true),
            ("text/csv", b"caf\xe9", true),
            ("text/csv; charset=utf-16le", b"PK\x00\xd8\x00\xd8", true),
            ("text/plain", b"a\x00\xff\x00", true),
        ] {
            assert_eq!(
                matches!(reply_kind(content_type, body), ReplyKind::Text),
                is_text,
                "{content_type} {body:?}"
            );
        }
    }
}
