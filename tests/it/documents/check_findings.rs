//! What `check` says of a document that is read otherwise than its author means it.

use serde_json::{Value, json};

use crate::support::{Session, SpecFile, Upstream, run, stdout};

/// The findings of a document, as JSON.
fn findings(spec: &SpecFile) -> Vec<Value> {
    let output = run(&["check", "--spec", spec.path(), "--format", "json"]);
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    report["findings"].as_array().unwrap().clone()
}

#[test]
fn a_header_that_no_call_gives_is_told_where_nothing_else_sends_it() {
    let parameters = json!([{"name": "Authorization", "in": "header", "required": true, "type": "string"},
        {"name": "Content-Type", "in": "header", "required": true, "type": "string"}, {"name": "Accept", "in": "header", "type": "string"}]);
    let document = |security: Value| {
        let document = json!({"swagger": "2.0", "info": {"title": "T", "version": "1"}, "host": "api.example", "securityDefinitions": security,
            "paths": {"/a": {"get": {"operationId": "call", "parameters": parameters}}}});
        SpecFile::new(&document.to_string())
    };
    let messages = |spec: &SpecFile| -> Vec<String> {
        let all = findings(spec).into_iter();
        all.map(|finding| finding["message"].as_str().unwrap().to_owned()).collect()
    };
    let credential =
        "the header parameter `Authorization` is a credential, which no call gives; --header-env Authorization=VARIABLE sends it";
    let no_body = "the header parameter `Content-Type` is left out, because the request has no body";
    let without = document(json!({}));
    assert_eq!(messages(&without), [credential, no_body]);
    assert_eq!(messages(&document(json!({"key": {"type": "basic"}}))), [no_body]);
    // What the message says is what helps.
    let upstream = Upstream::echo();
    let mut session = Session::serving_with(
        &without,
        &upstream,
        &["--header-env", "Authorization=HELD"],
        &[("HELD", "Token abcdef")],
    );
    session.call("call", &json!({}));
    assert_eq!(upstream.take_one().header("authorization"), Some("Token abcdef"));
}

#[test]
fn a_body_that_no_call_can_send_is_told() {
    let body = |name: &str, schema: Value| json!({"post": {"requestBody": {"content": {name: {"schema": schema}}}}});
    let spec = SpecFile::with_paths(&json!({
        "/form": body("application/x-www-form-urlencoded", json!({"type": "string"})),
        "/mixed": body("multipart/mixed", json!({"type": "integer"})),
        "/files": body("multipart/form-data", json!({"type": "array", "items": {"type": "string", "format": "binary"}})),
        "/ok": body("application/x-www-form-urlencoded", json!({"type": "object"})),
    }));
    let told: Vec<Value> = findings(&spec)
        .into_iter()
        .filter(|finding| finding["message"].as_str().unwrap().contains("cannot be sent"))
        .map(|finding| finding["pointer"].clone())
        .collect();
    assert_eq!(told, ["#/paths/~1form/post", "#/paths/~1mixed/post"]);
}
