//! Attempts to delete something through a tool that reads: over both transports, in old and new
//! versions of MCP, and at `/mcp/readonly`.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::http_server::http_request;
use crate::support::{HttpServer, Session, SpecFile, Upstream, project, stateless_meta};

#[derive(Deserialize)]
struct Attempt {
    tool: String,
    /// Arguments as text, because their parsing is tested.
    arguments: String,
}

fn attempts() -> Vec<Attempt> {
    let text = std::fs::read_to_string(project("tests/cases/search/attempts.yaml")).unwrap();
    serde_yaml::from_str(&text).unwrap()
}

/// Two names differ in a letter's case alone, one operation is excluded, and one is a POST that
/// removes things.
fn pets() -> SpecFile {
    let id =
        json!([{"name": "petId", "in": "path", "required": true, "schema": {"type": "integer"}}]);
    SpecFile::with_paths(&json!({
        "/pets": {"get": {"operationId": "listPets"}, "post": {"operationId": "createPet"}, "delete": {"operationId": "dropPets"}},
        "/list": {"delete": {"operationId": "listpets"}},
        "/pets/{petId}": {
            "get": {"operationId": "getPet", "parameters": id},
            "delete": {"operationId": "deletePet", "parameters": id}
        },
        "/pets/prune": {"post": {"operationId": "prunePets", "summary": "Prune pets"}}
    }))
}

const FLAGS: [&str; 4] = ["--tools", "search", "--tool-exclude", "dropPets"];

/// The message of a call, and one of 2026-07-28.
fn messages(parameters: &str) -> [String; 2] {
    let message = |more: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{{{parameters}{more}}}}}"#
        )
    };
    [
        String::new(),
        format!(r#","_meta":{}"#, stateless_meta(&json!({}))),
    ]
    .map(|more| message(&more))
}

/// Posts both messages to a path, and gives both answers.
fn post_both(server: &HttpServer, path: &str, tool: &str, parameters: &str) -> [String; 2] {
    let [session, stateless] = messages(parameters);
    let session = post_to(
        server,
        path,
        &["MCP-Protocol-Version: 2025-11-25"],
        &session,
    );
    [session, post_stateless(server, path, tool, &stateless)]
}

/// Posts a message of 2026-07-28, whose header names this tool.
fn post_stateless(server: &HttpServer, path: &str, tool: &str, message: &str) -> String {
    let name = format!("Mcp-Name: {tool}");
    let headers = [
        "MCP-Protocol-Version: 2026-07-28",
        "Mcp-Method: tools/call",
        &name,
    ];
    post_to(server, path, &headers, message)
}

