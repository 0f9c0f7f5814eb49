//! Request bodies: which media types an operation takes, and which of them is sent.

use std::collections::BTreeMap;

use foldhash::HashSet;

use super::alternatives::alternatives;
use super::parameter::{self, Location, Style};
use crate::spec::document::{Document, Version};
use crate::spec::node::{Node, Object};
use crate::spec::span::Span;

/// The argument that chooses among the media types of a body, where there is something to choose.
pub(crate) const CHOICE: &str = "contentType";

/// What kind of bytes a media type asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MediaKind {
    /// `application/json`, `*+json`, and `*/*`.
    Json,
    /// `application/jsonl`, `application/x-ndjson`: one JSON text a line. Only of request bodies.
    Lines,
    /// `application/json-seq`, `*+json-seq`: RFC 7464. Only of request bodies.
    Sequence,
    /// `application/x-www-form-urlencoded`.
    Form,
    /// `multipart/form-data` and other `multipart/*`.
    Multipart,
    /// `text/*`, and YAML.
    Text,
    /// `application/xml`, `*+xml`.
    Xml,
    /// Anything else: bytes.
    Binary,
}

/// How one property of a form or multipart body is written (OAS Encoding Object).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Encoding {
    /// `contentType`, the first where several are listed.
    pub content_type: Option<String>,
    /// All types and ranges of `contentType`.
    pub ranges: Vec<String>,
    /// `style`, one of those for queries.
    pub style: Option<Style>,
    /// `explode`.
    pub explode: Option<bool>,
    /// `allowReserved`.
    pub allow_reserved: bool,
    /// `headers` of a part, where the document says what each of them holds: name and value.
    pub headers: Vec<(String, String)>,
    /// Whether the schema says that the property holds bytes (`format: binary`, `contentEncoding`, `contentMediaType`).
    pub binary: bool,
    /// What joins lists within the list, from the outside in (2.0 `items.collectionFormat`).
    pub inner_separators: Vec<char>,
}

/// Where the schema of a body is written.
#[derive(Debug, Clone)]
pub enum BodySchema {
    /// Nowhere: anything goes.
    Absent,
    /// In the document.
    At(Span),
    /// Of each item in the document (3.2 `itemSchema`), and of the whole where that has one too.
    Items(Span, Option<Span>),
    /// In the `formData` parameters of 2.0, one property each.
    Fields(Vec<FormField>),
}

/// A `formData` parameter of 2.0.
#[derive(Debug, Clone)]
pub struct FormField {
    /// Its name.
    pub name: String,
    /// Whether it must be given.
    pub required: bool,
    /// The parameter, which is its own schema.
    pub schema: Span,
    /// Whether an empty value is allowed whatever the schema says.
    pub allow_empty: bool,
}

/// One media type of a request body.
#[derive(Debug, Clone)]
pub struct MediaType {
    /// As declared, with parameters; `*/*` is read as `application/json`.
    pub name: String,
    /// What it asks for.
    pub kind: MediaKind,
    /// The schema.
    pub schema: BodySchema,
    /// For form and multipart bodies: how each property is written.
    pub encoding: BTreeMap<String, Encoding>,
    /// For multipart bodies whose parts have no names (3.2 `prefixEncoding` and `itemEncoding`): how the first ones are
    /// written, and how all others are.
    pub positions: (Vec<Encoding>, Encoding),
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
    /// The media types that the operation takes as well, where the choice makes a difference to the caller.
    pub alternatives: Vec<MediaType>,
    /// The argument that chooses among them; empty where there is nothing to choose.
    pub choice: String,
}

impl RequestBody {
    /// All media types that a call may choose from, the one that is sent unless chosen otherwise first.
    pub fn media_types(&self) -> impl Iterator<Item = &MediaType> {
        std::iter::once(&self.media_type).chain(&self.alternatives)
    }

    /// The media type of that name; the default one without a name.
    #[must_use]
    pub fn chosen(&self, name: Option<&str>) -> Option<&MediaType> {
        match name {
            Some(name) => self.media_types().find(|media_type| media_type.name == name),
            None => Some(&self.media_type),
        }
    }
}

/// A media type without its parameters, in lower case (RFC 9110 section 8.3.1).
#[must_use]
pub(crate) fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

