//! A request body: its media types, how each of them is written, and the properties of a form as its
//! schema describes them.

use std::collections::BTreeMap;

use foldhash::HashSet;
use serde_json::Value;

use super::parameter::Style;
use crate::spec::document::Document;
use crate::spec::media_type::MediaKind;
use crate::spec::node::{Node, Object, Span};

/// The argument that holds the request body.
pub(crate) const BODY: &str = "body";
/// Name of the argument that chooses among the media types of a body.
pub(crate) const CHOICE: &str = "contentType";

/// Encoding of one property of a form or multipart body (OAS Encoding Object).
#[expect(
    clippy::struct_excessive_bools,
    reason = "the document says each of them on its own"
)]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Encoding {
    /// `contentType`, the first if several are listed.
    pub content_type: Option<String>,
    /// All types and ranges of `contentType`.
    pub ranges: Vec<String>,
    /// `style`, one of those for queries.
    pub style: Option<Style>,
    /// `explode`.
    pub explode: Option<bool>,
    /// `allowReserved`.
    pub allow_reserved: bool,
    /// `headers` of a part, if the document fixes their values: name and value.
    pub headers: Vec<(String, String)>,
    /// True if the property holds bytes according to its schema (`format: binary`,
    /// `contentEncoding`, `contentMediaType`).
    pub binary: bool,
    /// True if these bytes are sent as base64 (3.1 `contentEncoding`, or a header
    /// `Content-Transfer-Encoding` of that value).
    pub base64: bool,
    /// True if an object is accepted as a file although the schema asks for text.
    pub may_be_file: bool,
    /// Separators of lists within the list, from the outside in (2.0 `items.collectionFormat`).
    pub inner_separators: Vec<char>,
}

/// Location of the schema of a body.
#[derive(Debug, Clone)]
pub enum BodySchema {
    /// No schema: any value is accepted.
    Absent,
    /// A schema in the document.
    At(Span),
    /// The schema of each item in the document (3.2 `itemSchema`), and that of the whole if there
    /// is one.
    Items(Span, Option<Span>),
    /// The `formData` parameters of 2.0, one property each.
    Fields(Vec<FormField>),
    /// The operations of a JSON Patch (RFC 6902); or the schema that the document has instead.
    JsonPatch(Option<Span>),
    /// No object schema, although parts have names: files, under names of the caller's choice.
    FilesByName,
}

/// A `formData` parameter of 2.0.
#[derive(Debug, Clone)]
pub struct FormField {
    /// Its name.
    pub name: String,
    /// True if the property is required.
    pub required: bool,
    /// The parameter, which is its own schema.
    pub schema: Span,
    /// True if an empty value is allowed in spite of the schema.
    pub allow_empty: bool,
}

/// One media type of a request body.
#[derive(Debug, Clone)]
pub struct MediaType {
    /// The name as declared, with parameters; `*/*` is read as `application/json`.
    pub name: String,
    /// Kind of content.
    pub kind: MediaKind,
    /// The schema.
    pub schema: BodySchema,
    /// True if the bytes of the whole body are sent as base64 (3.1 `contentEncoding`, 3.0
    /// `format`).
    pub base64: bool,
    /// Encoding of each property, for form and multipart bodies.
    pub encoding: BTreeMap<String, Encoding>,
    /// Encoding of all other members, for multipart bodies.
    pub other_parts: Encoding,
    /// Encodings of the first parts, and of all others, for multipart bodies whose parts have no
    /// names (3.2 `prefixEncoding` and `itemEncoding`).
    pub positions: (Vec<Encoding>, Encoding),
}

/// A request body.
#[derive(Debug, Clone)]
pub struct RequestBody {
    /// True if a call must give a body.
    pub required: bool,
    /// The document's description.
    pub description: Option<String>,
    /// The media type that is sent: JSON first, then form, multipart, text, XML and bytes; of
    /// equals the first declared.
    pub media_type: MediaType,
    /// The media type that a list is sent as, if it is another one: JSON Patch.
    pub for_lists: Option<String>,
    /// The other media types that the operation takes, if the choice makes a difference to the
    /// caller.
    pub alternatives: Vec<MediaType>,
    /// The argument that chooses among them; empty if there is nothing to choose.
    pub choice: String,
    /// The name that 2.0 gives the parameter, which no request holds.
    pub own_name: Option<String>,
}

impl RequestBody {
    /// All media types that a call may choose from, the one that is sent unless chosen otherwise
    /// first.
    pub fn media_types(&self) -> impl Iterator<Item = &MediaType> {
        std::iter::once(&self.media_type).chain(&self.alternatives)
    }

    /// The media type of that name; without a name, the one for such a body.
    #[must_use]
    pub fn chosen(&self, name: Option<&str>, body: &Value) -> Option<&MediaType> {
        match name.or_else(|| self.for_lists.as_deref().filter(|_| body.is_array())) {
            Some(name) => self
                .media_types()
                .find(|media_type| media_type.name == name),
            None => Some(&self.media_type),
        }
    }
}

