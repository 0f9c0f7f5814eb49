//! A request body: its media types, and how each of them is written.

use std::collections::BTreeMap;

use serde_json::Value;

use super::parameter::Style;
use crate::spec::media_type::MediaKind;
use crate::spec::span::Span;

/// The argument that holds the request body.
pub(crate) const BODY: &str = "body";
/// The argument that chooses among the media types of a body, where there is something to choose.
pub(crate) const CHOICE: &str = "contentType";

/// How one property of a form or multipart body is written (OAS Encoding Object).
#[expect(clippy::struct_excessive_bools, reason = "the document says each of them on its own")]
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
    /// Whether these bytes travel as base64 (3.1 `contentEncoding`, or a header `Content-Transfer-Encoding` of that value).
    pub base64: bool,
    /// Whether an object is a file where the schema asks for a text.
    pub may_be_file: bool,
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
    /// In RFC 6902: the operations of a JSON Patch; or what the document says instead.
    JsonPatch(Option<Span>),
    /// Nowhere as an object, though parts have names: files, under names of the caller's choice.
    FilesByName,
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
    /// Whether the bytes of the whole body travel as base64 (3.1 `contentEncoding`, 3.0 `format`).
    pub base64: bool,
    /// For form and multipart bodies: how each property is written.
    pub encoding: BTreeMap<String, Encoding>,
    /// For multipart bodies: how members of any other name are written.
    pub other_parts: Encoding,
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
    /// The media type that a list is sent as, where that is another one: JSON Patch.
    pub for_lists: Option<String>,
    /// The media types that the operation takes as well, where the choice makes a difference to the caller.
    pub alternatives: Vec<MediaType>,
    /// The argument that chooses among them; empty where there is nothing to choose.
    pub choice: String,
    /// The name that 2.0 gives the parameter, which no request holds.
    pub own_name: Option<String>,
}

impl RequestBody {
    /// All media types that a call may choose from, the one that is sent unless chosen otherwise first.
    pub fn media_types(&self) -> impl Iterator<Item = &MediaType> {
        std::iter::once(&self.media_type).chain(&self.alternatives)
    }

    /// The media type of that name; without a name, the one for such a body.
    #[must_use]
    pub fn chosen(&self, name: Option<&str>, body: &Value) -> Option<&MediaType> {
        match name.or_else(|| self.for_lists.as_deref().filter(|_| body.is_array())) {
            Some(name) => self.media_types().find(|media_type| media_type.name == name),
            None => Some(&self.media_type),
        }
    }
}
