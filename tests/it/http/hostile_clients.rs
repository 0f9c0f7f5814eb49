//! Clients over HTTP that mean no good: slow ones, huge ones, ambiguous ones, and those who use the sessions of others. `SOAK=1`
//! (`just soak`) waits as long as the promises say.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{HttpServer, PATIENCE, SpecFile, Upstream, petstore, reply, soak};

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_pets","arguments":{}}}"#;
const HIDDEN: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"delete_pet","arguments":{"petId":7}}}"#;

fn connect(server: &HttpServer) -> TcpStream {
    let stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(2 * PATIENCE)).unwrap();
    stream
}

/// Whole requests of a list, which is never read.
fn lists(address: &str) -> String {
    const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let one = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{LIST}",
        LIST.len()
    );
    // More than kernels hold of the answers on either side.
    one.repeat(2_000)
}

#[test]
fn slow_clients_disturb_nobody_and_are_dropped() {
    let server = HttpServer::start(&["--spec", &petstore(), "--mock"]);
    let host = &server.address;
    let kinds: Vec<String> = vec![
        String::new(),
        "P".into(),
        "PRI * HTTP/2.0\r\n\r\nSM".into(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(),
        "POST /mcp HT".into(),
        format!("POST /mcp HTTP/1.1\r\nHost: {host}\r\nX-Slow: "),
        format!("POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{{"),
        format!("POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{{"),
        lists(host),
    ];
    let each = if soak() { 50 } else { 20 };
    let mut slow: Vec<(usize, TcpStream)> = Vec::new();
    for _ in 0..each {
        for (kind, text) in kinds.iter().enumerate() {
            let mut stream = connect(&server);
            // What is not taken stays in our buffers, never in the way of this test.
            stream.set_nonblocking(true).unwrap();
            let _ = stream.write(text.as_bytes());
            slow.push((kind, stream));
        }
    }
    let began = Instant::now();
    for _ in 0..20 {
        let started = Instant::now();
        let (status, _) = server.post(&[], CALL);
        assert!(status.contains(" 200 "), "{status}");
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    }
    if !soak() {
        return;
    }
    for (kind, stream) in slow.iter_mut().filter(|(kind, _)| *kind != 8) {
        stream.set_nonblocking(false).unwrap();
        let mut buffer = [0; 4096];
        while stream.read(&mut buffer).is_ok_and(|count| count > 0) {}
        assert!(
            began.elapsed() < Duration::from_secs(65),
            "kind {kind} is still there after {:?}",
            began.elapsed()
        );
    }
    // Those who do not read see it when they look: what is left of their answers ends. They look when their time is over.
    let over = began + Duration::from_secs(65);
    while Instant::now() < over {
        std::thread::park_timeout(over.saturating_duration_since(Instant::now()));
    }
    for (_, stream) in slow.iter_mut().filter(|(kind, _)| *kind == 8) {
        stream.set_nonblocking(false).unwrap();
        let mut buffer = vec![0; 1 << 20];
        let mut total = 0_usize;
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            total += count;
        }
        assert!(total < 24 << 20, "{total} bytes came although nobody read them for a minute");
    }
}

/// A frame of HTTP/2 (RFC 9113 section 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// HTTP/2 has a small talk of its own: who answers pings and asks for nothing, or takes nothing of an answer, is slow as well.
#[test]
fn clients_of_http_2_that_only_answer_pings_are_dropped() {
    if !soak() {
        return;
    }
    let server = HttpServer::start(&["--spec", &petstore(), "--mock", "--max-connections", "8"]);
    // No room for answers at all (SETTINGS_INITIAL_WINDOW_SIZE), and a list that is asked for: HPACK without tables.
    let text = |name: &str, value: &str| {
        let length = |text: &str| u8::try_from(text.len()).unwrap();
        [&[0, length(name)], name.as_bytes(), &[length(value)], value.as_bytes()].concat()
    };
    let headers: Vec<u8> = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/healthz"),
        (":authority", server.address.as_str()),
    ]
    .iter()
    .flat_map(|(name, value)| text(name, value))
    .collect();
    let asked = [frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]), frame(1, 5, 1, &headers)].concat();
    let began = Instant::now();
    std::thread::scope(|scope| {
        for opening in [frame(4, 0, 0, &[]), asked] {
            for _ in 0..4 {
                let (mut stream, opening) = (connect(&server), opening.clone());
                scope.spawn(move || {
                    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
                    stream.write_all(&opening).unwrap();
                    let mut head = [0; 9];
                    while stream.read_exact(&mut head).is_ok() {
                        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
                        let mut payload = vec![0; length];
                        if stream.read_exact(&mut payload).is_err() {
                            break;
                        }
                        let answer = match (head[3], head[4] & 1) {
                            (6, 0) => frame(6, 1, 0, &payload),
                            (4, 0) => frame(4, 1, 0, &[]),
                            _ => continue,
                        };
                        if stream.write_all(&answer).is_err() {
                            break;
                        }
                    }
                    assert!(began.elapsed() < Duration::from_secs(65), "still there after {:?}", began.elapsed());
                });
            }
        }
    });
    assert!(server.post(&[], CALL).0.contains(" 200 "));
}

