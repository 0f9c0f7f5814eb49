//! Swagger 2.0: what it writes otherwise than OpenAPI 3, read into the shapes of OpenAPI 3.

use std::collections::BTreeMap;

use http::Method;

use super::alternatives::arrange_body;
use super::parameter::{Location, Parameter, Serialization, Style, read_common};
use super::request_body::{BodySchema, Encoding, FormField, MediaType, RequestBody, is_binary};
use super::security_scheme::{ConsentUrls, OAuthFlow, SecurityScheme, read_api_key};
use super::server_template::ServerTemplate;
use crate::spec::document::Document;
use crate::spec::media_type::{MediaKind, essence};
use crate::spec::node::{Node, Object};

/// Returns true if a parameter is a part of the body.
pub(crate) fn is_in_body(parameter: Node<'_>) -> bool {
    matches!(place(parameter).as_str(), "body" | "formData")
}

/// The media types of an operation under `consumes` or `produces`, else the document's.
pub(crate) fn media_types(document: &Document, operation: &Object<'_>, key: &str) -> Vec<String> {
    let declared = operation.get(key).or_else(|| document.member(key));
    declared.map(Node::strings).unwrap_or_default()
}

/// The `in` of a parameter.
fn place(node: Node<'_>) -> String {
    let place = node.member("in").and_then(Node::scalar);
    place.unwrap_or_default().into_owned()
}

/// The media types that an operation takes: those of its own `consumes`, else those that its header
/// parameter `Content-Type` lists, else those of the document. A `consumes` of mere bytes says less
/// than that parameter. Only OpenAPI 3 ignores a parameter of that name.
pub(crate) fn consumed(
    document: &Document,
    operation: &Object<'_>,
    parameters: &[Node<'_>],
) -> Vec<String> {
    let is_header = |object: &Object<'_>| {
        [("in", "header"), ("name", "content-type")]
            .iter()
            .all(|(key, value)| {
                let text = object.text(key);
                text.is_some_and(|text| text.eq_ignore_ascii_case(value))
            })
    };
    let mut objects = parameters.iter().filter_map(|node| node.object());
    let mut listed = Vec::new();
    let own = operation.strings("consumes");
    if own
        .iter()
        .all(|name| essence(name) == "application/octet-stream")
        && let Some(header) = objects.find(is_header)
    {
        listed = header.strings("enum");
        let default = header.text("default");
        listed.extend(default.filter(|default| !listed.contains(default)));
        listed.retain(|value| value.contains('/'));
    }
    if listed.is_empty() {
        return media_types(document, operation, "consumes");
    }
    listed
}

/// Reads a Parameter Object that is not a part of the body, already resolved.
///
/// # Errors
/// A sentence if the parameter cannot be used.
pub(crate) fn read_parameter(node: Node<'_>) -> Result<Parameter, String> {
    let (parameter, object) = read_common(node)?;
    let (style, explode) = collection_style(&object, parameter.location);
    Ok(Parameter {
        serialization: Serialization::Style {
            style,
            explode,
            allow_reserved: false,
        },
        inner_separators: inner_separators(&object),
        // The schema is the parameter itself, description and all.
        schema: Some(node.span()),
        description: None,
        deprecated: false,
        ..parameter
    })
}

