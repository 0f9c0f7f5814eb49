//! All rules for a call apply to the operation behind a meta-tool: confirmation, records, keywords
//! of a search.

use serde_json::{Value, json};

use crate::support::{HttpServer, Session, SpecFile, Upstream, petstore, text, wait_until};

const KEY: &str = "X-API-Key: none-of-your-business";

fn asking<'a>(spec: &'a str, upstream: &'a Upstream) -> [&'a str; 10] {
    [
        "--spec",
        spec,
        "--base-url",
        &upstream.url,
        "--confirm",
        "destructive",
        "--header",
        KEY,
        "--tools",
        "search",
    ]
}

/// 2026-07-28, where a question comes back with the call.
#[test]
fn a_confirmation_of_a_meta_tool_is_that_of_the_operation_and_of_this_gate_alone() {
    let (spec, upstream) = (petstore(), Upstream::echo());
    let server = HttpServer::start(&asking(&spec, &upstream));
    let post = |tool: &str, arguments: &Value, state: Option<&Value>| -> Value {
        let mut parameters = json!({ "arguments": arguments });
        if let Some(state) = state {
            parameters["requestState"] = state.clone();
            parameters["inputResponses"] = json!({"confirm": {"action": "accept", "content": {}}});
        }
        server.call_stateless(tool, parameters, &json!({"elicitation": {}}))["result"].clone()
    };
    // A number as text is repaired before it is shown.
    let inner = json!({"operation": "delete_pet", "arguments": {"petId": "1"}});
    // There is no question about a call that reads, a wrong meta-tool, or a call that would be
    // refused anyway.
    let read = post("call_read", &json!({"operation": "list_pets"}), None);
    assert_eq!(read["isError"], false, "{read}");
    upstream.take_one();
    for (meta_tool, arguments) in [
        ("call_read", inner.clone()),
        ("call_write", inner.clone()),
        (
            "call_destructive",
            json!({"operation": "delete_pet", "arguments": {"petId": "x"}}),
        ),
    ] {
        let refused = post(meta_tool, &arguments, None);
        assert!(
            refused["isError"] == true && refused["resultType"] != "input_required",
            "{meta_tool}: {refused}"
        );
    }
    let asked = post("call_destructive", &inner, None);
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    // It names the operation and its API, and the arguments as they are sent; the name of the
    // meta-tool says nothing about the call.
    let question = asked["inputRequests"]["confirm"]["params"]["message"]
        .as_str()
        .unwrap();
    assert!(
        question.starts_with(
            "Allow delete_pet of \u{201c}Petstore\u{201d}: DELETE /pets/1? It may change or remove"
        ),
        "{question}"
    );
    assert!(
        question.contains("- petId: 1\n") && !question.contains("call_destructive"),
        "{question}"
    );
    let state = &asked["requestState"];
    // Neither the plain call, nor another call through the meta-tool.
    for (tool, arguments) in [
        ("delete_pet", json!({"petId": 1})),
        (
            "call_destructive",
            json!({"operation": "delete_pet", "arguments": {"petId": 2}}),
        ),
    ] {
        let again = post(tool, &arguments, Some(state));
        assert_eq!(again["resultType"], "input_required", "{tool}: {again}");
    }
    let plain = post("delete_pet", &json!({"petId": 1}), None);
    let again = post("call_destructive", &inner, Some(&plain["requestState"]));
    assert_eq!(again["resultType"], "input_required", "{again}");
    assert!(upstream.received().is_empty(), "{:?}", upstream.received());
    let done = post("call_destructive", &inner, Some(state));
    assert_eq!(done["isError"], false, "{done}");
    assert_eq!(upstream.take_one().line, "DELETE /pets/1 HTTP/1.1");
}

/// 2025-11-25, where the server asks in between, over stdio.
#[test]
fn a_session_is_asked_before_a_meta_tool_destroys_something() {
    let (spec, upstream) = (petstore(), Upstream::echo());
    let args = asking(&spec, &upstream);
    let mut session = Session::start_able(
        &[&["serve"][..], &args].concat(),
        &json!({"elicitation": {}}),
    );
    for (action, is_sent) in [("decline", false), ("accept", true)] {
        let call = json!({"name": "call_destructive", "arguments": {"operation": "delete_pet", "arguments": {"petId": 7}}});
        let id = session.post("tools/call", &call);
        let asked = session.receive();
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        assert!(asked.to_string().contains("Allow delete_pet of"), "{asked}");
        session.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": action, "content": {}}}));
        let answer = session.receive();
        assert_eq!(
            (&answer["id"], answer["result"]["isError"] == false),
            (&json!(id), is_sent),
            "{answer}"
        );
        assert_eq!(upstream.take_all().len(), usize::from(is_sent), "{action}");
    }
    // A client that cannot ask is refused.
    let mut session = Session::start(&[&["serve"][..], &args].concat());
    let refused = session.call(
        "call_destructive",
        &json!({"operation": "delete_pet", "arguments": {"petId": 7}}),
    );
    assert!(
        refused["isError"] == true && text(&refused).contains("--confirm none"),
        "{refused}"
    );
    assert!(upstream.received().is_empty());
}

