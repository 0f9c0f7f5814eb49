//! Findings of `check` about a document that is read differently from its author's intent.

use serde_json::{Value, json};

use crate::support::{Session, SpecFile, Upstream, run, stdout};

/// The findings of a document, as JSON.
fn findings(spec: &SpecFile) -> Vec<Value> {
    let output = run(&["check", "--spec", spec.path(), "--format", "json"]);
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    report["findings"].as_array().unwrap().clone()
}

#[test]
fn a_misspelled_key_is_told_with_the_key_that_was_meant() {
    let spec = SpecFile::new(
        "openapi: 3.1.0
info: {title: T, version: '1'}
component: {}
paths:
  /a:
    pots: {operationId: lost}
    get:
      operationID: a
      paramaters: [{name: q, in: query}]
      parameters_: []
      responses: {'200': {description: ok, contents: {}}}
  /b:
    Post:
      requestbody: {}
  /c:
    put:
      requestBody:
        content: {application/json: {schema: {type: object, propertys: {}, additionalProperties: {typ: string, allof: []}}}}
components:
  schemas: {Pet: {oneOf: [{min_length: 1, x-typo: 1, const: {pots: 1}, example: {pots: 1}}]}}
",
    );
    let told: Vec<String> = findings(&spec)
        .iter()
        .filter(|finding| {
            finding["message"]
                .as_str()
                .unwrap()
                .contains("did you mean")
        })
        .map(|finding| {
            assert_eq!(finding["level"], "warning", "{finding}");
            format!(
                "{}:{} {}",
                finding["line"],
                finding["pointer"].as_str().unwrap(),
                finding["message"].as_str().unwrap()
            )
        })
        .collect();
    let expected = [
        "6:#/paths/~1a/pots `pots` is not a key of a path item and is ignored; did you mean `post`?",
        "8:#/paths/~1a/get/operationID `operationID` is not a key of an operation and is ignored; did you mean `operationId`?",
        "9:#/paths/~1a/get/paramaters `paramaters` is not a key of an operation and is ignored; did you mean `parameters`?",
        "10:#/paths/~1a/get/parameters_ `parameters_` is not a key of an operation and is ignored; did you mean `parameters`?",
        "11:#/paths/~1a/get/responses/200/contents `contents` is not a key of a response and is ignored; did you mean `content`?",
        "14:#/paths/~1b/Post `Post` is not a key of a path item and is ignored; did you mean `post`?",
    ];
    for line in expected {
        assert!(told.iter().any(|told| told == line), "{line}\n{told:#?}");
    }
    for key in ["propertys", "typ", "allof", "min_length"] {
        assert!(
            told.iter()
                .any(|told| told.contains(&format!("`{key}` is not a key of a schema"))),
            "{key}\n{told:#?}"
        );
    }
    assert_eq!(told.len(), 10, "{told:#?}");
}

#[test]
fn a_key_of_another_version_is_told() {
    for (document, expected) in [
        (
            json!({"openapi": "3.1.0", "basePath": "/v1", "paths": {"/a": {"query": {}, "get": {"consumes": ["a/b"], "parameters": [{"name": "q", "in": "query", "type": "integer"}]}}}}),
            [
                "`basePath` is a key of the document in Swagger 2.0 and is ignored here",
                "`query` is a key of a path item in OpenAPI 3.2 and is ignored here",
                "`consumes` is a key of an operation in Swagger 2.0 and is ignored here",
                "`type` is a key of a parameter in Swagger 2.0 and is ignored here",
            ],
        ),
        (
            json!({"swagger": "2.0", "servers": [], "components": {}, "paths": {"/a": {"post": {"requestBody": {}, "responses": {"200": {"description": "ok", "content": {}}}}}}}),
            [
                "`servers` is a key of the document in OpenAPI 3 and is ignored here",
                "`components` is a key of the document in OpenAPI 3 and is ignored here",
                "`requestBody` is a key of an operation in OpenAPI 3 and is ignored here",
                "`content` is a key of a response in OpenAPI 3 and is ignored here",
            ],
        ),
    ] {
        let told = findings(&SpecFile::new(&document.to_string()));
        for message in expected {
            assert!(
                told.iter().any(|finding| finding["message"] == message),
                "{message}: {told:#?}"
            );
        }
    }
}

