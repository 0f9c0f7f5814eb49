//! Sessions, where there are any: how many, and whose. Only clients of the handshake era have them, and only where a person is
//! asked before calls.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;

use serde::Deserialize;

use super::limits::ClientKey;
use crate::server::auth::AuthenticatedClient;

/// Sessions at the same time.
const MAX_SESSIONS: usize = 1000;
const SESSION_ID_HEADER: &str = "mcp-session-id";

/// All sessions.
#[derive(Default)]
pub(crate) struct Sessions {
    pub(crate) manager: Arc<LocalSessionManager>,
    /// Who began a session, where clients have proved who they are.
    owners: Mutex<HashMap<String, ClientKey>>,
}

impl Sessions {
    /// Whether the session may be used by this client. An identifier alone proves nothing (MCP, security best practices,
    /// "Session Hijacking").
    fn admits(&self, id: &str, caller: Option<ClientKey>) -> bool {
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.get(id).is_none_or(|owner| Some(*owner) == caller)
    }

    async fn begun(&self, id: &str, owner: ClientKey) {
        let open = self.manager.sessions.read().await;
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        if owners.len() >= 2 * MAX_SESSIONS {
            owners.retain(|id, _| open.contains_key(id.as_str()));
        }
        owners.insert(id.to_owned(), owner);
    }
}

/// The layer. Sessions cost memory for as long as they are not closed: beyond a number, new ones have to wait.
pub(crate) async fn limit(State(sessions): State<Arc<Sessions>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let caller = request.extensions().get::<AuthenticatedClient>().map(|caller| caller.client);
    let Some(id) = headers.get(SESSION_ID_HEADER) else {
        let request = if request.method() == Method::POST && sessions.manager.sessions.read().await.len() >= MAX_SESSIONS {
            match without_handshake(request).await {
                Ok(request) => request,
                Err(refusal) => return refusal,
            }
        } else {
            request
        };
        let response = next.run(request).await;
        if let (Some(owner), Some(id)) = (caller, response.headers().get(SESSION_ID_HEADER).and_then(|id| id.to_str().ok())) {
            sessions.begun(id, owner).await;
        }
        return response;
    };
    if headers.get_all(SESSION_ID_HEADER).iter().nth(1).is_some() {
        return (StatusCode::BAD_REQUEST, "the request names two sessions\n").into_response();
    }
    if !id.to_str().is_ok_and(|id| sessions.admits(id, caller)) {
        // The same as of one that does not exist: others need not know that it does.
        return (StatusCode::NOT_FOUND, "Not Found: Session not found").into_response();
    }
    next.run(request).await
}

/// A request that begins no session, or the answer to one that would. What it says decides: a header may say anything.
async fn without_handshake(request: Request) -> Result<Request, Response> {
    #[derive(Deserialize)]
    struct Method<'a> {
        #[serde(borrow)]
        method: Option<Cow<'a, str>>,
    }
    let (parts, body) = request.into_parts();
    // It is one piece in memory already.
    let Ok(bytes) = to_bytes(body, usize::MAX).await else {
        return Err(StatusCode::BAD_REQUEST.into_response());
    };
    let named = serde_json::from_slice::<Method<'_>>(&bytes).ok().and_then(|message| message.method);
    if named.as_deref() == Some("initialize") {
        let refusal = "too many sessions; end one, or try again later\n";
        return Err((StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "30")], refusal).into_response());
    }
    Ok(Request::from_parts(parts, Body::from(bytes)))
}
