//! Requests of web pages and other hosts, which are refused, and malformed requests.

use serde_json::{Value, json};

use crate::support::{HttpServer, petstore, run, stateless_meta, stdout};

const STATELESS: [&str; 2] = ["MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/list"];

/// A `tools/list` request of protocol version 2026-07-28.
fn list() -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": stateless_meta(&json!({}))}}).to_string()
}

fn server() -> HttpServer {
    HttpServer::start(&["--spec", &petstore(), "--mock"])
}

fn status(server: &HttpServer, headers: &[&str]) -> String {
    let headers: Vec<&str> = STATELESS
        .iter()
        .copied()
        .chain(headers.iter().copied())
        .collect();
    server.post(&headers, &list()).0
}

#[test]
fn p26_foreign_origins_are_refused() {
    let server = server();
    assert!(
        status(&server, &[]).contains(" 200 "),
        "{}",
        status(&server, &[])
    );
    let foreign = [
        "http://evil.example",
        "https://evil.example",
        "null",
        "",
        " ",
        "*",
        "http://localhost.evil.example",
        "http://evil.example:80",
        "http://evil.example/localhost",
        "http://evil.example#localhost",
        "http://evil.example?localhost",
        "http://localhost@evil.example",
        "http://localhost:3000@evil.example",
        "http://evil.example\\@localhost",
        "http://127.0.0.1.evil.example",
        "http://127.0.0.1.nip.io",
        "http://0.0.0.0",
        "http://10.0.0.1",
        "http://192.168.0.1:3000",
        "http://[::ffff:10.0.0.1]",
        "http://[::1].evil.example",
        "http://xn--localhost-9ua.example",
        "http://localhost, http://evil.example",
        "http://evil.example http://localhost",
        "file://",
        "chrome-extension://abcdefghijklmnop",
        "ftp://localhost",
        "localhost",
        "http://",
        "http://localhost:99999",
    ];
    assert!(foreign.len() >= 24);
    for origin in foreign {
        let answer = status(&server, &[&format!("Origin: {origin}")]);
        assert!(answer.contains(" 403 "), "{origin:?}: {answer}");
    }
    for origin in [
        "http://localhost",
        "http://localhost:3000",
        "http://127.0.0.1:5173",
        "http://[::1]:8080",
    ] {
        assert!(
            status(&server, &[&format!("Origin: {origin}")]).contains(" 200 "),
            "{origin}"
        );
    }
    assert!(
        status(
            &server,
            &["Origin: http://localhost", "Origin: http://localhost"]
        )
        .contains(" 403 ")
    );
}

