//! A request body: its media types, how each of them is written, and the properties of a form as its
//! schema describes them.

use std::collections::BTreeMap;

use foldhash::HashSet;
use serde_json::Value;

use super::parameter::Style;
use crate::spec::document::Document;
use crate::spec::media_type::MediaKind;
use crate::spec::node::{Node, Object, Span};
use crate::text::is_word_of;

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
#[derive(Debug, Clone, Default)]
pub enum BodySchema {
    /// No schema: any value is accepted.
    #[default]
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
#[derive(Debug, Clone, Default)]
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
#[derive(Debug, Clone, Default)]
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
    let object = node.object().unwrap_or_default();
    let own = object.object("properties");
    let mut found: Vec<_> = own
        .iter()
        .map(|(name, node)| (name.to_owned(), node))
        .collect();
    for part in ["allOf", "anyOf", "oneOf"]
        .into_iter()
        .flat_map(|key| object.array(key))
    {
        found.extend(properties(document, Some(part), seen));
    }
    found
}

/// Returns true if a schema is that of a text.
pub(crate) fn is_text(document: &Document, schema: Node<'_>) -> bool {
    document
        .object(schema)
        .is_some_and(|schema| schema.is("type", "string"))
}

/// Returns true if a schema describes bytes, or a list of byte strings (OAS 3.0 `format: binary`,
/// 3.1 `contentEncoding` and `contentMediaType`).
pub(crate) fn is_binary(document: &Document, schema: Node<'_>) -> bool {
    let is_bytes = |object: &Object<'_>| {
        object.is("format", "binary")
            || object.is("format", "byte")
            || object.has_any("contentEncoding contentMediaType")
    };
    holds(document, schema, &is_bytes, 0)
}

/// Returns true if a schema does not constrain its value, or is a list whose items it does not
/// constrain: it has annotations only.
pub(crate) fn says_nothing(document: &Document, schema: Node<'_>) -> bool {
    let is_annotation = |key: &str| {
        const ANNOTATIONS: &str = "title description example examples default deprecated readOnly
            writeOnly $comment";
        is_word_of(ANNOTATIONS, key) || key.starts_with("x-")
    };
    let is_bare = |object: &Object<'_>| object.iter().all(|(key, _)| is_annotation(key));
    let Some(object) = document.object(schema) else {
        return false;
    };
    match object.get("items").filter(|_| object.is("type", "array")) {
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
        let text = || object.text("description").unwrap_or_default();
        object.is("format", "base64")
            || object.is("format", "byte") && text().to_ascii_lowercase().contains("base64")
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
    let inside = |inner: &Node<'_>| holds(document, *inner, says, depth + 1);
    // Of alternatives it must be true of each: what may also be a text is a text.
    let of_alternatives = |key| {
        let branches = object.array(key);
        !branches.is_empty() && branches.iter().all(inside)
    };
    let parts = || object.array("allOf").into_iter().chain(object.get("items"));
    depth < MAX_DEPTH
        && (["anyOf", "oneOf"].into_iter().any(of_alternatives)
            || parts().any(|part| inside(&part)))
}
