//! Replies and results that are too large: endless, swollen, deeply nested, or slow to read; and
//! the cut of texts.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::hostile_replies::{gzip, is_well, number, pour, session, well, zlib};
use crate::support::{HttpServer, Session, SpecFile, Upstream, petstore, reply, text, within};

/// The memory of the server and the size of every answer stay bounded.
#[cfg(target_os = "linux")]
#[test]
fn p12_endless_and_swollen_replies_take_little_memory() {
    use crate::support::memory;

    const ENDLESS: usize = 6;
    let million = vec![b' '; 1 << 20];
    // Members of a gzip file follow one another (RFC 1952 section 2.2): 1 GiB in all.
    let swollen: Vec<u8> = gzip(&million).repeat(1024);
    let twice = gzip(&swollen);
    let deflated = zlib(&vec![b' '; 64 << 20]);
    let zeros = format!("[{}0]", "0,".repeat(8 << 20)).into_bytes();
    let max_zeros = format!("[{}0]", "0,".repeat(5_000_000)).into_bytes();
    let max_objects = format!("[{}{{}}]", "{\"a\":0},".repeat(1_200_000)).into_bytes();
    let poured = Arc::new(AtomicUsize::new(0));
    let total = Arc::clone(&poured);
    let upstream = Upstream::raw(move |request, stream| {
        let head = |more: &str| format!("HTTP/1.1 200 OK\r\nConnection: close\r\n{more}\r\n\r\n");
        let mut whole = |kind: &str, bytes: &[u8]| {
            let head = head(&format!(
                "Content-Type: application/json\r\n{kind}Content-Length: {}",
                bytes.len()
            ));
            let _ = stream
                .write_all(head.as_bytes())
                .and_then(|()| stream.write_all(bytes));
        };
        let chunk =
            |text: &[u8]| [format!("{:x}\r\n", text.len()).as_bytes(), text, b"\r\n"].concat();
        let (more, piece) = match number(request) {
            0 => (
                "Content-Type: text/plain\r\nContent-Length: 10737418240".into(),
                million.clone(),
            ),
            1 => (
                "Content-Type: text/plain\r\nTransfer-Encoding: chunked".into(),
                chunk(&million),
            ),
            2 => (
                "Content-Type: application/octet-stream".into(),
                million.clone(),
            ),
            3 => (
                "Content-Type: text/event-stream".into(),
                [b"data: ", &million[..], b"\n\n"].concat(),
            ),
            4 => (
                "Content-Type: application/x-ndjson".into(),
                [b"\"", &million[..], b"\"\n"].concat(),
            ),
            5 => (
                "Content-Type: multipart/mixed; boundary=b".into(),
                [b"--b\r\n\r\n", &million[..], b"\r\n"].concat(),
            ),
            6 => return whole("Content-Encoding: gzip\r\n", &swollen),
            7 => return whole("Content-Encoding: deflate\r\n", &deflated),
            8 => return whole("Content-Encoding: gzip, gzip\r\n", &twice),
            9 => return whole("", &zeros),
            10 => return whole("", &max_zeros),
            11 => return whole("", &max_objects),
            _ => {
                let _ = stream.write_all(&well());
                return;
            }
        };
        let _: String = more;
        let _ = stream.write_all(head(&more).as_bytes());
        total.fetch_add(pour(stream, &piece, 10 << 30), SeqCst);
    });
    let mut session = session(&upstream, &["--timeout", "60", "retries: 0"]);
    is_well(&mut session);
    let before = memory(session.pid());
    let watched = session.pid();
    let done = Arc::new(AtomicUsize::new(0));
    let watch = {
        let done = Arc::clone(&done);
        std::thread::spawn(move || {
            let mut most = 0;
            while done.load(SeqCst) == 0 {
                most = most.max(memory(watched));
                std::thread::park_timeout(Duration::from_millis(5));
            }
            most
        })
    };
    for number in 0..12 {
        let started = Instant::now();
        let result = session.call("case", &json!({"n": number}));
        // Both a length that is announced and one that is not.
        if number == 0 || number == 2 {
            assert!(
                text(&result).contains("larger than 10485760 bytes"),
                "{number}: {result}"
            );
        }
        let length = result.to_string().len();
        assert!(length < 200_000, "{number}: {length} bytes");
        assert_eq!(
            result["isError"],
            number < 10 && number != 3 && number != 4,
            "{number}: {}",
            result.to_string().chars().take(300).collect::<String>()
        );
        assert!(
            started.elapsed() < within(15).min(Duration::from_secs(50)),
            "{number}: {:?}",
            started.elapsed()
        );
        is_well(&mut session);
    }
    done.store(1, SeqCst);
    let most = watch.join().unwrap();
    assert!(
        most.saturating_sub(before) < 256,
        "{before} MiB grew to {most}"
    );
    // Kernels buffer some megabytes of each on the way.
    assert!(
        poured.load(SeqCst) < ENDLESS * (64 << 20),
        "{} bytes were taken",
        poured.load(SeqCst)
    );
}

