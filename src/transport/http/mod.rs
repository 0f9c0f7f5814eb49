//! MCP over streamable HTTP at `/mcp` and the endpoints below it, with `/healthz` and `/readyz`
//! beside them.
//!
//! There are no sessions, and an answer is one JSON body unless something must be sent before it:
//! any replica can answer any request. Only if the client asks its user (`--confirm`), clients of
//! versions before 2026-07-28 get a session, because the question must reach them. This module
//! drives hyper itself instead of using `axum::serve`, which sets no timer, so that the time limit
//! on headers would have no effect.

pub(crate) mod approve;
mod body;
mod connection;
mod event_stream;
mod front;
pub(crate) mod host_and_origin;
mod message;
pub(crate) mod monitoring;
pub(crate) mod page;
mod router;
mod sessions;
mod stored_files;
pub(crate) mod tls;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;

use self::connection::Connections;
pub(crate) use self::host_and_origin::Allowed;
use self::monitoring::{Health, MetricsConnections};
use self::page::{PageKind, PageOptions, ServedPage, SignIn};
pub(crate) use self::tls::Tls;
use crate::admission::ClientAdmission;
pub(crate) use crate::admission::access_options::{NamedToken, StaticToken};
pub(crate) use crate::admission::introspection::IntrospectionOptions;
pub(crate) use crate::admission::jwt::OauthOptions;
pub(crate) use crate::admission::limits::Limits;
use crate::admission::limits::RateLimit;
pub(crate) use crate::admission::{AccessOptions, verify_once};
use crate::caller::Peer;
pub(crate) use crate::caller::client_grant::ToolScopes;
use crate::caller::memory_budget::MemoryBudget;
use crate::fd_limit;
use crate::files::FileStore;
use crate::mcp::{McpServer, drain_calls};
use crate::observe::once_per_minute::OncePerMinute;
use crate::outbound::HttpClient;
use crate::shared_state::state::SharedState;

/// Time limit of a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause without accepting connections when no file descriptor is left.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);
/// Time limit of writing the last answers.
const LAST_WRITE_TIMEOUT: Duration = Duration::from_millis(500);

/// The operator's settings for clients.
#[derive(Debug, Clone, Default)]
pub struct HttpOptions {
    /// Hosts and origins that are allowed besides loopback.
    pub allowed: Allowed,
    /// Authentication of clients.
    pub access: AccessOptions,
    /// Limits of requests.
    pub limits: Limits,
    /// TLS, unless something before us does it.
    pub tls: Option<Tls>,
    /// The page for people.
    pub page: PageOptions,
    /// The text that verifies the domain of an app at OpenAI.
    pub app_challenge: Option<String>,
    /// Time for which requests are still answered after SIGTERM, while `/readyz` reports that no
    /// more should be sent.
    pub drain_delay: Duration,
    /// State in which limits of all replicas are counted.
    pub shared_state: Option<Arc<SharedState>>,
    /// Budget of memory for bodies of requests.
    pub memory: MemoryBudget,
    /// Files that results link to.
    pub files: Option<Arc<FileStore>>,
}

impl HttpOptions {
    /// Returns `https` if there is TLS, else `http`.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// Returns the address at which a person opens the page, for a server that listens at
    /// `address`; `None` if there is no page.
    #[must_use]
    pub fn page_address(&self, address: SocketAddr) -> Option<Url> {
        if self.page.kind == PageKind::Off {
            return None;
        }
        if let Some(public) = &self.access.public_url {
            return Some(public.clone());
        }
        // Nothing connects to the unspecified address.
        let host = match address.ip() {
            ip if ip.is_unspecified() => "localhost".to_owned(),
            IpAddr::V6(ip) => format!("[{ip}]"),
            IpAddr::V4(ip) => ip.to_string(),
        };
        Url::parse(&format!("{}://{host}:{}/", self.scheme(), address.port())).ok()
    }
}