#[cfg(target_os = "linux")]
#[test]
fn huge_bodies_are_refused_early() {
    use crate::support::memory;

    let server = HttpServer::start(&["--spec", &petstore(), "--mock"]);
    let (before, address) = (memory(server.pid()), &server.address);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let mut stream = connect(&server);
            scope.spawn(move || {
                let framing = if number % 2 == 0 {
                    "Content-Length: 200000000"
                } else {
                    "Transfer-Encoding: chunked"
                };
                let head = format!("POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n{framing}\r\n\r\n");
                stream.write_all(head.as_bytes()).unwrap();
                let mut chunk = format!("{:x}\r\n", 1 << 20).into_bytes();
                if number % 2 == 0 {
                    chunk.clear();
                }
                chunk.resize(chunk.len() + (1 << 20), b' ');
                chunk.extend_from_slice(b"\r\n");
                let mut sent = 0_usize;
                while sent < 200 && stream.write_all(&chunk).is_ok() {
                    sent += 1;
                }
                assert!(sent < 100, "{sent} MB of a body that is too large were taken");
                let mut answer = Vec::new();
                let _ = stream.read_to_end(&mut answer);
                let answer = String::from_utf8_lossy(&answer);
                // The connection may be reset before the answer is read.
                assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 413 "), "{answer}");
            });
        }
    });
    let grown = memory(server.pid()).saturating_sub(before);
    assert!(grown < 64, "{grown} MiB");
    assert!(server.post(&[], CALL).0.contains(" 200 "));
}

/// A proxy before us may see one request where we would see two; the second must never run.
#[test]
fn ambiguous_framing_never_runs_a_hidden_call() {
    let upstream = Upstream::echo();
    let server = HttpServer::start(&["--spec", &petstore(), "--base-url", &upstream.url]);
    let host = &server.address;
    let hidden = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{HIDDEN}",
        HIDDEN.len()
    );
    let start =
        format!("POST /mcp HTTP/1.1\r\nHost: {host}\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\n");
    let all = hidden.len() + 5;
    for (what, request) in [
        (
            "both, chunked ends first",
            format!("{start}Content-Length: {all}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"),
        ),
        (
            "both, the other way round",
            format!("{start}Transfer-Encoding: chunked\r\nContent-Length: {all}\r\n\r\n0\r\n\r\n{hidden}"),
        ),
        (
            "both, the length ends first",
            format!(
                "{start}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{hidden}\r\n0\r\n\r\n",
                hidden.len()
            ),
        ),
        (
            "two lengths",
            format!("{start}Content-Length: 0\r\nContent-Length: {}\r\n\r\n{hidden}", hidden.len()),
        ),
        (
            "a list of lengths",
            format!("{start}Content-Length: 0, {}\r\n\r\n{hidden}", hidden.len()),
        ),
        ("a length with a sign", format!("{start}Content-Length: +0\r\n\r\n{hidden}")),
        (
            "an unknown coding",
            format!("{start}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{hidden}"),
        ),
        (
            "chunked that is not last",
            format!("{start}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n{hidden}"),
        ),
        (
            "chunked twice",
            format!("{start}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"),
        ),
        (
            "a blank before the colon",
            format!("{start}Transfer-Encoding : chunked\r\nContent-Length: {all}\r\n\r\n0\r\n\r\n{hidden}"),
        ),
        (
            "a folded line",
            format!("{start}X: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"),
        ),
        (
            "chunked in HTTP/1.0",
            format!(
                "{}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}",
                start.replace("HTTP/1.1", "HTTP/1.0")
            ),
        ),
        (
            "a chunk with a huge length",
            format!("{start}Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n\r\n{hidden}"),
        ),
        (
            "a body with GET",
            format!(
                "{}Content-Length: {all}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}",
                start.replace("POST", "GET")
            ),
        ),
        (
            "a body that is refused",
            format!(
                "{}Content-Length: {}\r\n\r\n{hidden}",
                start
                    .replace(host.as_str(), "evil.example")
                    .replace("Accept:", "Connection: close\r\nAccept:"),
                hidden.len()
            ),
        ),
    ] {
        let mut stream = connect(&server);
        // Not closed on our side: hyper gives up a call whose client has left.
        let started = Instant::now();
        let _ = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        assert!(upstream.received().is_empty(), "{what}: the hidden call ran: {answer}");
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "{what}: the connection stays open: {answer}"
        );
    }
    assert!(server.post(&[], CALL).0.contains(" 200 "), "the server is well");
}

