//! The HTTP door: who is let in, and what malformed requests get.

use serde_json::{Value, json};

use crate::support::{HttpServer, petstore};

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
const MODERN: [&str; 2] = ["MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/list"];

fn server() -> HttpServer {
    HttpServer::start(&["--spec", &petstore(), "--mock"])
}

fn status(server: &HttpServer, headers: &[&str]) -> String {
    let headers: Vec<&str> = MODERN.iter().copied().chain(headers.iter().copied()).collect();
    server.post(&headers, LIST).0
}

#[test]
fn foreign_hosts_and_origins_are_refused() {
    let server = server();
    assert!(status(&server, &[]).contains(" 200 "), "{}", status(&server, &[]));
    for header in [
        "Host: evil.example",
        "Host: localhost.evil.example",
        "Host: 127.0.0.1:1:1",
        "Origin: http://evil.example",
        "Origin: null",
        "Origin: http://localhost.evil.example",
    ] {
        assert!(
            status(&server, &[header]).contains(" 403 "),
            "{header}: {}",
            status(&server, &[header])
        );
    }
    assert!(status(&server, &["Origin: http://localhost:3000"]).contains(" 200 "));
    assert!(status(&server, &["Origin: http://localhost", "Origin: http://localhost"]).contains(" 403 "));
}

#[test]
fn allowed_hosts_and_origins_are_let_in() {
    let server = HttpServer::start(&[
        "--spec",
        &petstore(),
        "--mock",
        "--allow-host",
        "mcp.example",
        "--allow-origin",
        "https://app.example",
    ]);
    assert!(status(&server, &["Host: mcp.example:8080", "Origin: https://app.example"]).contains(" 200 "));
    assert!(status(&server, &["Host: other.example"]).contains(" 403 "));
    // A page that was allowed by name asks first, and may read the answer; any other gets no permission.
    let asked = |origin: &str| {
        server.raw(&format!("OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: {origin}\r\nAccess-Control-Request-Method: POST\r\nConnection: close\r\n\r\n"))
    };
    assert!(
        asked("https://app.example").contains("access-control-allow-origin: https://app.example"),
        "{}",
        asked("https://app.example")
    );
    assert!(!asked("http://localhost:5173").contains("access-control"));
}

#[test]
fn malformed_requests_get_the_answers_of_json_rpc() {
    let server = server();
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":"d","method":"tools/call","params":{{"name":"list_pets","arguments":{{"a":{}{}}}}}}}"#,
        "[".repeat(300),
        "]".repeat(300)
    );
    for (body, code, id) in [
        ("{", -32700, Value::Null),
        ("nonsense", -32700, Value::Null),
        ("", -32700, Value::Null),
        ("[]", -32600, Value::Null),
        ("7", -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#, -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":{},"method":"tools/list"}"#, -32600, Value::Null),
        (r#"{"jsonrpc":"1.0","id":5,"method":"tools/list"}"#, -32600, json!(5)),
        (deep.as_str(), -32600, json!("d")),
    ] {
        let (line, answer) = server.post(&MODERN, body);
        assert!(line.contains(" 400 "), "{body:?}: {line}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{body}: {answer}");
    }
    let (line, _) = server.post(&["Content-Type: application/jsonx"], LIST);
    assert!(line.contains(" 415 "), "{line}");
    let (line, _) = server.post(&["Content-Type: text/plain"], LIST);
    assert!(line.contains(" 415 "), "a web form must not be able to call: {line}");
    let (line, _) = server.post(&["Expect: nothing"], &"x".repeat(5 << 20));
    assert!(line.contains(" 413 ") || line.is_empty(), "{line}");
    assert!(
        server
            .raw("GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nConnection: close\r\n\r\n")
            .contains(" 405 ")
    );
    assert!(
        server
            .raw("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .contains(" 404 ")
    );
    assert!(status(&server, &[]).contains(" 200 "), "it still serves");
}

#[test]
fn health_is_asked_under_any_name() {
    let server = server();
    assert!(
        server
            .raw("GET /healthz HTTP/1.1\r\nHost: 10.1.2.3:8080\r\nConnection: close\r\n\r\n")
            .starts_with("HTTP/1.1 200")
    );
}

#[test]
fn malformed_calls_are_invalid_parameters() {
    let server = server();
    for params in [
        json!({}),
        json!({"name": 5}),
        json!({"name": "get_pet", "arguments": []}),
        json!({"name": "no_such_tool"}),
    ] {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        let (_, answer) = server.post(&["MCP-Protocol-Version: 2025-11-25"], &body);
        assert_eq!(
            serde_json::from_str::<Value>(&answer).unwrap()["error"]["code"],
            -32602,
            "{params}: {answer}"
        );
    }
}
