//! Sessions: the connections of clients of protocol versions before 2026-07-28, which exist with
//! `--confirm` alone, because a question must find its way back to its client.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::caller::{ClientKey, may_take_place};
use crate::mcp::connections::connection::Connection;
use crate::text;

/// The maximum number of sessions.
const MAX_SESSIONS: usize = 1000;
/// Time after which a session without a message, an open stream or a call in flight ends.
const IDLE_TIMEOUT: Duration = Duration::from_mins(5);
pub(super) const SESSION_ID_HEADER: &str = "mcp-session-id";

/// All sessions, by their identifiers.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<Box<str>, Arc<Session>>>);

/// An open session.
pub(super) struct Session {
    id: Box<str>,
    /// The path of the endpoint at which it began; at others it does not exist.
    endpoint: Box<str>,
    /// The client that may use it, if clients authenticate.
    owner: Option<ClientKey>,
    /// The client whose share it counts for.
    client: ClientKey,
    pub(super) connection: Arc<Connection>,
    last_used: Mutex<Instant>,
    /// Ends the stream on which the client is notified.
    stream: Mutex<CancellationToken>,
}

/// A session while it is used.
pub(super) struct UsedSession(pub(super) Arc<Session>);

impl Sessions {
    /// The session of that identifier, if this client may use it at this endpoint. An identifier
    /// alone proves nothing (MCP, security best practices, "Session Hijacking").
    pub(super) fn find(
        &self,
        id: &str,
        endpoint: &str,
        caller: Option<ClientKey>,
    ) -> Option<UsedSession> {
        let mut open = self.0.lock();
        let session = open.get(id)?;
        if session.is_idle() {
            open.remove(id);
            return None;
        }
        let is_admitted =
            *session.endpoint == *endpoint && (session.owner.is_none() || session.owner == caller);
        is_admitted.then(|| UsedSession(Arc::clone(session)))
    }

    /// Opens a session, and returns its identifier; `None` if there are too many. A client that has
    /// its share of all sessions loses the one that it has not used for the longest time.
    pub(super) fn open(
        &self,
        connection: Arc<Connection>,
        endpoint: &str,
        owner: Option<ClientKey>,
        client: ClientKey,
    ) -> Option<String> {
        let mut open = self.0.lock();
        open.retain(|_, session| !session.is_idle());
        let of_client = || open.values().filter(|session| session.client == client);
        if !may_take_place(of_client().count(), open.len(), MAX_SESSIONS) {
            // What is used now is used last.
            let oldest = of_client()
                .min_by_key(|session| (Arc::strong_count(session) > 1, *session.last_used.lock()));
            let oldest = Arc::clone(oldest?);
            open.remove(&oldest.id);
            oldest.connection.end();
        }
        let id = text::random_id();
        let session = Session {
            id: id.as_str().into(),
            endpoint: endpoint.into(),
            owner,
            client,
            connection,
            last_used: Mutex::new(Instant::now()),
            stream: Mutex::default(),
        };
        open.insert(session.id.clone(), Arc::new(session));
        Some(id)
    }

    /// Ends a session, its stream and its calls.
    pub(super) fn close(&self, session: &UsedSession) {
        self.0.lock().remove(&session.0.id);
        session.0.connection.end();
    }
}

impl Session {
    /// Returns true if the session has been unused for some time.
    fn is_idle(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1 && self.last_used.lock().elapsed() >= IDLE_TIMEOUT
    }
}

impl UsedSession {
    /// Begins a stream on which the client is notified, and ends the one before. The token ends it,
    /// as `streams` does.
    pub(super) fn begin_stream(&self, streams: &CancellationToken) -> CancellationToken {
        let newest = streams.child_token();
        std::mem::replace(&mut *self.0.stream.lock(), newest.clone()).cancel();
        newest
    }
}

impl Drop for UsedSession {
    fn drop(&mut self) {
        *self.0.last_used.lock() = Instant::now();
    }
}
