//! The state of a client between its messages: one value for stdio, and one for each session over
//! HTTP; and the messages on their way to it, in their order.
//!
//! A request comes from a [`RequestOrigin`]: its client, its transport, and the way to send messages
//! before its answer.

use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use foldhash::HashMap;
use futures_util::future::{AbortHandle, Abortable};
use parking_lot::Mutex;
use rmcp::RoleServer;
use rmcp::model::{
    CancelledNotificationParam, ClientCapabilities, ClientResult, ElicitRequest,
    ElicitRequestParams, ElicitResult, ErrorData, Implementation, InitializeRequestParams,
    ProgressToken, RequestId, ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions};
use scopeguard::ScopeGuard;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::caller::memory_budget::HeldMemory;
use crate::caller::{Caller, ReportProgress};
use crate::mcp::endpoint_state::Changes;
use crate::mcp::protocol::answer::write_message;
use crate::mcp::protocol::message::{
    ClientAnswer, McpNotification, McpRequest, Method, RequestParameters, request_id,
};
use crate::mcp::protocol::version::ProtocolVersion;

/// The connection of a client.
pub(crate) struct Connection {
    client: Mutex<HandshakeClient>,
    requests: Mutex<OpenRequests>,
    questions: Mutex<OpenQuestions>,
    /// The changes of the list of tools since the connection began, which one task at a time
    /// reports.
    pub(crate) changes: tokio::sync::Mutex<Changes>,
    /// Cancelled once the connection has ended.
    pub(crate) ended: CancellationToken,
    is_reporting: AtomicBool,
}

/// Description that a client gave of itself.
#[derive(Clone, Default)]
pub(crate) struct HandshakeClient {
    pub(crate) beginning: Beginning,
    /// The version of the handshake.
    pub(crate) version: Option<ProtocolVersion>,
    pub(crate) info: Option<Implementation>,
    pub(crate) capabilities: Option<ClientCapabilities>,
}

/// Beginning of a connection, which decides which requests it takes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Beginning {
    #[default]
    None,
    /// An `initialize` request.
    Handshake,
    /// A request that describes its client in `_meta`, as all that follow it do.
    Request,
}

/// The requests that are not answered yet.
#[derive(Default)]
struct OpenRequests {
    next: u64,
    by_id: HashMap<RequestId, (u64, AbortHandle)>,
}

/// The questions that are not answered yet.
#[derive(Default)]
struct OpenQuestions {
    next: i64,
    by_id: HashMap<i64, oneshot::Sender<QuestionAnswer>>,
}

/// The answer to a question: the result of the client, or its error. An end of the server waits for
/// the call that asked.
pub(crate) struct QuestionAnswer {
    pub(crate) outcome: Result<Value, Value>,
    pub(crate) in_flight: TaskTrackerToken,
}

/// A question, which is not open any more once this is dropped.
pub(crate) struct OpenQuestion {
    pub(crate) id: i64,
    connection: Arc<Connection>,
    answer: oneshot::Receiver<QuestionAnswer>,
}

impl Connection {
    /// A connection that has not begun.
    pub(crate) fn new(changes: Changes) -> Self {
        Self {
            client: Mutex::default(),
            requests: Mutex::default(),
            questions: Mutex::default(),
            changes: tokio::sync::Mutex::new(changes),
            ended: CancellationToken::new(),
            is_reporting: AtomicBool::new(false),
        }
    }

    /// Returns the description that the client gave of itself.
    pub(crate) fn client(&self) -> HandshakeClient {
        self.client.lock().clone()
    }

    /// The version of the handshake.
    pub(crate) fn version(&self) -> Option<ProtocolVersion> {
        self.client.lock().version
    }

    /// Begins the connection anew: what the client said before counts no more.
    pub(crate) fn shake_hands(
        &self,
        request: InitializeRequestParams,
        version: Option<ProtocolVersion>,
    ) {
        *self.client.lock() = HandshakeClient {
            beginning: Beginning::Handshake,
            version,
            info: Some(request.client_info),
            capabilities: Some(request.capabilities),
        };
    }

    /// Returns true if a request may be made now. The first one that describes its client begins a
    /// connection of 2026-07-28.
    ///
    /// # Errors
    /// Another request with its identifier is not answered yet, or the request lacks keys of `_meta`
    /// (MCP 2026-07-28, basic, "Requests").
    pub(crate) fn begin(&self, request: &McpRequest) -> Result<(), ErrorData> {
        if self.requests.lock().by_id.contains_key(&request.id) {
            return Err(ErrorData::invalid_request(
                "Invalid Request: another request with this id is not answered yet",
                None,
            ));
        }
        let mut client = self.client.lock();
        let needs_keys = match (client.beginning, &request.method) {
            (_, Method::Initialize)
            | (Beginning::Handshake, _)
            | (Beginning::None, Method::Ping | Method::Discover) => false,
            (Beginning::None | Beginning::Request, _) => true,
        };
        if !needs_keys {
            return Ok(());
        }
        request.parameters.require_keys()?;
        let is_known = request
            .parameters
            .version_name()
            .and_then(ProtocolVersion::parse)
            .is_some();
        if client.beginning == Beginning::None && is_known {
            client.beginning = Beginning::Request;
        }
        Ok(())
    }