impl MediaKind {
    /// The kind of a media type (RFC 6838), by its essence; parameters do not count.
    #[must_use]
    pub fn of(media_type: &str) -> Self {
        match essence(media_type).as_str() {
            "application/json" | "*/*" | "application/*" | "text/json" => Self::Json,
            "application/x-www-form-urlencoded" => Self::Form,
            "application/xml" | "text/xml" => Self::Xml,
            "application/yaml" | "application/x-yaml" => Self::Text,
            other if other.ends_with("+yaml") => Self::Text,
            other if other.ends_with("+json") => Self::Json,
            other if other.ends_with("+xml") && !other.starts_with("image/") => Self::Xml,
            other if other.starts_with("multipart/") => Self::Multipart,
            other if other.starts_with("text/") => Self::Text,
            _ => Self::Binary,
        }
    }
}

/// The kind of a sequential media type (OAS 3.2 "Sequential Media Types") that is made of JSON texts.
fn sequential(media_type: &str) -> Option<MediaKind> {
    match essence(media_type).as_str() {
        "application/jsonl"
        | "application/x-jsonl"
        | "application/jsonlines"
        | "application/x-jsonlines"
        | "application/x-ndjson"
        | "application/ndjson" => Some(MediaKind::Lines),
        other if other == "application/json-seq" || other.ends_with("+json-seq") => Some(MediaKind::Sequence),
        _ => None,
    }
}

/// Reads a Request Body Object, or a reference to one; `None` where it declares no media type.
///
/// # Errors
/// A sentence where it cannot be read.
pub(crate) fn read_request_body(document: &Document, declared: Node<'_>) -> Result<Option<RequestBody>, String> {
    let object = document
        .resolve_object(declared)
        .map_err(|why| format!("its request body cannot be read: {why}"))?
        .ok_or("its request body is no object")?;
    let content = object.get("content").and_then(Node::object).unwrap_or_default();
    let mut media_types: Vec<MediaType> = content.iter().map(|(name, node)| media_type(document, name, node)).collect();
    if media_types.is_empty() {
        return Ok(None);
    }
    // Stable: of equals the first declared stays first.
    media_types.sort_by_key(|media_type| media_type.kind);
    let chosen = media_types.remove(0);
    Ok(Some(RequestBody {
        required: object.boolean("required").unwrap_or(false),
        description: document.said_beside(declared).or_else(|| object.text("description")),
        alternatives: alternatives(document, &chosen, media_types),
        choice: String::new(),
        media_type: chosen,
    }))
}

