//! The task that sends spans to a collector, as OTLP over HTTP with protobuf, and the queue in which
//! they wait for it.

use std::io::Write as _;
use std::time::{Duration, UNIX_EPOCH};

use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Link, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, SpanFlags, Status};
use prost::Message as _;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::options::TraceOptions;
use super::queue::{QueueItem, SpanQueue};
use super::span::{AttributeValue, FinishedSpan, TraceContext};
use crate::outbound;
use crate::outbound::{HttpClient, OutboundOptions, http_client, is_loopback};

/// Spans in one request.
const MAX_BATCH: usize = 512;
/// Number of times that a batch is sent again.
const MAX_RETRIES: u32 = 3;
/// Length of the first pause; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// A collector that asks for a longer pause loses the batch.
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// Answers are small; more is not read.
const MAX_ANSWER_BYTES: usize = 64 << 10;

struct Exporter {
    options: TraceOptions,
    client: HttpClient,
    queue: SpanQueue,
}

/// Outcome of a request.
enum SendOutcome {
    Taken {
        refused: usize,
    },
    /// It may be sent again, after a pause that the collector asks for.
    TryAgain {
        after: Option<Duration>,
        why: String,
    },
    Refused(String),
}

/// Starts the task.
///
/// # Errors
/// A sentence if no client can be made.
pub(super) fn start(
    options: TraceOptions,
    outbound: &OutboundOptions,
    queue: SpanQueue,
    items: mpsc::Receiver<QueueItem>,
) -> Result<(), String> {
    let mut outbound = OutboundOptions {
        tls: options.endpoint.scheme() == "https",
        identity: options.identity.clone(),
        ..outbound.for_others()
    };
    outbound
        .authorities
        .extend(options.authorities.iter().cloned());
    if is_loopback(&options.endpoint) {
        outbound.proxy = None;
    }
    let client = http_client(&outbound).map_err(|error| crate::text::error_in_a_line(&error))?;
    let exporter = Exporter {
        options,
        client,
        queue,
    };
    tokio::spawn(exporter.run(items));
    Ok(())
}

impl Exporter {
    async fn run(self, mut items: mpsc::Receiver<QueueItem>) {
        while let Some(item) = items.recv().await {
            let mut batch = Vec::new();
            let mut flushed = add(&mut batch, item);
            let due = Instant::now() + self.options.schedule_delay;
            while flushed.is_none() && batch.len() < MAX_BATCH {
                let item = tokio::select! {
                    biased;
                    item = items.recv() => item,
                    () = self.queue.ending.cancelled() => break,
                    () = tokio::time::sleep_until(due) => break,
                };
                let Some(item) = item else { break };
                flushed = add(&mut batch, item);
            }
            if !batch.is_empty() {
                self.send_batch(batch).await;
            }
            if let Some(flushed) = flushed {
                let _ = flushed.send(());
            }
        }
    }

    /// Sends a batch, again if that may help; spans that cannot be sent are lost.
    async fn send_batch(&self, batch: Vec<FinishedSpan>) {
        let count = batch.len();
        let mut body = write_request(&self.options.resource, batch);
        if self.options.gzip
            && let Ok(compressed) = compress(&body)
        {
            body = compressed;
        }
        let body = bytes::Bytes::from(body);
        let mut pause = FIRST_PAUSE;
        for attempt in 0..=MAX_RETRIES {
            let why = match self.send(body.clone()).await {
                SendOutcome::Taken { refused: 0 } => return,
                SendOutcome::Taken { refused } => {
                    return self
                        .queue
                        .count_dropped(refused.min(count), "the collector refused some");
                }
                SendOutcome::Refused(why) => return self.queue.count_dropped(count, &why),
                SendOutcome::TryAgain { after, why } => {
                    pause = pause.max(after.unwrap_or_default());
                    why
                }
            };
            if attempt == MAX_RETRIES || pause > MAX_PAUSE || self.queue.ending.is_cancelled() {
                return self.queue.count_dropped(count, &why);
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                // One last try.
                () = self.queue.ending.cancelled() => {}
            }
            pause *= 2;
        }
    }

    async fn send(&self, body: bytes::Bytes) -> SendOutcome {
        let outcome = tokio::time::timeout(self.options.timeout, self.exchange(body)).await;
        outcome.unwrap_or_else(|_| SendOutcome::TryAgain {
            after: None,
            why: "the collector does not answer in time".into(),
        })
    }

