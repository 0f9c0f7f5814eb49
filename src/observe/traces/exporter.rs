//! The task that sends spans to a collector: OTLP over HTTP with protobuf.

use std::io::Write as _;
use std::time::Duration;

use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::options::TraceOptions;
use super::otlp;
use super::queue::{QueueItem, SpanQueue};
use super::span::FinishedSpan;
use crate::outbound::{self, HttpClient, OutboundOptions, http_client, is_loopback};

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
        let mut body = otlp::write_request(&self.options.resource, batch);
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
        match tokio::time::timeout(self.options.timeout, self.exchange(body)).await {
            Ok(outcome) => outcome,
            Err(_) => SendOutcome::TryAgain {
                after: None,
                why: "the collector does not answer in time".into(),
            },
        }
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
                refused: otlp::refused_spans(&answer),
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
