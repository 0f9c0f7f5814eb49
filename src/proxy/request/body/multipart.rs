//! Multipart request bodies (RFC 7578, RFC 2046 section 5.1): one part a property, a list as parts
//! of the same name.

use bytes::{Bytes, BytesMut};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::file_argument;
use super::file_argument::FileRoot;
use crate::call_error::CallError;
use crate::json::JsonObject;
use crate::outbound::request::{Keep, Payload, Piece};
use crate::proxy::request::style;
use crate::proxy::request::style::form_style;
use crate::spec::operation::request_body::{BODY, Encoding};
use crate::spec::{MediaKind, MediaType, Style, media_type};
use crate::text::hex;

/// A part of a multipart body.
pub(super) struct BodyPart {
    /// The header lines, each with its end.
    head: String,
    piece: Piece,
}

impl BodyPart {
    /// One part for each property, by its Encoding Object.
    ///
    /// # Errors
    /// An error if a file argument is not a file.
    pub(super) fn of_properties(
        object: &JsonObject,
        media_type: &MediaType,
        folder: Option<&FileRoot>,
    ) -> Result<Vec<Self>, CallError> {
        let mut parts = Vec::new();
        for (name, value) in object {
            let encoding = media_type
                .encoding
                .get(name)
                .unwrap_or(&media_type.other_parts);
            let value = &*style::joined(value, &encoding.inner_separators);
            if is_by_style(value, encoding) {
                let (style, explode) = form_style(Some(encoding));
                for (name, text) in style::query(name, value, style, explode, Keep::Unreserved) {
                    let text = Value::String(percent_decoded(&text));
                    let name = percent_decoded(&name);
                    parts.push(Self::of(Some(&name), &text, &Encoding::default(), None)?);
                }
                continue;
            }
            let joined;
            let items: Vec<&Value> = match value {
                Value::Null => Vec::new(),
                Value::Array(items) if encoding.explode == Some(false) && !encoding.binary => {
                    joined = Value::String(style::path(
                        name,
                        &Value::Array(items.clone()),
                        form_style(Some(encoding)).0,
                        false,
                        Keep::All,
                    ));
                    vec![&joined]
                }
                Value::Array(items)
                    if encoding.content_type.as_deref().is_none_or(|content_type| {
                        MediaKind::of(content_type) != MediaKind::Json
                    }) =>
                {
                    items.iter().collect()
                }
                other => vec![other],
            };
            for item in items {
                parts.push(Self::of(Some(name), item, encoding, folder)?);
            }
        }
        Ok(parts)
    }

    /// One part for each item, without names (OAS 3.2 "Encoding By Position").
    ///
    /// # Errors
    /// An error if a file argument is not a file.
    pub(super) fn nameless(
        items: &[Value],
        media_type: &MediaType,
        folder: Option<&FileRoot>,
    ) -> Result<Vec<Self>, CallError> {
        let (first, others) = &media_type.positions;
        let encodings = first.iter().chain(std::iter::repeat(others));
        items
            .iter()
            .zip(encodings)
            .map(|(item, encoding)| Self::of(None, item, encoding, folder))
            .collect()
    }

