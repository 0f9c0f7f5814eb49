//! The state that a process shares with others: its connection, its keys, and how names are made.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::hmac;
use rustls::pki_types::CertificateDer;
use sha2::{Digest as _, Sha256};

use super::client::{RedisCommand, RedisProblem, RedisServer, WITHOUT_REDIS};
use super::connection::{RedisLink, SHARED_TIMEOUT, StatePurpose, StateUnavailable};
use super::keys::StateKeys;
use crate::outbound;
use crate::text::hex;

/// Time for which a start waits for the server.
const START_TIMEOUT: Duration = Duration::from_secs(3);
/// Number of bytes of a hash in a name.
const NAME_BYTES: usize = 16;

/// The state that this process shares with others.
pub struct SharedState {
    pub(crate) link: Arc<RedisLink>,
    /// Keys that all replicas have.
    pub(crate) keys: StateKeys,
    names: hmac::Key,
}

/// The same as one API uses it, or one tenant of an API.
#[derive(Debug, Clone)]
pub struct SharedApiState {
    pub(crate) state: Arc<SharedState>,
    /// Identifier: the name of the API, if a server has several, and the tenant.
    pub(crate) api: String,
}

impl SharedApiState {
    /// The state as one tenant of the API uses it. Neither names of APIs nor values of tenants hold
    /// a line break.
    pub(crate) fn of_tenant(&self, value: &str) -> Self {
        Self {
            state: Arc::clone(&self.state),
            api: format!("{}\n{value}", self.api),
        }
    }
}

impl fmt::Debug for SharedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedState({})", self.link.server)
    }
}

impl SharedState {
    /// A state that connects when it is first used. Its certificate may also come from these
    /// authorities. `call_timeout` is the time limit of a request that a call waits for.
    ///
    /// # Errors
    /// TLS or the keys cannot be used, or this program was built without what it takes; in a
    /// sentence.
    pub(crate) fn new(
        mut server: RedisServer,
        authorities: Vec<CertificateDer<'static>>,
        keys: StateKeys,
        call_timeout: Duration,
    ) -> Result<Self, String> {
        if cfg!(not(feature = "redis")) {
            return Err(WITHOUT_REDIS.into());
        }
        if server.is_encrypted {
            let tls = outbound::tls_of_other_protocols(authorities);
            let tls = tls.map_err(|error| format!("TLS cannot be set up: {error}"))?;
            server.tls = Some(Arc::new(tls));
        }
        let names = keys.hash_key("names");
        Ok(Self {
            link: Arc::new(RedisLink::new(server, call_timeout)),
            keys,
            names: names.ok_or("the key of the state cannot be used")?,
        })
    }

    /// Connects for the first time, and warns if the server may drop values. A server that cannot
    /// be reached is a warning: it may come later.
    ///
    /// # Errors
    /// The server refuses the password, the user or us its certificate; in a sentence.
    pub(crate) async fn start(&self) -> Result<(), String> {
        let server = &self.link.server;
        let checked = async {
            let connection = self.link.first_connection().await?;
            let mut probe = RedisCommand::new("GET");
            probe.arg("openapi-mcp:probe");
            let _: Option<Vec<u8>> = connection.run(&probe).await?;
            Ok(connection)
        };
        let checked = tokio::time::timeout(START_TIMEOUT, checked).await;
        self.link.keep();
        let silent = |_| Err(RedisProblem::Unavailable("it does not answer".into()));
        let connection = match checked.unwrap_or_else(silent) {
            Ok(connection) => connection,
            Err(RedisProblem::Refused(why)) => {
                return Err(format!("{server} cannot be used: {why}"));
            }
            Err(RedisProblem::Unavailable(why)) => {
                tracing::warn!(
                    "--shared-state: {server} cannot be used yet: {why}; until it answers, limits hold for each process alone and refresh tokens are not used"
                );
                return Ok(());
            }
        };
        // The right to ask may be missing; the answer is then unknown.
        let mut command = RedisCommand::new("CONFIG");
        command.arg("GET").arg("maxmemory-policy");
        let policy = tokio::time::timeout(SHARED_TIMEOUT, connection.run(&command)).await;
        let policy: Vec<String> = policy.ok().and_then(Result::ok).unwrap_or_default();
        if let Some(policy) = policy.get(1).filter(|policy| policy.starts_with("allkeys")) {
            tracing::warn!(
                "--shared-state: {server} drops any key when its memory is full (maxmemory-policy {policy}), refresh tokens included; set noeviction"
            );
        }
        tracing::info!("shared state at {server}");
        Ok(())
    }

    /// Returns the state as one API uses it, by its name if there are several.
    pub(crate) fn of_api(self: &Arc<Self>, name: Option<&str>) -> SharedApiState {
        SharedApiState {
            state: Arc::clone(self),
            api: name.unwrap_or_default().to_owned(),
        }
    }

    /// Keeps a question for all replicas until it is answered. `lifetime` is how long an answer can
    /// come.
    ///
    /// # Errors
    /// [`StateUnavailable`]: no answer to it will count.
    pub(crate) async fn keep_question(
        &self,
        question: &[u8],
        lifetime: Duration,
    ) -> Result<(), StateUnavailable> {
        let mut command = RedisCommand::new("SET");
        // Clocks of replicas may differ a little.
        let milliseconds = (2 * lifetime).as_millis();
        command.arg(digest_key("question", &[question]));
        command.number(1).arg("PX").number(milliseconds);
        let kept = self.link.run(StatePurpose::Confirm, &command).await;
        kept.map(|_: Option<String>| ())
    }

    /// Accepts the answer to a question for all replicas; `false` if the question is not there,
    /// because it was answered or because the server has lost it.
    ///
    /// # Errors
    /// [`StateUnavailable`]: whether the question is there, is not known.
    pub(crate) async fn accept_answer(&self, question: &[u8]) -> Result<bool, StateUnavailable> {
        let mut command = RedisCommand::new("DEL");
        command.arg(digest_key("question", &[question]));
        let deleted: u64 = self.link.run(StatePurpose::Confirm, &command).await?;
        Ok(deleted > 0)
    }

    /// A key with a hash that only holders of the state key can make, for what others could guess.
    pub(super) fn hashed_key(&self, kind: &str, parts: &[&[u8]]) -> String {
        let tag = hmac::sign(&self.names, &joined(parts));
        key(kind, tag.as_ref())
    }
}

/// A key with a hash that does not depend on the state key, so that replicas agree while that is
/// being replaced: for parts of which one is random.
pub(super) fn digest_key(kind: &str, parts: &[&[u8]]) -> String {
    key(kind, &Sha256::digest(joined(parts)))
}

fn key(kind: &str, hash: &[u8]) -> String {
    let hash = hex(hash.get(..NAME_BYTES).unwrap_or_default());
    format!("openapi-mcp:{kind}:{hash}")
}

/// The parts as one text, each with its length, so that no two lists of parts give the same one.
fn joined(parts: &[&[u8]]) -> Vec<u8> {
    let mut text = Vec::new();
    for part in parts {
        text.extend(part.len().to_be_bytes());
        text.extend_from_slice(part);
    }
    text
}