#[test]
fn p27_foreign_and_malformed_hosts_are_refused_and_no_page_gets_a_permission() {
    let server = server();
    let foreign = [
        "evil.example",
        "localhost.evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "127.0.0.1:1:1",
        "127.0.0.1:99999999",
        "127.0.0.1:-1",
        "127.0.0.1:x",
        "localhost:",
        "[::1].evil.example",
        "[::1",
        "::1",
        "[::1]x",
        "localhost@evil.example",
        "evil.example@localhost",
        "localhost/evil",
        "localhost evil.example",
        "localhost,evil.example",
        "0.0.0.0",
        "10.0.0.1",
        "2130706433",
        "0x7f.1",
        "",
    ];
    assert!(foreign.len() >= 15);
    for host in foreign {
        let answer = status(&server, &[&format!("Host: {host}")]);
        assert!(
            answer.contains(" 403 ") || answer.contains(" 400 "),
            "{host:?}: {answer}"
        );
    }
    for host in [
        "localhost",
        "LOCALHOST:8080",
        "127.0.0.1",
        "127.0.0.1:80",
        "[::1]",
        "[::1]:8080",
    ] {
        assert!(
            status(&server, &[&format!("Host: {host}")]).contains(" 200 "),
            "{host}"
        );
    }
    let two = server.raw("POST /mcp HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    assert!(two.contains(" 400 ") || two.contains(" 403 "), "{two}");
    let none = server.raw("POST /mcp HTTP/1.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    assert!(none.contains(" 400 ") || none.contains(" 403 "), "{none}");
    for method in ["POST", "GET", "OPTIONS", "DELETE"] {
        let answer = server.raw(&format!(
            "{method} /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost:3000\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        ));
        assert!(
            !answer.to_ascii_lowercase().contains("access-control-allow"),
            "{answer}"
        );
    }
}

#[test]
fn p28_no_form_of_a_page_can_call_and_nothing_else_answers() {
    let server = server();
    // What a page can send without asking first (Fetch Standard, "CORS-safelisted request-header"),
    // and what looks like JSON.
    for kind in [
        "text/plain",
        "text/plain;application/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=application/json",
        "",
        "application/jsonx",
        "application/json+x",
        "text/json",
        "application/json, text/plain",
    ] {
        let answer = status(&server, &[&format!("Content-Type: {kind}")]);
        assert!(answer.contains(" 415 "), "{kind:?}: {answer}");
    }
    for kind in [
        "application/json",
        "application/json; charset=utf-8",
        "Application/JSON",
    ] {
        let answer = status(&server, &[&format!("Content-Type: {kind}")]);
        assert!(answer.contains(" 200 "), "{kind:?}: {answer}");
    }
    for path in [
        "/",
        "/mcp/",
        "/MCP",
        "//mcp",
        "/mcp/x",
        "/sse",
        "/message",
        "/openapi.json",
        "/metrics",
        "/.env",
        "/mcp%2f",
        "/x/../mcp",
    ] {
        let answer = server.raw(&format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}"));
        assert!(
            answer.contains(" 404 ") || answer.contains(" 400 "),
            "{path}: {answer}"
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn p28_it_listens_where_it_is_told_to_and_nowhere_else() {
    let server = server();
    let port: u16 = server.address.rsplit(':').next().unwrap().parse().unwrap();
    // Every address of 127.0.0.0/8 is this machine, and only one was named.
    for other in ["127.0.0.2", "127.1.2.3"] {
        assert!(
            std::net::TcpStream::connect((other, port)).is_err(),
            "{other}"
        );
    }
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
}

#[test]
fn p53_http_binds_a_loopback_address_by_default() {
    let help = stdout(&run(&["serve", "--help"]));
    let words: Vec<&str> = help.split_whitespace().collect();
    assert!(
        words.join(" ").contains("[default: 127.0.0.1:8080]"),
        "{help}"
    );
}

#[test]
fn p26_p27_allowed_hosts_and_origins_are_accepted() {
    let server = HttpServer::start(&[
        "--spec",
        &petstore(),
        "--mock",
        "--allow-host",
        "mcp.example",
        "allow_origin: [\"https://app.example\"]",
    ]);
    assert!(
        status(
            &server,
            &["Host: mcp.example:8080", "Origin: https://app.example"]
        )
        .contains(" 200 ")
    );
    assert!(status(&server, &["Host: other.example"]).contains(" 403 "));
    // A page that was allowed by name asks first, and may read the answer; any other gets no
    // permission.
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
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#,
            -32600,
            Value::Null,
        ),
        (
            r#"{"jsonrpc":"2.0","id":{},"method":"tools/list"}"#,
            -32600,
            Value::Null,
        ),
        (
            r#"{"jsonrpc":"1.0","id":5,"method":"tools/list"}"#,
            -32600,
            json!(5),
        ),
        (deep.as_str(), -32600, json!("d")),
    ] {
        let (line, answer) = server.post(&STATELESS, body);
        assert!(line.contains(" 400 "), "{body:?}: {line}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(
            (&answer["error"]["code"], &answer["id"]),
            (&json!(code), &id),
            "{body}: {answer}"
        );
    }
    let (line, _) = server.post(&["Content-Type: application/jsonx"], &list());
    assert!(line.contains(" 415 "), "{line}");
    let (line, _) = server.post(&["Content-Type: text/plain"], &list());
    assert!(
        line.contains(" 415 "),
        "a web form must not be able to call: {line}"
    );
    let (line, _) = server.post(&["Expect: nothing"], &"x".repeat(5 << 20));
    assert!(line.contains(" 413 ") || line.is_empty(), "{line}");
    assert!(
        server
            .raw("GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nConnection: close\r\n\r\n")
            .contains(" 405 ")
    );
    assert!(server.get("/elsewhere").contains(" 404 "));
    assert!(status(&server, &[]).contains(" 200 "), "it still serves");
}

#[test]
fn p27_health_is_asked_under_any_name() {
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
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
            .to_string();
        let (_, answer) = server.post(&["MCP-Protocol-Version: 2025-11-25"], &body);
        assert_eq!(
            serde_json::from_str::<Value>(&answer).unwrap()["error"]["code"],
            -32602,
            "{params}: {answer}"
        );
    }
}
