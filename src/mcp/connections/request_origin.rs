//! The origin of a request: its client, its transport, and the way to send messages before its
//! answer.

use std::sync::Arc;
use std::time::Duration;

use http::header::{AsHeaderName, HeaderMap, HeaderValue};
use rmcp::RoleServer;
use rmcp::model::{
    CancelledNotificationParam, ClientCapabilities, ClientResult, ElicitRequest,
    ElicitRequestParams, ElicitResult, Implementation, ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions};
use scopeguard::ScopeGuard;
use serde_json::json;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::connection::{Connection, OutMessage, Outbox, QuestionAnswer};
use crate::caller::memory_budget::HeldMemory;
use crate::caller::{Caller, ReportProgress};
use crate::mcp::protocol::answer::write_message;
use crate::mcp::protocol::message::RequestParameters;
use crate::mcp::protocol::version::ProtocolVersion;

/// Origin of a request.
#[derive(Default)]
pub(crate) struct RequestOrigin {
    /// The version of HTTP; `None` if the request came over a pipe.
    pub(crate) http: Option<http::Version>,
    pub(crate) caller: Caller,
    /// The protocol version of the header `MCP-Protocol-Version`.
    pub(crate) version_header: Option<ProtocolVersion>,
    /// State of the client from earlier messages.
    pub(crate) connection: Option<Arc<Connection>>,
    /// Takes what is sent before the answer.
    pub(crate) outbox: Option<Outbox>,
    /// The client, if rmcp serves it.
    pub(crate) peer: Option<Peer<RoleServer>>,
    /// An end of the server waits for the request.
    pub(crate) in_flight: Option<TaskTrackerToken>,
    /// The memory that the request takes.
    pub(crate) memory: Option<HeldMemory>,
}

/// Reason for which an unanswered question is withdrawn.
const WITHDRAWN: &str = "the call was cancelled";

impl RequestOrigin {
    /// The protocol version of a request that names none for itself.
    pub(crate) fn version(&self) -> Option<ProtocolVersion> {
        let of_peer =
            || ProtocolVersion::parse(self.peer.as_ref()?.peer_info()?.protocol_version.as_str());
        let of_connection = self
            .connection
            .as_ref()
            .and_then(|connection| connection.version());
        let of_header = || {
            self.version_header
                .or(self.http.map(|_| ProtocolVersion::UNNAMED_OVER_HTTP))
        };
        of_connection.or_else(of_header).or_else(of_peer)
    }

    /// Returns the capabilities of the client.
    pub(crate) fn capabilities(
        &self,
        parameters: &RequestParameters,
    ) -> Option<ClientCapabilities> {
        let of_connection = || self.connection.as_ref()?.client().capabilities;
        let of_peer = || Some(self.peer.as_ref()?.peer_info()?.capabilities.clone());
        parameters
            .meta
            .client_capabilities()
            .or_else(of_connection)
            .or_else(of_peer)
    }

    /// Returns the name and version that the client gives.
    pub(crate) fn client_info(
        &self,
        parameters: Option<&RequestParameters>,
    ) -> Option<Implementation> {
        let of_request = parameters.and_then(|parameters| parameters.meta.client_info());
        let of_connection = || self.connection.as_ref()?.client().info;
        let of_peer = || Some(self.peer.as_ref()?.peer_info()?.client_info.clone());
        of_request.or_else(of_connection).or_else(of_peer)
    }

    /// Returns a reporter for the progress of a call, if its client asks for it.
    pub(crate) fn report_progress(&self, parameters: &RequestParameters) -> Option<ReportProgress> {
        let token = parameters.meta.get_progress_token()?;
        Some(self.outbox.as_ref()?.report_progress(token))
    }

    /// Asks the user through the client (MCP up to 2025-11-25, `elicitation/create`). Dropping the
    /// future withdraws the question.
    ///
    /// # Errors
    /// Why there is no answer.
    pub(crate) async fn ask(
        &mut self,
        question: ElicitRequestParams,
        timeout: Duration,
    ) -> Result<ElicitResult, String> {
        // An end of the server does not wait for an unanswered question.
        self.in_flight = None;
        if let Some(peer) = &self.peer {
            return ask_peer(peer, question, timeout).await;
        }
        let (Some(connection), Some(outbox)) = (&self.connection, &self.outbox) else {
            return Err("this connection takes no questions".into());
        };
        let mut open = connection.ask();
        outbox.send(OutMessage::Text(write_message(
            Some(open.id),
            "elicitation/create",
            &question,
        )));
        let withdrawal = scopeguard::guard(open.id, |id| {
            let parameters = json!({ "requestId": id, "reason": WITHDRAWN });
            outbox.send(OutMessage::Text(write_message(
                None,
                "notifications/cancelled",
                &parameters,
            )));
        });
        let answer = tokio::time::timeout(timeout, &mut open.answer).await;
        let answer = answer.map_err(|_| "there was no answer in time")?;
        ScopeGuard::into_inner(withdrawal);
        let QuestionAnswer { outcome, in_flight } =
            answer.map_err(|_| "the connection has ended")?;
        self.in_flight = Some(in_flight);
        let answer =
            outcome.map_err(|error| format!("the client answered with an error: {error}"))?;
        serde_json::from_value(answer).map_err(|error| format!("the answer is not valid: {error}"))
    }
}

/// The value of a header that may be there once: who takes another one of several would judge
/// another request.
///
/// # Errors
/// It is there several times.
pub(crate) fn sole_header(
    headers: &HeaderMap,
    name: impl AsHeaderName,
) -> Result<Option<&HeaderValue>, ()> {
    let mut values = headers.get_all(name).iter();
    let value = values.next();
    values.next().map_or(Ok(value), |_| Err(()))
}

/// The text of a header that is there once.
pub(crate) fn sole_text(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    sole_header(headers, name).ok()??.to_str().ok()
}

async fn ask_peer(
    peer: &Peer<RoleServer>,
    question: ElicitRequestParams,
    timeout: Duration,
) -> Result<ElicitResult, String> {
    let mut options = PeerRequestOptions::no_options();
    options.timeout = Some(timeout);
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(question));
    let sent = peer.send_cancellable_request(request, options).await;
    let handle = sent.map_err(|error| error.to_string())?;
    let withdrawal = scopeguard::guard((handle.id.clone(), handle.peer.clone()), |(id, peer)| {
        let withdrawn = CancelledNotificationParam::new(Some(id), Some(WITHDRAWN.into()));
        tokio::spawn(async move { peer.notify_cancelled(withdrawn).await });
    });
    let answer = handle.await_response().await;
    ScopeGuard::into_inner(withdrawal);
    match answer.map_err(|error| error.to_string())? {
        ClientResult::ElicitResult(answer) => Ok(answer),
        _ => Err("the client answered with another result".into()),
    }
}