    fn of(
        name: Option<&str>,
        value: &Value,
        encoding: &Encoding,
        folder: Option<&FileRoot>,
    ) -> Result<Self, CallError> {
        let declared = encoding.content_type.as_deref();
        let is_file = encoding.binary
            || (encoding.may_be_file && value.is_object())
            || declared.is_some_and(|content_type| {
                matches!(MediaKind::of(content_type), MediaKind::Binary)
            });
        let (piece, filename, content_type) = if is_file {
            let argument = name.unwrap_or(BODY);
            let file = file_argument::read_file_argument(argument, value, folder, encoding.base64)?;
            let ranges: Vec<&str> = encoding.ranges.iter().map(String::as_str).collect();
            let content_type = file.media_type_of(argument, &ranges)?.or(declared);
            let content_type = content_type
                .unwrap_or("application/octet-stream")
                .to_owned();
            let filename = file.filename.or_else(|| name.map(str::to_owned));
            (file.piece, filename, Some(content_type))
        } else if value.is_object() || value.is_array() {
            let content_type = declared.unwrap_or("application/json").to_owned();
            (
                Piece::Bytes(value.to_string().into()),
                None,
                Some(content_type),
            )
        } else {
            let text = style::scalar(value).unwrap_or_default().into_owned();
            (
                Piece::Bytes(Bytes::from(text)),
                None,
                declared.map(str::to_owned),
            )
        };
        let filename = filename
            .map(|filename| format!("; filename=\"{}\"", quoted_parameter(&filename)))
            .unwrap_or_default();
        let mut head = match name {
            Some(name) => format!(
                "Content-Disposition: form-data; name=\"{}\"{filename}\r\n",
                quoted_parameter(name)
            ),
            // Without a name of its file, a part of a list has no disposition.
            None if filename.is_empty() => String::new(),
            None => format!("Content-Disposition: attachment{filename}\r\n"),
        };
        if let Some(content_type) = content_type {
            head.push_str(&format!("Content-Type: {}\r\n", header_text(&content_type)));
        }
        if encoding.base64 && is_file {
            head.push_str("Content-Transfer-Encoding: base64\r\n");
        }
        for (name, value) in &encoding.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        Ok(Self { head, piece })
    }
}

/// Returns a boundary that depends on all parts that are in memory, so equal calls make equal
/// requests and no part can contain it by intent. The content of files is not known yet; with files
/// the boundary is random.
pub(super) fn boundary(parts: &[BodyPart]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(part.head.as_bytes());
        match &part.piece {
            Piece::Bytes(bytes) => digest.update(bytes),
            Piece::File(..) => {
                let mut random = [0; 16];
                // Without randomness the boundary is still one that depends on the rest.
                let _ = getrandom::fill(&mut random);
                digest.update(random);
            }
        }
    }
    let hex = hex(digest.finalize().get(..12).unwrap_or_default());
    format!("openapi-mcp-{hex}")
}

/// The body, with files as they are on disk.
pub(super) fn content(parts: Vec<BodyPart>, boundary: &str) -> Payload {
    let mut pieces = Vec::new();
    let mut between = BytesMut::new();
    for BodyPart { head, piece } in parts {
        between.extend_from_slice(format!("--{boundary}\r\n{head}\r\n").as_bytes());
        match piece {
            Piece::Bytes(bytes) => between.extend_from_slice(&bytes),
            file @ Piece::File(..) => {
                pieces.push(Piece::Bytes(between.split().freeze()));
                pieces.push(file);
            }
        }
        between.extend_from_slice(b"\r\n");
    }
    between.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    pieces.push(Piece::Bytes(between.freeze()));
    Payload::of(pieces)
}

/// Returns true if the `style` and `explode` of a value make it several parts (3.1 and later, also
/// for `multipart/form-data`).
fn is_by_style(value: &Value, encoding: &Encoding) -> bool {
    let is_styled = encoding.style.is_some() || encoding.explode.is_some();
    is_styled
        && !encoding.binary
        && (value.is_object() || (value.is_array() && encoding.style == Some(Style::DeepObject)))
}

/// A part is not percent-encoded.
fn percent_decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text)
        .decode_utf8_lossy()
        .into_owned()
}

/// A name inside quotes, so that it can end neither them nor the line (WHATWG HTML
/// "multipart/form-data encoding").
fn quoted_parameter(name: &str) -> String {
    name.replace('\r', "%0D")
        .replace('\n', "%0A")
        .replace('"', "%22")
}

/// A media type of the document without what could start another header.
fn header_text(text: &str) -> String {
    text.chars()
        .filter(|character| !character.is_control())
        .collect()
}

/// Returns the media type with that boundary in place of the document's.
pub(crate) fn with_boundary(content_type: &str, boundary: &str) -> String {
    let kept: Vec<&str> = media_type::pieces(content_type)
        .filter(|part| !part.to_ascii_lowercase().starts_with("boundary="))
        .collect();
    format!("{}; boundary={boundary}", kept.join("; "))
}
