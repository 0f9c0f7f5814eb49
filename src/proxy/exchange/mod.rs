//! Sending a request and reading the reply, within limits of size. The caller applies the limit of
//! time, but for that of a stream.

mod file_sink;
mod network_error;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use tokio::sync::watch;
use tokio::time::Instant;

use self::file_sink::FileSink;
pub(crate) use self::file_sink::save_reply;
use self::network_error::{body_error, request_error};
use super::request::body::file_argument::FileRoot;
use crate::call_error::{CallError, UndeliveredFile};
use crate::caller::memory_budget::{MemoryBudget, OutOfMemory};
use crate::caller::{Caller, ReportProgress};
use crate::files::{FileDelivery, FilePlan};
use crate::outbound::HttpClient;
use crate::outbound::request::Request;
use crate::results::records::{Counter, FirstLine, Framing, are_json_lines};
use crate::results::{Reply, ReplyKind, essence_or_bytes, reply_kind};
use crate::spec::MediaKind;
use crate::spec::media_type::content_type;
use crate::text::MIN_BYTES_PER_TOKEN;

/// Length below which the sending of a request body is not reported, because it ends too soon.
const MIN_REPORTED_UPLOAD_BYTES: u64 = 256 << 10;
/// More records of a stream than this are not waited for.
const MAX_RECORDS: usize = 1000;
/// What ended a stream that had them.
const ALL_RECORDS: &str = "there were as many records as one call collects";

/// Number of steps of a reply that are reported as they come; then one in each [`STEP`] is.
const FIRST_STEPS: u32 = 32;
const STEP: Duration = Duration::from_millis(100);

/// The operator's settings for calls.
#[derive(Debug, Clone)]
pub struct CallOptions {
    /// Time limit of one call, from connecting to the last byte of the reply.
    pub timeout: Duration,
    /// The largest reply, in bytes, counted after decompression.
    pub max_response_bytes: usize,
    /// Folder from which files may be sent.
    pub files: Option<FileRoot>,
    /// Number of bytes that a result may have; longer ones are cut. 0 is no limit.
    pub max_result_bytes: usize,
    /// The client, if it does not show a model images.
    pub hides_images: Option<&'static str>,
    /// Budget of memory for replies in flight, over all calls.
    pub memory: MemoryBudget,
    /// Replies that become files.
    pub delivery: FileDelivery,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            max_response_bytes: 10 << 20,
            files: None,
            // Claude Code refuses results of more than 25,000 tokens; a token of JSON is three
            // bytes or more.
            max_result_bytes: 20_000 * MIN_BYTES_PER_TOKEN,
            hides_images: None,
            memory: MemoryBudget::default(),
            delivery: FileDelivery::default(),
        }
    }
}

/// Sends a request and reads the whole reply; with a plan, the reply may become a file. Dropping the
/// future closes the connection. The caller of this function applies the deadline.
///
/// # Errors
/// [`CallError::Network`], [`CallError::TooLarge`], [`CallError::NoMemory`],
/// [`CallError::FileTooLarge`], [`CallError::NotSaved`]. A reply that ends too early is an error,
/// never half a success.
pub(crate) async fn exchange(
    client: &HttpClient,
    request: Request,
    limits: ExchangeLimits<'_>,
) -> Result<Reply, CallError> {
    let ExchangeLimits { progress, plan, .. } = limits;
    let is_https = request.url.scheme() == "https";
    let may_stream = request.may_stream;
    let saves_files = plan.is_some_and(FilePlan::has_destination);
    let path = if saves_files {
        request.url.path().to_owned()
    } else {
        String::new()
    };
    let (outgoing, upload) = outgoing_request(request, progress.is_some());
    // Progress only ever grows: what comes in is counted on top of what went out.
    let uploaded = upload.as_ref().map_or(0, |upload| upload.length);
    let sending = client.send(outgoing);
    let reply = match (upload, progress) {
        (Some(upload), Some(progress)) => Box::pin(upload.watch(sending, progress)).await,
        _ => sending.await,
    };
    let reply = reply.map_err(|error| request_error(&error, is_https, client.has_proxy()))?;
    let status = reply.status();
    let progress = progress.filter(|_| status.is_success());
    let download =
        progress.map(|progress| Download::new(progress, uploaded, reply.content_length()));
    let sink = plan.and_then(|plan| FileSink::new(plan, limits.caller, &reply, path, limits.bytes));
    read_body(reply, may_stream, limits, sink, download).await
}

