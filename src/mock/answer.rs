//! What the mock answers for an operation: status, media type and body.

use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::generate::generate;
use crate::spec::node::{Node, Object};
use crate::spec::{Document, MediaKind, Operation};

/// A ready answer.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) content_type: Option<String>,
    pub(super) body: Vec<u8>,
}

/// A picture of one pixel, for operations that answer with an image and give no example.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// The first success that the operation declares, with its first example, else with a generated value.
pub(super) fn answer(document: &Document, operation: &Operation) -> Answer {
    let responses = operation
        .responses
        .map(|span| document.node(span))
        .and_then(Node::object)
        .unwrap_or_default();
    let (status, response) = choose(&responses);
    let response = response
        .and_then(|node| document.resolve(node).ok())
        .and_then(Node::object)
        .unwrap_or_default();
    let content = response.get("content").and_then(Node::object).unwrap_or_default();
    let chosen = content.iter().min_by_key(|(name, _)| MediaKind::of(name));
    let Some((name, media)) = chosen else {
        return Answer {
            status,
            content_type: None,
            body: Vec::new(),
        };
    };
    let media = document.resolve(media).unwrap_or(media).object().unwrap_or_default();
    let name = if name.contains('*') { "application/json" } else { name };
    let mut body = match example(document, &media) {
        Some(Example::Value(value)) => bytes_of(name, &value),
        Some(Example::Bytes(bytes)) => bytes,
        None => without_example(document, name, &media),
    };
    if operation.method == http::Method::HEAD {
        body.clear();
    }
    Answer {
        status,
        content_type: Some(name.to_owned()),
        body,
    }
}

/// The lowest 2xx, else `2XX` or `default`, else 200 without anything.
fn choose<'a>(responses: &Object<'a>) -> (StatusCode, Option<Node<'a>>) {
    let mut best: Option<(u16, Node<'a>)> = None;
    for (key, node) in responses.iter() {
        let code = match key {
            "2XX" | "2xx" => 200,
            "default" => 999,
            other => match other.parse::<u16>() {
                Ok(code) if (200..300).contains(&code) => code,
                _ => continue,
            },
        };
        if best.is_none_or(|(lowest, _)| code < lowest) {
            best = Some((code, node));
        }
    }
    match best {
        Some((999, node)) => (StatusCode::OK, Some(node)),
        Some((code, node)) => (StatusCode::from_u16(code).unwrap_or(StatusCode::OK), Some(node)),
        None => (StatusCode::OK, None),
    }
}

enum Example {
    Value(Value),
    Bytes(Vec<u8>),
}

/// `example`, else the first of `examples`, else the schema's own.
fn example(document: &Document, media: &Object<'_>) -> Option<Example> {
    if let Some(value) = media.get("example").and_then(Node::value) {
        return Some(Example::Value(value));
    }
    for (_, node) in media.get("examples").and_then(Node::object).unwrap_or_default().iter() {
        let Some(object) = document.resolve(node).ok().and_then(Node::object) else {
            continue;
        };
        if let Some(value) = object.get("value").or_else(|| object.get("dataValue")).and_then(Node::value) {
            return Some(Example::Value(value));
        }
        // A data URI can be followed without fetching anything.
        if let Some(bytes) = object.text("externalValue").as_deref().and_then(data_uri) {
            return Some(Example::Bytes(bytes));
        }
    }
    None
}

fn data_uri(text: &str) -> Option<Vec<u8>> {
    let (head, data) = text.strip_prefix("data:")?.split_once(',')?;
    if head.ends_with(";base64") {
        STANDARD.decode(data).ok()
    } else {
        Some(percent_encoding::percent_decode_str(data).collect())
    }
}

fn bytes_of(media_type: &str, value: &Value) -> Vec<u8> {
    match (MediaKind::of(media_type), value) {
        (MediaKind::Json, value) => value.to_string().into_bytes(),
        // In a JSON document the example of a picture can only be its base64.
        (MediaKind::Binary, Value::String(text)) => STANDARD.decode(text).unwrap_or_else(|_| text.clone().into_bytes()),
        (_, Value::String(text)) => text.clone().into_bytes(),
        (_, value) => value.to_string().into_bytes(),
    }
}

fn without_example(document: &Document, media_type: &str, media: &Object<'_>) -> Vec<u8> {
    let generated = || media.get("schema").map_or(Value::Null, |schema| generate(document, schema));
    match MediaKind::of(media_type) {
        MediaKind::Json => generated().to_string().into_bytes(),
        MediaKind::Binary if media_type.starts_with("image/") => STANDARD.decode(PIXEL).unwrap_or_default(),
        MediaKind::Binary => b"bytes".to_vec(),
        MediaKind::Text | MediaKind::Xml | MediaKind::Form | MediaKind::Multipart => match generated() {
            Value::String(text) => text.into_bytes(),
            Value::Null => b"text".to_vec(),
            other => other.to_string().into_bytes(),
        },
    }
}
