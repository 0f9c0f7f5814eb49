//! MCP over standard input and output: one client, the one that started this process.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use rmcp::service::{ServerInitializeError, ServiceExt};
use rmcp::transport::stdio_pipes;
use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::McpServer;

/// Serves until standard input ends or `stop` is cancelled. Both are the same: what is in flight is answered first.
///
/// # Errors
/// Where the handshake fails for another reason than a client that left.
pub async fn serve(server: McpServer, stop: CancellationToken) -> io::Result<()> {
    let (stdin, stdout) = stdio_pipes();
    let stdin = UntilStopped {
        inner: stdin,
        stopped: Box::pin(stop.cancelled_owned()),
    };
    match server.serve((stdin, stdout)).await {
        Ok(running) => running.waiting().await.map(|_| ()).map_err(io::Error::other),
        // A client that goes away before it has said anything is no failure of ours.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
        Err(ServerInitializeError::ExpectedInitializeRequest(_)) => {
            tracing::warn!("the client began with something else than a request; the session is over");
            Ok(())
        }
        Err(error) => Err(io::Error::other(error)),
    }
}

/// A reader that ends when it is told to stop.
struct UntilStopped<R> {
    inner: R,
    stopped: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl<R: AsyncRead + Unpin> AsyncRead for UntilStopped<R> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.stopped.as_mut().poll(context).is_ready() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}
