//! No argument, document, answer or client header changes where a request goes or what it carries.

use serde_json::{Value, json};

use crate::support::{HttpServer, Session, SpecFile, Upstream, petstore, reply};

/// What an attacker, or a model that was told to be one, puts into a path value.
fn hostile_values() -> Vec<String> {
    let seeds = [
        "..",
        ".",
        "../",
        "..\\",
        "/..",
        "../../admin",
        "a/../../b",
        "//evil.example",
        "https://evil.example/",
        "\\\\evil",
        "@evil.example",
        "a@evil.example:80",
        "?x=1",
        "#x",
        "a?b#c",
        ";x=1",
        "..;/",
        "%2e%2e",
        "%2E.",
        ".%2e/",
        "%2f%2fevil",
        "%5c",
        "%00",
        "%0d%0aX: y",
        "\r\nX: y",
        "\n",
        "\t",
        ".\t.",
        "\u{0}",
        "{petId}",
        "{{7*7}}",
        "${PATH}",
        "$(id)",
        "'--",
        "\"",
        "<x>",
        " ",
        "%",
        "%%",
        "%zz",
        "a\u{202e}b",
        "日本",
        "💥",
    ];
    let mut values: Vec<String> = seeds.iter().map(|seed| (*seed).to_owned()).collect();
    for seed in seeds {
        let once = percent(seed);
        values.push(percent(&once));
        values.push(once);
        values.push(format!("a{seed}"));
        values.push(format!("{seed}b"));
    }
    values
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

#[test]
fn p1_no_path_value_leaves_its_segment() {
    let upstream = Upstream::echo();
    let spec = SpecFile::with_paths(&json!({
        "/items/{x}": {"get": {"operationId": "one"}}, "/items/{x}/edit": {"get": {"operationId": "middle"}}, "/f/a.{x}.b": {"get": {"operationId": "part"}},
    }));
    let base = format!("{}/base/v1", upstream.url);
    let mut session = Session::start(&["serve", "--spec", spec.path(), "--base-url", &base]);
    let mut sent = 0;
    for value in hostile_values() {
        for (tool, before, after) in [
            ("one", "/base/v1/items/", ""),
            ("middle", "/base/v1/items/", "/edit"),
            ("part", "/base/v1/f/a.", ".b"),
        ] {
            let result = session.call(tool, &json!({"x": value}));
            if result["isError"] == true {
                assert!(upstream.received().is_empty(), "{tool} {value:?} was refused and still sent");
                continue;
            }
            sent += 1;
            let received = upstream.take_one();
            let path = received
                .line
                .strip_prefix("GET ")
                .and_then(|rest| rest.strip_suffix(" HTTP/1.1"))
                .unwrap();
            let inner = path
                .strip_prefix(before)
                .and_then(|rest| rest.strip_suffix(after))
                .unwrap_or_else(|| panic!("{tool} {value:?}: {path}"));
            assert!(
                !inner.contains(['/', '?', '#', '\\', ';']) && !inner.is_empty(),
                "{tool} {value:?}: {path}"
            );
            let once = percent_encoding::percent_decode_str(inner).decode_utf8().unwrap();
            assert_eq!(once, value, "the value arrives as it was");
            // However often a sloppy server decodes, and whatever it takes for a slash, it finds no dot segment.
            let mut read = inner.to_owned();
            for _ in 0..4 {
                let dots = read.split(['/', '\\']).map(|segment| segment.split(';').next().unwrap_or_default());
                assert!(
                    !dots.into_iter().any(|segment| segment == "." || segment == ".."),
                    "{tool} {value:?}: {path}"
                );
                read = percent_encoding::percent_decode_str(&read).decode_utf8_lossy().into_owned();
            }
        }
    }
    assert!(3 * hostile_values().len() >= 508);
    assert!(sent > 200, "most values are odd, but legal data: {sent}");
}

#[test]
fn p2_odd_but_legal_values_arrive_byte_for_byte() {
    let upstream = Upstream::echo();
    let spec = SpecFile::with_paths(&json!({"/items/{x}": {"get": {"operationId": "one"}}}));
    let mut session = Session::start(&["serve", "--spec", spec.path(), "--base-url", &upstream.url]);
    for value in [
        "100%",
        "...",
        "a..b",
        "-",
        "~",
        "a b",
        "ünïcödé",
        "a&b=c",
        "%41",
        "(1,2)",
        &"x".repeat(512),
    ] {
        assert_eq!(session.call("one", &json!({"x": value}))["isError"], false, "{value}");
        let line = upstream.take_one().line;
        let path = line
            .strip_prefix("GET /items/")
            .and_then(|rest| rest.strip_suffix(" HTTP/1.1"))
            .unwrap()
            .to_owned();
        assert_eq!(percent_encoding::percent_decode_str(&path).decode_utf8().unwrap(), value);
    }
}

#[test]
fn p5_only_the_base_url_decides_the_host() {
    let (upstream, other) = (Upstream::echo(), Upstream::echo());
    let servers = json!([{"url": other.url}]);
    let host = other.url.trim_start_matches("http:");
    let spec = SpecFile::new(
        &json!({"openapi": "3.1.0", "info": {"title": "T"}, "servers": servers, "paths": {
            "/a": {"servers": servers, "get": {"operationId": "a", "servers": servers}},
            (format!("{host}/x")): {"get": {"operationId": "b"}},
            (format!("{}/y", other.url)): {"get": {"operationId": "c"}},
            (format!("/@{}/z", host.trim_start_matches("//"))): {"get": {"operationId": "d"}},
            "/{x}/{y}": {"get": {"operationId": "e", "parameters": [{"name": "x", "in": "path"}, {"name": "y", "in": "path"}, {"name": "Host", "in": "header"}, {"name": "X-Forwarded-Host", "in": "header"}]}},
        }})
        .to_string(),
    );
    let mut session = Session::start(&["serve", "--spec", spec.path(), "--base-url", &upstream.url]);
    for tool in session.tools() {
        let name = tool["name"].as_str().unwrap().to_owned();
        for arguments in [
            json!({}),
            json!({"x": host, "y": other.url}),
            json!({"x": "", "y": host}),
            json!({"base_url": other.url, "url": other.url, "server": other.url, "host": host, "Host": host}),
        ] {
            session.call(&name, &arguments);
        }
    }
    assert_eq!(other.received().len(), 0, "{:?}", other.received());
}

#[test]
fn p7_framing_and_credentials_cannot_be_set_by_a_call() {
    let upstream = Upstream::echo();
    let names = [
        "Host",
        "Content-Length",
        "Transfer-Encoding",
        "Connection",
        "Upgrade",
        "Expect",
        "Proxy-Authorization",
        "Content-Type",
        "Authorization",
        "Cookie",
        "TE",
    ];
    let parameters: Vec<Value> = names
        .iter()
        .chain(&["X-Key", "X-Free"])
        .map(|name| json!({"name": name, "in": "header", "schema": {"type": "string"}}))
        .collect();
    let spec = SpecFile::with_paths(&json!({"/a": {"get": {"operationId": "a", "parameters": parameters}}}));
    let mut session = Session::start(&[
        "serve",
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "--header",
        "Authorization: Bearer operator",
        "--header",
        "X-Key: operator",
    ]);
    for name in names {
        assert_eq!(session.call("a", &json!({name: "model"}))["isError"], true, "{name}");
    }
    assert_eq!(session.call("a", &json!({"X-Free": "a\r\nX-Injected: b"}))["isError"], true);
    assert!(upstream.received().is_empty());
    // What the operator sets is no argument at all.
    assert_eq!(session.call("a", &json!({"X-Key": "model"}))["isError"], true);
    session.call("a", &json!({"X-Free": "fine"}));
    let received = upstream.take_one();
    assert_eq!(
        (
            received.header("authorization"),
            received.header("x-key"),
            received.header("x-free")
        ),
        (Some("Bearer operator"), Some("operator"), Some("fine"))
    );
    assert_eq!(received.headers.iter().filter(|line| line.starts_with("x-key")).count(), 1);
}

#[test]
fn p9_redirects_are_not_followed_and_p15_cookies_are_not_kept() {
    let other = Upstream::echo();
    let location = format!("Location: {}/steal", other.url);
    let upstream = Upstream::start(Box::new(move |request| match request.line.split(' ').nth(1) {
        Some("/a") => reply(307, &[&location, "Set-Cookie: s=1"], b""),
        _ => reply(200, &["Content-Type: application/json", "Set-Cookie: t=2"], b"{}"),
    }));
    let spec = SpecFile::with_paths(
        &json!({"/a": {"post": {"operationId": "a", "requestBody": {"content": {"application/json": {}}}}}, "/b": {"get": {"operationId": "b"}}}),
    );
    let mut session = Session::start(&[
        "serve",
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "--header",
        "X-Api-Key: s3cret",
    ]);
    assert_eq!(session.call("a", &json!({"body": {"x": 1}}))["isError"], true);
    let result = session.call("b", &json!({}));
    assert!(!result.to_string().contains("t=2"), "{result}");
    session.call("b", &json!({}));
    assert!(other.received().is_empty());
    assert!(upstream.received().iter().all(|request| request.header("cookie").is_none()));
    assert_eq!(upstream.received().len(), 3);
}

#[test]
fn p31_headers_of_the_client_do_not_go_upstream() {
    let upstream = Upstream::echo();
    let server = HttpServer::start(&["--spec", &petstore(), "--base-url", &upstream.url]);
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_pet","arguments":{"petId":7}}}"#;
    let (line, answer) = server.post(
        &[
            "MCP-Protocol-Version: 2025-11-25",
            "Authorization: Bearer client",
            "Cookie: c=1",
            "X-Api-Key: client",
            "X-Forwarded-For: 1.2.3.4",
        ],
        body,
    );
    assert!(line.contains(" 200 ") && answer.contains("\"ok\":true"), "{line} {answer}");
    let received = upstream.take_one();
    for name in ["authorization", "cookie", "x-api-key", "x-forwarded-for", "forwarded"] {
        assert_eq!(received.header(name), None, "{:?}", received.headers);
    }
}

#[test]
fn p12_endless_and_inflating_replies_are_bounded() {
    let upstream = Upstream::start(Box::new(|request| match request.line.split(' ').nth(1) {
        // 12 MB by its own word, and 12 MB without one.
        Some("/declared") => reply(200, &["Content-Type: text/plain"], &vec![b'x'; 12 << 20]),
        _ => [
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n".to_vec(),
            vec![b'x'; 12 << 20],
        ]
        .concat(),
    }));
    let spec = SpecFile::with_paths(&json!({"/declared": {"get": {"operationId": "declared"}}, "/open": {"get": {"operationId": "open"}}}));
    let mut session = Session::start(&["serve", "--spec", spec.path(), "--base-url", &upstream.url]);
    for tool in ["declared", "open"] {
        let result = session.call(tool, &json!({}));
        assert!(
            result["isError"] == true
                && result["content"][0]["text"]
                    .as_str()
                    .unwrap()
                    .contains("larger than 10485760 bytes"),
            "{result}"
        );
    }
}

#[test]
fn p33_text_of_a_document_is_cleaned_and_p34_cut() {
    let hidden = "Nice\u{202e}tool\u{200b}\u{e0041}\u{7} here";
    let spec = SpecFile::new(
        &json!({"openapi": "3.1.0", "info": {"title": hidden, "description": hidden}, "servers": [{"url": "http://127.0.0.1:1"}], "paths": {"/a": {"get": {
            "operationId": "a", "summary": hidden, "description": "x".repeat(5 << 20),
            "parameters": [{"name": "p", "in": "query", "description": hidden, "schema": {"type": "string", "description": hidden, "x-mcp-header": "X"}}]}}}})
        .to_string(),
    );
    let mut session = Session::start(&["serve", "--spec", spec.path()]);
    let tools = session.tools();
    let text = serde_json::to_string(&tools).unwrap();
    assert!(text.len() < 10_000 && text.contains("Nicetool here"), "{} bytes", text.len());
    assert!(!text.contains(['\u{202e}', '\u{200b}', '\u{e0041}', '\u{7}']) && !text.contains("x-mcp-header"));
}

#[test]
fn p41_a_reply_that_echoes_a_credential_does_not_show_it() {
    let upstream = Upstream::start(Box::new(|request| {
        reply(
            200,
            &["Content-Type: application/json"],
            serde_json::to_string(&request.headers).unwrap().as_bytes(),
        )
    }));
    let spec = petstore();
    let mut session = Session::start(&[
        "serve",
        "--spec",
        &spec,
        "--base-url",
        &upstream.url,
        "--header",
        "Authorization: Bearer s3cret-token",
    ]);
    let result = session.call("get_pet", &json!({"petId": 7})).to_string();
    assert!(!result.contains("s3cret-token") && result.contains("[redacted]"), "{result}");
}

#[test]
fn hostile_documents_are_decided_quickly() {
    let branches = |count: usize, name: &str| vec![json!({"$ref": format!("#/components/schemas/{name}")}); count];
    let members: serde_json::Map<String, Value> = (0..1500)
        .map(|number| (format!("p{number}"), json!({"type": "string", "description": "x".repeat(1000)})))
        .collect();
    let into: serde_json::Map<String, Value> = (0..1500)
        .map(|number| {
            (
                format!("q{number}"),
                json!({"$ref": format!("#/components/schemas/Src/properties/p{number}")}),
            )
        })
        .collect();
    let body = |name: &str, media: &str| json!({"post": {"requestBody": {"content": {media: {"schema": {"$ref": format!("#/components/schemas/{name}")}}}}}});
    let spec = SpecFile::new(
        &json!({"openapi": "3.1.0", "info": {"title": "T"}, "paths": {"/a": body("A", "application/json"), "/b": body("B", "multipart/form-data"), "/c": body("C", "application/json")},
            "components": {"schemas": {
                "A": {"required": ["x"], "allOf": branches(300, "A")}, "B": {"oneOf": branches(12, "B")},
                "Src": {"type": "object", "properties": members}, "C": {"type": "object", "properties": into}}}})
        .to_string(),
    );
    let started = std::time::Instant::now();
    let output = crate::support::run(&["tools", "--spec", spec.path()]);
    assert!(
        crate::support::stdout(&output).contains("3 tools"),
        "{}",
        crate::support::stderr(&output)
    );
    let yaml = SpecFile::new(&format!("openapi: 3.1.0\npaths: {}", "[".repeat(100_000)));
    assert_eq!(crate::support::run(&["tools", "--spec", yaml.path()]).status.code(), Some(3));
    let merged = SpecFile::new(&format!(
        "openapi: 3.1.0\nx-a: &a {{k: \"{}\"}}\npaths:\n  /a: {{get: {{}}}}\nx-b:\n{}",
        "y".repeat(1 << 20),
        "  <<: *a\n".repeat(400)
    ));
    assert_eq!(crate::support::run(&["tools", "--spec", merged.path()]).status.code(), Some(3));
    assert!(started.elapsed() < std::time::Duration::from_secs(20), "{:?}", started.elapsed());
}

#[test]
fn a_hostile_error_page_is_read_in_one_pass() {
    let page = "<SCRIPT></SCRIPT>".repeat(61_440);
    let upstream = Upstream::start(Box::new(move |_| reply(500, &["Content-Type: text/html"], page.as_bytes())));
    let spec = petstore();
    let mut session = Session::start(&["serve", "--spec", &spec, "--base-url", &upstream.url]);
    let started = std::time::Instant::now();
    assert_eq!(session.call("get_pet", &json!({"petId": 7}))["isError"], true);
    assert!(started.elapsed() < std::time::Duration::from_secs(3));
}

#[test]
fn p41_a_credential_stays_out_of_logs_answers_and_errors() {
    let upstream = Upstream::start(Box::new(|_| reply(401, &[], b"")));
    let spec = petstore();
    let args = [
        "serve",
        "--spec",
        &spec,
        "--base-url",
        &upstream.url,
        "--header-env",
        "Authorization=TEST_TOKEN",
        "--log-level",
        "trace",
    ];
    let mut session = Session::start_with(&args, &[("TEST_TOKEN", "Bearer s3cret-token")]);
    let result = session.call("get_pet", &json!({"petId": 7}));
    assert_eq!(upstream.take_one().header("authorization"), Some("Bearer s3cret-token"));
    session.close_stdin();
    session.wait();
    assert!(
        !result.to_string().contains("s3cret") && !session.logs().contains("s3cret"),
        "{}",
        session.logs()
    );
}

/// A stream that never ends is given as far as the call's time goes.
#[test]
fn an_endless_stream_is_collected_within_the_time_of_a_call() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut lines = std::io::BufRead::lines(std::io::BufReader::new(stream.try_clone().unwrap()));
                assert!(lines.any(|line| line.unwrap().is_empty()), "a request's head");
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
                let _ = std::io::Write::write_all(&mut stream, format!("{head}9\r\ndata: 1\n\n\r\n4\r\ndata\r\n").as_bytes());
                // Held open until the other side has had enough.
                let _ = std::io::Read::read_to_end(&mut stream, &mut Vec::new());
            });
        }
    });
    let spec = SpecFile::with_paths(&json!({"/a": {"get": {"operationId": "get"}}}));
    let url = format!("http://{address}");
    let mut session = Session::start(&["serve", "--spec", spec.path(), "--base-url", &url, "--timeout", "1"]);
    let result = session.call("get", &json!({}));
    assert_eq!(result["structuredContent"], json!({"result": [1]}), "{result}");
    assert!(
        result["content"][1]["text"]
            .as_str()
            .unwrap()
            .contains("the time for a call was over"),
        "{result}"
    );
}

