//! The end of the server, and calls at the same time.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::http_server::http_request;
use crate::support::{
    HttpServer, Session, SpecFile, TIMEOUT, Upstream, call_message, petstore, reply, signal, text,
    wait_until, within,
};

fn spec() -> SpecFile {
    SpecFile::with_paths(
        &json!({"/fast": {"get": {"operationId": "fast"}}, "/slow": {"get": {"operationId": "slow"}}}),
    )
}

/// An upstream whose `/slow` answers on demand, and reports when it was asked.
fn held() -> (
    Upstream,
    std::sync::mpsc::Sender<()>,
    std::sync::mpsc::Receiver<()>,
) {
    let (release, wait) = channel::<()>();
    let (asked, was_asked) = channel::<()>();
    let (wait, asked) = (Arc::new(Mutex::new(wait)), Arc::new(Mutex::new(asked)));
    let upstream = Upstream::start(Box::new(move |request| {
        if request.line.contains("/slow") {
            let _ = asked.lock().unwrap().send(());
            let _ = wait.lock().unwrap().recv_timeout(TIMEOUT);
        }
        reply(200, &["Content-Type: application/json"], b"{\"done\":true}")
    }));
    (upstream, release, was_asked)
}

#[test]
fn p39_the_end_of_stdin_ends_an_idle_server() {
    let mut session = Session::start(&["serve", "--spec", &petstore(), "--mock"]);
    let started = Instant::now();
    session.close_stdin();
    assert_eq!(session.wait(), Some(0));
    assert!(started.elapsed() < within(5));
}

