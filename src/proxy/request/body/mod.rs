//! Writes request bodies: the argument `body` as bytes, in the media type that the document
//! declares.
//!
//! # Adding a media type of requests
//!
//! - `MediaKind` in `spec/media_type.rs` classifies the type.
//! - `write_body` in `proxy/request/body/mod.rs` writes it.
//! - `arrange_body` in `spec/operation/alternatives.rs` selects one of several types that a body
//!   may have.
//! - A case in `tests/cases/call/media_types.yaml`.

pub(crate) mod file_argument;
pub(crate) mod xml;

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use serde_json::Value;
use sha2::{Digest, Sha256};

use self::file_argument::FileRoot;
use super::style::{self, form_style};
use crate::call_error::CallError;
use crate::json::JsonObject;
use crate::outbound::request::{Keep, Payload, Piece, percent_encode};
use crate::spec::media_type::essence;
use crate::spec::operation::request_body::{BODY, Encoding};
use crate::spec::{Document, MediaKind, MediaType, Style, media_type};
use crate::text::hex;

/// Content after the headers, and its `Content-Type`.
pub(crate) struct Body {
    /// The declared media type, with a boundary for multipart.
    pub(crate) content_type: String,
    /// The bytes.
    pub(crate) content: Payload,
}

/// Writes `value` as `media_type` of `document` requires; `folder` has the files that may be sent.
///
/// # Errors
/// An error if the value cannot be written in that media type.
pub(crate) fn write_body(
    document: &Document,
    media_type: &MediaType,
    value: &Value,
    folder: Option<&FileRoot>,
) -> Result<Body, CallError> {
    let mut content_type = media_type.name.clone();
    let content = match media_type.kind {
        MediaKind::Json => Payload::from(value.to_string()),
        // A value that is not a list is a sequence of one.
        MediaKind::Lines | MediaKind::Sequence => {
            let items = value
                .as_array()
                .map_or(std::slice::from_ref(value), Vec::as_slice);
            let before = if media_type.kind == MediaKind::Sequence {
                "\u{1e}"
            } else {
                ""
            };
            Payload::from(
                items
                    .iter()
                    .map(|item| format!("{before}{item}\n"))
                    .collect::<String>(),
            )
        }
        MediaKind::Form => {
            Payload::from(form(expect_object(value, "a form")?, &media_type.encoding))
        }
        MediaKind::Multipart => {
            let parts = match value {
                Value::Array(items) if essence(&media_type.name) != "multipart/form-data" => {
                    Parts::nameless(items, media_type, folder)?
                }
                value => Parts::of(
                    expect_object(value, "a multipart body")?,
                    media_type,
                    folder,
                )?,
            };
            let boundary = parts.boundary();
            content_type = with_boundary(&content_type, &boundary);
            parts.content(&boundary)
        }
        MediaKind::Xml => Payload::from(xml::write_xml(document, &media_type.schema, value)?),
        MediaKind::Text => Payload::from(style::scalar(value).unwrap_or_default().into_owned()),
        MediaKind::Binary => {
            let file = file_argument::read_file_argument(BODY, value, folder, media_type.base64)?;
            // A concrete type given by the caller says more than `image/*` of the document, and
            // must be one of those.
            if content_type.contains('*') {
                let found = file.media_type_of(BODY, &[&media_type.name])?;
                found
                    .unwrap_or("application/octet-stream")
                    .clone_into(&mut content_type);
            }
            Payload::of(vec![file.piece])
        }
    };
    Ok(Body {
        content_type,
        content,
    })
}

fn expect_object<'v>(value: &'v Value, what: &str) -> Result<&'v JsonObject, CallError> {
    value.as_object().ok_or_else(|| CallError::InvalidRequest {
        argument: BODY.into(),
        problem: format!("must be an object, because it is sent as {what}"),
    })
}

/// `application/x-www-form-urlencoded`: each property as the query parameter of its Encoding Object
/// (OAS "Encoding Object"); without one, lists are repeated and objects are JSON.
fn form(object: &JsonObject, encodings: &BTreeMap<String, Encoding>) -> String {
    let mut pairs = Vec::new();
    for (name, value) in object {
        let encoding = encodings.get(name);
        let keep = if encoding.is_some_and(|encoding| encoding.allow_reserved) {
            Keep::Reserved
        } else {
            Keep::Unreserved
        };
        let by_style =
            encoding.is_some_and(|encoding| encoding.style.is_some() || encoding.explode.is_some());
        let as_json = encoding
            .and_then(|encoding| encoding.content_type.as_deref())
            .is_some_and(|content_type| MediaKind::of(content_type) == MediaKind::Json);
        if (as_json || value.is_object()) && !by_style {
            pairs.push((
                percent_encode(name, Keep::Unreserved),
                percent_encode(&value.to_string(), keep),
            ));
        } else {
            let (style, explode) = form_style(encoding);
            let value = style::joined(
                value,
                encoding.map_or(&[], |encoding| &encoding.inner_separators),
            );
            pairs.extend(style::query(name, &value, style, explode, keep));
        }
    }
    pairs
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect::<Vec<_>>()
        .join("&")
}

