//! The contents of a span, and values that it never contains.

use serde_json::json;

use super::{SPAN, TRACE, api, call_with_meta, document, traceparent};
use crate::support::collector::ReceivedSpan;
use crate::support::{Collector, HttpServer, Session, call_message, listener, signal, wait_until};

/// The attributes of a span with their values.
fn has(span: &ReceivedSpan, expected: &[(&str, &str)]) {
    let read: Vec<(&str, &str)> = span
        .attributes
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(read, expected, "{}", span.name);
}

#[test]
fn a_call_over_stdio_is_a_server_span_with_a_client_span_below() {
    let (spec, upstream, collector) = (document(), api(), Collector::start());
    let mut session = Session::serving_with(&spec, &upstream, &[], &collector.variables());
    session.call(
        "getThing",
        &json!({"id": "seven-of-nine", "q": "hidden words"}),
    );
    let spans = collector.wait_for(2);
    let [client, server] = spans.as_slice() else {
        panic!("{spans:?}")
    };
    assert_eq!(
        (server.name.as_str(), server.kind),
        ("tools/call getThing", "server")
    );
    has(
        server,
        &[
            ("mcp.method.name", "tools/call"),
            ("gen_ai.operation.name", "execute_tool"),
            ("gen_ai.tool.name", "getThing"),
            ("openapi_mcp.api", "T"),
            ("jsonrpc.request.id", "2"),
            ("mcp.protocol.version", "2025-11-25"),
            ("network.transport", "pipe"),
        ],
    );
    assert_eq!(
        (client.name.as_str(), client.kind),
        ("GET /things/{id}", "client")
    );
    let (host, port) = upstream.host().split_once(':').unwrap();
    has(
        client,
        &[
            ("http.request.method", "GET"),
            ("http.response.status_code", "200"),
            ("server.address", host),
            ("server.port", port),
            ("url.template", "/things/{id}"),
        ],
    );
    assert_eq!((&client.trace, &client.parent), (&server.trace, &server.id));
    assert!(server.parent.is_empty() && server.links.is_empty() && server.is_sampled);
    assert!(!client.has_remote_parent && !server.has_failed && !client.has_failed);
    assert!(
        server.nanoseconds >= client.nanoseconds,
        "{server:?} {client:?}"
    );
    let resource = collector.resource();
    assert_eq!(resource["service.name"], "openapi-mcp");
    assert_eq!(resource["service.version"], env!("CARGO_PKG_VERSION"));
    let request = &collector.requests()[0];
    assert!(
        request.line.starts_with("POST /v1/traces "),
        "{}",
        request.line
    );
    assert_eq!(
        request.header("content-type"),
        Some("application/x-protobuf")
    );
}

#[test]
fn a_call_over_http_says_so_and_each_try_is_a_span() {
    let (spec, upstream, collector) = (document(), api(), Collector::start());
    let server = HttpServer::start_with(
        &[
            "--spec",
            spec.path(),
            "--base-url",
            &upstream.url,
            "retries: 1",
        ],
        &collector.variables(),
    );
    server.post(
        &["MCP-Protocol-Version: 2025-06-18"],
        &call_message("breakIt", "{}"),
    );
    let spans = collector.wait_for(3);
    let [first, second, call] = spans.as_slice() else {
        panic!("{spans:?}")
    };
    assert!(call.has_failed && first.has_failed && second.has_failed);
    for (name, expected) in [
        ("error.type", "tool_error"),
        ("network.transport", "tcp"),
        ("network.protocol.name", "http"),
        ("network.protocol.version", "1.1"),
        ("mcp.protocol.version", "2025-06-18"),
        ("jsonrpc.request.id", "1"),
    ] {
        assert_eq!(call.attributes[name], expected, "{name}: {call:?}");
    }
    for attempt in [first, second] {
        assert_eq!(attempt.parent, call.id);
        assert_eq!(attempt.attributes["http.response.status_code"], "503");
        assert_eq!(attempt.attributes["error.type"], "503");
    }
    assert!(!first.attributes.contains_key("http.request.resend_count"));
    assert_eq!(second.attributes["http.request.resend_count"], "1");
}