fn post_to(server: &HttpServer, path: &str, headers: &[&str], message: &str) -> String {
    let headers = [headers, &["Connection: close"]].concat();
    let request = http_request(&server.address, "POST", &headers, message);
    let answer = server.raw(&request.replacen("POST /mcp ", &format!("POST {path} "), 1));
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// Returns true if an answer reports a refusal.
fn is_refusal(answer: &str) -> bool {
    let answer: Value =
        serde_json::from_str(answer).unwrap_or_else(|error| panic!("{error}: {answer}"));
    answer["error"].is_object() || answer["result"]["isError"] == true
}

#[test]
fn no_attempt_deletes_through_a_meta_tool_that_reads() {
    let (spec, upstream) = (pets(), Upstream::echo());
    let server = HttpServer::start(
        &[
            &["--spec", spec.path(), "--base-url", &upstream.url][..],
            &FLAGS,
        ]
        .concat(),
    );
    let mut session = Session::serving(&spec, &upstream, &FLAGS);
    let mut try_all = |tool: &str, parameters: &str| -> Vec<String> {
        let mut answers = Vec::new();
        for path in ["/mcp", "/mcp/readonly"] {
            answers.extend(post_both(&server, path, tool, parameters));
        }
        for message in messages(parameters) {
            session.send_text(&message);
            answers.push(session.receive().to_string());
        }
        answers
    };
    let attempts = attempts();
    assert!(attempts.len() >= 60);
    let written = attempts.iter().map(|attempt| {
        let parameters = format!(
            r#""name":"{}","arguments":{}"#,
            attempt.tool, attempt.arguments
        );
        (attempt.tool.as_str(), parameters)
    });
    // The name of the tool itself, or its arguments, twice.
    let (read, delete) = (
        r#""arguments":{"operation":"getPet","arguments":{"petId":1}}"#,
        r#""arguments":{"operation":"deletePet","arguments":{"petId":1}}"#,
    );
    let twice = [
        (
            "call_read",
            format!(r#""name":"call_read","name":"call_destructive",{delete}"#),
        ),
        (
            "call_read",
            format!(r#""name":"call_destructive","name":"call_read",{delete}"#),
        ),
        (
            "call_read",
            format!(r#""name":"call_read","n\u0061me":"call_destructive",{delete}"#),
        ),
        (
            "call_read",
            format!(r#""name":"call_read",{read},{delete}"#),
        ),
        (
            "call_read",
            format!(r#""name":"call_read",{delete},{read}"#),
        ),
    ];
    for (tool, parameters) in written.chain(twice) {
        for (way, answer) in try_all(tool, &parameters).into_iter().enumerate() {
            assert!(is_refusal(&answer), "{parameters}, way {way}: {answer}");
        }
        assert!(
            upstream.received().is_empty(),
            "{parameters}: {:?}",
            upstream.received()
        );
    }
    // Each of these ways is one by which a call is made.
    let answers = try_all("call_read", &format!(r#""name":"call_read",{read}"#));
    assert!(
        !answers.iter().any(|answer| is_refusal(answer)),
        "{answers:?}"
    );
    let sent = upstream.take_all();
    assert_eq!(sent.len(), answers.len());
    assert!(
        sent.iter()
            .all(|request| request.line == "GET /pets/1 HTTP/1.1"),
        "{sent:?}"
    );
}

#[test]
fn a_header_that_names_another_meta_tool_decides_nothing() {
    let (spec, upstream) = (pets(), Upstream::echo());
    let server = HttpServer::start(
        &[
            &["--spec", spec.path(), "--base-url", &upstream.url][..],
            &FLAGS,
        ]
        .concat(),
    );
    let delete = r#""arguments":{"operation":"deletePet","arguments":{"petId":1}}"#;
    for (header, tool) in [
        ("call_destructive", "call_read"),
        ("call_read", "call_destructive"),
        ("deletePet", "call_read"),
    ] {
        let [_, message] = messages(&format!(r#""name":"{tool}",{delete}"#));
        let answer = post_stateless(&server, "/mcp", header, &message);
        assert!(is_refusal(&answer), "{header} {tool}: {answer}");
    }
    assert!(upstream.received().is_empty(), "{:?}", upstream.received());
}

#[test]
fn the_endpoint_that_reads_has_no_way_to_what_does_not() {
    let (spec, upstream) = (pets(), Upstream::echo());
    let server = HttpServer::start(
        &[
            &["--spec", spec.path(), "--base-url", &upstream.url][..],
            &FLAGS,
        ]
        .concat(),
    );
    for (tool, arguments) in [
        (
            "call_destructive",
            r#"{"operation":"deletePet","arguments":{"petId":1}}"#,
        ),
        ("call_write", r#"{"operation":"createPet"}"#),
        ("deletePet", r#"{"petId":1}"#),
        ("createPet", "{}"),
    ] {
        for answer in post_both(
            &server,
            "/mcp/readonly",
            tool,
            &format!(r#""name":"{tool}","arguments":{arguments}"#),
        ) {
            assert!(answer.contains("-32602"), "{tool}: {answer}");
        }
    }
    // Neither a search nor a description speaks of it.
    for (tool, arguments) in [
        (
            "search_operations",
            r#"{"queries":["delete a pet","prune pets","create a pet"],"limit":5}"#,
        ),
        ("search_operations", r#"{"effect":"destructive"}"#),
        ("describe_operations", r#"{"names":["getPet"]}"#),
        ("call_read", r#"{"operation":"deletePe"}"#),
    ] {
        for answer in post_both(
            &server,
            "/mcp/readonly",
            tool,
            &format!(r#""name":"{tool}","arguments":{arguments}"#),
        ) {
            for hidden in ["deletePet", "prunePets", "createPet", "delete_list"] {
                assert!(!answer.contains(hidden), "{tool}: {answer}");
            }
        }
    }
    assert!(upstream.received().is_empty(), "{:?}", upstream.received());
}
