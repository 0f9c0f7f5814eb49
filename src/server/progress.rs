//! Progress notifications of a call.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;

/// A client that does not take a notification for this long gets no more of them: after the end of stdin nobody drains
/// the queue, and an unbounded wait would lose the answer itself.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(1);

/// Reports progress to the client that asked for it.
pub(super) struct ProgressReporter {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    /// Set once the client did not take a notification in time.
    silent: AtomicBool,
}

impl ProgressReporter {
    /// Reports the progress of the call that carried this token.
    pub(super) fn new(peer: Peer<RoleServer>, token: ProgressToken) -> Self {
        Self {
            peer,
            token,
            silent: AtomicBool::new(false),
        }
    }

    /// Reports `done` of `total` bytes, unless the client has stopped reading notifications.
    pub(super) async fn report(&self, done: u64, total: Option<u64>) {
        if self.silent.load(Relaxed) {
            return;
        }
        #[expect(clippy::cast_precision_loss, reason = "bytes of one reply stay far below 2^53")]
        let (done, total) = (done as f64, total.map(|total| total as f64));
        let mut progress = ProgressNotificationParam::new(self.token.clone(), done);
        progress.total = total;
        if tokio::time::timeout(NOTIFY_TIMEOUT, self.peer.notify_progress(progress))
            .await
            .is_err()
        {
            self.silent.store(true, Relaxed);
        }
    }
}
