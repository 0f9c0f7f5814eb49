//! Headers of HTTP clients: those that the operator lists go on to the API, and nothing else does.

use serde_json::json;

use super::credentials::document;
use crate::support::{HttpServer, SpecFile, Upstream, call_message, reply, run, stderr};

#[test]
fn p31_a_client_sends_on_what_the_operator_lists_and_nothing_else() {
    let upstream = Upstream::start(Box::new(|request| {
        reply(
            200,
            &["Content-Type: application/json"],
            serde_json::to_string(&request.headers).unwrap().as_bytes(),
        )
    }));
    let spec = SpecFile::with_paths(
        &json!({"/a": {"get": {"operationId": "call", "parameters": [
        {"name": "x-tenant", "in": "header", "required": true, "schema": {"type": "string"}}]}}}),
    );
    let base = [
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "--header",
        "X-Own: operator",
    ];
    let more = ["forward_header: [X-Tenant, X-User=X-Remote-User, X-Own]"];
    let server = HttpServer::start(&[&base[..], &more].concat());
    let sent = [
        "MCP-Protocol-Version: 2025-11-25",
        "X-Tenant: acme-tenant",
        "X-User: ann",
        "X-Own: client",
        "Authorization: Bearer client-s3cret",
        "Cookie: c=1",
        "X-Other: no",
        "X-Api-Key: client",
        "X-Forwarded-For: 1.2.3.4",
        "Forwarded: for=1.2.3.4",
    ];
    let never = [
        "x-user",
        "cookie",
        "x-other",
        "x-api-key",
        "x-forwarded-for",
        "forwarded",
        "mcp-protocol-version",
    ];
    let plain = HttpServer::start(&base);
    let message = call_message("call", r#"{"x-tenant":"of-the-model"}"#);
    assert!(plain.post(&sent, &message).0.contains(" 200 "));
    let received = upstream.take_one();
    for name in never.iter().chain(&["authorization", "x-remote-user"]) {
        assert_eq!(received.header(name), None, "{name}");
    }
    assert_eq!(received.header("x-tenant"), Some("of-the-model"));
    let (line, answer) = server.post(&sent, &call_message("call", "{}"));
    assert!(
        line.contains(" 200 ") && answer.contains("acme-tenant"),
        "{line} {answer}"
    );
    let received = upstream.take_one();
    for (name, expected) in [
        ("x-tenant", Some("acme-tenant")),
        ("x-remote-user", Some("ann")),
        ("x-own", Some("operator")),
        ("authorization", None),
    ] {
        assert_eq!(received.header(name), expected, "{name}");
    }
    for name in never {
        assert_eq!(received.header(name), None, "{name}");
    }
    server.logged("the header `x-own` is forwarded from clients, and set here as well");

    let mut server = HttpServer::start(
        &[
            &base[..],
            &[
                "forward_header: [X-Tenant]",
                "forward_authorization: true",
                "--log-level=trace",
            ],
        ]
        .concat(),
    );
    let (_, answer) = server.post(&sent, &call_message("call", "{}"));
    assert_eq!(
        upstream.take_one().header("authorization"),
        Some("Bearer client-s3cret")
    );
    assert!(
        !answer.contains("client-s3cret") && answer.contains("[redacted]"),
        "{answer}"
    );
    let logs = server.end();
    assert!(!logs.contains("client-s3cret"), "{logs}");
}

#[test]
fn p31_a_forwarded_credential_meets_a_scheme_and_its_absence_is_told() {
    let upstream = Upstream::echo();
    let spec = document(
        &json!({"token": {"type": "http", "scheme": "bearer"}}),
        &json!([{"token": []}]),
    );
    let args = [
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "forward_authorization: true",
    ];
    let server = HttpServer::start(&args);
    server.post(
        &[
            "MCP-Protocol-Version: 2025-11-25",
            "Authorization: Bearer mine",
        ],
        &call_message("call", "{}"),
    );
    assert_eq!(
        upstream.take_one().header("authorization"),
        Some("Bearer mine")
    );
    let (_, answer) = server.post(
        &["MCP-Protocol-Version: 2025-11-25"],
        &call_message("call", "{}"),
    );
    assert!(
        answer.contains("\"isError\":true") && answer.contains("`authorization` header"),
        "{answer}"
    );
    assert!(upstream.received().is_empty());
}

#[test]
fn p31_headers_that_cannot_be_forwarded_are_refused_at_start() {
    let spec = SpecFile::with_paths(&json!({"/a": {"get": {}}}));
    let args = [
        "serve",
        "--spec",
        spec.path(),
        "--base-url",
        "http://127.0.0.1:1",
    ];
    for name in [
        "Host",
        "Connection",
        "X-A=Transfer-Encoding",
        "Cookie",
        "Content-Length",
        "TE",
        "Mcp-Session-Id",
        "a b",
        "Authorization",
    ] {
        let output = run(&[
            &args[..],
            &[
                "--transport",
                "http",
                &format!("forward_header: [\"{name}\"]"),
            ],
        ]
        .concat());
        assert!(
            output.status.code() == Some(2) && stderr(&output).contains("`forward_header`"),
            "{name}"
        );
    }
    let output = run(&[&args[..], &["forward_authorization: true"]].concat());
    assert!(
        output.status.code() == Some(2)
            && stderr(&output).contains("`forward_authorization` needs --transport http")
    );
}

#[test]
fn p31_what_belongs_to_the_clients_connection_or_to_a_credential_is_not_forwarded() {
    let upstream = Upstream::echo();
    let basic = document(
        &json!({"d": {"type": "http", "scheme": "basic"}}),
        &json!([{"d": []}]),
    );
    let args = [
        "--spec",
        basic.path(),
        "--base-url",
        &upstream.url,
        "forward_header: [X-T]",
        "forward_authorization: true",
    ];
    let server = HttpServer::start_with(&args, &[("OPENAPI_MCP_AUTH_D", "ann:pass-word")]);
    let sent = [
        "MCP-Protocol-Version: 2025-11-25",
        "Authorization: Bearer of-the-client",
        "X-T: hop",
        "Connection: close, x-t",
    ];
    let (line, _) = server.post(&sent, &call_message("call", "{}"));
    let received = upstream.take_one();
    assert!(
        line.contains(" 200 ")
            && received.header("authorization") == Some("Basic YW5uOnBhc3Mtd29yZA==")
            && received.header("x-t").is_none(),
        "{received:?}"
    );
    for name in ["Http2-Settings", "Set-Cookie"] {
        let refused = run(&[
            "serve",
            "--spec",
            basic.path(),
            "--transport",
            "http",
            &format!("forward_header: [\"{name}\"]"),
        ]);
        assert!(
            refused.status.code() == Some(2) && stderr(&refused).contains("is not forwarded"),
            "{}",
            stderr(&refused)
        );
    }
}

#[test]
fn p31_p42_neither_arguments_nor_replies_are_logged_and_forwarded_headers_stay_on_the_apis_origin()
{
    let upstream = Upstream::start(Box::new(|_| {
        reply(200, &["Content-Type: text/plain"], b"what-the-api-said")
    }));
    let other = Upstream::echo();
    let parameter = json!([{"name": "q", "in": "query", "schema": {"type": "string"}}]);
    let spec = SpecFile::new(
        &json!({"openapi": "3.1.0", "info": {"title": "T"}, "servers": [{"url": upstream.url}], "paths": {
            "/a": {"get": {"operationId": "call", "parameters": parameter}},
            "/b": {"get": {"operationId": "away", "servers": [{"url": other.url}]}}}})
        .to_string(),
    );
    let mut server = HttpServer::start(&[
        "--spec",
        spec.path(),
        "forward_header: [X-User]",
        "--log-level",
        "debug",
    ]);
    let call = |name: &str, arguments: &str| {
        let headers = ["MCP-Protocol-Version: 2025-11-25", "X-User: ann-s3cret"];
        server.post(&headers, &call_message(name, arguments)).1
    };
    assert!(call("call", r#"{"q":"what-the-model-asked"}"#).contains("what-the-api-said"));
    assert!(
        call(
            "call",
            r#"{"q":["what-the-model-asked"],"r":"what-the-model-asked"}"#
        )
        .contains("isError\":true")
    );
    call("away", "{}");
    assert_eq!(upstream.take_one().header("x-user"), Some("ann-s3cret"));
    assert_eq!(other.take_one().header("x-user"), None);
    server.logged("tool=away");
    let logs = server.end();
    for secret in ["what-the-api-said", "what-the-model-asked", "ann-s3cret"] {
        assert!(!logs.contains(secret), "{secret}: {logs}");
    }
}
