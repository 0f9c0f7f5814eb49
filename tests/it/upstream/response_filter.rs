//! `response_filter`: the model takes only what it needs of a reply, and cannot take more than
//! that.

use serde_json::{Value, json};

use crate::support::{Session, SpecFile, Upstream, reply, text};

fn upstream() -> Upstream {
    Upstream::start(Box::new(|request| match request.line.as_str() {
        line if line.contains("/text") => reply(200, &["Content-Type: text/plain"], b"hello"),
        line if line.contains("/gone") => reply(
            404,
            &["Content-Type: application/json"],
            b"{\"message\":\"no\"}",
        ),
        _ => reply(
            200,
            &["Content-Type: application/json"],
            br#"{"total":12345678901234567890,"items":[{"id":1,"name":"a"},{"id":2,"name":"b"}]}"#,
        ),
    }))
}

fn spec() -> SpecFile {
    SpecFile::with_paths(&json!({
        "/items": {"get": {"operationId": "items", "parameters": [{"name": "response_filter", "in": "query", "schema": {"type": "string"}}]}},
        "/text": {"get": {"operationId": "text"}},
        "/gone": {"get": {"operationId": "gone"}},
        "/plain": {"get": {"operationId": "plain"}}
    }))
}

#[test]
fn a_reply_is_filtered_before_it_is_given() {
    let (spec, upstream) = (spec(), upstream());
    let mut session = Session::serving(&spec, &upstream, &["response_filter: jq"]);
    let result = session.call("plain", &json!({"response_filter": "[.items[] | {id}]"}));
    assert_eq!(
        result["structuredContent"],
        json!({"result": [{"id": 1}, {"id": 2}]}),
        "{result}"
    );
    assert_eq!(upstream.take_one().line, "GET /plain HTTP/1.1");
    // The API's own argument of that name stays the API's.
    let result = session.call(
        "items",
        &json!({"response_filter": "x", "response_filter_": ".total"}),
    );
    assert_eq!(
        upstream.take_one().line,
        "GET /items?response_filter=x HTTP/1.1"
    );
    assert_eq!(
        result["structuredContent"]["result"].to_string(),
        "12345678901234567890",
        "{result}"
    );
}

/// A filter that cannot be applied leaves the reply whole, and one that takes too much ends alone.
#[test]
fn a_filter_that_fails_leaves_the_reply_and_the_server_as_they_are() {
    let (spec, upstream) = (spec(), upstream());
    let mut session = Session::serving(&spec, &upstream, &["response_filter: jq"]);
    for (tool, filter, remark) in [
        ("plain", ".items[", "not a jq program"),
        ("plain", ".total.name", "The filter was not applied"),
        ("plain", "def f: f; f", "more time or memory"),
        ("plain", "[range(1e12)]", "more time or memory"),
        (
            "plain",
            "\"x\" * 1e9 | . * 1000",
            "The filter was not applied",
        ),
        (
            "plain",
            "\"a\" * 700000000 | length",
            "The filter was not applied",
        ),
        ("plain", "import \"x\" as $d; $d", "not available here"),
        ("plain", "def f: [f]; f", "more time or memory"),
        ("plain", "\"secret\" | halt_error", "`halt_error`"),
        ("text", ".", "the reply is not JSON"),
    ] {
        let result = session.call(tool, &json!({"response_filter": filter}));
        let said = result["content"][0]["text"].as_str().unwrap();
        let note = result["structuredContent"]["_notes"][0].as_str();
        let last = note.unwrap_or_else(|| said.lines().last().unwrap());
        assert!(
            last.contains(remark) || last.contains("runs for more than"),
            "{filter}: {last}"
        );
        for leak in [
            "panicked",
            "memory allocation",
            ".rs:",
            "RUST_BACKTRACE",
            "secret",
        ] {
            assert!(!last.contains(leak), "{filter}: {last}");
        }
        assert_eq!(result["isError"], false, "{filter}");
        if tool == "plain" {
            let whole = r#"{"total":12345678901234567890,"items":[{"id":1,"name":"a"},{"id":2,"name":"b"}],"_notes":["#;
            assert!(said.starts_with(whole), "{filter}: {said}");
        }
        upstream.take_one();
    }
    let result = session.call("gone", &json!({"response_filter": ".message"}));
    assert!(
        result["isError"] == true && result["content"].as_array().unwrap().len() == 1,
        "{result}"
    );
    upstream.take_one();
    // The process of a filter has no environment to reveal.
    let result = session.call("plain", &json!({"response_filter": "env | keys"}));
    assert_eq!(
        result["structuredContent"]["result"],
        json!(["MIMALLOC_ARENA_RESERVE"]),
        "{result}"
    );
}

