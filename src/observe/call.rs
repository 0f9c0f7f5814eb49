//! A request of a client from its arrival to its end. Every request of a client is wrapped here, so
//! that each call is measured and recorded exactly once, however it ends: with a result, with an
//! error, cancelled, or cut off by the end of the process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Weak};
use std::time::{Duration, Instant, SystemTime};

use foldhash::HashMap;
use futures_util::future::Either;
use parking_lot::Mutex;

use super::audit::line::AuditLine;
use super::metrics::{MeasuredCall, TOOLS_CALL};
use super::observers;
use super::outcome::CallOutcome;
use super::record::{Arrival, CallRecord};
use super::server_span::end_server_span;
use super::traces::context::TraceContext;
use super::traces::span::OpenSpan;
use crate::text;

tokio::task_local! {
    /// The call that the current task is making.
    static CURRENT: Arc<OpenCall>;
}

/// Calls that have not ended, if there is an audit log or a span of them.
static OPEN_CALLS: LazyLock<Mutex<HashMap<u64, Weak<OpenCall>>>> = LazyLock::new(Mutex::default);
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// Characters of what a client says of itself.
const MAX_CLAIMED_CHARS: usize = 128;

struct OpenCall {
    number: u64,
    method: &'static str,
    /// Identifier, if the audit log gets a line of the call.
    id: Option<String>,
    /// Span, if spans are recorded.
    span: Option<OpenSpan>,
    time: SystemTime,
    started: Instant,
    record: Mutex<CallRecord>,
    /// True once the end was reported.
    has_ended: Mutex<bool>,
}

/// A call that is observed until it ends, or is dropped; `None` without metrics, traces and audit
/// log.
pub(crate) struct CallObservation(Option<Arc<OpenCall>>);

impl CallObservation {
    /// Begins to observe a call that has arrived. `arrival` is called only if calls are observed.
    pub(crate) fn begin(arrival: impl FnOnce() -> Arrival) -> Self {
        Self::observe(TOOLS_CALL, true, arrival)
    }

    /// A request with that method of MCP has arrived. The audit log has no line of it.
    pub(crate) fn of_method(method: &'static str, arrival: impl FnOnce() -> Arrival) -> Self {
        Self::observe(method, false, arrival)
    }

    fn observe(method: &'static str, is_audited: bool, arrival: impl FnOnce() -> Arrival) -> Self {
        if !observers::is_on() {
            return Self(None);
        }
        let audit = observers::audit().filter(|_| is_audited);
        let arrival = arrival();
        let call = Arc::new(OpenCall {
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
            method,
            id: audit.map(|_| text::random_id()),
            span: observers::tracer().and_then(|tracer| tracer.begin(&arrival.contexts)),
            time: SystemTime::now(),
            started: Instant::now(),
            record: Mutex::new(CallRecord {
                arrival,
                ..CallRecord::default()
            }),
            has_ended: Mutex::new(false),
        });
        if call.is_ended_with_the_process() {
            OPEN_CALLS.lock().insert(call.number, Arc::downgrade(&call));
        }
        Self(Some(call))
    }

    /// Makes the call. Code on the way finds this observation by [`note`]; `judge` reads the
    /// outcome from the output.
    pub(crate) fn watch<F: Future>(
        self,
        call: F,
        judge: impl FnOnce(&F::Output) -> CallOutcome,
    ) -> impl Future<Output = F::Output> {
        let Some(open) = self.0.clone() else {
            return Either::Left(call);
        };
        // In a box, because the futures around it would move it from place to place, each time as a
        // whole.
        let call = CURRENT.scope(Arc::clone(&open), Box::pin(call));
        Either::Right(async move {
            let _dropped = self;
            let output = call.await;
            open.end(judge(&output));
            output
        })
    }

    /// A call that ends before it is made.
    pub(crate) fn end(self, outcome: CallOutcome, describe: impl FnOnce(&mut CallRecord)) {
        if let Some(open) = &self.0 {
            describe(&mut open.record.lock());
            open.end(outcome);
        }
    }
}

impl Drop for CallObservation {
    /// A call that is dropped before its end was cancelled.
    fn drop(&mut self) {
        if let Some(open) = &self.0 {
            open.end(CallOutcome::Cancelled);
        }
    }
}

/// Notes something about the call that the current task is making.
pub(crate) fn note(change: impl FnOnce(&mut CallRecord)) {
    if observers::is_on() {
        let _ = CURRENT.try_with(|call| change(&mut call.record.lock()));
    }
}

/// Writes a line about the beginning of the current call, and waits for it, with
/// `audit_log_required`. Called before a request is sent; one line is enough for all requests of
/// a call.
///
/// # Errors
/// The line could not be written: nothing may be sent.
pub(crate) async fn record_begin() -> Result<(), CallOutcome> {
    let Some(audit) = observers::audit().filter(|audit| audit.is_required()) else {
        return Ok(());
    };
    let line = CURRENT.try_with(|call| {
        let has_begun = call.record.lock().has_begun;
        (!has_begun).then(|| call.line("begin", None))
    });
    let Ok(Some(line)) = line else {
        return Ok(());
    };
    audit
        .write_and_wait(line)
        .await
        .map_err(|()| CallOutcome::NotRecorded)?;
    note(|record| record.has_begun = true);
    Ok(())
}

