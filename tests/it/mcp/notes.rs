//! The parts of a result that hosts of each kind show the model: the structured content alone, the
//! text alone, or both.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::{HttpServer, Session, SpecFile, Upstream, reply};

/// Parts of a result that a host shows the model.
#[derive(Debug, Clone, Copy)]
enum Host {
    /// The structured content if there is some, else the text.
    Structured,
    /// The text blocks.
    Text,
    /// The text blocks joined, as a program reads them that expects JSON.
    Program,
}

impl Host {
    const ALL: [Self; 3] = [Self::Structured, Self::Text, Self::Program];

    fn shown(self, result: &Value) -> String {
        let blocks = result["content"].as_array().unwrap();
        let text: String = blocks
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect();
        match (self, result.get("structuredContent")) {
            (Self::Structured, Some(content)) => content.to_string(),
            (Self::Program, Some(content)) if content["result"].as_str().is_none() => {
                serde_json::from_str::<Value>(&text)
                    .unwrap_or_else(|error| panic!("{error}: {text}"))
                    .to_string()
            }
            _ => text,
        }
    }
}

/// A reply, and a part of the note that belongs to it.
struct Case {
    tool: &'static str,
    arguments: Value,
    reply: Vec<u8>,
    note: &'static str,
}

fn json_reply(headers: &[&str], body: &str) -> Vec<u8> {
    let headers: Vec<&str> = ["Content-Type: application/json"]
        .iter()
        .chain(headers)
        .copied()
        .collect();
    reply(200, &headers, body.as_bytes())
}

fn cases() -> Vec<Case> {
    let case = |tool, arguments, reply, note| Case {
        tool,
        arguments,
        reply,
        note,
    };
    let long = format!(
        "[{}]",
        vec![format!("\"{}\"", "x".repeat(100)); 100].join(",")
    );
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    vec![
        case(
            "list",
            json!({}),
            json_reply(&[], &long),
            "The reply was cut",
        ),
        case(
            "list",
            json!({}),
            json_reply(&["Link: </list?page=2>; rel=\"next\""], "[1]"),
            "There is more",
        ),
        case(
            "list",
            json!({"page": "3"}),
            json_reply(&[], "[]"),
            "The arguments were repaired",
        ),
        case(
            "list",
            json!({}),
            json_reply(&["X-Total-Count: 7"], "{}"),
            "X-Total-Count: 7",
        ),
        case(
            "list",
            json!({}),
            json_reply(&[], r#"{"a":"\ud800"}"#),
            "half of a surrogate pair",
        ),
        case(
            "list",
            json!({}),
            json_reply(&[], &deep),
            "nests too deeply",
        ),
        case(
            "get",
            json!({"id": 1}),
            json_reply(&["ETag: \"v1\""], r#"{"_notes":1}"#),
            "pass it as If-Match to put",
        ),
        case(
            "list",
            json!({"response_filter": ".a | error"}),
            json_reply(&[], r#"{"a":1}"#),
            "The filter was not applied",
        ),
        case(
            "some",
            json!({}),
            json_reply(&[], "[1,2,3]"),
            "Only some of the items",
        ),
        case(
            "list",
            json!({}),
            reply(
                200,
                &["Content-Type: text/plain"],
                "line\n".repeat(2000).as_bytes(),
            ),
            "The reply was cut",
        ),
        case(
            "list",
            json!({}),
            reply(
                400,
                &["Content-Type: text/plain", "X-Total-Count: 7"],
                b"no",
            ),
            "X-Total-Count: 7",
        ),
        case(
            "list",
            json!({}),
            reply(
                202,
                &["Content-Type: application/json", "Location: /jobs/7"],
                b"{}",
            ),
            "Location: /jobs/7",
        ),
    ]
}

fn document() -> Value {
    let total = json!({"X-Total-Count": {"schema": {"type": "integer"}}});
    let body =
        json!({"application/json": {"schema": {"type": "array", "items": {"type": "string"}}}});
    let replies = json!({"200": {"description": "All", "headers": total, "content": body}, "400": {"description": "No", "headers": total}});
    let page = json!([{"name": "page", "in": "query", "schema": {"type": "integer"}}]);
    let id = json!({"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}});
    let tag = json!({"name": "If-Match", "in": "header", "schema": {"type": "string"}});
    let get =
        |id: &str| json!({"get": {"operationId": id, "parameters": page, "responses": replies}});
    json!({"openapi": "3.1.0", "info": {"title": "Notes", "version": "1"}, "paths": {
        "/list": get("list"), "/some": get("some"),
        "/items/{id}": {"get": {"operationId": "get", "parameters": [&id]}, "put": {"operationId": "put", "parameters": [&id, tag]}}
    }})
}

/// The result of a call in each version of the protocol.
fn over_http_in_every_version(server: &HttpServer, tool: &str, arguments: &Value) -> Vec<Value> {
    let modern =
        server.call_stateless(tool, json!({"arguments": arguments}), &json!({}))["result"].clone();
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}});
    let older = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"].map(|version| {
        let (status, answer) = server.post(
            &[&format!("MCP-Protocol-Version: {version}")],
            &call.to_string(),
        );
        assert!(status.contains("200"), "{version}: {status}");
        serde_json::from_str::<Value>(&answer).unwrap()["result"].clone()
    });
    older.into_iter().chain([modern]).collect()
}

