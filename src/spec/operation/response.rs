//! Responses: what an operation declares that it answers, the same for every version of OpenAPI.

use openapiv3::StatusCode;
use serde::Deserialize as _;
use serde::de::IntoDeserializer as _;
use serde::de::value::Error as ValueError;

use super::Operation;
use crate::spec::document::{Document, Version};
use crate::spec::node::{Node, Object};

/// One declared response.
pub(crate) struct ResponseObject<'a> {
    /// The statuses for which the response is declared.
    pub(crate) status: DeclaredStatus,
    /// Its media types, in document order; none if there is no body.
    pub(crate) media: Vec<Media<'a>>,
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
    pub(crate) name: String,
    /// The schema.
    pub(crate) schema: Option<Node<'a>>,
    /// The Media Type Object, for its `examples`; empty in 2.0.
    pub(crate) object: Object<'a>,
    /// Its `example`.
    pub(crate) example: Option<Node<'a>>,
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
    let headers = |(_, node): (&str, _)| -> Vec<String> {
        let response = document.object(node).unwrap_or_default();
        let headers = response.object("headers");
        headers.iter().map(|(name, _)| name.to_owned()).collect()
    };
    document
        .object_at(operation.responses)
        .iter()
        .filter(|(status, _)| !status.starts_with("x-"))
        .flat_map(headers)
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
    let declared = document.object_at(operation.responses);
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
    let declared = document.object_at(operation.responses);
    let read = |(status, node): (&str, Node<'a>)| {
        if status.starts_with("x-") {
            return None;
        }
        let status = read_status(status).filter(DeclaredStatus::is_success)?;
        let object = document.object(node)?;
        let media = if document.version() == Version::V2_0 {
            swagger_media(&operation.produces, &object)
        } else {
            media(document, &object)
        };
        Some(ResponseObject { status, media })
    };
    let mut found: Vec<ResponseObject<'a>> = declared.iter().filter_map(read).collect();
    let has_status = |response: &ResponseObject<'_>| response.status != DeclaredStatus::Default;
    if found.iter().any(has_status) {
        found.retain(has_status);
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
        let Some(object) = schema.and_then(|schema| document.object(schema)) else {
            break;
        };
        let properties = object.object("properties");
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
    let read = |(name, node): (&str, Node<'a>)| {
        let object = document.open(node);
        Media {
            name: name.to_owned(),
            schema: object.get("schema"),
            example: object.get("example"),
            object,
        }
    };
    response.object("content").iter().map(read).collect()
}

/// The one schema of a response of 2.0, for all that the operation produces, and its examples by
/// media type.
fn swagger_media<'a>(produces: &[String], response: &Object<'a>) -> Vec<Media<'a>> {
    let (schema, examples) = (response.get("schema"), response.object("examples"));
    if schema.is_none() && examples.is_empty() {
        return Vec::new();
    }
    let names = match produces {
        [] => &["application/json".to_owned()],
        names => names,
    };
    let media = |name: &String| Media {
        schema,
        object: Object::default(),
        example: examples.get(name),
        name: name.clone(),
    };
    names.iter().map(media).collect()
}
