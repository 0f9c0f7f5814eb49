//! Answers of the mock for an operation: status, media type and body.

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::generate::generate;
use crate::spec::node::Node;
use crate::spec::operation::response::{self, DeclaredStatus, Media, ResponseObject};
use crate::spec::{Document, MediaKind, Operation};

/// A picture of one pixel, for operations that answer with an image and give no example.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// The first answer of an operation, and whether it is done later: 202 if it declares that, else its
/// first success, with its first example or a generated value.
pub(crate) fn first_answer(document: &Document, operation: &Operation) -> (Response, bool) {
    let declared = response::successes(document, operation);
    let accepted = declared.iter().position(is_accepted);
    let first = declared.into_iter().nth(accepted.unwrap_or_default());
    (answer_of(document, operation, first), accepted.is_some())
}

/// The answer once an operation is done: the first other success that it declares.
pub(crate) fn done_answer(document: &Document, operation: &Operation) -> Response {
    let mut declared = response::successes(document, operation).into_iter();
    if let Some(done) = declared.find(|response| !is_accepted(response)) {
        return answer_of(document, operation, Some(done));
    }
    let body = br#"{"status":"succeeded"}"#.to_vec();
    with_body(StatusCode::OK, "application/json", body)
}

fn is_accepted(response: &ResponseObject<'_>) -> bool {
    response.status == DeclaredStatus::Status(openapiv3::StatusCode::Code(202))
}

fn answer_of(
    document: &Document,
    operation: &Operation,
    first: Option<ResponseObject<'_>>,
) -> Response {
    let status = first.as_ref().map_or(StatusCode::OK, status_code);
    let media = first.map(|response| response.media).unwrap_or_default();
    let chosen = media
        .into_iter()
        .min_by_key(|media| MediaKind::of(&media.name));
    let Some(media) = chosen else {
        return status.into_response();
    };
    let name = if media.name.contains('*') {
        "application/json"
    } else {
        &media.name
    };
    let mut body =
        example(document, name, &media).unwrap_or_else(|| without_example(document, name, &media));
    if operation.method == http::Method::HEAD {
        body.clear();
    }
    with_body(status, name, body)
}

fn with_body(status: StatusCode, media_type: &str, body: Vec<u8>) -> Response {
    let mut response = (status, Body::from(body)).into_response();
    if let Ok(media_type) = media_type.parse() {
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, media_type);
    }
    response
}

/// Returns the status; 200 for `2XX` and `default`.
fn status_code(response: &ResponseObject<'_>) -> StatusCode {
    match response.status {
        DeclaredStatus::Status(openapiv3::StatusCode::Code(code)) => {
            StatusCode::from_u16(code).unwrap_or_default()
        }
        _ => StatusCode::OK,
    }
}

/// `example`, else the first of `examples`, else the schema's own.
fn example(document: &Document, media_type: &str, media: &Media<'_>) -> Option<Vec<u8>> {
    if let Some(value) = media.example.and_then(Node::value) {
        return Some(bytes_of(media_type, &value));
    }
    for (_, node) in media.object.object("examples").iter() {
        let object = document.object(node).unwrap_or_default();
        let value = object.get("value").or_else(|| object.get("dataValue"));
        // Some documents have a reference in place of the value, and mean its target.
        let reference = value.filter(|value| value.text().contains("\"$ref\""));
        let meant = reference.and_then(|value| document.object(value)?.get("value"));
        let value = meant.or(value);
        if let Some(value) = value.and_then(Node::value) {
            return Some(bytes_of(media_type, &value));
        }
        // A data URI can be followed without fetching anything.
        let external = object.text("externalValue");
        if let Some(bytes) = external.as_deref().and_then(data_uri) {
            return Some(bytes);
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
        // In a JSON document the example of a picture can only be its base64.
        (MediaKind::Binary, Value::String(text)) => STANDARD
            .decode(text)
            .unwrap_or_else(|_| text.clone().into_bytes()),
        (MediaKind::Json, value) => value.to_string().into_bytes(),
        (_, Value::String(text)) => text.clone().into_bytes(),
        (_, value) => value.to_string().into_bytes(),
    }
}

fn without_example(document: &Document, media_type: &str, media: &Media<'_>) -> Vec<u8> {
    let schema = media.schema;
    let generated = || schema.map_or(Value::Null, |schema| generate(document, schema));
    match MediaKind::of(media_type) {
        MediaKind::Json => generated().to_string().into_bytes(),
        MediaKind::Binary if media_type.starts_with("image/") => {
            STANDARD.decode(PIXEL).unwrap_or_default()
        }
        MediaKind::Binary => b"bytes".to_vec(),
        _ => match generated() {
            Value::Null => b"text".to_vec(),
            value => bytes_of(media_type, &value),
        },
    }
}
