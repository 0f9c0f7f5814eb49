//! The binary as a server over HTTP on a port of its own, and the requests that tests write to it
//! by hand.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::mpsc::channel;

use serde_json::{Value, json};

#[cfg(unix)]
use super::after_shell;
use super::{Logs, TIMEOUT, command, initialize_parameters, stateless_meta, wait};

const SERVE_HTTP: [&str; 5] = ["serve", "--transport", "http", "--bind", "127.0.0.1:0"];

pub struct HttpServer {
    child: Child,
    pub address: String,
    logs: Logs,
}

/// A whole request to `/mcp`. `headers` are whole lines; `Host`, `Accept`, `Content-Type` and
/// `Content-Length` are added if they are missing.
pub fn http_request(address: &str, method: &str, headers: &[&str], body: &str) -> String {
    let mut lines = vec![format!("{method} /mcp HTTP/1.1")];
    for line in [
        format!("Host: {address}"),
        "Accept: application/json, text/event-stream".to_owned(),
        "Content-Type: application/json".to_owned(),
    ] {
        let name = line
            .split_inclusive(':')
            .next()
            .expect("a name")
            .to_ascii_lowercase();
        if !headers
            .iter()
            .any(|given| given.to_ascii_lowercase().starts_with(&name))
        {
            lines.push(line);
        }
    }
    lines.extend(headers.iter().map(|line| (*line).to_owned()));
    format!(
        "{}\r\nContent-Length: {}\r\n\r\n{body}",
        lines.join("\r\n"),
        body.len()
    )
}

/// The value of a header of an answer; `name` is in lower case.
pub fn answer_header<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let head = answer.split("\r\n\r\n").next()?;
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
}

/// The page of metrics at an address, without its head.
pub fn scrape(address: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("connected");
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    body.to_owned()
}

impl HttpServer {
    pub fn start(args: &[&str]) -> Self {
        Self::start_with(args, &[])
    }

    /// The same with environment variables.
    pub fn start_with(args: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = command(&[&SERVE_HTTP[..], args].concat());
        command.envs(variables.iter().copied());
        Self::spawn(command)
    }

    /// A server whose process may have so many file descriptors, and can raise that no further.
    #[cfg(unix)]
    pub fn start_with_descriptors(descriptors: u32, args: &[&str]) -> Self {
        Self::start_after_shell(&format!("ulimit -n {descriptors}"), args)
    }

    /// A server that can write so many blocks of 512 bytes to a file, and no more, as on a full
    /// disk.
    #[cfg(unix)]
    pub fn start_with_file_limit(blocks: u32, args: &[&str]) -> Self {
        Self::start_after_shell(&format!("ulimit -f {blocks}"), args)
    }

    #[cfg(unix)]
    fn start_after_shell(before: &str, args: &[&str]) -> Self {
        let mut command = after_shell(before, &command(&[&SERVE_HTTP[..], args].concat()));
        command.stdin(Stdio::null());
        Self::spawn(command)
    }

    fn spawn(mut command: std::process::Command) -> Self {
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("started");
        let (sender, first) = channel();
        let logs = Logs::read(&mut child, move |line| {
            let url = line
                .split_once("listening on ")
                .and_then(|(_, url)| url.split_once("://"));
            if let Some((_, address)) = url {
                let _ = sender.send(address.trim_end_matches("/mcp").to_owned());
            }
        });
        let address = first
            .recv_timeout(TIMEOUT)
            .unwrap_or_else(|_| panic!("it does not listen:\n{}", logs.so_far()));
        Self {
            child,
            address,
            logs,
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// The log so far; what was just caused may not be in it yet.
    pub fn logs(&self) -> String {
        self.logs.so_far()
    }

    /// Waits until the log says something, and gives it.
    pub fn logged(&self, text: &str) -> String {
        self.logs.wait_for(text)
    }

    /// Ends the process at once, and gives all that it has logged.
    pub fn end(&mut self) -> String {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.logs.all()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn wait(&mut self) -> Option<i32> {
        wait(&mut self.child)
    }

    /// A connection whose reads do not wait for ever.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("connected");
        stream.set_read_timeout(Some(2 * TIMEOUT)).expect("set");
        stream
    }

    /// Sends bytes as they are and gives all that comes back until the connection ends.
    pub fn raw(&self, request: &str) -> String {
        let mut stream = self.connect();
        // A server that has seen enough may answer and close before all is sent.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// A GET of a path beside `/mcp`, as a client on this machine sends it.
    pub fn get(&self, path: &str) -> String {
        self.raw(&format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        ))
    }

    /// Sends a request to `/mcp` and gives the whole answer, which is empty if the connection was
    /// reset.
    fn exchange(&self, method: &str, headers: &[&str], body: &str) -> String {
        let headers = [headers, &["Connection: close"]].concat();
        self.raw(&http_request(&self.address, method, &headers, body))
    }

    /// POSTs a message to `/mcp`; `headers` are whole lines. Gives the status line and the body.
    pub fn post(&self, headers: &[&str], body: &str) -> (String, String) {
        let answer = self.exchange("POST", headers, body);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        (
            head.lines().next().unwrap_or_default().to_owned(),
            body.to_owned(),
        )
    }

    /// Sends a request to `/mcp`; `headers` are whole lines. Gives the status and the whole answer.
    pub fn send(&self, method: &str, headers: &[&str], body: &str) -> (u16, String) {
        let answer = self.exchange(method, headers, body);
        let status = answer
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        (
            status.unwrap_or_else(|| panic!("no status: {answer:?}")),
            answer,
        )
    }

    /// Calls a tool in protocol version 2026-07-28, which has no sessions, and gives the JSON-RPC
    /// answer. `parameters` are those of `tools/call` without `name` and `_meta`.
    pub fn call_stateless(&self, tool: &str, parameters: Value, capabilities: &Value) -> Value {
        self.call_stateless_as(&[], tool, parameters, capabilities)
    }

    /// The same with more header lines.
    pub fn call_stateless_as(
        &self,
        more: &[&str],
        tool: &str,
        mut parameters: Value,
        capabilities: &Value,
    ) -> Value {
        parameters["name"] = tool.into();
        parameters["_meta"] = stateless_meta(capabilities);
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": parameters});
        let name = format!("Mcp-Name: {tool}");
        let headers = [
            more,
            &[
                "MCP-Protocol-Version: 2026-07-28",
                "Mcp-Method: tools/call",
                &name,
            ],
        ]
        .concat();
        let (status, answer) = self.post(&headers, &body.to_string());
        serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{status} {answer}"))
    }

    /// Begins a session of protocol version 2025-11-25, and gives its header line.
    pub fn begin_session(&self, headers: &[&str]) -> String {
        let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize_parameters(&json!({}))});
        let (status, answer) = self.send("POST", headers, &initialize.to_string());
        assert_eq!(status, 200, "{answer}");
        let session =
            answer_header(&answer, "mcp-session-id").unwrap_or_else(|| panic!("{answer}"));
        let session = format!("Mcp-Session-Id: {session}");
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let (status, answer) = self.send("POST", &[headers, &[&session]].concat(), initialized);
        assert_eq!(status, 202, "{answer}");
        session
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
