//! MCP over standard input and output: one client, the one that started this process.
//!
//! The transport is ours and not rmcp's, which answers neither a line that is not a message nor one that is too long, and ends a
//! session that does not begin with a request.

pub(crate) mod lines;
mod output;
mod plain_calls;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::service::{ServerInitializeError, ServiceExt as _, TxJsonRpcMessage};
use rmcp::transport::{Transport, stdio_pipes};
use tokio::io::AsyncRead;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tokio_util::task::TaskTracker;

use self::lines::{Line, Lines};
use self::output::{OutputStream, StdoutWriter};
use self::plain_calls::PlainCalls;
use super::jsonrpc::{self, Message};
use super::state::EndpointState;
use super::{McpServer, drain_calls, tool_list};

/// How long a request that was just read may take to become a call.
const DISPATCH_TIMEOUT: Duration = Duration::from_millis(100);

/// Serves until standard input ends, `stop` is cancelled, or nobody reads standard output any more. After the first two, what
/// is in flight is answered first.
///
/// # Errors
/// Where the handshake fails for another reason than a client that left, and where standard output has a reader but cannot be
/// written.
pub async fn serve(server: McpServer, stop: CancellationToken) -> io::Result<()> {
    let (stdin, stdout) = stdio_pipes();
    serve_streams(server, Box::new(stdin), Box::new(stdout), reader_left(), stop).await
}

type InputStream = Box<dyn AsyncRead + Send + Unpin>;

/// [`serve`] for any streams; `reader_left` ends where nobody reads the output any more.
pub(crate) async fn serve_streams(
    server: McpServer,
    stdin: InputStream,
    stdout: OutputStream,
    reader_left: impl Future<Output = ()>,
    stop: CancellationToken,
) -> io::Result<()> {
    let output = StdoutWriter::new(stdout);
    let state = Arc::clone(&server.state);
    let input = Arc::new(Mutex::new(Input {
        lines: Lines::new(stdin),
        stopped: Box::pin(stop.cancelled_owned()),
        calls: server.calls().clone(),
        ending: server.state.ending.clone(),
        draining: None,
        answering: None,
    }));
    let calls = Arc::new(PlainCalls::new(server.clone()));
    let session = async {
        loop {
            let pipe = Pipe {
                input: Arc::clone(&input),
                output: output.clone(),
                calls: Arc::clone(&calls),
                state: Arc::clone(&state),
            };
            return match server.of_session().serve(pipe).await {
                Ok(running) => running.waiting().await.map(|_| ()).map_err(io::Error::other),
                // What came was no way to begin; the next message may be.
                Err(ServerInitializeError::ExpectedInitializeRequest(_) | ServerInitializeError::InitializeFailed(_)) => continue,
                // A client that goes away before it has said anything is not a failure of ours.
                Err(
                    ServerInitializeError::ConnectionClosed(_)
                    | ServerInitializeError::Cancelled
                    | ServerInitializeError::TransportError { .. },
                ) => Ok(()),
                Err(error) => Err(io::Error::other(error)),
            };
        }
    };
    let ended = tokio::select! {
        ended = session => ended,
        // There is nobody left to finish anything for.
        () = async { tokio::select! { () = reader_left => {}, () = output.broken() => {} } } => {
            tracing::info!("standard output cannot be written any more");
            Ok(())
        }
    };
    match output.failure() {
        // The reader is gone, as a client that ends is.
        None | Some((io::ErrorKind::BrokenPipe, _)) => ended,
        Some((kind, message)) => Err(io::Error::new(*kind, format!("standard output cannot be written: {message}"))),
    }
}

/// Waits until the other end of standard output is closed, which nothing else would tell as long as nothing is written.
#[cfg(target_os = "linux")]
async fn reader_left() {
    use tokio::io::Interest;
    use tokio::net::unix::pipe::OpenOptions;

    // Opened anew, so that the flags of our own standard output stay what they are. What is not a pipe cannot be watched so.
    if let Ok(pipe) = OpenOptions::new().open_sender("/proc/self/fd/1") {
        while let Ok(ready) = pipe.ready(Interest::ERROR).await {
            if ready.is_error() || ready.is_write_closed() {
                return;
            }
        }
    }
    std::future::pending::<()>().await;
}

