//! Support for the integration tests and the benchmark: the binary, sessions with it over both
//! transports, an upstream that records, and certificates.

pub mod certificates;
pub mod collector;
pub mod http2;
pub mod http_server;
pub mod raw_session;
pub mod redis;
pub mod session;
pub mod upstream;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub use self::collector::Collector;
pub use self::http_server::HttpServer;
pub use self::raw_session::RawSession;
pub use self::redis::Redis;
pub use self::session::Session;
pub use self::upstream::{Received, Upstream, listener, reply};

/// Time limit for actions that are immediate on an idle machine; longer ones have hung.
pub const TIMEOUT: Duration = Duration::from_mins(1);

/// A `tools/list` request.
pub const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

/// A `tools/call` request of a tool of the petstore.
pub const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_pets","arguments":{}}}"#;

/// A `tools/call` request; `arguments` is JSON.
pub fn call_message(tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

/// The parameters of `initialize` in protocol version 2025-11-25.
pub fn initialize_parameters(capabilities: &Value) -> Value {
    json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"}})
}

/// The `_meta` of a request in protocol version 2026-07-28.
pub fn stateless_meta(capabilities: &Value) -> Value {
    json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": capabilities})
}

/// The first text of a tool result.
pub fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

pub fn binary() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_openapi-mcp"))
}

/// A path inside the project.
pub fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

pub fn petstore() -> String {
    project("examples/petstore/petstore.yaml")
        .display()
        .to_string()
}

/// The command, with no setting from the surroundings. An argument such as `retries: 0` is a line
/// of its configuration file.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(with_keys(args)).stdin(Stdio::null());
    let is_setting = |name: &str| {
        ["OPENAPI_MCP_", "OTEL_", "AWS_"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
    };
    for (name, _) in std::env::vars().filter(|(name, _)| is_setting(name)) {
        command.env_remove(name);
    }
    command
}

/// The arguments with a configuration file in place of those that are keys: a file of its own, or
/// what `--config` names and these keys.
fn with_keys(args: &[&str]) -> Vec<String> {
    let schema: Value =
        serde_json::from_str(include_str!("../../config/schema.json")).expect("JSON");
    let is_key = |argument: &str| {
        let key = argument.split_once(": ").map(|(key, _)| key);
        key.is_some_and(|key| schema["properties"].get(key).is_some())
    };
    let header = |index: usize| index > 0 && args[index - 1].starts_with("--header");
    let (mut keys, mut others) = (Vec::new(), Vec::new());
    for (index, argument) in args.iter().enumerate() {
        if is_key(argument) && !header(index) {
            keys.push((*argument).to_owned());
        } else {
            others.push((*argument).to_owned());
        }
    }
    if keys.is_empty() {
        return others;
    }
    let given = others.iter().position(|argument| argument == "--config");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (folder, text) = match given.map(|index| Path::new(&others[index + 1])) {
        None => (folder, String::new()),
        Some(path) => (
            path.parent().expect("a folder"),
            std::fs::read_to_string(path).expect("a file"),
        ),
    };
    // YAML, or one mapping in braces.
    let text = match text.trim_start().strip_prefix('{') {
        Some(rest) => format!("{{ {}, {rest}", keys.join(", ")),
        None => format!("{text}\n{}\n", keys.join("\n")),
    };
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let path = folder.join(format!("keys-{:x}.yaml", hasher.finish()));
    let mut file = tempfile::NamedTempFile::new_in(folder).expect("a file");
    file.write_all(text.as_bytes()).expect("written");
    file.persist(&path).expect("moved");
    let path = path.display().to_string();
    match given {
        Some(index) => others[index + 1] = path,
        None => others
            .splice(1..1, ["--config".to_owned(), path])
            .for_each(drop),
    }
    others
}