    async fn exchange(&self, body: bytes::Bytes) -> SendOutcome {
        let mut headers = self.options.headers.clone();
        headers.insert(
            CONTENT_TYPE,
            const { HeaderValue::from_static("application/x-protobuf") },
        );
        if self.options.gzip {
            headers.insert(CONTENT_ENCODING, const { HeaderValue::from_static("gzip") });
        }
        let request = self
            .client
            .post(self.options.endpoint.clone())
            .headers(headers)
            .body(body);
        let mut response = match outbound::send(request).await {
            Ok(response) => response,
            Err(error) => {
                // An URL could hold a secret.
                let why = crate::text::error_in_a_line(&error.without_url());
                return SendOutcome::TryAgain {
                    after: None,
                    why: format!("the collector cannot be reached ({why})"),
                };
            }
        };
        let status = response.status().as_u16();
        let after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.parse().ok());
        let mut answer = Vec::new();
        while let Ok(Some(chunk)) = response.chunk().await {
            if answer.len() + chunk.len() > MAX_ANSWER_BYTES {
                break;
            }
            answer.extend_from_slice(&chunk);
        }
        match status {
            200..=299 => SendOutcome::Taken {
                refused: refused_spans(&answer),
            },
            429 | 502 | 503 | 504 => SendOutcome::TryAgain {
                after: after.map(Duration::from_secs),
                why: format!("the collector answers with status {status}"),
            },
            _ => SendOutcome::Refused(format!("the collector answers with status {status}")),
        }
    }
}

/// Adds a span to the batch, or gives who waits for the batch to be sent.
fn add(batch: &mut Vec<FinishedSpan>, item: QueueItem) -> Option<oneshot::Sender<()>> {
    match item {
        QueueItem::Span(span) => {
            batch.push(*span);
            None
        }
        QueueItem::Flush(done) => Some(done),
    }
}

fn compress(body: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(body)?;
    writer.finish()
}

/// The message that carries these spans, as bytes.
fn write_request(resource: &[(String, String)], spans: Vec<FinishedSpan>) -> Vec<u8> {
    let attributes = resource.iter();
    let resource = Resource {
        attributes: attributes
            .map(|(name, value)| key_value(name, Value::StringValue(value.clone())))
            .collect(),
        ..Resource::default()
    };
    let scope = InstrumentationScope {
        name: "openapi-mcp".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        ..InstrumentationScope::default()
    };
    let spans = ScopeSpans {
        scope: Some(scope),
        spans: spans.into_iter().map(span).collect(),
        ..ScopeSpans::default()
    };
    let request = ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(resource),
            scope_spans: vec![spans],
            ..ResourceSpans::default()
        }],
    };
    request.encode_to_vec()
}

/// Returns the number of spans that the collector reports as refused.
fn refused_spans(response: &[u8]) -> usize {
    let read = ExportTraceServiceResponse::decode(response).unwrap_or_default();
    let refused = read
        .partial_success
        .map_or(0, |partial| partial.rejected_spans);
    usize::try_from(refused).unwrap_or(0)
}

fn span(finished: FinishedSpan) -> Span {
    let span = finished.span;
    let started = span.started.duration_since(UNIX_EPOCH).unwrap_or_default();
    let status = finished.has_failed.then(|| Status {
        code: StatusCode::Error.into(),
        // A text could hold what the API or the client said.
        message: String::new(),
    });
    let attributes = finished.attributes.into_iter().map(|(name, value)| {
        let value = match value {
            AttributeValue::Text(text) => Value::StringValue(text.into_owned()),
            AttributeValue::Number(number) => Value::IntValue(number),
        };
        key_value(name, value)
    });
    Span {
        trace_id: span.trace_id.to_be_bytes().to_vec(),
        span_id: span.span_id.to_be_bytes().to_vec(),
        parent_span_id: span
            .parent
            .map(|id| id.to_be_bytes().to_vec())
            .unwrap_or_default(),
        trace_state: span.state.map(String::from).unwrap_or_default(),
        flags: flags(span.is_sampled, span.has_remote_parent),
        name: finished.name,
        kind: if span.is_client {
            SpanKind::Client
        } else {
            SpanKind::Server
        }
        .into(),
        start_time_unix_nano: nanoseconds(started),
        end_time_unix_nano: nanoseconds(started + finished.duration),
        attributes: attributes.collect(),
        links: span.links.into_iter().map(link).collect(),
        status,
        ..Span::default()
    }
}

fn link(context: TraceContext) -> Link {
    Link {
        trace_id: context.trace_id.to_be_bytes().to_vec(),
        span_id: context.span_id.to_be_bytes().to_vec(),
        trace_state: context.state.map(String::from).unwrap_or_default(),
        flags: flags(context.is_sampled, true),
        ..Link::default()
    }
}

/// The flags of the trace, and whether what the span hangs on is in another process.
fn flags(is_sampled: bool, is_remote: bool) -> u32 {
    let remote = if is_remote {
        SpanFlags::ContextIsRemoteMask as u32
    } else {
        0
    };
    u32::from(is_sampled) | SpanFlags::ContextHasIsRemoteMask as u32 | remote
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn key_value(name: &str, value: Value) -> KeyValue {
    KeyValue {
        key: name.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}
