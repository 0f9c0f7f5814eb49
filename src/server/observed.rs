//! What metrics, traces and the audit log learn of a call from its message and its result.

use http::Version;
use http::request::Parts;
use rmcp::RoleServer;
use rmcp::model::{CallToolResponse, ErrorCode, ErrorData};
use rmcp::service::RequestContext;

use super::auth::AuthenticatedClient;
use super::catalog::ResolvedCall;
use super::http::limits::{Peer, ProvedName};
use crate::annotate::gate_names::GateKind;
use crate::api::OfferedTool;
use crate::observe;
use crate::observe::call::{CallObservation, note};
use crate::observe::outcome::CallOutcome;
use crate::observe::record::{Arrival, CalledOperation};
use crate::observe::traces::ArrivedContexts;
use crate::observe::traces::context::TraceContext;

/// How a request arrived.
pub(crate) fn arrival(context: &RequestContext<RoleServer>) -> Arrival {
    let parts = context.extensions.get::<Parts>();
    let version = context
        .meta
        .protocol_version()
        .or_else(|| Some(context.peer.peer_info()?.protocol_version.clone()));
    let message = context.meta.get_traceparent();
    let message = message.and_then(|parent| TraceContext::read(parent, context.meta.get_tracestate()));
    Arrival {
        transport: if parts.is_some() { "tcp" } else { "pipe" },
        http_version: parts.and_then(http_version),
        protocol_version: version
            .map(|version| version.to_string())
            .or_else(|| parts.and_then(|parts| sole_header(parts, "mcp-protocol-version"))),
        request_id: observe::tracer().map(|_| context.id.to_string()),
        client: client_name(parts),
        claimed: context.client_info().map(|client| format!("{} {}", client.name, client.version)),
        contexts: arrived_contexts(message, parts),
    }
}

/// How a call arrived that is refused before rmcp has read it.
pub(crate) fn early_arrival(parts: &Parts) -> Arrival {
    Arrival {
        transport: "tcp",
        http_version: http_version(parts),
        protocol_version: sole_header(parts, "mcp-protocol-version"),
        request_id: None,
        client: client_name(Some(parts)),
        claimed: None,
        contexts: arrived_contexts(None, Some(parts)),
    }
}

/// The contexts of a message and of its HTTP request. Over stdio the client is the one who started this process.
fn arrived_contexts(message: Option<TraceContext>, parts: Option<&Parts>) -> ArrivedContexts {
    ArrivedContexts {
        message,
        request: parts.and_then(|parts| {
            // Several lines are one list (RFC 9110 section 5.3); several parents name none.
            let states: Vec<&str> = parts
                .headers
                .get_all("tracestate")
                .iter()
                .filter_map(|line| line.to_str().ok())
                .collect();
            TraceContext::read(&sole_header(parts, "traceparent")?, Some(&states.join(",")))
        }),
        is_trusted: parts.is_none_or(|parts| parts.extensions.get::<AuthenticatedClient>().is_some()),
    }
}

fn sole_header(parts: &Parts, name: &str) -> Option<String> {
    let mut values = parts.headers.get_all(name).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    Some(value.to_str().ok()?.to_owned())
}

fn http_version(parts: &Parts) -> Option<&'static str> {
    match parts.version {
        Version::HTTP_10 => Some("1.0"),
        Version::HTTP_11 => Some("1.1"),
        Version::HTTP_2 => Some("2"),
        _ => None,
    }
}

/// What was proved of the client, else the address that it has at the other end of the connection.
fn client_name(parts: Option<&Parts>) -> Option<String> {
    let extensions = &parts?.extensions;
    let proved = extensions.get::<ProvedName>().map(|name| name.0.to_string());
    let address = || extensions.get::<Peer>().map(|peer| format!("address:{}", peer.0.to_canonical()));
    proved.or_else(address)
}

/// How a call ended, as far as its answer shows.
pub(crate) fn judge(answer: &Result<CallToolResponse, ErrorData>) -> CallOutcome {
    match answer {
        Ok(CallToolResponse::Complete(result)) if result.is_error == Some(true) => CallOutcome::ApiError,
        Ok(CallToolResponse::InputRequired(_)) => CallOutcome::Asked,
        answer => judge_answer(answer),
    }
}

/// How any request ended.
pub(crate) fn judge_answer<T>(answer: &Result<T, ErrorData>) -> CallOutcome {
    match answer {
        Ok(_) => CallOutcome::Ok,
        Err(error) if error.code == ErrorCode::INVALID_PARAMS => CallOutcome::UnknownTool,
        Err(error) if error.code == ErrorCode::METHOD_NOT_FOUND => CallOutcome::UnknownMethod,
        Err(_) => CallOutcome::Unavailable,
    }
}

/// Answers a request with another method than `tools/call`.
pub(crate) async fn observe_method<T>(
    method: &'static str,
    context: &RequestContext<RoleServer>,
    answer: impl Future<Output = Result<T, ErrorData>>,
) -> Result<T, ErrorData> {
    let observation = CallObservation::of_method(method, || arrival(context));
    observation.watch(answer, judge_answer).await
}

/// Notes which operation the current call is of.
pub(crate) fn note_operation(call: &ResolvedCall) {
    note(|record| record.resolve(called_operation(call), call.arguments()));
}

/// The operation as the audit log, metrics and traces name it.
pub(crate) fn called_operation(call: &ResolvedCall) -> CalledOperation {
    let offered = call.offered();
    CalledOperation {
        api: call.api_label().to_owned(),
        label: call.metrics_label(),
        tool: call.tool_label().to_owned(),
        gate: call.gate().map(GateKind::name),
        method: offered.operation.method.to_string(),
        path_template: offered.operation.path.clone(),
        effect: effect_of(&offered),
    }
}

/// `read`, `write` or `destructive`, by what is enforced of a tool.
pub(crate) fn effect_of(offered: &OfferedTool<'_>) -> &'static str {
    match (offered.enforcement.is_read_only(), offered.enforcement.is_destructive()) {
        (true, _) => "read",
        (false, true) => "destructive",
        (false, false) => "write",
    }
}
