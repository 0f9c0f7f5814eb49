//! The place of a call, with which a later call goes on waiting for its operation.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

/// Takes words about an operation that is waited for.
pub(crate) type ReportWait = Arc<dyn Fn(&str) + Send + Sync>;

/// Place of a call, with which a later call goes on waiting for its operation.
#[derive(Clone)]
pub(crate) struct WaitPlace {
    /// The name of the API, if a server has several.
    pub(crate) api: Option<String>,
    /// The value of the caller's tenant.
    pub(crate) tenant: Option<String>,
    /// The path of the endpoint.
    pub(crate) endpoint: Arc<str>,
    /// The beginning of a sentence that says how to go on, before a handle.
    ///
    /// # Errors
    /// A sentence that says why nothing can go on.
    pub(crate) how: Result<String, String>,
    /// Cancelled when the server is about to end.
    pub(crate) ending: CancellationToken,
    /// Takes the newest state of an operation, in words.
    pub(crate) report: Option<ReportWait>,
}
