//! `--audit-log`: one line for every call, and what happens if it cannot be written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{
    CALL, HttpServer, Session, SpecFile, TIMEOUT, Upstream, call_message, petstore, reply, signal,
    wait_until,
};

/// An audit log in a folder of its own.
pub struct Log {
    _folder: tempfile::TempDir,
    pub path: PathBuf,
}

impl Log {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        Self {
            _folder: folder,
            path,
        }
    }

    pub fn name(&self) -> &str {
        self.path.to_str().unwrap()
    }

    pub fn lines(&self) -> Vec<Value> {
        lines(&self.path)
    }

    pub fn wait_for(&self, count: usize) -> Vec<Value> {
        wait_until("the lines are written", || self.lines().len() >= count);
        self.lines()
    }
}

pub fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let whole = text.lines().filter(|line| !line.is_empty());
    whole
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line:?}")))
        .collect()
}

pub fn outcomes(lines: &[Value]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in lines {
        *counts
            .entry(line["outcome"].as_str().unwrap_or_default().to_owned())
            .or_default() += 1;
    }
    counts
}

fn spec() -> SpecFile {
    SpecFile::with_paths(&json!({
        "/things/{id}": {"get": {"operationId": "getThing", "parameters": [
            {"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}
        ]}},
        "/broken": {"post": {"operationId": "breakIt"}},
        "/slow": {"delete": {"operationId": "slow"}},
    }))
}

/// An API that fails at `/broken` and never answers `/slow`.
fn upstream() -> Upstream {
    Upstream::start(Box::new(|request| {
        if request.line.contains("/slow") {
            let (_never, wait) = std::sync::mpsc::channel::<()>();
            let _ = wait.recv_timeout(TIMEOUT);
        }
        let status = if request.line.contains("/broken") {
            500
        } else {
            200
        };
        reply(
            status,
            &["Content-Type: application/json"],
            br#"{"secret":"the-reply-itself"}"#,
        )
    }))
}

#[test]
fn each_call_gives_one_line_without_values() {
    let (spec, upstream, log) = (spec(), upstream(), Log::new());
    let server = HttpServer::start_with(
        &[
            "--spec",
            spec.path(),
            "--base-url",
            &upstream.url,
            "--audit-log",
            log.name(),
            "audit_key_env: AUDIT_KEY",
            "--timeout",
            "0.5",
        ],
        &[("AUDIT_KEY", "a-key-that-nobody-guesses")],
    );
    let trace = "Traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let call = |tool: &str, arguments: &str| {
        server.post(
            &["MCP-Protocol-Version: 2025-11-25", trace],
            &call_message(tool, arguments),
        )
    };
    call("getThing", r#"{"id": 7654321}"#);
    call("getThing", r#"{"id":7654321}"#);
    call("getThing", r#"{"id":7654322}"#);
    call("getThing", r#"{"id":"seven"}"#);
    call("breakIt", "{}");
    call("slow", "{}");
    call("no_such_tool", "{}");
    let lines = log.wait_for(7);
    assert_eq!(lines.len(), 7, "{lines:?}");
    let counts = [
        ("ok", 3),
        ("invalid_arguments", 1),
        ("api_error", 1),
        ("timeout", 1),
        ("unknown_tool", 1),
    ];
    assert_eq!(
        outcomes(&lines),
        counts.map(|(name, count)| (name.to_owned(), count)).into()
    );
    let first = &lines[0];
    for (member, expected) in [
        ("event", json!("call")),
        ("client", json!("address:127.0.0.1")),
        ("tool", json!("getThing")),
        ("method", json!("GET")),
        ("path", json!("/things/{id}")),
        ("effect", json!("read")),
        ("status", json!(200)),
        ("bytes", json!(29)),
        ("attempts", json!(1)),
        ("confirmed", json!(false)),
        ("trace_id", json!("4bf92f3577b34da6a3ce929d0e0e4736")),
    ] {
        assert_eq!(first[member], expected, "{member}: {first}");
    }
    let time = first["time"].as_str().unwrap();
    assert!(
        time.len() == 24 && time.ends_with('Z') && time.as_bytes()[10] == b'T',
        "{time}"
    );
    assert_eq!(lines[0]["arguments_hash"], lines[1]["arguments_hash"]);
    assert_ne!(lines[1]["arguments_hash"], lines[2]["arguments_hash"]);
    assert_eq!(lines[4]["effect"], "write", "as the hints of the tool say");
    assert!(
        lines
            .iter()
            .all(|line| line["id"].as_str().unwrap().len() == 32)
    );
    let text = std::fs::read_to_string(&log.path).unwrap();
    for value in [
        "7654321",
        "seven",
        "the-reply-itself",
        "no_such_tool",
        "a-key-that",
    ] {
        assert!(!text.contains(value), "{value}: {text}");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(
            std::fs::metadata(&log.path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
}

#[test]
fn a_random_key_makes_hashes_that_compare_with_nobodys() {
    let hash = || {
        let log = Log::new();
        let mut session = Session::start(&[
            "serve",
            "--spec",
            &petstore(),
            "--mock",
            "--audit-log",
            log.name(),
        ]);
        session.call("get_pet", &json!({"petId": 7}));
        let line = log.wait_for(1).remove(0);
        assert_eq!(line["claimed"], "test 1", "{line}");
        (line["arguments_hash"].clone(), line["key_id"].clone())
    };
    let (one, other) = (hash(), hash());
    assert!(one.0 != other.0 && one.1 != other.1, "{one:?} {other:?}");
}

#[test]
fn every_call_under_load_is_counted_once_and_those_that_never_ended_are_cut_off() {
    let (spec, upstream, log) = (spec(), upstream(), Log::new());
    let mut server = HttpServer::start(&[
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "--audit-log",
        log.name(),
        "max_concurrency: 1",
    ]);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..25 {
                    server.post(
                        &["MCP-Protocol-Version: 2025-11-25"],
                        &call_message("getThing", r#"{"id":1}"#),
                    );
                }
            });
        }
    });
    let lines = log.wait_for(200);
    let counts = outcomes(&lines);
    assert_eq!(lines.len(), 200, "{counts:?}");
    assert_eq!(
        counts.get("ok").unwrap_or(&0) + counts.get("busy").unwrap_or(&0),
        200,
        "{counts:?}"
    );

    let mut stream = server.connect();
    let request = crate::support::http_server::http_request(
        &server.address,
        "POST",
        &["MCP-Protocol-Version: 2025-11-25"],
        &call_message("slow", "{}"),
    );
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    wait_until("the API is asked", || {
        upstream
            .received()
            .iter()
            .any(|request| request.line.contains("/slow"))
    });
    signal(server.pid(), "TERM");
    server.logged("stopping");
    signal(server.pid(), "TERM");
    assert_eq!(server.wait(), Some(130));
    let lines = log.lines();
    assert_eq!(lines.len(), 201);
    assert_eq!(lines[200]["outcome"], "cut_off", "{}", lines[200]);
}

#[test]
fn a_client_that_leaves_has_cancelled_its_call() {
    let (spec, upstream, log) = (spec(), upstream(), Log::new());
    let mut session = Session::serving(&spec, &upstream, &["--audit-log", log.name()]);
    let id = session.post("tools/call", &json!({"name": "slow", "arguments": {}}));
    wait_until("the API is asked", || !upstream.received().is_empty());
    session.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    assert_eq!(log.wait_for(1)[0]["outcome"], "cancelled");
}

/// A server that asks before it destroys something.
pub(super) fn asking_server(log: &Log) -> HttpServer {
    HttpServer::start(&[
        "--spec",
        &petstore(),
        "--mock",
        "--confirm",
        "destructive",
        "--audit-log",
        log.name(),
    ])
}

#[test]
fn a_question_and_its_answer_are_two_lines() {
    let log = Log::new();
    let server = asking_server(&log);
    let able = json!({"elicitation": {"form": {}}});
    let asked = server.call_stateless("delete_pet", json!({"arguments": {"petId": 7}}), &able);
    let state = asked["result"]["requestState"].clone();
    let name = asked["result"]["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap()
        .clone();
    for action in ["accept", "decline"] {
        let parameters = json!({"arguments": {"petId": 7}, "requestState": state, "inputResponses": {&name: {"action": action, "content": {}}}});
        server.call_stateless("delete_pet", parameters, &able);
    }
    let lines = log.wait_for(3);
    let seen: Vec<_> = lines
        .iter()
        .map(|line| {
            (
                line["outcome"].as_str().unwrap(),
                line["confirmed"].as_bool().unwrap(),
            )
        })
        .collect();
    // The second answer to one question counts for nothing: the person is asked again.
    assert_eq!(seen, [("asked", false), ("ok", true), ("asked", false)]);
    assert!(lines[0]["question"].is_string(), "{lines:?}");
    assert_eq!(lines[0]["question"], lines[1]["question"]);
    assert_ne!(lines[1]["question"], lines[2]["question"]);
}

#[test]
fn strangers_do_not_fill_the_disk_and_tokens_are_named_by_hashes() {
    let log = Log::new();
    let mut server = HttpServer::start_with(
        &[
            "--spec",
            &petstore(),
            "--mock",
            "--audit-log",
            log.name(),
            "--auth-token-env",
            "A_TOKEN",
        ],
        &[("A_TOKEN", "sixteen-letters-or-more")],
    );
    for _ in 0..20 {
        server.post(&[], CALL);
    }
    server.post(&["Authorization: Bearer sixteen-letters-or-more"], CALL);
    let lines = log.wait_for(2);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(
        (&lines[0]["event"], &lines[0]["reason"], &lines[0]["count"]),
        (&json!("refused"), &json!("no_token"), &json!(1))
    );
    let client = lines[1]["client"].as_str().unwrap();
    assert!(
        client.starts_with("token:") && !client.contains("sixteen"),
        "{client}"
    );
    // None is left out of the count in the end.
    signal(server.pid(), "TERM");
    server.wait();
    let lines = log.wait_for(3);
    assert_eq!(
        (&lines[2]["reason"], &lines[2]["count"]),
        (&json!("no_token"), &json!(19)),
        "{lines:?}"
    );
}

#[cfg(unix)]
#[test]
fn the_log_follows_a_rename_by_itself_and_at_sighup() {
    let log = Log::new();
    let server = HttpServer::start(&["--spec", &petstore(), "--mock", "--audit-log", log.name()]);
    server.post(&[], CALL);
    log.wait_for(1);
    let moved = log.path.with_extension("1");
    std::fs::rename(&log.path, &moved).unwrap();
    signal(server.pid(), "HUP");
    wait_until("the file is there again", || log.path.exists());
    server.post(&[], CALL);
    assert_eq!(log.wait_for(1).len(), 1);
    std::fs::rename(&log.path, log.path.with_extension("2")).unwrap();
    wait_until("the file is there again without a signal", || {
        log.path.exists()
    });
    server.post(&[], CALL);
    assert_eq!(log.wait_for(1).len(), 1);
    assert_eq!(lines(&moved).len(), 1);
}

/// Returns true if SIGHUP is ignored here. A child inherits that, and no safe call can undo it.
#[cfg(unix)]
fn ignores_sighup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & 1 == 1)
}

#[cfg(unix)]
#[test]
fn without_an_audit_file_sighup_ends_the_process() {
    if ignores_sighup() {
        println!("skipped: this process ignores SIGHUP, as under nohup, and so do its children");
        return;
    }
    let mut server = HttpServer::start(&["--spec", &petstore(), "--mock"]);
    signal(server.pid(), "HUP");
    assert_eq!(server.wait(), None);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_costs_lines_and_stops_calls_only_where_they_are_required() {
    // /dev/full is not a plain file; a limit on the size of files gives the same error.
    let log = Log::new();
    let limited = |more: &[&str]| {
        let server = HttpServer::start_with_file_limit(
            1,
            &[
                &["--spec", &petstore(), "--mock", "--audit-log", log.name()],
                more,
            ]
            .concat(),
        );
        for _ in 0..30 {
            let (_, answer) = server.post(&[], CALL);
            assert!(answer.contains("\"result\""), "{answer}");
        }
        server
    };
    let server = limited(&[]);
    server.logged("a line of the audit log is lost");
    let (_, answer) = server.post(&[], CALL);
    assert!(answer.contains("\"isError\":false"), "{answer}");
    drop(server);
    let server = limited(&["audit_log_required: true"]);
    let (_, answer) = server.post(&[], CALL);
    assert!(
        answer.contains("\"isError\":true") && answer.contains("audit log"),
        "{answer}"
    );
}

#[test]
fn a_required_log_has_two_lines_and_says_what_began() {
    let (spec, upstream, log) = (spec(), upstream(), Log::new());
    let server = HttpServer::start(&[
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "--audit-log",
        log.name(),
        "audit_log_required: true",
    ]);
    server.post(&[], &call_message("getThing", r#"{"id":1}"#));
    let lines = log.wait_for(2);
    assert_eq!(
        (&lines[0]["event"], &lines[1]["event"]),
        (&json!("begin"), &json!("end")),
        "{lines:?}"
    );
    assert_eq!(lines[0]["id"], lines[1]["id"]);
    assert_eq!(lines[0]["tool"], "getThing");
}

#[test]
fn what_cannot_be_a_log_ends_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("no/such/folder/log");
    let both = folder.path().join("both").display().to_string();
    for (args, expected) in [
        (
            &["--audit-log", "-"][..],
            "over stdio, standard output belongs to the protocol",
        ),
        (
            &["--audit-log", missing.to_str().unwrap()],
            "cannot be opened",
        ),
        (
            &["--audit-log", folder.path().to_str().unwrap()],
            "--audit-log",
        ),
        (
            &["--audit-log", &both, &format!("token_store: {both}")],
            "name one file",
        ),
        (
            &["audit_log_required: true"],
            "`audit_log_required` needs --audit-log",
        ),
        (&["audit_key_env: NOT_SET_ANYWHERE"], "NOT_SET_ANYWHERE"),
    ] {
        let output =
            crate::support::command(&[&["serve", "--spec", &petstore(), "--mock"], args].concat())
                .output()
                .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.code() == Some(2) && said.contains(expected),
            "{said}"
        );
    }
}
