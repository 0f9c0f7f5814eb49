//! MCP over standard input and output: one client, the one that started this process. Lines are read
//! in bounded memory, and written whole, one after the other, by one task.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rmcp::transport::stdio_pipes;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::sync::{Notify, SetOnce};
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::http::approve::open_listener;
use crate::caller::client_grant::NO_TOKEN;
use crate::mcp::connections::connection::{Connection, OutMessage, OutMessages, Outbox};
use crate::mcp::connections::request_origin::RequestOrigin;
use crate::mcp::connections::subscription::report_changes;
use crate::mcp::dispatch::Answered;
use crate::mcp::protocol::message::{McpRequest, Message, Method};
use crate::mcp::protocol::unreadable;
use crate::mcp::protocol::unreadable::Unreadable;
use crate::mcp::{McpServer, drain_calls, observed};

/// Serves until standard input ends, `stop` is cancelled, or standard output is closed by its
/// reader. In the first two cases, requests in flight are answered first.
///
/// # Errors
/// Standard output has a reader but cannot be written.
pub async fn serve(server: McpServer, stop: CancellationToken) -> io::Result<()> {
    if let Some(links) = server.gate.links() {
        links.serve_on_demand(open_listener);
    }
    let (stdin, stdout) = stdio_pipes();
    let output = Arc::<OutputState>::default();
    let (outbox, messages) = Outbox::new();
    let writing = tokio::spawn(Arc::clone(&output).write_lines(messages, stdout));
    let client = Arc::new(StdioClient {
        connection: Arc::new(Connection::new(server.state.subscribe(&NO_TOKEN))),
        server,
        outbox,
        output: Arc::clone(&output),
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
        () = async { tokio::select! { () = reader_left() => {}, _ = output.failure.wait() => {} } } => {
            tracing::info!("standard output cannot be written any more");
            connection.end();
        }
    }
    match output.failure.get() {
        // The reader is gone, as a client that ends is.
        Some(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(io::Error::new(
            error.kind(),
            format!("standard output cannot be written: {error}"),
        )),
        Some(_) | None => Ok(()),
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
    output: Arc<OutputState>,
}

/// Time limit of writing the last lines, once no call is in flight any more.
const LAST_WRITE_TIMEOUT: Duration = Duration::from_secs(1);

impl StdioClient {
    /// Answers incoming messages until there are no more, or `stop` is cancelled.
    async fn answer_lines(
        self: &Arc<Self>,
        mut lines: Lines<impl AsyncRead + Unpin>,
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
                    let answer = unreadable::too_long(max_bytes).into_bytes();
                    self.send(answer, Some(self.server.calls().token()));
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
                    let connection = Arc::clone(&self.connection);
                    tokio::spawn(report_changes(connection, None, self.outbox.clone()));
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
                client.send(frame.into_bytes(), in_flight);
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
            self.send(answer.into_bytes(), Some(self.server.calls().token()));
        }
    }

    fn send(&self, answer: Vec<u8>, in_flight: Option<TaskTrackerToken>) {
        let backlog = &self.output.backlog;
        backlog.fetch_add(answer.len(), Ordering::Relaxed);
        self.outbox.send(OutMessage::Answer(answer, in_flight));
    }
}

/// The longest line that is kept: 16 MiB, as much as clients take.
const MAX_LINE_BYTES: usize = 16 << 20;
/// Number of bytes that are read at once: the capacity of a pipe.
const PIECE: usize = 64 << 10;

/// A line, without its end.
#[derive(PartialEq, Eq)]
pub(crate) enum Line {
    /// All of it.
    Whole(Vec<u8>),
    /// Nothing of it, because it has more bytes than the limit.
    TooLong(usize),
}

/// Reads lines.
pub(crate) struct Lines<R> {
    input: BufReader<R>,
    max_bytes: usize,
    /// What was read of the next line.
    line: Vec<u8>,
    /// True within a line that is too long already.
    is_skipping: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    fn new(input: R) -> Self {
        Self {
            input: BufReader::with_capacity(PIECE, input),
            max_bytes: MAX_LINE_BYTES,
            line: Vec::new(),
            is_skipping: false,
        }
    }

    /// Reads the next line; the text after the last end of a line is one too. Dropping the future
    /// loses nothing.
    async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            // One byte more than a line may have: its end, or the first that is too much.
            let room = self.max_bytes.saturating_sub(self.line.len()) + 1;
            let mut input = (&mut self.input).take(u64::try_from(room).unwrap_or(u64::MAX));
            let count = input.read_until(b'\n', &mut self.line).await?;
            let is_whole = self.line.last() == Some(&b'\n');
            if is_whole {
                self.line.pop();
            } else if self.line.len() > self.max_bytes {
                self.is_skipping = true;
                self.line = Vec::new();
                continue;
            } else if count == 0 && self.line.is_empty() && !self.is_skipping {
                return Ok(None);
            }
            let line = std::mem::take(&mut self.line);
            return Ok(Some(if std::mem::take(&mut self.is_skipping) {
                Line::TooLong(self.max_bytes)
            } else {
                Line::Whole(line)
            }));
        }
    }
}

