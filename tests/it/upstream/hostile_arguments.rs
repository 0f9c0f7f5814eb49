//! What a model may put into arguments: it fills its own place in the request, exactly, or it is refused before anything is
//! sent. The numbers are those that the project holds itself to.

use serde_json::{Value, json};

use crate::support::{Received, Session, SpecFile, Upstream, project};

/// Values that are odd and legal: safety is not bought by refusing data.
fn odd_values() -> Vec<String> {
    let listed = std::fs::read(project("tests/cases/hostile/odd_values.json")).unwrap();
    let mut values: Vec<String> = serde_json::from_slice(&listed).unwrap();
    values.extend(["x".repeat(512), "é".repeat(256), "💥".repeat(128)]);
    values
}

fn path(received: &Received) -> &str {
    received.line.split(' ').nth(1).unwrap()
}

fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8().unwrap().into_owned()
}

/// Key and value of every pair of a query or a form (URL Standard, application/x-www-form-urlencoded).
fn pairs(text: &str) -> Vec<(String, String)> {
    let part = |part: &str| decoded(&part.replace('+', " "));
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            pair.split_once('=')
                .map_or_else(|| (part(pair), String::new()), |(key, value)| (part(key), part(value)))
        })
        .collect()
}

fn session(paths: &Value, upstream: &Upstream) -> (Session, SpecFile) {
    let spec = SpecFile::with_paths(paths);
    (Session::serving(&spec, upstream, &[]), spec)
}

#[test]
fn p2_odd_but_legal_values_arrive_byte_for_byte_in_every_place() {
    let upstream = Upstream::echo();
    let (mut session, _spec) = session(
        &json!({"/items/{x}": {"get": {"operationId": "path"}}, "/q": {"get": {"operationId": "query", "parameters": [{"name": "x", "in": "query", "schema": {"type": "string"}}]}}}),
        &upstream,
    );
    let values = odd_values();
    assert!(values.len() >= 114, "{}", values.len());
    for value in &values {
        for tool in ["path", "query"] {
            let result = session.call(tool, &json!({"x": value}));
            assert_eq!(result["isError"], false, "{tool} {value:?}: {result}");
            let received = upstream.take_one();
            let arrived = match path(&received).strip_prefix("/items/") {
                Some(segment) => decoded(segment),
                None => match &pairs(path(&received).strip_prefix("/q?").unwrap())[..] {
                    [(key, value)] if key == "x" => value.clone(),
                    other => panic!("{value:?}: {other:?}"),
                },
            };
            assert_eq!(&arrived, value, "{tool}: {}", received.line);
        }
    }
}