    /// Runs what answers a request, until it ends or is cancelled; `None` if it was cancelled. A
    /// cancellation is about the first of several requests with one identifier.
    pub(crate) fn run<F: Future>(
        self: &Arc<Self>,
        id: RequestId,
        answering: F,
    ) -> impl Future<Output = Option<F::Output>> + use<F> {
        let (handle, registration) = AbortHandle::new_pair();
        let open = {
            let mut requests = self.requests.lock();
            requests.next += 1;
            let number = requests.next;
            match requests.by_id.entry(id.clone()) {
                Entry::Occupied(_) => None,
                Entry::Vacant(place) => {
                    place.insert((number, handle));
                    Some(OpenRequest {
                        connection: Arc::clone(self),
                        id,
                        number,
                    })
                }
            }
        };
        let answering = Abortable::new(answering, registration);
        async move {
            let answer = answering.await.ok()?;
            open.is_none_or(|open| open.end()).then_some(answer)
        }
    }

    /// Takes note of a notification.
    pub(crate) fn note(&self, notification: &McpNotification) {
        if notification.method == "notifications/cancelled" {
            let id = notification
                .parameters
                .rest
                .get("requestId")
                .and_then(request_id);
            let cancelled = id.and_then(|id| self.requests.lock().by_id.remove(&id));
            cancelled.into_iter().for_each(|(_, handle)| handle.abort());
        }
    }

    /// Returns true if a client of a handshake reports for the first time that it is ready; changes
    /// are reported to it from then on.
    pub(crate) fn begin_reporting(&self) -> bool {
        self.client.lock().beginning == Beginning::Handshake
            && !self.is_reporting.swap(true, Ordering::Relaxed)
    }

    /// Opens a question.
    pub(crate) fn ask(self: &Arc<Self>) -> OpenQuestion {
        let (sender, answer) = oneshot::channel();
        let mut questions = self.questions.lock();
        let id = questions.next;
        questions.next += 1;
        questions.by_id.insert(id, sender);
        OpenQuestion {
            id,
            connection: Arc::clone(self),
            answer,
        }
    }

