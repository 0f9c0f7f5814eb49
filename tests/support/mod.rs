//! What the tests share: the binary, a stdio session with it, an HTTP server of it, and an upstream that records.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

/// Nothing here takes long; whatever waits longer than this has hung.
pub const PATIENCE: Duration = Duration::from_mins(1);

pub fn binary() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_openapi-mcp"))
}

/// A path inside the project.
pub fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

pub fn petstore() -> String {
    project("examples/petstore/petstore.yaml").display().to_string()
}

/// The command, with no setting from the surroundings.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(args).stdin(Stdio::null());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("OPENAPI_MCP_")) {
        command.env_remove(name);
    }
    command
}

pub fn run(args: &[&str]) -> Output {
    command(args).output().expect("the binary runs")
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

/// A document in a file of its own, which lives as long as this value.
pub struct SpecFile {
    _directory: tempfile::TempDir,
    path: String,
}

impl SpecFile {
    pub fn new(text: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("spec.json");
        std::fs::write(&path, text).expect("written");
        Self {
            path: path.display().to_string(),
            _directory: directory,
        }
    }

    pub fn with_paths(paths: &Value) -> Self {
        Self::new(&json!({ "openapi": "3.1.0", "info": { "title": "T", "version": "1" }, "paths": paths }).to_string())
    }

    pub fn path(&self) -> &str {
        &self.path
    }
}

/// A session over stdio in the era of the handshake, spoken by hand.
pub struct Session {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    logs: Arc<Mutex<String>>,
    listener: Option<std::thread::JoinHandle<()>>,
    next: u64,
}

impl Session {
    pub fn start(args: &[&str]) -> Self {
        Self::start_with(command(args))
    }

    /// A session of a document with an API.
    pub fn serving(spec: &SpecFile, upstream: &Upstream, more: &[&str]) -> Self {
        Self::start(&[&["serve", "--spec", spec.path(), "--base-url", &upstream.url], more].concat())
    }

    /// A session in which something else is said before the handshake.
    pub fn start_after(args: &[&str], before: &str) -> Self {
        Self::open(command(args), before)
    }

    pub fn start_with(command: Command) -> Self {
        Self::open(command, "")
    }

    /// A session of a client that says it can do that.
    pub fn start_able(args: &[&str], capabilities: &Value) -> Self {
        Self::open_with(command(args), "", capabilities)
    }

    fn open(command: Command, before: &str) -> Self {
        Self::open_with(command, before, &json!({}))
    }

    fn open_with(mut command: Command, before: &str, capabilities: &Value) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let logs = Arc::new(Mutex::new(String::new()));
        let (sink, stderr) = (Arc::clone(&logs), BufReader::new(child.stderr.take().expect("piped")));
        let listener = std::thread::spawn(move || {
            stderr
                .lines()
                .map_while(Result::ok)
                .for_each(|line| *sink.lock().unwrap() += &(line + "\n"));
        });
        let mut session = Self {
            stdin: child.stdin.take(),
            child,
            lines,
            logs,
            listener: Some(listener),
            next: 0,
        };
        session.stdin.as_mut().expect("open").write_all(before.as_bytes()).expect("taken");
        let parameters =
            json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"}});
        let answer = session.request("initialize", &parameters);
        assert!(answer["result"]["serverInfo"].is_object(), "{answer}\n{}", session.logs());
        session.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        session
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
            .recv_timeout(PATIENCE)
            .unwrap_or_else(|_| panic!("no line came; the log says:\n{}", self.logs()));
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("stdout had something else than JSON ({error}): {line}"))
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
        answer["result"]["tools"].as_array().cloned().unwrap_or_else(|| panic!("{answer}"))
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

    pub fn logs(&self) -> String {
        self.logs.lock().unwrap().clone()
    }

    /// Waits until the log says something, and gives it.
    pub fn logged(&self, text: &str) -> String {
        logged(&self.logs, text)
    }

    /// Ends the session as a client does, and gives the whole log.
    pub fn end(&mut self) -> String {
        self.close_stdin();
        self.wait();
        self.listener.take().map(std::thread::JoinHandle::join);
        self.logs()
    }
}

