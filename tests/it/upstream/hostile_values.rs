//! Values that would be another key, header, cookie or field if they were not data.

use serde_json::{Value, json};

use super::hostile_arguments::{pairs, session};
use crate::support::{Session, SpecFile, Upstream};

/// Texts that would be another field, header or line if they were not data.
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
        parameter
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
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
                assert!(
                    upstream.received().is_empty(),
                    "{arguments} was refused and still sent"
                );
                // Only values that cannot be distinguished from their neighbour once they are
                // joined.
                assert!(
                    keys == ["joined"] || keys == ["piped"],
                    "{arguments}: {result}"
                );
                continue;
            }
            let received = upstream.take_one();
            let sent = pairs(received.path().strip_prefix("/a?").unwrap());
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
        } else if value == "" {
            // An optional number without text is left out.
            assert_eq!(sent[0].path(), "/a", "{result}");
        } else {
            let pairs = pairs(sent[0].path().strip_prefix("/a?").unwrap());
            let number: f64 = pairs[0].1.parse().unwrap();
            assert!(
                value
                    .as_f64()
                    .is_some_and(|value| (value - number).abs() < f64::EPSILON * value),
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
        assert_eq!(
            sent[0]
                .headers
                .iter()
                .filter(|line| line.starts_with("x-free:"))
                .count(),
            1
        );
        assert!(
            !value.contains(['\r', '\n', '\u{0}']),
            "{value:?} was sent: {sent:?}"
        );
    }
    // Tab and blank are legal inside of a value (RFC 9110 section 5.5).
    assert_eq!(
        session.call("get", &json!({"X-Free": "a \tb"}))["isError"],
        false
    );
    assert_eq!(upstream.take_one().header("x-free"), Some("a \tb"));
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
    let spec = SpecFile::with_paths(
        &json!({"/a": {"get": {"operationId": "a", "parameters": parameters}}}),
    );
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
        assert_eq!(
            session.call("a", &json!({name: "model"}))["isError"],
            true,
            "{name}"
        );
    }
    assert_eq!(
        session.call("a", &json!({"X-Free": "a\r\nX-Injected: b"}))["isError"],
        true
    );
    assert!(upstream.received().is_empty());
    // A header that the operator sets is not an argument.
    assert_eq!(
        session.call("a", &json!({"X-Key": "model"}))["isError"],
        true
    );
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
    assert_eq!(
        received
            .headers
            .iter()
            .filter(|line| line.starts_with("x-key"))
            .count(),
        1
    );
}

#[test]
fn p8_a_value_stays_in_its_own_cookie_and_field() {
    let upstream = Upstream::echo();
    let fields =
        json!({"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "string"}}});
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
    for value in
        BREAKERS
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
            assert_eq!(
                session.call(tool, &json!({"body": given}))["isError"],
                false,
                "{tool} {value:?}"
            );
            let received = upstream.take_one();
            let text = String::from_utf8(received.body.clone()).unwrap();
            match tool {
                "json" => assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), given),
                "form" => assert_eq!(
                    pairs(&text),
                    [
                        ("x".to_owned(), value.to_owned()),
                        ("y".to_owned(), "z".to_owned())
                    ],
                    "{text}"
                ),
                _ => {
                    let kind = received.header("content-type").unwrap();
                    let boundary = kind
                        .split_once("boundary=")
                        .unwrap()
                        .1
                        .trim_matches('"')
                        .to_owned();
                    let delimiter = format!("--{boundary}");
                    let parts: Vec<&str> = text.split(&delimiter).collect();
                    // Before the first, two of them, and what ends the last.
                    assert_eq!(parts.len(), 4, "{value:?}: {text}");
                    let (head, content) = parts[1].split_once("\r\n\r\n").unwrap();
                    assert!(
                        head.contains("name=\"x\"") && head.lines().count() <= 4,
                        "{head}"
                    );
                    assert_eq!(content.strip_suffix("\r\n"), Some(value), "{text}");
                }
            }
        }
    }
}