#[cfg(not(target_os = "linux"))]
async fn reader_left() {
    std::future::pending::<()>().await;
}

/// The transport of one session, or of one try to begin it.
struct Pipe {
    input: Arc<Mutex<Input>>,
    output: StdoutWriter,
    calls: Arc<PlainCalls>,
    state: Arc<EndpointState>,
}

impl Transport<RoleServer> for Pipe {
    type Error = io::Error;

    fn send(&mut self, item: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (output, state) = (self.output.clone(), Arc::clone(&self.state));
        let may_send = self.calls.may_send(&item);
        async move {
            if !may_send {
                return Ok(());
            }
            let mut bytes = serde_json::to_vec(&item)?;
            if tool_list::is_list(&item) {
                let spliced = tool_list::splice(&bytes, &state, None);
                bytes = spliced.or_else(|| tool_list::refuse_unspliced(&bytes)).unwrap_or(bytes);
            }
            output.write(bytes).await
        }
    }

    async fn receive(&mut self) -> Option<Message> {
        self.input.lock().await.next(&self.output, &self.calls).await
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What comes in. Every wait is kept here, because rmcp drops the future of `receive` whenever something else happens.
struct Input {
    lines: Lines<InputStream>,
    stopped: Pin<Box<WaitForCancellationFutureOwned>>,
    calls: TaskTracker,
    /// Ends what only waits for changes.
    ending: CancellationToken,
    /// No more is read; calls in flight are waited for.
    draining: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// The answer to a line that was no message: until it is taken, nothing more is read.
    answering: Option<JoinHandle<()>>,
}

impl Input {
    async fn next(&mut self, output: &StdoutWriter, calls: &PlainCalls) -> Option<Message> {
        loop {
            if let Some(answering) = &mut self.answering {
                let _ = answering.await;
                self.answering = None;
            }
            if let Some(drained) = &mut self.draining {
                drained.await;
                self.draining = Some(Box::pin(std::future::ready(())));
                return None;
            }
            output.has_room().await;
            let line = tokio::select! {
                biased;
                () = &mut self.stopped => Ok(None),
                line = self.lines.next() => line,
            };
            let refusal = match line {
                Ok(Some(Line::Whole(line))) if calls.begin(&line, output) => continue,
                Ok(Some(Line::Whole(line))) => match read_line(&line) {
                    Ok(mut message) => {
                        calls.note_received(&mut message);
                        return Some(message);
                    }
                    Err(refusal) => {
                        if refusal.is_some() {
                            calls.note_unreadable(&line);
                        }
                        refusal
                    }
                },
                Ok(Some(Line::TooLong { head, tail, max_bytes })) => Some(jsonrpc::too_long(&head, &tail, max_bytes)),
                Ok(None) => {
                    self.drain();
                    None
                }
                Err(error) => {
                    tracing::warn!("standard input cannot be read: {error}");
                    self.drain();
                    None
                }
            };
            if let Some(refusal) = refusal {
                tracing::debug!("a line is not a message");
                let output = output.clone();
                self.answering = Some(tokio::spawn(async move {
                    let _ = output.write(refusal.into_bytes()).await;
                }));
            }
        }
    }

    fn drain(&mut self) {
        self.ending.cancel();
        let calls = self.calls.clone();
        self.draining = Some(Box::pin(async move {
            tokio::time::sleep(DISPATCH_TIMEOUT).await;
            drain_calls(&calls).await;
        }));
    }
}

/// The message of a line, or the answer to a line that is none.
fn read_line(line: &[u8]) -> Result<Message, Option<String>> {
    let line = jsonrpc::without_mark(line);
    if line.is_empty() {
        return Err(None);
    }
    jsonrpc::read_message(line)
}
