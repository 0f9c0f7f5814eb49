//! `/healthz` reports that the process lives, and `/readyz` if a load balancer should send
//! requests. Neither asks the upstream: each call reports an API that is down, which would
//! otherwise take every replica out of service.

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::mcp::McpServer;
use crate::mcp::endpoints::served_apis::ServedState;

/// State that decides if requests should be sent to this server.
#[derive(Clone)]
pub(crate) struct Health {
    server: McpServer,
}

/// Readiness for requests.
#[derive(Clone, Copy, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Readiness {
    /// Requests are answered.
    Ready,
    /// A document is not there yet, or the keys that clients' tokens are verified with.
    Loading,
    /// Requests are still answered, but the server is about to end.
    Draining,
}

impl Readiness {
    /// 200 or 503.
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::Ready => StatusCode::OK,
            Self::Loading | Self::Draining => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl Health {
    pub(crate) fn new(server: McpServer) -> Self {
        Self { server }
    }

    /// Returns the current readiness.
    pub(crate) fn readiness(&self) -> Readiness {
        if self.server.readiness().draining.is_cancelled() {
            Readiness::Draining
        } else if self.waits_for().is_some() {
            Readiness::Loading
        } else {
            Readiness::Ready
        }
    }

    /// Returns what is still missing, for the operator.
    pub(crate) fn waits_for(&self) -> Option<&'static str> {
        if !self.server.is_ready() {
            return Some("the document");
        }
        let awaits_keys = self
            .server
            .readiness()
            .awaits_keys
            .get()
            .is_some_and(|awaits_keys| awaits_keys());
        awaits_keys.then_some("the keys of the issuer")
    }

    /// Returns the state of each API, for the operator.
    pub(crate) fn apis(&self) -> Vec<ServedState> {
        self.server.apis().states()
    }

    /// Returns true if the shared state can be reached; `None` if there is none.
    pub(crate) fn shared_state_answers(&self) -> Option<bool> {
        self.server.shared_state().map(|shared| shared.answers())
    }

    /// Writes the number of APIs that are served, without their names; empty for a single one.
    fn counts(&self) -> String {
        let apis = self.server.apis();
        let counts = apis.counts();
        if apis.is_single() {
            return String::new();
        }
        format!(",\"served\":{},\"apis\":{}", counts.served, counts.all)
    }

    /// Makes both pages as unauthenticated clients may read them: one word, and the number of APIs
    /// if there are several.
    pub(crate) fn routes(self) -> Router {
        let ready = move || async move {
            let readiness = self.readiness();
            let body = format!("{{\"status\":\"{readiness}\"{}}}\n", self.counts());
            answer_json(readiness.status(), body)
        };
        Router::new()
            .route("/healthz", get(|| async { "ok\n" }))
            .route("/readyz", get(ready))
    }
}

/// A page that no cache may keep.
fn answer_json(status: StatusCode, body: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (status, headers, body).into_response()
}