fn initialize() -> String {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string()
}

/// Sends a message with headers, and gives status, session and the first event or body.
fn send(server: &HttpServer, method: &str, headers: &[String], body: &str) -> (u16, Option<String>, String) {
    let mut stream = connect(server);
    let mut lines = vec![
        format!("{method} /mcp HTTP/1.1"),
        format!("Host: {}", server.address),
        "Accept: application/json, text/event-stream".into(),
        "Content-Type: application/json".into(),
        "Connection: close".into(),
        format!("Content-Length: {}", body.len()),
    ];
    lines.extend_from_slice(headers);
    stream
        .write_all(format!("{}\r\n\r\n{body}", lines.join("\r\n")).as_bytes())
        .unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).unwrap_or_else(|| panic!("{answer}")).parse().unwrap();
    let session = answer
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "))
        .map(str::to_owned);
    (status, session, answer)
}

fn begin(server: &HttpServer, headers: &[String]) -> String {
    let (status, session, answer) = send(server, "POST", headers, &initialize());
    assert_eq!(status, 200, "{answer}");
    let session = session.unwrap_or_else(|| panic!("{answer}"));
    let mut headers = headers.to_vec();
    headers.push(format!("Mcp-Session-Id: {session}"));
    let (status, _, answer) = send(
        server,
        "POST",
        &headers,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    );
    assert_eq!(status, 202, "{answer}");
    session
}

#[test]
fn sessions_are_random_and_forged_or_ended_ones_are_dead() {
    let server = HttpServer::start(&["--spec", &petstore(), "--mock", "--confirm", "destructive"]);
    let sessions: Vec<String> = (0..20).map(|_| begin(&server, &[])).collect();
    let distinct: std::collections::HashSet<&String> = sessions.iter().collect();
    assert_eq!(distinct.len(), 20);
    for session in &sessions {
        // A UUID of version 4: 122 random bits.
        assert!(session.len() == 36 && session.as_bytes()[14] == b'4', "{session}");
    }
    let status = |method: &str, session: &str| send(&server, method, &[format!("Mcp-Session-Id: {session}")], CALL).0;
    assert_eq!(status("POST", &sessions[0]), 200);
    let mut altered = sessions[0].clone();
    let last = if altered.pop() == Some('0') { '1' } else { '0' };
    altered.push(last);
    let long = "x".repeat(5000);
    for forged in [
        "",
        "1",
        "00000000-0000-4000-8000-000000000000",
        &altered,
        &sessions[0].to_uppercase(),
        "../../x",
        &long,
    ] {
        let got = status("POST", forged);
        assert!((400..500).contains(&got), "{forged}: {got}");
    }
    assert!((200..300).contains(&status("DELETE", &sessions[0])));
    assert_eq!(status("POST", &sessions[0]), 404, "it was ended");
    assert_eq!(status("POST", &sessions[1]), 200, "that was not");
    let two = [
        format!("Mcp-Session-Id: {}", sessions[1]),
        format!("Mcp-Session-Id: {}", sessions[2]),
    ];
    assert_eq!(send(&server, "POST", &two, CALL).0, 400);
}

#[test]
fn a_session_belongs_to_the_client_that_began_it() {
    let tokens = ("ONE", "token-of-the-first-client", "TWO", "token-of-the-second-client");
    let args = [
        "--spec",
        &petstore(),
        "--mock",
        "--confirm",
        "destructive",
        "--auth-token-env",
        "ONE,TWO",
    ];
    let server = HttpServer::start_with(&args, &[(tokens.0, tokens.1), (tokens.2, tokens.3)]);
    let (one, two) = (
        format!("Authorization: Bearer {}", tokens.1),
        format!("Authorization: Bearer {}", tokens.3),
    );
    let session = format!("Mcp-Session-Id: {}", begin(&server, std::slice::from_ref(&one)));
    assert_eq!(send(&server, "POST", &[one.clone(), session.clone()], CALL).0, 200);
    for method in ["POST", "GET", "DELETE"] {
        assert_eq!(send(&server, method, &[two.clone(), session.clone()], CALL).0, 404, "{method}");
        assert_eq!(send(&server, method, std::slice::from_ref(&session), CALL).0, 401, "{method}");
    }
    assert_eq!(send(&server, "POST", &[one, session], CALL).0, 200, "it was not ended by others");
}