#[test]
fn p3_empty_and_mistyped_values_are_refused_before_anything_is_sent() {
    let upstream = Upstream::echo();
    let (mut session, _spec) = session(
        &json!({
            "/items/{id}": {"delete": {"operationId": "text", "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}]}},
            "/numbers/{id}": {"delete": {"operationId": "number", "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}]}},
            "/anything/{id}": {"delete": {"operationId": "anything", "parameters": [{"name": "id", "in": "path", "required": true}]}},
            "/lists/{id}": {"delete": {"operationId": "list", "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "array", "items": {"type": "string"}}}]}},
        }),
        &upstream,
    );
    for tool in ["text", "number", "anything", "list"] {
        let mut refused = vec![
            json!({}),
            json!({"id": ""}),
            json!({"id": null}),
            json!({"ID": "7"}),
            json!({"id": "7", "more": 1}),
        ];
        if tool == "list" {
            refused.extend([
                json!({"id": []}),
                json!({"id": [null]}),
                json!({"id": [""]}),
                json!({"id": {"a": "b"}}),
            ]);
        } else {
            refused.extend([json!({"id": []}), json!({"id": {}}), json!({"id": {"a": [1]}})]);
        }
        if tool == "number" {
            refused.extend([
                json!({"id": "x"}),
                json!({"id": 1.5}),
                json!({"id": "7/8"}),
                json!({"id": true}),
                json!({"id": [7, 8]}),
            ]);
        }
        for arguments in refused {
            let result = session.call(tool, &arguments);
            assert_eq!(result["isError"], true, "{tool} {arguments}: {result}");
            assert!(upstream.received().is_empty(), "{tool} {arguments} was refused and still sent");
        }
    }
    assert_eq!(session.call("text", &json!({"id": "7"}))["isError"], false);
}

#[test]
fn p4_a_value_is_never_read_as_a_template() {
    let upstream = Upstream::echo();
    let (mut session, _spec) = session(
        &json!({"/{x}/{y}/{xy}": {"get": {"operationId": "get", "parameters": [{"name": "q", "in": "query", "schema": {"type": "string"}}]}}}),
        &upstream,
    );
    for value in ["{y}", "{xy}", "{x}", "{{y}}", "%7By%7D", "${y}", "{+y}", "{q}", "{y}{y}"] {
        let arguments = json!({"x": value, "y": "secret", "xy": value, "q": value});
        assert_eq!(session.call("get", &arguments)["isError"], false, "{value}");
        let received = upstream.take_one();
        let (segments, query) = path(&received).split_once('?').unwrap();
        let segments: Vec<String> = segments.split('/').skip(1).map(decoded).collect();
        assert_eq!(segments, [value, "secret", value]);
        assert_eq!(pairs(query), [("q".to_owned(), value.to_owned())]);
    }
}

/// What servers of this kind were talked into by arguments that nobody declared.
const UNDECLARED: [&str; 33] = [
    "base_url",
    "baseUrl",
    "base-url",
    "url",
    "uri",
    "URL",
    "server",
    "server_url",
    "servers",
    "host",
    "Host",
    "hostname",
    "port",
    "scheme",
    "protocol",
    "origin",
    "authority",
    "endpoint",
    "path",
    "method",
    "httpMethod",
    "headers",
    "header",
    "query",
    "cookies",
    "auth",
    "authorization",
    "proxy",
    "timeout",
    "_meta",
    "__proto__",
    "options",
    "config",
];

/// Paths that would lead elsewhere if they were taken for something else.
fn templates(host: &str) -> Vec<String> {
    vec![
        format!("//{host}/x"),
        format!("///{host}/x"),
        format!("/\\\\{host}/x"),
        format!("\\\\{host}\\x"),
        format!("/@{host}/x"),
        format!("@{host}/x"),
        format!(":80@{host}/x"),
        format!("/..//{host}/x"),
        format!("/../../{host}"),
        format!("/%2e%2e//{host}"),
        format!("/%2f%2f{host}"),
        format!("/.//{host}"),
        format!("http://{host}/x"),
        format!("HTTP://{host}/x"),
        format!("http:{host}/x"),
        format!("/http://{host}/x"),
        format!("\t//{host}/x"),
        format!("/\t/{host}/x"),
        format!("/\n/{host}/x"),
        format!("/\r/{host}/x"),
        format!("?u=http://{host}"),
        format!("#@{host}"),
        format!("/a?x=1@{host}"),
        format!("/{{x}}//{host}"),
        format!("{{x}}{host}"),
        "/{x}/{y}".into(),
        "//{x}/{y}".into(),
        "/{x}:{y}@/".into(),
    ]
}

#[test]
fn p5_no_argument_and_no_template_decides_the_host() {
    let (upstream, other) = (Upstream::echo(), Upstream::echo());
    let host = other.url.trim_start_matches("http://");
    let templates = templates(host);
    assert!(templates.len() >= 25);
    let servers = json!([{"url": other.url}, {"url": "//{host}", "variables": {"host": {"default": host}}}]);
    let paths: serde_json::Map<String, Value> = templates
        .iter()
        .enumerate()
        .map(|(number, path)| {
            let operation = json!({"operationId": format!("op_{number}"), "servers": servers});
            (path.clone(), json!({"servers": servers, "get": operation}))
        })
        .collect();
    let spec =
        SpecFile::new(&json!({"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "servers": servers, "paths": paths}).to_string());
    let mut session = Session::start(&["serve", "--spec", spec.path(), "--base-url", &upstream.url]);
    let tools: Vec<(String, Vec<String>)> = session
        .tools()
        .iter()
        .map(|tool| {
            let keys = tool["inputSchema"]["properties"].as_object().unwrap().keys().cloned().collect();
            (tool["name"].as_str().unwrap().to_owned(), keys)
        })
        .collect();
    assert!(tools.len() >= 2, "some of these templates are legal: {tools:?}");
    for (tool, keys) in &tools {
        for value in [host, &other.url, &format!("//{host}"), &format!("a@{host}"), &format!("\\\\{host}")] {
            let arguments: Value = keys
                .iter()
                .map(|key| (key.clone(), json!(value)))
                .collect::<serde_json::Map<_, _>>()
                .into();
            session.call(tool, &arguments);
        }
        for name in UNDECLARED {
            let mut arguments: serde_json::Map<String, Value> = keys.iter().map(|key| (key.clone(), json!("1"))).collect();
            let known = arguments.contains_key(name);
            arguments.insert(name.into(), json!(other.url));
            let sent_before = upstream.received().len();
            let result = session.call(tool, &arguments.into());
            assert!(known || result["isError"] == true, "{tool} {name}: {result}");
            assert!(
                known || upstream.received().len() == sent_before,
                "{tool} {name} was refused and still sent"
            );
        }
    }
    assert!(other.received().is_empty(), "{:?}", other.received());
    for received in upstream.received() {
        assert_eq!(received.header("host"), Some(upstream.url.trim_start_matches("http://")));
    }
}

/// What would be another field, header or line, if it were not data.
const BREAKERS: [&str; 26] = [
    "a&admin=true",
    "a=b",
    "a#b",
    "a?b=c",
    "a;admin=true",
    "a%26admin=true",
    "a%3Db",
    "&",
    "=",
    "#",
    "+",
    "a b",
    "a\r\nX: y",
    "a\nb",
    "a\tb",
    "a\u{0}b",
    "a,b",
    "a|b",
    "a%00",
    "%0d%0aX: y",
    "日本&x=1",
    "\"; filename=\"x",
    "--x\r\n",
    "a]b[c",
    "][",
    "&x[role]=admin",
];

#[test]
fn p6_a_query_value_reaches_exactly_one_key() {
    let upstream = Upstream::echo();
    let parameter = |name: &str, schema: Value, more: Value| {
        let mut parameter = json!({"name": name, "in": "query", "schema": schema});
        parameter.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        parameter
    };
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let object = json!({"type": "object", "properties": {"role": {"type": "string"}}});
    let (mut session, _spec) = session(
        &json!({"/a": {"get": {"operationId": "get", "parameters": [
            parameter("x", json!({"type": "string"}), json!({})),
            parameter("list", texts.clone(), json!({})),
            parameter("joined", texts.clone(), json!({"explode": false})),
            parameter("piped", texts, json!({"style": "pipeDelimited", "explode": false})),
            parameter("deep", object, json!({"style": "deepObject", "explode": true})),
            parameter("n", json!({"type": "integer"}), json!({})),
        ]}}}),
        &upstream,
    );
    for value in BREAKERS {
        let expected: [(Value, Vec<&str>); 5] = [
            (json!({"x": value}), vec!["x"]),
            (json!({"list": [value, value]}), vec!["list", "list"]),
            (json!({"joined": [value, "z"]}), vec!["joined"]),
            (json!({"piped": [value, "z"]}), vec!["piped"]),
            (json!({"deep": {"role": value}}), vec!["deep[role]"]),
        ];
        for (arguments, keys) in expected {
            let result = session.call("get", &arguments);
            if result["isError"] == true {
                assert!(upstream.received().is_empty(), "{arguments} was refused and still sent");
                // Only what cannot be told from its neighbour once it is joined.
                assert!(keys == ["joined"] || keys == ["piped"], "{arguments}: {result}");
                continue;
            }
            let received = upstream.take_one();
            let sent = pairs(path(&received).strip_prefix("/a?").unwrap());
            assert_eq!(
                sent.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(),
                keys,
                "{value:?}: {}",
                received.line
            );
            assert!(sent[0].1.starts_with(value), "{value:?}: {}", received.line);
        }
    }
    for value in [
        json!(1.5),
        json!("1.5"),
        json!("1e3x"),
        json!("x"),
        json!(""),
        json!("1&x=2"),
        json!([1]),
        json!({"a": 1}),
        json!(1e30),
        json!("0x10"),
    ] {
        let result = session.call("get", &json!({"n": value}));
        let sent = upstream.take_all();
        if result["isError"] == true {
            assert!(sent.is_empty(), "{value}");
        } else {
            let pairs = pairs(path(&sent[0]).strip_prefix("/a?").unwrap());
            let number: f64 = pairs[0].1.parse().unwrap();
            assert!(
                value.as_f64().is_some_and(|value| (value - number).abs() < f64::EPSILON * value),
                "{value} left as {}",
                sent[0].line
            );
        }
    }
}

#[test]
fn p7_a_header_value_is_one_line_or_nothing() {
    let upstream = Upstream::echo();
    let (mut session, _spec) = session(
        &json!({"/a": {"get": {"operationId": "get", "parameters": [{"name": "X-Free", "in": "header", "schema": {"type": "string"}}]}}}),
        &upstream,
    );
    for value in [
        "a\r\nX-Injected: b",
        "a\nX-Injected: b",
        "a\rX-Injected: b",
        "\r\n\r\nGET /admin HTTP/1.1\r\nHost: x\r\n\r\n",
        "a\u{0}b",
        "a\u{1}b",
        "a\u{7f}b",
        "a\u{85}b",
        "a\u{2028}X-Injected: b",
        "a\u{560a}X-Injected: b",
        "a\u{10a}X-Injected: b",
        "a\u{10d}\u{10a}X-Injected: b",
        "日本",
        "ünïcödé",
        "\u{feff}a",
        "a\u{202e}b",
    ] {
        let result = session.call("get", &json!({"X-Free": value}));
        let sent = upstream.take_all();
        if result["isError"] == true {
            assert!(sent.is_empty(), "{value:?} was refused and still sent");
            continue;
        }
        assert_eq!(sent.len(), 1, "{value:?}: exactly one request leaves");
        assert!(
            sent[0].line.starts_with("GET /a ") && sent[0].header("x-injected").is_none(),
            "{value:?}: {sent:?}"
        );
        assert_eq!(sent[0].headers.iter().filter(|line| line.starts_with("x-free:")).count(), 1);
        assert!(!value.contains(['\r', '\n', '\u{0}']), "{value:?} was sent: {sent:?}");
    }
    // Tab and blank are legal inside of a value (RFC 9110 section 5.5).
    assert_eq!(session.call("get", &json!({"X-Free": "a \tb"}))["isError"], false);
    assert_eq!(upstream.take_one().header("x-free"), Some("a \tb"));
}

#[test]
fn p8_a_value_stays_in_its_own_cookie_and_field() {
    let upstream = Upstream::echo();
    let fields = json!({"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "string"}}});
    let body = |kind: &str| json!({"content": {kind: {"schema": fields}}});
    let (mut session, _spec) = session(
        &json!({
            "/cookie": {"get": {"operationId": "cookie", "parameters": [{"name": "x", "in": "cookie", "schema": {"type": "string"}}]}},
            "/json": {"post": {"operationId": "json", "requestBody": body("application/json")}},
            "/form": {"post": {"operationId": "form", "requestBody": body("application/x-www-form-urlencoded")}},
            "/parts": {"post": {"operationId": "parts", "requestBody": body("multipart/form-data")}},
        }),
        &upstream,
    );
    for value in BREAKERS
        .into_iter()
        .chain(["a; admin=true", "a;b", "\"a; b\"", "a\\b", "\u{e9}; x=y"])
    {
        let result = session.call("cookie", &json!({"x": value}));
        let sent = upstream.take_all();
        if result["isError"] == true {
            assert!(sent.is_empty(), "{value:?} was refused and still sent");
        } else {
            let cookie = sent[0].header("cookie").unwrap();
            let of_cookie = |text: &str| {
                text.bytes()
                    .all(|byte| matches!(byte, 0x21 | 0x23..=0x2b | 0x2d..=0x3a | 0x3c..=0x5b | 0x5d..=0x7e))
            };
            let own = cookie.strip_prefix("x=").unwrap();
            assert!(of_cookie(own) && sent.len() == 1, "{value:?}: {cookie}");
        }
        let given = json!({"x": value, "y": "z"});
        for tool in ["json", "form", "parts"] {
            assert_eq!(session.call(tool, &json!({"body": given}))["isError"], false, "{tool} {value:?}");
            let received = upstream.take_one();
            let text = String::from_utf8(received.body.clone()).unwrap();
            match tool {
                "json" => assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), given),
                "form" => assert_eq!(
                    pairs(&text),
                    [("x".to_owned(), value.to_owned()), ("y".to_owned(), "z".to_owned())],
                    "{text}"
                ),
                _ => {
                    let kind = received.header("content-type").unwrap();
                    let boundary = kind.split_once("boundary=").unwrap().1.trim_matches('"').to_owned();
                    let delimiter = format!("--{boundary}");
                    let parts: Vec<&str> = text.split(&delimiter).collect();
                    // Before the first, two of them, and what ends the last.
                    assert_eq!(parts.len(), 4, "{value:?}: {text}");
                    let (head, content) = parts[1].split_once("\r\n\r\n").unwrap();
                    assert!(head.contains("name=\"x\"") && head.lines().count() <= 4, "{head}");
                    assert_eq!(content.strip_suffix("\r\n"), Some(value), "{text}");
                }
            }
        }
    }
}