/// Depth to which lists of lists are followed to find bytes.
const MAX_DEPTH: usize = 8;

/// The properties of a schema and of all branches of its compositions. Each schema is looked into
/// once.
pub(crate) fn properties<'a>(
    document: &'a Document,
    schema: Option<Node<'a>>,
    seen: &mut HashSet<Span>,
) -> Vec<(String, Node<'a>)> {
    const MAX_SCHEMAS: usize = 64;
    let Some(node) = schema.and_then(|node| document.resolve(node).ok()) else {
        return Vec::new();
    };
    if seen.len() >= MAX_SCHEMAS || !seen.insert(node.span()) {
        return Vec::new();
    }
    let Some(object) = node.object() else {
        return Vec::new();
    };
    let own = object.object("properties").unwrap_or_default();
    let mut found: Vec<_> = own
        .iter()
        .map(|(name, node)| (name.to_owned(), node))
        .collect();
    for combinator in ["allOf", "anyOf", "oneOf"] {
        for part in object.array(combinator).unwrap_or_default() {
            found.extend(properties(document, Some(part), seen));
        }
    }
    found
}

/// Returns true if a schema is that of a text.
pub(crate) fn is_text(document: &Document, schema: Node<'_>) -> bool {
    let schema = document.object(schema);
    schema.is_some_and(|schema| schema.text("type").as_deref() == Some("string"))
}

/// Returns true if a schema describes bytes, or a list of byte strings (OAS 3.0 `format: binary`,
/// 3.1 `contentEncoding` and `contentMediaType`).
pub(crate) fn is_binary(document: &Document, schema: Node<'_>) -> bool {
    let is_bytes = |object: &Object<'_>| {
        object
            .text("format")
            .is_some_and(|format| format == "binary" || format == "byte")
            || object.get("contentEncoding").is_some()
            || object.get("contentMediaType").is_some()
    };
    holds(document, schema, &is_bytes, 0)
}

/// Returns true if a schema does not constrain its value, or is a list whose items it does not
/// constrain: it has annotations only.
pub(crate) fn says_nothing(document: &Document, schema: Node<'_>) -> bool {
    let is_annotation = |key: &str| {
        matches!(
            key,
            "title"
                | "description"
                | "example"
                | "examples"
                | "default"
                | "deprecated"
                | "readOnly"
                | "writeOnly"
                | "$comment"
        ) || key.starts_with("x-")
    };
    let is_bare = |object: &Object<'_>| object.iter().all(|(key, _)| is_annotation(key));
    let Some(object) = document.object(schema) else {
        return false;
    };
    let items = object
        .get("items")
        .filter(|_| object.text("type").as_deref() == Some("array"));
    match items {
        Some(items) => document.object(items).is_some_and(|items| is_bare(&items)),
        None => is_bare(&object),
    }
}

/// Returns true if the bytes of a schema, or those of each item, are sent as base64 (JSON Schema
/// 2020-12 validation section 8.3).
pub(crate) fn is_base64(document: &Document, schema: Node<'_>) -> bool {
    let is_encoded = |object: &Object<'_>| {
        let encoding = object.text("contentEncoding");
        encoding.is_some_and(|encoding| encoding.eq_ignore_ascii_case("base64"))
    };
    holds(document, schema, &is_encoded, 0)
}

/// Returns true if the schema of a whole body says that the body is base64. In 3.0 that is
/// `format: base64`; documents use `format: byte` for bytes as they are as well, so it counts only
/// if the description mentions base64.
pub(crate) fn is_base64_body(document: &Document, schema: Node<'_>) -> bool {
    let is_encoded = |object: &Object<'_>| {
        let says_base64 = || {
            object
                .text("description")
                .is_some_and(|text| text.to_ascii_lowercase().contains("base64"))
        };
        match object.text("format").as_deref() {
            Some("base64") => true,
            Some("byte") => says_base64(),
            _ => false,
        }
    };
    is_base64(document, schema) || holds(document, schema, &is_encoded, 0)
}

/// Returns true if `says` is true of a schema, of its items, of a part of it, or of each
/// alternative.
fn holds(
    document: &Document,
    schema: Node<'_>,
    says: &dyn Fn(&Object<'_>) -> bool,
    depth: usize,
) -> bool {
    let Some(object) = document.object(schema) else {
        return false;
    };
    if says(&object) {
        return true;
    }
    if depth >= MAX_DEPTH {
        return false;
    }
    let branches = |key: &str| object.array(key).unwrap_or_default();
    // Of alternatives it must be true of each: what may also be a text is a text.
    let of_alternatives = ["anyOf", "oneOf"].into_iter().any(|key| {
        let branches = branches(key);
        !branches.is_empty()
            && branches
                .into_iter()
                .all(|branch| holds(document, branch, says, depth + 1))
    });
    let parts = branches("allOf").into_iter().chain(object.get("items"));
    of_alternatives
        || parts
            .into_iter()
            .any(|inner| holds(document, inner, says, depth + 1))
}
