//! Swagger 2.0: what it writes otherwise than OpenAPI 3, read into the shapes of OpenAPI 3.

use std::collections::BTreeMap;

use http::Method;

use super::alternatives::arrange_body;
use super::parameter::{Location, Parameter, ParameterHead, Serialization, Style};
use super::request_body::{BodySchema, Encoding, FormField, MediaType, RequestBody, is_binary};
use super::security_scheme::{ConsentUrls, OAuthFlow, SecurityScheme, read_api_key};
use super::server_template::ServerTemplate;
use crate::spec::document::Document;
use crate::spec::media_type::{MediaKind, essence};
use crate::spec::node::{Node, Object};

/// Returns true if a parameter with that `in` is a part of the body.
pub(crate) fn is_in_body(place: &str) -> bool {
    place == "body" || place == "formData"
}

/// The media types of an operation under `consumes` or `produces`, else the document's.
pub(crate) fn media_types(document: &Document, operation: &Object<'_>, key: &str) -> Vec<String> {
    let declared = operation.get(key).or_else(|| document.member(key));
    declared.map(Node::strings).unwrap_or_default()
}

/// The media types that an operation takes: those of its own `consumes`, else those that its header
/// parameter `Content-Type` lists, else those of the document. A `consumes` of mere bytes says less
/// than that parameter. Only OpenAPI 3 ignores a parameter of that name.
pub(crate) fn consumed(
    document: &Document,
    operation: &Object<'_>,
    parameters: &[Node<'_>],
) -> Vec<String> {
    let header = parameters
        .iter()
        .filter_map(|node| node.object())
        .find(|object| {
            let is = |key: &str, value: &str| {
                object
                    .text(key)
                    .is_some_and(|text| text.eq_ignore_ascii_case(value))
            };
            is("in", "header") && is("name", "content-type")
        });
    let own = operation.get("consumes").map(Node::strings);
    let says_less = own.is_none_or(|own| {
        own.iter()
            .all(|name| essence(name) == "application/octet-stream")
    });
    let listed = header.filter(|_| says_less).map(|object| {
        let values = object.get("enum").map(Node::strings).unwrap_or_default();
        let default = object
            .text("default")
            .filter(|default| !values.contains(default));
        let all = values.into_iter().chain(default);
        all.filter(|value| value.contains('/'))
            .collect::<Vec<String>>()
    });
    listed
        .filter(|listed| !listed.is_empty())
        .unwrap_or_else(|| media_types(document, operation, "consumes"))
}

/// Reads a Parameter Object that is not a part of the body, already resolved.
///
/// # Errors
/// A sentence if the parameter cannot be used.
pub(crate) fn read_parameter(node: Node<'_>) -> Result<Parameter, String> {
    let head = ParameterHead::read(node)?;
    let (style, explode) = collection_style(
        head.object.text("collectionFormat").as_deref(),
        head.location,
    );
    let serialization = Serialization::Style {
        style,
        explode,
        allow_reserved: false,
    };
    Ok(Parameter {
        inner_separators: inner_separators(&head.object),
        // The schema is the parameter itself, description and all.
        description: None,
        deprecated: false,
        ..head.into_parameter(serialization, Some(node.span()))
    })
}

/// Style and explode of a `collectionFormat`; `csv` is its default.
fn collection_style(format: Option<&str>, location: Location) -> (Style, bool) {
    match format {
        Some("ssv") => (Style::SpaceDelimited, false),
        Some("tsv") => (Style::TabDelimited, false),
        Some("pipes") => (Style::PipeDelimited, false),
        Some("multi") => (location.default_style(), true),
        _ => (location.default_style(), false),
    }
}

/// Returns the separators of lists within lists (Items Object): one character for each `items` that
/// is a list itself.
fn inner_separators(list: &Object<'_>) -> Vec<char> {
    const MAX_DEPTH: usize = 16;
    let mut separators = Vec::new();
    let mut items = list.object("items");
    while let Some(inner) = items.filter(|inner| {
        separators.len() < MAX_DEPTH && inner.text("type").as_deref() == Some("array")
    }) {
        separators.push(match inner.text("collectionFormat").as_deref() {
            Some("ssv") => ' ',
            Some("tsv") => '\t',
            Some("pipes") => '|',
            _ => ',',
        });
        items = inner.object("items");
    }
    separators
}

/// The body of an operation, from its parameters `in: body` and `in: formData`.
pub(crate) fn read_body(
    document: &Document,
    parameters: &[Node<'_>],
    consumes: &[String],
    method: &Method,
) -> Option<RequestBody> {
    let place = |node: &Node<'_>| node.object().and_then(|object| object.text("in"));
    let body = parameters
        .iter()
        .find(|node| place(node).as_deref() == Some("body"));
    if let Some(object) = body.and_then(|node| node.object()) {
        return payload_body(document, &object, consumes, method);
    }
    let fields = parameters
        .iter()
        .filter(|node| place(node).as_deref() == Some("formData"));
    form_body(fields.copied(), consumes)
}

/// The body that the parameter `in: body` describes.
fn payload_body(
    document: &Document,
    object: &Object<'_>,
    consumes: &[String],
    method: &Method,
) -> Option<RequestBody> {
    let schema = object.get("schema").map(Node::span);
    let media_type = |name: &str| {
        let is_bytes = || {
            object
                .get("schema")
                .is_some_and(|schema| is_binary(document, schema))
        };
        let kind = match MediaKind::of(name) {
            MediaKind::Json if name.contains('*') && is_bytes() => MediaKind::Binary,
            kind => kind,
        };
        let anything = kind == MediaKind::Json && name.contains('*');
        MediaType {
            name: if anything { "application/json" } else { name }.to_owned(),
            kind,
            schema: schema.map_or(BodySchema::Absent, BodySchema::At),
            base64: false,
            encoding: BTreeMap::new(),
            other_parts: Encoding::default(),
            positions: Default::default(),
        }
    };
    let mut media_types: Vec<MediaType> = consumes.iter().map(|name| media_type(name)).collect();
    if media_types.is_empty() {
        media_types.push(media_type("application/json"));
    }
    let body = arrange_body(document, media_types, method)?;
    Some(RequestBody {
        required: object.boolean("required").unwrap_or(false),
        description: object.text("description"),
        own_name: object.text("name"),
        ..body
    })
}

/// Returns the form that the parameters `in: formData` make up, one field each; `None` if there is
/// none.
fn form_body<'a>(
    parameters: impl Iterator<Item = Node<'a>>,
    consumes: &[String],
) -> Option<RequestBody> {
    let mut fields = Vec::new();
    let mut encoding = BTreeMap::new();
    for node in parameters {
        let Some(object) = node.object() else {
            continue;
        };
        let Some(name) = object.text("name") else {
            continue;
        };
        // The operation's own come first, and replace the path item's.
        if encoding.contains_key(&name) {
            continue;
        }
        let (style, explode) =
            collection_style(object.text("collectionFormat").as_deref(), Location::Query);
        let is_file = |object: &Object<'_>| object.text("type").as_deref() == Some("file");
        let binary =
            is_file(&object) || object.object("items").is_some_and(|items| is_file(&items));
        encoding.insert(
            name.clone(),
            Encoding {
                style: Some(style),
                explode: Some(explode),
                binary,
                inner_separators: inner_separators(&object),
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
        || (consumes
            .iter()
            .any(|name| MediaKind::of(name) == MediaKind::Multipart)
            && !consumes
                .iter()
                .any(|name| MediaKind::of(name) == MediaKind::Form));
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
        base64: false,
        encoding,
        other_parts: Encoding::default(),
        positions: Default::default(),
    };
    Some(RequestBody {
        required,
        description: None,
        media_type,
        for_lists: None,
        alternatives: Vec::new(),
        choice: String::new(),
        own_name: None,
    })
}

/// Returns the server of an operation that names its own `schemes`; none if it is the document's.
pub(crate) fn operation_servers(document: &Document, schemes: Node<'_>) -> Vec<ServerTemplate> {
    let own = server_of_schemes(document, &schemes.strings());
    if own.url == server(document).url {
        Vec::new()
    } else {
        vec![own]
    }
}

/// The server of the document, made from `schemes`, `host` and `basePath`.
pub(crate) fn server(document: &Document) -> ServerTemplate {
    server_of_schemes(
        document,
        &document
            .member("schemes")
            .map(Node::strings)
            .unwrap_or_default(),
    )
}

/// The one server under the first usable of `schemes`.
fn server_of_schemes(document: &Document, schemes: &[String]) -> ServerTemplate {
    let text = |name: &str| {
        document
            .member(name)
            .and_then(Node::string)
            .map(std::borrow::Cow::into_owned)
    };
    // Both are read as what people mean by them: the specification wants the host without a scheme,
    // and the path with a slash.
    let mut path = text("basePath").unwrap_or_default().trim().to_owned();
    if !path.is_empty() && !path.starts_with('/') {
        path.insert(0, '/');
    }
    let host = text("host").unwrap_or_default();
    let (written, host) = match host.trim().split_once("://") {
        Some((scheme, host)) => (Some(scheme.to_ascii_lowercase()), host),
        None => (None, host.trim().trim_start_matches('/')),
    };
    let host = host.trim_end_matches('/');
    let url = if host.is_empty() {
        // The host is then that of the document's URL.
        if path.is_empty() { "/".into() } else { path }
    } else {
        let own = document
            .url
            .as_ref()
            .map(|url| url.scheme().to_owned())
            .filter(|scheme| schemes.is_empty() || schemes.contains(scheme));
        let scheme = ["https", "http"]
            .into_iter()
            .find(|known| schemes.iter().any(|scheme| scheme == known))
            .map(str::to_owned);
        let scheme = if schemes.is_empty() {
            written.or(own)
        } else {
            own.or(scheme).or(written)
        };
        format!(
            "{}://{host}{path}",
            scheme.unwrap_or_else(|| "https".into())
        )
    };
    ServerTemplate::fixed(url)
}

/// Reads a Security Scheme Object.
///
/// # Errors
/// Why it cannot be used.
pub(crate) fn read_security_scheme(object: &Object<'_>) -> Result<SecurityScheme, String> {
    let kind = object.text("type").unwrap_or_default();
    match kind.as_str() {
        "apiKey" => read_api_key(object),
        "basic" => Ok(SecurityScheme::Http("basic".into())),
        "oauth2" => Ok(SecurityScheme::OAuth2 {
            flow: match object.text("flow").as_deref() {
                Some("password") => OAuthFlow::Password,
                Some("accessCode") => OAuthFlow::Consent,
                Some("implicit") => OAuthFlow::Implicit,
                _ => OAuthFlow::ClientCredentials,
            },
            token_url: object.text("tokenUrl"),
            consent: match object.text("flow").as_deref() {
                Some("accessCode") => ConsentUrls {
                    authorization: object.text("authorizationUrl"),
                    device_authorization: None,
                    token: object.text("tokenUrl"),
                },
                _ => ConsentUrls::default(),
            },
        }),
        other => Err(format!(
            "its type `{other}` is not one of apiKey, basic and oauth2"
        )),
    }
}

/// The one schema of a response, for all that the operation produces, and its examples by media
/// type.
pub(crate) fn response_content<'a>(response: &Object<'a>) -> (Option<Node<'a>>, Object<'a>) {
    let examples = response.object("examples").unwrap_or_default();
    (response.get("schema"), examples)
}

/// The media types of a response: those that the operation `produces`, else JSON.
pub(crate) fn produced(produces: &[String]) -> Vec<String> {
    if produces.is_empty() {
        vec!["application/json".into()]
    } else {
        produces.to_vec()
    }
}