#[test]
fn keys_of_the_author_and_of_the_version_are_no_misspellings() {
    for document in [
        r##"{"openapi":"3.2.0","info":{"title":"T","version":"1"},"x-path":{},"paths":{"/post":{"$ref":"#/components/pathItems/gets"},"/a":{
            "query":{"responses":{"default":{"$ref":"#/components/responses/ok"}},"callbacks":{"pots":{"{$request.query.url}":{"post":{}}}}},
            "additionalOperations":{"POTS":{}}}},
            "components":{"pathItems":{"gets":{"get":{}}},"responses":{"ok":{"description":"ok"}},
            "schemas":{"proprties":{"properties":{"proprties":{"type":"string"},"itmes":{}},"required":["itmes"],"default":{"itmes":1},"enum":[{"typ":1}]}}}}"##,
        r#"{"swagger":"2.0","info":{"title":"T","version":"1"},"paths":{"/a":{"get":{"parameters":[{"name":"q","in":"query","type":"array",
            "items":{"type":"string"},"collectionFormat":"multi","maxItems":3}],"responses":{"200":{"description":"ok","schema":{"type":"string"}}}}}},
            "definitions":{"Pet":{"type":"object","discriminator":"kind","properties":{"kind":{"type":"string"}}}}}"#,
    ] {
        let told: Vec<Value> = findings(&SpecFile::new(document))
            .into_iter()
            .filter(|finding| {
                finding["message"]
                    .as_str()
                    .unwrap()
                    .contains("is not a key")
            })
            .collect();
        assert!(told.is_empty(), "{told:#?}");
    }
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
        all.map(|finding| finding["message"].as_str().unwrap().to_owned())
            .collect()
    };
    let credential = "the header parameter `Authorization` is a credential, which no call gives; --header-env Authorization=VARIABLE sends it";
    let no_body =
        "the header parameter `Content-Type` is left out, because the request has no body";
    let without = document(json!({}));
    assert_eq!(messages(&without), [credential, no_body]);
    assert_eq!(
        messages(&document(json!({"key": {"type": "basic"}}))),
        [no_body]
    );
    // What the message says is what helps.
    let upstream = Upstream::echo();
    let mut session = Session::serving_with(
        &without,
        &upstream,
        &["--header-env", "Authorization=HELD"],
        &[("HELD", "Token abcdef")],
    );
    session.call("call", &json!({}));
    assert_eq!(
        upstream.take_one().header("authorization"),
        Some("Token abcdef")
    );
}

#[test]
fn a_body_that_no_call_can_send_is_told() {
    let body = |name: &str, schema: Value| json!({"post": {"requestBody": {"content": {name: {"schema": schema}}}}});
    let spec = SpecFile::with_paths(&json!({
        "/form": body("application/x-www-form-urlencoded", json!({"type": "integer"})),
        "/mixed": body("multipart/mixed", json!({"type": "integer"})),
        "/files": body("multipart/form-data", json!({"type": "array", "items": {"type": "string", "format": "binary"}})),
        "/ok": body("application/x-www-form-urlencoded", json!({"type": "object"})),
    }));
    let told: Vec<Value> = findings(&spec)
        .into_iter()
        .filter(|finding| {
            finding["message"]
                .as_str()
                .unwrap()
                .contains("cannot be sent")
        })
        .map(|finding| finding["pointer"].clone())
        .collect();
    assert_eq!(told, ["#/paths/~1form/post", "#/paths/~1mixed/post"]);
}

#[test]
fn names_without_what_a_framework_added_are_noted() {
    let spec = SpecFile::new(
        "openapi: 3.1.0
info: {title: T, version: '1'}
paths:
  /flows/count:
    post: {operationId: count_flows_flows_count_post, responses: {}}
  /flows/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: string}}]
    get: {operationId: read_flow_flows__id__get, responses: {}}
    delete: {operationId: delete_flow_flows__id__delete, responses: {}}
",
    );
    let found = findings(&spec);
    let note = found
        .iter()
        .find(|finding| finding["level"] == "note")
        .unwrap();
    let message = note["message"].as_str().unwrap();
    assert!(
        message.starts_with("3 tools are named without the path and the method")
            && message.contains("`count_flows` for `count_flows_flows_count_post`"),
        "{message}"
    );
    // A selection by the operationId still finds the tool.
    let output = run(&[
        "tools",
        "--spec",
        spec.path(),
        "--tool-include",
        "read_flow_flows__id__get",
    ]);
    assert!(
        stdout(&output).contains("read_flow") && !stdout(&output).contains("count_flows"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn a_text_that_can_be_sent_with_and_without_the_quotes_of_json_is_told() {
    let body = |types: &[&str], schema: Value| {
        let content: serde_json::Map<String, Value> = types
            .iter()
            .map(|name| ((*name).to_owned(), json!({"schema": schema})))
            .collect();
        json!({"post": {"requestBody": {"content": content}}})
    };
    let spec = SpecFile::with_paths(&json!({
        "/secret": body(&["application/json", "application/x-tar"], json!({"type": "string"})),
        "/object": body(&["application/json", "application/xml"], json!({"type": "object"})),
        "/quoted": body(&["application/json"], json!({"type": "string"})),
    }));
    let told: Vec<Value> = findings(&spec)
        .into_iter()
        .filter(|finding| {
            finding["message"]
                .as_str()
                .unwrap()
                .contains("quotes of JSON")
        })
        .collect();
    let [told] = &told[..] else {
        panic!("{told:#?}")
    };
    assert_eq!(told["pointer"], "#/paths/~1secret/post");
    assert_eq!(
        told["message"],
        "the body can be sent as it is (`application/x-tar`) and in the quotes of JSON (`application/json`); it is sent as `application/x-tar` unless a call chooses another one"
    );
}
