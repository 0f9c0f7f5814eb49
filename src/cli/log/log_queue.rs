//! Standard error of a server: lines wait in a bounded queue, and a thread writes them. They need
//! not be read: lines that do not fit are dropped and counted.
//!
//! The queue is not tracing-appender's, whose guard reports a thread that cannot finish with
//! `eprintln!`: that waits for ever if standard error is not read, and panics if it is closed.

use std::io::{self, Write};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tracing_subscriber::fmt::MakeWriter;

use crate::text::counted;

/// Bytes of lines that may wait.
const MAX_QUEUED_BYTES: usize = 1 << 20;
/// Bytes of memory that an empty queue keeps.
const MAX_IDLE_BYTES: usize = 64 << 10;
/// Time for which the end of the process waits for lines to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The queue of this process; there is one standard error.
static QUEUE: OnceLock<LogQueue> = OnceLock::new();

/// A handle to the queue.
#[derive(Clone, Default)]
pub(crate) struct LogQueue(Arc<SharedQueue>);

#[derive(Default)]
pub(crate) struct SharedQueue {
    state: Mutex<QueueState>,
    /// Notified when there is something to write.
    filled: Condvar,
    /// Notified when everything is written.
    written: Condvar,
}

#[derive(Default)]
struct QueueState {
    lines: Vec<u8>,
    /// Number of lines that did not fit since that was last logged.
    dropped: usize,
    /// True if the thread is writing lines that it took.
    writing: bool,
    /// True if a wait for standard error has timed out; it is not waited for again.
    is_unread: bool,
}

impl LogQueue {
    /// The queue of this process, and its thread with the first call. Without a thread, lines are
    /// dropped.
    pub(crate) fn start() -> Self {
        let start = || {
            let queue = Self::default();
            let shared = Arc::clone(&queue.0);
            let _ = std::thread::Builder::new()
                .name("log".into())
                .spawn(move || shared.write_lines());
            queue
        };
        QUEUE.get_or_init(start).clone()
    }
}

/// Writes a text to standard error, after what was logged before, and waits for it, at most
/// [`FLUSH_TIMEOUT`]: if standard error is not read, the text is lost, but the process ends.
pub(crate) fn write_and_wait(text: &str) {
    if text.is_empty() && QUEUE.get().is_none() {
        return;
    }
    let LogQueue(queue) = LogQueue::start();
    let mut state = queue.state.lock();
    state.lines.extend_from_slice(text.as_bytes());
    queue.filled.notify_one();
    let is_busy =
        |state: &mut QueueState| !state.is_unread && (state.writing || !state.lines.is_empty());
    let waited = queue
        .written
        .wait_while_for(&mut state, is_busy, FLUSH_TIMEOUT);
    state.is_unread |= waited.timed_out();
}

impl SharedQueue {
    fn push(&self, line: &[u8]) {
        let mut state = self.state.lock();
        if state.lines.len() + line.len() > MAX_QUEUED_BYTES {
            state.dropped += 1;
        } else {
            state.lines.extend_from_slice(line);
            self.filled.notify_one();
        }
    }

    /// The thread: takes all lines that wait, and writes them.
    fn write_lines(&self) {
        let mut taken = Vec::new();
        let mut stderr = io::stderr();
        loop {
            let mut state = self.state.lock();
            state.writing = false;
            while state.lines.is_empty() {
                self.written.notify_all();
                self.filled.wait(&mut state);
            }
            std::mem::swap(&mut taken, &mut state.lines);
            let dropped = std::mem::take(&mut state.dropped);
            state.writing = true;
            drop(state);
            // A standard error that is closed or full costs these lines.
            let _ = stderr.write_all(&taken);
            taken.clear();
            taken.shrink_to(MAX_IDLE_BYTES);
            if dropped > 0 {
                tracing::error!(
                    "standard error was not read: {} dropped",
                    counted(dropped, "log line")
                );
            }
        }
    }
}

impl<'a> MakeWriter<'a> for LogQueue {
    type Writer = &'a SharedQueue;

    fn make_writer(&'a self) -> Self::Writer {
        &self.0
    }
}

/// Each call gets one whole line.
impl Write for &SharedQueue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