/// The command as it is run after a shell has changed its own limits.
#[cfg(unix)]
pub fn after_shell(before: &str, direct: &Command) -> Command {
    let script = format!("{before}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command
        .args(["-c", &script])
        .arg(direct.get_program())
        .args(direct.get_args());
    for (name, value) in direct.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
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

/// Polls until the condition holds; fails with `what` when it never does.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < TIMEOUT, "{what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// Waits for the end of a process and gives its exit code.
pub fn wait(child: &mut Child) -> Option<i32> {
    let mut status = None;
    wait_until("the process did not end", || {
        status = child.try_wait().expect("a child");
        status.is_some()
    });
    status.and_then(|status| status.code())
}

/// Standard error of a process, read by a separate thread.
pub struct Logs {
    text: Arc<Mutex<String>>,
    reader: Option<std::thread::JoinHandle<()>>,
}

impl Logs {
    /// Reads the standard error of `child`; calls `seen` with each line after it was recorded.
    fn read(child: &mut Child, mut seen: impl FnMut(&str) + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let (sink, stderr) = (
            Arc::clone(&text),
            BufReader::new(child.stderr.take().expect("piped")),
        );
        let reader = std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                *sink.lock().expect("unharmed") += &format!("{line}\n");
                seen(&line);
            }
        });
        Self {
            text,
            reader: Some(reader),
        }
    }

    fn so_far(&self) -> String {
        self.text.lock().expect("unharmed").clone()
    }

    /// Waits until the log contains `text`, and gives the whole log.
    fn wait_for(&self, text: &str) -> String {
        let started = Instant::now();
        loop {
            let logs = self.so_far();
            if logs.contains(text) {
                return logs;
            }
            assert!(
                started.elapsed() < TIMEOUT,
                "the log does not say `{text}`: {logs}"
            );
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// The whole log of a process that has ended.
    fn all(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the log is read");
        }
        self.so_far()
    }
}

/// Sends a signal to a process, by its name without `SIG`.
pub fn signal(pid: u32, name: &str) {
    let status = Command::new("kill")
        .args([&format!("-{name}"), &pid.to_string()])
        .status();
    assert!(status.expect("kill runs").success());
}

/// Returns true if `just soak` asked for the stated numbers and waits, if those take long.
pub fn soak() -> bool {
    std::env::var_os("SOAK").is_some()
}

/// A limit that a promise states, in seconds: as it is with `just soak`, and four times as long
/// elsewhere, where the machine may be busy.
pub fn within(seconds: u64) -> Duration {
    Duration::from_secs(if soak() { seconds } else { 4 * seconds })
}

/// Returns the memory of a process in MiB.
#[cfg(target_os = "linux")]
pub fn memory(pid: u32) -> usize {
    memory_line(pid, "VmRSS:")
}

/// The most that a process has held in memory, in MiB.
#[cfg(target_os = "linux")]
pub fn peak_memory(pid: u32) -> usize {
    memory_line(pid, "VmHWM:")
}

#[cfg(target_os = "linux")]
fn memory_line(pid: u32, name: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("alive");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .expect("a line");
    line.trim()
        .trim_end_matches(" kB")
        .parse::<usize>()
        .expect("a number")
        / 1024
}

/// The inodes of the sockets that listen for TCP on this machine (`/proc/net/tcp`: the state `0A`
/// is LISTEN).
#[cfg(target_os = "linux")]
fn listening() -> Vec<String> {
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| std::fs::read_to_string(table).ok())
        .flat_map(|table| table.lines().map(str::to_owned).collect::<Vec<_>>())
        .filter(|line| line.split_whitespace().nth(3) == Some("0A"))
        .filter_map(|line| line.split_whitespace().nth(9).map(str::to_owned))
        .collect()
}

/// The inodes of the sockets that a process has.
#[cfg(target_os = "linux")]
fn sockets(pid: u32) -> Vec<String> {
    std::fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("alive")
        .filter_map(|entry| std::fs::read_link(entry.expect("an entry").path()).ok())
        .filter_map(|target| {
            Some(
                target
                    .to_str()?
                    .strip_prefix("socket:[")?
                    .strip_suffix(']')?
                    .to_owned(),
            )
        })
        .collect()
}

/// Returns the number of sockets of a process that listen for TCP.
#[cfg(target_os = "linux")]
pub fn listening_sockets(pid: u32) -> usize {
    let all = listening();
    sockets(pid)
        .iter()
        .filter(|inode| all.contains(inode))
        .count()
}
