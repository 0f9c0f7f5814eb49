//! Parameters: the location of a value in the request, its style, and the name under which the
//! model gives it.

use serde_json::Value;

use crate::spec::argument_names;
use crate::spec::document::{Document, Version};
use crate::spec::node::{Node, Object, Span};
use crate::text::is_word_of;

/// Location of a parameter (OAS `in`).
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::EnumString,
)]
#[strum(serialize_all = "lowercase")]
pub enum Location {
    /// A segment of the path.
    #[default]
    Path,
    /// The query, under its own name.
    Query,
    /// A request header.
    Header,
    /// The `Cookie` header.
    Cookie,
    /// The whole query at once (OAS 3.2 `querystring`).
    QueryString,
}

/// Style in which a value is written (OAS 3 `style`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Style {
    /// `;name=value`, path only.
    Matrix,
    /// `.value`, path only.
    Label,
    /// `a,b`, path and header.
    #[default]
    Simple,
    /// `name=a&name=b`, query and cookie.
    Form,
    /// `name=a%20b`, query only.
    SpaceDelimited,
    /// `name=a%7Cb`, query only.
    PipeDelimited,
    /// `name[key]=value`, query only.
    DeepObject,
    /// `name=a; name=b`, cookie only, OAS 3.2.
    Cookie,
    /// `a%09b`, 2.0 only (`tsv`).
    TabDelimited,
}

/// Serialization of a parameter's value as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Serialization {
    /// Style and explode.
    Style {
        /// The style.
        style: Style,
        /// True if every item or member is written separately.
        explode: bool,
        /// True if RFC 3986 reserved characters stay as they are.
        allow_reserved: bool,
    },
    /// One text of this media type (`content`).
    Content {
        /// The media type as declared.
        media_type: String,
    },
}

impl Default for Serialization {
    fn default() -> Self {
        Self::Style {
            style: Style::default(),
            explode: false,
            allow_reserved: false,
        }
    }
}

/// A parameter of an operation.
#[derive(Debug, Clone, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the document says each of them on its own"
)]
pub struct Parameter {
    /// The name under which the model gives the value: a legal property key, unique among the
    /// operation's arguments.
    pub key: String,
    /// The name on the wire.
    pub name: String,
    /// Location in the request.
    pub location: Location,
    /// True if a call must give it; always true for path parameters.
    pub required: bool,
    /// The document's description.
    pub description: Option<String>,
    /// True if the document advises against it.
    pub deprecated: bool,
    /// Serialization of the value.
    pub serialization: Serialization,
    /// The schema of the value.
    pub schema: Option<Span>,
    /// Value that is sent if a call leaves it out.
    pub default: Option<Value>,
    /// True if an empty value is allowed in spite of the schema (OAS `allowEmptyValue`, in queries
    /// only).
    pub allow_empty: bool,
    /// True if a value may span several segments of the path; set by the operator, never by the
    /// document.
    pub slashes: bool,
    /// Separators of lists within the list, from the outside in (2.0 `items.collectionFormat`);
    /// empty in later versions.
    pub inner_separators: Vec<char>,
}

impl Parameter {
    /// Location and name, of which an operation has one parameter at most; names of headers have no
    /// case.
    pub(crate) fn identity(&self) -> (Location, String) {
        let name = match self.location {
            Location::Header => self.name.to_ascii_lowercase(),
            _ => self.name.clone(),
        };
        (self.location, name)
    }

    /// Returns true if the parameter has that location and name; names of headers are
    /// case-insensitive (RFC 9110 section 5.1).
    pub fn is(&self, location: Location, name: &str) -> bool {
        self.location == location
            && (self.name == name
                || (location == Location::Header && self.name.eq_ignore_ascii_case(name)))
    }
}

impl Location {
    /// The word OpenAPI uses.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// OAS: query and cookie default to `form`, path and header to `simple`.
    pub(crate) fn default_style(self) -> Style {
        match self {
            Self::Path | Self::Header => Style::Simple,
            Self::Query | Self::Cookie | Self::QueryString => Style::Form,
        }
    }
}

impl Style {
    /// Returns the style of that name if it is defined for `location` (OAS "Style Values").
    pub(crate) fn parse(text: &str, location: Location) -> Option<Self> {
        Some(match (text, location) {
            ("matrix", Location::Path) => Self::Matrix,
            ("label", Location::Path) => Self::Label,
            ("simple", Location::Path | Location::Header) => Self::Simple,
            ("form", Location::Query | Location::Cookie) => Self::Form,
            ("spaceDelimited", Location::Query) => Self::SpaceDelimited,
            ("pipeDelimited", Location::Query) => Self::PipeDelimited,
            ("deepObject", Location::Query) => Self::DeepObject,
            ("cookie", Location::Cookie) => Self::Cookie,
            _ => return None,
        })
    }
}

