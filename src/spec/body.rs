//! Request bodies: which media types an operation takes, and which of them is sent.

use std::collections::BTreeMap;

use super::document::{Document, Span};
use super::node::{Node, Object};

/// What kind of bytes a media type asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MediaKind {
    /// `application/json`, `*+json`, and `*/*`.
    Json,
    /// `application/x-www-form-urlencoded`.
    Form,
    /// `multipart/form-data` and other `multipart/*`.
    Multipart,
    /// `text/*`.
    Text,
    /// `application/xml`, `*+xml`: sent as the raw text that the model writes.
    Xml,
    /// Anything else: bytes.
    Binary,
}

/// How one property of a form or multipart body is written (OAS Encoding Object).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Encoding {
    /// `contentType`, the first where several are listed.
    pub content_type: Option<String>,
    /// `style`, as declared: `form`, `spaceDelimited`, `pipeDelimited` or `deepObject`.
    pub style: Option<String>,
    /// `explode`.
    pub explode: Option<bool>,
    /// `allowReserved`.
    pub allow_reserved: bool,
    /// Whether the schema says that the property holds bytes (`format: binary`, `contentEncoding`, `contentMediaType`).
    pub binary: bool,
}

/// One media type of a request body.
#[derive(Debug, Clone)]
pub struct MediaType {
    /// As declared, with parameters; `*/*` is read as `application/json`.
    pub name: String,
    /// What it asks for.
    pub kind: MediaKind,
    /// The schema.
    pub schema: Option<Span>,
    /// For form and multipart bodies: how each property is written.
    pub encoding: BTreeMap<String, Encoding>,
}

/// A request body.
#[derive(Debug, Clone)]
pub struct RequestBody {
    /// Whether a call must give it.
    pub required: bool,
    /// The document's description.
    pub description: Option<String>,
    /// The media type that is sent: JSON first, then form, multipart, text, XML and bytes; of equals the first declared.
    pub media_type: MediaType,
    /// The names of the media types that the operation would take as well.
    pub alternatives: Vec<String>,
}

impl MediaKind {
    /// The kind of a media type (RFC 6838), by its essence; parameters do not count.
    #[must_use]
    pub fn of(media_type: &str) -> Self {
        let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match essence.as_str() {
            "application/json" | "*/*" | "application/*" | "text/json" => Self::Json,
            "application/x-www-form-urlencoded" => Self::Form,
            "application/xml" | "text/xml" => Self::Xml,
            other if other.ends_with("+json") => Self::Json,
            other if other.ends_with("+xml") && !other.starts_with("image/") => Self::Xml,
            other if other.starts_with("multipart/") => Self::Multipart,
            other if other.starts_with("text/") => Self::Text,
            _ => Self::Binary,
        }
    }
}

/// Reads a Request Body Object, already resolved.
///
/// # Errors
/// A sentence where it declares no media type.
pub(super) fn read(document: &Document, object: &Object<'_>) -> Result<RequestBody, String> {
    let content = object.get("content").and_then(Node::object).unwrap_or_default();
    let mut media_types: Vec<MediaType> = content.iter().map(|(name, node)| media_type(document, name, node)).collect();
    if media_types.is_empty() {
        return Err("the request body declares no media type".into());
    }
    // Stable: of equals the first declared stays first.
    media_types.sort_by_key(|media_type| media_type.kind);
    let chosen = media_types.remove(0);
    Ok(RequestBody {
        required: object.boolean("required").unwrap_or(false),
        description: object.text("description"),
        media_type: chosen,
        alternatives: media_types.into_iter().map(|media_type| media_type.name).collect(),
    })
}

fn media_type(document: &Document, name: &str, node: Node<'_>) -> MediaType {
    let object = document.resolve(node).unwrap_or(node).object().unwrap_or_default();
    let kind = MediaKind::of(name);
    let schema = object.get("schema");
    let mut encoding = BTreeMap::new();
    if matches!(kind, MediaKind::Form | MediaKind::Multipart) {
        for (property, declared) in object.get("encoding").and_then(Node::object).unwrap_or_default().iter() {
            encoding.insert(property.to_owned(), read_encoding(document, declared));
        }
        for (property, schema) in properties(document, schema, 0) {
            if is_binary(document, schema, 0) {
                encoding.entry(property).or_default().binary = true;
            }
        }
    }
    // Only what was read as JSON is sent as JSON; `image/*` waits for the caller's own type.
    let name = if kind == MediaKind::Json && name.contains('*') {
        "application/json"
    } else {
        name
    };
    MediaType {
        name: name.to_owned(),
        kind,
        schema: schema.map(|node| document.span(node)),
        encoding,
    }
}

fn read_encoding(document: &Document, node: Node<'_>) -> Encoding {
    let object = document.resolve(node).unwrap_or(node).object().unwrap_or_default();
    let content_type = object
        .text("contentType")
        .and_then(|types| types.split(',').next().map(|first| first.trim().to_owned()));
    Encoding {
        content_type: content_type.filter(|content_type| !content_type.contains('*')),
        style: object.text("style"),
        explode: object.boolean("explode"),
        allow_reserved: object.boolean("allowReserved").unwrap_or(false),
        binary: false,
    }
}

/// How deep references and compositions are followed to find a body's properties.
const DEEPEST: usize = 8;

fn properties<'a>(document: &'a Document, schema: Option<Node<'a>>, depth: usize) -> Vec<(String, Node<'a>)> {
    let Some(object) = schema.and_then(|node| document.resolve(node).ok()).and_then(Node::object) else {
        return Vec::new();
    };
    let mut found: Vec<_> = object
        .get("properties")
        .and_then(Node::object)
        .unwrap_or_default()
        .iter()
        .map(|(name, node)| (name.to_owned(), node))
        .collect();
    if depth < DEEPEST {
        for combinator in ["allOf", "anyOf", "oneOf"] {
            for part in object.get(combinator).and_then(Node::array).unwrap_or_default() {
                found.extend(properties(document, Some(part), depth + 1));
            }
        }
    }
    found
}

/// Whether a schema stands for bytes, or for a list of byte strings (OAS 3.0 `format: binary`, 3.1 `contentEncoding`
/// and `contentMediaType`).
fn is_binary(document: &Document, schema: Node<'_>, depth: usize) -> bool {
    let Some(object) = document.resolve(schema).ok().and_then(Node::object) else {
        return false;
    };
    if object.text("format").is_some_and(|format| format == "binary" || format == "byte")
        || object.get("contentEncoding").is_some()
        || object.get("contentMediaType").is_some()
    {
        return true;
    }
    depth < DEEPEST && object.get("items").is_some_and(|items| is_binary(document, items, depth + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_are_told_apart_by_their_essence() {
        for (name, kind) in [
            ("application/json; charset=utf-8", MediaKind::Json),
            ("application/merge-patch+json", MediaKind::Json),
            ("*/*", MediaKind::Json),
            ("application/x-www-form-urlencoded", MediaKind::Form),
            ("multipart/form-data", MediaKind::Multipart),
            ("text/csv", MediaKind::Text),
            ("application/soap+xml", MediaKind::Xml),
            ("image/svg+xml", MediaKind::Binary),
            ("application/octet-stream", MediaKind::Binary),
        ] {
            assert_eq!(MediaKind::of(name), kind, "{name}");
        }
    }
}