/// The parts of a multipart body (RFC 7578, RFC 2046 section 5.1): one a property, a list as parts of
/// the same name.
pub(crate) struct Parts {
    parts: Vec<BodyPart>,
}

struct BodyPart {
    /// Its name, and that of its file; a part of a list has none.
    disposition: Option<String>,
    /// The file's name, if the caller gave one.
    given: Option<String>,
    /// The other header lines, each with its end.
    head: String,
    piece: Piece,
}

impl Parts {
    /// One part for each property, by its Encoding Object.
    ///
    /// # Errors
    /// An error if a file argument is not a file.
    pub(crate) fn of(
        object: &JsonObject,
        media_type: &MediaType,
        folder: Option<&FileRoot>,
    ) -> Result<Self, CallError> {
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
                    parts.push(BodyPart::of(
                        &percent_decoded(&name),
                        &text,
                        &Encoding::default(),
                        None,
                    )?);
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
                parts.push(BodyPart::of(name, item, encoding, folder)?);
            }
        }
        Ok(Self { parts })
    }

    /// One part for each item, without names (OAS 3.2 "Encoding By Position").
    ///
    /// # Errors
    /// An error if a file argument is not a file.
    pub(crate) fn nameless(
        items: &[Value],
        media_type: &MediaType,
        folder: Option<&FileRoot>,
    ) -> Result<Self, CallError> {
        let (first, others) = &media_type.positions;
        let parts = items.iter().enumerate().map(|(index, item)| {
            let mut part = BodyPart::of(BODY, item, first.get(index).unwrap_or(others), folder)?;
            part.disposition = part
                .given
                .take()
                .map(|name| format!("Content-Disposition: attachment; {name}\r\n"));
            Ok(part)
        });
        Ok(Self {
            parts: parts.collect::<Result<_, CallError>>()?,
        })
    }

    /// Returns a boundary that depends on all parts that are in memory, so equal calls make equal
    /// requests and no part can contain it by intent. The content of files is not known yet; with
    /// files the boundary is random.
    pub(crate) fn boundary(&self) -> String {
        let mut digest = Sha256::new();
        for part in &self.parts {
            digest.update(part.disposition.as_deref().unwrap_or_default());
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
    pub(crate) fn content(self, boundary: &str) -> Payload {
        let mut pieces = Vec::new();
        let mut between = BytesMut::new();
        for part in self.parts {
            between.extend_from_slice(
                format!(
                    "--{boundary}\r\n{}{}\r\n",
                    part.disposition.unwrap_or_default(),
                    part.head
                )
                .as_bytes(),
            );
            match part.piece {
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
}

impl BodyPart {
    fn of(
        name: &str,
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
        let mut given = None;
        let (piece, filename, content_type) = if is_file {
            let file = file_argument::read_file_argument(name, value, folder, encoding.base64)?;
            let ranges: Vec<&str> = encoding.ranges.iter().map(String::as_str).collect();
            let content_type = file.media_type_of(name, &ranges)?.or(declared);
            let content_type = content_type
                .unwrap_or("application/octet-stream")
                .to_owned();
            given = file.filename.as_deref().map(filename_parameter);
            (
                file.piece,
                Some(file.filename.unwrap_or_else(|| name.to_owned())),
                Some(content_type),
            )
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
            .map(|filename| format!("; {}", filename_parameter(&filename)))
            .unwrap_or_default();
        let disposition = Some(format!(
            "Content-Disposition: form-data; name=\"{}\"{filename}\r\n",
            quoted_parameter(name)
        ));
        let mut head = String::new();
        if let Some(content_type) = content_type {
            head.push_str(&format!("Content-Type: {}\r\n", header_text(&content_type)));
        }
        if encoding.base64 && is_file {
            head.push_str("Content-Transfer-Encoding: base64\r\n");
        }
        for (name, value) in &encoding.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        Ok(Self {
            disposition,
            given,
            head,
            piece,
        })
    }
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

fn filename_parameter(filename: &str) -> String {
    format!("filename=\"{}\"", quoted_parameter(filename))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Style;
    use serde_json::json;

    fn media(name: &str, encoding: &[(&str, Encoding)]) -> MediaType {
        let encoding = encoding
            .iter()
            .map(|(name, encoding)| ((*name).to_owned(), encoding.clone()))
            .collect();
        MediaType {
            name: name.into(),
            kind: MediaKind::of(name),
            schema: crate::spec::operation::request_body::BodySchema::Absent,
            base64: false,
            encoding,
            other_parts: Encoding::default(),
            positions: Default::default(),
        }
    }

    fn empty() -> Document {
        Document::parse(br#"{"openapi":"3.1.0","paths":{}}"#.to_vec(), None).unwrap()
    }

    fn written(media: &MediaType, value: &Value) -> (String, String) {
        let body = write_body(&empty(), media, value, None).unwrap();
        (
            body.content_type,
            String::from_utf8(body.content.bytes().unwrap().to_vec()).unwrap(),
        )
    }

    #[test]
    fn json_is_sent_as_given_under_the_declared_type() {
        let value: Value = serde_json::from_str(r#"{"b":1.0,"a":[12345678901234567890]}"#).unwrap();
        assert_eq!(
            written(&media("application/merge-patch+json", &[]), &value),
            (
                "application/merge-patch+json".into(),
                r#"{"b":1.0,"a":[12345678901234567890]}"#.into()
            )
        );
    }

    #[test]
    fn forms_follow_their_encoding() {
        let deep = Encoding {
            style: Some(Style::DeepObject),
            explode: Some(true),
            ..Encoding::default()
        };
        let joined = Encoding {
            explode: Some(false),
            ..Encoding::default()
        };
        let media = media(
            "application/x-www-form-urlencoded",
            &[("filter", deep), ("ids", joined)],
        );
        let (_, text) = written(
            &media,
            &json!({"a b": "c&d=é", "tags": ["x", "y"], "ids": [1, 2], "filter": {"k": 1}, "o": {"k": 1}, "n": null}),
        );
        assert_eq!(
            text,
            "a%20b=c%26d%3D%C3%A9&tags=x&tags=y&ids=1,2&filter%5Bk%5D=1&o=%7B%22k%22%3A1%7D"
        );
    }

    #[test]
    fn multipart_has_one_part_a_value_and_decodes_files() {
        let binary = Encoding {
            binary: true,
            ..Encoding::default()
        };
        let media = media("multipart/form-data", &[("photo", binary)]);
        let (content_type, text) = written(
            &media,
            &json!({"name\"\r\nx": "v", "photo": {"data": "aGk=", "filename": "a.txt", "mediaType": "text/plain"}, "meta": {"k": 1}, "tags": ["x", "y"]}),
        );
        let boundary = content_type
            .strip_prefix("multipart/form-data; boundary=")
            .unwrap();
        let parts: Vec<&str> = text.split(&format!("--{boundary}")).collect();
        assert_eq!(
            parts,
            [
                "",
                "\r\nContent-Disposition: form-data; name=\"name%22%0D%0Ax\"\r\n\r\nv\r\n",
                "\r\nContent-Disposition: form-data; name=\"photo\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\nhi\r\n",
                "\r\nContent-Disposition: form-data; name=\"meta\"\r\nContent-Type: application/json\r\n\r\n{\"k\":1}\r\n",
                "\r\nContent-Disposition: form-data; name=\"tags\"\r\n\r\nx\r\n",
                "\r\nContent-Disposition: form-data; name=\"tags\"\r\n\r\ny\r\n",
                "--\r\n"
            ]
        );
    }

    #[test]
    fn bytes_and_text_are_sent_as_they_are() {
        assert_eq!(
            written(&media("image/*", &[]), &json!("data:image/png;base64,aGk=")),
            ("image/png".into(), "hi".into())
        );
        assert_eq!(
            written(&media("application/octet-stream", &[]), &json!("aGk=")),
            ("application/octet-stream".into(), "hi".into())
        );
        assert_eq!(
            written(&media("text/plain; charset=utf-8", &[]), &json!("hi")),
            ("text/plain; charset=utf-8".into(), "hi".into())
        );
        assert!(
            write_body(
                &empty(),
                &media("application/x-www-form-urlencoded", &[]),
                &json!([1]),
                None
            )
            .is_err()
        );
    }
}
