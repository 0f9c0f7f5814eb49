//! The spans that wait for the exporter.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::span::FinishedSpan;

/// Spans that wait at the most.
const MAX_QUEUED_SPANS: usize = 2048;
/// Time for which the end of the process waits for the last spans.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Item for the exporter.
pub(super) enum QueueItem {
    Span(Box<FinishedSpan>),
    /// Send what there is, and answer then.
    Flush(oneshot::Sender<()>),
}

/// The queue, as seen by those who fill it.
#[derive(Clone)]
pub(super) struct SpanQueue {
    sender: mpsc::Sender<QueueItem>,
    /// The process ends: nothing is waited for any more.
    pub(super) ending: CancellationToken,
    on_drop: fn(usize),
    has_told: Arc<AtomicBool>,
}

impl SpanQueue {
    /// The queue, and its end that the exporter reads.
    pub(super) fn new(on_drop: fn(usize)) -> (Self, mpsc::Receiver<QueueItem>) {
        let (sender, items) = mpsc::channel(MAX_QUEUED_SPANS);
        let queue = Self {
            sender,
            ending: CancellationToken::new(),
            on_drop,
            has_told: Arc::default(),
        };
        (queue, items)
    }

    /// Takes a span, or drops it if there is no room, because calls do not wait for the exporter.
    pub(super) fn push(&self, span: FinishedSpan) {
        if self
            .sender
            .try_send(QueueItem::Span(Box::new(span)))
            .is_err()
        {
            self.count_dropped(1, "the collector is slower than the calls");
        }
    }

    /// Counts spans that are lost; the log says so once.
    pub(super) fn count_dropped(&self, count: usize, why: &str) {
        (self.on_drop)(count);
        if !self.has_told.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "spans are lost: {why}; this is said once, and openapi_mcp_spans_dropped_total counts them"
            );
        }
    }

    pub(super) async fn flush(&self) {
        self.ending.cancel();
        let (done, sent) = oneshot::channel();
        let _ = tokio::time::timeout(FLUSH_TIMEOUT, async {
            if self.sender.send(QueueItem::Flush(done)).await.is_ok() {
                let _ = sent.await;
            }
        })
        .await;
    }
}
