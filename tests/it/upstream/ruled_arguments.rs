//! Rules of the operator for arguments, which an adversary tries to circumvent: the values of
//! clients, the dry run, the question to a person, the log, and the settings themselves.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::{
    HttpServer, Session, SpecFile, Upstream, call_message, command, project, reply, stderr, stdout,
};

fn document() -> SpecFile {
    SpecFile::with_paths(
        &json!({"/items/{id}": {"post": {"operationId": "act", "parameters": [
        {"name": "id", "in": "path", "required": true, "schema": {"type": "string"}},
        {"name": "tenant", "in": "query", "required": true, "schema": {"type": "string"}},
        {"name": "level", "in": "query", "schema": {"type": "integer"}},
        {"name": "X-Trace", "in": "header", "schema": {"type": "string"}}],
        "requestBody": {"content": {"application/json": {"schema": {"type": "object", "properties": {"owner": {"type": "string"}, "note": {"type": "string"}}}}}}}}}),
    )
}

fn config(rules: &Value) -> SpecFile {
    SpecFile::new(&json!({ "overrides": rules }).to_string())
}

/// A command for an API that is not there, with these rules.
fn with_rules(subcommand: &[&str], spec: &SpecFile, rules: &SpecFile, more: &[&str]) -> Command {
    let settings = [
        "--spec",
        spec.path(),
        "--base-url",
        "http://127.0.0.1:9",
        "--config",
        rules.path(),
    ];
    command(&[subcommand, &settings, more].concat())
}

