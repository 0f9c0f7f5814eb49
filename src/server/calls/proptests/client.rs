//! A client over standard input and output, which are streams in memory here.

use std::thread;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio_util::sync::CancellationToken;

use super::servers::{DEADLINE, Seen, ServerKind, start};
use crate::server::stdio;

/// A client of a server over streams in memory.
pub(super) struct Client {
    runtime: tokio::runtime::Runtime,
    reader: BufReader<ReadHalf<DuplexStream>>,
    writer: WriteHalf<DuplexStream>,
    pub(super) seen: Seen,
    pings: u32,
}

impl Client {
    pub(super) fn start(kind: ServerKind) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let seen = start(kind, move |server, runtime| {
            let (reader, writer) = tokio::io::split(theirs);
            let never = std::future::pending();
            let served = stdio::serve_streams(server, Box::new(reader), Box::new(writer), never, CancellationToken::new());
            runtime.block_on(served).unwrap();
        });
        let (reader, writer) = tokio::io::split(ours);
        Self {
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
            reader: BufReader::new(reader),
            writer,
            seen,
            pings: 0,
        }
    }

    pub(super) fn send(&mut self, line: &str) {
        self.runtime
            .block_on(self.writer.write_all(format!("{line}\n").as_bytes()))
            .unwrap();
    }

    /// All answers that come until every call has ended, in the order of their texts.
    pub(super) fn answers(&mut self) -> Vec<String> {
        let mut answers = self.until_ping();
        let begun = Instant::now();
        while !self.seen.server.calls().is_empty() && begun.elapsed() < DEADLINE {
            thread::sleep(Duration::from_millis(1));
        }
        answers.extend(self.until_ping());
        answers.sort();
        answers
    }

    /// The next answers, in the order of their texts.
    pub(super) fn next_answers(&mut self, count: usize) -> Vec<String> {
        let mut answers: Vec<String> = (0..count).map(|_| self.read_line()).collect();
        answers.sort();
        answers
    }

    fn read_line(&mut self) -> String {
        let mut line = String::new();
        let reading = async { tokio::time::timeout(DEADLINE, self.reader.read_line(&mut line)).await };
        self.runtime.block_on(reading).unwrap().unwrap();
        line
    }

    fn until_ping(&mut self) -> Vec<String> {
        self.pings += 1;
        let id = format!("\"ping {}\"", self.pings);
        // In both eras there is an answer, whatever it says.
        self.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#));
        let mut answers = Vec::new();
        loop {
            let line = self.read_line();
            if line.contains(&id) {
                return answers;
            }
            answers.push(line);
        }
    }
}
