//! The page for people who open the endpoint in a browser.

use base64::Engine as _;
use serde_json::{Value, json};
use sha2::Digest as _;

use crate::support::http_server::answer_header;
use crate::support::{HttpServer, command, petstore, run, stdout};

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

fn ask(server: &HttpServer, method: &str, path: &str, accept: &str) -> String {
    server.raw(&format!(
        "{method} {path} HTTP/1.1\r\nHost: {}\r\nAccept: {accept}\r\nConnection: close\r\n\r\n",
        server.address
    ))
}

/// The content of the only element of that name without attributes.
fn element<'a>(page: &'a str, name: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("<{name}>")).unwrap();
    rest.split_once(&format!("</{name}>")).unwrap().0
}

#[test]
fn a_browser_gets_a_page_and_a_client_what_it_got_before() {
    let server = HttpServer::start(&["--spec", &petstore(), "--mock"]);
    for path in ["/", "/mcp"] {
        let answer = ask(&server, "GET", path, BROWSER);
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        for (name, expected) in [
            ("content-type", "text/html; charset=utf-8"),
            ("cache-control", "no-store"),
            ("vary", "accept"),
            ("x-frame-options", "DENY"),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
        ] {
            assert_eq!(answer_header(&answer, name), Some(expected), "{name}");
        }
        let policy = answer_header(&answer, "content-security-policy").unwrap();
        assert!(
            !policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        for name in ["script", "style"] {
            let hash = base64::engine::general_purpose::STANDARD
                .encode(sha2::Sha256::digest(element(&answer, name).as_bytes()));
            assert!(
                policy.contains(&format!("{name}-src 'sha256-{hash}'")),
                "{name}: {policy}"
            );
        }
        assert!(
            answer.contains("httpUrl") && answer.len() < 100_000,
            "{}",
            answer.len()
        );
        let head = ask(&server, "HEAD", path, BROWSER);
        assert!(
            head.starts_with("HTTP/1.1 200") && !head.contains("<html"),
            "{head}"
        );
    }
    for accept in [
        "*/*",
        "application/json, text/event-stream",
        "text/html, text/event-stream",
        "*/*, text/event-stream",
    ] {
        let is_for_anything = accept == "*/*";
        assert!(
            is_for_anything || ask(&server, "GET", "/", accept).starts_with("HTTP/1.1 404"),
            "{accept}"
        );
        assert!(
            ask(&server, "GET", "/mcp", accept).starts_with("HTTP/1.1 405"),
            "{accept}"
        );
    }
    assert!(ask(&server, "GET", "/elsewhere", BROWSER).starts_with("HTTP/1.1 404"));
    // The page is behind the guard.
    let foreign = server.raw(&format!(
        "GET / HTTP/1.1\r\nHost: evil.example\r\nAccept: {BROWSER}\r\nConnection: close\r\n\r\n"
    ));
    assert!(foreign.starts_with("HTTP/1.1 403"), "{foreign}");
}

#[test]
fn curl_gets_one_line_and_the_log_names_the_address_of_the_page() {
    let server = HttpServer::start(&["--spec", &petstore(), "--mock"]);
    server.logged(&format!("open http://{}/ in a browser", server.address));
    for accept in ["*/*", "text/plain"] {
        let answer = ask(&server, "GET", "/", accept);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert_eq!(
            answer_header(&answer, "content-type"),
            Some("text/plain; charset=utf-8")
        );
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(
            body.contains("/mcp") && body.lines().count() == 1 && body.ends_with('\n'),
            "{body}"
        );
        assert!(!body.contains("Petstore"), "{body}");
    }
    assert!(
        server.get("/").starts_with("HTTP/1.1 200"),
        "without Accept"
    );
    let post = format!(
        "POST / HTTP/1.1\r\nHost: {}\r\nAccept: */*\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        server.address
    );
    assert!(server.raw(&post).starts_with("HTTP/1.1 404"));
    let off = HttpServer::start(&["--spec", &petstore(), "--mock", "page: off"]);
    assert!(ask(&off, "GET", "/", "*/*").starts_with("HTTP/1.1 404"));
    assert!(!off.logs().contains("in a browser"));
}

#[test]
fn p28_the_page_holds_no_word_of_the_document_where_it_must_not() {
    let off = HttpServer::start(&["--spec", &petstore(), "--mock", "page: off"]);
    assert!(ask(&off, "GET", "/mcp", BROWSER).starts_with("HTTP/1.1 405"));
    let variables = [("PAGE_TOKEN", "a-token-of-at-least-thirty-two-characters")];
    for page in ["full", "public"] {
        let args = [
            "--spec",
            &petstore(),
            "--mock",
            "--auth-token-env",
            "PAGE_TOKEN",
            &format!("page: {page}"),
        ];
        let server = HttpServer::start_with(&args, &variables);
        let answer = ask(&server, "GET", "/", BROWSER);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        for word in ["list_pets", "Petstore", "Biscuit", "a-token-of"] {
            assert!(!answer.contains(word), "{page}: {word}");
        }
        assert!(answer.contains("\"auth\":true") && answer.contains("MCP_TOKEN"));
    }
}

#[test]
fn the_same_page_is_a_file_with_the_tools_in_it() {
    let output = run(&["tools", "--spec", &petstore(), "--format", "html"]);
    let page = stdout(&output);
    assert!(
        page.contains("http-equiv=\"Content-Security-Policy\"") && page.contains("list_pets"),
        "{page}"
    );
    assert!(!page.contains("frame-ancestors"));
    let output = command(&[
        "tools",
        "--spec",
        &petstore(),
        "--format",
        "html",
        "--tool-include",
        "tag:none",
    ])
    .output()
    .unwrap();
    assert!(stdout(&output).contains("\"tools\":[]"));
}

/// Asks for what the page asks, and gives the whole answer.
fn request(server: &HttpServer, method: &str, parameters: &Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters});
    let (_, answer) = server.post(&[], &body.to_string());
    serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{answer}"))
}

