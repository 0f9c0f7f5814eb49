//! How the server ends, and that calls do not get in each other's way.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{HttpServer, Session, SpecFile, Upstream, petstore, reply};

fn signal(pid: u32, name: &str) {
    assert!(
        Command::new("kill")
            .args([&format!("-{name}"), &pid.to_string()])
            .status()
            .unwrap()
            .success()
    );
}

fn spec() -> SpecFile {
    SpecFile::with_paths(&json!({"/fast": {"get": {"operationId": "fast"}}, "/slow": {"get": {"operationId": "slow"}}}))
}

/// An upstream whose `/slow` answers when it is told to, and tells when it was asked.
fn held() -> (Upstream, std::sync::mpsc::Sender<()>, std::sync::mpsc::Receiver<()>) {
    let (release, wait) = channel::<()>();
    let (asked, was_asked) = channel::<()>();
    let (wait, asked) = (Arc::new(Mutex::new(wait)), Arc::new(Mutex::new(asked)));
    let upstream = Upstream::start(Box::new(move |request| {
        if request.line.contains("/slow") {
            let _ = asked.lock().unwrap().send(());
            let _ = wait.lock().unwrap().recv_timeout(Duration::from_secs(20));
        }
        reply(200, &["Content-Type: application/json"], b"{\"done\":true}")
    }));
    (upstream, release, was_asked)
}

#[test]
fn the_end_of_stdin_ends_an_idle_server() {
    let mut session = Session::start(&["serve", "--spec", &petstore(), "--mock"]);
    let started = Instant::now();
    session.close_stdin();
    assert_eq!(session.wait(), Some(0));
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn the_end_of_stdin_answers_what_is_in_flight() {
    let (upstream, release, asked) = held();
    let spec = spec();
    let mut session = Session::start(&["serve", "--spec", spec.path(), "--base-url", &upstream.url]);
    session.post(
        "tools/call",
        &json!({"name": "slow", "arguments": {}, "_meta": {"progressToken": 1}}),
    );
    asked.recv_timeout(Duration::from_secs(20)).unwrap();
    session.close_stdin();
    release.send(()).unwrap();
    let answer = loop {
        let message = session.receive();
        if message["id"].is_number() {
            break message;
        }
    };
    assert_eq!(answer["result"]["structuredContent"]["done"], true);
    assert_eq!(session.wait(), Some(0));
}

#[cfg(unix)]
#[test]
fn a_signal_answers_what_is_in_flight_on_both_transports() {
    let (upstream, release, asked) = held();
    let spec = spec();
    let mut session = Session::start(&["serve", "--spec", spec.path(), "--base-url", &upstream.url]);
    session.post("tools/call", &json!({"name": "slow", "arguments": {}}));
    asked.recv_timeout(Duration::from_secs(20)).unwrap();
    signal(session.pid(), "TERM");
    release.send(()).unwrap();
    assert_eq!(session.receive()["result"]["structuredContent"]["done"], true);
    assert_eq!(session.wait(), Some(0));

    let mut server = HttpServer::start(&["--spec", spec.path(), "--base-url", &upstream.url]);
    let pid = server.pid();
    let answer = std::thread::scope(|scope| {
        let call = scope.spawn(|| {
            server.post(
                &["MCP-Protocol-Version: 2025-11-25"],
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}"#,
            )
        });
        asked.recv_timeout(Duration::from_secs(20)).unwrap();
        signal(pid, "INT");
        release.send(()).unwrap();
        call.join().unwrap()
    });
    assert!(answer.1.contains("\"done\":true"), "{answer:?}");
    assert_eq!(server.wait(), Some(0));
}

#[cfg(unix)]
#[test]
fn p38_twenty_calls_in_flight_are_answered_and_new_work_is_refused() {
    let (upstream, release, asked) = held();
    let spec = spec();
    let mut server = HttpServer::start(&["--spec", spec.path(), "--base-url", &upstream.url]);
    let (pid, address) = (server.pid(), server.address.clone());
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}"#;
    let answers: Vec<(String, String)> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..20)
            .map(|_| scope.spawn(|| server.post(&["MCP-Protocol-Version: 2025-11-25"], call)))
            .collect();
        for _ in 0..20 {
            asked.recv_timeout(Duration::from_secs(20)).unwrap();
        }
        signal(pid, "TERM");
        server.logged("stopping");
        // Nobody new is let in.
        let started = Instant::now();
        while TcpStream::connect(&address).is_ok_and(|mut stream| {
            let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).is_ok_and(|_| answer.contains(" 200 "))
        }) {
            assert!(started.elapsed() < Duration::from_secs(10), "new work is still taken");
        }
        for _ in 0..20 {
            release.send(()).unwrap();
        }
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    for (status, answer) in answers {
        assert!(status.contains(" 200 ") && answer.contains("\"done\":true"), "{status} {answer}");
    }
    assert_eq!(server.wait(), Some(0));
}