#[test]
fn every_host_shows_every_note_over_both_transports_in_every_version() {
    let next: Arc<Mutex<Vec<u8>>> = Arc::default();
    let answer = Arc::clone(&next);
    let upstream = Upstream::start(Box::new(move |_| answer.lock().unwrap().clone()));
    let spec = SpecFile::new(&document().to_string());
    let config = SpecFile::new(
        &json!({"overrides": [
            {"match": {"operation": "some"}, "response": {"max_items": 2}}
        ]})
        .to_string(),
    );
    for schemas in ["off", "lenient"] {
        for mode in ["all", "search"] {
            let args = [
                "serve",
                "--spec",
                spec.path(),
                "--base-url",
                &upstream.url,
                "--config",
                config.path(),
                "retries: 0",
                "--max-result-tokens",
                "500",
                "response_filter: jq",
                &format!("output_schemas: {schemas}"),
                "--tools",
                mode,
            ];
            let mut session = Session::start(&args);
            let server = HttpServer::start(&args[1..]);
            for case in cases() {
                *next.lock().unwrap() = case.reply.clone();
                let (tool, arguments) = if mode == "search" {
                    (
                        "call_read",
                        json!({"operation": case.tool, "arguments": case.arguments}),
                    )
                } else {
                    (case.tool, case.arguments)
                };
                let result = session.call(tool, &arguments);
                for over_http in over_http_in_every_version(&server, tool, &arguments) {
                    assert_eq!(
                        over_http["content"], result["content"],
                        "{schemas}, {mode}: {over_http}"
                    );
                    assert_eq!(over_http["structuredContent"], result["structuredContent"]);
                }
                let note = match mode {
                    "search" => case
                        .note
                        .replace("to put", "to `call_destructive` with operation `put`"),
                    _ => case.note.to_owned(),
                };
                for host in Host::ALL {
                    let shown = host.shown(&result);
                    assert!(
                        shown.contains(&note),
                        "{host:?}, {schemas}, {mode}: {note} is not in {shown}"
                    );
                }
                if case.note == "There is more" && mode == "search" {
                    let shown = Host::Text.shown(&result);
                    assert!(
                        shown.contains("call `call_read` with operation `list`"),
                        "{shown}"
                    );
                }
            }
        }
    }
}

/// A list of a hundred thousand bytes.
fn long_reply() -> Upstream {
    let items: Vec<Value> = (0..2000)
        .map(|id| json!({"id": id, "name": "x".repeat(30)}))
        .collect();
    let body = Value::from(items).to_string();
    Upstream::start(Box::new(move |_| {
        reply(200, &["Content-Type: application/json"], body.as_bytes())
    }))
}

#[test]
fn a_client_sets_how_long_a_result_may_be_unless_the_operator_does() {
    let upstream = long_reply();
    let spec = SpecFile::new(&document().to_string());
    let kept = |flags: &[&str]| {
        let args = [
            &["serve", "--spec", spec.path(), "--base-url", &upstream.url],
            flags,
        ]
        .concat();
        let result = Session::start(&args).call("list", &json!({}));
        let content = &result["structuredContent"];
        assert!(
            content["_notes"][0]
                .as_str()
                .unwrap()
                .contains("of 2000 items are shown"),
            "{}",
            content["_notes"]
        );
        content.to_string().len()
    };
    assert!((55_000..=61_000).contains(&kept(&[])));
    assert!((24_000..=28_000).contains(&kept(&["--client", "codex"])));
    assert!((10_000..=13_000).contains(&kept(&[
        "--client",
        "codex",
        "--max-result-tokens",
        "4000"
    ])));
}

