//! Why a server asks for no requests although its APIs are loaded.

use std::sync::OnceLock;

use tokio_util::sync::CancellationToken;

/// What `/readyz` asks besides the APIs.
#[derive(Default)]
pub(crate) struct ReadinessFlags {
    /// Requests are still taken, but no more should be sent.
    pub(crate) draining: CancellationToken,
    /// Whether clients cannot be let in yet, because the keys of their issuer are not there.
    pub(crate) awaits_keys: OnceLock<Box<dyn Fn() -> bool + Send + Sync>>,
}
