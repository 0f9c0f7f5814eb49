//! Standard output: whole lines, one after the other, written by one task.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::mcp::connections::outbox::{OutMessage, OutMessages};

/// Number of bytes of unread answers above which no more input is read.
const MAX_BACKLOG_BYTES: usize = 64 << 20;

pub(crate) type OutputStream = Box<dyn AsyncWrite + Send + Unpin>;

/// State of the output.
#[derive(Clone, Default)]
pub(super) struct OutputState(Arc<SharedOutput>);

#[derive(Default)]
struct SharedOutput {
    /// Bytes that wait to be written.
    backlog: AtomicUsize,
    room: Notify,
    /// Cancelled once a write has failed.
    broken: CancellationToken,
    /// Reason for which the first write failed.
    failure: OnceLock<(io::ErrorKind, String)>,
}

impl OutputState {
    /// Counts bytes that are going to be sent.
    pub(super) fn add(&self, bytes: usize) {
        self.0.backlog.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Waits until the client takes its answers: who sends more and reads nothing must not fill our
    /// memory.
    pub(super) async fn has_room(&self) {
        while self.0.backlog.load(Ordering::Relaxed) > MAX_BACKLOG_BYTES {
            self.0.room.notified().await;
        }
    }

    /// Waits until a write has failed.
    pub(super) async fn broken(&self) {
        self.0.broken.cancelled().await;
    }

    /// Returns the reason for which the first write failed, if one did.
    pub(super) fn failure(&self) -> Option<&(io::ErrorKind, String)> {
        self.0.failure.get()
    }

    /// Writes messages, each as a line, until there are no more or a write fails. Answers count as
    /// bytes of the backlog.
    pub(super) async fn write_lines(self, mut messages: OutMessages, mut stdout: OutputStream) {
        while let Some(message) = messages.recv().await {
            let is_answer = matches!(message, OutMessage::Answer(..));
            let Some((mut line, _in_flight)) = message.into_text() else {
                continue;
            };
            line.push(b'\n');
            let written = async {
                stdout.write_all(&line).await?;
                stdout.flush().await
            }
            .await;
            if is_answer {
                self.0.backlog.fetch_sub(line.len() - 1, Ordering::Relaxed);
                self.0.room.notify_one();
            }
            if let Err(error) = written {
                self.0
                    .failure
                    .get_or_init(|| (error.kind(), error.to_string()));
                self.0.broken.cancel();
                return;
            }
        }
    }
}