#[test]
fn tools_say_to_claude_code_how_long_a_result_may_be_if_that_is_raised() {
    let spec = SpecFile::new(&document().to_string());
    let sizes = |flags: &[&str]| -> Vec<Value> {
        let args = [&["serve", "--spec", spec.path(), "--mock"], flags].concat();
        let tools = Session::start(&args).tools();
        tools
            .iter()
            .map(|tool| tool["_meta"]["anthropic/maxResultSizeChars"].clone())
            .collect()
    };
    let raised = ["--client", "claude-code", "--max-result-tokens", "40000"];
    for mode in ["all", "search"] {
        let sizes = sizes(&[&raised[..], &["--tools", mode]].concat());
        assert!(
            !sizes.is_empty() && sizes.iter().all(|size| size == 125_000),
            "{sizes:?}"
        );
    }
    let most = ["--client", "claude-code", "--max-result-tokens", "400000"];
    assert!(sizes(&most).iter().all(|size| size == 500_000));
    let body = json!(vec!["x".repeat(1000); 600]).to_string();
    let upstream = Upstream::start(Box::new(move |_| json_reply(&[], &body)));
    let args = [
        &["serve", "--spec", spec.path(), "--base-url", &upstream.url],
        &most[..],
    ]
    .concat();
    let shown = Session::start(&args).call("list", &json!({}))["structuredContent"]
        .to_string()
        .len();
    assert!((490_000..500_000).contains(&shown), "{shown}");
    assert!(
        sizes(&["--client", "claude-code"])
            .iter()
            .all(Value::is_null)
    );
    assert!(
        sizes(&["--max-result-tokens", "40000"])
            .iter()
            .all(Value::is_null)
    );
}

/// A cut reply under strict schemas is an error, which says what was cut before the reply.
#[test]
fn the_next_page_of_a_cut_error_does_not_hold_what_was_cut() {
    let spec = SpecFile::new(&document().to_string());
    let long = json!(vec!["x".repeat(100); 100]).to_string();
    let upstream = Upstream::start(Box::new(move |_| {
        json_reply(&["Link: </list?page=2>; rel=next"], &long)
    }));
    let args = [
        "serve",
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "--max-result-tokens",
        "500",
    ];
    let mut session = Session::start(&[&args[..], &["output_schemas: strict"]].concat());
    let result = session.call("list", &json!({}));
    assert_eq!(result["isError"], true);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("The reply was cut"), "{text}");
    assert!(
        text.ends_with("for the next page, which does not hold what was cut from this one."),
        "{text}"
    );
}

/// The output of a filter need not be what the document declares.
#[test]
fn a_filter_breaks_no_strict_output_schema() {
    let spec = SpecFile::new(&document().to_string());
    let upstream = Upstream::start(Box::new(|_| {
        json_reply(&["Link: </list?page=2>; rel=next"], r#"["a","b"]"#)
    }));
    let mut session = Session::start(&[
        "serve",
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "output_schemas: strict",
        "response_filter: jq",
    ]);
    let tools = session.tools();
    let tool = tools.iter().find(|tool| tool["name"] == "list").unwrap();
    for filter in [".", "length", "map({a: .})"] {
        let content =
            session.call("list", &json!({"response_filter": filter}))["structuredContent"].clone();
        assert!(
            jsonschema::is_valid(&tool["outputSchema"], &content),
            "{filter}: {content}"
        );
        assert!(
            content["_notes"][0]
                .as_str()
                .unwrap()
                .contains(r#"{"page":2}"#),
            "{content}"
        );
    }
}

/// A call over HTTP in every version of the protocol says the same as over stdio.
#[test]
fn notes_are_the_same_in_every_version_and_over_http() {
    let upstream = Upstream::start(Box::new(|_| {
        json_reply(&["Link: </list?page=2>; rel=\"next\""], "[1]")
    }));
    let spec = SpecFile::new(&document().to_string());
    let expected = r#"{"result":[1],"_notes":["There is more: call again with the same arguments and {\"page\":2} for the next page."]}"#;
    let check = |result: &Value| {
        assert_eq!(
            result["content"],
            json!([{"type": "text", "text": expected}]),
            "{result}"
        );
        assert_eq!(result["structuredContent"].to_string(), expected);
    };
    check(
        &Session::start(&["serve", "--spec", spec.path(), "--base-url", &upstream.url])
            .call("list", &json!({})),
    );
    let server = HttpServer::start(&["--spec", spec.path(), "--base-url", &upstream.url]);
    over_http_in_every_version(&server, "list", &json!({}))
        .iter()
        .for_each(check);
}
