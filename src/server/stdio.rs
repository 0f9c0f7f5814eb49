//! MCP over standard input and output: one client, the one that started this process.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rmcp::service::{ServerInitializeError, ServiceExt};
use rmcp::transport::stdio_pipes;
use serde_json::Value;
use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tokio_util::task::TaskTracker;

use super::McpServer;
use super::splice::Splicing;

/// How long calls in flight are waited for once no more can come.
const DRAIN_PATIENCE: Duration = Duration::from_secs(35);
/// How long a request that was just read may take to become a call.
const DISPATCH_PATIENCE: Duration = Duration::from_millis(100);

/// Serves until standard input ends or `stop` is cancelled. Both are the same: what is in flight is answered first.
///
/// # Errors
/// Where the handshake fails for another reason than a client that left.
pub async fn serve(server: McpServer, stop: CancellationToken) -> io::Result<()> {
    let (stdin, stdout) = stdio_pipes();
    let stdin = Input {
        inner: stdin,
        stopped: Box::pin(stop.cancelled_owned()),
        calls: server.calls().clone(),
        state: State::Opening(Vec::new()),
    };
    let stdout = Splicing::new(stdout, server.list.clone());
    match server.serve((stdin, stdout)).await {
        Ok(running) => running.waiting().await.map(|_| ()).map_err(io::Error::other),
        // A client that goes away before it has said anything is no failure of ours.
        Err(
            ServerInitializeError::ConnectionClosed(_)
            | ServerInitializeError::Cancelled
            | ServerInitializeError::ExpectedInitializeRequest(_),
        ) => Ok(()),
        Err(error) => Err(io::Error::other(error)),
    }
}

/// Standard input as rmcp should see it: it begins with a request, because rmcp ends a session that begins with anything
/// else; and it ends when all calls are answered, because rmcp gives those in flight five seconds after the end.
struct Input<R> {
    inner: R,
    stopped: Pin<Box<WaitForCancellationFutureOwned>>,
    calls: TaskTracker,
    state: State,
}

enum State {
    /// No request was seen yet; what was read of an unfinished line.
    Opening(Vec<u8>),
    /// What was read and not handed on yet.
    Pending(Vec<u8>),
    Open,
    /// No more is read; calls in flight are waited for.
    Draining(Pin<Box<dyn Future<Output = ()> + Send>>),
}

impl<R: AsyncRead + Unpin> AsyncRead for Input<R> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            if let State::Draining(drained) = &mut self.state {
                return drained.as_mut().poll(context).map(Ok);
            }
            if let State::Pending(bytes) = &mut self.state {
                let count = bytes.len().min(buffer.remaining());
                let rest = bytes.split_off(count);
                buffer.put_slice(bytes);
                self.state = if rest.is_empty() { State::Open } else { State::Pending(rest) };
                return Poll::Ready(Ok(()));
            }
            if self.stopped.as_mut().poll(context).is_ready() {
                self.drain();
                continue;
            }
            let before = buffer.filled().len();
            match Pin::new(&mut self.inner).poll_read(context, buffer) {
                Poll::Ready(Ok(())) if buffer.filled().len() == before => self.drain(),
                Poll::Ready(Ok(())) => {
                    let State::Opening(line) = &mut self.state else {
                        return Poll::Ready(Ok(()));
                    };
                    line.extend_from_slice(buffer.filled().get(before..).unwrap_or_default());
                    buffer.set_filled(before);
                    if let Some(request) = first_request(line) {
                        self.state = State::Pending(request);
                    }
                }
                other => return other,
            }
        }
    }
}

impl<R> Input<R> {
    fn drain(&mut self) {
        let calls = self.calls.clone();
        self.state = State::Draining(Box::pin(async move {
            tokio::time::sleep(DISPATCH_PATIENCE).await;
            calls.close();
            if tokio::time::timeout(DRAIN_PATIENCE, calls.wait()).await.is_err() {
                tracing::warn!("calls were still in flight after {} s and are given up", DRAIN_PATIENCE.as_secs());
            }
        }));
    }
}

/// What was read from the first line on that may be a request; lines before it that are complete are dropped. A line that
/// is no JSON counts as one, because rmcp answers it as JSON-RPC asks. `None` where there is no such line yet.
fn first_request(read: &mut Vec<u8>) -> Option<Vec<u8>> {
    /// A first line that is longer than this is none that may be dropped.
    const LONGEST: usize = 1 << 20;
    loop {
        let Some(end) = read.iter().position(|byte| *byte == b'\n') else {
            return (read.len() > LONGEST).then(|| std::mem::take(read));
        };
        let line = read.get(..end).unwrap_or_default();
        let is_other = match serde_json::from_slice::<Value>(line) {
            Ok(Value::Object(message)) => !message.contains_key("id") || !message.contains_key("method"),
            Ok(_) => true,
            Err(_) => line.trim_ascii().is_empty(),
        };
        if !is_other {
            return Some(std::mem::take(read));
        }
        tracing::debug!("a message before the first request is passed over");
        read.drain(..=end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_begins_with_its_first_request() {
        let mut read =
            b"{\"method\":\"notifications/cancelled\"}\n\n{\"id\":7,\"result\":{}}\n[]\n{\"id\":1,\"method\":\"x\"}\nrest".to_vec();
        assert_eq!(first_request(&mut read).unwrap(), b"{\"id\":1,\"method\":\"x\"}\nrest");
        let mut unfinished = b"{\"method\":\"n\"}\n{\"id\"".to_vec();
        assert_eq!(first_request(&mut unfinished), None);
        assert_eq!(unfinished, b"{\"id\"");
    }
}
