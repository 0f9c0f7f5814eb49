//! Hostile and broken replies: every one that is cut, endless, swollen or misleading becomes an
//! answer of ours, within the time and the memory that a call may take.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::upstream::serve_connections;
use crate::support::{Received, Session, SpecFile, Upstream, project, reply, text};

pub(super) fn number(request: &Received) -> usize {
    request
        .path()
        .rsplit('/')
        .next()
        .and_then(|last| last.parse().ok())
        .unwrap_or(usize::MAX)
}

/// `case` is a GET and `send` a POST of the number that says which reply is wanted; `well` is
/// answered as it should be.
pub(super) fn session(upstream: &Upstream, more: &[&str]) -> Session {
    let parameter =
        json!([{"name": "n", "in": "path", "required": true, "schema": {"type": "integer"}}]);
    let spec = SpecFile::with_paths(&json!({
        "/case/{n}": {"get": {"operationId": "case", "parameters": parameter}, "post": {"operationId": "send", "parameters": parameter, "requestBody": {"content": {"application/json": {}}}}},
        "/well": {"get": {"operationId": "well"}},
    }));
    let base = format!("{}/base", upstream.url);
    Session::start(
        &[
            &[
                "serve",
                "--spec",
                spec.path(),
                "--base-url",
                &base,
                "breaker_failures: 0",
            ],
            more,
        ]
        .concat(),
    )
}

/// `Connection: close` keeps the next request off a connection that is just being closed.
pub(super) fn well() -> Vec<u8> {
    reply(
        200,
        &["Content-Type: application/json", "Connection: close"],
        b"{\"well\":true}",
    )
}

pub(super) fn is_well(session: &mut Session) {
    assert_eq!(
        session.call("well", &json!({}))["structuredContent"],
        json!({"well": true})
    );
}

#[test]
fn p9_p15_no_redirect_is_followed_and_no_cookie_is_kept() {
    let other = Upstream::echo();
    let host = other.host().to_owned();
    let port = host.rsplit(':').next().unwrap().to_owned();
    let locations = [
        format!("http://{host}/steal"),
        format!("http://localhost:{port}/steal"),
        format!("//{host}/steal"),
        format!("\\\\{host}\\steal"),
        format!("/\\{host}/steal"),
        format!("http:{host}/steal"),
        format!("http://operator:secret@{host}/steal"),
        format!("https://{host}/steal"),
        "/steal".to_owned(),
        "../../steal".to_owned(),
        "/base/case/0".to_owned(),
        "file:///etc/passwd".to_owned(),
        "javascript:alert(1)".to_owned(),
        String::new(),
    ];
    let statuses = [301_u16, 302, 303, 307, 308];
    let cases = locations.len() * statuses.len();
    assert!(cases >= 52);
    let upstream = Upstream::start(Box::new(move |request| {
        let number = number(request);
        let location = format!("Location: {}", locations[number % locations.len()]);
        reply(
            statuses[number / locations.len()],
            &[&location, "Set-Cookie: s=1"],
            b"moved",
        )
    }));
    let mut session = session(
        &upstream,
        &[
            "--header",
            "X-Api-Key: s3cret-key",
            "--header",
            "Authorization: Bearer s3cret-token",
        ],
    );
    for number in 0..cases {
        for (tool, arguments) in [
            ("case", json!({"n": number})),
            ("send", json!({"n": number, "body": {"x": 1}})),
        ] {
            let result = session.call(tool, &arguments);
            assert_eq!(result["isError"], true, "{number}: {result}");
            assert!(!result.to_string().contains("s=1"), "{result}");
            let received = upstream.take_one();
            assert_eq!(received.header("cookie"), None);
        }
    }
    assert!(other.received().is_empty(), "{:?}", other.received());
}

/// Writes until the other side has had enough, a piece at a time, and says how much was taken.
pub(super) fn pour(stream: &mut TcpStream, piece: &[u8], most: usize) -> usize {
    let mut taken = 0;
    while taken < most && stream.write_all(piece).is_ok() {
        taken += piece.len();
    }
    taken
}

/// Writes a little every now and then, until the other side has had enough.
fn drip(stream: &mut TcpStream, piece: &[u8]) {
    while stream.write_all(piece).is_ok() {
        std::thread::park_timeout(Duration::from_millis(100));
    }
}

fn hold(stream: &mut TcpStream) {
    let _ = stream.read_to_end(&mut Vec::new());
}

