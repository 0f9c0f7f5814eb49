//! Request bodies of OpenAPI 3: which media types an operation takes, and which of them is sent.

use std::collections::BTreeMap;

use foldhash::HashSet;
use http::Method;

use super::alternatives::arrange_body;
use super::parameter::{Location, Style};
use super::request_body::{
    BodySchema, Encoding, MediaType, RequestBody, is_base64, is_base64_body, is_binary, is_text,
    properties, says_nothing,
};
use crate::spec::document::{Document, Version};
use crate::spec::media_type::{MediaKind, essence};
use crate::spec::node::{Node, Object};

/// Reads a Request Body Object, or a reference to one; `None` if it declares no media type.
///
/// # Errors
/// A sentence if it cannot be read.
pub(crate) fn read_request_body(
    document: &Document,
    declared: Node<'_>,
    method: &Method,
) -> Result<Option<RequestBody>, String> {
    let object = document
        .resolve(declared)
        .map_err(|why| format!("its request body cannot be read: {why}"))?
        .object()
        .ok_or("its request body is not an object")?;
    let content = object.object("content");
    let media_types = content
        .iter()
        .map(|(name, node)| media_type(document, name, node));
    let body = arrange_body(document, media_types.collect(), method);
    Ok(body.map(|body| RequestBody {
        required: object.is_true("required"),
        description: document
            .said_beside(declared)
            .or_else(|| object.text("description")),
        ..body
    }))
}

