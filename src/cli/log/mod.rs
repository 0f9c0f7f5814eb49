//! Logs: always on standard error, because standard output belongs to the protocol or to the
//! result.

pub(crate) mod log_queue;
pub(crate) mod spinner;

use std::io::IsTerminal as _;

use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use self::log_queue::LogQueue;
use self::spinner::AroundSpinner;
use crate::config::LogOptions;
use crate::config::settings::{LogFormat, LogLevel};
use crate::config::variables::allows_decoration;

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
pub(crate) fn start_logging(options: LogOptions, default: LogLevel, delivery: LogDelivery) {
    let level = match options.level.unwrap_or(default) {
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
        LogDelivery::Queued => BoxMakeWriter::new(LogQueue::start()),
    };
    let lines = fmt::layer()
        .with_writer(writer)
        .with_ansi(allows_decoration(std::io::stderr().is_terminal()))
        .log_internal_errors(false);
    let registry = tracing_subscriber::registry().with(targets);
    // A second start, in tests for instance, is not a failure.
    let _ = match options.format {
        LogFormat::Text => registry.with(lines.with_target(false)).try_init(),
        LogFormat::Json => registry.with(lines.json().flatten_event(true)).try_init(),
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
