//! Every request of every transport: its protocol version, the function that answers it, and its
//! observation. `tools/list` is answered here, in one page, because several clients read only the
//! first.
//!
//! # Adding a method of MCP
//!
//! - A variant of `Method` in `mcp/protocol/message.rs`, and an arm of `answer` in
//!   `mcp/dispatch.rs`.
//! - Its capability in `mcp/endpoints/introduction.rs`.
//! - If it calls the API, `observe` in `mcp/dispatch.rs` begins a `CallObservation` with a line of
//!   the audit log. `begin` in `observe/call.rs` names the method of calls: let it take yours.
//! - If a client hears of changes, `mcp/connections/subscription.rs`.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{ClientRequest, ErrorData, RequestId};
use rmcp::service::{Peer, RequestContext, Service, serve_directly};
use serde_json::{Value, json};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::catalog::ListPieces;
use super::connections::connection::Connection;
use super::connections::request_origin::RequestOrigin;
use super::protocol::answer::{Frame, McpAnswer, McpRefusal, ToolList, invalid_parameters};
use super::protocol::message::{McpRequest, Method, RequestParameters};
use super::protocol::version::ProtocolVersion;
use super::{McpServer, observed};
use crate::observe::call::CallObservation;
use crate::observe::metrics::labels::OTHER;

/// The methods of MCP that metrics name, beside those of [`Method`].
const OTHER_METHODS: [&str; 9] = [
    "completion/complete",
    "logging/setLevel",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
];

/// End of a request.
pub(crate) struct Answered {
    pub(crate) id: RequestId,
    pub(crate) version: ProtocolVersion,
    /// The server in the `_meta` of the result, in versions that have it.
    server_meta: Option<Arc<str>>,
    pub(crate) outcome: Result<McpAnswer, McpRefusal>,
    /// An end of the server waits until the answer is sent.
    pub(crate) in_flight: Option<TaskTrackerToken>,
}

impl Answered {
    /// The end of a request that is refused before it is looked at.
    pub(crate) fn refused(request: &McpRequest, origin: RequestOrigin, error: ErrorData) -> Self {
        if request.method == Method::CallTool {
            observed::observe_refused_call(&origin, Some(request));
        }
        Self {
            id: request.id.clone(),
            version: ProtocolVersion::UNNAMED_OVER_HTTP,
            server_meta: None,
            outcome: Err(error.into()),
            in_flight: origin.in_flight,
        }
    }

    /// The answer as a message. A client that lacks scopes gets an error, if its transport has no
    /// other way to say so.
    pub(crate) fn into_frame(self) -> (Frame, Option<TaskTrackerToken>) {
        let frame = match self.outcome {
            Ok(answer) => {
                Frame::of_answer(&self.id, self.version, self.server_meta.as_deref(), answer)
            }
            Err(refusal) => Frame::of_error(Some(&self.id), &refusal.into()),
        };
        (frame, self.in_flight)
    }
}

impl McpServer {
    /// Answers a request. Dropping the future cancels it.
    pub(crate) async fn answer(&self, request: McpRequest, mut origin: RequestOrigin) -> Answered {
        let named = version_of(&request, &origin);
        let version = named
            .as_ref()
            .copied()
            .unwrap_or(ProtocolVersion::UNNAMED_OVER_HTTP);
        let observation = observe(&request, &origin);
        let McpRequest {
            id,
            method,
            parameters,
        } = request;
        let is_call = method == Method::CallTool;
        // On the heap at once: what is around it is moved from place to place.
        let answering = Box::pin(AssertUnwindSafe(async {
            let invalid = |error| {
                if is_call {
                    McpRefusal::InvalidCall(error)
                } else {
                    McpRefusal::Error(error)
                }
            };
            if parameters.is_malformed {
                return Err(invalid(invalid_parameters(method.name())));
            }
            named.map_err(invalid)?;
            match method {
                Method::CallTool => self.call_tool(parameters, version, &mut origin).await,
                Method::ListTools => Box::pin(self.list_tools_of(&parameters, &origin))
                    .await
                    .map(McpAnswer::Tools),
                Method::Listen => {
                    Box::pin(self.listen_for_changes(&id, parameters, version, &origin)).await
                }
                _ => {
                    self.answer_by_rmcp(id.clone(), &method, parameters, &origin)
                        .await
                }
            }
        }));
        // A panic is a bug of ours, and ends nothing but its request.
        let answering = async {
            let answered = answering.catch_unwind().await;
            answered.unwrap_or_else(|_| refuse_after_panic())
        };
        let outcome = match observation {
            Some(observation) => observation.watch(answering, observed::judge).await,
            None => answering.await,
        };
        Answered {
            id,
            version,
            server_meta: version.has_result_type().then(|| self.state.server_meta()),
            outcome,
            in_flight: origin.in_flight.take(),
        }
    }