fn media_type(document: &Document, name: &str, node: Node<'_>) -> MediaType {
    let object = document.open(node);
    let schema = object.get("schema");
    let item = object
        .get("itemSchema")
        .filter(|_| document.version() >= Version::V3_2);
    let schema_is =
        |is: fn(&Document, Node<'_>) -> bool| schema.is_some_and(|schema| is(document, schema));
    let names_no_type = name.contains('*');
    let kind = match (MediaKind::of_sequence(name), MediaKind::of(name)) {
        // What the document says is a text is written by the caller as a whole.
        (Some(_), _) if item.is_none() && schema_is(is_text) => MediaKind::Text,
        (Some(kind), _) => kind,
        (None, MediaKind::Binary)
            if is_unknown_type(name) && schema_is(is_text) && !schema_is(is_binary) =>
        {
            MediaKind::Text
        }
        // A schema of bytes decides, independent of the media type.
        (None, MediaKind::Json) if names_no_type && schema_is(is_binary) => MediaKind::Binary,
        (None, MediaKind::Json) if !names_no_type && schema_is(is_file) => MediaKind::Binary,
        // A form that is one text is written by the caller: it has no fields.
        (None, MediaKind::Form) if schema_is(is_text) => MediaKind::Text,
        (None, kind) => kind,
    };
    let mut encoding = BTreeMap::new();
    if matches!(kind, MediaKind::Form | MediaKind::Multipart) {
        for (property, declared) in object.object("encoding").iter() {
            encoding.insert(property.to_owned(), read_encoding(document, declared));
        }
        for (property, schema) in properties(document, schema, &mut HashSet::default()) {
            if is_binary(document, schema) {
                let encoding = encoding.entry(property).or_default();
                encoding.binary = true;
                encoding.base64 |= is_base64(document, schema);
            } else if kind == MediaKind::Multipart
                && document.version() >= Version::V3_1
                && says_nothing(document, schema)
            {
                // OAS 3.1.1 "Encoding Object": a part without a type is `application/octet-stream`
                // unless `contentType` says otherwise.
                let encoding = encoding.entry(property).or_default();
                encoding.binary |= encoding.content_type.is_none();
            }
        }
    }
    let positions = if kind == MediaKind::Multipart {
        for encoding in encoding.values_mut() {
            // A part under such a type is a file, independent of its schema.
            let content_type = encoding.content_type.as_deref();
            encoding.binary |= encoding.base64
                || content_type
                    .is_some_and(|content_type| MediaKind::of(content_type) == MediaKind::Binary);
        }
        positions(document, &object, schema, item)
    } else {
        Default::default()
    };
    // Only what was read as JSON is sent as JSON; `image/*` waits for the caller's own type.
    let name = if kind == MediaKind::Json && names_no_type {
        "application/json"
    } else {
        name
    };
    MediaType {
        name: name.to_owned(),
        kind,
        schema: match (item, schema.map(Node::span)) {
            (Some(item), whole)
                if matches!(
                    kind,
                    MediaKind::Json | MediaKind::Lines | MediaKind::Sequence | MediaKind::Multipart
                ) =>
            {
                BodySchema::Items(item.span(), whole)
            }
            (_, whole) => whole.map_or(BodySchema::Absent, BodySchema::At),
        },
        encoding,
        base64: kind == MediaKind::Binary && schema_is(is_base64_body),
        other_parts: Encoding::default(),
        positions,
    }
}

/// Reads the encodings of the parts of a list (OAS 3.2 "Encoding By Position").
fn positions(
    document: &Document,
    media_type: &Object<'_>,
    schema: Option<Node<'_>>,
    item: Option<Node<'_>>,
) -> (Vec<Encoding>, Encoding) {
    let read = |node| read_encoding(document, node);
    let first = media_type.array("prefixEncoding").into_iter().map(read);
    let mut others = media_type.get("itemEncoding").map(read).unwrap_or_default();
    if let Some(items) = item.or_else(|| document.object(schema?)?.get("items")) {
        others.binary = is_binary(document, items);
        others.base64 |= is_base64(document, items);
    }
    (first.collect(), others)
}

/// Returns true if it is unknown whether a media type that is taken for bytes is text: a type of a
/// vendor, or an unregistered one that is not an archive.
fn is_unknown_type(name: &str) -> bool {
    const ARCHIVES: [&str; 5] = ["tar", "gtar", "gzip", "bzip2", "xz"];
    let essence = essence(name);
    let is_archive = essence
        .strip_prefix("application/x-")
        .is_some_and(|kind| ARCHIVES.contains(&kind));
    let is_unregistered =
        essence.starts_with("application/vnd.") || essence.starts_with("application/x-");
    is_unregistered && !is_archive
}

/// Returns true if a schema is that of a file: OAS 3.0 "Considerations for File Uploads" says that
/// `format: binary` is the file itself, not a JSON text that holds it.
fn is_file(document: &Document, schema: Node<'_>) -> bool {
    document
        .object(schema)
        .is_some_and(|object| object.is("type", "string") && object.is("format", "binary"))
}

fn read_encoding(document: &Document, node: Node<'_>) -> Encoding {
    let object = document.open(node);
    let types = object.text("contentType").unwrap_or_default();
    let types = types.split(',').map(|name| name.trim().to_owned());
    let ranges: Vec<String> = types.filter(|name| !name.is_empty()).collect();
    let headers = object.object("headers");
    Encoding {
        content_type: ranges.first().filter(|name| !name.contains('*')).cloned(),
        ranges,
        style: object
            .text("style")
            .map(|style| Style::parse(&style, Location::Query).unwrap_or(Style::Form)),
        explode: object.boolean("explode"),
        allow_reserved: object.is_true("allowReserved"),
        headers: part_headers(document, &headers),
        base64: is_sent_as_base64(document, &headers),
        ..Encoding::default()
    }
}

/// The headers of a part that can have one value only: no argument gives them. `Content-Type` is
/// `contentType`'s (OAS "Encoding Object"); what says how the part is named and framed is ours (RFC
/// 7578 sections 4.2 and 4.7).
fn part_headers(document: &Document, declared: &Object<'_>) -> Vec<(String, String)> {
    const OURS: [&str; 4] = [
        "content-type",
        "content-disposition",
        "content-transfer-encoding",
        "content-length",
    ];
    let header = |(name, node): (&str, _)| {
        let value = known_value(document, node)?;
        // RFC 9110 section 5: a name is a token, a value holds no control character.
        let is_sent = http::HeaderName::from_bytes(name.as_bytes()).is_ok()
            && !value.contains(char::is_control)
            && !OURS.iter().any(|ours| name.eq_ignore_ascii_case(ours));
        is_sent.then(|| (name.to_owned(), value))
    };
    declared.iter().filter_map(header).collect()
}

/// Returns the value of a Header Object if its schema leaves no choice or names a default.
fn known_value(document: &Document, header: Node<'_>) -> Option<String> {
    let header = document.object(header)?;
    let schema = document.object(header.get("schema")?)?;
    let value = schema
        .get("const")
        .or_else(|| match schema.array("enum").as_slice() {
            [only] => Some(*only),
            _ => None,
        })
        .or_else(|| schema.get("default"))?;
    value.scalar().map(std::borrow::Cow::into_owned)
}

/// Returns true if an Encoding Object asks for base64 by the header that `contentEncoding` is equal
/// to (OAS 3.1.1 "Encoding Object").
fn is_sent_as_base64(document: &Document, headers: &Object<'_>) -> bool {
    let asked = headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("content-transfer-encoding"));
    let value = asked.and_then(|(_, header)| known_value(document, header));
    value.is_some_and(|value| value.eq_ignore_ascii_case("base64"))
}
