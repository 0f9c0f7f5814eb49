//! The rules of MCP for the headers of a message and for the status of its answer (transports,
//! "Streamable HTTP").

use std::borrow::Cow;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rmcp::model::{ErrorCode, ErrorData};
use serde_json::Value;

use super::host_and_origin::refused;
use crate::mcp::connections::request_origin::sole_header;
use crate::mcp::protocol::answer::{Frame, McpAnswer, McpRefusal};
use crate::mcp::protocol::message::{McpRequest, Message, Method, RequestParameters};
use crate::mcp::protocol::version::ProtocolVersion;
use crate::spec::media_type::essence;

const VERSION_HEADER: &str = "mcp-protocol-version";
const METHOD_HEADER: &str = "Mcp-Method";
const NAME_HEADER: &str = "Mcp-Name";

/// Refuses a request with a message of JSON-RPC.
pub(super) fn refused_message<T>(body: impl Into<Body>) -> Result<T, Box<Response>> {
    refused((
        StatusCode::BAD_REQUEST,
        [(header::CONTENT_TYPE, "application/json")],
        body.into(),
    ))
}

/// Returns true if `Accept` names all of these types.
pub(super) fn accepts(headers: &HeaderMap, types: &[&str]) -> bool {
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| types.iter().all(|name| accept.contains(name)))
}

