//! The trace of a call.

use serde::Deserialize;
use serde_json::json;

use super::{SPAN, TRACE, api, call_with_meta, document, traceparent};
use crate::support::{Collector, HttpServer, Session, call_message, project};

#[derive(Deserialize)]
struct ContextCase {
    name: String,
    traceparent: serde_json::Value,
    #[serde(default)]
    tracestate: serde_json::Value,
    /// True if the trace goes on.
    continues: bool,
    /// The part of `tracestate` that is kept; none by default.
    #[serde(default)]
    keeps: String,
}

fn cases() -> Vec<ContextCase> {
    let text = std::fs::read_to_string(project("tests/cases/traces/contexts.yaml")).unwrap();
    let text = text
        .replace("$513", &format!("a={}", "x".repeat(511)))
        .replace(
            "$33",
            &(0..33)
                .map(|number| format!("k{number}=v"))
                .collect::<Vec<_>>()
                .join(","),
        );
    serde_yaml::from_str(&text).unwrap()
}

#[test]
fn contexts_of_messages_and_of_requests_count_where_they_are_valid_and_never_fail_a_call() {
    let (spec, upstream) = (document(), api());
    let over_stdio = Collector::start();
    let mut session = Session::serving_with(&spec, &upstream, &[], &over_stdio.variables());
    let over_http = Collector::start();
    let token = "sixteen-letters-or-more";
    let variables = [&over_http.variables()[..], &[("A_TOKEN", token)]].concat();
    let server = HttpServer::start_with(
        &[
            "--spec",
            spec.path(),
            "--base-url",
            &upstream.url,
            "--auth-token-env",
            "A_TOKEN",
        ],
        &variables,
    );
    for (index, case) in cases().into_iter().enumerate() {
        let mut meta = json!({"traceparent": case.traceparent});
        if !case.tracestate.is_null() {
            meta["tracestate"] = case.tracestate.clone();
        }
        let result = session.call("getThing", &json!({"id": "1"}));
        assert_eq!(result["isError"], false, "{}", case.name);
        let answer = session.request(
            "tools/call",
            &call_with_meta("getThing", &json!({"id": "1"}), &meta),
        );
        assert_eq!(
            answer["result"]["isError"], false,
            "{}: {answer}",
            case.name
        );
        let calls = over_stdio.calls(2 * index + 2);
        let mut seen = vec![("stdio", calls[2 * index + 1].clone())];
        // What no header can hold, a client cannot send so.
        let line = |name: &str, value: &serde_json::Value| match value.as_str() {
            Some(text) if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) => {
                Some(format!("{name}: {text}"))
            }
            _ => None,
        };
        if let Some(parent) = line("Traceparent", &case.traceparent) {
            let state = line("Tracestate", &case.tracestate).unwrap_or("X-None: 1".to_owned());
            let authorization = format!("Authorization: Bearer {token}");
            let before = over_http
                .spans()
                .iter()
                .filter(|span| span.kind == "server")
                .count();
            let (status, _) = server.post(
                &[
                    "MCP-Protocol-Version: 2025-11-25",
                    &authorization,
                    &parent,
                    &state,
                ],
                &call_message("getThing", r#"{"id":"1"}"#),
            );
            assert!(status.contains("200"), "{}: {status}", case.name);
            if case.tracestate.is_null() || state.starts_with("Tracestate") {
                seen.push(("http", over_http.calls(before + 1)[before].clone()));
            } else {
                over_http.calls(before + 1);
            }
        }
        for (transport, span) in seen {
            assert_eq!(
                span.trace == TRACE,
                case.continues,
                "{} over {transport}: {span:?}",
                case.name
            );
            assert_eq!(
                span.parent == SPAN,
                case.continues,
                "{} over {transport}: {span:?}",
                case.name
            );
            assert_eq!(
                span.has_remote_parent, case.continues,
                "{} over {transport}",
                case.name
            );
            assert_eq!(span.state, case.keeps, "{} over {transport}", case.name);
        }
    }
}

