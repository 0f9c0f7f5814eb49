//! Limits the number of sessions, and binds each to its client. Sessions exist only with `--confirm`, for clients of protocol
//! versions before 2026-07-28.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;

use crate::proxy::caller::AuthenticatedClient;
use crate::proxy::caller::client_key::ClientKey;
use crate::server::auth::client_of;
use crate::server::share::may_take_place;

/// The maximum number of sessions.
const MAX_SESSIONS: usize = 1000;
const SESSION_ID_HEADER: &str = "mcp-session-id";

/// All sessions.
#[derive(Default)]
pub(crate) struct Sessions {
    pub(crate) manager: Arc<LocalSessionManager>,
    known: Mutex<HashMap<String, KnownSession>>,
}

/// An open session.
struct KnownSession {
    /// The path of the endpoint at which it began; at others it does not exist.
    endpoint: Box<str>,
    /// The client that may use it, where clients authenticate.
    owner: Option<ClientKey>,
    /// The client whose share it counts for.
    client: ClientKey,
    last_used: Instant,
}

/// What happens to a new session.
enum NewSession {
    /// It is kept; this older one of the same client ends, if any.
    Kept { ended: Option<String> },
    /// It is refused, because there are too many.
    Refused,
}

impl Sessions {
    /// Whether the session may be used by this client; notes the use. An identifier alone proves nothing (MCP, security best
    /// practices, "Session Hijacking").
    fn admits(&self, id: &str, endpoint: &str, caller: Option<ClientKey>) -> bool {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(session) = known.get_mut(id) else { return true };
        let is_admitted = *session.endpoint == *endpoint && (session.owner.is_none() || session.owner == caller);
        if is_admitted {
            session.last_used = Instant::now();
        }
        is_admitted
    }

    /// Counts a session that has just begun. A client that has its share of all sessions loses the one that it has not used for
    /// the longest time.
    async fn admit_new(&self, id: &str, endpoint: &str, owner: Option<ClientKey>, client: ClientKey) -> NewSession {
        let open = self.manager.sessions.read().await;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|id, _| open.contains_key(id.as_str()));
        let own = known.values().filter(|session| session.client == client).count();
        let mut ended = None;
        if !may_take_place(own, known.len(), MAX_SESSIONS) {
            let of_client = known.iter().filter(|(_, session)| session.client == client);
            ended = of_client.min_by_key(|(_, session)| session.last_used).map(|(id, _)| id.clone());
            match &ended {
                Some(ended) => known.remove(ended),
                None => return NewSession::Refused,
            };
        }
        let session = KnownSession {
            endpoint: endpoint.into(),
            owner,
            client,
            last_used: Instant::now(),
        };
        known.insert(id.to_owned(), session);
        NewSession::Kept { ended }
    }

    async fn close(&self, id: &str) {
        if let Err(error) = self.manager.close_session(&id.into()).await {
            tracing::debug!("a session could not be closed: {error}");
        }
    }
}

/// The layer that limits sessions. A session takes memory until it is closed: above the limit, the oldest session of the same
/// client ends, and a client without a session is refused.
pub(crate) async fn limit_sessions(State(sessions): State<Arc<Sessions>>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let caller = parts.extensions.get::<AuthenticatedClient>().map(|caller| caller.key);
    let client = client_of(Some(&parts));
    let path = parts.uri.path().to_owned();
    let Some(id) = parts.headers.get(SESSION_ID_HEADER).cloned() else {
        let response = next.run(Request::from_parts(parts, body)).await;
        if let Some(id) = response.headers().get(SESSION_ID_HEADER).and_then(|id| id.to_str().ok()) {
            match sessions.admit_new(id, &path, caller, client).await {
                NewSession::Kept { ended: Some(ended) } => sessions.close(&ended).await,
                NewSession::Kept { ended: None } => {}
                NewSession::Refused => {
                    sessions.close(id).await;
                    let refusal = "too many sessions; end one, or try again later\n";
                    return (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "30")], refusal).into_response();
                }
            }
        }
        return response;
    };
    if parts.headers.get_all(SESSION_ID_HEADER).iter().nth(1).is_some() {
        return (StatusCode::BAD_REQUEST, "the request names two sessions\n").into_response();
    }
    if !id.to_str().is_ok_and(|id| sessions.admits(id, &path, caller)) {
        // The same answer as for a session that does not exist, so that others cannot find out about it.
        return (StatusCode::NOT_FOUND, "Not Found: Session not found").into_response();
    }
    next.run(Request::from_parts(parts, body)).await
}