/// Reads the record of the current call, and its span; `None` outside of observed calls.
pub(super) fn with_current<T>(read: impl FnOnce(&CallRecord, Option<&OpenSpan>) -> T) -> Option<T> {
    CURRENT
        .try_with(|call| read(&call.record.lock(), call.span.as_ref()))
        .ok()
}

/// Ends the calls that are still open when the process ends, and waits until the audit log is
/// written and the spans are sent: two seconds at most, for both at the same time.
pub(crate) async fn finish() {
    end_open_calls();
    let written = observers::audit().map(|audit| tokio::task::spawn_blocking(|| audit.flush()));
    if let Some(tracer) = observers::tracer() {
        tracer.flush().await;
    }
    if let Some(written) = written {
        let _ = written.await;
    }
}

/// Finishes calls if the process ends at once: spans are lost.
pub(crate) fn finish_at_once() {
    end_open_calls();
    if let Some(audit) = observers::audit() {
        audit.flush();
    }
}

fn end_open_calls() {
    let open: Vec<Arc<OpenCall>> = OPEN_CALLS
        .lock()
        .values()
        .filter_map(Weak::upgrade)
        .collect();
    open.iter().for_each(|call| call.end(CallOutcome::CutOff));
}

impl OpenCall {
    /// Returns true if the call is reported although it never ends.
    fn is_ended_with_the_process(&self) -> bool {
        self.id.is_some() || self.span.is_some()
    }

    /// Reports the end of the call, once.
    fn end(&self, outcome: CallOutcome) {
        let mut has_ended = self.has_ended.lock();
        if std::mem::replace(&mut has_ended, true) {
            return;
        }
        drop(has_ended);
        if let Some(metrics) = observers::metrics() {
            let record = self.record.lock();
            metrics.operation(&MeasuredCall {
                method: self.method,
                api: record
                    .operation
                    .as_ref()
                    .map(|operation| operation.label.clone())
                    .unwrap_or_default(),
                tool: record.tool(),
                outcome,
                transport: record.arrival.transport,
                protocol_version: record.arrival.protocol_version,
                duration: self.started.elapsed(),
            });
        }
        if let Some(span) = self.span.as_ref().filter(|span| span.is_sampled()) {
            end_server_span(span, self.method, &self.record.lock(), outcome);
        }
        if self.is_ended_with_the_process() {
            OPEN_CALLS.lock().remove(&self.number);
        }
        if let Some(audit) = observers::audit().filter(|_| self.id.is_some()) {
            let event = if audit.is_required() { "end" } else { "call" };
            audit.write(self.line(event, Some((outcome, self.started.elapsed()))));
        }
    }

    /// A line of the audit log.
    fn line(&self, event: &'static str, end: Option<(CallOutcome, Duration)>) -> Vec<u8> {
        let record = self.record.lock();
        let of_client = || record.arrival.contexts.first().map(TraceContext::trace_id);
        let trace = self
            .span
            .as_ref()
            .map(OpenSpan::trace_id)
            .or_else(of_client);
        let claimed = record.arrival.claimed.as_deref().map(|claimed| {
            let shown = claimed.chars().filter(|character| !character.is_control());
            shown.take(MAX_CLAIMED_CHARS).collect::<String>()
        });
        let mut line = AuditLine::new(event, self.time);
        line.text("id", self.id.as_deref(), 64);
        line.text("client", record.arrival.client.as_deref(), 512);
        line.text("claimed", claimed.as_deref(), 512);
        line.text("tool", record.tool(), 256);
        line.text("meta_tool", record.meta_tool, 32);
        if let Some(operation) = &record.operation {
            line.text("api", Some(&operation.api), 256);
            line.text("method", Some(&operation.method), 32);
            line.text("path", Some(&operation.path_template), 512);
            line.text("effect", Some(operation.effect), 32);
        }
        line.text("arguments_hash", record.arguments_hash.as_deref(), 64);
        if let Some(audit) = observers::audit() {
            line.text("key_id", Some(&audit.key_id), 32);
        }
        if let Some((outcome, duration)) = end {
            line.text("outcome", Some(outcome.into()), 32);
            line.number("status", record.status.map(u64::from));
            line.number(
                "duration_ms",
                Some(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)),
            );
            line.number(
                "bytes",
                record
                    .bytes
                    .map(|bytes| u64::try_from(bytes).unwrap_or(u64::MAX)),
            );
            if let Some(exchange) = &record.exchange {
                line.object("exchange", exchange);
            }
            line.number(
                "attempts",
                (record.attempts > 0).then_some(u64::from(record.attempts)),
            );
            line.number(
                "polls",
                (record.polls > 0).then_some(u64::from(record.polls)),
            );
            if let Some(pages) = record.pages {
                line.number("pages", Some(pages.into()));
            }
        }
        line.flag("confirmed", record.confirmed);
        line.text("question", record.question.as_deref(), 64);
        line.text("trace_id", trace.as_deref(), 32);
        line.finish()
    }
}
