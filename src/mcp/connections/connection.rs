//! The state of a client between its messages: one value for stdio, and one for each session over
//! HTTP; and the messages on their way to it, in their order.

use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use foldhash::HashMap;
use futures_util::future::{AbortHandle, Abortable};
use parking_lot::Mutex;
use rmcp::model::{
    ClientCapabilities, ErrorData, Implementation, InitializeRequestParams, ProgressToken,
    RequestId,
};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::caller::ReportProgress;
use crate::mcp::endpoint_state::Changes;
use crate::mcp::protocol::answer::write_message;
use crate::mcp::protocol::message::{
    ClientAnswer, McpNotification, McpRequest, Method, request_id,
};
use crate::mcp::protocol::version::ProtocolVersion;

/// The connection of a client.
pub(crate) struct Connection {
    client: Mutex<HandshakeClient>,
    /// The requests that are not answered yet.
    requests: Mutex<HashMap<RequestId, AbortHandle>>,
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
    pub(super) answer: oneshot::Receiver<QuestionAnswer>,
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
        if self.requests.lock().contains_key(&request.id) {
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
        let open = match self.requests.lock().entry(id.clone()) {
            Entry::Occupied(_) => None,
            Entry::Vacant(place) => {
                place.insert(handle.clone());
                Some(OpenRequest {
                    connection: Arc::clone(self),
                    id,
                    handle,
                })
            }
        };
        let answering = Abortable::new(answering, registration);
        async move {
            let answer = answering.await.ok()?;
            open.is_none_or(|open| !open.handle.is_aborted())
                .then_some(answer)
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
            let mut requests = self.requests.lock();
            if let Some(cancelled) = id.and_then(|id| requests.remove(&id)) {
                cancelled.abort();
            }
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
        let mut requests = self.requests.lock();
        requests.drain().for_each(|(_, handle)| handle.abort());
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
    handle: AbortHandle,
}

impl Drop for OpenRequest {
    /// Closes the request. One that was cancelled is closed already, and another one may have its
    /// identifier.
    fn drop(&mut self) {
        let mut requests = self.connection.requests.lock();
        if !self.handle.is_aborted() {
            requests.remove(&self.id);
        }
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
