//! `propagate_trace`: the trace context goes to the API, and to no other server.

use serde_json::json;

use super::{SPAN, TRACE, api, call_with_meta, document, traceparent};
use crate::support::{
    Collector, HttpServer, Received, Session, SpecFile, Upstream, call_message, reply,
};

const STATE: &str = "rojo=00f067aa0ba902b7";

fn contexts(request: &Received) -> [Option<&str>; 2] {
    [request.header("traceparent"), request.header("tracestate")]
}

/// Makes a call over stdio whose message names a context, and gives the request to the API.
fn called(flags: &[&str], variables: &[(&str, &str)], parent: &str) -> Received {
    let (spec, upstream) = (document(), api());
    let mut session = Session::serving_with(&spec, &upstream, flags, variables);
    let meta = json!({"traceparent": parent, "tracestate": STATE, "baggage": "a=1"});
    let answer = session.request(
        "tools/call",
        &call_with_meta("getThing", &json!({"id": "1"}), &meta),
    );
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    session.end();
    upstream.take_one()
}

#[test]
fn the_api_is_told_nothing_unless_the_operator_says_so() {
    let collector = Collector::start();
    assert_eq!(
        contexts(&called(&[], &collector.variables(), &traceparent())),
        [None, None]
    );
    assert_eq!(contexts(&called(&[], &[], &traceparent())), [None, None]);
}

#[test]
fn the_api_is_told_of_the_span_of_the_request() {
    let collector = Collector::start();
    let request = called(
        &["propagate_trace: true"],
        &collector.variables(),
        &traceparent(),
    );
    let client = collector
        .wait_for(2)
        .into_iter()
        .find(|span| span.kind == "client")
        .unwrap();
    assert_eq!(client.trace, TRACE);
    let expected = format!("00-{TRACE}-{}-01", client.id);
    assert_eq!(contexts(&request), [Some(expected.as_str()), Some(STATE)]);
    assert_eq!(request.header("baggage"), None);
}

#[test]
fn a_trace_that_is_not_recorded_is_told_as_one() {
    let collector = Collector::start();
    let request = called(
        &["propagate_trace: true"],
        &collector.variables(),
        &format!("00-{TRACE}-{SPAN}-00"),
    );
    let parent = request.header("traceparent").unwrap();
    assert!(
        parent.starts_with(&format!("00-{TRACE}-"))
            && parent.ends_with("-00")
            && !parent.contains(SPAN),
        "{parent}"
    );
}

#[test]
fn without_an_exporter_the_context_of_the_client_goes_on_unchanged() {
    for parent in [traceparent(), format!("cc-{TRACE}-{SPAN}-03")] {
        let request = called(&["propagate_trace: true"], &[], &parent);
        assert_eq!(contexts(&request), [Some(parent.as_str()), Some(STATE)]);
    }
    assert_eq!(
        contexts(&called(&["propagate_trace: true"], &[], "nonsense")),
        [None, None]
    );
}

#[test]
fn without_an_exporter_the_header_of_the_request_goes_on_over_http() {
    let (spec, upstream) = (document(), api());
    let server = HttpServer::start(&[
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "propagate_trace: true",
    ]);
    let lines = [
        format!("Traceparent: {}", traceparent()),
        "Tracestate: a=1".to_owned(),
        "Tracestate: b=2".to_owned(),
    ];
    server.post(
        &lines.each_ref().map(String::as_str),
        &call_message("getThing", r#"{"id":"1"}"#),
    );
    assert_eq!(
        contexts(&upstream.take_one()),
        [Some(traceparent().as_str()), Some("a=1,b=2")]
    );
}

#[test]
fn no_argument_of_the_model_sets_the_headers_then() {
    let (spec, upstream, collector) = (document(), api(), Collector::start());
    let takes = |session: &mut Session| {
        let tools = session.tools();
        let tool = tools
            .iter()
            .find(|tool| tool["name"] == "getThing")
            .unwrap();
        tool["inputSchema"]["properties"]
            .get("traceparent")
            .is_some()
    };
    let arguments = json!({"id": "1", "traceparent": "of-the-model"});
    let mut plain = Session::serving_with(&spec, &upstream, &[], &collector.variables());
    assert!(takes(&mut plain));
    plain.call("getThing", &arguments);
    assert_eq!(
        upstream.take_one().header("traceparent"),
        Some("of-the-model")
    );
    let mut propagating = Session::serving_with(
        &spec,
        &upstream,
        &["propagate_trace: true"],
        &collector.variables(),
    );
    assert!(!takes(&mut propagating));
    propagating.call("getThing", &arguments);
    for request in upstream.take_all() {
        assert_ne!(request.header("traceparent"), Some("of-the-model"));
    }
}

/// The token endpoint and the server of one operation are other origins than the API.
#[test]
fn p71_nobody_but_the_origin_of_the_api_is_told() {
    let (own, other, collector) = (Upstream::echo(), Upstream::echo(), Collector::start());
    let issuer = Upstream::start(Box::new(|_| {
        reply(
            200,
            &["Content-Type: application/json"],
            br#"{"access_token":"t","token_type":"bearer"}"#,
        )
    }));
    let token_url = format!("{}/token", issuer.url);
    let flows = json!({"clientCredentials": {"tokenUrl": token_url, "scopes": {}}});
    let spec = SpecFile::new(
        &json!({
            "openapi": "3.1.0", "info": {"title": "T", "version": "1"},
            "servers": [{"url": own.url}],
            "components": {"securitySchemes": {"pets": {"type": "oauth2", "flows": flows}}},
            "paths": {
                "/own": {"get": {"operationId": "own", "security": [{"pets": []}]}},
                "/other": {"get": {"operationId": "other", "servers": [{"url": other.url}]}},
            },
        })
        .to_string(),
    );
    let variables = [
        &collector.variables()[..],
        &[
            ("OPENAPI_MCP_AUTH_PETS_CLIENT_ID", "app"),
            ("OPENAPI_MCP_AUTH_PETS_CLIENT_SECRET", "s3cret"),
            ("OPENAPI_MCP_AUTH_PETS_TOKEN_URL", &token_url),
        ],
    ]
    .concat();
    let args = [
        "serve",
        "--spec",
        spec.path(),
        "propagate_trace: true",
        &format!("credential_origin: [\"{}\"]", other.url),
    ];
    let mut session = Session::start_with(&args, &variables);
    session.call("own", &json!({}));
    session.call("other", &json!({}));
    assert!(own.take_one().header("traceparent").is_some());
    assert_eq!(contexts(&other.take_one()), [None, None]);
    assert_eq!(contexts(&issuer.take_one()), [None, None]);
    assert!(
        collector
            .requests()
            .iter()
            .all(|request| request.header("traceparent").is_none())
    );
}