#[test]
fn two_sessions_with_equal_ids_get_their_own_answers() {
    let upstream = Upstream::start(Box::new(|request| {
        let path = request.line.split(' ').nth(1).unwrap();
        reply(
            200,
            &["Content-Type: application/json"],
            json!({"path": path}).to_string().as_bytes(),
        )
    }));
    let spec = SpecFile::with_paths(&json!({"/items/{id}": {"get": {"operationId": "get", "parameters": [
        {"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}]}}}));
    let server = HttpServer::start(&["--spec", spec.path(), "--base-url", &upstream.url, "--confirm", "destructive"]);
    let sessions = [begin(&server, &[]), begin(&server, &[])];
    std::thread::scope(|scope| {
        for (client, session) in sessions.iter().enumerate() {
            for lane in 0..4 {
                let server = &server;
                scope.spawn(move || {
                    for number in 0..50 {
                        let id = format!("{client}-{lane}-{number}");
                        let params = json!({"name": "get", "arguments": {"id": id}});
                        let body = json!({"jsonrpc": "2.0", "id": lane * 50 + number, "method": "tools/call", "params": params});
                        let (status, _, answer) = send(server, "POST", &[format!("Mcp-Session-Id: {session}")], &body.to_string());
                        assert!(status == 200 && answer.contains(&format!("/items/{id}")), "{id}: {answer}");
                    }
                });
            }
        }
    });
}

#[cfg(target_os = "linux")]
#[test]
fn many_clients_at_once_are_served_and_abandoned_sessions_are_bounded() {
    use crate::support::memory;

    let server = HttpServer::start(&["--spec", &petstore(), "--mock", "--confirm", "destructive"]);
    let begin_all = |count: usize| -> usize {
        std::thread::scope(|scope| {
            let lanes: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        (0..count / 8)
                            .filter(|_| send(&server, "POST", &[], &initialize()).0 == 200)
                            .count()
                    })
                })
                .collect();
            lanes.into_iter().map(|lane| lane.join().unwrap()).sum()
        })
    };
    let before = memory(server.pid());
    assert_eq!(begin_all(504), 504);
    let begun = begin_all(if soak() { 6000 } else { 800 });
    assert!(begun < 520, "{begun}: there are at most 1,000 sessions");
    let grown = memory(server.pid()).saturating_sub(before);
    assert!(grown < 256, "{grown} MiB");
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    let modern: Value =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_pets", "arguments": {}, "_meta": meta}});
    let headers = ["MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: list_pets"];
    assert!(
        server.post(&headers, &modern.to_string()).0.contains(" 200 "),
        "who needs no session is served all the same"
    );
}

/// 2026-07-28 (basic/transports): a closed stream is a cancelled request; and what nobody waits for need not go on in any era.
#[test]
fn a_client_that_leaves_ends_its_request_upstream() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = HttpServer::start(&["--spec", &petstore(), "--base-url", &url]);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    let modern =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_pets", "arguments": {}, "_meta": meta}});
    let headers = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: list_pets\r\n";
    for (headers, body) in [(headers, modern.to_string()), ("", CALL.to_owned())] {
        let mut client = connect(&server);
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n",
            server.address,
            body.len()
        );
        client.write_all((head + &body).as_bytes()).unwrap();
        let (mut upstream, _) = listener.accept().unwrap();
        upstream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut buffer = [0; 4096];
        assert!(upstream.read(&mut buffer).unwrap() > 0, "the request is there");
        drop(client);
        while upstream.read(&mut buffer).expect("the request upstream is still open") > 0 {}
    }
}

/// Each of them would hold the whole list otherwise.
#[cfg(target_os = "linux")]
#[test]
fn many_who_ask_for_a_large_list_and_do_not_read_it_take_little_memory() {
    use crate::support::memory;

    let operation = |number: usize| {
        let about = format!("{number} {}", "words of a description ".repeat(60));
        (
            format!("/items/{number}"),
            json!({"get": {"operationId": format!("get_{number}"), "description": about}}),
        )
    };
    let spec = SpecFile::with_paths(&Value::Object((0..1000).map(operation).collect()));
    let server = HttpServer::start(&["--spec", spec.path(), "--base-url", "http://127.0.0.1:1"]);
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let (_, body) = server.post(&[], list);
    assert!(body.len() > 1 << 20, "{}", body.len());
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(answer["result"]["tools"].as_array().map(Vec::len), Some(1000));
    let before = memory(server.pid());
    let asked = lists(&server.address);
    let mut slow: Vec<TcpStream> = (0..200).map(|_| connect(&server)).collect();
    for stream in &mut slow {
        stream.set_nonblocking(true).unwrap();
        let _ = stream.write(asked.as_bytes());
    }
    // Once these are answered, those before them were taken up.
    for _ in 0..5 {
        assert_eq!(server.post(&[], list).1.len(), body.len());
    }
    let grown = memory(server.pid()).saturating_sub(before);
    assert!(grown < 200, "{grown} MiB for 200 clients");
}
