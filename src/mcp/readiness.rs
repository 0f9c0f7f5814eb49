//! Conditions under which a server is not ready although its APIs are loaded.

use std::sync::OnceLock;

use tokio_util::sync::CancellationToken;

/// Conditions of `/readyz` besides the APIs.
#[derive(Default)]
pub(crate) struct ReadinessFlags {
    /// Requests are still taken, but no more should be sent.
    pub(crate) draining: CancellationToken,
    /// True if clients cannot be admitted yet, because the keys of their issuer are not loaded.
    pub(crate) awaits_keys: OnceLock<Box<dyn Fn() -> bool + Send + Sync>>,
}