/// Number of bytes of unread answers above which no more input is read.
const MAX_BACKLOG_BYTES: usize = 64 << 20;

/// State of the output.
#[derive(Default)]
struct OutputState {
    /// Bytes of answers that wait to be written.
    backlog: AtomicUsize,
    room: Notify,
    /// Reason for which a write failed, after which there are no more.
    failure: SetOnce<io::Error>,
}

impl OutputState {
    /// Waits until the client takes its answers: who sends more and reads nothing must not fill our
    /// memory.
    async fn has_room(&self) {
        while self.backlog.load(Ordering::Relaxed) > MAX_BACKLOG_BYTES {
            self.room.notified().await;
        }
    }

    /// Writes messages, each as a line, until there are no more or a write fails. Answers count as
    /// bytes of the backlog.
    async fn write_lines(
        self: Arc<Self>,
        mut messages: OutMessages,
        mut stdout: impl AsyncWrite + Unpin,
    ) {
        while let Some(message) = messages.recv().await {
            let is_answer = matches!(message, OutMessage::Answer(..));
            let Some((mut line, _in_flight)) = message.into_text() else {
                continue;
            };
            line.push(b'\n');
            let written = async {
                stdout.write_all(&line).await?;
                stdout.flush().await
            }
            .await;
            if is_answer {
                self.backlog.fetch_sub(line.len() - 1, Ordering::Relaxed);
                self.room.notify_one();
            }
            if let Err(error) = written {
                let _ = self.failure.set(error);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&str], max_bytes: usize) -> Vec<String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let mut builder = tokio_test_reader(pieces);
        builder.max_bytes = max_bytes;
        let mut found = Vec::new();
        while let Some(line) = runtime.block_on(builder.next()).unwrap() {
            found.push(match line {
                Line::Whole(line) => String::from_utf8(line).unwrap(),
                Line::TooLong(max_bytes) => format!("more than {max_bytes}"),
            });
        }
        found
    }

    /// A reader that gives one piece at a time.
    fn tokio_test_reader(pieces: &[&str]) -> Lines<impl AsyncRead + Unpin + use<>> {
        struct Pieces(std::collections::VecDeque<Vec<u8>>);
        impl AsyncRead for Pieces {
            fn poll_read(
                mut self: std::pin::Pin<&mut Self>,
                _: &mut std::task::Context<'_>,
                buffer: &mut tokio::io::ReadBuf<'_>,
            ) -> std::task::Poll<io::Result<()>> {
                if let Some(piece) = self.0.pop_front() {
                    buffer.put_slice(&piece);
                }
                std::task::Poll::Ready(Ok(()))
            }
        }
        Lines::new(Pieces(
            pieces
                .iter()
                .map(|piece| piece.as_bytes().to_vec())
                .collect(),
        ))
    }

    #[test]
    fn lines_come_whole_however_they_were_cut() {
        assert_eq!(
            lines(&["a\nb", "c\n\nd\ne", "f"], 100),
            ["a", "bc", "", "d", "ef"]
        );
        assert_eq!(lines(&["one\n"], 100), ["one"]);
        assert_eq!(lines(&[], 100), Vec::<String>::new());
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_counts() {
        let long = "x".repeat(600);
        let pieces = ["ok\nhead", &long, &long, "tail\nnext\n"];
        assert_eq!(lines(&pieces, 1000), ["ok", "more than 1000", "next"]);
        assert_eq!(
            lines(&["head", &long, &long], 1000),
            ["more than 1000"],
            "a last line without an end may be too long as well"
        );
    }
}