fn names(answer: &Value) -> Vec<&str> {
    let tools = answer["result"]["tools"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer}"));
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

#[test]
fn the_page_gets_a_tool_with_the_reasons_of_its_hints_and_only_one_that_is_listed() {
    for mode in ["all", "search"] {
        let args = [
            "--spec",
            &petstore(),
            "--mock",
            "--read-only",
            "--hint",
            "get_pet openWorld=false",
            "--tools",
            mode,
        ];
        let server = HttpServer::start(&args);
        let answer = request(&server, "openapi-mcp/tool", &json!({"tool": "get_pet"}));
        let tool = &answer["result"];
        assert_eq!(
            tool["hints"][0]["because"], "GET: a safe, idempotent read",
            "{mode}: {tool}"
        );
        assert_eq!(
            tool["hints"][3]["because"], "the operator declared openWorld=false",
            "{mode}: {tool}"
        );
        assert_eq!(
            (&tool["method"], &tool["path"]),
            (&json!("GET"), &json!("/pets/{petId}"))
        );
        assert_eq!(
            tool["tool"]["inputSchema"]["required"],
            json!(["petId"]),
            "{mode}: {tool}"
        );
        assert_eq!(tool["examples"], json!({"petId": 7}), "{mode}");
        let called_through = if mode == "search" {
            json!("call_read")
        } else {
            Value::Null
        };
        assert_eq!(tool["calledThrough"], called_through);
        for unlisted in ["delete_pet", "nothing", ""] {
            let answer = request(&server, "openapi-mcp/tool", &json!({"tool": unlisted}));
            assert_eq!(
                answer["error"]["code"], -32602,
                "{mode} {unlisted}: {answer}"
            );
        }
        let list = request(&server, "openapi-mcp/tools", &json!({}));
        assert_eq!(
            list["result"]["server"]["effects"],
            json!({"read": 9, "write": 0, "destructive": 0})
        );
        let found = request(
            &server,
            "openapi-mcp/tools",
            &json!({"query": "delete_pet"}),
        );
        assert!(!names(&found).contains(&"delete_pet"), "{found}");
    }
}

#[test]
fn the_list_of_the_page_is_ranked_as_a_search_is_and_narrowed_by_effect_and_tag() {
    let server = HttpServer::start(&["--spec", &petstore(), "--mock"]);
    let list = |parameters: Value| request(&server, "openapi-mcp/tools", &parameters);
    let whole = list(json!({}));
    assert_eq!(
        (&whole["result"]["total"], names(&whole)[0]),
        (&json!(20), "list_pets")
    );
    let about = &whole["result"]["server"];
    assert_eq!(
        (&about["title"], &about["version"], &about["entry"]),
        (&json!("Petstore"), &json!("1.0.0"), &json!("petstore"))
    );
    assert_eq!(
        about["effects"],
        json!({"read": 9, "write": 4, "destructive": 7})
    );
    assert_eq!(
        names(&list(json!({"query": "remove an order"})))[0],
        "delete_order"
    );
    // The beginning of a word is enough while it is typed.
    assert_eq!(names(&list(json!({"query": "invent"}))), ["get_inventory"]);
    assert_eq!(
        names(&list(json!({"effect": "destructive", "tag": "users"}))),
        ["update_user", "delete_user"]
    );
    assert_eq!(
        names(&list(json!({"offset": 18}))),
        ["update_user", "delete_user"]
    );
    assert!(names(&list(json!({"query": "qqqq"}))).is_empty());
    for wrong in [
        json!({"effect": "evil"}),
        json!({"offset": -1}),
        json!({"query": "x".repeat(3000)}),
    ] {
        assert_eq!(list(wrong.clone())["error"]["code"], -32602, "{wrong}");
    }
}

#[test]
fn examples_of_hidden_arguments_are_not_shown() {
    let args = ["--spec", &petstore(), "--mock"];
    let shown = request(
        &HttpServer::start(&args),
        "openapi-mcp/tool",
        &json!({"tool": "search_pets"}),
    );
    assert_eq!(shown["result"]["examples"]["q"], "grey cat", "{shown}");
    assert_eq!(
        shown["result"]["examples"]["price"],
        json!({"min": 50, "max": 200}),
        "{shown}"
    );
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yaml");
    let rules = "overrides:\n  - match: { operation: search_pets }\n    arguments: { \"query:price\": { hide: true } }\n";
    std::fs::write(&config, rules).unwrap();
    let server = HttpServer::start(&[
        "--spec",
        &petstore(),
        "--mock",
        "--config",
        config.to_str().unwrap(),
    ]);
    let hidden = request(&server, "openapi-mcp/tool", &json!({"tool": "search_pets"}));
    assert_eq!(
        hidden["result"]["examples"],
        json!({"q": "grey cat"}),
        "{hidden}"
    );
}

#[test]
fn the_list_of_the_page_is_in_groups_by_tag_and_a_search_says_how_many_hits_are_good() {
    let server = HttpServer::start(&["--spec", &petstore(), "--mock"]);
    let list =
        |parameters: Value| request(&server, "openapi-mcp/tools", &parameters)["result"].clone();
    let whole = list(json!({}));
    assert_eq!(
        whole["groups"],
        json!([["pets", 9], ["store", 6], ["users", 5]]),
        "{whole}"
    );
    assert_eq!(list(json!({"tag": "pets"}))["groups"], json!([]));
    let found = list(json!({"query": "remove an order"}));
    let (good, total) = (
        found["good"].as_u64().unwrap(),
        found["total"].as_u64().unwrap(),
    );
    assert!(0 < good && good < total, "{found}");
    assert_eq!(found["groups"], json!([]));
}

#[test]
fn only_a_page_for_everybody_shows_the_base_url_and_the_requests_to_the_api() {
    let spec = petstore();
    let call = json!({"name": "get_pet", "arguments": {"petId": 7}});
    let open = HttpServer::start(&["--spec", &spec, "--base-url", "https://api.example/v1"]);
    let about = request(&open, "openapi-mcp/tools", &json!({}))["result"]["server"].clone();
    assert_eq!(
        (&about["baseUrl"], &about["isMock"], &about["showsRequests"]),
        (
            &json!("https://api.example/v1"),
            &json!(false),
            &json!(true)
        )
    );
    let shown = request(&open, "openapi-mcp/request", &call);
    assert!(
        shown["result"]["curl"]
            .as_str()
            .unwrap()
            .starts_with("curl --request GET https://api.example/v1/pets/7"),
        "{shown}"
    );
    let wrong = json!({"name": "get_pet", "arguments": {"petId": "x"}});
    let problem = request(&open, "openapi-mcp/request", &wrong);
    assert!(
        problem["result"]["problem"]
            .as_str()
            .unwrap()
            .contains("petId"),
        "{problem}"
    );
    let mock = HttpServer::start(&["--spec", &spec, "--mock"]);
    let about = request(&mock, "openapi-mcp/tools", &json!({}))["result"]["server"].clone();
    assert_eq!(
        (&about["baseUrl"], &about["isMock"]),
        (&Value::Null, &json!(true))
    );
    let public = HttpServer::start(&[
        "--spec",
        &spec,
        "--base-url",
        "https://api.example/v1",
        "page: public",
    ]);
    let about = request(&public, "openapi-mcp/tools", &json!({}))["result"]["server"].clone();
    assert_eq!(
        (&about["baseUrl"], &about["showsRequests"]),
        (&Value::Null, &json!(false))
    );
    let refused = request(&public, "openapi-mcp/request", &call);
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}
