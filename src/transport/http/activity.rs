//! Connections on which nothing moves: no request comes whole, or an answer is never taken. hyper
//! would limit only the time for headers of HTTP/1; a connection of HTTP/2 that answers pings would
//! stay for as long as its client likes.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// Time for which a connection may be without a request with complete headers.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Time for which an answer may make no progress. Streams that wait for changes send a comment
/// every 15 s.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);

/// Writes of together so many bytes are a part of an answer, and not the small talk of HTTP/2.
const MIN_PROGRESS_BYTES: usize = 4 << 10;

/// Activity of a connection.
#[derive(Clone)]
pub(crate) struct Activity(Arc<Mutex<ActivityState>>);

struct ActivityState {
    /// Requests that are being worked on: their own limits of time hold.
    working: usize,
    /// Answers that are on their way.
    answering: usize,
    moved: Instant,
    /// Bytes since then.
    written: usize,
}

impl Activity {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(ActivityState {
            working: 0,
            answering: 0,
            moved: Instant::now(),
            written: 0,
        })))
    }

    fn change(&self, change: impl FnOnce(&mut ActivityState)) {
        let mut state = self.0.lock();
        state.moved = Instant::now();
        state.written = 0;
        change(&mut state);
    }

    /// The client has taken some bytes: what hyper holds of an answer is on its way after the
    /// answer's end as well.
    pub(crate) fn wrote(&self, count: usize) {
        let mut state = self.0.lock();
        state.written += count;
        if state.written >= MIN_PROGRESS_BYTES {
            state.moved = Instant::now();
            state.written = 0;
        }
    }

    /// A request has come; it is worked on until the value is dropped.
    pub(crate) fn working(&self) -> Working {
        self.change(|state| state.working += 1);
        Working(self.clone())
    }

    /// The body of an answer, watched on its way.
    pub(crate) fn watch(&self, body: Body) -> Body {
        self.change(|state| state.answering += 1);
        Body::new(Watched {
            body,
            activity: self.clone(),
        })
    }

    /// Waits until there was no progress for too long.
    pub(crate) async fn stalled(&self) {
        loop {
            let end = {
                let state = self.0.lock();
                let timeout = if state.answering > 0 {
                    ANSWER_TIMEOUT
                } else {
                    IDLE_TIMEOUT
                };
                (state.working == 0).then(|| state.moved + timeout)
            };
            match end {
                Some(end) if end <= Instant::now() => return,
                Some(end) => sleep_until(end).await,
                // Work in progress ends by itself; the end need not be noticed at once.
                None => sleep_until(Instant::now() + IDLE_TIMEOUT).await,
            }
        }
    }
}

/// A request that is being worked on.
pub(crate) struct Working(Activity);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.change(|state| state.working -= 1);
    }
}

struct Watched {
    body: Body,
    activity: Activity,
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if polled.is_ready() {
            self.activity.change(|_| {});
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.activity.change(|state| state.answering -= 1);
    }
}