/// Style and explode of a `collectionFormat`; `csv` is its default.
fn collection_style(object: &Object<'_>, location: Location) -> (Style, bool) {
    match object.text("collectionFormat").as_deref() {
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
    let mut inner = list.object("items");
    while separators.len() < MAX_DEPTH && inner.is("type", "array") {
        separators.push(match inner.text("collectionFormat").as_deref() {
            Some("ssv") => ' ',
            Some("tsv") => '\t',
            Some("pipes") => '|',
            _ => ',',
        });
        inner = inner.object("items");
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
    let nodes = || parameters.iter().copied();
    if let Some(body) = nodes().find(|node| place(*node) == "body") {
        let object = body.object().unwrap_or_default();
        return payload_body(document, &object, consumes, method);
    }
    form_body(nodes().filter(|node| place(*node) == "formData"), consumes)
}

/// The body that the parameter `in: body` describes.
fn payload_body(
    document: &Document,
    object: &Object<'_>,
    consumes: &[String],
    method: &Method,
) -> Option<RequestBody> {
    let schema = object.get("schema");
    let media_type = |name: &str| {
        let is_bytes = || schema.is_some_and(|schema| is_binary(document, schema));
        let (name, kind) = match MediaKind::of(name) {
            MediaKind::Json if name.contains('*') && is_bytes() => (name, MediaKind::Binary),
            MediaKind::Json if name.contains('*') => ("application/json", MediaKind::Json),
            kind => (name, kind),
        };
        MediaType {
            name: name.to_owned(),
            kind,
            schema: schema
                .map(Node::span)
                .map_or(BodySchema::Absent, BodySchema::At),
            ..MediaType::default()
        }
    };
    let mut media_types: Vec<MediaType> = consumes.iter().map(|name| media_type(name)).collect();
    if media_types.is_empty() {
        media_types.push(media_type("application/json"));
    }
    let body = arrange_body(document, media_types, method)?;
    Some(RequestBody {
        required: object.is_true("required"),
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
        let object = node.object().unwrap_or_default();
        let Some(name) = object.text("name") else {
            continue;
        };
        // The operation's own come first, and replace the path item's.
        if encoding.contains_key(&name) {
            continue;
        }
        let (style, explode) = collection_style(&object, Location::Query);
        let binary = object.is("type", "file") || object.object("items").is("type", "file");
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
            required: object.is_true("required"),
            schema: node.span(),
            allow_empty: object.is_true("allowEmptyValue"),
        });
    }
    if fields.is_empty() {
        return None;
    }
    let takes = |kind| consumes.iter().any(|name| MediaKind::of(name) == kind);
    let name = if encoding.values().any(|encoding| encoding.binary)
        || (takes(MediaKind::Multipart) && !takes(MediaKind::Form))
    {
        "multipart/form-data"
    } else {
        "application/x-www-form-urlencoded"
    };
    Some(RequestBody {
        required: fields.iter().any(|field| field.required),
        media_type: MediaType {
            name: name.into(),
            kind: MediaKind::of(name),
            schema: BodySchema::Fields(fields),
            encoding,
            ..MediaType::default()
        },
        ..RequestBody::default()
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
    let schemes = document.member("schemes").map(Node::strings);
    server_of_schemes(document, &schemes.unwrap_or_default())
}

/// The one server under the first usable of `schemes`.
fn server_of_schemes(document: &Document, schemes: &[String]) -> ServerTemplate {
    let text = |name| {
        document
            .member(name)
            .and_then(Node::string)
            .unwrap_or_default()
    };
    // Both are read as what people mean by them: the specification wants the host without a scheme,
    // and the path with a slash.
    let mut path = text("basePath").trim().to_owned();
    if !path.is_empty() && !path.starts_with('/') {
        path.insert(0, '/');
    }
    let host = text("host");
    let (written, host) = match host.trim().split_once("://") {
        Some((scheme, host)) => (Some(scheme.to_ascii_lowercase()), host),
        None => (None, host.trim().trim_start_matches('/')),
    };
    let host = host.trim_end_matches('/');
    let url = if host.is_empty() {
        // The host is then that of the document's URL.
        if path.is_empty() { "/".into() } else { path }
    } else {
        let has = |known: &str| schemes.iter().any(|scheme| scheme == known);
        let own = document.url.as_ref().map(url::Url::scheme);
        let scheme = if schemes.is_empty() {
            written.as_deref().or(own)
        } else {
            let secure_first = ["https", "http"].into_iter().find(|known| has(known));
            own.filter(|own| has(own))
                .or(secure_first)
                .or(written.as_deref())
        };
        format!("{}://{host}{path}", scheme.unwrap_or("https"))
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
        "oauth2" => {
            let flow = match object.text("flow").as_deref() {
                Some("password") => OAuthFlow::Password,
                Some("accessCode") => OAuthFlow::Consent,
                Some("implicit") => OAuthFlow::Implicit,
                _ => OAuthFlow::ClientCredentials,
            };
            let mut consent = ConsentUrls::default();
            if flow == OAuthFlow::Consent {
                consent.authorization = object.text("authorizationUrl");
                consent.token = object.text("tokenUrl");
            }
            Ok(SecurityScheme::OAuth2 {
                flow,
                token_url: object.text("tokenUrl"),
                consent,
            })
        }
        other => Err(format!(
            "its type `{other}` is not one of apiKey, basic and oauth2"
        )),
    }
}