/// Serves on a listener until `stop` is cancelled; then takes no new request and answers those in
/// flight. `client` asks an OAuth issuer for its keys.
///
/// # Errors
/// An error if the listener breaks.
pub async fn serve(
    listener: TcpListener,
    server: McpServer,
    options: &HttpOptions,
    client: Option<HttpClient>,
    stop: CancellationToken,
) -> io::Result<()> {
    let streams = CancellationToken::new();
    let calls = server.calls().clone();
    let ending = server.state.ending.clone();
    let scheme = options.scheme();
    let own = Url::parse(&format!("{scheme}://{}/mcp", listener.local_addr()?)).ok();
    let resource = options.access.public_url.clone().or(own);
    if let (Some(store), Some(endpoint)) = (&options.files, &resource) {
        store.serve_beside(endpoint.clone());
        tokio::spawn(
            stop.clone()
                .run_until_cancelled_owned(Arc::clone(store).sweep_regularly()),
        );
    }
    if let (Some(links), Some(endpoint)) = (server.gate.links(), &resource) {
        links.serve_beside(endpoint.clone());
    }
    let rate = options
        .limits
        .rate
        .map(|rate| RateLimit::new(rate, options.shared_state.clone()));
    let admission =
        ClientAdmission::new(&options.access, rate, resource, &server.apis, client, &stop);
    let tls = options.tls.as_ref().map(|tls| tls.watch(&stop));
    if let Some(admission) = &admission {
        let admission = Arc::clone(admission);
        let _ = server
            .readiness
            .awaits_keys
            .set(Box::new(move || admission.awaits_keys()));
    }
    let sign_in = match (&options.access.oauth, &admission) {
        (Some(_), _) => SignIn::Oauth,
        (None, Some(_)) => SignIn::Token,
        (None, None) => SignIn::None,
    };
    let page = ServedPage::new(&options.page, sign_in, options.access.public_url.as_ref());
    let draining = server.readiness.draining.clone();
    // Who needs a token is not told where the API is.
    let is_open = sign_in == SignIn::None && options.page.kind == PageKind::Full;
    let mut server = server;
    server.shows_requests = is_open;
    let front = router::front(&server, options, admission, page, streams.clone());
    let connections = Connections::new(front, draining);
    let max_connections = options.limits.connections;
    accept_connections(listener, max_connections, &connections, tls, &stop).await?;
    ending.cancel();
    drain_connections(connections, &calls, &streams).await;
    Ok(())
}

/// Serves metrics and the health pages on a listener of their own.
pub(crate) async fn serve_metrics(listener: TcpListener, server: McpServer, allowed: Allowed) {
    let router = monitoring::router(Health(server), allowed);
    let mut connections = MetricsConnections::new(router);
    loop {
        match accept(&listener).await {
            Ok((stream, _)) => connections.serve(stream),
            Err(error) => {
                tracing::error!("metrics are not served any more: {error}");
                return;
            }
        }
    }
}

/// Accepts connections and serves each in a task of its own, until `stop` is cancelled.
async fn accept_connections(
    listener: TcpListener,
    max_connections: usize,
    connections: &Connections,
    tls: Option<watch::Receiver<Arc<ServerConfig>>>,
    stop: &CancellationToken,
) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(fd_limit::client_connections(
        max_connections,
    )));
    loop {
        let place = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            place = Arc::clone(&places).acquire_owned() => place.map_err(io::Error::other)?,
        };
        let (stream, peer) = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            accepted = accept(&listener) => accepted?,
        };
        let connections = connections.clone();
        let acceptor = tls
            .as_ref()
            .map(|tls| TlsAcceptor::from(Arc::clone(&tls.borrow())));
        let tasks = connections.tasks.clone();
        tasks.spawn(async move {
            match acceptor {
                None => connections.serve(stream, peer).await,
                Some(acceptor) => {
                    match tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await {
                        Ok(Ok(stream)) => connections.serve(stream, peer).await,
                        Ok(Err(error)) => tracing::debug!("a TLS handshake failed: {error}"),
                        Err(_) => tracing::debug!("a TLS handshake took too long"),
                    }
                }
            }
            drop(place);
        });
    }
}

/// The next connection.
async fn accept(listener: &TcpListener) -> io::Result<(TcpStream, Peer)> {
    static TOLD: OncePerMinute = OncePerMinute::new();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Without it every answer that takes two writes waits for the client's delayed
                // acknowledgement.
                let _ = stream.set_nodelay(true);
                return Ok((stream, Peer(peer.ip())));
            }
            Err(error) if fd_limit::is_out_of_descriptors(&error) => {
                if TOLD.is_due() {
                    tracing::warn!(
                        "no connection can be accepted, because no file descriptor is left ({error}); `ulimit -n` sets how many there are"
                    );
                }
                // The connection stays in the queue, and accepting it again at once would fail too.
                tokio::time::sleep(EXHAUSTED_PAUSE).await;
            }
            Err(error) if is_transient(&error) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Errors of `accept` that concern one connection.
fn is_transient(error: &io::Error) -> bool {
    use io::ErrorKind::{
        ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted, WouldBlock,
    };
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted | WouldBlock
    )
}

/// Lets every connection finish its answer. Streams that only wait for changes would never end by
/// themselves: once no call is in flight any more, and its answer had time to leave, they are
/// ended.
async fn drain_connections(
    connections: Connections,
    calls: &TaskTracker,
    streams: &CancellationToken,
) {
    let finished = connections.close();
    tokio::pin!(finished);
    let answered = async {
        drain_calls(calls).await;
        tokio::time::sleep(LAST_WRITE_TIMEOUT).await;
    };
    tokio::select! {
        () = &mut finished => return,
        () = answered => streams.cancel(),
    }
    let _ = tokio::time::timeout(LAST_WRITE_TIMEOUT, finished).await;
}

/// Binds the address.
///
/// # Errors
/// A port that is taken, an address that is not ours.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await
}