#[test]
fn p10_every_hung_upstream_is_an_error_in_time_and_its_neighbours_do_not_wait() {
    const JSON: &str = "Content-Type: application/json\r\n";
    let upstream = Upstream::raw(|request, stream| {
        let mut say = |text: &str| stream.write_all(text.as_bytes()).unwrap();
        match number(request) {
            0 => {}
            1 => say("HTTP/1.1"),
            2 => say("HTTP/1.1 200 OK\r\nContent-Ty"),
            3 => {
                say("HTTP/1.1 200 OK\r\nX-Slow: ");
                drip(stream, b"x");
            }
            4 => {
                say("HTTP/1.1 200 OK\r\n");
                drip(stream, b"X-More: y\r\n");
            }
            5 => say(&format!(
                "HTTP/1.1 200 OK\r\n{JSON}Content-Length: 100\r\n\r\n"
            )),
            6 => {
                say(&format!(
                    "HTTP/1.1 200 OK\r\n{JSON}Content-Length: 1000000\r\n\r\n"
                ));
                drip(stream, b" ");
            }
            7 => {
                say(&format!(
                    "HTTP/1.1 200 OK\r\n{JSON}Transfer-Encoding: chunked\r\n\r\n"
                ));
                drip(stream, b"1\r\n \r\n");
            }
            8 => say(&format!(
                "HTTP/1.1 200 OK\r\n{JSON}Transfer-Encoding: chunked\r\n\r\nff"
            )),
            9 => drip(stream, b"HTTP/1.1 100 Continue\r\n\r\n"),
            10 => {
                say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
                drip(stream, b": nothing\n\n");
            }
            11 => say(&format!(
                "HTTP/1.1 200 OK\r\n{JSON}Content-Encoding: gzip\r\nContent-Length: 100\r\n\r\n\u{1f}"
            )),
            _ => {
                let _ = stream.write_all(&well());
                return;
            }
        }
        hold(stream);
    });
    let mut session = session(&upstream, &["--timeout", "3", "retries: 0"]);
    let started = Instant::now();
    let hung: Vec<u64> = (0..12)
        .map(|number| {
            session.post(
                "tools/call",
                &json!({"name": "case", "arguments": {"n": number}}),
            )
        })
        .collect();
    // Answered while the others hang: they come before any of those.
    let healthy: Vec<u64> = (0..10)
        .map(|_| session.post("tools/call", &json!({"name": "well", "arguments": {}})))
        .collect();
    for _ in &healthy {
        let answer = session.receive();
        assert!(
            healthy.contains(&answer["id"].as_u64().unwrap()),
            "{answer}"
        );
        assert_eq!(answer["result"]["isError"], false);
    }
    for _ in &hung {
        let answer = session.receive();
        let case = hung.iter().position(|id| answer["id"] == *id).unwrap();
        // The events that came until then are a result, with a note on how the stream ended.
        assert_eq!(answer["result"]["isError"], case != 10, "{case}: {answer}");
        assert!(
            answer.to_string().contains("3 s") || case == 10,
            "{case}: {answer}"
        );
    }
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "{:?}",
        started.elapsed()
    );
    is_well(&mut session);
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A row of `replies.yaml`.
#[derive(serde::Deserialize)]
struct BrokenReply {
    what: String,
    fails: bool,
    reply: String,
}