#[test]
fn p10_a_hostile_error_page_is_read_in_one_pass() {
    let page = "<SCRIPT></SCRIPT>".repeat(61_440);
    let upstream = Upstream::start(Box::new(move |_| {
        reply(500, &["Content-Type: text/html"], page.as_bytes())
    }));
    let mut session =
        Session::start(&["serve", "--spec", &petstore(), "--base-url", &upstream.url]);
    let started = Instant::now();
    assert_eq!(
        session.call("get_pet", &json!({"petId": 7}))["isError"],
        true
    );
    assert!(started.elapsed() < within(5));
}

#[test]
fn p13_a_text_is_cut_between_characters() {
    let sizes = [299_usize, 300, 301, 1_000, 100_000];
    let characters = ["é", "日", "💥"];
    let upstream = Upstream::start(Box::new(move |request| {
        let number = number(request);
        let (size, offset, character, bad) = (
            sizes[number % 5],
            number / 5 % 4,
            characters[number / 20 % 3],
            number >= 60,
        );
        let text = "a".repeat(offset) + &character.repeat(size);
        let kind = "Content-Type: text/plain; charset=utf-8";
        reply(if bad { 400 } else { 200 }, &[kind], text.as_bytes())
    }));
    let mut session = session(&upstream, &["--max-result-tokens", "100"]);
    for number in 0..120 {
        let result = session.call("case", &json!({"n": number}));
        assert_eq!(result["isError"], number >= 60, "{result}");
        let text = text(&result);
        let character = characters[number / 20 % 3];
        assert!(
            !text.contains('\u{fffd}') && text.len() < if number < 60 { 600 } else { 20_000 },
            "{number}: {text}"
        );
        let body = text
            .split_once('\n')
            .filter(|_| number >= 60)
            .map_or(text, |(_, body)| body);
        assert!(body.contains(character), "{number}: {text}");
    }
}

#[test]
fn p16_heads_that_are_far_too_large_are_errors() {
    let upstream = Upstream::raw(|request, stream| {
        let _ = match number(request) {
            0 => {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nX-Long: ");
                pour(stream, &vec![b'x'; 1 << 16], 10 << 20);
                stream.write_all(b"\r\nContent-Length: 2\r\n\r\n{}")
            }
            1 => {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n");
                let lines: String = (0..50_000)
                    .map(|number| format!("X-{number}: y\r\n"))
                    .collect();
                let _ = stream.write_all(lines.as_bytes());
                stream.write_all(b"Content-Length: 2\r\n\r\n{}")
            }
            2 => stream.write_all(
                format!(
                    "HTTP/1.1 200 {}\r\nContent-Length: 2\r\n\r\n{{}}",
                    "x".repeat(1 << 20)
                )
                .as_bytes(),
            ),
            _ => stream.write_all(&well()),
        };
    });
    let mut session = session(&upstream, &["--timeout", "10", "retries: 0"]);
    for number in 0..3 {
        let result = session.call("case", &json!({"n": number}));
        assert_eq!(result["isError"], true, "{number}: {result}");
        assert!(result.to_string().len() < 100_000, "{number}");
    }
    is_well(&mut session);
}

