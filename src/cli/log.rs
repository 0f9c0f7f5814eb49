//! Logs: always on standard error, because standard output belongs to the protocol or to the result.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use crate::config::LogOptions;
use crate::config::settings::{LogFormat, LogLevel};

/// Starts logging. Libraries are heard from `warn` on, and at no level below: what they say at `debug` could hold
/// headers and bodies. rmcp's service module calls every client that leaves an error.
pub(crate) fn start_logging(options: LogOptions, default: LogLevel) {
    let level = match options.level.unwrap_or(default) {
        LogLevel::Off => return,
        LogLevel::Error => "error",
        LogLevel::Warn => "warn",
        LogLevel::Info => "info",
        LogLevel::Debug => "debug",
        LogLevel::Trace => "trace",
    };
    let libraries = if level == "error" { "error" } else { "warn" };
    let filter = EnvFilter::new(format!("{libraries},openapi_mcp={level},rmcp::service=off"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    // A second start, in tests for instance, is no failure.
    let _ = match options.format {
        LogFormat::Text => builder.with_target(false).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
}
