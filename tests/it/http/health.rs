//! `/healthz` and `/readyz`: what a probe learns while the server starts, serves and ends.

use std::io::{Read as _, Write as _};
use std::sync::Mutex;
use std::sync::mpsc::channel;

use serde_json::json;

use crate::support::http_server::answer_header;
use crate::support::{
    HttpServer, SpecFile, TIMEOUT, Upstream, call_message, petstore, reply, signal, wait_until,
};

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

#[test]
fn a_server_lives_from_listening_on_and_is_ready_when_its_document_is_there() {
    let (release, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let documents = Upstream::start(Box::new(move |_| {
        let _ = wait.lock().unwrap().recv_timeout(TIMEOUT);
        reply(
            200,
            &["Content-Type: application/json"],
            br#"{"openapi":"3.1.0","paths":{"/a":{"get":{"operationId":"a"}}}}"#,
        )
    }));
    let server = HttpServer::start(&[
        "--spec",
        &format!("{}/openapi.json", documents.url),
        "--base-url",
        &documents.url,
    ]);
    let alive = server.get("/healthz");
    assert!(
        alive.starts_with("HTTP/1.1 200") && alive.ends_with("\r\n\r\nok\n"),
        "{alive}"
    );
    let loading = server.get("/readyz");
    assert!(
        loading.starts_with("HTTP/1.1 503") && loading.ends_with("{\"status\":\"loading\"}\n"),
        "{loading}"
    );
    assert_eq!(
        answer_header(&loading, "content-type"),
        Some("application/json")
    );
    assert_eq!(answer_header(&loading, "cache-control"), Some("no-store"));
    release.send(()).unwrap();
    wait_until("the document is served", || {
        server.get("/readyz").ends_with("{\"status\":\"ready\"}\n")
    });
    assert_eq!(status(&server.get("/readyz")), "200");
}

#[test]
fn an_upstream_that_is_down_leaves_the_server_ready() {
    let server = HttpServer::start(&["--spec", &petstore(), "--base-url", "http://127.0.0.1:1"]);
    assert_eq!(status(&server.get("/readyz")), "200");
}

#[test]
fn a_server_without_the_keys_of_its_issuer_is_not_ready_unless_it_has_other_tokens() {
    let oauth = [
        "--spec",
        &petstore(),
        "--mock",
        "--oauth-issuer",
        "https://issuer.example",
        "oauth_jwks_url: http://127.0.0.1:1/keys",
    ];
    let server = HttpServer::start(&oauth);
    assert_eq!(status(&server.get("/readyz")), "503");
    assert_eq!(status(&server.get("/healthz")), "200");
    let server = HttpServer::start_with(
        &[&oauth[..], &["--auth-token-env", "A_TOKEN"]].concat(),
        &[("A_TOKEN", "sixteen-letters-or-more")],
    );
    assert_eq!(status(&server.get("/readyz")), "200");
}

/// Returns true if a connection of HTTP/2 gets GOAWAY (frame type 7, RFC 9113 section 6.8) around
/// the answer to its request.
#[cfg(unix)]
fn is_told_by_goaway(server: &HttpServer) -> bool {
    let frame = |kind: u8, flags: u8, stream: u32, payload: &[u8]| -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    };
    let field = |name: &str, value: &str| {
        let length = |text: &str| u8::try_from(text.len()).unwrap();
        [
            &[0, length(name)],
            name.as_bytes(),
            &[length(value)],
            value.as_bytes(),
        ]
        .concat()
    };
    let fields = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/healthz"),
        (":authority", "localhost"),
    ];
    let headers: Vec<u8> = fields
        .iter()
        .flat_map(|(name, value)| field(name, value))
        .collect();
    let mut stream = server.connect();
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .unwrap();
    stream
        .write_all(&[frame(4, 0, 0, &[]), frame(1, 5, 1, &headers)].concat())
        .unwrap();
    let mut head = [0; 9];
    while stream.read_exact(&mut head).is_ok() {
        let [_, a, b, kind, ..] = head;
        if kind == 7 {
            return true;
        }
        let mut payload = vec![0; usize::from(u16::from_be_bytes([a, b]))];
        stream.read_exact(&mut payload).unwrap();
    }
    false
}

#[cfg(unix)]
#[test]
fn p38_a_draining_server_says_so_and_still_answers_until_its_delay_is_over() {
    let spec = SpecFile::with_paths(&json!({"/a": {"get": {"operationId": "a"}}}));
    let upstream = Upstream::echo();
    let mut server = HttpServer::start(&[
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "--drain-delay",
        "600",
    ]);
    signal(server.pid(), "TERM");
    server.logged("draining");
    let draining = server.get("/readyz");
    assert!(
        draining.starts_with("HTTP/1.1 503") && draining.ends_with("{\"status\":\"draining\"}\n"),
        "{draining}"
    );
    assert_eq!(status(&server.get("/healthz")), "200");
    let (status, answer) = server.send(
        "POST",
        &["MCP-Protocol-Version: 2025-11-25"],
        &call_message("a", "{}"),
    );
    assert!(status == 200 && answer.contains("\"ok\":true"), "{answer}");

    // A connection that would stay open ends with its next answer.
    let mut stream = server.connect();
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(
        answer_header(&answer, "connection"),
        Some("close"),
        "{answer}"
    );
    assert!(
        is_told_by_goaway(&server),
        "a connection of HTTP/2 is not told to connect anew"
    );

    // A second signal does not wait for the delay.
    signal(server.pid(), "TERM");
    assert_eq!(server.wait(), Some(130));
}

#[cfg(unix)]
#[test]
fn the_delay_ends_by_itself_and_an_interrupt_has_none() {
    let started =
        |delay| HttpServer::start(&["--spec", &petstore(), "--mock", "--drain-delay", delay]);
    let mut server = started("0.3");
    signal(server.pid(), "TERM");
    assert_eq!(server.wait(), Some(0), "{}", server.logs());
    let mut server = started("600");
    signal(server.pid(), "INT");
    assert_eq!(server.wait(), Some(0), "{}", server.logs());
}

#[test]
fn paths_that_clients_try_say_where_mcp_is() {
    let server = HttpServer::start(&["--spec", &petstore(), "--mock"]);
    for path in ["/sse", "/messages"] {
        let answer = server.get(path);
        assert!(
            status(&answer) == "404" && answer.ends_with("MCP is at /mcp"),
            "{answer}"
        );
    }
    let posted = server.raw(
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
    );
    assert!(
        status(&posted) == "404" && posted.ends_with("MCP is at /mcp"),
        "{posted}"
    );
    assert!(!server.get("/other").contains("/mcp"));
}
