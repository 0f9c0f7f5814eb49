//! The server that replicas share: its address, and one connection to it.

use std::fmt;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::client::{ConnectionDriver, RedisConnection, RedisLogin, RedisProblem};

/// Address of the server, and its login.
#[derive(Clone)]
pub(crate) struct RedisServer {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) login: RedisLogin,
    /// TLS, with `rediss`.
    pub(crate) tls: Option<Arc<ClientConfig>>,
}

impl fmt::Display for RedisServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls.is_some() {
            "rediss"
        } else {
            "redis"
        };
        if self.host.contains(':') {
            write!(f, "{scheme}://[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{scheme}://{}:{}", self.host, self.port)
        }
    }
}

impl RedisServer {
    /// Connects, and authenticates.
    ///
    /// # Errors
    /// [`RedisProblem`]
    pub(super) async fn connect(
        &self,
    ) -> Result<(RedisConnection, ConnectionDriver), RedisProblem> {
        let connected = TcpStream::connect((self.host.as_str(), self.port)).await;
        let stream = connected.map_err(|error| RedisProblem::Unavailable(error.to_string()))?;
        // Each command is one write, which must not wait for the acknowledgement of the last one.
        let _ = stream.set_nodelay(true);
        match &self.tls {
            None => RedisConnection::open(stream, &self.login).await,
            Some(tls) => RedisConnection::open(self.encrypt(stream, tls).await?, &self.login).await,
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
        TlsConnector::from(Arc::clone(tls))
            .connect(name, stream)
            .await
            .map_err(|error| {
                let refused = error
                    .get_ref()
                    .and_then(|inner| inner.downcast_ref::<rustls::Error>());
                match refused {
                    Some(rustls::Error::InvalidCertificate(why)) => {
                        RedisProblem::Refused(format!("its certificate is not accepted: {why}"))
                    }
                    _ => RedisProblem::Unavailable(format!("TLS could not be agreed on: {error}")),
                }
            })
    }
}
