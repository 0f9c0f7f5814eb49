//! Observability of calls: metrics, traces and the audit log. What answers a request of a client
//! wraps it in a [`call::CallObservation`]; events on the way are noted by one line where they
//! happen. Calls by `openapi-mcp call` and by programs that use the library are not observed.
//!
//! The observers belong to the process, as the log does. Without any, a note is one load and one
//! branch.

pub(crate) mod audit;
pub(crate) mod call;
pub(crate) mod metrics;
pub(crate) mod once_per_minute;
pub(crate) mod traces;
pub(crate) mod upstream;

use std::sync::OnceLock;
use std::time::SystemTime;

use self::audit::AuditLog;
use self::audit::writer::AuditLine;
use self::metrics::{CountedEvent, Metrics};
use self::traces::Tracer;

static OBSERVERS: OnceLock<Observers> = OnceLock::new();

/// Observers of calls.
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

/// Returns true if calls are observed.
pub(crate) fn is_on() -> bool {
    OBSERVERS.get().is_some()
}

/// Returns true if an observer records the trace of a request.
pub(crate) fn names_traces() -> bool {
    OBSERVERS
        .get()
        .is_some_and(|observers| observers.audit.is_some() || observers.tracer.is_some())
}

/// Returns the metrics, if they are kept.
pub(crate) fn metrics() -> Option<&'static Metrics> {
    OBSERVERS.get()?.metrics.as_ref()
}

/// Returns the audit log, if there is one.
pub(crate) fn audit() -> Option<&'static AuditLog> {
    OBSERVERS.get()?.audit.as_ref()
}

/// Returns the tracer, if calls are traced or their traces are passed on.
pub(crate) fn tracer() -> Option<&'static Tracer> {
    OBSERVERS.get()?.tracer.as_ref()
}

/// Counts a request that was refused before its body was read. The audit log gets one line a minute
/// for each reason: strangers must not be able to fill the disk.
pub(crate) fn refused_request(reason: &'static str) {
    count(CountedEvent::Refusal, reason);
    if let Some(audit) = audit() {
        audit.refused_request(reason);
    }
}

/// Counts a line of the audit log that is lost.
pub(crate) fn count_lost_line() {
    if let Some(metrics) = metrics() {
        metrics.audit_lost.inc();
    }
}

/// Counts spans that are lost.
pub(crate) fn count_dropped_spans(count: usize) {
    if let Some(metrics) = metrics() {
        metrics.spans_dropped(count);
    }
}

/// Counts an event.
pub(crate) fn count(event: CountedEvent, value: &'static str) {
    if let Some(metrics) = metrics() {
        metrics.count(event, value);
    }
}

/// Records an answer. `question` is that of the calls, and `approver` the name of who gave it.
pub(crate) fn record_approval(question: &str, approver: &str, agreed: bool) {
    let outcome = if agreed { "agreed" } else { "declined" };
    count(CountedEvent::Approval, outcome);
    if let Some(audit) = audit() {
        let mut line = AuditLine::new("approval", SystemTime::now());
        line.text("question", Some(question), 64);
        line.text("approver", Some(approver), 512);
        line.flag("agreed", agreed);
        audit.write(line.finish());
    }
}
