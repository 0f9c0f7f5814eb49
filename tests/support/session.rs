//! A session over stdio with the handshake of protocol version 2025-11-25; every line on stdout
//! must be JSON.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

#[cfg(unix)]
use super::after_shell;
use super::{Logs, SpecFile, TIMEOUT, Upstream, command, initialize_parameters, wait};

pub struct Session {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    logs: Logs,
    next: u64,
    handshake: Value,
}

impl Session {
    pub fn start(args: &[&str]) -> Self {
        Self::start_with(args, &[])
    }

    /// The same with environment variables.
    pub fn start_with(args: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = command(args);
        command.envs(variables.iter().copied());
        Self::open(command, "", &json!({}))
    }

    /// A session of a process that can write so many blocks of 512 bytes to a file, until it is
    /// allowed more.
    #[cfg(unix)]
    pub fn start_with_file_limit(blocks: u32, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = command(args);
        command.envs(variables.iter().copied());
        Self::open(
            after_shell(&format!("ulimit -S -f {blocks}"), &command),
            "",
            &json!({}),
        )
    }

    /// A session of a document with an API.
    pub fn serving(spec: &SpecFile, upstream: &Upstream, more: &[&str]) -> Self {
        Self::serving_with(spec, upstream, more, &[])
    }

    /// The same with environment variables.
    pub fn serving_with(
        spec: &SpecFile,
        upstream: &Upstream,
        more: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let args = ["serve", "--spec", spec.path(), "--base-url", &upstream.url];
        Self::start_with(&[&args, more].concat(), variables)
    }

    /// A session in which `before` is written before the handshake.
    pub fn start_after(args: &[&str], before: &str) -> Self {
        Self::open(command(args), before, &json!({}))
    }

    /// A session of a client with these capabilities.
    pub fn start_able(args: &[&str], capabilities: &Value) -> Self {
        Self::open(command(args), "", capabilities)
    }

    fn open(mut command: Command, before: &str, capabilities: &Value) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        std::thread::spawn(move || {
            stdout
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        let mut session = Self {
            stdin: child.stdin.take(),
            logs: Logs::read(&mut child, |_| {}),
            child,
            lines,
            next: 0,
            handshake: Value::Null,
        };
        session
            .stdin
            .as_mut()
            .expect("open")
            .write_all(before.as_bytes())
            .expect("taken");
        let answer = session.request("initialize", &initialize_parameters(capabilities));
        assert!(
            answer["result"]["serverInfo"].is_object(),
            "{answer}\n{}",
            session.logs()
        );
        session.handshake = answer["result"].clone();
        session.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        session
    }

    /// The result of `initialize`.
    pub fn handshake(&self) -> &Value {
        &self.handshake
    }

    pub fn send(&mut self, message: &Value) {
        self.send_text(&message.to_string());
    }

    pub fn send_text(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("still open");
        stdin
            .write_all(line.as_bytes())
            .and_then(|()| stdin.write_all(b"\n"))
            .and_then(|()| stdin.flush())
            .expect("taken");
    }

    pub fn post(&mut self, method: &str, parameters: &Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}));
        id
    }

    pub fn receive(&self) -> Value {
        let line = self
            .lines
            .recv_timeout(TIMEOUT)
            .unwrap_or_else(|_| panic!("no line came; the log says:\n{}", self.logs()));
        serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("stdout had something else than JSON ({error}): {line}"))
    }

    pub fn request(&mut self, method: &str, parameters: &Value) -> Value {
        let id = self.post(method, parameters);
        loop {
            let message = self.receive();
            if message["id"] == id {
                return message;
            }
        }
    }

    /// The result of a tool call.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.request("tools/call", &json!({"name": tool, "arguments": arguments}));
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    pub fn tools(&mut self) -> Vec<Value> {
        let answer = self.request("tools/list", &json!({}));
        answer["result"]["tools"]
            .as_array()
            .cloned()
            .unwrap_or_else(|| panic!("{answer}"))
    }

    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end and gives the exit code.
    pub fn wait(&mut self) -> Option<i32> {
        wait(&mut self.child)
    }

    /// The log so far; what was just caused may not be in it yet.
    pub fn logs(&self) -> String {
        self.logs.so_far()
    }

    /// Waits until the log says something, and gives it.
    pub fn logged(&self, text: &str) -> String {
        self.logs.wait_for(text)
    }

    /// Ends the session as a client does, and gives the whole log.
    pub fn end(&mut self) -> String {
        self.close_stdin();
        self.wait();
        self.logs.all()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
