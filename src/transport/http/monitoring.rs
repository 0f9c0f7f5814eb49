//! The listener of the operator: `/metrics` for Prometheus, and the health pages with what
//! strangers need not know.
//!
//! `/healthz` reports that the process lives, and `/readyz` if a load balancer should send
//! requests. Neither asks the upstream: each call reports an API that is down, which would
//! otherwise take every replica out of service.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Router, middleware};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;

use super::host_and_origin::{Allowed, named_host, split_host_port};
use super::page::accepted;
use crate::mcp::McpServer;
use crate::observe;
use crate::observe::metrics::to_classic;

/// Connections at the same time; a few scrapers and probes need no more.
const MAX_CONNECTIONS: usize = 64;
/// Time limit of the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(2);
/// Time limit of a connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);

/// The connections of the listener, each for one request, the oldest first. A new one is served at
/// once: if there are too many, the oldest ends. So clients that hold connections keep no probe
/// out.
pub(super) struct MetricsConnections {
    service: TowerToHyperService<Router>,
    open: VecDeque<AbortOnDropHandle<()>>,
}

impl MetricsConnections {
    pub(super) fn new(router: Router) -> Self {
        Self {
            service: TowerToHyperService::new(router),
            open: VecDeque::new(),
        }
    }

    /// Serves a connection in a task of its own.
    pub(super) fn serve(&mut self, stream: TcpStream) {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .keep_alive(false);
        let connection = http.serve_connection(TokioIo::new(stream), self.service.clone());
        let task = tokio::spawn(async move {
            match tokio::time::timeout(CONNECTION_TIMEOUT, connection).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!("a connection for metrics ended early: {error}"),
                Err(_) => tracing::debug!("a connection for metrics took too long"),
            }
        });
        self.open.retain(|task| !task.is_finished());
        if self.open.len() >= MAX_CONNECTIONS {
            self.open.pop_front();
        }
        self.open.push_back(AbortOnDropHandle::new(task));
    }
}

/// The routes.
pub(super) fn router(health: Health, allowed: Allowed) -> Router {
    let ready = move || async move { describe(&health) };
    Router::new()
        .route(
            "/metrics",
            get(|headers: HeaderMap| async move { metrics(&headers) }),
        )
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .layer(middleware::from_fn_with_state(Arc::new(allowed), admit))
}

/// A page in a browser must not read this by a name that it has bound to a loopback address (DNS
/// rebinding): Host is an address, a loopback name, or one that the operator allows. A page of
/// another origin cannot read the answer, which names no origin.
async fn admit(State(allowed): State<Arc<Allowed>>, request: Request, next: Next) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let allow = [(header::ALLOW, "GET, HEAD")];
        return (StatusCode::METHOD_NOT_ALLOWED, allow).into_response();
    }
    let host = named_host(request.headers(), request.uri()).unwrap_or_default();
    if is_address(host) || allowed.admits_host(host) {
        return next.run(request).await;
    }
    let why = "Forbidden: the host is neither an address nor one that --allow-host names\n";
    (StatusCode::FORBIDDEN, why).into_response()
}

/// `1.2.3.4`, `1.2.3.4:80`, `[::1]` or `[::1]:80`.
fn is_address(host: &str) -> bool {
    split_host_port(host).is_some_and(|(name, _)| {
        let in_brackets = name
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        match in_brackets {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => name.parse::<Ipv4Addr>().is_ok(),
        }
    })
}

fn metrics(headers: &HeaderMap) -> Response {
    let Some(metrics) = observe::metrics() else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let mut text = metrics.exposition();
    let mut format = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    if !takes_open_metrics(headers) {
        text = to_classic(&text);
        format = "text/plain; version=0.0.4; charset=utf-8";
    }
    ([(header::CONTENT_TYPE, format)], text).into_response()
}

/// Returns true if `Accept` names `OpenMetrics` with a weight above 0.
fn takes_open_metrics(headers: &HeaderMap) -> bool {
    accepted(headers).any(|(name, weight)| name == "application/openmetrics-text" && weight > 0)
}