/// A client that listens for changes, and an upstream that never answers, must not keep the process.
#[cfg(unix)]
#[test]
fn p38_an_open_stream_and_a_hung_upstream_delay_the_end_for_a_while_only() {
    let (asked, was_asked) = channel::<()>();
    let asked = Mutex::new(asked);
    let upstream = Upstream::raw(move |_, stream| {
        asked.lock().unwrap().send(()).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let spec = spec();
    let mut server = HttpServer::start(&[
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "--timeout",
        "50",
        "--confirm",
        "destructive",
    ]);
    let begin = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params":
        {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let head = |method: &str, more: &str| {
        format!(
            "{method} /mcp HTTP/1.1\r\nHost: {}\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\n{more}",
            server.address
        )
    };
    let answer = server.raw(&format!(
        "{}Connection: close\r\nContent-Length: {}\r\n\r\n{begin}",
        head("POST", ""),
        begin.to_string().len()
    ));
    let session = answer
        .lines()
        .find(|line| line.starts_with("mcp-session-id: "))
        .unwrap_or_else(|| panic!("{answer}"))
        .to_owned();
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.write_all(head("GET", &format!("{session}\r\n\r\n")).as_bytes()).unwrap();
    let mut first = [0; 15];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}"#;
    let mut calling = TcpStream::connect(&server.address).unwrap();
    calling
        .write_all((head("POST", &format!("{session}\r\nContent-Length: {}\r\n\r\n", call.len())) + call).as_bytes())
        .unwrap();
    was_asked.recv_timeout(Duration::from_secs(20)).unwrap();
    let started = Instant::now();
    signal(server.pid(), "TERM");
    let code = server.wait();
    assert!(started.elapsed() < Duration::from_secs(45), "{:?}", started.elapsed());
    assert!(matches!(code, Some(0 | 143)), "{code:?} {}", server.logs());
}

#[test]
fn an_answer_may_take_longer_than_the_end_of_stdin() {
    // Longer than the five seconds that rmcp gives calls after the end.
    let upstream = Upstream::start(Box::new(|_| {
        let (_never, wait) = channel::<()>();
        let _ = wait.recv_timeout(Duration::from_millis(5500));
        reply(200, &["Content-Type: application/json"], b"{\"done\":true}")
    }));
    let spec = spec();
    let mut session = Session::start(&["serve", "--spec", spec.path(), "--base-url", &upstream.url]);
    session.post("tools/call", &json!({"name": "slow", "arguments": {}}));
    session.close_stdin();
    assert_eq!(session.receive()["result"]["structuredContent"]["done"], true);
    assert_eq!(session.wait(), Some(0));
}

#[test]
fn messages_before_the_first_request_are_passed_over() {
    for first in [
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
        json!({"jsonrpc": "2.0", "id": 7, "result": {}}),
        json!([]),
    ] {
        let mut session = Session::start_after(&["serve", "--spec", &petstore(), "--mock"], &format!("{first}\n\n"));
        assert_eq!(session.call("get_pet", &json!({"petId": 7}))["isError"], false, "{first}");
    }
}

/// A server of documents that answers when it is told to.
fn slow_document() -> (Upstream, std::sync::mpsc::Sender<()>) {
    let (release, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let document = std::fs::read(petstore()).unwrap();
    let upstream = Upstream::start(Box::new(move |_| {
        let _ = wait.lock().unwrap().recv_timeout(Duration::from_secs(20));
        reply(200, &["Content-Type: application/yaml"], &document)
    }));
    (upstream, release)
}

#[test]
fn the_handshake_does_not_wait_for_a_slow_document() {
    let (upstream, release) = slow_document();
    let mut session = Session::start(&["serve", "--spec", &format!("{}/petstore.yaml", upstream.url), "--mock"]);
    let list = session.post("tools/list", &json!({}));
    release.send(()).unwrap();
    let answer = session.receive();
    assert_eq!(
        (answer["id"].as_u64(), answer["result"]["tools"].as_array().map(Vec::len)),
        (Some(list), Some(20))
    );
}

#[test]
fn what_waits_for_a_document_that_never_comes_is_told_so() {
    let (release, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let upstream = Upstream::start(Box::new(move |_| {
        let _ = wait.lock().unwrap().recv_timeout(Duration::from_secs(20));
        reply(500, &[], b"")
    }));
    let url = format!("{}/secret-place.yaml", upstream.url);
    let told = |answer: &serde_json::Value| {
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("could not be fetched") && !message.contains("secret"), "{answer}");
    };
    let mut session = Session::start(&["serve", "--spec", &url]);
    let asked = [
        session.post("tools/list", &json!({})),
        session.post("tools/call", &json!({"name": "x", "arguments": {}})),
    ];
    // It has been read when what was sent later is answered.
    session.request("ping", &json!({}));
    release.send(()).unwrap();
    let mut answered = [session.receive(), session.receive()].map(|answer| {
        told(&answer);
        answer["id"].as_u64().unwrap()
    });
    answered.sort_unstable();
    assert_eq!(answered, asked);
    assert_eq!(session.wait(), Some(3), "{}", session.logs());

    let mut server = HttpServer::start(&["--spec", &url]);
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let mut waiting = TcpStream::connect(&server.address).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json",
        server.address
    );
    write!(waiting, "{head}\r\nContent-Length: {}\r\n\r\n{list}", list.len()).unwrap();
    // The answer to a request that was sent later says that the first one was taken.
    server.post(&[], r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#);
    release.send(()).unwrap();
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).unwrap();
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    told(&serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}")));
    assert_eq!(server.wait(), Some(3), "{}", server.logs());
}

#[cfg(unix)]
#[test]
fn a_signal_ends_a_server_that_still_reads_its_document() {
    let (upstream, _release) = slow_document();
    let mut session = Session::start(&["serve", "--spec", &format!("{}/petstore.yaml", upstream.url), "--mock"]);
    signal(session.pid(), "TERM");
    assert_eq!(session.wait(), Some(0));
}

#[test]
fn a_document_from_a_url_may_redirect_within_its_origin_only() {
    let other = Upstream::echo();
    let elsewhere = format!("Location: {}/x.yaml", other.url);
    let document = std::fs::read(petstore()).unwrap();
    let upstream = Upstream::start(Box::new(move |request| match request.line.split(' ').nth(1) {
        Some("/moved.yaml") => reply(302, &["Location: /petstore.yaml"], b""),
        Some("/old") => reply(302, &["Location: /s/doc.yaml"], b""),
        Some("/s/doc.yaml") => reply(
            200,
            &[],
            b"openapi: 3.1.0\npaths: {/near: {$ref: 'near.yaml'}, /red: {$ref: 'red.yaml'}, /up: {$ref: '../up.yaml'}}",
        ),
        Some("/s/near.yaml") => reply(200, &[], b"get: {operationId: near}"),
        Some("/s/red.yaml") => reply(302, &["Location: /up.yaml"], b""),
        Some("/up.yaml") => reply(200, &[], b"get: {operationId: stolen}"),
        Some("/away.yaml") => reply(302, &[&elsewhere], b""),
        _ => reply(200, &[], &document),
    }));
    let tools = |path: &str| {
        crate::support::run(&[
            "tools",
            "--spec",
            &format!("{}/{path}", upstream.url),
            "--spec-header",
            "X-Key: s3cret",
        ])
    };
    assert!(crate::support::stdout(&tools("moved.yaml")).contains("20 tools"));
    // What it refers to is relative to where it was found, and a reference follows no redirect at all.
    let moved = crate::support::stdout(&tools("old"));
    assert!(moved.contains("near") && !moved.contains("stolen"), "{moved}");
    assert!(upstream.received().iter().all(|request| !request.line.contains("/up.yaml")));
    let away = tools("away.yaml");
    assert!(
        away.status.code() == Some(3) && crate::support::stderr(&away).contains("give that address"),
        "{}",
        crate::support::stderr(&away)
    );
    assert!(other.received().is_empty() && upstream.received().iter().all(|request| request.header("x-key") == Some("s3cret")));
}

#[cfg(unix)]
#[test]
fn a_second_signal_ends_at_once() {
    let (upstream, _release, asked) = held();
    let spec = spec();
    let mut session = Session::start(&["serve", "--spec", spec.path(), "--base-url", &upstream.url]);
    session.post("tools/call", &json!({"name": "slow", "arguments": {}}));
    asked.recv_timeout(Duration::from_secs(20)).unwrap();
    let started = Instant::now();
    signal(session.pid(), "TERM");
    // The first one is acted on before the second is sent.
    while !session.logs().contains("stopping") {
        std::thread::yield_now();
        assert!(started.elapsed() < Duration::from_secs(10), "{}", session.logs());
    }
    signal(session.pid(), "TERM");
    assert_eq!(session.wait(), Some(130));
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_slow_call_holds_up_no_other_and_ends_at_its_time_limit() {
    let (upstream, _release, asked) = held();
    let spec = spec();
    let mut session = Session::start(&["serve", "--spec", spec.path(), "--base-url", &upstream.url, "--timeout", "1.5"]);
    let started = Instant::now();
    let slow = session.post("tools/call", &json!({"name": "slow", "arguments": {}}));
    asked.recv_timeout(Duration::from_secs(20)).unwrap();
    for _ in 0..10 {
        assert_eq!(session.call("fast", &json!({}))["structuredContent"]["done"], true);
    }
    assert!(
        started.elapsed() < Duration::from_millis(1400),
        "healthy calls waited for the slow one"
    );
    let answer = session.receive();
    assert_eq!(answer["id"], slow);
    assert!(
        answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("did not answer within 1.5 s"),
        "{answer}"
    );
}

#[test]
fn a_cancelled_call_closes_its_request() {
    // A reply that never ends; the upstream sees whether its connection is closed.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (events, seen) = channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = [0; 4096];
        let _ = stream.read(&mut buffer);
        events.send("asked").unwrap();
        while stream.read(&mut buffer).is_ok_and(|count| count > 0) {}
        events.send("closed").unwrap();
    });
    let spec = spec();
    let mut session = Session::start(&["serve", "--spec", spec.path(), "--base-url", &url]);
    let id = session.post("tools/call", &json!({"name": "slow", "arguments": {}}));
    assert_eq!(seen.recv_timeout(Duration::from_secs(20)).unwrap(), "asked");
    session.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    assert_eq!(seen.recv_timeout(Duration::from_secs(5)).unwrap(), "closed");
    assert!(session.request("ping", &json!({}))["result"].is_object());
}

#[test]
fn a_thousand_calls_at_once_each_get_their_own_answer() {
    let upstream = Upstream::start(Box::new(|request| {
        let path = request.line.split(' ').nth(1).unwrap().to_owned();
        reply(
            200,
            &["Content-Type: application/json"],
            format!("{{\"path\":\"{path}\"}}").as_bytes(),
        )
    }));
    let spec = SpecFile::with_paths(
        &json!({"/items/{id}": {"get": {"operationId": "get", "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}]}}}),
    );
    let mut session = Session::start(&["serve", "--spec", spec.path(), "--base-url", &upstream.url]);
    let sent: std::collections::HashMap<u64, u64> = (0..1000)
        .map(|number| {
            (
                session.post("tools/call", &json!({"name": "get", "arguments": {"id": number}})),
                number,
            )
        })
        .collect();
    for _ in 0..1000 {
        let answer = session.receive();
        let number = sent[&answer["id"].as_u64().unwrap()];
        assert_eq!(answer["result"]["structuredContent"]["path"], format!("/items/{number}"));
    }
}

#[test]
fn malformed_lines_leave_the_session_usable() {
    let mut session = Session::start(&["serve", "--spec", &petstore(), "--mock"]);
    for line in [
        "",
        "{",
        "[]",
        "null",
        "42",
        "\"x\"",
        "{\"jsonrpc\":\"2.0\"}",
        "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}",
        "\u{0}",
        "{\"id\":{}}",
        "not json at all",
    ] {
        session.send_text(line);
    }
    assert_eq!(
        session.call("get_pet", &json!({"petId": 7}))["structuredContent"]["name"],
        "Biscuit"
    );
}
