//! The server that replicas share: where it is, and one connection to it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ErrorKind, RedisConnectionInfo, RedisError};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use secrecy::{ExposeSecret as _, SecretString};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Where the server is, and how it is spoken to.
#[derive(Clone)]
pub(crate) struct RedisServer {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) database: i64,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<SecretString>,
    /// With `rediss`.
    pub(crate) tls: Option<Arc<ClientConfig>>,
}

impl fmt::Display for RedisServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls.is_some() { "rediss" } else { "redis" };
        if self.host.contains(':') {
            write!(f, "{scheme}://[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{scheme}://{}:{}", self.host, self.port)
        }
    }
}

/// Reads and writes for a connection until that ends.
pub(crate) type ConnectionDriver = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Why the server cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum RedisProblem {
    /// It will not be better by itself: the password, the certificate or the rights of the user are refused.
    #[error("{0}")]
    Refused(String),
    /// It may be better later.
    #[error("{0}")]
    Unavailable(String),
}

impl RedisProblem {
    /// What an error of the library means.
    pub(crate) fn of(error: &RedisError) -> Self {
        let code = error.code().unwrap_or_default();
        match code {
            "WRONGPASS" | "NOAUTH" => return Self::Refused("it refuses the password or user, or wants one".into()),
            "NOPERM" => return Self::Refused(format!("the user lacks a right: {}", error.detail().unwrap_or_default())),
            "MOVED" | "ASK" | "CROSSSLOT" | "CLUSTERDOWN" => {
                return Self::Unavailable("it is a cluster, and only a single primary can be used".into());
            }
            "READONLY" => return Self::Unavailable("it is a replica, which cannot be written; name the primary".into()),
            "OOM" => return Self::Unavailable("its memory is full".into()),
            "LOADING" => return Self::Unavailable("it is still reading its data".into()),
            _ => {}
        }
        if error.kind() == ErrorKind::AuthenticationFailed {
            return Self::Refused("it refuses the password or user".into());
        }
        Self::Unavailable(error.to_string())
    }
}

impl RedisServer {
    /// Connects, and authenticates.
    ///
    /// # Errors
    /// [`RedisProblem`]
    pub(crate) async fn connect(&self) -> Result<(MultiplexedConnection, ConnectionDriver), RedisProblem> {
        let failed = |error: std::io::Error| RedisProblem::Unavailable(error.to_string());
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await.map_err(failed)?;
        // Each command is one write, which must not wait for the acknowledgement of the last one.
        let _ = stream.set_nodelay(true);
        let mut info = RedisConnectionInfo::default().set_db(self.database).set_skip_set_lib_name();
        if let Some(user) = &self.user {
            info = info.set_username(user);
        }
        if let Some(password) = &self.password {
            info = info.set_password(password.expose_secret());
        }
        // Each use has a time limit of its own.
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let Some(tls) = &self.tls else {
            let connected = MultiplexedConnection::new_with_config(&info, stream, config).await;
            let (connection, driver) = connected.map_err(|error| RedisProblem::of(&error))?;
            return Ok((connection, Box::pin(driver)));
        };
        let name = ServerName::try_from(self.host.clone())
            .map_err(|_| RedisProblem::Refused("its host is not a name that a certificate can have".into()))?;
        let stream = TlsConnector::from(Arc::clone(tls)).connect(name, stream).await.map_err(|error| {
            let refused = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
            match refused {
                Some(rustls::Error::InvalidCertificate(why)) => RedisProblem::Refused(format!("its certificate is not accepted: {why}")),
                _ => RedisProblem::Unavailable(format!("TLS could not be agreed on: {error}")),
            }
        })?;
        let connected = MultiplexedConnection::new_with_config(&info, stream, config).await;
        let (connection, driver) = connected.map_err(|error| RedisProblem::of(&error))?;
        Ok((connection, Box::pin(driver)))
    }
}
