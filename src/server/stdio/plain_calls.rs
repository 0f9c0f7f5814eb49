//! Calls in plain form, answered past rmcp. Requests with the id of another one, and cancellations, behave as
//! in rmcp.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::quality::RandomState;
use rmcp::RoleServer;
use rmcp::model::{ClientNotification, ClientRequest, GetExtensions as _, JsonRpcMessage, RequestId, ServerResult};
use rmcp::service::TxJsonRpcMessage;
use tokio::task::AbortHandle;

use super::output::StdoutWriter;
use crate::observe;
use crate::observe::metrics::TOOLS_CALL;
use crate::observe::record::known_version;
use crate::server::McpServer;
use crate::server::calls::message::{CallMessage, MODERN_VERSION};
use crate::server::calls::{caller_of, write_answer};
use crate::server::jsonrpc::{self, Message};
use crate::server::observed::{self, HandledCall};

/// How a session began, which says which messages it takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Beginning {
    /// Not yet.
    #[default]
    None,
    /// By a handshake.
    Handshake,
    /// By a request of 2026-07-28.
    Request,
    /// By several handshakes: only rmcp knows which one counts.
    Unclear,
}

/// The calls of the one client that are answered past rmcp.
pub(super) struct PlainCalls {
    server: McpServer,
    state: Arc<Mutex<OpenCalls>>,
}

#[derive(Default)]
struct OpenCalls {
    beginning: Beginning,
    /// The protocol version that the client asked for in its handshake, as metrics name it.
    version: &'static str,
    /// What ends a call, by the JSON of its id.
    in_flight: HashMap<Box<str>, AbortHandle, RandomState>,
    /// The ids of the requests that rmcp is going to answer.
    of_rmcp: HashSet<Box<str>, RandomState>,
    /// Those of them that a call answered past rmcp had as well: what rmcp answers to them comes too late.
    answered: HashSet<Box<str>, RandomState>,
    /// Where somebody is told of calls: those that rmcp is going to answer, by the JSON of their ids.
    observed: HashMap<Box<str>, HandledCall, RandomState>,
}

fn lock(state: &Mutex<OpenCalls>) -> MutexGuard<'_, OpenCalls> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PlainCalls {
    pub(super) fn new(server: McpServer) -> Self {
        Self {
            server,
            state: Arc::default(),
        }
    }

    /// Whether a message of rmcp may be sent: of several requests with one id, only the first to come to its end is answered. Learns
    /// from it how the session begins, and tells of a call that rmcp refuses without its handler.
    pub(super) fn may_send(&self, message: &TxJsonRpcMessage<RoleServer>) -> bool {
        let id = match message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        let mut state = lock(&self.state);
        if let JsonRpcMessage::Response(response) = message
            && matches!(response.result, ServerResult::InitializeResult(_))
        {
            state.beginning = match state.beginning {
                Beginning::None => Beginning::Handshake,
                _ => Beginning::Unclear,
            };
        }
        let Some(id) = id.and_then(write_id) else { return true };
        let observed = state.observed.remove(id.as_str());
        if matches!(message, JsonRpcMessage::Error(_)) && observed.is_some_and(|call| !call.is_handled()) {
            let version = state.version;
            observed::observe_unreadable_call(|| observed::piped_arrival(version));
        }
        state.of_rmcp.remove(id.as_str());
        state.in_flight.remove(id.as_str());
        !state.answered.remove(id.as_str())
    }

    /// Learns of a message for rmcp: ends the call that it cancels.
    pub(super) fn note_received(&self, message: &mut Message) {
        match message {
            JsonRpcMessage::Request(request) => {
                let Some(id) = write_id(&request.id) else { return };
                let mut state = lock(&self.state);
                if observe::is_on() && request.request.method() == TOOLS_CALL {
                    let handled = HandledCall::default();
                    request.request.extensions_mut().insert(handled.clone());
                    state.observed.insert(id.as_str().into(), handled);
                }
                if let ClientRequest::InitializeRequest(initialize) = &request.request {
                    state.version = known_version(initialize.params.protocol_version.as_str());
                }
                state.answered.remove(id.as_str());
                state.of_rmcp.insert(id.into());
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = cancelled.params.request_id.as_ref().and_then(write_id)
                {
                    let mut state = lock(&self.state);
                    state.of_rmcp.remove(id.as_str());
                    state.observed.remove(id.as_str());
                    if let Some(call) = state.in_flight.remove(id.as_str()) {
                        call.abort();
                    }
                }
            }
            _ => {}
        }
    }

    /// Tells of a line that is refused because it cannot be read, where it calls something.
    pub(super) fn note_unreadable(&self, line: &[u8]) {
        if observe::is_on() && jsonrpc::names_call(jsonrpc::without_mark(line)) {
            let version = lock(&self.state).version;
            observed::observe_unreadable_call(|| observed::piped_arrival(version));
        }
    }

    /// Begins the call of a line, or says that the line is for rmcp.
    pub(super) fn begin(&self, line: &[u8], output: &StdoutWriter) -> bool {
        // The audit log and traces tell more of a client than a plain call is read for.
        if observe::names_traces() {
            return false;
        }
        let Some(message) = CallMessage::read(line) else { return false };
        let mut state = lock(&self.state);
        let fits = match (state.beginning, message.is_modern) {
            (Beginning::None, true) => {
                // rmcp begins the session with this one.
                state.beginning = Beginning::Request;
                false
            }
            (Beginning::Handshake, _) | (Beginning::Request, true) => true,
            (Beginning::None | Beginning::Request | Beginning::Unclear, _) => false,
        };
        if !fits {
            return false;
        }
        let CallMessage {
            id,
            name,
            arguments,
            is_modern,
        } = message;
        let Some(call) = self.server.plain_call(self.server.state(), name, arguments, None) else {
            return false;
        };
        let version = if is_modern { MODERN_VERSION } else { state.version };
        let id: Box<str> = id.into();
        let (key, output, calls) = (id.clone(), output.clone(), Arc::clone(&self.state));
        // An end waits until the answer is written.
        let in_flight = self.server.calls().token();
        // On the heap at once: the runtime moves a task from place to place.
        let task = tokio::spawn(Box::pin(async move {
            let result = observed::observe_plain_call(call, caller_of(None), || observed::piped_arrival(version)).await;
            if lock(&calls).take(&id) {
                match write_answer(&result, &id, is_modern) {
                    Ok(answer) => {
                        let _ = output.write(answer).await;
                    }
                    Err(error) => tracing::error!("an answer cannot be written: {error}"),
                }
            }
            drop(in_flight);
        }));
        // The task cannot look for its id before this, because the lock is held.
        state.in_flight.insert(key, task.abort_handle());
        true
    }
}

/// An id as JSON, as a plain call has it.
fn write_id(id: &RequestId) -> Option<String> {
    serde_json::to_string(id).ok()
}

impl OpenCalls {
    /// Whether the call that asks is answered: the first of those with its id that comes to its end. The one that came last ends
    /// with it, and what rmcp has to say to the id is not sent.
    fn take(&mut self, id: &str) -> bool {
        let Some(last) = self.in_flight.remove(id) else { return false };
        if tokio::task::try_id() != Some(last.id()) {
            last.abort();
        }
        if self.of_rmcp.remove(id) {
            self.answered.insert(id.into());
        }
        true
    }
}
