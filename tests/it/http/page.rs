//! The page for people who open the endpoint in a browser.

use base64::Engine as _;
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
        assert!(!policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"), "{policy}");
        for name in ["script", "style"] {
            let hash = base64::engine::general_purpose::STANDARD.encode(sha2::Sha256::digest(element(&answer, name).as_bytes()));
            assert!(policy.contains(&format!("{name}-src 'sha256-{hash}'")), "{name}: {policy}");
        }
        assert!(answer.contains("httpUrl") && answer.len() < 60_000, "{}", answer.len());
        let head = ask(&server, "HEAD", path, BROWSER);
        assert!(head.starts_with("HTTP/1.1 200") && !head.contains("<html"), "{head}");
    }
    for accept in ["*/*", "application/json, text/event-stream", "text/html, text/event-stream"] {
        assert!(ask(&server, "GET", "/", accept).starts_with("HTTP/1.1 404"), "{accept}");
        assert!(ask(&server, "GET", "/mcp", accept).starts_with("HTTP/1.1 405"), "{accept}");
    }
    assert!(ask(&server, "GET", "/elsewhere", BROWSER).starts_with("HTTP/1.1 404"));
    // The page is behind the guard.
    let foreign = server.raw(&format!(
        "GET / HTTP/1.1\r\nHost: evil.example\r\nAccept: {BROWSER}\r\nConnection: close\r\n\r\n"
    ));
    assert!(foreign.starts_with("HTTP/1.1 403"), "{foreign}");
}

#[test]
fn p28_the_page_holds_no_word_of_the_document_where_it_must_not() {
    let off = HttpServer::start(&["--spec", &petstore(), "--mock", "--page", "off"]);
    assert!(ask(&off, "GET", "/mcp", BROWSER).starts_with("HTTP/1.1 405"));
    let variables = [("PAGE_TOKEN", "a-token-of-at-least-thirty-two-characters")];
    for page in ["full", "public"] {
        let args = ["--spec", &petstore(), "--mock", "--auth-token-env", "PAGE_TOKEN", "--page", page];
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
    let output = command(&["tools", "--spec", &petstore(), "--format", "html", "--tool-include", "tag:none"])
        .output()
        .unwrap();
    assert!(stdout(&output).contains("\"tools\":[]"));
}

#[test]
fn the_page_asks_where_the_hints_of_a_tool_come_from_and_only_of_tools_that_are_listed() {
    let ask = |server: &HttpServer, tool: &str| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"openapi-mcp/hint_sources","params":{{"tool":"{tool}"}}}}"#);
        let (_, answer) = server.post(&[], &body);
        serde_json::from_str::<serde_json::Value>(&answer).unwrap_or_else(|_| panic!("{answer}"))
    };
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
        let sources = &ask(&server, "get_pet")["result"]["sources"];
        assert_eq!(sources["readOnly"], "method", "{mode}: {sources}");
        assert_eq!(sources["openWorld"], "command line", "{mode}: {sources}");
        for unlisted in ["delete_pet", "nothing", ""] {
            let answer = ask(&server, unlisted);
            assert_eq!(answer["error"]["code"], -32602, "{mode} {unlisted}: {answer}");
        }
    }
}