fn logged(logs: &Mutex<String>, text: &str) -> String {
    let started = std::time::Instant::now();
    loop {
        let logs = logs.lock().unwrap().clone();
        if logs.contains(text) {
            return logs;
        }
        assert!(started.elapsed() < PATIENCE, "the log does not say `{text}`: {logs}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn wait(child: &mut Child) -> Option<i32> {
    let started = std::time::Instant::now();
    while started.elapsed() < PATIENCE {
        if let Some(status) = child.try_wait().expect("a child") {
            return status.code();
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
    panic!("the process did not end");
}

/// A server over HTTP, on a port of its own.
pub struct HttpServer {
    child: Child,
    pub address: String,
    logs: Arc<Mutex<String>>,
}

impl HttpServer {
    pub fn start(args: &[&str]) -> Self {
        Self::start_with(args, &[])
    }

    /// The same with environment variables.
    pub fn start_with(args: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut all = vec!["serve", "--transport", "http", "--bind", "127.0.0.1:0"];
        all.extend(args);
        let mut command = command(&all);
        command.envs(variables.iter().copied()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("started");
        let (sender, first) = channel();
        let logs = Arc::new(Mutex::new(String::new()));
        let (sink, stderr) = (Arc::clone(&logs), BufReader::new(child.stderr.take().expect("piped")));
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).for_each(|line| {
                let url = line.split_once("listening on ").and_then(|(_, url)| url.split_once("://"));
                let address = url.map(|(_, address)| address.trim_end_matches("/mcp").to_owned());
                // Logged before the address is told: whoever has the address may read the line at once.
                *sink.lock().unwrap() += &(line + "\n");
                if let Some(address) = address {
                    let _ = sender.send(address);
                }
            });
        });
        let address = first
            .recv_timeout(PATIENCE)
            .unwrap_or_else(|_| panic!("it does not listen:\n{}", logs.lock().unwrap()));
        Self { child, address, logs }
    }

    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub fn logs(&self) -> String {
        self.logs.lock().unwrap().clone()
    }

    /// Waits until the log says something, and gives it.
    pub fn logged(&self, text: &str) -> String {
        logged(&self.logs, text)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn wait(&mut self) -> Option<i32> {
        wait(&mut self.child)
    }

    /// Sends bytes as they are and gives all that comes back until the connection ends.
    pub fn raw(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("connected");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        // A server that has seen enough may answer and close before all is sent.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// POSTs a message to `/mcp`; `headers` are whole lines. Gives the status line and the body.
    pub fn post(&self, headers: &[&str], body: &str) -> (String, String) {
        let host = format!("Host: {}", self.address);
        let mut lines = vec![
            "POST /mcp HTTP/1.1",
            "Accept: application/json, text/event-stream",
            "Connection: close",
        ];
        if !headers.iter().any(|line| line.to_ascii_lowercase().starts_with("host:")) {
            lines.push(&host);
        }
        if !headers.iter().any(|line| line.to_ascii_lowercase().starts_with("content-type:")) {
            lines.push("Content-Type: application/json");
        }
        lines.extend(headers);
        let answer = self.raw(&format!("{}\r\nContent-Length: {}\r\n\r\n{body}", lines.join("\r\n"), body.len()));
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        (head.lines().next().unwrap_or_default().to_owned(), body.to_owned())
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A request as it came over the wire.
#[derive(Debug, Clone)]
pub struct Received {
    pub line: String,
    /// Header lines as they came, but with the name in lower case.
    pub headers: Vec<String>,
    pub body: Vec<u8>,
}

impl Received {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find_map(|line| line.strip_prefix(&format!("{name}: ")))
    }
}

type Reply = Box<dyn Fn(&Received) -> Vec<u8> + Send + Sync>;

/// An upstream that records every request, byte for byte, and answers what it is told to.
pub struct Upstream {
    pub url: String,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Upstream {
    /// Answers everything with a small JSON object.
    pub fn echo() -> Self {
        Self::start(Box::new(|_| reply(200, &["Content-Type: application/json"], b"{\"ok\":true}")))
    }

    pub fn start(answer: Reply) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let received = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (Arc::clone(&received), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                std::thread::spawn(move || serve(&stream, &log, &answer));
            }
        });
        Self { url, received }
    }

    /// Whatever `answer` writes to the connection once a request is read; the connection ends with it.
    pub fn raw(answer: impl Fn(&Received, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let received = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (Arc::clone(&received), Arc::new(answer));
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                std::thread::spawn(move || {
                    let Some(request) = read_request(&mut BufReader::new(&stream)) else {
                        return;
                    };
                    log.lock().unwrap().push(request.clone());
                    answer(&request, &mut stream);
                });
            }
        });
        Self { url, received }
    }

    pub fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// All requests since the last time.
    pub fn take_all(&self) -> Vec<Received> {
        std::mem::take(&mut *self.received.lock().unwrap())
    }

    /// The only request since the last time; fails where there is none or another one.
    pub fn take_one(&self) -> Received {
        let mut all = self.take_all();
        assert_eq!(all.len(), 1, "exactly one request was to come: {all:?}");
        all.remove(0)
    }
}

fn serve(stream: &TcpStream, log: &Mutex<Vec<Received>>, answer: &Reply) {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read_request(&mut reader) {
        log.lock().unwrap().push(request.clone());
        let bytes = answer(&request);
        let mut writer = stream;
        if writer.write_all(&bytes).is_err() || bytes.is_empty() {
            break;
        }
        let head = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
        if !head.contains("content-length:") || head.contains("connection: close") {
            break;
        }
    }
    let _ = stream.shutdown(std::net::Shutdown::Both);
}

fn read_request(reader: &mut BufReader<&TcpStream>) -> Option<Received> {
    let mut line = String::new();
    if reader.read_line(&mut line).ok()? == 0 {
        return None;
    }
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let header = header.trim_end_matches(['\r', '\n']);
        if header.is_empty() {
            break;
        }
        let (name, value) = header.split_once(':').expect("a header line");
        headers.push(format!("{}: {}", name.to_ascii_lowercase(), value.trim()));
    }
    let length = headers
        .iter()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |text| text.parse().expect("a length"));
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Received {
        line: line.trim_end().to_owned(),
        headers,
        body,
    })
}

/// The bytes of a reply with a length.
pub fn reply(status: u16, headers: &[&str], body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n", body.len()).into_bytes();
    for header in headers {
        bytes.extend_from_slice(format!("{header}\r\n").as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}

/// Whether `just soak` asked for the stated numbers and waits, where those take long.
pub fn soak() -> bool {
    std::env::var_os("SOAK").is_some()
}

/// What a process holds in memory, in MiB.
#[cfg(target_os = "linux")]
pub fn memory(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("alive");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") / 1024
}