#[test]
fn a_filter_whose_output_is_not_json_is_reported_as_a_fault_of_the_filter() {
    let (spec, upstream) = (spec(), upstream());
    let mut session = Session::serving(&spec, &upstream, &["response_filter: jq"]);
    for filter in ["nan", "{(1): 2}"] {
        let result = session.call("plain", &json!({"response_filter": filter}));
        assert!(
            result["isError"] == false && result.to_string().contains("The filter was not applied"),
            "{filter}: {result}"
        );
    }
}

#[test]
fn p10_a_filter_has_what_is_left_of_the_calls_time() {
    let (spec, upstream) = (spec(), upstream());
    let mut session =
        Session::serving(&spec, &upstream, &["response_filter: jq", "--timeout", "1"]);
    let started = std::time::Instant::now();
    let result = session.call(
        "plain",
        &json!({"response_filter": "[range(1e9)] | length"}),
    );
    assert!(
        started.elapsed() < std::time::Duration::from_secs(20),
        "{:?}",
        started.elapsed()
    );
    assert!(
        result
            .to_string()
            .contains("the time for the call was over")
            && result["isError"] == false,
        "{result}"
    );
}

fn with_rule(response: &Value) -> SpecFile {
    SpecFile::new(
        &json!({"overrides": [{"match": {"operation": "plain"}, "response": response}]})
            .to_string(),
    )
}

#[test]
fn p42_what_the_program_of_a_rule_complains_of_is_not_logged() {
    let upstream = Upstream::start(Box::new(|_| {
        reply(
            200,
            &["Content-Type: application/json"],
            br#"{"name":"words-of-the-reply"}"#,
        )
    }));
    let (spec, rule) = (spec(), with_rule(&json!({"jq": ".name | error"})));
    let mut session = Session::serving(
        &spec,
        &upstream,
        &["--config", rule.path(), "--log-level", "debug"],
    );
    let result = session.call("plain", &json!({}));
    assert!(text(&result).contains("is withheld"), "{result}");
    session.logged("the jq program of a rule was not applied: it failed on this reply");
    let log = session.end();
    assert!(!log.contains("words-of-the-reply"), "{log}");
}

#[test]
fn a_reply_that_a_rule_cannot_be_applied_to_is_withheld() {
    let long = format!(
        "[{}]",
        vec![r#"{"id":1,"secret":"words-of-the-reply"}"#; 250_000].join(",")
    );
    let upstream = Upstream::start(Box::new(move |_| {
        reply(200, &["Content-Type: application/json"], long.as_bytes())
    }));
    for (rule, why) in [
        (json!({"fields": ["id"]}), "it has more than 8388608 bytes"),
        (
            json!({"jq": "[range(1e12)]"}),
            "its jq program could not be applied",
        ),
    ] {
        let (spec, rule) = (spec(), with_rule(&rule));
        let mut session = Session::serving(
            &spec,
            &upstream,
            &["--config", rule.path(), "response_filter: jq"],
        );
        let result = session.call("plain", &json!({"response_filter": ".[0]"}));
        assert!(result.to_string().contains(why), "{why}: {result}");
        assert!(!result.to_string().contains("words-of-the-reply"), "{why}");
    }
}

#[test]
fn a_reply_for_which_no_filter_has_a_place_is_withheld() {
    let upstream = Upstream::start(Box::new(|_| {
        reply(
            200,
            &["Content-Type: application/json"],
            br#"{"name":"words-of-the-reply"}"#,
        )
    }));
    // There are four places, and each program takes one until the call's time is over.
    let (spec, rule) = (
        spec(),
        with_rule(&json!({"jq": "def forever: forever; forever"})),
    );
    let mut session = Session::serving(
        &spec,
        &upstream,
        &["--config", rule.path(), "--timeout", "2"],
    );
    for _ in 0..8 {
        session.post("tools/call", &json!({"name": "plain", "arguments": {}}));
    }
    for _ in 0..8 {
        let result = session.receive()["result"].to_string();
        assert!(
            result.contains("is withheld") && !result.contains("words-of-the-reply"),
            "{result}"
        );
    }
}
