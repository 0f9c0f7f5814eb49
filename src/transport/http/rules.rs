//! Rules of MCP for the headers of a message, and for the status of its answer (transports,
//! "Streamable HTTP").

use axum::http::{HeaderMap, StatusCode, header};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rmcp::model::{ErrorCode, ErrorData};
use serde_json::Value;

use crate::mcp::protocol::answer::{McpAnswer, McpRefusal};
use crate::mcp::protocol::message::{McpRequest, Message, Method, RequestParameters};
use crate::mcp::protocol::version::ProtocolVersion;
use crate::spec::media_type::essence;

const VERSION_HEADER: &str = "mcp-protocol-version";
const METHOD_HEADER: &str = "mcp-method";
const NAME_HEADER: &str = "mcp-name";

/// Reason for which the head of a POST is refused.
pub(super) struct HeadRefusal(pub(super) StatusCode, pub(super) &'static str);

/// Reason for which a message is refused because of its headers.
pub(super) enum MessageRefusal {
    Text(String),
    Error(ErrorData),
}

impl From<ErrorData> for MessageRefusal {
    fn from(error: ErrorData) -> Self {
        Self::Error(error)
    }
}

/// Returns true if `Accept` names all of these types.
pub(super) fn accepts(headers: &HeaderMap, types: &[&str]) -> bool {
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| types.iter().all(|name| accept.contains(name)))
}

/// Checks that a POST is JSON.
pub(super) fn check_content_type(headers: &HeaderMap) -> Result<(), HeadRefusal> {
    let content_type = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    // Compared as a whole: a web form must not be able to call, and `application/jsonx` is
    // something else.
    if essence(content_type.unwrap_or_default()) != "application/json" {
        let why = "the body must be application/json\n";
        return Err(HeadRefusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    Ok(())
}

/// The version of a request without a message.
///
/// # Errors
/// It is not known here.
pub(super) fn version_header(headers: &HeaderMap) -> Result<Option<ProtocolVersion>, String> {
    match version_text(headers)? {
        None => Ok(None),
        Some(name) => known_version(name).map(Some),
    }
}

fn version_text(headers: &HeaderMap) -> Result<Option<&str>, String> {
    let invalid = || "Bad Request: Invalid MCP-Protocol-Version header encoding".to_owned();
    let mut values = headers.get_all(VERSION_HEADER).iter();
    let value = values.next();
    if values.next().is_some() {
        return Err("Bad Request: MCP-Protocol-Version is there twice".into());
    }
    value
        .map(|value| value.to_str().map_err(|_| invalid()))
        .transpose()
}

fn known_version(name: &str) -> Result<ProtocolVersion, String> {
    ProtocolVersion::parse(name)
        .ok_or_else(|| format!("Bad Request: Unsupported MCP-Protocol-Version: {name}"))
}

/// Checks that a client accepts both kinds of answers.
pub(super) fn check_accept(headers: &HeaderMap) -> Result<(), HeadRefusal> {
    if accepts(headers, &["application/json", "text/event-stream"]) {
        return Ok(());
    }
    let why = "Not Acceptable: Client must accept both application/json and text/event-stream";
    Err(HeadRefusal(StatusCode::NOT_ACCEPTABLE, why))
}

/// The version that the header names, if the headers say the same as the message.
///
/// # Errors
/// The version is not known, or headers are missing or say something else.
pub(super) fn check_message(
    headers: &HeaderMap,
    message: &Message,
) -> Result<Option<ProtocolVersion>, MessageRefusal> {
    let header = version_text(headers).map_err(MessageRefusal::Text)?;
    let request = match message {
        Message::Request(request) => Some(request),
        Message::Notification(_) | Message::Answer(_) => None,
    };
    if let Some(request) = request.filter(|request| request.method == Method::Initialize) {
        check_initialize(headers, header, &request.parameters)?;
        return Ok(header.and_then(ProtocolVersion::parse));
    }
    let named = request.and_then(|request| request.parameters.version_name());
    // What a request names for itself is judged with it.
    if let (Some(name), None) = (header, named) {
        known_version(name).map_err(MessageRefusal::Text)?;
    }
    let repeats_method = header.is_some_and(repeats_method);
    if repeats_method {
        match message {
            Message::Request(request) => {
                check_method(headers, request.method.name(), &request.parameters)?;
            }
            Message::Notification(notification) => {
                check_method(headers, &notification.method, &notification.parameters)?;
            }
            Message::Answer(_) => {}
        }
    }
    let Some(request) = request else {
        return Ok(header.and_then(ProtocolVersion::parse));
    };
    match (named, header) {
        (None, _) if repeats_method || request.method == Method::Discover => {
            request.parameters.require_keys()?;
        }
        (Some(_), None) => {
            return Err(mismatch(
                "request _meta protocolVersion requires MCP-Protocol-Version header".into(),
            ));
        }
        (Some(named), Some(header)) if named != header => {
            return Err(mismatch(format!(
                "MCP-Protocol-Version header ({header}) does not match request _meta protocolVersion ({named})"
            )));
        }
        _ => {}
    }
    Ok(header.and_then(ProtocolVersion::parse))
}

/// Returns true if messages of a version, which need not be known, repeat their method and name in
/// headers. Names of versions are dates.
fn repeats_method(version: &str) -> bool {
    version >= ProtocolVersion::FIRST_WITHOUT_HANDSHAKE.name()
}

fn mismatch(why: String) -> MessageRefusal {
    MessageRefusal::Error(ErrorData::header_mismatch(why, None))
}

/// A handshake need not repeat its method, but what it repeats must agree.
fn check_initialize(
    headers: &HeaderMap,
    header: Option<&str>,
    parameters: &RequestParameters,
) -> Result<(), MessageRefusal> {
    let body = parameters
        .rest
        .get("protocolVersion")
        .and_then(Value::as_str);
    if let (Some(header), Some(body)) = (header, body)
        && header != body
    {
        let why = format!(
            "Invalid Request: MCP-Protocol-Version header ({header}) does not match initialize params.protocolVersion ({body})"
        );
        return Err(ErrorData::invalid_request(why, None).into());
    }
    if header.is_some_and(repeats_method) && headers.contains_key(METHOD_HEADER) {
        check_method_header(headers, "initialize")?;
    }
    Ok(())
}

/// The value of a header that is there at most once: who takes another one of several would judge
/// another message.
fn sole_header<'h>(
    headers: &'h HeaderMap,
    name: &str,
    label: &str,
) -> Result<Option<&'h str>, MessageRefusal> {
    let mut values = headers.get_all(name).iter();
    let value = values.next();
    if values.next().is_some() {
        return Err(mismatch(format!("duplicate {label} header")));
    }
    Ok(value.and_then(|value| value.to_str().ok()))
}

