//! What metrics, traces and the audit log learn of a call from its message and its result.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::Version;
use http::request::Parts;
use rmcp::RoleServer;
use rmcp::model::{CallToolResponse, ConstString, ErrorCode, ErrorData, Implementation};
use rmcp::service::RequestContext;

use super::calls::message::MODERN_VERSION;
use super::catalog::ResolvedCall;
use crate::annotate::gate_names::GateKind;
use crate::api::Caller;
use crate::observe;
use crate::observe::call::{CallObservation, note};
use crate::observe::outcome::CallOutcome;
use crate::observe::record::{Arrival, CallRecord, known_version};
use crate::observe::traces::ArrivedContexts;
use crate::observe::traces::context::TraceContext;
use crate::proxy::ToolResult;
use crate::proxy::caller::client_key::{Peer, ProvedClient, ProvedName};

/// The protocol version of a request over HTTP that names none (MCP 2025-11-25, transports, "Protocol Version Header").
const DEFAULT_VERSION: &str = "2025-03-26";

/// How a request arrived. What only the audit log or traces tell is left out where there are none.
pub(crate) fn arrival(context: &RequestContext<RoleServer>) -> Arrival {
    let parts = context.extensions.get::<Parts>();
    let version = match context.meta.protocol_version() {
        Some(version) => known_version(version.as_str()),
        None => match context.peer.peer_info() {
            Some(peer) => known_version(peer.protocol_version.as_str()),
            None => parts.and_then(version_header).unwrap_or_default(),
        },
    };
    let mut arrival = Arrival {
        transport: if parts.is_some() { "tcp" } else { "pipe" },
        protocol_version: version,
        ..Arrival::default()
    };
    if observe::audit().is_some() {
        arrival.client = client_name(parts);
        // Where no client has said what it is, rmcp gives itself.
        let said = context.client_info().filter(|client| *client != Implementation::from_build_env());
        arrival.claimed = said.map(|client| format!("{} {}", client.name, client.version));
    }
    if observe::tracer().is_some() {
        arrival.http_version = parts.and_then(http_version);
        arrival.request_id = Some(context.id.to_string());
    }
    if observe::names_traces() {
        let message = context.meta.get_traceparent();
        let message = message.and_then(|parent| TraceContext::read(parent, context.meta.get_tracestate()));
        arrival.contexts = arrived_contexts(message, parts);
    }
    arrival
}

/// Whether a call has reached who observes it: the handler, or the check of scopes. It travels with the message.
#[derive(Debug, Clone, Default)]
pub(crate) struct HandledCall(Arc<AtomicBool>);

impl HandledCall {
    fn note(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(crate) fn is_handled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Notes that a call has reached the handler.
pub(crate) fn note_handled(context: &RequestContext<RoleServer>) {
    let handled = context.extensions.get::<HandledCall>();
    let parts = || context.extensions.get::<Parts>();
    if let Some(handled) = handled.or_else(|| parts()?.extensions.get()) {
        handled.note();
    }
}

/// Notes that whoever answers the call tells of it.
pub(crate) fn note_observed(parts: &Parts) {
    if let Some(handled) = parts.extensions.get::<HandledCall>() {
        handled.note();
    }
}

/// How a call in plain form arrived over HTTP, as far as metrics tell it.
pub(crate) fn plain_arrival(parts: &Parts, is_modern: bool) -> Arrival {
    let version = if is_modern {
        MODERN_VERSION
    } else {
        version_header(parts).unwrap_or(DEFAULT_VERSION)
    };
    Arrival {
        transport: "tcp",
        protocol_version: version,
        ..Arrival::default()
    }
}

/// How a call in plain form arrived over stdio, as far as metrics tell it.
pub(crate) fn piped_arrival(protocol_version: &'static str) -> Arrival {
    Arrival {
        transport: "pipe",
        protocol_version,
        ..Arrival::default()
    }
}

/// How a call arrived that is refused before rmcp has read it.
pub(crate) fn early_arrival(parts: &Parts) -> Arrival {
    Arrival {
        transport: "tcp",
        http_version: http_version(parts),
        protocol_version: version_header(parts).unwrap_or(DEFAULT_VERSION),
        client: client_name(Some(parts)),
        contexts: arrived_contexts(None, Some(parts)),
        ..Arrival::default()
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
            TraceContext::read(sole_header(parts, "traceparent")?, Some(&states.join(",")))
        }),
        is_trusted: parts.is_none_or(|parts| parts.extensions.get::<ProvedClient>().is_some()),
    }
}

fn sole_header<'p>(parts: &'p Parts, name: &str) -> Option<&'p str> {
    let mut values = parts.headers.get_all(name).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    value.to_str().ok()
}

fn version_header(parts: &Parts) -> Option<&'static str> {
    sole_header(parts, "mcp-protocol-version").map(known_version)
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

/// The same of a result that rmcp has no part in.
fn judge_result(result: &ToolResult) -> CallOutcome {
    if result.parts().is_error == Some(true) {
        CallOutcome::ApiError
    } else {
        CallOutcome::Ok
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

/// Refuses a request with a method of MCP that is not served here.
pub(crate) async fn refuse_method<M: ConstString, T>(context: &RequestContext<RoleServer>) -> Result<T, ErrorData> {
    observe_method(M::VALUE, context, async { Err(ErrorData::method_not_found::<M>()) }).await
}

/// Makes a call in plain form. `arrival` is asked only where somebody is told of calls.
pub(crate) async fn observe_plain_call(call: ResolvedCall, caller: Caller, arrival: impl FnOnce() -> Arrival) -> ToolResult {
    if !observe::is_on() {
        return call.call(caller).await;
    }
    let observation = CallObservation::begin(arrival);
    let making = async {
        note_operation(&call);
        call.call(caller).await
    };
    observation.watch(making, judge_result).await
}

/// A call over HTTP that waits for a document before anybody observes it. Whoever drops it before the end of that has cancelled it.
pub(crate) struct WaitingCall<'p>(Option<&'p Parts>);

impl<'p> WaitingCall<'p> {
    pub(crate) fn new(parts: &'p Parts) -> Self {
        Self(Some(parts))
    }

    /// The call goes on, and is told of in another place.
    pub(crate) fn end(mut self) {
        self.0 = None;
    }
}

impl Drop for WaitingCall<'_> {
    fn drop(&mut self) {
        if let Some(parts) = self.0 {
            CallObservation::begin(|| early_arrival(parts)).end(CallOutcome::Cancelled, |_| {});
        }
    }
}

/// Tells of a call that is refused because its message cannot be read.
pub(crate) fn observe_unreadable_call(arrival: impl FnOnce() -> Arrival) {
    CallObservation::begin(arrival).end(CallOutcome::InvalidMessage, |_| {});
}

/// Notes which operation the current call is of.
pub(crate) fn note_operation(call: &ResolvedCall) {
    note(|record| name_operation(record, call));
}

/// The same, where the record is at hand.
pub(crate) fn name_operation(record: &mut CallRecord, call: &ResolvedCall) {
    record.gate = call.gate().map(GateKind::name);
    record.resolve(call.called_operation(), call.arguments());
}
