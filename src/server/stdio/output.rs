//! Standard output: whole lines, one after the other.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Mutex, Notify};
use tokio_util::sync::CancellationToken;

/// Bytes of answers that nobody has taken; beyond, nothing more is read.
const MAX_BACKLOG_BYTES: usize = 64 << 20;

pub(crate) type OutputStream = Box<dyn AsyncWrite + Send + Unpin>;

/// Writes lines, from any task.
#[derive(Clone)]
pub(super) struct StdoutWriter(Arc<OutputQueue>);

struct OutputQueue {
    writer: Mutex<OutputStream>,
    /// Bytes that wait to be written.
    backlog: AtomicUsize,
    room: Notify,
    /// Cancelled once a write has failed.
    broken: CancellationToken,
    /// Why the first write failed.
    failure: OnceLock<(io::ErrorKind, String)>,
}

impl StdoutWriter {
    pub(super) fn new(stdout: OutputStream) -> Self {
        Self(Arc::new(OutputQueue {
            writer: Mutex::new(stdout),
            backlog: AtomicUsize::new(0),
            room: Notify::new(),
            broken: CancellationToken::new(),
            failure: OnceLock::new(),
        }))
    }

    /// Writes a line, whose end is added.
    pub(super) async fn write(self, mut line: Vec<u8>) -> io::Result<()> {
        line.push(b'\n');
        self.0.backlog.fetch_add(line.len(), Ordering::Relaxed);
        let written = async {
            let mut writer = self.0.writer.lock().await;
            writer.write_all(&line).await?;
            writer.flush().await
        }
        .await;
        self.0.backlog.fetch_sub(line.len(), Ordering::Relaxed);
        self.0.room.notify_one();
        if let Err(error) = &written {
            self.0.failure.get_or_init(|| (error.kind(), error.to_string()));
            self.0.broken.cancel();
        }
        written
    }

    /// Waits until the client takes its answers: who sends more and reads nothing must not fill our memory.
    pub(super) async fn has_room(&self) {
        while self.0.backlog.load(Ordering::Relaxed) > MAX_BACKLOG_BYTES {
            self.0.room.notified().await;
        }
    }

    /// Waits until a write has failed.
    pub(super) async fn broken(&self) {
        self.0.broken.cancelled().await;
    }

    /// Why the first write failed, if one did.
    pub(super) fn failure(&self) -> Option<&(io::ErrorKind, String)> {
        self.0.failure.get()
    }
}