/// Returns the request as it is sent, and a watch on a long body if its progress is reported.
fn outgoing_request(request: Request, is_watched: bool) -> (reqwest::Request, Option<Upload>) {
    let mut outgoing = reqwest::Request::new(request.method, request.url);
    *outgoing.headers_mut() = request.headers;
    let mut upload = None;
    if let Some(content) = request.body {
        let length = content.length();
        let is_long = length > MIN_REPORTED_UPLOAD_BYTES && is_watched;
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
    (outgoing, upload)
}

/// Limits of one exchange.
#[derive(Clone, Copy)]
pub(crate) struct ExchangeLimits<'b> {
    /// The largest body, after decompression.
    pub(crate) bytes: usize,
    /// Time limit of the whole call.
    pub(crate) timeout: Duration,
    /// Deadline of the exchange.
    pub(crate) deadline: Instant,
    pub(crate) memory: &'b MemoryBudget,
    /// Caller for which the memory is counted.
    pub(crate) caller: &'b Caller,
    /// Takes the progress of bytes.
    pub(crate) progress: Option<&'b ReportProgress>,
    /// Conditions under which the reply becomes a file.
    pub(crate) plan: Option<&'b FilePlan<'b>>,
}

impl ExchangeLimits<'_> {
    /// The error for a reply that is too large.
    fn too_large(&self, reply: &reqwest::Response) -> CallError {
        let undelivered = self
            .plan
            .filter(|plan| !plan.has_destination() && reply.status().is_success());
        let kind = reply_kind(content_type(reply.headers()), b"");
        let is_text = matches!(
            kind,
            ReplyKind::Json | ReplyKind::Text | ReplyKind::Multipart
        );
        CallError::TooLarge {
            limit: self.bytes,
            file: undelivered
                .filter(|_| !is_text)
                .map(|plan| UndeliveredFile {
                    media_type: essence_or_bytes(content_type(reply.headers())).into(),
                    length: reply.content_length(),
                    setting: plan.delivery.setting,
                }),
        }
    }
}

/// Reads the body, counted after decompression. A stream of records that reaches a limit ends
/// there; any other body that does is an error. What the sink takes goes to a file.
async fn read_body(
    mut reply: reqwest::Response,
    may_stream: bool,
    limits: ExchangeLimits<'_>,
    mut sink: Option<Box<FileSink<'_>>>,
    mut download: Option<Download<'_>>,
) -> Result<Reply, CallError> {
    // The received part of a stream must be returned before the time limit of the call.
    let stream_deadline = limits.deadline - limits.timeout.mul_f64(0.1);
    let is_file = sink.as_ref().is_some_and(|sink| sink.is_ruled);
    let content_type = Some(content_type(reply.headers()));
    let content_type = content_type.filter(|_| reply.status().is_success() && !is_file);
    let mut records = content_type.and_then(Framing::of).map(Counter::new);
    // JSON that may turn out to be more than one value.
    let is_json =
        content_type.is_some_and(|content_type| MediaKind::of(content_type) == MediaKind::Json);
    let mut first_line = is_json.then(FirstLine::default);
    let mut is_lines = false;
    let declared = reply
        .content_length()
        .map(|total| usize::try_from(total).unwrap_or(usize::MAX));
    match (&sink, reply.content_length()) {
        (Some(sink), Some(total)) => sink.check_length(total)?,
        (None, _) if records.is_none() && declared.is_some_and(|total| total > limits.bytes) => {
            return Err(limits.too_large(&reply));
        }
        _ => {}
    }
    let mut body = Chunks::default();
    let mut memory = limits.memory.begin();
    let mut stopped = None;
    while stopped.is_none() {
        let is_awaited = may_stream && body.len() == 0;
        let may_go_on = || {
            first_line
                .as_ref()
                .is_some_and(|line| is_awaited || line.looks_whole())
                && declared != Some(body.len())
        };
        let next = if records.is_some() || may_go_on() {
            let Ok(next) = tokio::time::timeout_at(stream_deadline, reply.chunk()).await else {
                is_lines |= first_line
                    .take()
                    .is_some_and(|line| is_awaited || line.is_whole(body.as_slice()));
                if records.is_none() && !is_lines {
                    continue;
                }
                stopped = Some("the time for a call was over");
                break;
            };
            next
        } else {
            reply.chunk().await
        };
        let Some(chunk) = next.map_err(|error| body_error(&error.without_url()))? else {
            break;
        };
        if let Some(sink) = &mut sink
            && sink.takes(body.as_slice(), &chunk)
        {
            let before = std::mem::take(&mut body);
            memory = limits.memory.begin();
            Box::pin(sink.write(before.as_slice())).await?;
            Box::pin(sink.write(&chunk)).await?;
            if let Some(download) = &mut download {
                download.advance(sink.received);
            }
            continue;
        }
        if body.len().saturating_add(chunk.len()) > limits.bytes {
            if records.is_none() {
                return Err(limits.too_large(&reply));
            }
            stopped = Some("the reply was as large as one may be");
            break;
        }
        memory
            .grow_to(body.len() + chunk.len(), limits.caller)
            .map_err(|OutOfMemory| CallError::NoMemory)?;
        if records
            .as_mut()
            .is_some_and(|records| records.feed(&chunk) >= MAX_RECORDS)
        {
            stopped = Some(ALL_RECORDS);
        }
        if let Some(line) = &mut first_line {
            line.feed(body.len(), &chunk);
        }
        body.push(chunk);
        if let Some(line) = first_line.take_if(|line| line.is_followed)
            && line.is_whole(body.as_slice())
        {
            is_lines = true;
            let counter = records.insert(Counter::new(Framing::Lines));
            if counter.feed(body.as_slice()) >= MAX_RECORDS {
                stopped = Some(ALL_RECORDS);
            }
        }
        if let Some(download) = &mut download {
            download.advance(body.len());
        }
    }
    if let Some(download) = download {
        download.finish(
            sink.as_ref()
                .map_or(0, |sink| sink.received)
                .max(body.len()),
        );
    }
    let file = match sink {
        Some(sink) => Box::pin(sink.finish()).await?,
        None => None,
    };
    let body = memory.keep_with(body.join());
    let status = reply.status();
    let mut headers = std::mem::take(reply.headers_mut());
    // A sequence of JSON values, one per line, under the type of a single one.
    if is_lines && (stopped.is_some() || are_json_lines(&body)) {
        let lines = HeaderValue::from_static("application/x-ndjson");
        headers.insert(CONTENT_TYPE, lines);
    }
    Ok(Reply {
        status,
        headers,
        body,
        file: file.map(Arc::new),
        stopped,
        ..Reply::default()
    })
}