#[test]
fn p71_nothing_that_a_span_says_is_a_value() {
    let (spec, upstream, collector) = (document(), api(), Collector::start());
    let server = HttpServer::start_with(
        &[
            "--spec",
            spec.path(),
            "--base-url",
            &format!("{}/base-secret", upstream.url),
            "--header-env",
            "X-Key=UPSTREAM_KEY",
            "--confirm",
            "none",
        ],
        &[
            &collector.variables()[..],
            &[
                ("UPSTREAM_KEY", "header-secret"),
                ("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=exporter-secret"),
            ],
        ]
        .concat(),
    );
    let id = "i".repeat(200);
    let call = |tool: &str, arguments: &str| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":"{id}","method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},"_meta":{{"baggage":"who=baggage-secret"}}}}}}"#
        );
        server.post(
            &[
                "MCP-Protocol-Version: 2025-11-25",
                "Baggage: who=baggage-secret",
                "X-Other: client-secret",
            ],
            &body,
        );
    };
    call("getThing", r#"{"id":"path-secret","q":"query-secret"}"#);
    call("getThing", r#"{"id":{"wrong":"argument-secret"}}"#);
    call("tool_of_a_stranger_secret", "{}");
    let calls = collector.calls(3);
    assert_eq!(calls[0].attributes["jsonrpc.request.id"], "i".repeat(64));
    assert_eq!(calls[1].attributes["error.type"], "invalid_arguments");
    assert_eq!(
        (calls[2].name.as_str(), &calls[2].attributes["error.type"]),
        ("tools/call", &"-32602".to_owned())
    );
    assert_eq!(calls[2].attributes["rpc.response.status_code"], "-32602");
    let resource = collector.resource();
    let names: Vec<&str> = resource.keys().map(String::as_str).collect();
    let of_sdk = [
        "telemetry.sdk.language",
        "telemetry.sdk.name",
        "telemetry.sdk.version",
    ];
    assert_eq!(
        names,
        [&["service.name", "service.version"][..], &of_sdk].concat()
    );
    let sent = collector.everything();
    for secret in [
        "secret",
        "reply-itself",
        "url.full",
        "session.id",
        "baggage",
    ] {
        assert!(!sent.contains(secret), "{secret}");
    }
    assert!(
        collector
            .requests()
            .iter()
            .all(|request| request.header("x-tenant") == Some("exporter-secret"))
    );
    assert!(!server.logs().contains("exporter-secret"));
    assert!(
        upstream
            .received()
            .iter()
            .all(|request| request.header("baggage").is_none())
    );
}

#[test]
fn a_call_that_never_ends_has_a_span_when_the_process_does() {
    let (spec, upstream, collector) = (document(), api(), Collector::start());
    let mut session = Session::serving_with(&spec, &upstream, &[], &collector.variables());
    let meta = json!({"traceparent": traceparent()});
    let id = session.post("tools/call", &call_with_meta("slow", &json!({}), &meta));
    wait_until("the API is asked", || upstream.received().len() == 1);
    session.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    let cancelled = collector.wait_for(2);
    let of = |name: &str| cancelled.iter().find(|span| span.name == name).unwrap();
    assert_eq!(of("tools/call slow").attributes["error.type"], "cancelled");
    assert_eq!(of("DELETE /slow").attributes["error.type"], "cancelled");
    assert_eq!(
        (
            of("tools/call slow").trace.as_str(),
            of("tools/call slow").parent.as_str()
        ),
        (TRACE, SPAN)
    );
    session.post("tools/call", &call_with_meta("slow", &json!({}), &meta));
    wait_until("the API is asked", || upstream.received().len() == 2);
    signal(session.pid(), "TERM");
    // A call in flight is waited for; the second signal ends the process at once, and spans with
    // it.
    session.logged("stopping");
    signal(session.pid(), "TERM");
    assert_eq!(session.wait(), Some(130));
}

#[test]
fn spans_that_wait_are_sent_before_the_process_ends() {
    let (spec, upstream, collector) = (document(), api(), Collector::start());
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url()),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
    ];
    let mut session = Session::serving_with(&spec, &upstream, &[], &variables);
    for number in 0..50 {
        session.call("getThing", &json!({"id": number.to_string()}));
    }
    session.close_stdin();
    assert_eq!(session.wait(), Some(0));
    assert_eq!(collector.calls(50).len(), 50);
    assert!(collector.requests().len() <= 2, "spans are sent together");
    assert_eq!(
        collector.requests()[0].header("content-encoding"),
        Some("gzip")
    );
}

#[test]
fn requests_of_other_methods_are_spans_as_well() {
    let (spec, upstream, collector) = (document(), api(), Collector::start());
    let mut session = Session::serving_with(&spec, &upstream, &[], &collector.variables());
    session.tools();
    session.request("no/such/method", &json!({}));
    wait_until("the spans come", || collector.spans().len() >= 3);
    let spans = collector.spans();
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["initialize", "tools/list", "_other"]);
    has(
        &spans[1],
        &[
            ("mcp.method.name", "tools/list"),
            ("jsonrpc.request.id", "2"),
            ("mcp.protocol.version", "2025-11-25"),
            ("network.transport", "pipe"),
        ],
    );
    assert_eq!(spans[2].attributes["rpc.response.status_code"], "-32601");
}

#[test]
fn an_api_that_is_down_or_slow_shows_in_both_spans() {
    let (spec, upstream, collector) = (document(), api(), Collector::start());
    let (free, refusing) = listener();
    drop(free);
    for (base, tool, expected) in [
        (refusing.as_str(), "breakIt", "unreachable"),
        (upstream.url.as_str(), "slow", "timeout"),
    ] {
        let before = collector.wait_for(0).len();
        let args = [
            "serve",
            "--spec",
            spec.path(),
            "--base-url",
            base,
            "--timeout",
            "0.5",
            "retries: 0",
        ];
        let mut session = Session::start_with(&args, &collector.variables());
        session.call(tool, &json!({}));
        session.end();
        let spans = collector.wait_for(before + 2);
        for span in &spans[before..] {
            assert_eq!(span.attributes["error.type"], expected, "{span:?}");
            assert!(span.has_failed, "{span:?}");
        }
    }
}