#[test]
fn the_audit_log_has_the_operation_and_the_meta_tool() {
    let (spec, upstream) = (petstore(), Upstream::echo());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let mut session = Session::start(&[
        "serve",
        "--spec",
        &spec,
        "--base-url",
        &upstream.url,
        "--header",
        KEY,
        "--tools",
        "search",
        "--audit-log",
        path.to_str().unwrap(),
    ]);
    session.call(
        "call_destructive",
        &json!({"operation": "delete_pet", "arguments": {"petId": 7}}),
    );
    session.call("delete_pet", &json!({"petId": 7}));
    session.call(
        "call_read",
        &json!({"operation": "delete_pet", "arguments": {"petId": 7}}),
    );
    let lines = || -> Vec<Value> {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        text.lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    };
    wait_until("the lines are written", || lines().len() >= 3);
    let lines = lines();
    let fields = |line: &Value| {
        (
            line["tool"].clone(),
            line["meta_tool"].clone(),
            line["effect"].clone(),
        )
    };
    assert_eq!(
        fields(&lines[0]),
        (
            json!("delete_pet"),
            json!("call_destructive"),
            json!("destructive")
        )
    );
    assert_eq!(
        fields(&lines[1]),
        (json!("delete_pet"), Value::Null, json!("destructive"))
    );
    // The wrong meta-tool: nothing is sent, and the operation that was meant is on record.
    assert_eq!(
        fields(&lines[2]),
        (
            json!("delete_pet"),
            json!("call_read"),
            json!("destructive")
        )
    );
    assert_eq!(lines[2]["outcome"], "invalid_arguments", "{:?}", lines[2]);
}

#[test]
fn keywords_find_an_operation_and_are_never_shown() {
    let spec = SpecFile::with_paths(&json!({
        "/a": {"get": {"operationId": "getA", "summary": "Get the ledger", "x-mcp": {"keywords": ["zebrafish", "okapi"]}}},
        "/b": {"get": {"operationId": "getB", "summary": "Get the journal", "x-mcp": {"keywords": vec!["ledger"; 400]}}},
        "/c": {"get": {"operationId": "getC", "summary": "Get the diary", "x-mcp": {"keywords": "quokka"}}}
    }));
    let upstream = Upstream::echo();
    let first = |session: &mut Session, question: &str| {
        let found = session.call("search_operations", &json!({"queries": question}));
        assert!(!found["content"].to_string().contains("okapi"), "{found}");
        found["_meta"]["openapi-mcp/search"]["results"][0]["hits"][0]["name"]
            .as_str()
            .map(str::to_owned)
    };
    let mut session = Session::serving(&spec, &upstream, &["--tools", "search"]);
    assert_eq!(first(&mut session, "zebrafish").as_deref(), Some("getA"));
    assert_eq!(
        first(&mut session, "get the ledger").as_deref(),
        Some("getA"),
        "nobody buys the first place"
    );
    assert_eq!(first(&mut session, "quokka"), None, "not a list");
    assert!(
        !session
            .tools()
            .iter()
            .any(|tool| tool.to_string().contains("okapi"))
    );
    let mut session = Session::serving(
        &spec,
        &upstream,
        &["--tools", "search", "document_hints: ignore"],
    );
    assert_eq!(first(&mut session, "zebrafish"), None);
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("mcp.yaml");
    let rules = json!({"overrides": [{"match": {"operation": "getC"}, "keywords": ["zebrafish"]}], "document_hints": "ignore"});
    std::fs::write(&config, rules.to_string()).unwrap();
    let mut session = Session::serving(
        &spec,
        &upstream,
        &["--tools", "search", "--config", config.to_str().unwrap()],
    );
    assert_eq!(first(&mut session, "zebrafish").as_deref(), Some("getC"));
}

#[test]
fn pins_over_the_number_of_a_client_are_a_warning() {
    let paths: serde_json::Map<String, Value> = (0..90)
        .map(|number| (format!("/r{number}"), json!({"get": {}})))
        .collect();
    let spec = SpecFile::with_paths(&paths.into());
    let upstream = Upstream::echo();
    let mut session = Session::serving(&spec, &upstream, &["--client", "cursor", "pin: [\"*\"]"]);
    assert_eq!(session.tools().len(), 93);
    session.logged("takes at most 80 tools");
}
