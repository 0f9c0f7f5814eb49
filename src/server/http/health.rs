//! `/healthz` says that the process lives, and `/readyz` whether a balancer should send requests. Neither asks the upstream: an API
//! that is down is told by each call, and would otherwise take every replica out.

use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::server::auth::Authenticate;
use crate::server::state::ServerState;

/// What decides whether requests should be sent here.
#[derive(Clone)]
pub(crate) struct Health {
    live: Arc<ServerState>,
    gate: Option<Arc<Authenticate>>,
}

/// Whether requests should be sent here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// They are answered.
    Ready,
    /// The document is not there yet, or the keys that clients' tokens are verified with.
    Loading,
    /// They are still answered, but the server is about to end.
    Draining,
}

impl Readiness {
    /// As it stands in the body.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Loading => "loading",
            Self::Draining => "draining",
        }
    }

    /// 200 or 503.
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::Ready => StatusCode::OK,
            Self::Loading | Self::Draining => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl Health {
    pub(crate) fn new(live: Arc<ServerState>, gate: Option<Arc<Authenticate>>) -> Self {
        Self { live, gate }
    }

    /// Whether requests should be sent here, now.
    pub(crate) fn readiness(&self) -> Readiness {
        if self.live.draining.is_cancelled() {
            Readiness::Draining
        } else if self.live.served().is_none() || self.gate.as_ref().is_some_and(|gate| gate.awaits_keys()) {
            Readiness::Loading
        } else {
            Readiness::Ready
        }
    }

    /// Both pages as strangers may read them: one word.
    pub(crate) fn routes(self) -> Router {
        let ready = move || async move {
            let readiness = self.readiness();
            answer_json(readiness.status(), format!("{{\"status\":\"{}\"}}\n", readiness.name()))
        };
        Router::new()
            .route("/healthz", get(|| async { "ok\n" }))
            .route("/readyz", get(ready))
    }
}

/// A page that no cache may keep.
fn answer_json(status: StatusCode, body: String) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (status, headers, body).into_response()
}