#[test]
fn p39_the_end_of_stdin_answers_what_is_in_flight() {
    let (upstream, release, asked) = held();
    let spec = spec();
    let mut session = Session::serving(&spec, &upstream, &[]);
    session.post(
        "tools/call",
        &json!({"name": "slow", "arguments": {}, "_meta": {"progressToken": 1}}),
    );
    asked.recv_timeout(TIMEOUT).unwrap();
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
fn p38_a_signal_answers_what_is_in_flight_on_both_transports() {
    let (upstream, release, asked) = held();
    let spec = spec();
    let mut session = Session::serving(&spec, &upstream, &[]);
    session.post("tools/call", &json!({"name": "slow", "arguments": {}}));
    asked.recv_timeout(TIMEOUT).unwrap();
    signal(session.pid(), "TERM");
    session.logged("stopping");
    release.send(()).unwrap();
    assert_eq!(
        session.receive()["result"]["structuredContent"]["done"],
        true
    );
    assert_eq!(session.wait(), Some(0));

    let mut server = HttpServer::start(&["--spec", spec.path(), "--base-url", &upstream.url]);
    let pid = server.pid();
    let answer = std::thread::scope(|scope| {
        let call = scope.spawn(|| {
            server.post(
                &["MCP-Protocol-Version: 2025-11-25"],
                &call_message("slow", "{}"),
            )
        });
        asked.recv_timeout(TIMEOUT).unwrap();
        signal(pid, "INT");
        server.logged("stopping");
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
    let call = &call_message("slow", "{}");
    let answers: Vec<(String, String)> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..20)
            .map(|_| scope.spawn(|| server.post(&["MCP-Protocol-Version: 2025-11-25"], call)))
            .collect();
        for _ in 0..20 {
            asked.recv_timeout(TIMEOUT).unwrap();
        }
        signal(pid, "TERM");
        server.logged("stopping");
        wait_until("new work is still taken", || {
            !TcpStream::connect(&address).is_ok_and(|mut stream| {
                let _ = stream.write_all(
                    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
                );
                let mut answer = String::new();
                stream
                    .read_to_string(&mut answer)
                    .is_ok_and(|_| answer.contains(" 200 "))
            })
        });
        for _ in 0..20 {
            release.send(()).unwrap();
        }
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    for (status, answer) in answers {
        assert!(
            status.contains(" 200 ") && answer.contains("\"done\":true"),
            "{status} {answer}"
        );
    }
    assert_eq!(server.wait(), Some(0));
}

/// A client that listens for changes, and an upstream that never answers, must not keep the
/// process.
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
    let session = server.begin_session(&[]);
    let mut stream = server.connect();
    let listening = http_request(&server.address, "GET", &[&session], "");
    stream.write_all(listening.as_bytes()).unwrap();
    let mut first = [0; 15];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    let mut calling = server.connect();
    let call = http_request(
        &server.address,
        "POST",
        &[&session],
        &call_message("slow", "{}"),
    );
    calling.write_all(call.as_bytes()).unwrap();
    was_asked.recv_timeout(TIMEOUT).unwrap();
    let started = Instant::now();
    signal(server.pid(), "TERM");
    let code = server.wait();
    assert!(
        started.elapsed() < Duration::from_secs(45),
        "{:?}",
        started.elapsed()
    );
    assert!(matches!(code, Some(0 | 143)), "{code:?} {}", server.logs());
}

#[test]
fn p39_an_answer_may_take_longer_than_the_end_of_stdin() {
    // Longer than the five seconds that rmcp gives calls after the end.
    let upstream = Upstream::start(Box::new(|_| {
        let (_never, wait) = channel::<()>();
        let _ = wait.recv_timeout(Duration::from_millis(5500));
        reply(200, &["Content-Type: application/json"], b"{\"done\":true}")
    }));
    let spec = spec();
    let mut session = Session::serving(&spec, &upstream, &[]);
    session.post("tools/call", &json!({"name": "slow", "arguments": {}}));
    session.close_stdin();
    assert_eq!(
        session.receive()["result"]["structuredContent"]["done"],
        true
    );
    assert_eq!(session.wait(), Some(0));
}

#[test]
fn p22_messages_before_the_first_request_are_passed_over() {
    for first in [
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
        json!({"jsonrpc": "2.0", "id": 7, "result": {}}),
        json!([]),
    ] {
        let mut session = Session::start_after(
            &["serve", "--spec", &petstore(), "--mock"],
            &format!("{first}\n\n"),
        );
        assert_eq!(
            session.call("get_pet", &json!({"petId": 7}))["isError"],
            false,
            "{first}"
        );
    }
}

#[cfg(unix)]
#[test]
fn p38_a_second_signal_ends_at_once() {
    let (upstream, _release, asked) = held();
    let spec = spec();
    let mut session = Session::serving(&spec, &upstream, &[]);
    session.post("tools/call", &json!({"name": "slow", "arguments": {}}));
    asked.recv_timeout(TIMEOUT).unwrap();
    let started = Instant::now();
    signal(session.pid(), "TERM");
    // The first one is acted on before the second is sent.
    session.logged("stopping");
    signal(session.pid(), "TERM");
    assert_eq!(session.wait(), Some(130));
    assert!(started.elapsed() < within(5));
}

#[test]
fn p10_p23_a_slow_call_holds_up_no_other_and_ends_at_its_time_limit() {
    let (upstream, release, asked) = held();
    let spec = spec();
    let mut session = Session::serving(&spec, &upstream, &[]);
    let slow = session.post("tools/call", &json!({"name": "slow", "arguments": {}}));
    asked.recv_timeout(TIMEOUT).unwrap();
    for _ in 0..10 {
        let fast = session.post("tools/call", &json!({"name": "fast", "arguments": {}}));
        let answer = session.receive();
        assert_eq!(
            (
                &answer["id"],
                &answer["result"]["structuredContent"]["done"]
            ),
            (&json!(fast), &json!(true))
        );
    }
    release.send(()).unwrap();
    assert_eq!(session.receive()["id"], slow);

    let mut limited = Session::serving(&spec, &upstream, &["--timeout", "1"]);
    let late = limited.call("slow", &json!({}));
    assert!(text(&late).contains("did not answer within 1 s"), "{late}");
}

#[test]
fn p24_a_cancelled_call_closes_its_request() {
    // A reply that never ends; the upstream sees whether its connection is closed.
    let (events, seen) = channel();
    let events = Mutex::new(events);
    let upstream = Upstream::raw(move |_, stream| {
        events.lock().unwrap().send("asked").unwrap();
        while stream.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {}
        events.lock().unwrap().send("closed").unwrap();
    });
    let spec = spec();
    let mut session = Session::serving(&spec, &upstream, &[]);
    let id = session.post("tools/call", &json!({"name": "slow", "arguments": {}}));
    assert_eq!(seen.recv_timeout(TIMEOUT).unwrap(), "asked");
    session.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    assert_eq!(seen.recv_timeout(TIMEOUT).unwrap(), "closed");
    assert!(session.request("ping", &json!({}))["result"].is_object());
}

#[test]
fn a_second_request_with_an_id_that_is_in_use_is_refused() {
    let (go, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let upstream = Upstream::start(Box::new(move |_| {
        wait.lock().unwrap().recv().unwrap();
        reply(204, &[], b"")
    }));
    let spec = spec();
    let mut session = Session::serving(&spec, &upstream, &[]);
    let id = session.post("tools/call", &json!({"name": "slow", "arguments": {}}));
    session.send(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
    let refused = session.receive();
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&json!(id), &json!(-32600)),
        "{refused}"
    );
    go.send(()).unwrap();
    let answered = session.receive();
    assert_eq!(
        (&answered["id"], &answered["result"]["isError"]),
        (&json!(id), &json!(false)),
        "{answered}"
    );
    session.send(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
    assert!(session.receive()["result"].is_object());
}

#[test]
fn p23_a_thousand_calls_at_once_each_get_their_own_answer() {
    let upstream = Upstream::start(Box::new(|request| {
        let body = json!({"path": request.path()}).to_string();
        reply(200, &["Content-Type: application/json"], body.as_bytes())
    }));
    let spec = SpecFile::with_paths(
        &json!({"/items/{id}": {"get": {"operationId": "get", "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}]}}}),
    );
    let mut session = Session::serving(&spec, &upstream, &[]);
    let sent: std::collections::HashMap<u64, u64> = (0..1000)
        .map(|number| {
            (
                session.post(
                    "tools/call",
                    &json!({"name": "get", "arguments": {"id": number}}),
                ),
                number,
            )
        })
        .collect();
    for _ in 0..1000 {
        let answer = session.receive();
        let number = sent[&answer["id"].as_u64().unwrap()];
        assert_eq!(
            answer["result"]["structuredContent"]["path"],
            format!("/items/{number}")
        );
    }
}

/// The question is answered and standard input ends at once: the call that waited for it is made
/// all the same.
#[test]
fn an_answered_question_before_the_end_of_standard_input_makes_its_call() {
    let upstream = Upstream::start(Box::new(|_| reply(204, &[], b"")));
    let spec = SpecFile::with_paths(&json!({"/old": {"delete": {"operationId": "tidy"}}}));
    for round in 0..6 {
        let args = [
            "serve",
            "--spec",
            spec.path(),
            "--base-url",
            &upstream.url,
            "--confirm",
            "destructive",
        ];
        let mut session = Session::start_able(&args, &json!({"elicitation": {}}));
        let id = session.post("tools/call", &json!({"name": "tidy", "arguments": {}}));
        let question = session.receive();
        assert_eq!(question["method"], "elicitation/create", "{question}");
        session.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {}}}));
        session.close_stdin();
        let answer = session.receive();
        assert_eq!(
            (&answer["id"], &answer["result"]["isError"]),
            (&id.into(), &false.into()),
            "{round}: {answer}"
        );
        assert_eq!(session.wait(), Some(0));
    }
    assert_eq!(upstream.take_all().len(), 6);
}

#[test]
fn a_subscription_over_stdio_ends_with_a_result() {
    let spec = SpecFile::with_paths(&json!({"/a": {"get": {"operationId": "a"}}}));
    let mut session = Session::start(&[
        "serve",
        "--spec",
        spec.path(),
        "--base-url",
        "http://127.0.0.1:1",
        "--reload",
        "60",
    ]);
    let meta = crate::support::stateless_meta(&json!({}));
    let id = session.post(
        "subscriptions/listen",
        &json!({"notifications": {"toolsListChanged": true}, "_meta": meta}),
    );
    assert_eq!(
        session.receive()["method"],
        "notifications/subscriptions/acknowledged"
    );
    session.close_stdin();
    assert_eq!(session.receive()["id"], id);
    assert_eq!(session.wait(), Some(0));
}