/// The chunks of a body. Most replies are one chunk, which is not copied.
#[derive(Default)]
struct Chunks {
    first: Bytes,
    rest: BytesMut,
}

impl Chunks {
    fn len(&self) -> usize {
        self.first.len().max(self.rest.len())
    }

    fn as_slice(&self) -> &[u8] {
        if self.rest.is_empty() {
            &self.first
        } else {
            &self.rest
        }
    }

    fn push(&mut self, chunk: Bytes) {
        if self.first.is_empty() {
            self.first = chunk;
            return;
        }
        if self.rest.is_empty() {
            self.rest.reserve(self.first.len() + chunk.len());
            self.rest.extend_from_slice(&self.first);
        }
        self.rest.extend_from_slice(&chunk);
    }

    fn join(self) -> Bytes {
        if self.rest.is_empty() {
            self.first
        } else {
            self.rest.freeze()
        }
    }
}

/// Reports how a reply comes in.
struct Download<'p> {
    progress: &'p ReportProgress,
    /// Number of bytes sent before, which count too.
    uploaded: u64,
    total: Option<u64>,
    /// Number of reports, and the time of the last one.
    told: u32,
    last: Option<Instant>,
    /// True if the last chunk was reported.
    is_told: bool,
}

impl<'p> Download<'p> {
    fn new(progress: &'p ReportProgress, uploaded: u64, length: Option<u64>) -> Self {
        Self {
            progress,
            uploaded,
            total: length.map(|length| uploaded.saturating_add(length)),
            told: 0,
            last: None,
            is_told: true,
        }
    }

    /// Reports this many bytes received: the first steps at once, then one in each [`STEP`].
    fn advance(&mut self, received: usize) {
        let now = Instant::now();
        self.is_told = self.told < FIRST_STEPS || self.last.is_none_or(|last| now - last >= STEP);
        if self.is_told {
            self.told += 1;
            self.last = Some(now);
            self.tell(received);
        }
    }

    /// Reports the end, if the last chunk was not reported.
    fn finish(self, received: usize) {
        if !self.is_told {
            self.tell(received);
        }
    }

    fn tell(&self, received: usize) {
        let done = self.uploaded.saturating_add(received as u64);
        self.progress.report(done, self.total);
    }
}

/// A request body that takes its time.
struct Upload {
    told: watch::Receiver<u64>,
    length: u64,
}

impl Upload {
    /// Reports how much went out while the request is made.
    async fn watch<T>(mut self, sending: impl Future<Output = T>, progress: &ReportProgress) -> T {
        // A client has no use for more steps.
        let step = self.length / 64;
        let mut last = 0;
        let mut sending = pin!(sending);
        let done = loop {
            tokio::select! {
                biased;
                done = &mut sending => break done,
                changed = self.told.changed() => {
                    if changed.is_err() {
                        break sending.await;
                    }
                }
            }
            let sent = *self.told.borrow_and_update();
            if sent - last >= step || sent == self.length {
                last = sent;
                progress.report(sent, Some(self.length));
            }
        };
        // The last bytes and the reply may have come between two looks.
        let sent = *self.told.borrow_and_update();
        if sent > last {
            progress.report(sent, Some(self.length));
        }
        done
    }
}
