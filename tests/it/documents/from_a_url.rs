//! Documents that come from a URL: requests that wait for them, and their redirects.

use std::io::{Read as _, Write as _};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::http_server::http_request;
use crate::support::{
    HttpServer, LIST, Session, TIMEOUT, Upstream, petstore, reply, run, signal, stderr, stdout,
};

/// A server of documents that answers on demand.
pub fn slow_document() -> (Upstream, std::sync::mpsc::Sender<()>) {
    let (release, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let document = std::fs::read(petstore()).unwrap();
    let upstream = Upstream::start(Box::new(move |_| {
        let _ = wait.lock().unwrap().recv_timeout(TIMEOUT);
        reply(200, &["Content-Type: application/yaml"], &document)
    }));
    (upstream, release)
}

#[test]
fn the_handshake_does_not_wait_for_a_slow_document() {
    let (upstream, release) = slow_document();
    let mut session = Session::start(&[
        "serve",
        "--spec",
        &format!("{}/petstore.yaml", upstream.url),
        "--mock",
    ]);
    let list = session.post("tools/list", &json!({}));
    release.send(()).unwrap();
    let answer = session.receive();
    assert_eq!(
        (
            answer["id"].as_u64(),
            answer["result"]["tools"].as_array().map(Vec::len)
        ),
        (Some(list), Some(20))
    );
}

#[test]
fn the_handshake_waits_some_seconds_for_the_title_and_the_instructions() {
    let document = std::fs::read(petstore()).unwrap();
    let upstream = Upstream::start(Box::new(move |_| {
        // Later than the client's first message, and much sooner than the server stops waiting.
        std::thread::park_timeout(std::time::Duration::from_millis(300));
        reply(200, &["Content-Type: application/yaml"], &document)
    }));
    for _ in 0..3 {
        let session = Session::start(&[
            "serve",
            "--spec",
            &format!("{}/petstore.yaml", upstream.url),
            "--mock",
        ]);
        let answer = session.handshake();
        assert!(
            answer["instructions"]
                .as_str()
                .is_some_and(|text| text.starts_with("Tools for "))
                && answer["serverInfo"]["title"].is_string(),
            "{answer}"
        );
    }
}

#[test]
fn requests_that_wait_for_a_document_that_never_comes_get_an_error() {
    let (release, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let upstream = Upstream::start(Box::new(move |_| {
        let _ = wait.lock().unwrap().recv_timeout(TIMEOUT);
        reply(500, &[], b"")
    }));
    let url = format!("{}/secret-place.yaml", upstream.url);
    let told = |answer: &Value| {
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(
            message.contains("could not be fetched") && !message.contains("secret"),
            "{answer}"
        );
    };
    let mut session = Session::start(&["serve", "--spec", &url]);
    let asked = [
        session.post("tools/list", &json!({})),
        session.post("tools/call", &json!({"name": "x", "arguments": {}})),
    ];
    // It has been read when what was sent later is answered.
    session.request("ping", &json!({}));
    release.send(()).unwrap();
    let mut answered = [session.receive(), session.receive()].map(|answer| {
        told(&answer);
        answer["id"].as_u64().unwrap()
    });
    answered.sort_unstable();
    assert_eq!(answered, asked);
    assert_eq!(session.wait(), Some(3), "{}", session.logs());

    let mut server = HttpServer::start(&["--spec", &url]);
    let mut waiting = server.connect();
    waiting
        .write_all(http_request(&server.address, "POST", &[], LIST).as_bytes())
        .unwrap();
    // The answer to a request that was sent later says that the first one was taken.
    server.post(&[], r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#);
    release.send(()).unwrap();
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).unwrap();
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    told(&serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}")));
    assert_eq!(server.wait(), Some(3), "{}", server.logs());
}

#[cfg(unix)]
#[test]
fn p38_a_signal_ends_a_server_that_still_reads_its_document() {
    let (upstream, _release) = slow_document();
    let mut session = Session::start(&[
        "serve",
        "--spec",
        &format!("{}/petstore.yaml", upstream.url),
        "--mock",
    ]);
    signal(session.pid(), "TERM");
    assert_eq!(session.wait(), Some(0));

    // Calls that wait for the document are answered, and do not keep the process from its end.
    let url = format!("{}/petstore.yaml", upstream.url);
    let (near, far) = (format!("near={}", petstore()), format!("far={url}"));
    for more in [
        &["--spec", &url, "--mock"][..],
        &["--api", &near, "--api", &far, "--mock"],
    ] {
        let mut session = Session::start(&[&["serve"], more].concat());
        let call = session.post(
            "tools/call",
            &json!({"name": "far_list_pets", "arguments": {}}),
        );
        session.request("ping", &json!({}));
        let asked_to_end = Instant::now();
        signal(session.pid(), "TERM");
        let answer = session.receive();
        let error = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(
            answer["id"] == call && error.contains("about to end"),
            "{answer}"
        );
        assert_eq!(session.wait(), Some(0), "{}", session.logs());
        assert!(
            asked_to_end.elapsed() < TIMEOUT / 5,
            "{:?}",
            asked_to_end.elapsed()
        );
    }
}

#[test]
fn the_variable_of_the_apis_credential_also_gets_the_document() {
    let document = br#"{"openapi":"3.1.0","security":[{"bearer":[]}],"paths":{"/a":{"get":{"operationId":"a"}}},
        "components":{"securitySchemes":{"bearer":{"type":"http","scheme":"bearer"}}}}"#;
    let api = Upstream::start(Box::new(|request| match request.header("authorization") {
        Some("Bearer s3cret-of-both") if request.path() == "/openapi.json" => {
            reply(200, &[], document)
        }
        Some("Bearer s3cret-of-both") => reply(
            200,
            &["Content-Type: text/plain"],
            b"your key is s3cret-of-both",
        ),
        _ => reply(401, &[], b""),
    }));
    let spec = format!("{}/openapi.json", api.url);
    for value in ["s3cret-of-both", "Bearer s3cret-of-both"] {
        let variables = [
            ("OPENAPI_MCP_AUTH_BEARER", "s3cret-of-both"),
            ("KEY", value),
        ];
        for header in [
            "Authorization=Bearer OPENAPI_MCP_AUTH_BEARER",
            "Authorization=Bearer KEY",
        ] {
            let args = [
                "serve",
                "--spec",
                &spec,
                "--base-url",
                &api.url,
                "--spec-header-env",
                header,
            ];
            let result = Session::start_with(&args, &variables).call("a", &json!({}));
            assert_eq!(
                result["content"][0]["text"], "your key is [redacted]",
                "{header}"
            );
        }
        let args = ["serve", "--spec", &spec, "--base-url", &api.url];
        let headers = [
            "--spec-header-env",
            "Authorization=Bearer KEY",
            "--header-env",
            "Authorization=Bearer KEY",
        ];
        let result = Session::start_with(&[&args[..], &headers].concat(), &variables[1..])
            .call("a", &json!({}));
        assert_eq!(result["content"][0]["text"], "your key is [redacted]");
    }
}

#[test]
fn p17_a_document_from_a_url_may_redirect_within_its_origin_only() {
    let other = Upstream::echo();
    let elsewhere = format!("Location: {}/x.yaml", other.url);
    let document = std::fs::read(petstore()).unwrap();
    let upstream = Upstream::start(Box::new(move |request| {
        match request.path() {
        "/moved.yaml" => reply(302, &["Location: /petstore.yaml"], b""),
        "/old" => reply(302, &["Location: /s/doc.yaml"], b""),
        "/s/doc.yaml" => reply(
            200,
            &[],
            b"openapi: 3.1.0\npaths: {/near: {$ref: 'near.yaml'}, /red: {$ref: 'red.yaml'}, /up: {$ref: '../up.yaml'}}",
        ),
        "/s/near.yaml" => reply(200, &[], b"get: {operationId: near}"),
        "/s/red.yaml" => reply(302, &["Location: /up.yaml"], b""),
        "/up.yaml" => reply(200, &[], b"get: {operationId: stolen}"),
        "/away.yaml" => reply(302, &[&elsewhere], b""),
        _ => reply(200, &[], &document),
    }
    }));
    let tools = |path: &str| {
        run(&[
            "tools",
            "--spec",
            &format!("{}/{path}", upstream.url),
            "spec_header: [\"X-Key: s3cret\"]",
        ])
    };
    assert!(stdout(&tools("moved.yaml")).contains("20 tools"));
    // What it refers to is relative to where it was found, and a reference follows no redirect at
    // all.
    let moved = stdout(&tools("old"));
    assert!(
        moved.contains("near") && !moved.contains("stolen"),
        "{moved}"
    );
    assert!(
        upstream
            .received()
            .iter()
            .all(|request| !request.line.contains("/up.yaml"))
    );
    let away = tools("away.yaml");
    assert!(
        away.status.code() == Some(3) && stderr(&away).contains("give that address"),
        "{}",
        stderr(&away)
    );
    assert!(
        other.received().is_empty()
            && upstream
                .received()
                .iter()
                .all(|request| request.header("x-key") == Some("s3cret"))
    );
}

#[test]
fn servers_that_name_no_host_or_another_protocol_lead_to_where_http_is_spoken() {
    for (servers, expected) in [
        (json!([{"url": ""}]), "/a"),
        (
            json!([{"url": "{stage}", "variables": {"stage": {"default": ""}}}]),
            "/a",
        ),
        (
            json!([{"url": "ws://127.0.0.1:1/stream"}, {"url": "/v2"}]),
            "/v2/a",
        ),
    ] {
        let document = json!({"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "servers": servers,
            "paths": {"/a": {"get": {"operationId": "get"}}, "//b": {"get": {"operationId": "empty_segment"}}}})
        .to_string();
        let upstream = Upstream::start(Box::new(move |request| match request.line.as_str() {
            "GET /docs/spec.json HTTP/1.1" => reply(
                200,
                &["Content-Type: application/json"],
                document.as_bytes(),
            ),
            line => reply(200, &["Content-Type: text/plain"], line.as_bytes()),
        }));
        let url = format!("{}/docs/spec.json", upstream.url);
        let mut session = Session::start(&["serve", "--spec", &url]);
        let mut text = |tool: &str| {
            session.call(tool, &json!({}))["content"][0]["text"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        assert_eq!(text("get"), format!("GET {expected} HTTP/1.1"), "{servers}");
        // An empty segment is one like any other behind a base URL.
        let prefix = expected.strip_suffix("/a").unwrap();
        assert_eq!(
            text("empty_segment"),
            format!("GET {prefix}//b HTTP/1.1"),
            "{servers}"
        );
    }
}

#[test]
fn over_http_a_document_that_cannot_be_fetched_is_an_error_before_the_server_listens() {
    let url = "http://127.0.0.1:1/openapi.json";
    let transport = ["--transport", "http", "--bind", "127.0.0.1:0"];
    let output = run(&[&["serve", "--spec", url], &transport[..]].concat());
    let log = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{log}");
    assert!(
        log.contains("nothing listens there")
            && log.contains("--reload waits for a document")
            && !log.contains("listening on"),
        "{log}"
    );
}
