//! A call from its arrival to its end. Every way of making calls wraps them here, so that each call is measured and recorded
//! exactly once, however it ends: with a result, with an error, cancelled, or cut off by the end of the process.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::Either;
use serde_json::{Map, Value};

use super::line;
use super::metrics::MeasuredCall;
use super::metrics::labels::OTHER;
use super::observers;
use super::outcome::CallOutcome;

tokio::task_local! {
    /// The call that the current task is making.
    static CURRENT: Arc<OpenCall>;
}

/// Calls that have not ended, where there is an audit log.
static OPEN_CALLS: LazyLock<Mutex<HashMap<u64, Weak<OpenCall>>>> = LazyLock::new(Mutex::default);
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// Protocol versions that are told apart in metrics.
const PROTOCOL_VERSIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
/// Characters of what a client says of itself.
const MAX_CLAIMED_CHARS: usize = 128;

/// How a call arrived.
#[derive(Debug, Default)]
pub(crate) struct Arrival {
    /// `network.transport`: `pipe` or `tcp`.
    pub(crate) transport: &'static str,
    pub(crate) protocol_version: Option<String>,
    /// Who was proved to call, else the address that the call came from.
    pub(crate) client: Option<String>,
    /// What the client says of itself.
    pub(crate) claimed: Option<String>,
    /// `traceparent` of the message or of its HTTP request (W3C Trace Context).
    pub(crate) traceparent: Option<String>,
}

/// The operation that a call is of.
#[derive(Debug, Clone, Default)]
pub(crate) struct CalledOperation {
    pub(crate) api: String,
    pub(crate) tool: String,
    pub(crate) method: String,
    /// The path with its parameters in braces, as the document has it.
    pub(crate) path_template: String,
    /// `read`, `write` or `destructive`.
    pub(crate) effect: &'static str,
}

/// What is known of a call so far.
#[derive(Debug, Default)]
pub(crate) struct CallRecord {
    pub(crate) arrival: Arrival,
    pub(crate) operation: Option<CalledOperation>,
    /// A keyed hash of what was asked for.
    pub(crate) arguments_hash: Option<String>,
    /// What happened on the way that decides how the call ends.
    pub(crate) outcome: Option<CallOutcome>,
    /// Whether a person agreed.
    pub(crate) confirmed: bool,
    /// Joins the line of a question with that of its answer.
    pub(crate) question: Option<String>,
    /// Status of the API's last reply.
    pub(crate) status: Option<u16>,
    /// Bytes of its body after decompression.
    pub(crate) bytes: Option<usize>,
    /// Requests that were sent.
    pub(crate) attempts: u32,
    /// `hit`, `revalidated` or `miss`.
    pub(crate) cache: Option<&'static str>,
}

struct OpenCall {
    number: u64,
    id: String,
    time: SystemTime,
    started: Instant,
    record: Mutex<CallRecord>,
    /// The end is told once.
    has_ended: Mutex<bool>,
}

/// A call that is observed until it ends, or is dropped; nothing where nobody is told of calls.
pub(crate) struct CallObservation(Option<Arc<OpenCall>>);

impl CallObservation {
    /// A call has arrived. `arrival` is asked only where somebody is told.
    pub(crate) fn begin(arrival: impl FnOnce() -> Arrival) -> Self {
        if !observers::is_on() {
            return Self(None);
        }
        let call = Arc::new(OpenCall {
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
            id: line::random_id(),
            time: SystemTime::now(),
            started: Instant::now(),
            record: Mutex::new(CallRecord {
                arrival: arrival(),
                ..CallRecord::default()
            }),
            has_ended: Mutex::new(false),
        });
        if observers::audit().is_some() {
            open_calls().insert(call.number, Arc::downgrade(&call));
        }
        Self(Some(call))
    }

    /// Makes the call. What happens on the way finds this observation by [`note`]; `judge` says of the output how the call ended,
    /// which counts where nothing on the way has said so.
    pub(crate) fn watch<F: Future>(self, call: F, judge: impl FnOnce(&F::Output) -> CallOutcome) -> impl Future<Output = F::Output> {
        let Some(open) = self.0.clone() else { return Either::Left(call) };
        // In a box, so that a call that nobody observes is as small as ever.
        Either::Right(Box::pin(async move {
            let _dropped = self;
            let output = CURRENT.scope(Arc::clone(&open), call).await;
            open.end(judge(&output));
            output
        }))
    }

    /// A call that ends before it is made.
    pub(crate) fn end(self, outcome: CallOutcome, describe: impl FnOnce(&mut CallRecord)) {
        if let Some(open) = &self.0 {
            describe(&mut open.record());
            open.end(outcome);
        }
    }
}

impl Drop for CallObservation {
    /// Whoever drops a call before its end has cancelled it.
    fn drop(&mut self) {
        if let Some(open) = &self.0 {
            open.end(CallOutcome::Cancelled);
        }
    }
}

/// Notes something about the call that the current task is making.
pub(crate) fn note(change: impl FnOnce(&mut CallRecord)) {
    if observers::is_on() {
        let _ = CURRENT.try_with(|call| change(&mut call.record()));
    }
}

