//! Waiting inside a call: the table of replies, and what it costs others.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::{Session, SpecFile, Upstream, project, reply, text};

/// Replies whose texts name the API by $URL, given one after the other. The status 0 closes the
/// connection.
fn scripted(replies: &[Value]) -> Upstream {
    let next: Mutex<VecDeque<Value>> = Mutex::new(replies.iter().cloned().collect());
    Upstream::start(Box::new(move |request| {
        let Some(given) = next.lock().unwrap().pop_front() else {
            return reply(599, &[], b"the API was not to be asked");
        };
        let url = format!("http://{}/v1", request.header("host").unwrap());
        let with_url = |text: &str| text.replace("$URL", &url);
        let status = u16::try_from(given["status"].as_u64().unwrap()).unwrap();
        if status == 0 {
            return Vec::new();
        }
        let mut headers: Vec<String> = texts(&given["headers"])
            .iter()
            .map(|line| with_url(line))
            .collect();
        headers.push(format!(
            "Content-Type: {}",
            given["type"].as_str().unwrap_or("application/json")
        ));
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        reply(
            status,
            &headers,
            with_url(given["body"].as_str().unwrap_or_default()).as_bytes(),
        )
    }))
}

fn texts(value: &Value) -> Vec<String> {
    let items = value.as_array().into_iter().flatten();
    items
        .map(|text| text.as_str().unwrap().to_owned())
        .collect()
}

fn merge(into: &mut Value, from: &Value) {
    for (key, value) in from.as_object().into_iter().flatten() {
        into[key] = value.clone();
    }
}

#[test]
fn p1_p9_p14_replies_are_waited_for_as_the_table_says() {
    let file = std::fs::read_to_string(project("tests/cases/waiting/replies.yaml")).unwrap();
    let file: Value = serde_yaml::from_str(&file).unwrap();
    let cases = file["cases"].as_array().unwrap();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, SeqCst)) {
                    run_case(case);
                }
            });
        }
    });
}

fn run_case(case: &Value) {
    let name = case["name"].as_str().unwrap();
    let method = case["method"].as_str().unwrap_or("post");
    let mut operation = json!({
        "operationId": "act",
        "parameters": [{"name": "mode", "in": "query", "schema": {"type": "string"}}],
        "responses": {"202": {"description": "later", "headers": {"Location": {}}}},
    });
    merge(&mut operation, &case["operation"]);
    let mut paths = json!({ "/exports": { method: operation } });
    merge(&mut paths, &case["paths"]);
    let spec = SpecFile::new(
        &json!({
            "openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "paths": paths,
            "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "query", "name": "key"}}},
        })
        .to_string(),
    );
    let mut rule = json!({ "match": { "operation": "act" } });
    merge(&mut rule, &case["rule"]);
    if !case["wait"].is_null() {
        rule["wait"] = case["wait"].clone();
    }
    let config = SpecFile::new(&json!({ "overrides": [rule] }).to_string());
    let upstream = scripted(case["replies"].as_array().unwrap());
    let base = format!("{}/v1", upstream.url);
    let flags = texts(&case["flags"]);
    let mut args = vec![
        "serve",
        "--spec",
        spec.path(),
        "--base-url",
        &base,
        "--config",
        config.path(),
        "breaker_failures: 0",
    ];
    args.extend(flags.iter().map(String::as_str));
    let env: Vec<(&str, &str)> = case["env"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
        .collect();
    let mut session = Session::start_with(&args, &env);
    let given = if case["arguments"].is_null() {
        json!({})
    } else {
        case["arguments"].clone()
    };
    let result = session.call("act", &given);
    let received = upstream.take_all();
    let asked: Vec<&str> = received
        .iter()
        .map(|request| request.line.trim_end_matches(" HTTP/1.1"))
        .collect();
    assert_eq!(asked, texts(&case["asks"]), "{name}: {result}");
    for request in received.iter().filter(|_| !case["every"].is_null()) {
        assert!(
            request
                .headers
                .iter()
                .any(|line| line == case["every"].as_str().unwrap()),
            "{name}: {request:?}"
        );
    }
    let whole = result.to_string().replace("\\\"", "\"");
    assert_eq!(
        result["isError"] == true,
        case["error"] == true,
        "{name}: {result}"
    );
    for expected in [&case["gives"], &case["also"], &case["note"]] {
        let expected = expected.as_str().unwrap_or_default();
        assert!(
            text(&result).contains(expected),
            "{name}: {expected:?} is not in {result}"
        );
    }
    if let Some(lacking) = case["lacks"].as_str() {
        assert!(!whole.contains(lacking), "{name}: {result}");
    }
    let log = session.end();
    assert!(
        !log.contains("/v1/exports/7"),
        "{name}: a URL is in the log: {log}"
    );
}

#[test]
fn p14_no_place_of_the_api_is_held_between_two_requests() {
    let spec = SpecFile::with_paths(&json!({
        "/exports": {"post": {"operationId": "act", "responses": {"202": {"description": "later"}}}},
        "/plain": {"get": {"operationId": "plain"}},
    }));
    let upstream = Upstream::start(Box::new(|request| match request.line.as_str() {
        line if line.starts_with("POST") => {
            reply(202, &["Location: /exports/7", "Retry-After: 2"], b"")
        }
        line if line.contains("/exports/7") => {
            reply(200, &["Content-Type: application/json"], b"{\"rows\":3}")
        }
        _ => reply(200, &[], b"plain"),
    }));
    let mut session = Session::serving(&spec, &upstream, &["max_concurrency: 1"]);
    let waiting = session.post(
        "tools/call",
        &json!({"name": "act", "arguments": {}, "_meta": {"progressToken": "p"}}),
    );
    let mut progress = Vec::new();
    let mut is_plain_answered = false;
    let mut plain = None;
    loop {
        let message = session.receive();
        if message["method"] == "notifications/progress" {
            progress.push(message["params"]["progress"].as_u64().unwrap());
            // The wait has begun: the only place is free.
            plain.get_or_insert_with(|| {
                session.post("tools/call", &json!({"name": "plain", "arguments": {}}))
            });
        } else if message["id"] == waiting {
            assert!(text(&message["result"]).contains("rows"), "{message}");
            break;
        } else if plain.is_some_and(|id| message["id"] == id) {
            assert_eq!(message["result"]["isError"], false, "{message}");
            is_plain_answered = true;
        }
    }
    assert!(
        is_plain_answered,
        "the plain call was to be answered before the other one"
    );
    assert!(
        progress.is_sorted_by(|one, next| one < next) && !progress.is_empty(),
        "{progress:?}"
    );
    let first = Arc::new(upstream.take_all());
    assert_eq!(
        first
            .iter()
            .filter(|request| request.line.starts_with("POST"))
            .count(),
        1
    );
}