/// Describes the served APIs, for the operator only.
fn describe(health: &Health) -> Response {
    let readiness = health.readiness();
    let apis = health.0.apis.states();
    let mut body = json!({
        "status": readiness.to_string(),
        "tools": apis.iter().map(|api| api.tools).sum::<usize>(),
        "waits_for": match readiness {
            Readiness::Loading(what) => Some(what),
            Readiness::Ready | Readiness::Draining => None,
        },
        "last_reload_failed": apis.iter().any(|api| api.has_failed_reload),
        "shared_state_answers": health.0.shared_state.as_ref().map(|shared| shared.link.answers()),
    });
    let named = apis.iter().filter_map(|api| {
        let state = json!({ "status": api.status, "tools": api.tools, "last_reload_failed": api.has_failed_reload });
        Some((api.name.as_ref()?.to_string(), state))
    });
    let named: serde_json::Map<String, Value> = named.collect();
    if let Some(body) = body.as_object_mut().filter(|_| !named.is_empty()) {
        body.insert("apis".to_owned(), named.into());
    }
    answer_json(readiness, format!("{body}\n"))
}

/// State that decides if requests should be sent to this server.
#[derive(Clone)]
pub(super) struct Health(pub(super) McpServer);

/// Readiness for requests.
#[derive(Clone, Copy, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
enum Readiness {
    /// Requests are answered.
    Ready,
    /// This is not there yet: a document, or the keys that clients' tokens are verified with.
    Loading(&'static str),
    /// Requests are still answered, but the server is about to end.
    Draining,
}

impl Health {
    /// Returns the current readiness.
    fn readiness(&self) -> Readiness {
        let McpServer {
            apis, readiness, ..
        } = &self.0;
        let awaits_keys = readiness.awaits_keys.get();
        if readiness.draining.is_cancelled() {
            Readiness::Draining
        } else if !apis.is_ready() {
            Readiness::Loading("the document")
        } else if awaits_keys.is_some_and(|awaits_keys| awaits_keys()) {
            Readiness::Loading("the keys of the issuer")
        } else {
            Readiness::Ready
        }
    }

    /// Writes the number of APIs that are served, without their names; empty for a single one.
    fn counts(&self) -> String {
        let apis = &self.0.apis;
        if apis.is_single() {
            return String::new();
        }
        let (served, all) = (apis.served().len(), apis.slots.len());
        format!(",\"served\":{served},\"apis\":{all}")
    }

    /// Makes both pages as unauthenticated clients may read them: one word, and the number of APIs
    /// if there are several.
    pub(super) fn routes(self) -> Router {
        let ready = move || async move {
            let readiness = self.readiness();
            let body = format!("{{\"status\":\"{readiness}\"{}}}\n", self.counts());
            answer_json(readiness, body)
        };
        Router::new()
            .route("/healthz", get(|| async { "ok\n" }))
            .route("/readyz", get(ready))
    }
}

/// A page that no cache may keep: 200 if requests should be sent, else 503.
fn answer_json(readiness: Readiness, body: String) -> Response {
    let status = match readiness {
        Readiness::Ready => StatusCode::OK,
        Readiness::Loading(_) | Readiness::Draining => StatusCode::SERVICE_UNAVAILABLE,
    };
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (status, headers, body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_metrics_is_for_those_who_name_it() {
        for (accept, expected) in [
            ("", false),
            ("*/*", false),
            ("text/plain;version=0.0.4", false),
            (
                "application/openmetrics-text;version=1.0.0,text/plain;q=0.5",
                true,
            ),
            ("text/plain, Application/OpenMetrics-Text; q=0.4", true),
            ("application/openmetrics-text;q=0, text/plain", false),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT, accept.parse().unwrap())]);
            assert_eq!(takes_open_metrics(&headers), expected, "{accept}");
        }
    }

    #[test]
    fn addresses_are_hosts_with_or_without_port() {
        for (host, expected) in [
            ("127.0.0.1", true),
            ("10.1.2.3:9464", true),
            ("[::1]:9464", true),
            ("[fd00::1]", true),
            ("10.1.2.3.evil.example", false),
            ("10.1.2.3:port", false),
            ("evil.example:9464", false),
            ("[evil]", false),
            ("", false),
        ] {
            assert_eq!(is_address(host), expected, "{host}");
        }
    }
}
