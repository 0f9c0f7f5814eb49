//! The server that replicas share, and the connection to it: made in the background and made again,
//! used within a time limit, and left alone for a moment after several failures, so that a server
//! that is slow or away costs calls almost nothing.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::client::{
    ConnectionDriver, RedisAnswer, RedisCommand, RedisConnection, RedisProblem, RedisServer,
};
use crate::observe;
use crate::observe::metrics::CountedEvent;

/// Time limit of a request whose answer is required.
pub(super) const SHARED_TIMEOUT: Duration = Duration::from_secs(1);
/// Time limit of a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The pauses between attempts to connect: the first, and the longest.
const RECONNECT_PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));
/// Number of failures in a row after which the server is not asked for some time.
const FAILURES_IN_A_ROW: u32 = 5;
/// Time for which it is not asked then.
const LEFT_ALONE: Duration = Duration::from_secs(1);
/// Interval at which the log reports that the server cannot be used.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Purpose of the server's use, as metrics name it.
#[derive(Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum StatePurpose {
    Limit,
    Refresh,
    Confirm,
}

/// The server could not be used; the log says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the shared state cannot be used")]
pub(crate) struct StateUnavailable;

#[derive(Clone)]
enum LinkStatus {
    /// No connection was tried yet.
    Connecting,
    Connected {
        connection: RedisConnection,
        since: Instant,
    },
    Down(RedisProblem),
}

#[derive(Default)]
struct LinkHealth {
    failures: u32,
    alone_until: Option<Instant>,
    told: Option<Instant>,
    is_told: bool,
}

/// The connection of a process.
pub(crate) struct RedisLink {
    pub(super) server: RedisServer,
    /// Time limit of a request that a call waits for; without an answer the process decides alone.
    call_timeout: Duration,
    status: watch::Sender<LinkStatus>,
    health: Mutex<LinkHealth>,
    /// Wakes the task that keeps the connection: it does not answer any more.
    abandon: Notify,
    is_kept: AtomicBool,
}

impl RedisLink {
    pub(crate) fn new(server: RedisServer, call_timeout: Duration) -> Self {
        Self {
            server,
            call_timeout,
            status: watch::Sender::new(LinkStatus::Connecting),
            health: Mutex::default(),
            abandon: Notify::new(),
            is_kept: AtomicBool::new(false),
        }
    }

    /// A connection apart, for the start alone.
    ///
    /// # Errors
    /// [`RedisProblem`], also if it takes too long.
    pub(super) async fn first_connection(&self) -> Result<RedisConnection, RedisProblem> {
        let (connection, driver) = self.server.connect().await?;
        tokio::spawn(driver);
        Ok(connection)
    }

    /// Sends a command or a script.
    ///
    /// # Errors
    /// [`StateUnavailable`] if no answer of that kind came in time.
    pub(super) async fn run<T: RedisAnswer>(
        self: &Arc<Self>,
        purpose: StatePurpose,
        command: &RedisCommand,
    ) -> Result<T, StateUnavailable> {
        self.keep();
        let limit = match purpose {
            StatePurpose::Limit => self.call_timeout,
            StatePurpose::Refresh | StatePurpose::Confirm => SHARED_TIMEOUT,
        };
        let alone_until = self.health.lock().alone_until;
        if alone_until.is_none_or(|until| Instant::now() >= until) {
            let answered = async { self.connection().await?.run(command).await };
            match tokio::time::timeout(limit, answered).await {
                Ok(Ok(value)) => {
                    self.succeeded();
                    return Ok(value);
                }
                Ok(Err(problem)) => self.failed(&problem, false),
                Err(_) => {
                    let why = format!("it did not answer within {} ms", limit.as_millis());
                    self.failed(&RedisProblem::Unavailable(why), true);
                }
            }
        }
        observe::count(CountedEvent::SharedStateFailure, purpose.into());
        Err(StateUnavailable)
    }

    /// Returns the time for which there has been a connection; `None` without one.
    pub(crate) fn connected_for(&self) -> Option<Duration> {
        match &*self.status.borrow() {
            LinkStatus::Connected { since, .. } => Some(since.elapsed()),
            LinkStatus::Connecting | LinkStatus::Down(_) => None,
        }
    }

    /// Connects in the background from now on.
    pub(crate) fn keep(self: &Arc<Self>) {
        if !self.is_kept.swap(true, Ordering::Relaxed) {
            tokio::spawn(keep_connected(Arc::downgrade(self)));
        }
    }

    /// Returns true if the server answered at last.
    pub(crate) fn answers(&self) -> bool {
        self.connected_for().is_some() && !self.health.lock().is_told
    }

