//! Sending a request and reading the reply, within limits of time and size.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::proxy::error::CallError;
use crate::proxy::redact::Redactor;
use crate::proxy::request::Request;
use crate::proxy::request::body::file_root::FileRoot;
use crate::proxy::response::records::{Counter, Framing};

/// About how many bytes of a result make a token: few, so that what fits by this count fits.
pub(crate) const MIN_BYTES_PER_TOKEN: usize = 3;
/// Shorter request bodies are gone before anybody could be told.
const MIN_REPORTED_UPLOAD_BYTES: u64 = 256 << 10;
/// More records of a stream than this are not waited for.
const MAX_RECORDS: usize = 1000;

/// So many steps of a reply are told as they come, and then one in each [`STEP`].
const FIRST_STEPS: u32 = 32;
const STEP: Duration = Duration::from_millis(100);

/// What an operator sets about calls.
#[derive(Debug, Clone)]
pub struct CallOptions {
    /// How long one call may take in all, from connecting to the last byte of the reply.
    pub timeout: Duration,
    /// The largest reply, in bytes, counted after decompression.
    pub max_response_bytes: usize,
    /// Where files may be sent from.
    pub files: Option<FileRoot>,
    /// How many bytes of JSON or text a result may hold; what is longer is cut. 0 is no limit.
    pub max_result_bytes: usize,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            max_response_bytes: 10 << 20,
            files: None,
            // Claude Code refuses results of more than 25,000 tokens; a token of JSON is three bytes or more.
            max_result_bytes: 20_000 * MIN_BYTES_PER_TOKEN,
        }
    }
}

/// A reply that was read to its end, or, of a stream of records, as far as the limits let.
#[derive(Debug, Default)]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, decompressed.
    pub body: Bytes,
    /// Why a stream of records was not read to its end.
    pub stopped: Option<Stopped>,
    /// Take out of results what was fetched to sign the request.
    pub redactors: Vec<Arc<Redactor>>,
}

/// A limit that ended a stream of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// The call's time.
    Time,
    /// The number of records.
    Records,
    /// The bytes of a reply.
    Bytes,
}

/// Is told how many bytes of how many have left, and then have arrived as well.
pub(crate) type Progress<'p> = &'p (dyn Fn(u64, Option<u64>) -> BoxFuture<'p, ()> + Send + Sync);

/// Sends a request and reads the whole reply. Dropping the future closes the connection.
///
/// # Errors
/// [`CallError::Timeout`], [`CallError::Network`], [`CallError::TooLarge`]. A reply that ends too early is an error, never
/// half a success.
pub(crate) async fn send_with_timeout(
    client: &reqwest::Client,
    request: Request,
    options: &CallOptions,
    progress: Option<Progress<'_>>,
) -> Result<Response, CallError> {
    // One deadline for everything: a read time-out alone would never stop a reply that comes drop by drop.
    let deadline = Instant::now() + options.timeout;
    match tokio::time::timeout_at(deadline, exchange(client, request, options, deadline, progress)).await {
        Ok(result) => result,
        Err(_) => Err(CallError::Timeout(options.timeout)),
    }
}

/// As [`send`], but for the deadline.
///
/// # Errors
/// As [`send`].
pub(crate) async fn exchange(
    client: &reqwest::Client,
    request: Request,
    options: &CallOptions,
    deadline: Instant,
    progress: Option<Progress<'_>>,
) -> Result<Response, CallError> {
    // What came of a stream must be told before the whole call's time is over.
    let enough = deadline - options.timeout.mul_f64(0.1);
    let limit = options.max_response_bytes;
    let mut outgoing = reqwest::Request::new(request.method, request.url);
    *outgoing.headers_mut() = request.headers;
    let mut upload = None;
    if let Some(content) = request.body {
        let length = content.length();
        let is_long = length > MIN_REPORTED_UPLOAD_BYTES && progress.is_some();
        let whole = content.bytes().filter(|_| !is_long).cloned();
        let body = if let Some(bytes) = whole {
            bytes.into()
        } else {
            let (sent, told) = watch::channel(0);
            upload = Some(Upload { told, length }).filter(|_| is_long);
            outgoing.headers_mut().insert(CONTENT_LENGTH, length.into());
            reqwest::Body::wrap_stream(content.stream(sent))
        };
        *outgoing.body_mut() = Some(body);
    }
    // Progress only ever grows: what comes in is counted on top of what went out.
    let uploaded = upload.as_ref().map_or(0, |upload| upload.length);
    let sending = client.execute(outgoing);
    let response = match (upload, progress) {
        (Some(upload), Some(progress)) => upload.watch(sending, progress).await,
        _ => sending.await,
    };
    let response = response.map_err(unanswered)?;
    let status = response.status();
    let headers = response.headers().clone();
    let total = response.content_length();
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let mut records = content_type.filter(|_| status.is_success()).and_then(Framing::of).map(Counter::new);
    if records.is_none() && total.is_some_and(|total| usize::try_from(total).is_ok_and(|total| total > limit)) {
        return Err(CallError::TooLarge { limit });
    }
    let mut stream = response.bytes_stream();
    // Most replies are one chunk, which is then not copied.
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    let mut received = 0_usize;
    let mut stopped = None;
    let tell = progress.filter(|_| status.is_success()).map(|progress| {
        move |received: usize| {
            let received = u64::try_from(received).unwrap_or(u64::MAX);
            progress(uploaded.saturating_add(received), total.map(|total| uploaded.saturating_add(total)))
        }
    });
    let (mut pace, mut is_told) = (ProgressPace::default(), true);
    while stopped.is_none() {
        let next = if records.is_some() {
            let Ok(next) = tokio::time::timeout_at(enough, stream.next()).await else {
                stopped = Some(Stopped::Time);
                break;
            };
            next
        } else {
            stream.next().await
        };
        let Some(chunk) = next else { break };
        let chunk = chunk.map_err(network)?;
        received = received.saturating_add(chunk.len());
        if received > limit {
            if records.is_none() {
                return Err(CallError::TooLarge { limit });
            }
            stopped = Some(Stopped::Bytes);
            break;
        }
        if records.as_mut().is_some_and(|records| records.feed(&chunk) >= MAX_RECORDS) {
            stopped = Some(Stopped::Records);
        }
        if let Some(tell) = &tell {
            is_told = pace.is_due();
            if is_told {
                tell(received).await;
            }
        }
        if first.is_empty() {
            first = chunk;
        } else {
            if rest.is_empty() {
                rest.reserve(first.len() + chunk.len());
                rest.extend_from_slice(&first);
            }
            rest.extend_from_slice(&chunk);
        }
    }
    if let Some(tell) = tell.filter(|_| !is_told) {
        tell(first.len().max(rest.len())).await;
    }
    Ok(Response {
        status,
        headers,
        body: if rest.is_empty() { first } else { rest.freeze() },
        stopped,
        redactors: Vec::new(),
    })
}

/// How often a reply's progress is told: the first steps at once, then as often as anybody can read.
#[derive(Default)]
struct ProgressPace {
    told: u32,
    last: Option<Instant>,
}

impl ProgressPace {
    /// Whether a step is told; counts it then.
    fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = self.told < FIRST_STEPS || self.last.is_none_or(|last| now - last >= STEP);
        if is_due {
            self.told += 1;
            self.last = Some(now);
        }
        is_due
    }
}

