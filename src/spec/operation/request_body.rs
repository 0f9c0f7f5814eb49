//! A request body: its media types, and how each of them is written.

use std::collections::BTreeMap;

use serde_json::Value;

use super::parameter::Style;
use crate::spec::media_type::MediaKind;
use crate::spec::span::Span;

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