/// Replies that are broken, and whether each must be an error.
fn broken() -> Vec<(String, Vec<u8>, bool)> {
    let mut all: Vec<(String, Vec<u8>, bool)> = Vec::new();
    let ok = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
    let body = br#"{"items":[{"id":1,"name":"one"},{"id":2,"name":"two"}],"total":2}"#;
    let with = |head: &str, body: &[u8]| [head.as_bytes(), b"\r\n", body].concat();
    // Cut at many places: within the head, the length, a chunk, and a compressed body.
    let whole = with(&format!("{ok}Content-Length: {}\r\n", body.len()), body);
    let chunked: Vec<u8> = body
        .chunks(9)
        .flat_map(|chunk| [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat())
        .collect();
    let chunked = with(
        &format!("{ok}Transfer-Encoding: chunked\r\n"),
        &[&chunked[..], b"0\r\n\r\n"].concat(),
    );
    for tenth in 1..10 {
        let cut = |bytes: &[u8]| bytes[..bytes.len() * tenth / 10].to_vec();
        all.push((format!("a length, cut at {tenth}"), cut(&whole), true));
        all.push((format!("chunks, cut at {tenth}"), cut(&chunked), true));
        for (coding, bytes) in [("gzip", gzip(body)), ("deflate", zlib(body))] {
            let bytes = cut(&bytes);
            let head = format!(
                "{ok}Content-Encoding: {coding}\r\nContent-Length: {}\r\n",
                bytes.len()
            );
            all.push((
                format!("{coding}, cut at {tenth}"),
                with(&head, &bytes),
                true,
            ));
        }
    }
    let mut wrong_sum = gzip(body);
    let at = wrong_sum.len() - 6;
    wrong_sum[at] ^= 0xff;
    let coded = |coding: &str, bytes: &[u8]| {
        with(
            &format!(
                "{ok}Content-Encoding: {coding}\r\nContent-Length: {}\r\n",
                bytes.len()
            ),
            bytes,
        )
    };
    let mut add =
        |what: &str, bytes: Vec<u8>, fails: bool| all.push((what.to_owned(), bytes, fails));
    add("a gzip with a wrong sum", coded("gzip", &wrong_sum), true);
    add("no gzip at all", coded("gzip", body), true);
    add("no brotli at all", coded("br", &[0xff; 40]), true);
    add("no zstd at all", coded("zstd", body), true);
    add("a coding nobody knows", coded("x-rot13", body), false);
    add(
        "words after a gzip",
        coded("gzip", &[&gzip(body)[..], b"trailing"].concat()),
        false,
    );
    add("bytes that are no text", vec![0xff; 600], true);
    add(
        "a switch of protocols",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x81\x01x".to_vec(),
        true,
    );
    add(
        "bytes that are no UTF-8",
        with(&format!("{ok}Content-Length: 4\r\n"), b"\"\xff\xfe\""),
        false,
    );
    let listed = std::fs::read(project("tests/cases/hostile/replies.yaml")).unwrap();
    for case in serde_yaml::from_slice::<Vec<BrokenReply>>(&listed).unwrap() {
        add(&case.what, case.reply.into_bytes(), case.fails);
    }
    all
}

#[test]
fn p11_every_broken_reply_gets_an_answer_and_a_cut_one_is_never_a_success() {
    let cases = broken();
    assert!(cases.len() >= 54, "{}", cases.len());
    let replies: Vec<Vec<u8>> = cases.iter().map(|(_, bytes, _)| bytes.clone()).collect();
    let upstream = Upstream::raw(move |request, stream| {
        let bytes = replies.get(number(request)).cloned().unwrap_or_else(well);
        let _ = stream.write_all(&bytes);
    });
    let mut session = session(&upstream, &["--timeout", "5", "retries: 0"]);
    for (number, (what, _, fails)) in cases.iter().enumerate() {
        let mut result = session.call("send", &json!({"n": number}));
        let mut sent = upstream.take_all().len();
        if sent == 0 {
            // On the connection of the case before, which was just being closed.
            result = session.call("send", &json!({"n": number}));
            sent = upstream.take_all().len();
        }
        assert_eq!(sent, 1, "{what}: exactly one request leaves");
        assert!(!fails || result["isError"] == true, "{what}: {result}");
        assert!(
            result["content"][0]["text"].is_string() || result["content"] == json!([]),
            "{what}: {result}"
        );
    }
    is_well(&mut session);
    let log = session.end();
    assert!(!log.contains("panicked"), "{log}");
}

#[cfg(target_os = "linux")]
#[test]
fn p11_a_reset_connection_is_an_error() {
    // A connection that is closed with something unread is reset.
    let url = serve_connections(|number, mut stream| {
        let _ = stream.read(&mut [0; 10]);
        let said: &[u8] = match number % 3 {
            0 => b"",
            1 => b"HTTP/1.1 200 OK\r\nContent-Le",
            _ => b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"a\":",
        };
        let _ = stream.write_all(said);
    });
    let spec = SpecFile::with_paths(&json!({"/a": {"post": {"operationId": "send"}}}));
    let mut session = Session::start(&[
        "serve",
        "--spec",
        spec.path(),
        "--base-url",
        &url,
        "breaker_failures: 0",
    ]);
    for _ in 0..9 {
        let result = session.call("send", &json!({}));
        assert_eq!(result["isError"], true, "{result}");
    }
}

/// A stream that never ends is given as far as the call's time goes.
#[test]
fn p10_an_endless_stream_is_collected_within_the_time_of_a_call() {
    let upstream = Upstream::raw(|_, stream| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        let _ = stream.write_all(format!("{head}9\r\ndata: 1\n\n\r\n4\r\ndata\r\n").as_bytes());
        hold(stream);
    });
    let spec = SpecFile::with_paths(&json!({"/a": {"get": {"operationId": "get"}}}));
    let mut session = Session::serving(&spec, &upstream, &["--timeout", "1"]);
    let result = session.call("get", &json!({}));
    assert_eq!(
        result["structuredContent"]["result"],
        json!([1]),
        "{result}"
    );
    let note = result["structuredContent"]["_notes"][0].as_str().unwrap();
    assert!(note.contains("the time for a call was over"), "{result}");
}