    /// Takes the answer to a question; one to no open question is ignored. Some clients answer with
    /// the number as text.
    pub(crate) fn take_answer(&self, answer: ClientAnswer, in_flight: TaskTrackerToken) {
        let id = match &answer.id {
            Value::Number(number) => number.as_i64(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        if let Some(question) = id.and_then(|id| self.questions.lock().by_id.remove(&id)) {
            let outcome = answer.outcome;
            let _ = question.send(QuestionAnswer { outcome, in_flight });
        }
    }

    /// Ends the connection, and all calls that it waits for.
    pub(crate) fn end(&self) {
        self.ended.cancel();
        let open = std::mem::take(&mut self.requests.lock().by_id);
        open.into_values().for_each(|(_, handle)| handle.abort());
    }
}

impl OpenQuestion {
    /// The answer; `None` if the connection has ended.
    pub(crate) async fn answer(&mut self) -> Option<QuestionAnswer> {
        (&mut self.answer).await.ok()
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.connection.questions.lock().by_id.remove(&self.id);
    }
}

/// A request that is not answered yet.
struct OpenRequest {
    connection: Arc<Connection>,
    id: RequestId,
    number: u64,
}

impl OpenRequest {
    /// Closes the request; returns true if it was open, and not cancelled.
    fn end(&self) -> bool {
        let mut requests = self.connection.requests.lock();
        let open = requests.by_id.get(&self.id);
        let is_open = open.is_some_and(|(number, _)| *number == self.number);
        if is_open {
            requests.by_id.remove(&self.id);
        }
        is_open
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.end();
    }
}

/// A message for a client.
pub(crate) enum OutMessage {
    Text(Vec<u8>),
    /// An answer; an end of the server waits until it is written.
    Answer(Vec<u8>, Option<TaskTrackerToken>),
    /// The newest progress of a call at the time when the client reads on.
    Progress(Arc<NewestProgress>),
}

/// Takes messages for a client. It never waits: what is not read yet is one notification for each
/// call that reports progress, one question for each call, and answers.
#[derive(Clone)]
pub(crate) struct Outbox(mpsc::UnboundedSender<OutMessage>);

/// The messages of an outbox.
pub(crate) type OutMessages = mpsc::UnboundedReceiver<OutMessage>;

impl Outbox {
    /// An outbox, and what it is read from.
    pub(crate) fn new() -> (Self, OutMessages) {
        let (sender, messages) = mpsc::unbounded_channel();
        (Self(sender), messages)
    }

    /// Sends a message, unless the client has left.
    pub(crate) fn send(&self, message: OutMessage) {
        let _ = self.0.send(message);
    }

    /// Returns a reporter for the progress of the call that carried this token.
    pub(crate) fn report_progress(&self, token: ProgressToken) -> ReportProgress {
        let newest = Arc::new(NewestProgress {
            token,
            value: Mutex::default(),
        });
        let outbox = self.clone();
        ReportProgress::new(move |done, total| {
            let is_first = newest.value.lock().replace((done, total)).is_none();
            if is_first {
                outbox.send(OutMessage::Progress(Arc::clone(&newest)));
            }
        })
    }
}

/// The progress of a call that its client does not know yet.
pub(crate) struct NewestProgress {
    token: ProgressToken,
    value: Mutex<Option<(u64, Option<u64>)>>,
}

impl NewestProgress {
    /// The token of the call, with how much is done, and of how much.
    pub(crate) fn take(&self) -> Option<(ProgressToken, u64, Option<u64>)> {
        let (done, total) = self.value.lock().take()?;
        Some((self.token.clone(), done, total))
    }
}

impl OutMessage {
    /// The text, and what an end of the server waits for until it is written.
    pub(crate) fn into_text(self) -> Option<(Vec<u8>, Option<TaskTrackerToken>)> {
        match self {
            Self::Text(text) => Some((text, None)),
            Self::Answer(text, in_flight) => Some((text, in_flight)),
            Self::Progress(newest) => {
                let (token, done, total) = newest.take()?;
                let mut parameters = json!({ "progressToken": token, "progress": done });
                if let (Some(total), Value::Object(members)) = (total, &mut parameters) {
                    members.insert("total".into(), total.into());
                }
                Some((
                    write_message(None, "notifications/progress", &parameters),
                    None,
                ))
            }
        }
    }
}

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

/// Result of a question to the user.
pub(crate) enum Asked {
    Answered(ElicitResult),
    /// No answer, with the reason.
    Unanswered(String),
}

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
    pub(crate) async fn ask(&mut self, question: ElicitRequestParams, timeout: Duration) -> Asked {
        // An end of the server does not wait for an unanswered question.
        self.in_flight = None;
        if let Some(peer) = &self.peer {
            return ask_peer(peer, question, timeout).await;
        }
        let (Some(connection), Some(outbox)) = (&self.connection, &self.outbox) else {
            return Asked::Unanswered("this connection takes no questions".into());
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
        let Ok(answer) = tokio::time::timeout(timeout, open.answer()).await else {
            return Asked::Unanswered("there was no answer in time".into());
        };
        ScopeGuard::into_inner(withdrawal);
        let Some(QuestionAnswer { outcome, in_flight }) = answer else {
            return Asked::Unanswered("the connection has ended".into());
        };
        self.in_flight = Some(in_flight);
        match outcome.map(serde_json::from_value) {
            Ok(Ok(result)) => Asked::Answered(result),
            Ok(Err(error)) => Asked::Unanswered(format!("the answer is not valid: {error}")),
            Err(error) => Asked::Unanswered(format!("the client answered with an error: {error}")),
        }
    }
}

async fn ask_peer(
    peer: &Peer<RoleServer>,
    question: ElicitRequestParams,
    timeout: Duration,
) -> Asked {
    let mut options = PeerRequestOptions::no_options();
    options.timeout = Some(timeout);
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(question));
    let handle = match peer.send_cancellable_request(request, options).await {
        Ok(handle) => handle,
        Err(error) => return Asked::Unanswered(error.to_string()),
    };
    let withdrawal = scopeguard::guard((handle.id.clone(), handle.peer.clone()), |(id, peer)| {
        let withdrawn = CancelledNotificationParam::new(Some(id), Some(WITHDRAWN.into()));
        tokio::spawn(async move { peer.notify_cancelled(withdrawn).await });
    });
    let answer = handle.await_response().await;
    ScopeGuard::into_inner(withdrawal);
    match answer {
        Ok(ClientResult::ElicitResult(answer)) => Asked::Answered(answer),
        Ok(_) => Asked::Unanswered("the client answered with another result".into()),
        Err(error) => Asked::Unanswered(error.to_string()),
    }
}
