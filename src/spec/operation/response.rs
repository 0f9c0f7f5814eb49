//! Responses: what an operation declares that it answers, the same for every version of OpenAPI.

use openapiv3::StatusCode;
use serde::Deserialize as _;
use serde::de::IntoDeserializer as _;
use serde::de::value::Error as ValueError;

use super::{Operation, swagger2};
use crate::spec::document::{Document, Version};
use crate::spec::node::{Node, Object};

/// One declared response.
pub(crate) struct ResponseObject<'a> {
    /// The statuses for which the response is declared.
    pub status: DeclaredStatus,
    /// Its media types, in document order; none if there is no body.
    pub media: Vec<Media<'a>>,
}

/// The key of a response.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DeclaredStatus {
    /// `200` or `2XX`.
    Status(StatusCode),
    /// `default`: every status that no other key names.
    Default,
}

/// One media type of a response.
pub(crate) struct Media<'a> {
    /// The name as declared.
    pub name: String,
    /// The schema.
    pub schema: Option<Node<'a>>,
    /// The Media Type Object, for its examples; empty in 2.0.
    pub object: Object<'a>,
    /// The example of 2.0.
    pub example: Option<Node<'a>>,
}

impl DeclaredStatus {
    /// Returns true if the status is that of a success. `default` counts too: the caller checks
    /// that nothing else is there.
    fn is_success(&self) -> bool {
        match self {
            Self::Status(StatusCode::Code(code)) => (200..300).contains(code),
            Self::Status(StatusCode::Range(class)) => *class == 2,
            Self::Default => true,
        }
    }
}

/// The names of the headers that an operation declares for any of its responses, as they are
/// written.
pub(crate) fn header_names(document: &Document, operation: &Operation) -> Vec<String> {
    let declared = operation
        .responses
        .map(|span| document.node(span))
        .and_then(Node::object)
        .unwrap_or_default();
    let headers = |node: Node<'_>| -> Vec<String> {
        let response = document.object(node);
        let headers = response
            .and_then(|response| response.object("headers"))
            .unwrap_or_default();
        headers.iter().map(|(name, _)| name.to_owned()).collect()
    };
    declared
        .iter()
        .filter(|(status, _)| !status.starts_with("x-"))
        .flat_map(|(_, node)| headers(node))
        .collect()
}

/// Returns true if the replies are streams of values according to the document. Documents of gRPC
/// gateways say so in a reference or in a description.
pub(crate) fn may_stream(document: &Document, operation: &Operation) -> bool {
    const HINTS: [&str; 2] = ["#/x-stream-definitions/", "(streaming responses)"];
    operation.responses.is_some_and(|responses| {
        let text = document.node(responses).text().as_bytes();
        HINTS
            .iter()
            .any(|hint| memchr::memmem::find(text, hint.as_bytes()).is_some())
    })
}

/// Returns the description of the response that is declared for a status, or for its class.
pub(crate) fn description_of(
    document: &Document,
    operation: &Operation,
    status: http::StatusCode,
) -> Option<String> {
    let declared = document.node(operation.responses?).object()?;
    let class = status.as_u16() / 100;
    let keys = [
        status.as_str().to_owned(),
        format!("{class}XX"),
        format!("{class}xx"),
    ];
    let response = keys.iter().find_map(|key| declared.get(key))?;
    let said = document.object(response)?.text("description")?;
    Some(said.trim().to_owned()).filter(|said| !said.is_empty())
}

/// Returns the successes, best first: 2xx codes in rising order, then `2XX`; `default` only if
/// there is nothing else. A response that cannot be resolved is left out.
pub(crate) fn successes<'a>(
    document: &'a Document,
    operation: &Operation,
) -> Vec<ResponseObject<'a>> {
    let declared = operation
        .responses
        .map(|span| document.node(span))
        .and_then(Node::object)
        .unwrap_or_default();
    let read = |(status, node): (&str, Node<'a>)| {
        let status = read_status(status).filter(DeclaredStatus::is_success)?;
        let object = document.object(node)?;
        let media = if document.version() == Version::V2_0 {
            swagger_media(&operation.produces, &object)
        } else {
            media(document, &object)
        };
        Some(ResponseObject { status, media })
    };
    let declared = declared
        .iter()
        .filter(|(status, _)| !status.starts_with("x-"));
    let mut found: Vec<ResponseObject<'a>> = declared.filter_map(read).collect();
    if found
        .iter()
        .any(|response| response.status != DeclaredStatus::Default)
    {
        found.retain(|response| response.status != DeclaredStatus::Default);
    }
    found.sort_by(|a, b| a.status.cmp(&b.status));
    found
}

/// The names of the properties of a successful reply, in the order in which the document lists
/// them; of a list those of its items too.
pub(crate) fn reply_properties(document: &Document, operation: &Operation) -> Vec<String> {
    const MAX_LEVELS: usize = 3;
    let responses = successes(document, operation);
    let mut schema = responses
        .iter()
        .flat_map(|response| &response.media)
        .find_map(|media| media.schema);
    let mut names = Vec::new();
    for _ in 0..MAX_LEVELS {
        let Some(object) = schema
            .and_then(|schema| document.resolve(schema).ok())
            .and_then(Node::object)
        else {
            break;
        };
        let properties = object.object("properties").unwrap_or_default();
        names.extend(properties.iter().map(|(name, _)| name.to_owned()));
        schema = object.get("items");
    }
    names
}

/// Reads the key of a Responses Object. One that is not a status (`200 OK`) counts by its first
/// digit; `None` if it has none.
fn read_status(key: &str) -> Option<DeclaredStatus> {
    if key == "default" {
        return Some(DeclaredStatus::Default);
    }
    let declared: Result<StatusCode, ValueError> = StatusCode::deserialize(key.into_deserializer());
    let first_digit = || {
        Some(StatusCode::Range(
            u16::try_from(key.chars().next()?.to_digit(10)?).ok()?,
        ))
    };
    declared
        .ok()
        .or_else(first_digit)
        .map(DeclaredStatus::Status)
}

fn media<'a>(document: &'a Document, response: &Object<'a>) -> Vec<Media<'a>> {
    let content = response.object("content").unwrap_or_default();
    let read = |(name, node): (&str, Node<'a>)| {
        let object = document
            .resolve(node)
            .unwrap_or(node)
            .object()
            .unwrap_or_default();
        Media {
            name: name.to_owned(),
            schema: object.get("schema"),
            example: None,
            object,
        }
    };
    content.iter().map(read).collect()
}

fn swagger_media<'a>(produces: &[String], response: &Object<'a>) -> Vec<Media<'a>> {
    let (schema, examples) = swagger2::response_content(response);
    if schema.is_none() && examples.is_empty() {
        return Vec::new();
    }
    let names = swagger2::produced(produces).into_iter();
    names
        .map(|name| Media {
            schema,
            object: Object::default(),
            example: examples.get(&name),
            name,
        })
        .collect()
}