    /// Answers what this server leaves to rmcp, which knows which version has which method, and
    /// what its result looks like.
    fn answer_by_rmcp<'a>(
        &'a self,
        id: RequestId,
        method: &Method,
        mut parameters: RequestParameters,
        origin: &RequestOrigin,
    ) -> BoxFuture<'a, Result<McpAnswer, McpRefusal>> {
        let mut context = RequestContext::new(id, SILENT_PEER.clone());
        context.meta = std::mem::take(&mut parameters.meta);
        context.extensions.insert(origin.caller.clone());
        context
            .extensions
            .insert(DispatchedConnection(origin.connection.clone()));
        let request = json!({ "method": method.name(), "params": parameters.into_value() });
        // A method with other parameters than it has is a custom request, and every method can be
        // one. It is read from text, because numbers of any length cannot be read from a tree.
        let request =
            serde_json::from_str::<ClientRequest>(&request.to_string()).map_err(|error| {
                ErrorData::invalid_request(format!("the request cannot be read: {error}"), None)
            });
        Box::pin(async move {
            let result = Box::pin(Service::handle_request(self, request?, context)).await?;
            Ok(McpAnswer::Result(Box::new(result)))
        })
    }
}

fn refuse_after_panic() -> Result<McpAnswer, McpRefusal> {
    tracing::error!("a request ended in a panic; please report this");
    let why = "the request failed because of an error inside this server";
    Err(ErrorData::internal_error(why, None).into())
}

/// The connection of a request that [`McpServer::answer`] hands to rmcp.
#[derive(Clone)]
pub(super) struct DispatchedConnection(pub(super) Option<Arc<Connection>>);

/// The protocol version of a request.
///
/// # Errors
/// It is not known here (-32022), or the request does not say of its client what this version needs
/// (-32602).
fn version_of(request: &McpRequest, origin: &RequestOrigin) -> Result<ProtocolVersion, ErrorData> {
    let McpRequest {
        method, parameters, ..
    } = request;
    let named = parameters
        .meta
        .protocol_version()
        .filter(|_| *method != Method::Initialize);
    let Some(named) = named else {
        if *method == Method::Discover {
            parameters.require_keys()?;
        }
        return Ok(origin
            .version()
            .unwrap_or(ProtocolVersion::UNNAMED_OVER_HTTP));
    };
    let version = ProtocolVersion::parse(named.as_str()).ok_or_else(|| {
        ErrorData::unsupported_protocol_version(named, &super::protocol::version::named_versions())
    })?;
    if !version.has_handshake() || *method == Method::Discover {
        parameters.require_keys()?;
    }
    Ok(version)
}

/// Begins to observe a request; a wait for changes is not observed.
fn observe(request: &McpRequest, origin: &RequestOrigin) -> Option<CallObservation> {
    let arrival = || observed::arrival(origin, Some(request));
    match &request.method {
        Method::Listen => None,
        method => Some(CallObservation::begin(label(method), arrival)),
    }
}

/// The name of a method in metrics.
fn label(method: &Method) -> &'static str {
    match method {
        Method::Other(name) => OTHER_METHODS
            .into_iter()
            .find(|known| **known == **name)
            .unwrap_or(OTHER),
        method => method.known_name().unwrap_or(OTHER),
    }
}

/// Placeholder for the client of a request that is passed to rmcp. Its connection is closed, so
/// nothing reaches a client through it, because it belongs to all.
static SILENT_PEER: LazyLock<Peer<RoleServer>> = LazyLock::new(|| {
    let transport = (tokio::io::empty(), tokio::io::sink());
    serve_directly(SilentServer, transport, None).peer().clone()
});

struct SilentServer;

impl ServerHandler for SilentServer {}

/// The longest time for which clients may cache the list.
const LIST_TTL: Duration = Duration::from_mins(5);

impl McpServer {
    /// Lists the tools that the client may call.
    pub(super) async fn list_tools_of(
        &self,
        parameters: &RequestParameters,
        origin: &RequestOrigin,
    ) -> Result<ToolList, McpRefusal> {
        match parameters.rest.get("cursor") {
            None | Some(Value::Null) => {}
            Some(Value::String(_)) => {
                return Err(ErrorData::invalid_params(
                    "unknown cursor: the list has one page",
                    None,
                )
                .into());
            }
            _ => return Err(invalid_parameters("tools/list").into()),
        }
        let catalog = self.state.catalog_to_list().await?;
        let ttl = match self.state.reload {
            // What is missing may come at any time.
            _ if !catalog.is_decided() => Duration::ZERO,
            Some(reload) => reload.min(LIST_TTL),
            None => LIST_TTL,
        };
        Ok(ToolList {
            tools: ListPieces::new(&catalog, Some(origin.caller.granted())),
            ttl,
            is_private: catalog.depends_on_caller(),
        })
    }
}
