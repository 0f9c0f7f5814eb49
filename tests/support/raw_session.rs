//! A server over stdio, both ends of which a test holds itself: for lines that no client would
//! write, and for measurements, because no thread is between the pipe and the test.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use super::{command, initialize_parameters};

pub struct RawSession {
    pub child: Child,
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<BufReader<ChildStdout>>,
}

impl RawSession {
    /// Starts a server; nothing is said yet.
    pub fn start(args: &[&str]) -> Self {
        Self::start_logging_to(Stdio::null(), args)
    }

    /// The same with this standard error.
    pub fn start_logging_to(stderr: Stdio, args: &[&str]) -> Self {
        let mut child = command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .expect("started");
        Self {
            stdin: child.stdin.take(),
            stdout: child.stdout.take().map(BufReader::new),
            child,
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn send(&mut self, line: &[u8]) {
        let stdin = self.stdin.as_mut().expect("open");
        stdin.write_all(&[line, b"\n"].concat()).expect("taken");
    }

    pub fn send_request(&mut self, id: u64, method: &str, parameters: &Value) {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters});
        self.send(request.to_string().as_bytes());
    }

    pub fn receive_line(&mut self) -> String {
        let mut line = String::new();
        self.stdout
            .as_mut()
            .expect("open")
            .read_line(&mut line)
            .expect("a line");
        line
    }

    /// The next line, which must be JSON-RPC.
    pub fn receive(&mut self) -> Value {
        let line = self.receive_line();
        let message: Value =
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        message
    }

    /// The answer with this id; others are passed over.
    pub fn answer(&mut self, id: &Value) -> Value {
        loop {
            let message = self.receive();
            if message["id"] == *id {
                return message;
            }
        }
    }

    pub fn initialize(&mut self) {
        let request = json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": initialize_parameters(&json!({}))});
        self.send(request.to_string().as_bytes());
        assert!(self.answer(&json!("hello"))["result"].is_object());
        self.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }
}

impl Drop for RawSession {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