/// A request body that takes its time.
struct Upload {
    told: watch::Receiver<u64>,
    length: u64,
}

impl Upload {
    /// Tells how much went out while the request is made.
    async fn watch<T>(mut self, sending: impl Future<Output = T>, progress: Progress<'_>) -> T {
        // Nobody reads more steps than that.
        let step = self.length / 64;
        let mut last = 0;
        let mut sending = pin!(sending);
        loop {
            tokio::select! {
                biased;
                done = &mut sending => return done,
                changed = self.told.changed() => {
                    if changed.is_err() {
                        return sending.await;
                    }
                }
            }
            let sent = *self.told.borrow_and_update();
            if sent - last >= step || sent == self.length {
                last = sent;
                progress(sent, Some(self.length)).await;
            }
        }
    }
}

/// No head of a reply came. What came and was no HTTP is another matter: there the API did act.
fn unanswered(error: reqwest::Error) -> CallError {
    let connected = !error.is_connect();
    let mut cause = std::error::Error::source(&error);
    let mut spoke = false;
    while let Some(inner) = cause {
        spoke |= inner.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse);
        cause = inner.source();
    }
    match network(error) {
        CallError::Network(_) if !connected => CallError::NoResponse {
            sentence: "the API cannot be reached: the connection failed",
            connected,
        },
        CallError::Network(_) if !spoke => CallError::NoResponse {
            sentence: "the connection to the API broke before a reply began",
            connected,
        },
        error => error,
    }
}

/// A sentence for the model, without the URL and whatever else might name internal hosts; the log has the rest.
fn network(error: reqwest::Error) -> CallError {
    let error = error.without_url();
    let mut detail = error.to_string();
    // reqwest calls a body that breaks off a decoding error as well; hyper, below it, knows better.
    let mut broken = error.is_body();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        detail = format!("{detail}: {cause}");
        broken |= cause.is::<hyper::Error>();
        source = cause.source();
    }
    tracing::debug!(error = detail, "the upstream request failed");
    let sentence = if error.is_connect() {
        "the API cannot be reached: the connection failed"
    } else if error.is_timeout() {
        "the API did not answer in time"
    } else if error.is_decode() && !broken {
        "the reply of the API cannot be decompressed"
    } else if error.is_decode() || error.is_body() {
        "the connection broke before the reply was complete"
    } else {
        "the connection to the API broke, or the reply was no valid HTTP"
    };
    CallError::Network(sentence.into())
}
