//! Logs: always on standard error, because standard output belongs to the protocol or to the result.
//!
//! Lines of a server wait in a bounded queue, and a thread writes them. They need not be read: lines
//! that do not fit are dropped and counted. The queue is not tracing-appender's, whose guard reports a
//! thread that cannot finish with `eprintln!`: that waits for ever if standard error is not read, and
//! panics if it is closed.
//!
//! On terminals, a spinner shows work that takes longer than a second.

use std::io::{self, IsTerminal as _, Write};
use std::sync::OnceLock;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::ProgressBar;
use parking_lot::{Condvar, Mutex};
use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::settings::{LogFormat, LogLevel, ProcessSettings};
use crate::config::variables::allows_decoration;
use crate::text::counted;

/// Delivery of log lines to standard error.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogDelivery {
    /// The code that logs a line writes it, and waits until it is written: for a command that runs
    /// once.
    Direct,
    /// A thread writes the lines, so a standard error that is not read does not block: for a
    /// server.
    Queued,
}

/// Starts logging. Lines of libraries are logged at `warn` and `error` only: at lower levels they
/// could contain headers and bodies. Lines of rmcp's service module are never logged: it reports
/// each client that leaves as an error.
///
/// A line that cannot be written is lost, and nothing else: tracing-subscriber would report it with
/// `eprintln!`, which panics.
pub(crate) fn start_logging(settings: &ProcessSettings, default: LogLevel, delivery: LogDelivery) {
    let level = match settings.log_level.unwrap_or(default) {
        LogLevel::Off => return,
        LogLevel::Error => Level::ERROR,
        LogLevel::Warn => Level::WARN,
        LogLevel::Info => Level::INFO,
        LogLevel::Debug => Level::DEBUG,
        LogLevel::Trace => Level::TRACE,
    };
    let targets = Targets::new()
        .with_default(level.min(Level::WARN))
        .with_target("openapi_mcp", level)
        .with_target("rmcp::service", LevelFilter::OFF);
    let writer = match delivery {
        LogDelivery::Direct => BoxMakeWriter::new(|| AroundSpinner),
        LogDelivery::Queued => {
            let queue = log_queue();
            BoxMakeWriter::new(move || queue)
        }
    };
    let lines = fmt::layer()
        .with_writer(writer)
        .with_ansi(allows_decoration(std::io::stderr().is_terminal()))
        .log_internal_errors(false);
    let registry = tracing_subscriber::registry().with(targets);
    // A second start, in tests for instance, is not a failure.
    let _ = match settings.log_format {
        Some(LogFormat::Json) => registry.with(lines.json().flatten_event(true)).try_init(),
        Some(LogFormat::Text) | None => registry.with(lines.with_target(false)).try_init(),
    };
    if delivery == LogDelivery::Queued {
        log_panics();
    }
}

/// Logs panics like everything else: the standard hook writes to standard error itself, and waits
/// until it can.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let backtrace = std::backtrace::Backtrace::capture();
        if backtrace.status() == std::backtrace::BacktraceStatus::Captured {
            tracing::error!("{panic}\n{backtrace}");
        } else {
            tracing::error!("{panic}");
        }
    }));
}

/// Bytes of lines that may wait.
const MAX_QUEUED_BYTES: usize = 1 << 20;
/// Bytes of memory that an empty queue keeps.
const MAX_IDLE_BYTES: usize = 64 << 10;
/// Time for which the end of the process waits for lines to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The queue of this process; there is one standard error.
static QUEUE: OnceLock<LogQueue> = OnceLock::new();

#[derive(Default)]
struct LogQueue {
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

/// The queue of this process, and its thread with the first call. Without a thread, lines are
/// dropped.
fn log_queue() -> &'static LogQueue {
    QUEUE.get_or_init(|| {
        let _ = std::thread::Builder::new()
            .name("log".into())
            .spawn(|| QUEUE.wait().write_lines());
        LogQueue::default()
    })
}

/// Writes a text to standard error, after what was logged before, and waits for it, at most
/// [`FLUSH_TIMEOUT`]: if standard error is not read, the text is lost, but the process ends.
pub(crate) fn write_and_wait(text: &str) {
    if text.is_empty() && QUEUE.get().is_none() {
        return;
    }
    let queue = log_queue();
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

impl LogQueue {
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

/// Each call gets one whole line.
impl Write for &LogQueue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Time after which a spinner is shown.
const DELAY: Duration = Duration::from_secs(1);
const FRAME_INTERVAL: Duration = Duration::from_millis(100);

/// The spinner that is shown now. A line of the log is written around it.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Work that a spinner may be shown for, until this value is dropped.
pub(crate) struct Spinner {
    /// Dropping it ends the thread.
    running: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Spinner {
    /// `message` says what is being done, such as "reading the document".
    pub(crate) fn start(message: &'static str) -> Self {
        if !allows_decoration(std::io::stderr().is_terminal()) {
            return Self { running: None };
        }
        let (sender, ended) = channel::<()>();
        let show = move || {
            if ended.recv_timeout(DELAY) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let bar = ProgressBar::new_spinner().with_message(message);
            bar.enable_steady_tick(FRAME_INTERVAL);
            *SHOWN.lock() = Some(bar);
            // The other end is only dropped.
            let _ = ended.recv();
            if let Some(bar) = SHOWN.lock().take() {
                bar.finish_and_clear();
            }
        };
        let thread = std::thread::Builder::new()
            .name("spinner".into())
            .spawn(show);
        Self {
            running: thread.ok().map(|thread| (sender, thread)),
        }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.running.take() {
            drop(sender);
            let _ = thread.join();
        }
    }
}

/// Standard error for lines of the log: the spinner is taken away while a line is written.
struct AroundSpinner;

impl Write for AroundSpinner {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let write = || std::io::stderr().write(bytes);
        match &*SHOWN.lock() {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}
