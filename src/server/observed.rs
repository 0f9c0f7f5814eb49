//! What metrics and the audit log learn of a call from its message and its result.

use http::request::Parts;
use rmcp::RoleServer;
use rmcp::model::{CallToolResponse, ErrorCode, ErrorData};
use rmcp::service::RequestContext;

use super::catalog::ResolvedCall;
use super::http::limits::{Peer, ProvedName};
use crate::observe::call::{Arrival, CalledOperation, note};
use crate::observe::outcome::CallOutcome;

/// How a call arrived.
pub(crate) fn arrival(context: &RequestContext<RoleServer>) -> Arrival {
    let parts = context.extensions.get::<Parts>();
    let header = |name: &str| parts.and_then(|parts| parts.headers.get(name)?.to_str().ok());
    let version = context
        .meta
        .protocol_version()
        .or_else(|| Some(context.peer.peer_info()?.protocol_version.clone()));
    Arrival {
        transport: if parts.is_some() { "tcp" } else { "pipe" },
        protocol_version: version
            .map(|version| version.to_string())
            .or_else(|| header("mcp-protocol-version").map(str::to_owned)),
        client: client_name(parts),
        claimed: context.client_info().map(|client| format!("{} {}", client.name, client.version)),
        traceparent: context.meta.get_traceparent().or_else(|| header("traceparent")).map(str::to_owned),
    }
}

/// How a call arrived that is refused before rmcp has read it.
pub(crate) fn early_arrival(parts: &Parts) -> Arrival {
    let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    Arrival {
        transport: "tcp",
        protocol_version: header("mcp-protocol-version"),
        client: client_name(Some(parts)),
        claimed: None,
        traceparent: header("traceparent"),
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
        Ok(_) => CallOutcome::Ok,
        Err(error) if error.code == ErrorCode::INVALID_PARAMS => CallOutcome::UnknownTool,
        Err(_) => CallOutcome::Unavailable,
    }
}

/// Notes which operation the current call is of.
pub(crate) fn note_operation(call: &ResolvedCall) {
    note(|record| record.resolve(called_operation(call), call.arguments()));
}

/// The operation as the audit log and metrics name it.
pub(crate) fn called_operation(call: &ResolvedCall) -> CalledOperation {
    let offered = call.offered();
    CalledOperation {
        api: call.api_label().to_owned(),
        tool: call.tool_label().to_owned(),
        method: offered.operation.method.to_string(),
        path_template: offered.operation.path.clone(),
        effect: effect(offered.enforcement.is_read_only(), offered.enforcement.is_destructive()),
    }
}

/// `read`, `write` or `destructive`, by what is enforced of a tool.
pub(crate) fn effect(is_read_only: bool, is_destructive: bool) -> &'static str {
    match (is_read_only, is_destructive) {
        (true, _) => "read",
        (false, true) => "destructive",
        (false, false) => "write",
    }
}