fn check_method_header(headers: &HeaderMap, method: &str) -> Result<(), MessageRefusal> {
    match sole_header(headers, METHOD_HEADER, "Mcp-Method")? {
        None => Err(mismatch("missing required Mcp-Method header".into())),
        Some(value) if value != method => Err(mismatch(format!(
            "Mcp-Method header `{value}` does not match body method `{method}`"
        ))),
        Some(_) => Ok(()),
    }
}

/// 2026-07-28: `Mcp-Method` and `Mcp-Name` repeat what a message says, each once.
fn check_method(
    headers: &HeaderMap,
    method: &str,
    parameters: &RequestParameters,
) -> Result<(), MessageRefusal> {
    check_method_header(headers, method)?;
    let name = match method {
        "tools/call" | "prompts/get" => parameters.name.as_ref(),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
            parameters.rest.get("uri")
        }
        "tasks/get" | "tasks/update" | "tasks/cancel" => parameters.rest.get("taskId"),
        _ => None,
    };
    let Some(name) = name.and_then(Value::as_str) else {
        return Ok(());
    };
    let Some(value) = sole_header(headers, NAME_HEADER, "Mcp-Name")? else {
        return Err(mismatch(format!(
            "missing required Mcp-Name header for `{method}`"
        )));
    };
    if value == name && !value.starts_with("=?") {
        return Ok(());
    }
    let Some(decoded) = decode(value) else {
        return Err(mismatch("Mcp-Name header is not valid Base64".into()));
    };
    if decoded == name {
        Ok(())
    } else {
        Err(mismatch(format!(
            "Mcp-Name header `{decoded}` does not match body value `{name}`"
        )))
    }
}

/// A value that a header cannot hold is written as `=?base64?…?=`.
fn decode(value: &str) -> Option<String> {
    match value
        .strip_prefix("=?base64?")
        .and_then(|inner| inner.strip_suffix("?="))
    {
        Some(inner) => String::from_utf8(BASE64_STANDARD.decode(inner).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

/// Returns true if a message belongs to a session, if there are sessions.
pub(super) fn is_of_session(header: Option<ProtocolVersion>, message: &Message) -> bool {
    let version = match message {
        Message::Request(request) if request.method == Method::Initialize => return true,
        Message::Request(request) => match request.parameters.version_name() {
            // One that is not known is refused.
            Some(named) => {
                return ProtocolVersion::parse(named).is_some_and(ProtocolVersion::has_handshake);
            }
            None => header,
        },
        Message::Notification(_) | Message::Answer(_) => header,
    };
    version.is_none_or(ProtocolVersion::has_handshake)
}

/// Version of a request, on which the status of its answer depends.
#[derive(Clone, Copy)]
pub(super) struct Negotiation {
    is_in_request: bool,
    is_malformed: bool,
}

/// Reads the version of a request.
pub(super) fn negotiation(request: &McpRequest) -> Negotiation {
    let is_in_request =
        request.parameters.version_name().is_some() || request.method == Method::Discover;
    Negotiation {
        is_in_request,
        is_malformed: is_in_request && !request.parameters.missing_keys().is_empty(),
    }
}

impl Negotiation {
    /// The status of an answer: since 2026-07-28 it says what is wrong with the request, and before
    /// it is 200.
    pub(super) fn status(self, outcome: &Result<McpAnswer, McpRefusal>) -> StatusCode {
        let Err(McpRefusal::Error(error)) = outcome else {
            return StatusCode::OK;
        };
        match error.code {
            _ if !self.is_in_request => StatusCode::OK,
            ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
            | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
            | ErrorCode::HEADER_MISMATCH => StatusCode::BAD_REQUEST,
            ErrorCode::INVALID_PARAMS if self.is_malformed => StatusCode::BAD_REQUEST,
            ErrorCode::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
            _ => StatusCode::OK,
        }
    }
}
