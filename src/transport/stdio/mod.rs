//! MCP over standard input and output: one client, the one that started this process.

pub(crate) mod lines;
mod output;

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rmcp::transport::stdio_pipes;
use tokio::io::AsyncRead;
use tokio_util::sync::CancellationToken;

use self::lines::{Line, Lines};
use self::output::{OutputState, OutputStream};
use crate::caller::client_grant::NO_TOKEN;
use crate::mcp::connections::connection::Connection;
use crate::mcp::connections::outbox::{OutMessage, Outbox};
use crate::mcp::connections::request_origin::RequestOrigin;
use crate::mcp::connections::subscription::report_changes;
use crate::mcp::dispatch::Answered;
use crate::mcp::protocol::message::{McpRequest, Message, Method};
use crate::mcp::protocol::unreadable::{self, Unreadable};
use crate::mcp::{McpServer, drain_calls, observed};
use crate::transport::http::approve::open_listener;

/// Serves until standard input ends, `stop` is cancelled, or standard output is closed by its
/// reader. In the first two cases, requests in flight are answered first.
///
/// # Errors
/// Standard output has a reader but cannot be written.
pub async fn serve(server: McpServer, stop: CancellationToken) -> io::Result<()> {
    if let Some(links) = server.links() {
        links.serve_on_demand(open_listener);
    }
    let (stdin, stdout) = stdio_pipes();
    serve_streams(
        server,
        Box::new(stdin),
        Box::new(stdout),
        reader_left(),
        stop,
    )
    .await
}

/// Time limit of writing the last lines, once no call is in flight any more.
const LAST_WRITE_TIMEOUT: Duration = Duration::from_secs(1);

type InputStream = Box<dyn AsyncRead + Send + Unpin>;

/// Serves like [`serve`] over any streams; `reader_left` ends when the output has no reader any
/// more.
pub(crate) async fn serve_streams(
    server: McpServer,
    stdin: InputStream,
    stdout: OutputStream,
    reader_left: impl Future<Output = ()>,
    stop: CancellationToken,
) -> io::Result<()> {
    let output = OutputState::default();
    let (outbox, messages) = Outbox::new();
    let writing = tokio::spawn(output.clone().write_lines(messages, stdout));
    let client = Arc::new(StdioClient {
        connection: Arc::new(Connection::new(server.state.changes(&NO_TOKEN))),
        server,
        outbox,
        output: output.clone(),
    });
    let connection = Arc::clone(&client.connection);
    let session = async move {
        client.answer_lines(Lines::new(stdin), &stop).await;
        client.server.state.ending.cancel();
        drain_calls(client.server.calls()).await;
        client.connection.end();
        // The last lines are written before the end, if the client reads them.
        drop(client);
        let _ = tokio::time::timeout(LAST_WRITE_TIMEOUT, writing).await;
    };
    tokio::select! {
        () = session => {}
        // No client is left that would read an answer.
        () = async { tokio::select! { () = reader_left => {}, () = output.broken() => {} } } => {
            tracing::info!("standard output cannot be written any more");
            connection.end();
        }
    }
    match output.failure() {
        // The reader is gone, as a client that ends is.
        None | Some((io::ErrorKind::BrokenPipe, _)) => Ok(()),
        Some((kind, message)) => Err(io::Error::new(
            *kind,
            format!("standard output cannot be written: {message}"),
        )),
    }
}

/// Waits until the other end of standard output is closed, which is not noticed otherwise until the
/// next write.
#[cfg(target_os = "linux")]
async fn reader_left() {
    use tokio::io::Interest;
    use tokio::net::unix::pipe::OpenOptions;

    // Opened anew, so that the flags of our own standard output stay what they are. What is not a
    // pipe cannot be watched so.
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

/// The client at the other end.
struct StdioClient {
    server: McpServer,
    connection: Arc<Connection>,
    outbox: Outbox,
    output: OutputState,
}

impl StdioClient {
    /// Answers incoming messages until there are no more, or `stop` is cancelled.
    async fn answer_lines(
        self: &Arc<Self>,
        mut lines: Lines<InputStream>,
        stop: &CancellationToken,
    ) {
        loop {
            let line = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                line = async {
                    self.output.has_room().await;
                    lines.next().await
                } => line,
            };
            match line {
                Ok(Some(Line::Whole(line))) => {
                    let text = unreadable::without_mark(&line);
                    if text.is_empty() {
                        continue;
                    }
                    match Message::read(text) {
                        Ok(message) => self.take_message(message, stop).await,
                        Err(refused) => self.refuse(refused),
                    }
                }
                Ok(Some(Line::TooLong(max_bytes))) => {
                    self.send(unreadable::too_long(max_bytes).into_bytes());
                }
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!("standard input cannot be read: {error}");
                    return;
                }
            }
        }
    }

    async fn take_message(self: &Arc<Self>, message: Message, stop: &CancellationToken) {
        match message {
            Message::Request(request) => {
                let is_handshake = request.method == Method::Initialize;
                let answering = self.answer(request);
                if is_handshake {
                    // Nothing that comes later begins before it is answered.
                    let mut answering = pin!(answering);
                    tokio::select! {
                        () = &mut answering => return,
                        () = stop.cancelled() => self.server.state.ending.cancel(),
                    }
                    answering.await;
                } else {
                    tokio::spawn(answering);
                }
            }
            Message::Notification(notification) => {
                self.connection.note(&notification);
                if notification.method == "notifications/initialized"
                    && self.connection.begin_reporting()
                {
                    let (state, connection) =
                        (Arc::clone(&self.server.state), Arc::clone(&self.connection));
                    tokio::spawn(report_changes(state, connection, None, self.outbox.clone()));
                }
            }
            Message::Answer(answer) => self
                .connection
                .take_answer(answer, self.server.calls().token()),
        }
    }

    /// Answers a request, unless it is cancelled.
    fn answer(self: &Arc<Self>, request: McpRequest) -> impl Future<Output = ()> + Send + use<> {
        let origin = RequestOrigin {
            connection: Some(Arc::clone(&self.connection)),
            outbox: Some(self.outbox.clone()),
            in_flight: Some(self.server.calls().token()),
            ..RequestOrigin::default()
        };
        let refused = self.connection.begin(&request).err();
        let (client, id) = (Arc::clone(self), request.id.clone());
        // On the heap at once: what is around it is moved from place to place.
        let answering = Box::pin(async move {
            match refused {
                None => client.server.answer(request, origin).await,
                Some(error) => Answered::refused(&request, origin, error),
            }
        });
        let answering = self.connection.run(id, answering);
        let client = Arc::clone(self);
        async move {
            if let Some(answered) = answering.await {
                let (frame, in_flight) = answered.into_frame();
                client.output.add(frame.length());
                client
                    .outbox
                    .send(OutMessage::Answer(frame.into_bytes(), in_flight));
            }
        }
    }

    /// Answers a line that is not a message.
    fn refuse(&self, refused: Unreadable) {
        tracing::debug!("a line is not a message");
        let Unreadable { answer, is_call } = refused;
        if let Some(answer) = answer {
            if is_call {
                let origin = RequestOrigin {
                    connection: Some(Arc::clone(&self.connection)),
                    ..RequestOrigin::default()
                };
                observed::observe_refused_call(&origin, None);
            }
            self.send(answer.into_bytes());
        }
    }

    fn send(&self, answer: Vec<u8>) {
        self.output.add(answer.len());
        self.outbox.send(OutMessage::Answer(
            answer,
            Some(self.server.calls().token()),
        ));
    }
}