/// Headers that OpenAPI says to ignore as parameters (Accept, Content-Type, Authorization), and
/// those that frame or route a message (RFC 9110 section 7.6.1), which no call may set.
pub(crate) fn is_reserved_header(name: &str) -> bool {
    const RESERVED: &str = "accept content-type authorization host content-length transfer-encoding
        connection keep-alive te trailer upgrade expect cookie forwarded";
    let name = name.to_ascii_lowercase();
    is_word_of(RESERVED, &name) || name.starts_with("proxy-") || name.starts_with("x-forwarded-")
}

/// Headers that no argument may set: the reserved ones, those of codings and of another protocol
/// version (RFC 9110 section 8.4 and 12.5.3, RFC 7540 section 3.2.1), and those that make gateways
/// and frameworks treat a request as another one, or as that of another user. An operator may still
/// set some of them.
pub(crate) fn is_withheld_header(name: &str) -> bool {
    const WITHHELD: &str = "content-encoding accept-encoding http2-settings via origin set-cookie
        x-http-method-override x-http-method x-method-override x-original-url x-rewrite-url
        x-real-ip";
    is_reserved_header(name) || is_word_of(WITHHELD, &name.to_ascii_lowercase())
}

/// Returns true if OpenAPI itself ignores a header parameter of that name (OAS "Parameter Object",
/// `name`).
pub(crate) fn is_ignored_header(name: &str) -> bool {
    is_word_of(
        "accept content-type authorization",
        &name.to_ascii_lowercase(),
    )
}

/// Reads the members of a Parameter Object, already resolved, that are the same in every version of
/// OpenAPI; returns the object too. The key is only the sanitized name here; [`super::parameters`]
/// makes it unique.
///
/// # Errors
/// A sentence if the parameter cannot be used.
pub(crate) fn read_common(node: Node<'_>) -> Result<(Parameter, Object<'_>), String> {
    let object = node.object().ok_or("a parameter is not an object")?;
    let name = object
        .text("name")
        .filter(|name| !name.is_empty())
        .ok_or("a parameter has no `name`")?;
    let place = object
        .text("in")
        .ok_or_else(|| format!("the parameter `{name}` has no `in`"))?;
    let location = place
        .parse()
        .map_err(|_| format!("the parameter `{name}` has the unknown location `{place}`"))?;
    let parameter = Parameter {
        key: argument_names::sanitize_argument_name(&name),
        required: location == Location::Path || object.is_true("required"),
        description: object.text("description"),
        deprecated: object.is_true("deprecated"),
        allow_empty: location == Location::Query && object.is_true("allowEmptyValue"),
        name,
        location,
        ..Parameter::default()
    };
    Ok((parameter, object))
}

/// Reads a Parameter Object of OpenAPI 3, already resolved. Problems that leave the parameter
/// usable are pushed to `warnings`.
///
/// # Errors
/// A sentence if the parameter cannot be used.
pub(crate) fn read_parameter(
    document: &Document,
    node: Node<'_>,
    warnings: &mut Vec<String>,
) -> Result<Parameter, String> {
    let (mut parameter, object) = read_common(node)?;
    let content = object.object("content");
    let schema = if let Some((media_type, media)) = content.iter().next() {
        let media_type = media_type.to_owned();
        parameter.serialization = Serialization::Content { media_type };
        document.open(media).get("schema")
    } else {
        parameter.serialization = read_style(document.version(), &parameter, &object, warnings);
        object.get("schema")
    };
    parameter.schema = schema.map(Node::span);
    Ok(parameter)
}

fn read_style(
    version: Version,
    parameter: &Parameter,
    object: &Object<'_>,
    warnings: &mut Vec<String>,
) -> Serialization {
    let location = parameter.location;
    let style = match object.text("style") {
        None => location.default_style(),
        Some(style) => Style::parse(&style, location).unwrap_or_else(|| {
            let (name, place) = (&parameter.name, location.as_str());
            warnings.push(format!(
                "the parameter `{name}` has the style `{style}`, which is not defined for {place}; the default is used"
            ));
            location.default_style()
        }),
    };
    // OAS: explode defaults to true for form (and 3.2 cookie), else false. deepObject exists only
    // exploded.
    let explode = match style {
        Style::DeepObject => true,
        Style::Form | Style::Cookie => object.boolean("explode") != Some(false),
        _ => object.is_true("explode"),
    };
    // Before 3.2 the word is defined for queries only.
    let allow_reserved = object.is_true("allowReserved")
        && (location == Location::Query
            || (matches!(location, Location::Path | Location::Cookie) && version >= Version::V3_2));
    Serialization::Style {
        style,
        explode,
        allow_reserved,
    }
}