/// Checks that a POST is JSON.
pub(super) fn check_content_type(headers: &HeaderMap) -> Result<(), Box<Response>> {
    let content_type = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    // Compared as a whole: a web form must not be able to call, and `application/jsonx` is
    // something else.
    if essence(content_type.unwrap_or_default()) != "application/json" {
        let why = "the body must be application/json\n";
        return refused((StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    Ok(())
}

/// The version of a request without a message.
///
/// # Errors
/// It is not known here.
pub(super) fn version_header(
    headers: &HeaderMap,
) -> Result<Option<ProtocolVersion>, Box<Response>> {
    version_text(headers)?.map(known_version).transpose()
}

fn version_text(headers: &HeaderMap) -> Result<Option<&str>, Box<Response>> {
    let value = sole_header(headers, VERSION_HEADER);
    let value = value.map_err(|()| "Bad Request: MCP-Protocol-Version is there twice");
    let text = value.and_then(|value| {
        let text = value.map(HeaderValue::to_str).transpose();
        text.map_err(|_| "Bad Request: Invalid MCP-Protocol-Version header encoding")
    });
    text.or_else(|why| refused((StatusCode::BAD_REQUEST, why)))
}

fn known_version(name: &str) -> Result<ProtocolVersion, Box<Response>> {
    let why = || format!("Bad Request: Unsupported MCP-Protocol-Version: {name}");
    let refuse = || refused((StatusCode::BAD_REQUEST, why()));
    ProtocolVersion::parse(name).map_or_else(refuse, Ok)
}

/// Checks that a client accepts both kinds of answers.
pub(super) fn check_accept(headers: &HeaderMap) -> Result<(), Box<Response>> {
    if accepts(headers, &["application/json", "text/event-stream"]) {
        return Ok(());
    }
    let why = "Not Acceptable: Client must accept both application/json and text/event-stream";
    refused((StatusCode::NOT_ACCEPTABLE, why))
}

/// The version that the header names, if the headers say the same as the message.
///
/// # Errors
/// The version is not known, or headers are missing or say something else.
pub(super) fn check_message(
    headers: &HeaderMap,
    message: &Message,
) -> Result<Option<ProtocolVersion>, Box<Response>> {
    let header = version_text(headers)?;
    let request = match message {
        Message::Request(request) => Some(request),
        Message::Notification(_) | Message::Answer(_) => None,
    };
    // What a request names for itself is judged with it.
    let is_judged_here = request.is_none_or(|request| {
        request.method != Method::Initialize && request.parameters.version_name().is_none()
    });
    if let Some(name) = header.filter(|_| is_judged_here) {
        known_version(name)?;
    }
    compare(headers, header, message, request).or_else(|error| {
        let id = request.map(|request| &request.id);
        refused_message(Frame::of_error(id, &error).into_bytes())
    })?;
    Ok(header.and_then(ProtocolVersion::parse))
}

/// Compares what the headers say with the message, which may be a request.
fn compare(
    headers: &HeaderMap,
    header: Option<&str>,
    message: &Message,
    request: Option<&McpRequest>,
) -> Result<(), ErrorData> {
    if let Some(request) = request.filter(|request| request.method == Method::Initialize) {
        return check_initialize(headers, header, &request.parameters);
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
        return Ok(());
    };
    match (request.parameters.version_name(), header) {
        (None, _) if repeats_method || request.method == Method::Discover => {
            request.parameters.require_keys()
        }
        (Some(_), None) => {
            mismatch("request _meta protocolVersion requires MCP-Protocol-Version header")
        }
        (Some(named), Some(header)) if named != header => mismatch(format!(
            "MCP-Protocol-Version header ({header}) does not match request _meta protocolVersion ({named})"
        )),
        _ => Ok(()),
    }
}

/// Returns true if messages of a version, which need not be known, repeat their method and name in
/// headers. Names of versions are dates.
fn repeats_method(version: &str) -> bool {
    version >= ProtocolVersion::FIRST_WITHOUT_HANDSHAKE.name()
}

fn mismatch<T>(why: impl Into<Cow<'static, str>>) -> Result<T, ErrorData> {
    Err(ErrorData::header_mismatch(why, None))
}

/// A handshake need not repeat its method, but what it repeats must agree.
fn check_initialize(
    headers: &HeaderMap,
    header: Option<&str>,
    parameters: &RequestParameters,
) -> Result<(), ErrorData> {
    let body = parameters.rest.get("protocolVersion");
    if let (Some(header), Some(body)) = (header, body.and_then(Value::as_str))
        && header != body
    {
        let why = format!(
            "Invalid Request: MCP-Protocol-Version header ({header}) does not match initialize params.protocolVersion ({body})"
        );
        return Err(ErrorData::invalid_request(why, None));
    }
    if header.is_some_and(repeats_method) && headers.contains_key(METHOD_HEADER) {
        check_method_header(headers, "initialize")?;
    }
    Ok(())
}

/// The text of a header that is there at most once.
fn header_text<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, ErrorData> {
    let value = sole_header(headers, name);
    let value = value.or_else(|()| mismatch(format!("duplicate {name} header")))?;
    Ok(value.and_then(|value| value.to_str().ok()))
}

fn check_method_header(headers: &HeaderMap, method: &str) -> Result<(), ErrorData> {
    match header_text(headers, METHOD_HEADER)? {
        None => mismatch("missing required Mcp-Method header"),
        Some(value) if value != method => mismatch(format!(
            "Mcp-Method header `{value}` does not match body method `{method}`"
        )),
        Some(_) => Ok(()),
    }
}

/// 2026-07-28: `Mcp-Method` and `Mcp-Name` repeat what a message says, each once.
fn check_method(
    headers: &HeaderMap,
    method: &str,
    parameters: &RequestParameters,
) -> Result<(), ErrorData> {
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
    let Some(value) = header_text(headers, NAME_HEADER)? else {
        return mismatch(format!("missing required Mcp-Name header for `{method}`"));
    };
    match decode(value) {
        None => mismatch("Mcp-Name header is not valid Base64"),
        Some(decoded) if decoded != name => mismatch(format!(
            "Mcp-Name header `{decoded}` does not match body value `{name}`"
        )),
        Some(_) => Ok(()),
    }
}

/// A value that a header cannot hold is written as `=?base64?…?=`.
fn decode(value: &str) -> Option<Cow<'_, str>> {
    let inner = value.strip_prefix("=?base64?");
    let Some(inner) = inner.and_then(|inner| inner.strip_suffix("?=")) else {
        return Some(value.into());
    };
    let decoded = String::from_utf8(BASE64_STANDARD.decode(inner).ok()?);
    decoded.ok().map(Cow::Owned)
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
        let Err(McpRefusal::Error(error) | McpRefusal::InvalidCall(error)) = outcome else {
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
