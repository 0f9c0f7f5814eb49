//! Progress notifications of a call.

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;
use tokio::sync::watch;

use crate::proxy::caller::ReportProgress;

/// A client that does not take a notification for this long gets no more of them: after the end of stdin nobody drains
/// the queue, and an unbounded wait would lose the answer itself.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(1);

/// Sends the newest progress of a call to the client that asked for it, while the call is made.
pub(super) struct PeerProgress {
    newest: watch::Receiver<(u64, Option<u64>)>,
    peer: Peer<RoleServer>,
    token: ProgressToken,
}

impl PeerProgress {
    /// Sends the progress of the call that carried this token; with what reports it.
    pub(super) fn new(peer: Peer<RoleServer>, token: ProgressToken) -> (Self, ReportProgress) {
        let (sender, newest) = watch::channel((0, None));
        let report = move |done, total| {
            let _ = sender.send((done, total));
        };
        (Self { newest, peer, token }, Arc::new(report))
    }

    /// Waits for the call, and sends its progress meanwhile.
    pub(super) async fn watch<T>(mut self, call: impl Future<Output = T>) -> T {
        let mut call = std::pin::pin!(call);
        loop {
            tokio::select! {
                biased;
                output = &mut call => {
                    // How the call went on is complete before its result.
                    if !matches!(self.newest.has_changed(), Ok(false)) {
                        self.send_next().await;
                    }
                    return output;
                }
                sent = self.send_next() => if !sent {
                    return call.await;
                },
            }
        }
    }

    /// Returns whether the client takes notifications.
    async fn send_next(&mut self) -> bool {
        if self.newest.changed().await.is_err() {
            return false;
        }
        let (done, total) = *self.newest.borrow_and_update();
        #[expect(clippy::cast_precision_loss, reason = "bytes of one reply stay far below 2^53")]
        let (done, total) = (done as f64, total.map(|total| total as f64));
        let mut progress = ProgressNotificationParam::new(self.token.clone(), done);
        progress.total = total;
        tokio::time::timeout(NOTIFY_TIMEOUT, self.peer.notify_progress(progress))
            .await
            .is_ok()
    }
}
