//! Who is told of calls. One for the process, as the log is.

use std::sync::OnceLock;

use super::audit::AuditLog;
use super::metrics::Metrics;
use super::traces::Tracer;

static OBSERVERS: OnceLock<Observers> = OnceLock::new();

/// Who is told of calls.
#[derive(Default)]
pub(crate) struct Observers {
    pub(crate) metrics: Option<Metrics>,
    pub(crate) audit: Option<AuditLog>,
    pub(crate) tracer: Option<Tracer>,
}

/// Begins to observe; once for the process.
pub(crate) fn start(observers: Observers) {
    if observers.metrics.is_some() || observers.audit.is_some() || observers.tracer.is_some() {
        let _ = OBSERVERS.set(observers);
    }
}

/// Whether anybody is told of calls.
pub(crate) fn is_on() -> bool {
    OBSERVERS.get().is_some()
}

/// Whether anybody is told of the trace that a request belongs to.
pub(crate) fn names_traces() -> bool {
    OBSERVERS
        .get()
        .is_some_and(|observers| observers.audit.is_some() || observers.tracer.is_some())
}

/// The metrics, where they are kept.
pub(crate) fn metrics() -> Option<&'static Metrics> {
    OBSERVERS.get()?.metrics.as_ref()
}

/// The audit log, where there is one.
pub(crate) fn audit() -> Option<&'static AuditLog> {
    OBSERVERS.get()?.audit.as_ref()
}

/// What traces calls, where they are traced or their traces are passed on.
pub(crate) fn tracer() -> Option<&'static Tracer> {
    OBSERVERS.get()?.tracer.as_ref()
}

/// Counts a request that was refused before its body was read. The audit log gets one line a minute for each reason: strangers
/// must not be able to fill the disk.
pub(crate) fn refused_request(reason: &'static str) {
    let Some(observers) = OBSERVERS.get() else { return };
    if let Some(metrics) = &observers.metrics {
        metrics.rejected(reason);
    }
    if let Some(audit) = &observers.audit {
        audit.refused_request(reason);
    }
}

/// Counts a line of the audit log that is lost.
pub(crate) fn count_lost_line() {
    if let Some(metrics) = metrics() {
        metrics.audit_line_lost();
    }
}

/// Counts spans that are lost.
pub(crate) fn count_dropped_spans(count: usize) {
    if let Some(metrics) = metrics() {
        metrics.spans_dropped(count);
    }
}
