//! A hostile or broken client over stdio: lines that are not messages, lines without end, and a
//! reader that sleeps or is gone.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{
    RawSession, Session, SpecFile, Upstream, listener, petstore, reply, soak, wait, wait_until,
    within,
};

fn is_well(server: &mut RawSession, id: u64) {
    server.send_request(
        id,
        "tools/call",
        &json!({"name": "get_pet", "arguments": {"petId": 7}}),
    );
    let answer = server.answer(&json!(id));
    assert_eq!(
        answer["result"]["structuredContent"]["name"], "Biscuit",
        "{answer}"
    );
}

/// Lines that are not messages, and the code of the answer; 0 if there must be none.
fn malformed() -> Vec<(Vec<u8>, i64)> {
    let mut lines: Vec<(Vec<u8>, i64)> = Vec::new();
    let mut add = |code: i64, texts: &[&str]| {
        lines.extend(texts.iter().map(|text| (text.as_bytes().to_vec(), code)));
    };
    add(0, &["", " ", "\t", "\r", "\u{feff}"]);
    add(
        -32700,
        &[
            "{",
            "}",
            "[",
            "]",
            "\"",
            "{]",
            "not json at all",
            "nul",
            "True",
            "undefined",
            "NaN",
            "-",
            "01",
            "1e",
            "{'a':1}",
            "{\"a\":1,}",
            "{\"a\"}",
            "{a:1}",
            "{} {}",
            "[1,]",
            "\u{0}",
            "\u{1}\u{2}",
            "\u{feff}{",
            "// comment",
            "<xml/>",
            "Content-Length: 10",
            "{\"a\":\"\u{1}\"}",
            "\"\\ud800",
            "\"\\x\"",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"",
        ],
    );
    add(
        -32600,
        &[
            "null",
            "true",
            "42",
            "-1.5e3",
            "\"x\"",
            "[]",
            "[1]",
            "[[]]",
            "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]",
            "{}",
            "{\"jsonrpc\":\"2.0\"}",
            "{\"id\":1}",
            "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}",
            "{\"jsonrpc\":2,\"id\":1,\"method\":\"ping\"}",
            "{\"id\":1,\"method\":\"ping\"}",
            "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
            "{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"ping\"}",
            "{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"ping\"}",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":null}",
        ],
    );
    add(
        0,
        &[
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":7}",
            "{\"jsonrpc\":\"2.0\",\"method\":\"$/lsp\"}",
        ],
    );
    lines.push((b"\xff\xfe{\x00}\x00".to_vec(), -32700));
    lines.push((b"\"\xc3\x28\"".to_vec(), -32700));
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let text = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        lines.push((text.into_bytes(), -32600));
    }
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":"deep","method":"tools/call","params":{{"name":"list_pets","arguments":{{"a":{}1{}}}}}}}"#,
        "[".repeat(500),
        "]".repeat(500)
    );
    lines.push((deep.into_bytes(), -32600));
    lines
}

#[test]
fn p22_every_malformed_line_is_answered_as_json_rpc_asks_and_harms_nothing() {
    let lines = malformed();
    assert!(lines.len() >= 61, "{}", lines.len());
    let mut server = RawSession::start(&["serve", "--spec", &petstore(), "--mock"]);
    server.initialize();
    for (number, (line, code)) in lines.iter().enumerate() {
        let shown = String::from_utf8_lossy(line.get(..100).unwrap_or(line)).into_owned();
        server.send(line);
        if *code != 0 {
            let answer = server.receive();
            assert_eq!(answer["error"]["code"], *code, "{shown}: {answer}");
        }
        // Nothing else was answered, and the next request is.
        let id = 1000 + number as u64;
        server.send_request(id, "ping", &json!({}));
        let answer = server.receive();
        assert_eq!(answer["id"], id, "{shown}: {answer}");
    }
    is_well(&mut server, 1);
}

#[test]
fn p22_an_odd_first_message_does_not_end_the_server() {
    let before: Vec<(Vec<u8>, i64)> = malformed();
    let odd = [
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,\"message\":\"x\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"no/such/method\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":7}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"get_pet\"}}",
    ];
    for line in odd
        .iter()
        .map(|line| line.as_bytes())
        .chain([3, 20, 40].iter().map(|index| before[*index].0.as_slice()))
    {
        let mut server = RawSession::start(&["serve", "--spec", &petstore(), "--mock"]);
        server.send(line);
        server.initialize();
        is_well(&mut server, 2);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn p22_lines_without_end_take_bounded_memory() {
    use crate::support::memory;

    let mut server = RawSession::start(&["serve", "--spec", &petstore(), "--mock"]);
    server.initialize();
    let before = memory(server.pid());
    let piece = vec![b'x'; 1 << 20];
    // A request of 64 MB, whose id is not looked for.
    {
        let stdin = server.stdin.as_mut().unwrap();
        stdin
            .write_all(
                br#"{"method":"tools/call","params":{"name":"get_pet","arguments":{"petId":""#,
            )
            .unwrap();
        for _ in 0..64 {
            stdin.write_all(&piece).unwrap();
        }
        stdin
            .write_all(b"\"}},\"jsonrpc\":\"2.0\",\"id\":64}\n")
            .unwrap();
    }
    let answer = server.receive();
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(null), &json!(-32600)),
        "{answer}"
    );
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("16 MiB"),
        "{answer}"
    );
    is_well(&mut server, 1);
    // What is allowed is served: 8 MB.
    {
        let stdin = server.stdin.as_mut().unwrap();
        stdin
            .write_all(br#"{"jsonrpc":"2.0","id":8,"method":"ping","params":{"x":""#)
            .unwrap();
        for _ in 0..8 {
            stdin.write_all(&piece).unwrap();
        }
        stdin.write_all(b"\"}}\n").unwrap();
    }
    assert!(server.answer(&json!(8))["result"].is_object());
    let mut most = memory(server.pid());
    for _ in 0..300 {
        server.stdin.as_mut().unwrap().write_all(&piece).unwrap();
        most = most.max(memory(server.pid()));
    }
    assert!(most.saturating_sub(before) < 256, "{} MiB", most - before);
    server.send(b"");
    assert_eq!(server.receive()["error"]["code"], -32600);
    is_well(&mut server, 2);
}

