//! Answers as streams of events: if something is sent before the answer, and for what waits for
//! changes.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::future::{BoxFuture, Either};
use futures_util::stream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::mcp::connections::connection::{OutMessage, OutMessages, Outbox};
use crate::mcp::dispatch::Answered;

/// Interval of comments on a stream, so that proxies do not take it for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Waits for an answer, or for the first message before it: then the answer is the last message of
/// a stream.
pub(super) async fn answer(
    mut answering: BoxFuture<'static, Option<Answered>>,
    outbox: Outbox,
    mut messages: OutMessages,
    streams: &CancellationToken,
) -> Either<Answered, Response> {
    let task = tokio::select! {
        biased;
        first = messages.recv() => {
            let task = tokio::spawn(async move {
                if let Some(answered) = answering.await {
                    send(&outbox, answered);
                }
            });
            return Either::Right(respond(first, messages, Some(task), streams.clone()));
        }
        answered = &mut answering => answered,
    };
    // What a call reported in its last moment comes before its answer. A cancelled request has
    // none.
    match (messages.try_recv(), task) {
        (Err(_), Some(answered)) => Either::Left(answered),
        (first, answered) => {
            if let Some(answered) = answered {
                send(&outbox, answered);
            }
            Either::Right(respond(first.ok(), messages, None, streams.clone()))
        }
    }
}

fn send(outbox: &Outbox, answered: Answered) {
    let (frame, in_flight) = answered.into_frame();
    outbox.send(OutMessage::Answer(frame.into_bytes(), in_flight));
}

/// A stream of the `first` message and those that `task` sends, until it ends or `end` is cancelled.
/// The task ends with the stream.
pub(super) fn respond(
    first: Option<OutMessage>,
    messages: OutMessages,
    task: Option<JoinHandle<()>>,
    end: CancellationToken,
) -> Response {
    let events = Events {
        first,
        messages,
        _task: task.map(AbortOnDropHandle::new),
        end,
        written: None,
    };
    let events = stream::unfold(events, async |mut events| {
        Some((Ok::<_, Infallible>(events.next().await?), events))
    });
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
    (headers, Body::from_stream(events)).into_response()
}

/// The rest of a stream.
struct Events {
    first: Option<OutMessage>,
    messages: OutMessages,
    _task: Option<AbortOnDropHandle<()>>,
    end: CancellationToken,
    /// Token by which the end of the server waits until the last event is written.
    written: Option<TaskTrackerToken>,
}

impl Events {
    async fn next(&mut self) -> Option<Bytes> {
        self.written = None;
        loop {
            let message = if let Some(first) = self.first.take() {
                first
            } else {
                tokio::select! {
                    biased;
                    message = self.messages.recv() => message?,
                    () = self.end.cancelled() => return None,
                    () = tokio::time::sleep(KEEP_ALIVE) => return Some(Bytes::from_static(b":\n\n")),
                }
            };
            if let Some((text, in_flight)) = message.into_text() {
                self.written = in_flight;
                // A message is one line (HTML standard, "Server-sent events").
                return Some([b"data: ", text.as_slice(), b"\n\n"].concat().into());
            }
        }
    }
}