/// Notes how the current call is going to end; the first to say so counts.
pub(crate) fn note_outcome(outcome: CallOutcome) {
    note(|record| {
        record.outcome.get_or_insert(outcome);
    });
}

/// With `--audit-log-required`: writes a line that says that the current call begins, and waits for it. Called before anything is
/// sent.
///
/// # Errors
/// The line could not be written: nothing may be sent.
pub(crate) async fn record_begin() -> Result<(), CallOutcome> {
    let Some(audit) = observers::audit().filter(|audit| audit.is_required()) else {
        return Ok(());
    };
    let Ok(line) = CURRENT.try_with(|call| call.line("begin", None)) else {
        return Ok(());
    };
    audit.write_and_wait(line).await.map_err(|()| CallOutcome::NotRecorded)
}

/// Ends the calls that are still open when the process ends, and waits until the audit log is written, for two seconds at most.
pub(crate) fn finish() {
    let Some(audit) = observers::audit() else { return };
    let open: Vec<Arc<OpenCall>> = open_calls().values().filter_map(Weak::upgrade).collect();
    open.iter().for_each(|call| call.end(CallOutcome::CutOff));
    audit.flush();
}

fn open_calls() -> MutexGuard<'static, HashMap<u64, Weak<OpenCall>>> {
    OPEN_CALLS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CallRecord {
    /// Notes which operation is called; `arguments` are those of the message.
    pub(crate) fn resolve(&mut self, operation: CalledOperation, arguments: Option<&Map<String, Value>>) {
        if let Some(audit) = observers::audit() {
            self.arguments_hash = Some(audit.hash_arguments(&operation.api, &operation.tool, arguments));
        }
        self.operation = Some(operation);
    }
}

impl OpenCall {
    fn record(&self) -> MutexGuard<'_, CallRecord> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells everybody how the call ended. What was noted on the way is more exact than what the output shows, unless the call was
    /// ended from outside.
    fn end(&self, judged: CallOutcome) {
        let mut has_ended = self.has_ended.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut has_ended, true) {
            return;
        }
        drop(has_ended);
        let is_from_outside = matches!(judged, CallOutcome::Cancelled | CallOutcome::CutOff);
        let noted = self.record().outcome;
        let outcome = if is_from_outside { judged } else { noted.unwrap_or(judged) };
        if let Some(metrics) = observers::metrics() {
            let record = self.record();
            metrics.operation(&MeasuredCall {
                method: "tools/call",
                tool: record.operation.as_ref().map(|operation| operation.tool.as_str()),
                outcome,
                transport: record.arrival.transport,
                protocol_version: known_version(record.arrival.protocol_version.as_deref()),
                duration: self.started.elapsed(),
            });
        }
        if let Some(audit) = observers::audit() {
            open_calls().remove(&self.number);
            let event = if audit.is_required() { "end" } else { "call" };
            audit.write(self.line(event, Some((outcome, self.started.elapsed()))));
        }
    }

    /// A line of the audit log.
    fn line(&self, event: &'static str, end: Option<(CallOutcome, Duration)>) -> Vec<u8> {
        let record = self.record();
        let mut line = line::AuditLine::new(event, self.time);
        line.text("id", Some(&self.id), 64);
        line.text("client", record.arrival.client.as_deref(), 512);
        let claimed = record.arrival.claimed.as_deref().map(|claimed| {
            let shown = claimed.chars().filter(|character| !character.is_control());
            shown.take(MAX_CLAIMED_CHARS).collect::<String>()
        });
        line.text("claimed", claimed.as_deref(), 512);
        if let Some(operation) = &record.operation {
            line.text("api", Some(&operation.api), 256);
            line.text("tool", Some(&operation.tool), 256);
            line.text("method", Some(&operation.method), 32);
            line.text("path", Some(&operation.path_template), 512);
            line.text("effect", Some(operation.effect), 32);
        }
        line.text("arguments_hash", record.arguments_hash.as_deref(), 64);
        if let Some(audit) = observers::audit() {
            line.text("key_id", Some(audit.key_id()), 32);
        }
        if let Some((outcome, duration)) = end {
            line.text("outcome", Some(outcome.name()), 32);
            line.number("status", record.status.map(u64::from));
            line.number("duration_ms", Some(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)));
            line.number("bytes", record.bytes.map(|bytes| u64::try_from(bytes).unwrap_or(u64::MAX)));
            line.text("cache", record.cache, 16);
            line.number("attempts", (record.attempts > 0).then_some(u64::from(record.attempts)));
        }
        line.flag("confirmed", record.confirmed);
        line.text("question", record.question.as_deref(), 64);
        let trace = record.arrival.traceparent.as_deref().and_then(line::trace_id);
        line.text("trace_id", trace, 32);
        line.finish()
    }
}

fn known_version(version: Option<&str>) -> &'static str {
    let Some(version) = version else { return "" };
    let known = PROTOCOL_VERSIONS.into_iter().find(|known| *known == version);
    known.unwrap_or(OTHER)
}