#[test]
fn the_context_of_the_message_comes_before_that_of_the_request_which_is_a_link_then() {
    let (spec, upstream, collector) = (document(), api(), Collector::start());
    let variables = [
        &collector.variables()[..],
        &[("A_TOKEN", "sixteen-letters-or-more")],
    ]
    .concat();
    let server = HttpServer::start_with(
        &[
            "--spec",
            spec.path(),
            "--base-url",
            &upstream.url,
            "--auth-token-env",
            "A_TOKEN",
        ],
        &variables,
    );
    let of_request = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331";
    let header = format!("Traceparent: 00-{of_request}-01");
    let call = |meta: serde_json::Value, lines: &[&str]| {
        let parameters = call_with_meta("getThing", &json!({"id": "1"}), &meta);
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": parameters});
        let lines = [
            &[
                "MCP-Protocol-Version: 2025-11-25",
                "Authorization: Bearer sixteen-letters-or-more",
            ],
            lines,
        ]
        .concat();
        let (status, answer) = server.post(&lines, &body.to_string());
        assert!(status.contains("200"), "{status} {answer}");
    };
    call(json!({"traceparent": traceparent()}), &[&header]);
    call(json!({"traceparent": "nonsense"}), &[&header]);
    call(
        json!({"traceparent": traceparent()}),
        &[&format!("Traceparent: {}", traceparent())],
    );
    call(json!({}), &[&header, &header]);
    let calls = collector.calls(4);
    assert_eq!(
        (calls[0].trace.as_str(), calls[0].parent.as_str()),
        (TRACE, SPAN)
    );
    assert_eq!(calls[0].links, [of_request]);
    assert_eq!(
        format!("{}-{}", calls[1].trace, calls[1].parent),
        of_request
    );
    assert!(calls[1].links.is_empty() && calls[2].links.is_empty());
    assert!(
        calls[3].parent.is_empty() && calls[3].links.is_empty(),
        "two parents name none: {:?}",
        calls[3]
    );
}

#[test]
fn p71_who_proves_nothing_over_http_is_linked_and_forces_no_sampling() {
    let (spec, upstream, collector) = (document(), api(), Collector::start());
    let token = ("A_TOKEN", "sixteen-letters-or-more");
    let off = ("OTEL_TRACES_SAMPLER", "parentbased_always_off");
    let args = ["--spec", spec.path(), "--base-url", &upstream.url];
    let open = HttpServer::start_with(&args, &[&collector.variables()[..], &[off]].concat());
    let closed = HttpServer::start_with(
        &[&args[..], &["--auth-token-env", "A_TOKEN"]].concat(),
        &[&collector.variables()[..], &[off, token]].concat(),
    );
    let parent = format!("Traceparent: {}", traceparent());
    let meta = call_with_meta(
        "getThing",
        &json!({"id": "1"}),
        &json!({"traceparent": traceparent()}),
    );
    let in_message =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": meta}).to_string();
    for _ in 0..5 {
        open.post(&[&parent], &call_message("getThing", r#"{"id":"1"}"#));
        open.post(&[], &in_message);
    }
    closed.post(
        &[&parent, "Authorization: Bearer sixteen-letters-or-more"],
        &call_message("getThing", r#"{"id":"1"}"#),
    );
    // Both send to one collector: what the first had sent would have come.
    let spans = collector.wait_for(2);
    assert!(spans.iter().all(|span| span.trace == TRACE), "{spans:?}");
    assert_eq!(spans.len(), 2, "{spans:?}");
    drop(open);

    let linked = Collector::start();
    let open = HttpServer::start_with(&args, &linked.variables());
    open.post(&[&parent], &call_message("getThing", r#"{"id":"1"}"#));
    let call = &linked.calls(1)[0];
    assert_ne!(call.trace, TRACE);
    assert!(call.parent.is_empty() && call.state.is_empty());
    assert_eq!(call.links, [format!("{TRACE}-{SPAN}")]);
}

#[test]
fn the_audit_log_names_the_trace() {
    let (spec, upstream, collector) = (document(), api(), Collector::start());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let mut session = Session::serving_with(
        &spec,
        &upstream,
        &["--audit-log", path.to_str().unwrap()],
        &collector.variables(),
    );
    session.call("getThing", &json!({"id": "1"}));
    let trace = collector.calls(1)[0].trace.clone();
    crate::support::wait_until("the line is written", || {
        std::fs::read_to_string(&path)
            .unwrap_or_default()
            .contains(&format!("\"trace_id\":\"{trace}\""))
    });
}

#[test]
fn a_page_of_an_allowed_origin_may_send_its_trace() {
    let server = HttpServer::start(&[
        "--spec",
        &crate::support::petstore(),
        "--mock",
        "allow_origin: [\"https://app.example\"]",
    ]);
    let lines = [
        "OPTIONS /mcp HTTP/1.1",
        "Host: localhost",
        "Origin: https://app.example",
        "Access-Control-Request-Method: POST",
        "Access-Control-Request-Headers: traceparent",
        "Connection: close",
    ];
    let answer = server
        .raw(&format!("{}\r\n\r\n", lines.join("\r\n")))
        .to_ascii_lowercase();
    let allowed = answer
        .lines()
        .find(|line| line.starts_with("access-control-allow-headers"));
    assert!(
        allowed.is_some_and(|line| line.contains("traceparent, tracestate")),
        "{answer}"
    );
}
