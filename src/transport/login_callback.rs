//! The listener of a login, to which the browser brings the answer of an authorization server (RFC
//! 8252 section 7.3).

use std::future::ready;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{Method, StatusCode};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use url::{Host, Position, Url};

/// Time for which the browser may read the last answer.
const LAST_ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
const TAKEN: &str = "openapi-mcp has the answer. You can close this window; the terminal shows if the login succeeded.\n";
const NOT_AWAITED: &str = "This is not the answer that openapi-mcp waits for.\n";

/// A listener on this machine alone.
pub(crate) struct LoginCallback {
    listeners: Vec<TcpListener>,
    /// Address that the browser is sent to.
    pub(crate) redirect: Url,
}

impl LoginCallback {
    /// Listens at a loopback address, by default at a free port of 127.0.0.1.
    ///
    /// # Errors
    /// The port is taken, or is not this process's to take.
    pub(crate) async fn bind(wanted: Option<&Url>) -> io::Result<Self> {
        let Some(url) = wanted else {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            let url = format!("http://{}/callback", listener.local_addr()?);
            return Ok(Self {
                listeners: vec![listener],
                redirect: Url::parse(&url).map_err(io::Error::other)?,
            });
        };
        let addresses: Vec<IpAddr> = match url.host() {
            Some(Host::Ipv4(address)) => vec![address.into()],
            Some(Host::Ipv6(address)) => vec![address.into()],
            // A browser may try either first.
            Some(Host::Domain(_)) | None => {
                vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
            }
        };
        let mut listeners = Vec::new();
        for address in addresses {
            match TcpListener::bind((address, url.port_or_known_default().unwrap_or_default()))
                .await
            {
                Ok(listener) => listeners.push(listener),
                // A machine without IPv6 has the other address.
                Err(error) if !listeners.is_empty() && error.kind() != ErrorKind::AddrInUse => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self {
            listeners,
            redirect: url.clone(),
        })
    }

    /// Waits for a GET request of this address whose query `read` takes, and ends. Any other
    /// request is answered with 400, because any page can send one. `None` if the listener breaks.
    pub(crate) async fn wait<T: Send + 'static>(
        self,
        read: impl Fn(&str) -> Option<T> + Send + Sync + 'static,
    ) -> Option<T> {
        let (sender, receiver) = oneshot::channel();
        let sender = Mutex::new(Some(sender));
        let redirect = self.redirect;
        // The first good answer is passed on.
        let take = move |request: &Request| {
            let hosts = request.headers().get_all(HOST).iter();
            let is_for_us = request.method() == Method::GET
                && request.uri().path() == redirect.path()
                && hosts.eq([&redirect[Position::BeforeHost..Position::AfterPort]]);
            let query = request.uri().query().filter(|_| is_for_us)?;
            let answer = read(query)?;
            let sender = sender.lock().take()?;
            sender.send(answer).ok()
        };
        let take = Arc::new(take);
        let stop = CancellationToken::new();
        let mut servers = JoinSet::new();
        for listener in self.listeners {
            let take = Arc::clone(&take);
            let answer = move |request| ready(answer(take(&request).is_some()));
            let router = Router::new().fallback(answer);
            let stopped = stop.clone().cancelled_owned();
            servers.spawn(async move {
                axum::serve(listener, router)
                    .with_graceful_shutdown(stopped)
                    .await
            });
        }
        drop(take);
        let answer = receiver.await.ok();
        stop.cancel();
        let _ = timeout(LAST_ANSWER_TIMEOUT, async {
            while servers.join_next().await.is_some() {}
        })
        .await;
        answer
    }
}

fn answer(is_taken: bool) -> Response {
    let (status, text) = if is_taken {
        (StatusCode::OK, TAKEN)
    } else {
        (StatusCode::BAD_REQUEST, NOT_AWAITED)
    };
    let headers = [
        (CONTENT_TYPE, "text/plain; charset=utf-8"),
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CONNECTION, "close"),
    ];
    (status, headers, text).into_response()
}
