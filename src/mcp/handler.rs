//! The server as rmcp sees it. Every request of our own transports that this server leaves to rmcp
//! comes here; and a program that uses this library can serve an [`McpServer`] over any transport
//! of rmcp.

use std::borrow::Cow;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ConstString as _, CustomRequest,
    CustomResult, DiscoverResult, ErrorCode, ErrorData, InitializeRequestParams, InitializeResult,
    InitializeResultMethod, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ProtocolVersion as NamedVersion, ReadResourceRequestParams, ReadResourceResponse, ServerConfig,
    ServerResult, SubscriptionFilter,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, SubscriptionContext};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::McpServer;
use super::connections::connection::{OutMessage, OutMessages, Outbox};
use super::connections::request_origin::RequestOrigin;
use super::dispatch::{Answered, DispatchedConnection};
use super::page_tools::{PageRequest, PageView};
use super::protocol::answer::{McpAnswer, invalid_parameters};
use super::protocol::message::{Arguments, McpRequest, Method, RequestParameters};
use super::protocol::version::{ProtocolVersion, named_versions};
use crate::caller::Caller;
use crate::caller::client_grant::NO_TOKEN;
use crate::observe::metrics::TOOLS_CALL;

/// Time for which `initialize` and `server/discover` wait for a document from a URL, which contains
/// the title and the instructions. Clients time out after ten seconds or more.
const INTRODUCTION_TIMEOUT: Duration = Duration::from_secs(5);
/// The same with several APIs. The slowest of them must not hold up a handshake: what is missing
/// then is a line of the instructions.
const INTRODUCTION_TIMEOUT_OF_SEVERAL: Duration = Duration::from_millis(500);
/// A client of rmcp that does not take a notification for this long gets no more of them.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(1);
/// Interval at which a client of rmcp is checked for a closed connection.
const PEER_CHECK: Duration = Duration::from_mins(1);

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        self.state.introduction()
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [NamedVersion]> {
        named_versions()
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        self.wait_for_introduction().await;
        let mut result = self.negotiate_initialize(&request)?;
        let Some(DispatchedConnection(connection)) = context.extensions.get() else {
            context.peer.set_peer_info(request);
            return Ok(result);
        };
        if let Some(connection) = connection {
            connection.shake_hands(
                request,
                ProtocolVersion::parse(result.protocol_version.as_str()),
            );
        } else if let Some(tools) = &mut result.capabilities.tools {
            // Without a session, a client of these protocol versions cannot be notified.
            tools.list_changed = None;
        }
        Ok(result)
    }

    async fn discover(&self, _: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        self.wait_for_introduction().await;
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, self.get_info()))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if self.state.tells_changes {
            let mut changes = self.state.subscribe(&NO_TOKEN);
            tokio::spawn(async move {
                while !context.peer.is_transport_closed() {
                    let was_sent = tokio::select! {
                        () = tokio::time::sleep(PEER_CHECK) => continue,
                        has_changed = changes.changed() => has_changed && context.peer.notify_tool_list_changed().await.is_ok(),
                    };
                    if !was_sent {
                        return;
                    }
                }
            });
        }
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut parameters = RequestParameters::default();
        if let Some(cursor) = request.and_then(|request| request.cursor) {
            parameters.rest.insert("cursor".into(), cursor.into());
        }
        let answering = self.answer_peer(Method::ListTools, parameters, context);
        read_result(answering.await?)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut parameters = RequestParameters {
            name: Some(request.name.into()),
            arguments: request.arguments.map_or(Arguments::None, Arguments::Object),
            ..RequestParameters::default()
        };
        if let Some(state) = request.request_state {
            parameters.rest.insert("requestState".into(), state.into());
        }
        if let Some(responses) = request.input_responses {
            parameters
                .rest
                .insert("inputResponses".into(), json!(responses));
        }
        let answering = self.answer_peer(Method::CallTool, parameters, context);
        let answered = answering.await?;
        if let Ok(McpAnswer::Result(result)) = &answered.outcome
            && let ServerResult::InputRequiredResult(question) = &**result
        {
            return Ok(question.clone().into());
        }
        Ok(read_result::<CallToolResult>(answered)?.into())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let why = "there are no resources here";
        Err(ErrorData::invalid_params(
            why,
            Some(json!({ "uri": request.uri })),
        ))
    }

    /// 2026-07-28: clients subscribe to the changes that they want to be notified of.
    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.state.tells_changes.then(|| requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.state.subscribe(&NO_TOKEN);
        changes.is_wanted = subscription.accepted().tools_list_changed == Some(true);
        loop {
            tokio::select! {
                () = subscription.cancelled() => return Ok(()),
                has_changed = changes.changed() => {
                    if !has_changed || subscription.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Answers the requests of the page. rmcp treats a request with malformed parameters as one
    /// with an unknown method.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if let Some(asked) = PageRequest::read(&request.method, request.params.as_ref()) {
            let catalog = self.state.catalog_to_list().await?;
            let caller = context.extensions.get::<Caller>().cloned();
            let view = PageView {
                shows_requests: self.shows_requests,
                is_mock: self.apis.slots.iter().any(|slot| slot.is_mock),
            };
            return asked?
                .answer(catalog, caller.unwrap_or_default(), view)
                .await;
        }
        // A request that names its version for itself comes from a client of a version without a
        // handshake.
        let is_handshake = request.method == InitializeResultMethod::VALUE
            && context.meta.protocol_version().is_none();
        if is_handshake || [TOOLS_CALL, "tools/list"].contains(&request.method.as_str()) {
            return Err(invalid_parameters(&request.method));
        }
        Err(ErrorData::new(
            ErrorCode::METHOD_NOT_FOUND,
            request.method,
            None,
        ))
    }
}

impl McpServer {
    /// Waits a while for the documents: without them, an introduction lacks the title and the
    /// instructions, which no client needs.
    async fn wait_for_introduction(&self) {
        let timeout = if self.apis.is_single() {
            INTRODUCTION_TIMEOUT
        } else {
            INTRODUCTION_TIMEOUT_OF_SEVERAL
        };
        tokio::select! {
            () = self.state.ending.cancelled() => {}
            _ = tokio::time::timeout(timeout, self.state.settled()) => {}
        }
    }

    /// Answers a request of a client that rmcp serves.
    async fn answer_peer(
        &self,
        method: Method,
        mut parameters: RequestParameters,
        context: RequestContext<RoleServer>,
    ) -> Result<Answered, ErrorData> {
        let RequestContext {
            ct, id, meta, peer, ..
        } = context;
        parameters.meta = meta;
        let (outbox, messages) = Outbox::new();
        let origin = RequestOrigin {
            outbox: Some(outbox),
            peer: Some(peer.clone()),
            in_flight: Some(self.calls.token()),
            ..RequestOrigin::default()
        };
        let request = McpRequest {
            id,
            method,
            parameters,
        };
        let answer = forward_progress(messages, &peer, self.answer(request, origin));
        // rmcp does not stop the handler of a cancelled request; dropping the call closes the
        // upstream request.
        tokio::select! {
            () = ct.cancelled() => Err(ErrorData::internal_error("cancelled", None)),
            answered = answer => Ok(answered),
        }
    }
}

/// Waits for an answer, and sends the progress of its call meanwhile.
async fn forward_progress<T>(
    mut messages: OutMessages,
    peer: &Peer<RoleServer>,
    answer: impl Future<Output = T>,
) -> T {
    let mut answer = std::pin::pin!(answer);
    loop {
        tokio::select! {
            biased;
            message = messages.recv() => match message {
                Some(message) => if !notify(peer, message).await {
                    return answer.await;
                },
                None => return answer.await,
            },
            output = &mut answer => {
                while let Ok(message) = messages.try_recv() {
                    notify(peer, message).await;
                }
                return output;
            }
        }
    }
}

/// Returns whether the client takes notifications.
async fn notify(peer: &Peer<RoleServer>, message: OutMessage) -> bool {
    let OutMessage::Progress(newest) = message else {
        return true;
    };
    let Some((token, done, total)) = newest.take() else {
        return true;
    };
    #[expect(
        clippy::cast_precision_loss,
        reason = "bytes of one reply stay far below 2^53"
    )]
    let (done, total) = (done as f64, total.map(|total| total as f64));
    let mut progress = ProgressNotificationParam::new(token, done);
    progress.total = total;
    let sent = tokio::time::timeout(NOTIFY_TIMEOUT, peer.notify_progress(progress)).await;
    matches!(sent, Ok(Ok(())))
}

/// Reads the result of an answer into the type that rmcp has for it.
///
/// # Errors
/// The request failed, or rmcp cannot read its result.
fn read_result<T: DeserializeOwned>(answered: Answered) -> Result<T, ErrorData> {
    #[derive(Deserialize)]
    struct ReadAnswer<T> {
        result: T,
    }
    if let Err(refusal) = answered.outcome {
        return Err(refusal.into());
    }
    let (frame, _in_flight) = answered.into_frame();
    let read = serde_json::from_slice::<ReadAnswer<T>>(&frame.into_bytes());
    read.map(|answer| answer.result).map_err(|error| {
        ErrorData::internal_error(format!("the result cannot be read: {error}"), None)
    })
}
