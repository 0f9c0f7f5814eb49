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
mod multipart;
pub(crate) mod xml;

use std::collections::BTreeMap;

use serde_json::Value;

use self::file_argument::FileRoot;
use self::multipart::BodyPart;
use super::style::{self, form_style};
use crate::call_error::CallError;
use crate::json::JsonObject;
use crate::outbound::request::{Keep, Payload, percent_encode};
use crate::spec::media_type::essence;
use crate::spec::operation::request_body::{BODY, Encoding};
use crate::spec::{Document, MediaKind, MediaType};

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
                    BodyPart::nameless(items, media_type, folder)?
                }
                value => BodyPart::of_properties(
                    expect_object(value, "a multipart body")?,
                    media_type,
                    folder,
                )?,
            };
            let boundary = multipart::boundary(&parts);
            content_type = multipart::with_boundary(&content_type, &boundary);
            multipart::content(parts, &boundary)
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
    value.as_object().ok_or_else(|| {
        let problem = format!("must be an object, because it is sent as {what}");
        CallError::invalid_request(BODY, problem)
    })
}

/// `application/x-www-form-urlencoded`: each property as the query parameter of its Encoding Object
/// (OAS "Encoding Object"); without one, lists are repeated and objects are JSON.
fn form(object: &JsonObject, encodings: &BTreeMap<String, Encoding>) -> String {
    let mut pairs = Vec::new();
    for (name, value) in object {
        let encoding = encodings.get(name);
        let may_be_reserved = encoding.is_some_and(|encoding| encoding.allow_reserved);
        let keep = style::kept(may_be_reserved, Keep::Reserved);
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