#[test]
fn p31_a_value_of_the_client_goes_where_its_rule_says_and_nowhere_else() {
    let upstream = Upstream::start(Box::new(|request| {
        reply(
            200,
            &["Content-Type: application/json"],
            json!({ "echo": request.line }).to_string().as_bytes(),
        )
    }));
    let spec = document();
    let rules = config(&json!([{ "arguments": {
        "query:tenant": { "value": { "forward": "X-Tenant" } },
        "query:level": { "value": { "forward": "X-Level" } },
    } }]));
    let server = HttpServer::start(&[
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "--config",
        rules.path(),
    ]);
    let call = call_message("act", r#"{"id":"1"}"#);
    let (_, answer) = server.post(
        &["X-Tenant: acme-tenant", "X-Level: 3", "X-Other: no"],
        &call,
    );
    let received = upstream.take_one();
    assert_eq!(
        received.line, "POST /items/1?tenant=acme-tenant&level=3 HTTP/1.1",
        "{answer}"
    );
    assert_eq!(
        (received.header("x-tenant"), received.header("x-other")),
        (None, None)
    );
    assert!(
        !answer.contains("acme-tenant"),
        "the value came back: {answer}"
    );
    // A header that is missing, there twice, of another type, or of the connection alone is
    // refused, and named without its value.
    for (headers, expected) in [
        (&["X-Level: 3"][..], "x-tenant"),
        (
            &["X-Tenant: one-tenant", "X-Tenant: two-tenant", "X-Level: 3"],
            "x-tenant",
        ),
        (&["X-Tenant: one-tenant", "X-Level: many-levels"], "x-level"),
        (
            &["X-Tenant: one-tenant", "X-Level: 3", "Connection: x-tenant"],
            "x-tenant",
        ),
    ] {
        let (_, answer) = server.post(headers, &call);
        assert!(
            answer.contains("nothing was sent") && answer.contains(expected),
            "{headers:?}: {answer}"
        );
        assert!(
            !answer.contains("one-tenant") && !answer.contains("many-levels"),
            "{answer}"
        );
        assert!(upstream.received().is_empty(), "{headers:?}");
    }
    for arguments in [
        r#"{"id":"1","tenant":"mine"}"#,
        r#"{"id":"1","query":{"tenant":"mine"}}"#,
        r#"{"id":"1","X-Tenant":"mine"}"#,
    ] {
        let (_, answer) = server.post(
            &["X-Tenant: t", "X-Level: 3"],
            &call_message("act", arguments),
        );
        assert!(answer.contains("isError\":true"), "{answer}");
        assert!(upstream.received().is_empty(), "{arguments}");
    }
    // What P1 to P8 say of arguments holds for these as well.
    let (_, answer) = server.post(&["X-Tenant: a&admin=1#x", "X-Level: 3"], &call);
    assert_eq!(
        upstream.take_one().line,
        "POST /items/1?tenant=a%26admin%3D1%23x&level=3 HTTP/1.1",
        "{answer}"
    );
}

#[test]
fn a_secret_value_is_masked_in_the_dry_run_and_in_the_log() {
    let spec = document();
    let rules = config(&json!([{ "arguments": {
        "path:id": { "value": { "env": "RULED_SECRET" } },
        "query:tenant": { "value": { "env": "RULED_SECRET" } },
        "header:X-Trace": { "value": "fixed-trace" },
        "/owner": { "value": { "env": "RULED_SECRET" } },
    } }]));
    let args = |more: &[&str]| {
        let mut command = with_rules(&["call", "act"], &spec, &rules, more);
        command.env("RULED_SECRET", "s3cret-value");
        command.output().unwrap()
    };
    let shown = args(&[
        "--args",
        r#"{"body":{"note":"x"}}"#,
        "--dry-run",
        "--log-level",
        "trace",
    ]);
    let (out, log) = (stdout(&shown), stderr(&shown));
    assert!(shown.status.success(), "{out}{log}");
    assert!(
        out.contains("POST /items/***?tenant=***")
            && out.contains("fixed-trace")
            && out.contains(r#""owner":"***""#),
        "{out}"
    );
    assert!(
        !out.contains("s3cret-value") && !log.contains("s3cret-value"),
        "{out}{log}"
    );
    // Nor does an error, a list, an explanation or a report.
    let wrong = args(&["--args", r#"{"tenant":"x"}"#, "--dry-run"]);
    for more in [
        &["tools", "--format", "json"][..],
        &["tools", "--explain"],
        &["check"],
    ] {
        let mut command =
            command(&[more, &["--spec", spec.path(), "--config", rules.path()]].concat());
        let output = command
            .env("RULED_SECRET", "s3cret-value")
            .output()
            .unwrap();
        let all = stdout(&output) + &stderr(&output);
        assert!(
            output.status.code().is_some_and(|code| code < 2),
            "{more:?}: {all}"
        );
        assert!(!all.contains("s3cret-value"), "{more:?}: {all}");
        if more.contains(&"--explain") {
            assert!(
                all.contains("query:tenant") && all.contains("from the environment"),
                "{all}"
            );
        }
    }
    assert!(!(stdout(&wrong) + &stderr(&wrong)).contains("s3cret-value"));
}

#[test]
fn the_question_to_a_person_masks_secret_values() {
    let spec = document();
    let rules = config(
        &json!([{ "arguments": { "query:tenant": { "value": { "env": "RULED_SECRET" } } } }]),
    );
    let upstream = Upstream::echo();
    let args = [
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "--config",
        rules.path(),
        "--confirm",
        "write",
    ];
    let server = HttpServer::start_with(&args, &[("RULED_SECRET", "s3cret-value")]);
    let question = server.call_stateless(
        "act",
        json!({ "arguments": { "id": "1" } }),
        &json!({ "elicitation": {} }),
    );
    let text = question.to_string();
    assert!(
        text.contains("tenant=***") && !text.contains("s3cret-value"),
        "{text}"
    );
    assert!(upstream.received().is_empty());
}

#[test]
fn what_does_not_go_together_with_a_hidden_value_names_the_arguments_in_the_log_alone() {
    let spec = SpecFile::with_paths(
        &json!({"/items": {"post": {"operationId": "act", "requestBody": {"content": {"application/json": {"schema":
        {"type": "object", "maxProperties": 1, "properties": {"owner": {"type": "string"}, "note": {"type": "string"}}}}}}}}}),
    );
    let rules =
        config(&json!([{ "arguments": { "/owner": { "value": { "env": "RULED_SECRET" } } } }]));
    let upstream = Upstream::echo();
    let mut session = Session::serving_with(
        &spec,
        &upstream,
        &["--config", rules.path()],
        &[("RULED_SECRET", "s3cret-value")],
    );
    let result = session
        .call("act", &json!({ "body": { "note": "n0te-value" } }))
        .to_string();
    assert!(
        result.contains("do not go together with a setting of this server")
            && !result.contains("owner")
            && !result.contains("s3cret"),
        "{result}"
    );
    assert!(upstream.received().is_empty());
    let log =
        session.logged("do not fit the document's schema once those of `overrides` are in: /owner");
    assert!(
        !log.contains("s3cret-value") && !log.contains("n0te-value"),
        "{log}"
    );
}

#[test]
fn what_is_wrong_with_rules_for_arguments_ends_the_start() {
    let text =
        std::fs::read_to_string(project("tests/cases/settings/overrides_problems.yaml")).unwrap();
    let file: Value = serde_yaml::from_str(&text).unwrap();
    let spec = SpecFile::new(&file["document"].to_string());
    for case in file["cases"].as_array().unwrap() {
        let rules = config(&json!([case["rule"]]));
        let output = with_rules(&["serve"], &spec, &rules, &[]).output().unwrap();
        let log = stderr(&output);
        assert!(
            output.status.code().is_some_and(|code| code > 0),
            "{case}: {log}"
        );
        assert!(
            log.contains(case["problem"].as_str().unwrap()),
            "{case}: {log}"
        );
    }
}

#[test]
fn p31_a_rule_for_a_header_that_another_setting_sends_ends_the_start() {
    let spec = document();
    let optional =
        json!([{ "optional": true, "arguments": { "header:X-Trace": { "value": "fixed" } } }]);
    let rules = config(&optional);
    for (flags, words) in [
        (
            &["--transport", "http", "forward_header: [x-trace]"][..],
            "`forward_header` takes it from the client",
        ),
        (
            &[
                "--transport",
                "http",
                "forward_header: [X-Client-Trace=X-Trace]",
            ],
            "`forward_header` takes it from the client",
        ),
        (
            &["--header", "X-Trace: of-the-operator"],
            "--header sets it",
        ),
    ] {
        let output = with_rules(&["serve"], &spec, &rules, flags)
            .output()
            .unwrap();
        let log = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {log}");
        assert!(
            log.contains("`overrides[0]`: `header:X-Trace` is sent whatever the rule says")
                && log.contains(words),
            "{flags:?}: {log}"
        );
    }
    // A rule that takes the header's value from the client needs no other setting.
    let forwarding = config(
        &json!([{ "arguments": { "header:X-Trace": { "value": { "forward": "X-Client-Trace" } } } }]),
    );
    let upstream = Upstream::echo();
    let server = HttpServer::start(&[
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "--config",
        forwarding.path(),
    ]);
    let call = call_message("act", r#"{"id":"1","tenant":"t"}"#);
    server.post(
        &["X-Client-Trace: of-the-client", "X-Trace: another"],
        &call,
    );
    assert_eq!(upstream.take_one().header("x-trace"), Some("of-the-client"));
}

#[test]
fn a_rule_that_may_match_nothing_may_name_any_argument() {
    let spec = document();
    let rules =
        config(&json!([{ "optional": true, "arguments": { "query:nowhere": { "hide": true } } }]));
    let upstream = Upstream::echo();
    let mut session = Session::serving(&spec, &upstream, &["--config", rules.path()]);
    assert_eq!(session.tools().len(), 1);
}

/// Every argument that could give a fixed key of a query or a form, in every place and spelling.
#[test]
fn no_argument_gives_a_fixed_key_a_second_time() {
    let spec = SpecFile::with_paths(&json!({
        "/query": {"get": {"operationId": "query", "parameters": [
            {"name": "tenant", "in": "query", "schema": {"type": "string"}},
            {"name": "spread", "in": "query", "schema": {"type": "object"}},
            {"name": "deep", "in": "query", "style": "deepObject", "schema": {"type": "object"}},
            {"name": "text", "in": "query", "allowReserved": true, "schema": {"type": "string"}},
            {"name": "list", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}}]}},
        "/form": {"post": {"operationId": "form", "requestBody": {"content": {"application/x-www-form-urlencoded": {
            "schema": {"type": "object", "properties": {"tenant": {"type": "string"}, "spread": {"type": "object"}, "text": {"type": "string"}}},
            "encoding": {"spread": {"style": "form", "explode": true}, "text": {"allowReserved": true}}}}}}},
    }));
    let rules = config(&json!([{ "arguments": {
        "query:tenant": { "value": "fixed" }, "/tenant": { "value": "fixed" },
    } }]));
    let upstream = Upstream::echo();
    let mut session = Session::serving(&spec, &upstream, &["--config", rules.path()]);
    let keys = [
        "tenant",
        "Tenant",
        "TENANT",
        "tenant[]",
        "tenant[0]",
        "tenant[a]",
        " tenant",
        "tenant ",
        "tenant\t",
        "tenant\u{0}",
        "tenant\u{0}x",
        "ten%61nt",
        "tenant=mine&x",
        "x&tenant",
        "x=1&tenant",
        "tenant;",
        "te\u{200b}nant",
        "ｔｅｎａｎｔ",
    ];
    let decode = |text: &str| percent_decoded(&text.replace('+', " "));
    let mut sent = 0;
    for key in keys {
        for (tool, arguments) in [
            ("query", json!({ key: "mine" })),
            ("query", json!({ "query": { key: "mine" } })),
            ("query", json!({ "arguments": { key: "mine" } })),
            ("query", json!({ "spread": { key: "mine" } })),
            ("query", json!({ "spread": { key: ["mine", "mine"] } })),
            ("query", json!({ "deep": { key: "mine" } })),
            ("query", json!({ "text": format!("x&{key}=mine") })),
            ("query", json!({ "text": format!("x#{key}=mine") })),
            ("query", json!({ "list": [format!("x&{key}=mine")] })),
            ("form", json!({ key: "mine" })),
            ("form", json!({ "body": { key: "mine" } })),
            ("form", json!({ "body": { "spread": { key: "mine" } } })),
            (
                "form",
                json!({ "body": { "text": format!("x&{key}=mine") } }),
            ),
            ("form", json!({ "body": { "body": { key: "mine" } } })),
        ] {
            session.call(tool, &arguments);
            for request in upstream.take_all() {
                sent += 1;
                let body = String::from_utf8(request.body.clone()).unwrap();
                let target = request.line.split(' ').nth(1).unwrap().to_owned();
                let pairs = if tool == "form" {
                    body
                } else {
                    target.split_once('?').unwrap().1.to_owned()
                };
                let named: Vec<&str> = pairs
                    .split('&')
                    .filter(|pair| {
                        let key = decode(pair.split('=').next().unwrap());
                        key.split(['[', '\0'])
                            .next()
                            .unwrap()
                            .trim()
                            .eq_ignore_ascii_case("tenant")
                    })
                    .collect();
                assert_eq!(named, ["tenant=fixed"], "{tool} {arguments}: {pairs}");
            }
        }
    }
    assert!(sent > 50, "only {sent} calls were sent");
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let hex = tail
            .get(..2)
            .and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        if let Some(byte) = hex.filter(|_| *first == b'%') {
            bytes.push(byte);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A form writes `{"a": {"b": …}}` as `a[b]` or as `b`: no other property gives that key a second
/// time.
#[test]
fn a_closed_pointer_into_an_object_of_a_form_is_closed_on_every_road() {
    let upstream = Upstream::echo();
    let properties = json!({
        "filter": {"type": "object", "properties": {"tenant": {"type": "string"}, "q": {"type": "string"}}, "additionalProperties": true},
        "more": {"type": "object", "additionalProperties": true},
    });
    let body = |media_type: &str, filter: &Value, more: &Value| {
        json!({"content": {media_type: {
            "schema": {"type": "object", "properties": properties, "additionalProperties": true},
            "encoding": {"filter": filter, "more": more}}}})
    };
    let (deep, form) = (
        json!({"style": "deepObject", "explode": true}),
        json!({"style": "form", "explode": true}),
    );
    let urlencoded = "application/x-www-form-urlencoded";
    let spec = SpecFile::with_paths(&json!({
        "/deep": {"post": {"operationId": "deep", "requestBody": body(urlencoded, &deep, &form)}},
        "/spread": {"post": {"operationId": "spread", "requestBody": body(urlencoded, &form, &form)}},
        "/parts": {"post": {"operationId": "parts", "requestBody": body("multipart/form-data", &json!({}), &json!({}))}},
    }));
    let rules = config(&json!([{ "arguments": { "/filter/tenant": { "value": "ours" } } }]));
    let mut session = Session::start(&[
        "serve",
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "--config",
        rules.path(),
    ]);
    for (tool, body, sent) in [
        (
            "deep",
            json!({"filter": {"q": "1"}}),
            Some("filter%5Bq%5D=1&filter%5Btenant%5D=ours"),
        ),
        ("deep", json!({}), Some("filter%5Btenant%5D=ours")),
        ("deep", json!({"filter[tenant]": "mine"}), None),
        (
            "deep",
            json!({"filter": {}, "Filter[tenant]": "mine"}),
            None,
        ),
        ("deep", json!({"more": {"filter[tenant]": "mine"}}), None),
        ("deep", json!({"filter": {"tenant][x": "mine"}}), None),
        ("deep", json!({"filter": {"tenant": "mine"}}), None),
        (
            "spread",
            json!({"filter": {"q": "1"}}),
            Some("q=1&tenant=ours"),
        ),
        ("spread", json!({"tenant": "mine"}), None),
        ("spread", json!({"more": {"tenant": "mine"}}), None),
        ("spread", json!({"more": {"TENANT": "mine"}}), None),
        (
            "parts",
            json!({"filter": {"q": "1"}}),
            Some(r#"{"q":"1","tenant":"ours"}"#),
        ),
        ("parts", json!({"filter[tenant]": "mine"}), None),
        ("parts", json!({"FILTER": "mine"}), None),
    ] {
        let result = session.call(tool, &json!({ "body": body }));
        if let Some(sent) = sent {
            let received = upstream.take_one();
            let text = String::from_utf8_lossy(&received.body).into_owned();
            assert!(text.contains(sent), "{tool} {body}: {text}");
        } else {
            assert_eq!(result["isError"], true, "{tool} {body}: {result}");
            assert!(
                upstream.received().is_empty(),
                "{tool} {body}: {:?}",
                upstream.take_all()
            );
        }
    }
}

#[test]
fn a_rule_knows_an_operation_by_its_generated_name_with_any_prefix() {
    let spec = SpecFile::with_paths(&json!({"/pets": {"get": {"parameters": [
        {"name": "tenant", "in": "query", "schema": {"type": "string"}},
        {"name": "limit", "in": "query", "schema": {"type": "integer"}}]}}}));
    let rules = config(
        &json!([{ "match": { "operation": "get_pets" }, "arguments": {
        "query:tenant": { "value": "mine" },
    } }]),
    );
    for prefix in [&[][..], &["--tool-prefix", "shop_"]] {
        let flags = [&["--format", "json"], prefix].concat();
        let output = with_rules(&["tools"], &spec, &rules, &flags)
            .output()
            .unwrap();
        let tools: Value = serde_json::from_str(&stdout(&output)).unwrap();
        let properties = tools[0]["tool"]["inputSchema"]["properties"]
            .as_object()
            .unwrap();
        assert!(
            properties.contains_key("limit") && !properties.contains_key("tenant"),
            "{prefix:?}: {tools}"
        );
    }
}