/// The received part of endless JSON is returned, and an API that answers so does not count as
/// failing.
#[test]
fn p10_a_stream_under_the_type_of_json_is_collected_within_the_time_of_a_call() {
    let upstream = Upstream::raw(|request, stream| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
        let chunks: &[&str] = match number(request) {
            0 => &["{\"a\":1}\n", "{\"a\":2}\n{\"a\":"],
            1 => &["{\"a\"", ":1}"],
            2 => &["{\"a\":1}\n"],
            _ if request.path() == "/watch" => &[],
            _ => &["{\"a\":{}"],
        };
        let chunks = chunks
            .iter()
            .map(|chunk| format!("{:x}\r\n{chunk}\r\n", chunk.len()));
        let _ = stream.write_all(format!("{head}{}", chunks.collect::<String>()).as_bytes());
        hold(stream);
    });
    let parameter =
        json!([{"name": "n", "in": "path", "required": true, "schema": {"type": "integer"}}]);
    let streams = json!({"200": {"description": "Events", "content": {"application/json": {"schema": {"$ref": "#/x-stream-definitions/event"}}}}});
    let spec = SpecFile::with_paths(&json!({
        "/case/{n}": {"get": {"operationId": "case", "parameters": parameter}}, "/watch": {"get": {"operationId": "watch", "responses": streams}},
    }));
    let mut session =
        Session::serving(&spec, &upstream, &["--timeout", "1", "breaker_failures: 1"]);
    for (number, expected) in [
        json!([{"a": 1}, {"a": 2}]),
        json!([{"a": 1}]),
        json!([{"a": 1}]),
    ]
    .iter()
    .enumerate()
    {
        let result = session.call("case", &json!({"n": number}));
        assert_eq!(result["structuredContent"]["result"], *expected, "{result}");
        let note = result["structuredContent"]["_notes"][0].as_str().unwrap();
        assert!(note.contains("the time for a call was over"), "{result}");
    }
    // Nothing came, and the document says that this is a stream.
    let result = session.call("watch", &json!({}));
    assert_eq!(result["structuredContent"]["result"], json!([]), "{result}");
    assert!(
        result.to_string().contains("the time for a call was over"),
        "{result}"
    );
    let result = session.call("case", &json!({"n": 3}));
    assert_eq!(result["isError"], true, "{result}");
    assert!(text(&result).contains("did not answer"), "{result}");
}

#[test]
fn p15_p23_five_hundred_calls_at_once_get_their_own_answers_and_no_cookie_of_others() {
    let upstream = Upstream::start(Box::new(|request| {
        let number = number(request);
        assert_eq!(request.header("cookie"), None);
        let cookie = format!("Set-Cookie: session=secret{number}");
        let body = json!({"number": number, "pad": "x".repeat(number % 50 * 100)}).to_string();
        reply(
            200,
            &["Content-Type: application/json", &cookie],
            body.as_bytes(),
        )
    }));
    let mut session = session(&upstream, &[]);
    let sent: std::collections::HashMap<u64, usize> = (0..500)
        .map(|number| {
            (
                session.post(
                    "tools/call",
                    &json!({"name": "case", "arguments": {"n": number}}),
                ),
                number,
            )
        })
        .collect();
    for _ in 0..500 {
        let answer: Value = session.receive();
        let number = sent[&answer["id"].as_u64().unwrap()];
        assert_eq!(answer["result"]["structuredContent"]["number"], number);
        assert!(!answer.to_string().contains("secret"), "{answer}");
    }
}
