//! Records of a request for metrics, traces and the audit log: its arrival and its end.

use http::Version;
use rmcp::model::{ErrorCode, ErrorData, Implementation, ServerResult};

use super::connections::request_origin::{RequestOrigin, sole_text};
use super::protocol::answer::{McpAnswer, McpRefusal};
use super::protocol::message::{McpRequest, Method};
use super::protocol::version::ProtocolVersion;
use crate::observe;
use crate::observe::call::{Arrival, CallObservation};
use crate::observe::metrics::TOOLS_CALL;
use crate::observe::metrics::labels::CallOutcome;
use crate::observe::traces::ArrivedContexts;
use crate::observe::traces::span::TraceContext;

/// Records the arrival of a request; `None` in place of one that cannot be read. Parts for the
/// audit log or traces only are left out if there are none.
pub(crate) fn arrival(origin: &RequestOrigin, request: Option<&McpRequest>) -> Arrival {
    let parameters = request.map(|request| &request.parameters);
    let named = request.and_then(|request| match request.method {
        Method::Initialize => request.parameters.rest.get("protocolVersion")?.as_str(),
        _ => request.parameters.version_name(),
    });
    let protocol_version = match named {
        Some(name) => ProtocolVersion::label(name),
        None => origin
            .version()
            .map(ProtocolVersion::name)
            .unwrap_or_default(),
    };
    let mut arrival = Arrival {
        transport: if origin.http.is_some() { "tcp" } else { "pipe" },
        protocol_version,
        ..Arrival::default()
    };
    if observe::audit().is_some() {
        arrival.client = client_name(origin);
        // If no client has given a name, rmcp gives its own.
        let said = origin
            .client_info(parameters)
            .filter(|client| *client != Implementation::from_build_env());
        arrival.claimed = said.map(|client| format!("{} {}", client.name, client.version));
    }
    if observe::tracer().is_some() {
        arrival.http_version = origin.http.and_then(http_version);
        arrival.request_id = request.map(|request| request.id.to_string());
    }
    if observe::names_traces() {
        let meta = parameters.map(|parameters| &parameters.meta);
        let message = meta
            .and_then(|meta| TraceContext::read(meta.get_traceparent()?, meta.get_tracestate()));
        arrival.contexts = arrived_contexts(message, origin);
    }
    arrival
}

/// The contexts of a message and of its HTTP request. Over stdio the client is the one that started
/// this process.
fn arrived_contexts(message: Option<TraceContext>, origin: &RequestOrigin) -> ArrivedContexts {
    let headers = &origin.caller.headers;
    // Several lines are one list (RFC 9110 section 5.3); several parents name none.
    let read = |parent| {
        let states: Vec<&str> = headers
            .get_all("tracestate")
            .iter()
            .filter_map(|line| line.to_str().ok())
            .collect();
        TraceContext::read(parent, Some(&states.join(",")))
    };
    ArrivedContexts {
        message,
        request: sole_text(headers, "traceparent").and_then(read),
        is_trusted: origin.http.is_none() || origin.caller.client.is_some(),
    }
}

fn http_version(version: Version) -> Option<&'static str> {
    match version {
        Version::HTTP_10 => Some("1.0"),
        Version::HTTP_11 => Some("1.1"),
        Version::HTTP_2 => Some("2"),
        _ => None,
    }
}

/// Returns the authenticated name of the client, else its address.
fn client_name(origin: &RequestOrigin) -> Option<String> {
    let proved = origin
        .caller
        .client
        .as_ref()
        .and_then(|client| client.name.as_deref());
    let address = || {
        origin
            .caller
            .address
            .map(|address| format!("address:{}", address.to_canonical()))
    };
    proved.map(str::to_owned).or_else(address)
}

/// Returns the outcome of a request, as far as its answer shows it.
pub(crate) fn judge(outcome: &Result<McpAnswer, McpRefusal>) -> CallOutcome {
    match outcome {
        Ok(McpAnswer::Tool(result)) => result.outcome(),
        Ok(McpAnswer::Result(result))
            if matches!(**result, ServerResult::InputRequiredResult(_)) =>
        {
            CallOutcome::Asked
        }
        Ok(_) => CallOutcome::Ok,
        Err(McpRefusal::MissingScopes(_)) => CallOutcome::ScopeMissing,
        Err(McpRefusal::InvalidCall(_)) => CallOutcome::InvalidMessage,
        Err(McpRefusal::Error(ErrorData { code, .. })) => match *code {
            ErrorCode::INVALID_PARAMS => CallOutcome::UnknownTool,
            ErrorCode::METHOD_NOT_FOUND => CallOutcome::UnknownMethod,
            _ => CallOutcome::Unavailable,
        },
    }
}

/// Records a call that is refused before it is looked at; `None` in place of one that cannot be
/// read.
pub(crate) fn observe_refused_call(origin: &RequestOrigin, request: Option<&McpRequest>) {
    let call = CallObservation::begin(TOOLS_CALL, || arrival(origin, request));
    call.end(CallOutcome::InvalidMessage);
}
