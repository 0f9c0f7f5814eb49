//! Hostile clients over HTTP: slow ones, huge bodies, ambiguous framing, and clients that leave.
//! `SOAK=1` (`just soak`) waits as long as the promises say.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::http_server::http_request;
use crate::support::{
    CALL, HttpServer, LIST, Received, SpecFile, TIMEOUT, Upstream, call_message, listener, memory,
    peak_memory, petstore, reply, soak, stateless_meta, within,
};

/// The credential that the petstore asks for.
#[cfg(target_os = "linux")]
const KEY: &str = "X-API-Key: none-of-your-business";

/// Whole requests of a list, which is never read.
fn lists(address: &str) -> String {
    // The answers are more than the buffers of both sides hold.
    http_request(address, "POST", &[], LIST).repeat(2_000)
}

#[test]
fn p32_slow_clients_do_not_disturb_others_and_are_dropped() {
    let server = HttpServer::start(&["--spec", &petstore(), "--mock"]);
    let host = &server.address;
    let kinds: Vec<String> = vec![
        String::new(),
        "P".into(),
        "PRI * HTTP/2.0\r\n\r\nSM".into(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(),
        "POST /mcp HT".into(),
        format!("POST /mcp HTTP/1.1\r\nHost: {host}\r\nX-Slow: "),
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{{"
        ),
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{{"
        ),
        lists(host),
    ];
    let each = if soak() { 50 } else { 20 };
    let mut slow: Vec<(usize, TcpStream)> = Vec::new();
    for _ in 0..each {
        for (kind, text) in kinds.iter().enumerate() {
            let mut stream = server.connect();
            // A write that would block is left out, so that the test goes on.
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
        assert!(started.elapsed() < within(5), "{:?}", started.elapsed());
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
    // Clients that do not read notice it once they read: the rest of their answers is cut. They
    // read when the time is over.
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
        assert!(
            total < 24 << 20,
            "{total} bytes came although nobody read them for a minute"
        );
    }
}

/// A frame of HTTP/2 (RFC 9113 section 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A client of HTTP/2 that answers pings but sends no request, or takes nothing of an answer, is
/// slow as well.
#[test]
fn p32_clients_of_http_2_that_only_answer_pings_are_dropped() {
    if !soak() {
        return;
    }
    let server = HttpServer::start(&["--spec", &petstore(), "--mock", "max_connections: 8"]);
    // No room for answers at all (SETTINGS_INITIAL_WINDOW_SIZE), and a list that is asked for:
    // HPACK without tables.
    let text = |name: &str, value: &str| {
        let length = |text: &str| u8::try_from(text.len()).unwrap();
        [
            &[0, length(name)],
            name.as_bytes(),
            &[length(value)],
            value.as_bytes(),
        ]
        .concat()
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
    let asked = [
        frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]),
        frame(1, 5, 1, &headers),
    ]
    .concat();
    let began = Instant::now();
    std::thread::scope(|scope| {
        for opening in [frame(4, 0, 0, &[]), asked] {
            for _ in 0..4 {
                let (mut stream, opening) = (server.connect(), opening.clone());
                scope.spawn(move || {
                    stream
                        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
                        .unwrap();
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
                    assert!(
                        began.elapsed() < Duration::from_secs(65),
                        "still there after {:?}",
                        began.elapsed()
                    );
                });
            }
        }
    });
    assert!(server.post(&[], CALL).0.contains(" 200 "));
}

#[cfg(target_os = "linux")]
#[test]
fn p32_huge_bodies_are_refused_early() {
    use crate::support::memory;

    let server = HttpServer::start(&["--spec", &petstore(), "--mock"]);
    let (before, address) = (memory(server.pid()), &server.address);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let mut stream = server.connect();
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

/// A proxy in front of the server may see one request where the server could see two; the second
/// must never run.
#[test]
fn p32_ambiguous_framing_never_runs_a_hidden_call() {
    let upstream = Upstream::echo();
    let server = HttpServer::start(&["--spec", &petstore(), "--base-url", &upstream.url]);
    let host = &server.address;
    let hidden = http_request(
        host,
        "POST",
        &[],
        &call_message("delete_pet", r#"{"petId":7}"#),
    );
    let start = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
    );
    let all = hidden.len() + 5;
    for (what, request) in [
        (
            "both, chunked ends first",
            format!(
                "{start}Content-Length: {all}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"
            ),
        ),
        (
            "both, the other way round",
            format!(
                "{start}Transfer-Encoding: chunked\r\nContent-Length: {all}\r\n\r\n0\r\n\r\n{hidden}"
            ),
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
            format!(
                "{start}Content-Length: 0\r\nContent-Length: {}\r\n\r\n{hidden}",
                hidden.len()
            ),
        ),
        (
            "a list of lengths",
            format!("{start}Content-Length: 0, {}\r\n\r\n{hidden}", hidden.len()),
        ),
        (
            "a length with a sign",
            format!("{start}Content-Length: +0\r\n\r\n{hidden}"),
        ),
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
            format!(
                "{start}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"
            ),
        ),
        (
            "a blank before the colon",
            format!(
                "{start}Transfer-Encoding : chunked\r\nContent-Length: {all}\r\n\r\n0\r\n\r\n{hidden}"
            ),
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
        let mut stream = server.connect();
        // Not closed on our side: hyper gives up a call whose client has left.
        let started = Instant::now();
        let _ = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        assert!(
            upstream.received().is_empty(),
            "{what}: the hidden call ran: {answer}"
        );
        assert!(
            started.elapsed() < within(20),
            "{what}: the connection stays open: {answer}"
        );
    }
    assert!(
        server.post(&[], CALL).0.contains(" 200 "),
        "the server is well"
    );
}

/// In protocol version 2026-07-28 (basic/transports) a closed stream cancels the request; older
/// versions do the same here.
#[test]
fn p24_a_client_that_leaves_ends_its_request_upstream() {
    let (listener, url) = listener();
    let server = HttpServer::start(&["--spec", &petstore(), "--base-url", &url]);
    let params = json!({"name": "list_pets", "arguments": {}, "_meta": stateless_meta(&json!({}))});
    let stateless =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let headers = [
        "MCP-Protocol-Version: 2026-07-28",
        "Mcp-Method: tools/call",
        "Mcp-Name: list_pets",
    ];
    for (headers, body) in [(&headers[..], stateless.as_str()), (&[], CALL)] {
        let mut client = server.connect();
        client
            .write_all(http_request(&server.address, "POST", headers, body).as_bytes())
            .unwrap();
        let (mut upstream, _) = listener.accept().unwrap();
        upstream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let mut buffer = [0; 4096];
        assert!(
            upstream.read(&mut buffer).unwrap() > 0,
            "the request is there"
        );
        drop(client);
        while upstream
            .read(&mut buffer)
            .expect("the request upstream is still open")
            > 0
        {}
    }
}

/// Otherwise each of the clients would hold a copy of the whole list.
#[cfg(target_os = "linux")]
#[test]
fn p32_clients_that_do_not_read_a_large_list_take_little_memory() {
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
    let (_, body) = server.post(&[], LIST);
    assert!(body.len() > 1 << 20, "{}", body.len());
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        answer["result"]["tools"].as_array().map(Vec::len),
        Some(1000)
    );
    let before = memory(server.pid());
    let asked = lists(&server.address);
    let mut slow: Vec<TcpStream> = (0..200).map(|_| server.connect()).collect();
    for stream in &mut slow {
        stream.set_nonblocking(true).unwrap();
        let _ = stream.write(asked.as_bytes());
    }
    // Once these are answered, those before them were taken up.
    for _ in 0..5 {
        assert_eq!(server.post(&[], LIST).1.len(), body.len());
    }
    let grown = memory(server.pid()).saturating_sub(before);
    assert!(grown < 200, "{grown} MiB for 200 clients");
}

/// Silent connections need no credentials. What they hold must not keep accepted calls from
/// reaching the API.
#[cfg(target_os = "linux")]
#[test]
fn p45_silent_connections_leave_file_descriptors_for_calls() {
    let upstream = Upstream::start(Box::new(|_| {
        reply(
            200,
            &["Content-Type: application/json", "Connection: close"],
            b"{\"ok\":true}",
        )
    }));
    let server = HttpServer::start_with_descriptors(
        64,
        &[
            "--spec",
            &petstore(),
            "--base-url",
            &upstream.url,
            "--header",
            KEY,
        ],
    );
    server.logged("64 file descriptors");
    let mut kept: Vec<TcpStream> = (0..8).map(|_| server.connect()).collect();
    for stream in &mut kept {
        call_over(stream, &server.address);
    }
    rlimit::increase_nofile_limit(4096).unwrap();
    let address = server.address.parse().unwrap();
    // What is not accepted waits in the system's queue, until that is full as well.
    let silent: Vec<TcpStream> = (0..1024)
        .map_while(|_| TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok())
        .collect();
    assert!(silent.len() > 64, "{}", silent.len());
    std::thread::scope(|scope| {
        for stream in &mut kept {
            scope.spawn(|| call_over(stream, &server.address));
        }
    });
}

/// Makes a call over a connection that stays open, and checks its answer.
#[cfg(target_os = "linux")]
fn call_over(stream: &mut TcpStream, address: &str) {
    stream
        .write_all(http_request(address, "POST", &[], CALL).as_bytes())
        .unwrap();
    let (mut answer, mut chunk) = (String::new(), [0; 4096]);
    while !answer.contains("\"jsonrpc\"") || !answer.ends_with('}') {
        let count = stream.read(&mut chunk).unwrap();
        assert!(count > 0, "{answer}");
        answer.push_str(std::str::from_utf8(&chunk[..count]).unwrap());
    }
    assert!(answer.contains("\"isError\":false"), "{answer}");
}

/// An API with many operations, as long names make suggestions dear.
#[cfg(target_os = "linux")]
fn many_operations() -> SpecFile {
    let operation = |number: usize| {
        let name = format!("projects_environments_variables_get_{number:04}");
        (
            format!("/items/{number}"),
            json!({"get": {"operationId": name, "tags": [format!("tag number {number}")]}}),
        )
    };
    SpecFile::with_paths(&Value::Object((0..1_100).map(operation).collect()))
}

/// Nothing is like a name of megabytes, and looking for what is nearest to it takes minutes.
#[cfg(target_os = "linux")]
#[test]
fn p32_a_name_of_megabytes_gets_no_suggestion_and_holds_nobody_up() {
    let spec = many_operations();
    let huge = "projects_environments_".repeat(150_000);
    let served = ["--spec", spec.path(), "--base-url", "http://127.0.0.1:1"];
    let search = ["--tools", "search"];
    for (more, tool, arguments) in [
        (&[][..], huge.as_str(), "{}".to_owned()),
        (&search, "call_read", format!(r#"{{"operation":"{huge}"}}"#)),
        (
            &search,
            "describe_operations",
            format!(r#"{{"names":["{huge}"]}}"#),
        ),
        (
            &search,
            "search_operations",
            format!(r#"{{"tag":"{huge}"}}"#),
        ),
        (
            &search,
            "search_operations",
            format!(r#"{{"queries":["{huge}"]}}"#),
        ),
        (
            &search,
            "search_operations",
            format!(r#"{{"effect":"{huge}"}}"#),
        ),
        (&search, "search_operations", format!(r#"{{"{huge}":1}}"#)),
    ] {
        let server = HttpServer::start(&[&served, more].concat());
        let started = Instant::now();
        let (status, answer) = server.post(&[], &call_message(tool, &arguments));
        let shown = answer
            .get(..answer.floor_char_boundary(300))
            .unwrap_or_default();
        let tool = tool.get(..tool.len().min(40)).unwrap_or_default();
        assert!(
            started.elapsed() < within(3),
            "{tool}: {:?} {status} {shown}",
            started.elapsed()
        );
        assert!(
            answer.len() < 4_000 && !answer.contains("ean projects_"),
            "{tool}: {} {shown}",
            answer.len()
        );
    }
    let server = HttpServer::start(&served);
    let (_, answer) = server.post(
        &[],
        &call_message("projects_environments_variables_get_110", "{}"),
    );
    assert!(
        answer.contains("did you mean projects_environments_variables_get_"),
        "{answer}"
    );
}

/// Each item of a list may break its schema in several ways, and in each form of a choice: all that
/// is found in a message of megabytes takes gigabytes.
#[cfg(target_os = "linux")]
#[test]
fn p32_a_long_list_that_does_not_fit_takes_little_memory_and_time() {
    use crate::support::peak_memory;

    let label = json!({"oneOf": [
        {"type": "string"},
        {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "color": {"type": ["string", "null"]}}},
    ]});
    let body = json!({"required": true, "content": {"application/json": {"schema": {"type": "object", "properties": {
        "labels": {"oneOf": [
            {"type": "object", "properties": {"labels": {"type": "array", "minItems": 1, "items": label}}},
            {"type": "array", "minItems": 1, "items": {"type": "string"}},
            {"type": "array", "minItems": 1, "items": label},
        ]},
        "numbers": {"type": "array", "items": {"type": "integer", "minimum": 1}},
        "times": {"type": "array", "items": {"type": "string", "format": "date-time"}},
    }}}}});
    let operation = json!({"post": {"operationId": "set_labels", "requestBody": body, "responses": {"200": {"description": "ok"}}}});
    let spec = SpecFile::with_paths(&json!({"/labels": operation}));
    let upstream = Upstream::start(Box::new(|_| {
        reply(400, &["Content-Type: application/json"], b"{}")
    }));
    let list = |item: &str, count: usize| vec![item; count].join(",");
    let (long, max_memory) = if soak() {
        (1_900_000, 1_000)
    } else {
        (250_000, 250)
    };
    let last = long / 2;
    for (what, arguments, expected) in [
        (
            "forms",
            format!(r#"{{"body":{{"labels":[{}]}}}}"#, list("0", long)),
            "/body/labels/0`",
        ),
        (
            "values",
            format!(r#"{{"body":{{"numbers":[{}]}}}}"#, list("0", long)),
            "`/body/numbers/19`",
        ),
        (
            "the last",
            format!(r#"{{"body":{{"numbers":[{},0]}}}}"#, list("1", 500_000)),
            "`/body/numbers/500000`",
        ),
        (
            "formats",
            format!(r#"{{"body":{{"times":[{}]}}}}"#, list("\"x\"", last)),
            "`/body/times/2`",
        ),
        (
            "names",
            format!(
                r#"{{"body":{{}},{}}}"#,
                (0..last)
                    .map(|n| format!(r#""n{n}":0"#))
                    .collect::<Vec<_>>()
                    .join(",")
            ),
            "`n7`",
        ),
        (
            "names alike",
            format!(
                r#"{{"body":{{{}}}}}"#,
                (1..2_000)
                    .map(|n| format!(r#""{}labels":0"#, "-".repeat(n)))
                    .collect::<Vec<_>>()
                    .join(",")
            ),
            "400",
        ),
    ] {
        let server = HttpServer::start(&["--spec", spec.path(), "--base-url", &upstream.url]);
        let message = call_message("set_labels", &arguments);
        let started = Instant::now();
        let (_, answer) = server.post(&[], &message);
        let (took, peak) = (started.elapsed(), peak_memory(server.pid()));
        let shown = answer
            .get(..answer.floor_char_boundary(2_000))
            .unwrap_or_default();
        assert!(
            answer.contains(expected) && answer.len() < 8_000,
            "{what}: {} {shown}",
            answer.len()
        );
        // Without optimization, as the tests are built.
        assert!(took < within(30), "{what}: {took:?}");
        assert!(peak < max_memory, "{what}: {peak} MiB");
    }
}

/// Memory that the manifests allow a replica, in MiB.
#[cfg(target_os = "linux")]
const MEMORY_LIMIT: usize = 512;

#[cfg(target_os = "linux")]
#[test]
fn p45_stalled_bodies_of_one_client_take_at_most_half_of_the_memory() {
    const LIMIT: usize = 128;
    for (length, begin) in [
        ("Content-Length: 4190000", ""),
        ("Transfer-Encoding: chunked", "3fef30\r\n"),
    ] {
        let server = HttpServer::start(&["--spec", &petstore(), "--mock"]);
        let before = memory(server.pid());
        let stalled: Vec<TcpStream> = (0..64)
            .map(|_| {
                let mut stream = server.connect();
                let head = format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{length}\r\n\r\n{begin}");
                let body = [head.as_bytes(), &vec![b' '; 4_100_000]].concat();
                stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
                let _ = stream.write_all(&body);
                stream
            })
            .collect();
        let taken = peak_memory(server.pid()) - before;
        assert!(taken < LIMIT, "{length}: {taken} MiB");
        drop(stalled);
    }
}

/// Nothing is counted before a body is read, and it is not while the token of its client is
/// checked.
#[test]
fn p45_over_http2_little_of_a_body_comes_before_it_is_read() {
    const SETTINGS: u8 = 4;
    const PING: u8 = 6;
    const WINDOW_UPDATE: u8 = 8;
    let server = HttpServer::start(&["--spec", &petstore(), "--mock"]);
    let mut stream = server.connect();
    let settings = [0, 0, 0, SETTINGS, 0, 0, 0, 0, 0];
    let ping = [0, 0, 8, PING, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    stream
        .write_all(&[&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &settings].concat())
        .unwrap();
    // What RFC 9113 section 6.9.2 begins with.
    let (mut of_stream, mut of_connection) = (65_535, 65_535);
    let mut pings = 0;
    while pings < 2 {
        let mut head = [0; 9];
        stream.read_exact(&mut head).unwrap();
        let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
        stream.read_exact(&mut payload).unwrap();
        let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
        match (head[3], head[4]) {
            (SETTINGS, 0) => {
                for setting in payload.chunks(6).filter(|setting| setting[..2] == [0, 4]) {
                    of_stream = number(&setting[2..]);
                }
                stream
                    .write_all(&[0, 0, 0, SETTINGS, 1, 0, 0, 0, 0])
                    .unwrap();
                stream.write_all(&ping).unwrap();
            }
            (WINDOW_UPDATE, _) => of_connection += number(&payload),
            (PING, 1) => {
                pings += 1;
                stream.write_all(&ping).unwrap();
            }
            _ => {}
        }
    }
    assert!(
        of_stream <= 65_536 && of_connection <= 65_536,
        "{of_stream} {of_connection}"
    );
}

/// One client stalls long bodies and asks for long replies, more than the memory limit in all.
/// Others do not notice.
#[cfg(target_os = "linux")]
#[test]
fn p45_stalled_bodies_and_long_replies_of_one_client_take_bounded_memory() {
    const REPLY_BYTES: usize = 9_300_000;
    let upstream = Upstream::start(Box::new(|received: &Received| {
        let item = r#"{"id":123456,"name":"a long list"},"#;
        let count = if received.path() == "/long" {
            REPLY_BYTES / item.len()
        } else {
            10_000
        };
        let body = format!("[{}]", item.repeat(count).trim_end_matches(','));
        reply(200, &["Content-Type: application/json"], body.as_bytes())
    }));
    let get =
        |id: &str| json!({"get": {"operationId": id, "responses": {"200": {"description": "ok"}}}});
    let spec = SpecFile::with_paths(&json!({"/long": get("long"), "/short": get("short")}));
    let tokens = [
        ("GREEDY", "greedy-client-0123456789"),
        ("OTHER", "other-client-0123456789"),
    ];
    let server = HttpServer::start_with(
        &[
            "--spec",
            spec.path(),
            "--base-url",
            &upstream.url,
            "--auth-token-env",
            "GREEDY,OTHER",
            "max_concurrency: 256",
        ],
        &tokens,
    );
    let [greedy, other] = tokens.map(|(_, token)| format!("Authorization: Bearer {token}"));
    let stalled: Vec<TcpStream> = (0..128)
        .map(|_| {
            let mut stream = server.connect();
            let head = format!(
                "POST /mcp HTTP/1.1\r\nHost: localhost\r\n{greedy}\r\nContent-Type: application/json\r\nContent-Length: 4190000\r\n\r\n"
            );
            let body = [head.as_bytes(), &vec![b' '; 4_100_000]].concat();
            stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
            // Bodies beyond the share of the client are refused while they are sent.
            let _ = stream.write_all(&body);
            stream
        })
        .collect();
    let is_busy = |mut stream: &TcpStream| {
        let mut answer = [0; 1024];
        stream
            .set_read_timeout(Some(Duration::from_millis(1)))
            .unwrap();
        stream.read(&mut answer).is_ok_and(|count| {
            let answer = String::from_utf8_lossy(&answer[..count]).to_lowercase();
            answer.starts_with("http/1.1 503") && answer.contains("retry-after: ")
        })
    };
    assert!(stalled.iter().any(is_busy), "no body is refused");
    std::thread::scope(|scope| {
        let calls: Vec<_> = (0..100)
            .map(|_| {
                let (server, greedy) = (&server, &greedy);
                scope.spawn(move || {
                    server.call_stateless_as(&[greedy], "long", json!({}), &json!({}))
                })
            })
            .collect();
        for _ in 0..10 {
            let answer = server.call_stateless_as(&[&other], "short", json!({}), &json!({}));
            assert_ne!(answer["result"]["isError"], true, "{answer}");
        }
        let texts: Vec<String> = calls
            .into_iter()
            .map(|call| call.join().unwrap()["result"].to_string())
            .collect();
        assert!(
            texts
                .iter()
                .any(|text| text.contains("as its memory allows")),
            "no reply is refused"
        );
    });
    drop(stalled);
    let answer = server.call_stateless_as(&[&greedy], "long", json!({}), &json!({}));
    assert_ne!(
        answer["result"]["isError"], true,
        "the memory is free again: {answer}"
    );
    let peak = peak_memory(server.pid());
    assert!(peak < MEMORY_LIMIT, "{peak} MiB");
}
