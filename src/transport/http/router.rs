//! The routes, and the layers that a request passes.
//!
//! # Adding a route beside `/mcp`
//!
//! - For clients: `router` in `transport/http/router.rs`, before the layer of authentication.
//! - For all clients: merged last, as `/healthz` in `transport/http/monitoring.rs` is.
//! - For those who have a URL: merged last, behind checks of its own, as in
//!   `transport/http/stored_files.rs` and `transport/http/approve/mod.rs`.
//! - For operators: `router` in `transport/http/monitoring.rs`, which has a listener of its own.

use std::sync::Arc;

use axum::http::{StatusCode, Uri};
use axum::routing::{any, get};
use axum::{Router, middleware};
use hyper_util::service::TowerToHyperService;
use tokio_util::sync::CancellationToken;

use super::approve::{self, ApprovalRoute};
use super::body::BodyMemory;
use super::front::Front;
use super::host_and_origin::{Allowed, guard_routes};
use super::monitoring::Health;
use super::page::{ServedPage, serve_page};
use super::sessions::Sessions;
use super::{HttpOptions, stored_files};
use crate::admission::{ClientAdmission, authenticate, jwt, metadata};
use crate::mcp::McpServer;

/// The path at which OpenAI looks for the text that it gave the operator.
const APP_CHALLENGE: &str = "/.well-known/openai-apps-challenge";

/// Makes the routes of a server; `streams` ends the streams that wait for changes.
pub(super) fn front(
    server: &McpServer,
    options: &HttpOptions,
    admission: Option<Arc<ClientAdmission>>,
    page: Option<Arc<ServedPage>>,
    streams: CancellationToken,
) -> Front {
    let allowed = Arc::new(options.allowed.clone());
    let endpoints = server.apis.endpoints.iter().map(|endpoint| {
        let path = &*endpoint.view.path;
        let mut server = server.at(endpoint);
        let demand = admission
            .as_ref()
            .and_then(|admission| admission.scope_demand(path));
        server.gate.demand = demand.map(Arc::new);
        (path.into(), server)
    });
    let endpoints = endpoints.collect();
    let has_page = page.is_some();
    let page_router = router(server, Arc::clone(&allowed), admission.clone(), page);
    let files = options.files.as_ref().map(|store| {
        stored_files::routes(Arc::clone(store), Arc::clone(&allowed), admission.clone())
    });
    let approvals = server.gate.links().map(|links| {
        approve::routes(ApprovalRoute {
            links: Arc::clone(links),
            allowed: Some(Arc::clone(&allowed)),
            admission: admission.clone(),
        })
    });
    let mut router = page_router
        .merge(files.unwrap_or_default())
        .merge(approvals.unwrap_or_default());
    if let Some(text) = options.app_challenge.clone() {
        router = router.merge(app_challenge(text, Arc::clone(&allowed)));
    }
    Front {
        router: TowerToHyperService::new(router),
        endpoints,
        allowed,
        admission,
        sessions: server.asks_by_client().then(Arc::<Sessions>::default),
        has_page,
        memory: BodyMemory::new(options.memory.clone()),
        streams,
    }
}

/// The page that verifies the domain of an app at OpenAI, for all clients that may ask this host.
fn app_challenge(text: String, allowed: Arc<Allowed>) -> Router {
    Router::new()
        .route(APP_CHALLENGE, get(move || std::future::ready(text)))
        .layer(middleware::from_fn_with_state(allowed, guard_routes))
}

/// All routes but the endpoints of MCP.
fn router(
    server: &McpServer,
    allowed: Arc<Allowed>,
    admission: Option<Arc<ClientAdmission>>,
    page: Option<Arc<ServedPage>>,
) -> Router {
    // A fallback of our own is under the layers, as the default one is not: who may not ask learns
    // of no path.
    let mut router = Router::new().fallback(not_found);
    if let Some(admission) = admission {
        let answer = get(metadata).with_state(Arc::clone(&admission));
        router = router
            .layer(middleware::from_fn_with_state(admission, authenticate))
            .route(jwt::WELL_KNOWN, answer.clone())
            .route(&format!("{}/{{*path}}", jwt::WELL_KNOWN), answer);
    }
    if let Some(page) = page {
        // Before authentication: a browser cannot send a token by an address. Behind the guard,
        // because a rebound name could read it.
        router = router
            .route("/", any(not_found))
            .layer(middleware::from_fn_with_state(page, serve_page));
    }
    router
        .layer(middleware::from_fn_with_state(allowed, guard_routes))
        // Outside of the guard: a probe asks by address, and learns nothing but whether to send
        // requests.
        .merge(Health(server.clone()).routes())
}

/// The answer at any other path: where MCP is, at the paths that clients try as well.
async fn not_found(uri: Uri) -> (StatusCode, &'static str) {
    let is_tried = ["/", "/sse", "/message", "/messages"].contains(&uri.path());
    (
        StatusCode::NOT_FOUND,
        if is_tried { "MCP is at /mcp" } else { "" },
    )
}