/// JSON in JSON, under a key that the JSON library gives a meaning of its own: as deep as its author likes.
fn nested(levels: usize) -> String {
    let mut text = "1".to_owned();
    for _ in 0..levels {
        let inner = json!({ "$serde_json::private::RawValue": text }).to_string();
        text = format!("{}{inner}{}", "[".repeat(120), "]".repeat(120));
    }
    text
}

#[test]
fn nothing_nests_deeper_than_it_says() {
    let deep = nested(12);
    let body = deep.clone();
    let upstream = Upstream::start(Box::new(move |request| {
        let status = if request.line.contains("/bad") { 400 } else { 200 };
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
    let mut session = Session::start(&["serve", "--spec", spec.path(), "--base-url", &upstream.url]);
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
    let server = crate::support::HttpServer::start(&["--spec", spec.path(), "--base-url", &upstream.url]);
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{deep}}}}}"#);
    let (status, _) = server.post(&["MCP-Protocol-Version: 2025-11-25"], &body);
    assert!(status.contains("400"), "{status}");
    let (status, _) = server.post(
        &["MCP-Protocol-Version: 2025-11-25"],
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
    );
    assert!(status.contains("200"), "{status}");
}

/// What looks like the end of a part at every byte is looked through once.
#[test]
fn a_multipart_reply_of_delimiters_is_read_in_one_pass() {
    let dashes = "-".repeat(4 << 20);
    let upstream = Upstream::start(Box::new(move |request| {
        let boundary = if request.line.contains("/long") {
            "-".repeat(30_000) + "x"
        } else {
            "-".repeat(60) + "x"
        };
        reply(
            200,
            &[&format!("Content-Type: multipart/mixed; boundary={boundary}")],
            dashes.as_bytes(),
        )
    }));
    let spec = SpecFile::with_paths(&json!({"/long": {"get": {"operationId": "long"}}, "/short": {"get": {"operationId": "short"}}}));
    let mut session = Session::start(&["serve", "--spec", spec.path(), "--base-url", &upstream.url]);
    let begun = std::time::Instant::now();
    for tool in ["long", "short"] {
        let result = session.call(tool, &json!({}));
        assert!(result.to_string().len() < 70_000, "{tool}: a result is as short as any other");
    }
    assert!(begun.elapsed() < std::time::Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[test]
fn the_results_limit_holds_for_keys_headers_parts_and_cursors() {
    let upstream = Upstream::start(Box::new(|request| {
        let long = "k".repeat(300_000);
        match request.line.split(' ').nth(1).unwrap() {
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
                let part = format!("--b\r\nContent-Type: text/plain\r\n\r\n{}\r\n", "k".repeat(40_000));
                reply(
                    200,
                    &["Content-Type: multipart/mixed; boundary=b"],
                    (part.repeat(50) + "--b--").as_bytes(),
                )
            }
        }
    }));
    let cursor = json!({"operationId": "cursor", "parameters": [{"name": "cursor", "in": "query"}]});
    let spec = SpecFile::with_paths(
        &json!({"/key": {"get": {"operationId": "key"}}, "/header": {"get": {"operationId": "header"}},
        "/cursor": {"get": cursor}, "/parts": {"get": {"operationId": "parts"}}}),
    );
    let mut session = Session::start(&["serve", "--spec", spec.path(), "--base-url", &upstream.url]);
    for tool in ["key", "header", "cursor", "parts"] {
        let length = session.call(tool, &json!({})).to_string().len();
        assert!(length < 130_000, "{tool}: {length}");
    }
    assert_eq!(session.call("key", &json!({}))["structuredContent"], json!({"a": 2}));
}