#[test]
fn p23_answers_outlive_a_reader_that_sleeps() {
    let body = json!({"text": "x".repeat(100_000)}).to_string();
    let upstream = Upstream::start(Box::new(move |_| {
        reply(200, &["Content-Type: application/json"], body.as_bytes())
    }));
    let spec = SpecFile::with_paths(&json!({"/a": {"get": {"operationId": "get"}}}));
    let mut server = RawSession::start(&[
        "serve",
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "--max-result-tokens",
        "0",
    ]);
    server.initialize();
    let calls = if soak() { 400 } else { 100 };
    for id in 0..calls as u64 {
        server.send_request(id, "tools/call", &json!({"name": "get", "arguments": {}}));
    }
    // Nothing is read until all requests have reached the API, and then for as long as the promise
    // says.
    wait_until("the requests do not reach the API", || {
        upstream.received().len() == calls
    });
    if soak() {
        let until = Instant::now() + Duration::from_secs(5);
        while Instant::now() < until {
            std::thread::park_timeout(until.saturating_duration_since(Instant::now()));
        }
    }
    let mut seen = std::collections::HashSet::new();
    for _ in 0..calls {
        let answer = server.receive();
        assert_eq!(
            answer["result"]["structuredContent"]["text"]
                .as_str()
                .map(str::len),
            Some(100_000)
        );
        assert!(seen.insert(answer["id"].as_u64().unwrap()));
    }
}

#[test]
fn p39_a_reader_that_is_gone_ends_the_process() {
    let spec = petstore();
    // While nothing is said, while something is said, and while a call is in flight.
    for say in [None, Some(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#)] {
        let mut server = RawSession::start(&["serve", "--spec", &spec, "--mock"]);
        server.initialize();
        is_well(&mut server, 1);
        server.stdout = None;
        let started = Instant::now();
        if let Some(line) = say {
            let _ = server
                .stdin
                .as_mut()
                .unwrap()
                .write_all(format!("{line}\n").as_bytes());
        }
        assert_eq!(wait(&mut server.child), Some(0), "{say:?}");
        assert!(
            started.elapsed() < within(5),
            "{say:?}: {:?}",
            started.elapsed()
        );
    }
    let (silent, url) = listener();
    let mut server = RawSession::start(&["serve", "--spec", &spec, "--base-url", &url]);
    server.initialize();
    server.send(br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_pets","arguments":{}}}"#);
    let (mut connection, _) = silent.accept().unwrap();
    server.stdout = None;
    let started = Instant::now();
    assert_eq!(wait(&mut server.child), Some(0));
    assert!(started.elapsed() < within(5), "{:?}", started.elapsed());
    // The request upstream ended with it.
    let mut rest = Vec::new();
    let _ = connection.read_to_end(&mut rest);
}

#[test]
fn p22_a_client_that_reads_no_answers_is_not_read_without_limit() {
    let mut server = RawSession::start(&["serve", "--spec", &petstore(), "--mock"]);
    server.initialize();
    // Lines that are refused: the answer to one is taken before the next one is read.
    let mut stdin = server.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        for _ in 0..20_000 {
            if stdin.write_all(b"x\n").is_err() {
                return None;
            }
        }
        Some(stdin)
    });
    for _ in 0..20_000 {
        assert_eq!(server.receive()["error"]["code"], -32700);
    }
    server.stdin = writer.join().unwrap();
    is_well(&mut server, 1);
}

#[test]
fn p39_the_last_line_needs_no_end() {
    let mut session = Session::start(&["serve", "--spec", &petstore(), "--mock"]);
    session.send_text(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    assert_eq!(session.receive()["id"], 1);
    let mut server = RawSession::start(&["serve", "--spec", &petstore(), "--mock"]);
    server.initialize();
    let stdin = server.stdin.as_mut().unwrap();
    stdin
        .write_all(br#"{"jsonrpc":"2.0","id":"last","method":"ping"}"#)
        .unwrap();
    server.stdin = None;
    assert!(server.answer(&json!("last"))["result"].is_object());
    assert_eq!(wait(&mut server.child), Some(0));
}