/// The body of a 2.0 operation, from its parameters `in: body` and `in: formData`.
pub(crate) fn read_swagger_body(document: &Document, parameters: &[Node<'_>], consumes: &[String]) -> Option<RequestBody> {
    let place = |node: &Node<'_>| node.object().and_then(|object| object.text("in"));
    if let Some(object) = parameters
        .iter()
        .find(|node| place(node).as_deref() == Some("body"))
        .and_then(|node| node.object())
    {
        let schema = object.get("schema").map(Node::span);
        let media_type = |name: &str| {
            let kind = MediaKind::of(name);
            let anything = kind == MediaKind::Json && name.contains('*');
            MediaType {
                name: if anything { "application/json" } else { name }.to_owned(),
                kind,
                schema: schema.map_or(BodySchema::Absent, BodySchema::At),
                encoding: BTreeMap::new(),
                positions: Default::default(),
            }
        };
        let mut media_types: Vec<MediaType> = consumes.iter().map(|name| media_type(name)).collect();
        media_types.sort_by_key(|media_type| media_type.kind);
        let chosen = if media_types.is_empty() {
            media_type("application/json")
        } else {
            media_types.remove(0)
        };
        return Some(RequestBody {
            required: object.boolean("required").unwrap_or(false),
            description: object.text("description"),
            alternatives: alternatives(document, &chosen, media_types),
            choice: String::new(),
            media_type: chosen,
        });
    }
    let mut fields = Vec::new();
    let mut encoding = BTreeMap::new();
    for node in parameters.iter().filter(|node| place(node).as_deref() == Some("formData")) {
        let Some(object) = node.object() else { continue };
        let Some(name) = object.text("name") else { continue };
        // The operation's own come first, and replace the path item's.
        if encoding.contains_key(&name) {
            continue;
        }
        let (style, explode) = parameter::collection(object.text("collectionFormat").as_deref(), Location::Query);
        let binary = object.text("type").as_deref() == Some("file");
        encoding.insert(
            name.clone(),
            Encoding {
                style: Some(style),
                explode: Some(explode),
                binary,
                inner_separators: parameter::inner_separators(&object),
                ..Encoding::default()
            },
        );
        fields.push(FormField {
            name,
            required: object.boolean("required").unwrap_or(false),
            schema: node.span(),
            allow_empty: object.boolean("allowEmptyValue") == Some(true),
        });
    }
    if fields.is_empty() {
        return None;
    }
    let files = encoding.values().any(|encoding| encoding.binary);
    let multipart = files
        || (consumes.iter().any(|name| MediaKind::of(name) == MediaKind::Multipart)
            && !consumes.iter().any(|name| MediaKind::of(name) == MediaKind::Form));
    let name = if multipart {
        "multipart/form-data"
    } else {
        "application/x-www-form-urlencoded"
    };
    let required = fields.iter().any(|field| field.required);
    let media_type = MediaType {
        name: name.into(),
        kind: MediaKind::of(name),
        schema: BodySchema::Fields(fields),
        encoding,
        positions: Default::default(),
    };
    Some(RequestBody {
        required,
        description: None,
        media_type,
        alternatives: Vec::new(),
        choice: String::new(),
    })
}

fn media_type(document: &Document, name: &str, node: Node<'_>) -> MediaType {
    let object = document.resolve(node).unwrap_or(node).object().unwrap_or_default();
    let schema = object.get("schema");
    let item = object.get("itemSchema").filter(|_| document.version() >= Version::V3_2);
    let is_text = || schema.is_some_and(|schema| is_text(document, schema));
    let kind = match sequential(name) {
        // What the document says is a text is written by the caller as a whole.
        Some(_) if item.is_none() && is_text() => MediaKind::Text,
        Some(kind) => kind,
        None => MediaKind::of(name),
    };
    let mut encoding = BTreeMap::new();
    if matches!(kind, MediaKind::Form | MediaKind::Multipart) {
        for (property, declared) in object.get("encoding").and_then(Node::object).unwrap_or_default().iter() {
            encoding.insert(property.to_owned(), read_encoding(document, declared));
        }
        for (property, schema) in properties(document, schema, &mut HashSet::default()) {
            if is_binary(document, schema, 0) {
                encoding.entry(property).or_default().binary = true;
            }
        }
    }
    let positions = if kind == MediaKind::Multipart {
        for encoding in encoding.values_mut() {
            // A part under such a type is a file, whatever its schema says.
            let content_type = encoding.content_type.as_deref();
            encoding.binary |= content_type.is_some_and(|content_type| MediaKind::of(content_type) == MediaKind::Binary);
        }
        positions(document, &object, schema, item)
    } else {
        Default::default()
    };
    // Only what was read as JSON is sent as JSON; `image/*` waits for the caller's own type.
    let name = if kind == MediaKind::Json && name.contains('*') {
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
        positions,
    }
}

/// How the parts of a list are written (OAS 3.2 "Encoding By Position").
fn positions(document: &Document, media_type: &Object<'_>, schema: Option<Node<'_>>, item: Option<Node<'_>>) -> (Vec<Encoding>, Encoding) {
    let first = media_type.get("prefixEncoding").and_then(Node::array).unwrap_or_default();
    let first = first.into_iter().map(|node| read_encoding(document, node)).collect();
    let mut others = media_type
        .get("itemEncoding")
        .map(|node| read_encoding(document, node))
        .unwrap_or_default();
    let of_whole = || document.resolve_object(schema?).ok()??.get("items");
    others.binary = item.or_else(of_whole).is_some_and(|items| is_binary(document, items, 0));
    (first, others)
}

fn is_text(document: &Document, schema: Node<'_>) -> bool {
    let schema = document.resolve_object(schema).ok().flatten();
    schema.is_some_and(|schema| schema.text("type").as_deref() == Some("string"))
}

fn read_encoding(document: &Document, node: Node<'_>) -> Encoding {
    let object = document.resolve(node).unwrap_or(node).object().unwrap_or_default();
    let types = object.text("contentType").unwrap_or_default();
    let types = types.split(',').map(str::trim).filter(|name| !name.is_empty());
    let ranges: Vec<String> = types.map(str::to_owned).collect();
    Encoding {
        content_type: ranges.first().filter(|content_type| !content_type.contains('*')).cloned(),
        ranges,
        style: object
            .text("style")
            .map(|style| Style::parse(&style, Location::Query).unwrap_or(Style::Form)),
        explode: object.boolean("explode"),
        allow_reserved: object.boolean("allowReserved").unwrap_or(false),
        headers: part_headers(document, &object),
        ..Encoding::default()
    }
}

/// The headers of a part that can have one value only: no argument gives them. `Content-Type` is `contentType`'s (OAS
/// "Encoding Object"); what says how the part is named and framed is ours (RFC 7578 sections 4.2 and 4.7).
fn part_headers(document: &Document, encoding: &Object<'_>) -> Vec<(String, String)> {
    let declared = encoding.get("headers").and_then(Node::object).unwrap_or_default();
    let mut headers = Vec::new();
    for (name, node) in declared.iter() {
        let is_ours = ["content-type", "content-disposition", "content-transfer-encoding", "content-length"]
            .iter()
            .any(|ours| name.eq_ignore_ascii_case(ours));
        let Some(header) = document.resolve_object(node).ok().flatten().filter(|_| !is_ours) else {
            continue;
        };
        let schema = header.get("schema").and_then(|schema| document.resolve_object(schema).ok()?);
        let Some(schema) = schema else { continue };
        let only = || schema.get("enum")?.array().filter(|values| values.len() == 1)?.first().copied();
        let value = schema.get("const").or_else(only).or_else(|| schema.get("default"));
        let Some(value) = value.and_then(Node::scalar) else { continue };
        // RFC 9110 section 5: a name is a token, a value holds no control character.
        let is_name = http::HeaderName::from_bytes(name.as_bytes()).is_ok();
        if is_name && !value.chars().any(char::is_control) {
            headers.push((name.to_owned(), value.into_owned()));
        }
    }
    headers
}

/// How deep lists of lists are followed to find bytes.
const MAX_DEPTH: usize = 8;

/// The properties of a schema and of all branches of its compositions. Each schema is looked into once.
fn properties<'a>(document: &'a Document, schema: Option<Node<'a>>, seen: &mut HashSet<Span>) -> Vec<(String, Node<'a>)> {
    const MAX_SCHEMAS: usize = 64;
    let Some(node) = schema.and_then(|node| document.resolve(node).ok()) else {
        return Vec::new();
    };
    if seen.len() >= MAX_SCHEMAS || !seen.insert(node.span()) {
        return Vec::new();
    }
    let Some(object) = node.object() else { return Vec::new() };
    let own = object.get("properties").and_then(Node::object).unwrap_or_default();
    let mut found: Vec<_> = own.iter().map(|(name, node)| (name.to_owned(), node)).collect();
    for combinator in ["allOf", "anyOf", "oneOf"] {
        for part in object.get(combinator).and_then(Node::array).unwrap_or_default() {
            found.extend(properties(document, Some(part), seen));
        }
    }
    found
}

/// Whether a schema stands for bytes, or for a list of byte strings (OAS 3.0 `format: binary`, 3.1 `contentEncoding`
/// and `contentMediaType`).
fn is_binary(document: &Document, schema: Node<'_>, depth: usize) -> bool {
    let Some(object) = document.resolve_object(schema).ok().flatten() else {
        return false;
    };
    if object.text("format").is_some_and(|format| format == "binary" || format == "byte")
        || object.get("contentEncoding").is_some()
        || object.get("contentMediaType").is_some()
    {
        return true;
    }
    depth < MAX_DEPTH && object.get("items").is_some_and(|items| is_binary(document, items, depth + 1))
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
            ("application/apply-patch+yaml", MediaKind::Text),
            ("application/soap+xml", MediaKind::Xml),
            ("image/svg+xml", MediaKind::Binary),
            ("application/octet-stream", MediaKind::Binary),
        ] {
            assert_eq!(MediaKind::of(name), kind, "{name}");
        }
    }
}
