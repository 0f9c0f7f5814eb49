//! The library that speaks to Redis and Valkey. It is named here alone, because a program may be
//! built without it: then no connection is ever made.

#![cfg_attr(
    not(feature = "redis"),
    expect(dead_code, reason = "nobody logs in, and nothing is sent")
)]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

#[cfg(feature = "redis")]
pub(super) use redis::FromRedisValue as RedisAnswer;
use rustls::ClientConfig;
use secrecy::SecretString;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};

/// A type that an answer can be read as.
#[cfg(not(feature = "redis"))]
pub(super) trait RedisAnswer {}
#[cfg(not(feature = "redis"))]
impl<T> RedisAnswer for T {}

/// Reason for which a program without the library shares no state.
pub(super) const WITHOUT_REDIS: &str = "this program was built without the feature `redis`";

/// Reads and writes for a connection until that ends.
pub(super) type ConnectionDriver = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Address of the server, and the login of connections to it.
#[derive(Clone)]
pub(crate) struct RedisServer {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) database: i64,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<SecretString>,
    /// True with `rediss`.
    pub(crate) is_encrypted: bool,
    /// How connections are encrypted, if they are.
    pub(crate) tls: Option<Arc<ClientConfig>>,
}

/// Reason for which the server cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum RedisProblem {
    /// A permanent problem: the password, the certificate or the rights of the user are refused.
    #[error("{0}")]
    Refused(String),
    /// A problem that may end by itself.
    #[error("{0}")]
    Unavailable(String),
}

/// A connection that is authenticated. Clones of it share it.
#[derive(Clone)]
pub(super) struct RedisConnection {
    #[cfg(feature = "redis")]
    client: redis::aio::MultiplexedConnection,
    #[cfg(not(feature = "redis"))]
    client: std::convert::Infallible,
}

/// A script of ours, which the server keeps under its digest.
pub(super) struct RedisScript {
    code: &'static str,
    #[cfg(feature = "redis")]
    prepared: std::sync::OnceLock<redis::Script>,
}

/// A command or a script, and what it is about.
pub(super) struct RedisCommand {
    called: Called,
    keys: Vec<String>,
    arguments: Vec<Vec<u8>>,
}

/// Command or script to call.
enum Called {
    Command(&'static str),
    Script(&'static RedisScript),
}

impl RedisScript {
    pub(super) const fn new(code: &'static str) -> Self {
        Self {
            code,
            #[cfg(feature = "redis")]
            prepared: std::sync::OnceLock::new(),
        }
    }

    /// The script with its first key.
    pub(super) fn key(&'static self, key: &str) -> RedisCommand {
        RedisCommand {
            called: Called::Script(self),
            keys: vec![key.to_owned()],
            arguments: Vec::new(),
        }
    }
}

impl RedisCommand {
    /// A command of the server by its name.
    pub(super) fn new(name: &'static str) -> Self {
        Self {
            called: Called::Command(name),
            keys: Vec::new(),
            arguments: Vec::new(),
        }
    }

    /// One more key of a script.
    pub(super) fn key(&mut self, key: &str) -> &mut Self {
        self.keys.push(key.to_owned());
        self
    }

    pub(super) fn arg(&mut self, argument: impl Into<Vec<u8>>) -> &mut Self {
        self.arguments.push(argument.into());
        self
    }

    pub(super) fn number(&mut self, number: u128) -> &mut Self {
        self.arg(number.to_string())
    }
}

#[cfg(feature = "redis")]
impl RedisConnection {
    /// Speaks over a stream, and authenticates.
    ///
    /// # Errors
    /// [`RedisProblem`]
    pub(super) async fn open(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        server: &RedisServer,
    ) -> Result<(Self, ConnectionDriver), RedisProblem> {
        use secrecy::ExposeSecret as _;

        let mut info = redis::RedisConnectionInfo::default()
            .set_db(server.database)
            .set_skip_set_lib_name();
        if let Some(user) = &server.user {
            info = info.set_username(user);
        }
        if let Some(password) = &server.password {
            info = info.set_password(password.expose_secret());
        }
        // Each use has a time limit of its own.
        let config = redis::AsyncConnectionConfig::new().set_response_timeout(None);
        let connected =
            redis::aio::MultiplexedConnection::new_with_config(&info, stream, config).await;
        let (client, driver) = connected.map_err(|error| problem_of(&error))?;
        Ok((Self { client }, Box::pin(driver)))
    }

    /// Sends a command, and reads the answer.
    ///
    /// # Errors
    /// [`RedisProblem`]
    pub(super) async fn run<T: RedisAnswer>(
        &self,
        command: &RedisCommand,
    ) -> Result<T, RedisProblem> {
        let mut client = self.client.clone();
        let answered = match command.called {
            Called::Command(name) => {
                let mut sent = redis::cmd(name);
                sent.arg(&command.arguments);
                sent.query_async(&mut client).await
            }
            Called::Script(script) => {
                let prepared = script
                    .prepared
                    .get_or_init(|| redis::Script::new(script.code));
                let mut invocation = prepared.prepare_invoke();
                for key in &command.keys {
                    invocation.key(key);
                }
                for argument in &command.arguments {
                    invocation.arg(argument);
                }
                invocation.invoke_async(&mut client).await
            }
        };
        answered.map_err(|error| problem_of(&error))
    }
}

#[cfg(not(feature = "redis"))]
impl RedisConnection {
    /// # Errors
    /// Always: this program was built without the library.
    #[expect(clippy::unused_async, reason = "the other form of it waits")]
    pub(super) async fn open(
        _stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        _server: &RedisServer,
    ) -> Result<(Self, ConnectionDriver), RedisProblem> {
        Err(RedisProblem::Refused(WITHOUT_REDIS.into()))
    }

    /// Cannot run, because there is no connection without the library.
    #[expect(clippy::unused_async, reason = "the other form of it waits")]
    pub(super) async fn run<T: RedisAnswer>(
        &self,
        _command: &RedisCommand,
    ) -> Result<T, RedisProblem> {
        match self.client {}
    }
}

/// Converts an error of the library.
#[cfg(feature = "redis")]
fn problem_of(error: &redis::RedisError) -> RedisProblem {
    let why = match error.code().unwrap_or_default() {
        "WRONGPASS" | "NOAUTH" => {
            return RedisProblem::Refused("it refuses the password or user, or wants one".into());
        }
        "NOPERM" => {
            let right = error.detail().unwrap_or_default();
            return RedisProblem::Refused(format!("the user lacks a right: {right}"));
        }
        "MOVED" | "ASK" | "CROSSSLOT" | "CLUSTERDOWN" => {
            "it is a cluster, and only a single primary can be used"
        }
        "READONLY" => "it is a replica, which cannot be written; name the primary",
        "OOM" => "its memory is full",
        "LOADING" => "it is still reading its data",
        _ if error.kind() == redis::ErrorKind::AuthenticationFailed => {
            return RedisProblem::Refused("it refuses the password or user".into());
        }
        _ => &error.to_string(),
    };
    RedisProblem::Unavailable(why.into())
}
