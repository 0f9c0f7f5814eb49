//! A request of a client from its arrival to its end. Every request of a client is wrapped here, so
//! that each call is measured and recorded exactly once, however it ends: with a result, with an
//! error, cancelled, or cut off by the end of the process.
//!
//! A request has a record: its arrival, its content, and its outcome so far. Its span has the
//! attributes of OpenTelemetry's conventions for MCP. None of them holds a value of a call, a text
//! of an error, or what lets its holder in, such as the identifier of a session.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Weak};
use std::time::{Duration, Instant, SystemTime};

use foldhash::HashMap;
use futures_util::future::Either;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Map, Value};

use super::audit::writer::AuditLine;
use super::metrics::TOOLS_CALL;
use super::metrics::labels::{ApiLabel, CallOutcome, OperationLabels};
use super::traces::ArrivedContexts;
use super::traces::span::{AttributeValue, Attributes, OpenSpan, TraceContext};
use crate::{observe, text};

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
    has_ended: AtomicBool,
}

/// A call that is observed until it ends, or is dropped; `None` without metrics, traces and audit
/// log.
pub(crate) struct CallObservation(Option<Arc<OpenCall>>);

impl CallObservation {
    /// Begins to observe a request with that method of MCP that has arrived. `arrival` is called
    /// only if requests are observed. The audit log has lines of calls alone.
    pub(crate) fn begin(method: &'static str, arrival: impl FnOnce() -> Arrival) -> Self {
        if !observe::is_on() {
            return Self(None);
        }
        let audit = observe::audit().filter(|_| method == TOOLS_CALL);
        let arrival = arrival();
        let call = Arc::new(OpenCall {
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
            method,
            id: audit.map(|_| text::random_id()),
            span: observe::tracer().and_then(|tracer| tracer.begin(&arrival.contexts)),
            time: SystemTime::now(),
            started: Instant::now(),
            record: Mutex::new(CallRecord {
                arrival,
                ..CallRecord::default()
            }),
            has_ended: AtomicBool::new(false),
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
        let call = CURRENT.scope(Arc::clone(&open), call);
        Either::Right(async move {
            let _dropped = self;
            let output = call.await;
            open.end(judge(&output));
            output
        })
    }

    /// A call that ends before it is made.
    pub(crate) fn end(self, outcome: CallOutcome) {
        if let Some(open) = &self.0 {
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
    if observe::is_on() {
        let _ = CURRENT.try_with(|call| change(&mut call.record.lock()));
    }
}

/// Writes a line about the beginning of the current call, and waits for it, with
/// `audit_log_required`. Called before a request is sent; one line is enough for all requests of
/// a call.
///
/// # Errors
/// The line could not be written: nothing may be sent.
pub(crate) async fn record_begin() -> Result<(), ()> {
    let Some(audit) = observe::audit().filter(|audit| audit.is_required) else {
        return Ok(());
    };
    let line = CURRENT.try_with(|call| {
        let has_begun = call.record.lock().has_begun;
        (!has_begun).then(|| call.line("begin", None))
    });
    let Ok(Some(line)) = line else {
        return Ok(());
    };
    audit.write_and_wait(line).await?;
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
    let written = observe::audit().map(|audit| tokio::task::spawn_blocking(|| audit.flush()));
    if let Some(tracer) = observe::tracer() {
        tracer.flush().await;
    }
    if let Some(written) = written {
        let _ = written.await;
    }
}

/// Finishes calls if the process ends at once: spans are lost.
pub(crate) fn finish_at_once() {
    end_open_calls();
    if let Some(audit) = observe::audit() {
        audit.flush();
    }
}

fn end_open_calls() {
    // Not while they are locked: each call removes itself.
    let open: Vec<_> = OPEN_CALLS.lock().values().cloned().collect();
    for call in open.iter().filter_map(Weak::upgrade) {
        call.end(CallOutcome::CutOff);
    }
}

impl OpenCall {
    /// Returns true if the call is reported although it never ends.
    fn is_ended_with_the_process(&self) -> bool {
        self.id.is_some() || self.span.is_some()
    }

    /// Reports the end of the call, once.
    fn end(&self, outcome: CallOutcome) {
        if self.has_ended.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Some(metrics) = observe::metrics() {
            let record = self.record.lock();
            let operation = record.operation.as_ref();
            let api = operation.map(|operation| operation.label.clone());
            let tool = (self.method == TOOLS_CALL).then(|| metrics.tool_label(record.tool()));
            let labels = OperationLabels {
                api: api.unwrap_or_default(),
                mcp_method_name: self.method,
                gen_ai_tool_name: tool.unwrap_or_default(),
                error_type: outcome.error_type(),
                network_transport: record.arrival.transport,
                mcp_protocol_version: record.arrival.protocol_version,
            };
            metrics.operation(labels, self.started.elapsed());
        }
        if let Some(span) = self.span.as_ref().filter(|span| span.is_sampled) {
            end_server_span(span, self.method, &self.record.lock(), outcome);
        }
        if self.is_ended_with_the_process() {
            OPEN_CALLS.lock().remove(&self.number);
        }
        if let Some(audit) = observe::audit().filter(|_| self.id.is_some()) {
            let event = if audit.is_required { "end" } else { "call" };
            audit.write(self.line(event, Some((outcome, self.started.elapsed()))));
        }
    }

    /// A line of the audit log.
    fn line(&self, event: &'static str, end: Option<(CallOutcome, Duration)>) -> Vec<u8> {
        let record = self.record.lock();
        let of_client = || record.arrival.contexts.first().map(TraceContext::trace_id);
        let trace = self.span.as_ref().map(OpenSpan::trace_id);
        let trace = trace.or_else(of_client);
        let claimed = record.arrival.claimed.as_deref();
        let claimed = claimed.map(|claimed| shown(claimed, MAX_CLAIMED_CHARS));
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
        if let Some(audit) = observe::audit() {
            line.text("key_id", Some(&audit.key_id), 32);
        }
        if let Some((outcome, duration)) = end {
            line.text("outcome", Some(outcome.into()), 32);
            line.number("status", record.status);
            line.number("duration_ms", Some(duration.as_millis()));
            line.number("bytes", record.bytes);
            if let Some(exchange) = &record.exchange {
                line.object("exchange", exchange);
            }
            for (name, count) in [("attempts", record.attempts), ("polls", record.polls)] {
                line.number(name, (count > 0).then_some(count));
            }
            if let Some(pages) = record.pages {
                line.number("pages", Some(pages));
            }
        }
        line.flag("confirmed", record.confirmed);
        line.text("question", record.question.as_deref(), 64);
        line.text("trace_id", trace.as_deref(), 32);
        line.finish()
    }
}

/// Arrival of a request.
#[derive(Default)]
pub(crate) struct Arrival {
    /// `network.transport`: `pipe` or `tcp`.
    pub(crate) transport: &'static str,
    /// Version of HTTP, if the request came by it.
    pub(crate) http_version: Option<&'static str>,
    /// Version of MCP: a known one, `_other`, or empty if none is known yet.
    pub(crate) protocol_version: &'static str,
    /// Identifier of the JSON-RPC request, if spans are recorded.
    pub(crate) request_id: Option<String>,
    /// Authenticated client, else the address from which the call came.
    pub(crate) client: Option<String>,
    /// Name and version that the client gives.
    pub(crate) claimed: Option<String>,
    /// The traces that the request belongs to.
    pub(crate) contexts: ArrivedContexts,
}

/// The operation that a call is of.
pub(crate) struct CalledOperation {
    /// The name of the API, or the title of its document.
    pub(crate) api: String,
    /// The same in metrics.
    pub(crate) label: ApiLabel,
    pub(crate) tool: String,
    pub(crate) method: String,
    /// The path with its parameters in braces, as the document has it.
    pub(crate) path_template: String,
    /// `read`, `write` or `destructive`.
    pub(crate) effect: &'static str,
}

/// The exchange of a user's token for one of the API.
#[derive(Serialize)]
pub(crate) struct ExchangeRecord {
    /// The security scheme.
    pub(crate) scheme: String,
    pub(crate) scope: Option<String>,
    /// True if the token had been exchanged before.
    #[serde(rename = "cached")]
    pub(crate) is_cached: bool,
}

/// Facts about a call that are known so far.
#[derive(Default)]
pub(crate) struct CallRecord {
    pub(crate) arrival: Arrival,
    pub(crate) operation: Option<Arc<CalledOperation>>,
    /// Meta-tool that calls the operation, in search mode.
    pub(crate) meta_tool: Option<&'static str>,
    /// Meta-tool that was called, if no operation was.
    pub(crate) lookup: Option<&'static str>,
    /// A keyed hash of what was asked for.
    arguments_hash: Option<String>,
    /// True if a person confirmed the call.
    pub(crate) confirmed: bool,
    /// Joins the line of a question with that of its answer.
    pub(crate) question: Option<String>,
    /// Status of the API's last reply.
    pub(crate) status: Option<u16>,
    /// Bytes of its body after decompression.
    pub(crate) bytes: Option<usize>,
    /// Requests that were sent.
    pub(crate) attempts: u32,
    /// Requests for the status or the result of an operation that takes long.
    pub(crate) polls: u32,
    /// Pages that were collected, if the call asked for several.
    pub(crate) pages: Option<u32>,
    /// True once the line about its beginning was written.
    has_begun: bool,
    /// The token of the user that was exchanged.
    pub(crate) exchange: Option<ExchangeRecord>,
}

impl CallRecord {
    /// The tool, if there is one of the name that the client gave.
    fn tool(&self) -> Option<&str> {
        let operation = self.operation.as_ref();
        let tool = operation.map(|operation| operation.tool.as_str());
        tool.or(self.lookup)
    }

    /// Notes which operation is called; `arguments` are those of the message.
    pub(crate) fn resolve(
        &mut self,
        operation: Arc<CalledOperation>,
        arguments: Option<&Map<String, Value>>,
    ) {
        self.arguments_hash = observe::audit()
            .map(|audit| audit.hash_arguments(&operation.api, &operation.tool, arguments));
        self.operation = Some(operation);
    }
}

/// Characters of an identifier that the client gave.
const MAX_ID_CHARS: usize = 64;
/// Bytes of the name of an API, which may be the title of its document.
const MAX_TITLE_BYTES: usize = 256;

/// The beginning of what a client says, without control characters.
fn shown(text: &str, max_chars: usize) -> String {
    let characters = text.chars().filter(|character| !character.is_control());
    characters.take(max_chars).collect()
}

/// Ends the span of a request with that method of MCP.
fn end_server_span(
    span: &OpenSpan,
    method: &'static str,
    record: &CallRecord,
    outcome: CallOutcome,
) {
    let Some(tracer) = observe::tracer() else {
        return;
    };
    let name = record
        .tool()
        .map_or_else(|| method.to_owned(), |tool| format!("{method} {tool}"));
    let attributes = attributes(method, record, outcome);
    tracer.finish(span.end(name, attributes, !outcome.error_type().is_empty()));
}

fn attributes(method: &'static str, record: &CallRecord, outcome: CallOutcome) -> Attributes {
    let arrival = &record.arrival;
    let api = record.operation.as_ref().map(|operation| &operation.api);
    let error = outcome.error_type();
    let error = Some(error).filter(|error| !error.is_empty());
    let texts: [(_, Option<Cow<'static, str>>); 11] = [
        ("mcp.method.name", Some(method.into())),
        (
            "gen_ai.operation.name",
            (method == TOOLS_CALL).then_some("execute_tool".into()),
        ),
        (
            "gen_ai.tool.name",
            record.tool().map(|tool| tool.to_owned().into()),
        ),
        (
            "openapi_mcp.api",
            api.map(|api| text::truncate(api, MAX_TITLE_BYTES).into()),
        ),
        (
            "jsonrpc.request.id",
            arrival
                .request_id
                .as_deref()
                .map(|id| shown(id, MAX_ID_CHARS).into()),
        ),
        (
            "mcp.protocol.version",
            Some(arrival.protocol_version.into())
                .filter(|version: &Cow<'_, str>| !version.is_empty()),
        ),
        ("network.transport", Some(arrival.transport.into())),
        (
            "network.protocol.name",
            arrival.http_version.map(|_| "http".into()),
        ),
        (
            "network.protocol.version",
            arrival.http_version.map(Into::into),
        ),
        ("error.type", error.map(Into::into)),
        (
            "rpc.response.status_code",
            error.filter(|error| error.starts_with('-')).map(Into::into),
        ),
    ];
    let present = texts
        .into_iter()
        .filter_map(|(name, text)| Some((name, AttributeValue::Text(text?))));
    present.collect()
}