    /// The connection; waits for one that is being made.
    async fn connection(&self) -> Result<RedisConnection, RedisProblem> {
        let mut status = self.status.subscribe();
        let known = status
            .wait_for(|status| !matches!(status, LinkStatus::Connecting))
            .await;
        match known.as_deref() {
            Ok(LinkStatus::Connected { connection, .. }) => Ok(connection.clone()),
            Ok(LinkStatus::Down(problem)) => Err(problem.clone()),
            // The sender lives as long as this value.
            Ok(LinkStatus::Connecting) | Err(_) => Err(took_too_long()),
        }
    }

    fn succeeded(&self) {
        let mut health = self.health.lock();
        (health.failures, health.alone_until) = (0, None);
        if std::mem::take(&mut health.is_told) {
            tracing::info!("the shared state at {} answers again", self.server);
        }
    }

    fn failed(&self, problem: &RedisProblem, is_silent: bool) {
        let mut health = self.health.lock();
        health.failures += 1;
        // After a pause, one more failure begins the next one.
        if health.failures >= FAILURES_IN_A_ROW {
            health.alone_until = Some(Instant::now() + LEFT_ALONE);
            if is_silent {
                // If the network drops messages, only a new connection helps.
                self.abandon.notify_waiters();
            }
        }
        if !health.is_told && health.told.is_none_or(|at| at.elapsed() >= LOG_INTERVAL) {
            (health.told, health.is_told) = (Some(Instant::now()), true);
            tracing::warn!(
                "the shared state at {} cannot be used: {problem}; until it answers, limits hold for each process alone, refresh tokens are not used, and what is confirmed is asked again",
                self.server
            );
        }
    }
}

fn took_too_long() -> RedisProblem {
    RedisProblem::Unavailable(format!(
        "no connection could be made within {} s",
        CONNECT_TIMEOUT.as_secs()
    ))
}

/// Makes a connection, and renews it as long as there are users of it.
async fn keep_connected(used: Weak<RedisLink>) {
    let (first, longest) = RECONNECT_PAUSES;
    let mut pause = first;
    while let Some(link) = used.upgrade() {
        match link.server.connect().await {
            Ok((connection, driver)) => {
                pause = first;
                let since = Instant::now();
                link.status
                    .send_replace(LinkStatus::Connected { connection, since });
                tokio::select! {
                    () = driver => {}
                    () = link.abandon.notified() => {}
                }
                link.status.send_replace(LinkStatus::Connecting);
                drop(link);
                // A server that ends every connection at once is not asked again and again.
                if since.elapsed() < longest {
                    tokio::time::sleep(first).await;
                }
            }
            Err(problem) => {
                link.status.send_replace(LinkStatus::Down(problem));
                drop(link);
                tokio::time::sleep(pause).await;
                pause = longest.min(pause * 2);
            }
        }
    }
}

impl fmt::Display for RedisServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, .. } = self;
        let s = if self.is_encrypted { "s" } else { "" };
        if host.contains(':') {
            write!(f, "redis{s}://[{host}]:{port}")
        } else {
            write!(f, "redis{s}://{host}:{port}")
        }
    }
}

impl RedisServer {
    /// Connects, and authenticates.
    ///
    /// # Errors
    /// [`RedisProblem`]
    async fn connect(&self) -> Result<(RedisConnection, ConnectionDriver), RedisProblem> {
        let opened = tokio::time::timeout(CONNECT_TIMEOUT, self.open()).await;
        opened.unwrap_or_else(|_| Err(took_too_long()))
    }

    async fn open(&self) -> Result<(RedisConnection, ConnectionDriver), RedisProblem> {
        let connected = TcpStream::connect((self.host.as_str(), self.port)).await;
        let stream = connected.map_err(|error| RedisProblem::Unavailable(error.to_string()))?;
        // Each command is one write, which must not wait for the acknowledgement of the last one.
        let _ = stream.set_nodelay(true);
        match &self.tls {
            Some(tls) => RedisConnection::open(self.encrypt(stream, tls).await?, self).await,
            None if self.is_encrypted => {
                Err(RedisProblem::Refused("TLS is not set up for it".into()))
            }
            None => RedisConnection::open(stream, self).await,
        }
    }

    async fn encrypt(
        &self,
        stream: TcpStream,
        tls: &Arc<ClientConfig>,
    ) -> Result<TlsStream<TcpStream>, RedisProblem> {
        let name = ServerName::try_from(self.host.clone()).map_err(|_| {
            RedisProblem::Refused("its host is not a name that a certificate can have".into())
        })?;
        let connector = TlsConnector::from(Arc::clone(tls));
        connector.connect(name, stream).await.map_err(|error| {
            match error.get_ref().and_then(|inner| inner.downcast_ref()) {
                Some(rustls::Error::InvalidCertificate(why)) => {
                    RedisProblem::Refused(format!("its certificate is not accepted: {why}"))
                }
                _ => RedisProblem::Unavailable(format!("TLS could not be agreed on: {error}")),
            }
        })
    }
}