#[cfg(target_os = "linux")]
#[test]
fn p12_a_list_that_does_not_fit_a_result_takes_few_times_its_size() {
    use crate::support::peak_memory;

    const MIB: usize = 2;
    let list = |begin: &str, item: &str, end: &str| {
        format!("{begin}{}{end}", item.repeat((MIB << 20) / item.len() - 8))
    };
    let json = "application/json";
    for (kind, body) in [
        (json, list("[", "0,", "1]")),
        (json, list(r#"["\/","#, "0,", "1]")),
        (json, list("[1E5,", "[],", "[]]")),
        (json, list(r#"[{"a":1,"a":2},"#, r#"{"a":0},"#, "1]")),
        (json, list(r#"{"items":["#, "0,", r#"1],"total":9999999}"#)),
        ("application/x-ndjson", list("[", "0,", "1]\n2\n")),
        (
            "text/event-stream",
            list("id: 1\ndata: [", "[],", "[]]\n\n"),
        ),
    ] {
        let begin = body.chars().take(40).collect::<String>();
        let content_type = format!("Content-Type: {kind}");
        let upstream = Upstream::start(Box::new(move |request| match request.path() {
            "/short" => reply(200, &["Content-Type: application/json"], b"[1]"),
            _ => reply(200, &[&content_type], body.as_bytes()),
        }));
        let pages = json!([{"name": "offset", "in": "query", "schema": {"type": "integer"}}]);
        let spec = SpecFile::with_paths(&json!({
            "/short": {"get": {"operationId": "short"}}, "/long": {"get": {"operationId": "long", "parameters": pages}},
        }));
        let mut session = Session::serving(&spec, &upstream, &[]);
        session.call("short", &json!({}));
        let before = peak_memory(session.pid());
        let cut = session.call("long", &json!({}));
        assert!(
            cut["isError"] == false && cut.to_string().contains("was cut"),
            "{begin}"
        );
        let grown = peak_memory(session.pid()) - before;
        assert!(grown <= 10 * MIB, "{grown} MiB for {MIB} MiB of {begin}");
    }
}

#[test]
fn p12_the_results_limit_holds_for_keys_headers_parts_and_cursors() {
    let upstream = Upstream::start(Box::new(|request| {
        let long = "k".repeat(300_000);
        match request.path() {
            "/key" => reply(
                200,
                &["Content-Type: application/json"],
                format!("{{\"{long}\":1,\"a\":2}}").as_bytes(),
            ),
            "/header" => reply(200, &[&format!("ETag: {}", "k".repeat(90_000))], b""),
            "/cursor" => reply(
                200,
                &[
                    "Content-Type: application/json",
                    &format!("Link: </cursor?cursor={}>; rel=next", "k".repeat(90_000)),
                ],
                b"[1]",
            ),
            _ => {
                let part = format!(
                    "--b\r\nContent-Type: text/plain\r\n\r\n{}\r\n",
                    "k".repeat(40_000)
                );
                reply(
                    200,
                    &["Content-Type: multipart/mixed; boundary=b"],
                    (part.repeat(50) + "--b--").as_bytes(),
                )
            }
        }
    }));
    let cursor =
        json!({"operationId": "cursor", "parameters": [{"name": "cursor", "in": "query"}]});
    let spec = SpecFile::with_paths(
        &json!({"/key": {"get": {"operationId": "key"}}, "/header": {"get": {"operationId": "header"}},
        "/cursor": {"get": cursor}, "/parts": {"get": {"operationId": "parts"}}}),
    );
    let mut session = Session::serving(&spec, &upstream, &[]);
    for tool in ["key", "header", "cursor", "parts"] {
        let length = session.call(tool, &json!({})).to_string().len();
        assert!(length < 130_000, "{tool}: {length}");
    }
    assert_eq!(session.call("key", &json!({}))["structuredContent"]["a"], 2);
}

/// A body in which every byte may begin a delimiter is read in one pass.
#[test]
fn p10_a_multipart_reply_of_delimiters_is_read_in_one_pass() {
    let dashes = "-".repeat(4 << 20);
    let upstream = Upstream::start(Box::new(move |request| {
        let boundary = if request.line.contains("/long") {
            "-".repeat(30_000) + "x"
        } else {
            "-".repeat(60) + "x"
        };
        reply(
            200,
            &[&format!(
                "Content-Type: multipart/mixed; boundary={boundary}"
            )],
            dashes.as_bytes(),
        )
    }));
    let spec = SpecFile::with_paths(
        &json!({"/long": {"get": {"operationId": "long"}}, "/short": {"get": {"operationId": "short"}}}),
    );
    let mut session = Session::serving(&spec, &upstream, &[]);
    let begun = Instant::now();
    for tool in ["long", "short"] {
        let result = session.call(tool, &json!({}));
        assert!(
            result.to_string().len() < 70_000,
            "{tool}: a result is as short as any other"
        );
    }
    assert!(begun.elapsed() < within(10), "{:?}", begun.elapsed());
}

/// JSON as a text within JSON, under a key to which the JSON library gives a special meaning, any
/// number of times.
fn nested(levels: usize) -> String {
    let mut text = "1".to_owned();
    for _ in 0..levels {
        let inner = json!({ "$serde_json::private::RawValue": text }).to_string();
        text = format!("{}{inner}{}", "[".repeat(120), "]".repeat(120));
    }
    text
}

#[test]
fn p12_json_within_json_does_not_nest_deeper_than_the_limit() {
    let deep = nested(12);
    let body = deep.clone();
    let upstream = Upstream::start(Box::new(move |request| {
        let status = if request.line.contains("/bad") {
            400
        } else {
            200
        };
        let (kind, body) = if request.line.contains("/events") {
            ("text/event-stream", format!("data: {body}\n\n"))
        } else {
            ("application/json", body.clone())
        };
        reply(status, &[&format!("Content-Type: {kind}")], body.as_bytes())
    }));
    let any = json!({"requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}}, "operationId": "send"});
    let spec = SpecFile::with_paths(&json!({
        "/good": {"get": {"operationId": "good"}, "post": any},
        "/bad": {"get": {"operationId": "bad"}},
        "/events": {"get": {"operationId": "events"}}
    }));
    let mut session = Session::serving(&spec, &upstream, &[]);
    for tool in ["good", "bad", "events"] {
        let result = session.call(tool, &json!({}));
        assert_eq!(result["isError"], tool != "events", "{tool}");
    }
    session.call("send", &json!({"body": format!("{{\"a\":{deep}}}")}));
    session.send_text(&format!(
        r#"{{"jsonrpc":"2.0","id":"deep","method":"tools/call","params":{{"name":"send","arguments":{{"body":{{"a":{deep}}}}}}}}}"#
    ));
    assert_eq!(session.receive()["error"]["code"], -32600);
    assert!(!session.tools().is_empty(), "still there");
    let server = HttpServer::start(&["--spec", spec.path(), "--base-url", &upstream.url]);
    let body =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{deep}}}}}"#);
    let (status, _) = server.post(&["MCP-Protocol-Version: 2025-11-25"], &body);
    assert!(status.contains("400"), "{status}");
    let (status, _) = server.post(
        &["MCP-Protocol-Version: 2025-11-25"],
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
    );
    assert!(status.contains("200"), "{status}");
}

#[test]
fn p13_many_short_members_use_the_room_of_a_result() {
    let members: serde_json::Map<String, Value> = (0..5000)
        .map(|number| (format!("k{number:04}"), 1.into()))
        .collect();
    let body = Value::Object(members).to_string();
    let upstream = Upstream::start(Box::new(move |_| {
        reply(200, &["Content-Type: application/json"], body.as_bytes())
    }));
    let spec = SpecFile::with_paths(&json!({"/a": {"get": {"operationId": "get"}}}));
    let result = Session::serving(&spec, &upstream, &["--max-result-tokens", "5000"])
        .call("get", &json!({}));
    let kept = result["structuredContent"].as_object().unwrap().len();
    assert!(
        (1400..=1500).contains(&kept),
        "{kept} of 5000: {}",
        result["structuredContent"]["_notes"]
    );
}

/// RFC 1952 section 2.2: a gzip has members, one behind the other. RFC 9110 section 8.4.1.3: a
/// recipient should treat `x-gzip` as `gzip`.
#[test]
fn p11_p12_all_members_of_a_gzip_are_decompressed_within_the_limits() {
    for coding in ["Content-Encoding: gzip", "Content-Encoding: X-GZIP"] {
        let members = [gzip(b"{\"a\":"), gzip(b""), gzip(b"1}")].concat();
        let mut wrong_sum = members.clone();
        let at = wrong_sum.len() - 6;
        wrong_sum[at] ^= 0xff;
        let swollen = gzip(&vec![b' '; 5 << 20]).repeat(4);
        let upstream = Upstream::start(Box::new(move |request| {
            let head = ["Content-Type: application/json", coding];
            match number(request) {
                0 => reply(200, &head, &members),
                1 => reply(200, &head, &[&members[..], &[0; 512]].concat()),
                2 => reply(200, &head, b""),
                3 => reply(200, &head, &swollen),
                4 => reply(200, &head, b"no gzip"),
                5 => reply(200, &head, &members[..members.len() - 1]),
                6 => reply(200, &head, &wrong_sum),
                _ => well(),
            }
        }));
        let mut session = session(&upstream, &["retries: 0"]);
        let mut call = |number: u32| session.call("case", &json!({"n": number}));
        for number in 0..2 {
            assert_eq!(
                call(number)["structuredContent"],
                json!({"a": 1}),
                "{coding} {number}"
            );
        }
        assert_eq!(call(2)["isError"], false, "{coding}");
        let broken = "cannot be decompressed";
        for (number, why) in [
            (3, "larger than 10485760 bytes"),
            (4, broken),
            (5, broken),
            (6, broken),
        ] {
            let result = call(number);
            assert!(
                result["isError"] == true && text(&result).contains(why),
                "{coding} {number}: {result}"
            );
        }
    }
}
