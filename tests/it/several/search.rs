//! Search mode for several APIs: at `/mcp`, at the endpoint of each, and at those that only read.

use serde_json::{Value, json};

use super::scopes::{PUBLIC, serve_with};
use super::{KEYS, Setup, listed, pets_and_bills, post_to};
use crate::support::http_server::answer_header;
use crate::support::{HttpServer, LIST, SpecFile, Upstream, call_message};

fn call(server: &HttpServer, path: &str, headers: &[&str], tool: &str, arguments: &Value) -> Value {
    post_to(
        server,
        path,
        headers,
        &call_message(tool, &arguments.to_string()),
    )
    .2
}

fn hits(answer: &Value) -> Vec<&str> {
    let hits = answer["result"]["_meta"]["openapi-mcp/search"]["results"][0]["hits"].as_array();
    hits.into_iter()
        .flatten()
        .filter_map(|hit| hit["name"].as_str())
        .collect()
}

fn words(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
}

#[test]
fn several_apis_are_searched_and_called_through_one_set_of_meta_tools() {
    let (setup, pets, bills) = (Setup::new(), Upstream::echo(), Upstream::echo());
    setup.document("pets");
    setup.document("bills");
    let mut config = pets_and_bills(&pets, &bills);
    config["tools"] = "search".into();
    let config = setup.config(&config);
    let variables = [&KEYS[..], &[("MCP_TOKEN", "a-token-of-sixteen-characters")]].concat();
    let server = HttpServer::start_with(&["--config", &config], &variables);
    server.logged("all 2 APIs are served");
    let meta_tools = [
        "search_operations",
        "describe_operations",
        "call_read",
        "call_write",
    ];
    let name = "pets_list_things";
    for (path, count) in [
        ("/mcp", 4),
        ("/mcp/readonly", 3),
        ("/mcp/pets", 4),
        ("/mcp/pets/readonly", 3),
    ] {
        assert_eq!(listed(&server, path, &[]), meta_tools[..count], "{path}");
        let mut question = json!({"queries": ["list things"]});
        if !path.contains("pets") {
            question["api"] = "pets".into();
        }
        let found = call(&server, path, &[], "search_operations", &question);
        assert!(hits(&found).contains(&name), "{path}: {found}");
        assert!(
            !hits(&found).iter().any(|hit| hit.contains("bills")),
            "{path}: {found}"
        );
        question.as_object_mut().unwrap().remove("queries");
        question["effect"] = "write".into();
        let found = call(&server, path, &[], "search_operations", &question);
        assert_eq!(hits(&found).len(), count - 3, "{path}: {found}");
        let called = call(&server, path, &[], "call_read", &json!({"operation": name}));
        assert_eq!(called["result"]["isError"], false, "{path}: {called}");
        assert_eq!(
            pets.take_one().header("x-key"),
            Some("the-key-of-pets"),
            "{path}"
        );
        let described = call(
            &server,
            path,
            &[],
            "describe_operations",
            &json!({"names": [name]}),
        );
        assert!(
            words(&described).starts_with(&format!("{name} · GET /things · read")),
            "{described}"
        );
        // An endpoint that only reads has no meta-tool for other calls, and no other way to them.
        let created = call(
            &server,
            path,
            &[],
            "call_write",
            &json!({"operation": "pets_create_thing"}),
        );
        assert_eq!(
            created["error"]["code"] == -32602,
            count == 3,
            "{path}: {created}"
        );
        pets.take_all();
    }
    // Both APIs answer the same question, and a hit says whose it is.
    let found = call(
        &server,
        "/mcp",
        &[],
        "search_operations",
        &json!({"queries": "list things"}),
    );
    assert!(
        hits(&found).contains(&"bills_list_things") && hits(&found).contains(&"pets_list_things"),
        "{found}"
    );
    assert_eq!(
        found["result"]["_meta"]["openapi-mcp/search"]["results"][0]["hits"][0]["api"], "bills",
        "{found}"
    );
    let refused = call(
        &server,
        "/mcp",
        &[],
        "search_operations",
        &json!({"queries": "x", "api": "dogs"}),
    );
    assert!(
        words(&refused).contains("\"dogs\" is not one of \"bills\", \"pets\""),
        "{refused}"
    );
    // The name of one endpoint is nothing at another.
    let refused = call(
        &server,
        "/mcp/pets",
        &[],
        "call_read",
        &json!({"operation": "bills_list_things"}),
    );
    assert!(
        words(&refused).contains("There is no operation"),
        "{refused}"
    );
    assert!(bills.received().is_empty());
}

#[test]
fn p55_search_shows_a_token_only_what_it_may_list_and_a_step_up_names_all_scopes() {
    let served = serve_with(&[], &json!({"tools": "search"}));
    let token = served.token(PUBLIC, "mcp");
    let ask =
        |tool: &str, arguments: &Value| call(&served.server, "/mcp", &[&token], tool, arguments);
    let (_, _, list) = post_to(&served.server, "/mcp", &[&token], LIST);
    assert_eq!(list["result"]["cacheScope"], "private", "{list}");
    let found = ask(
        "search_operations",
        &json!({"queries": ["list things"], "limit": 25}),
    );
    assert!(hits(&found).contains(&"pets_list_things"), "{found}");
    for hidden in [
        ask(
            "search_operations",
            &json!({"queries": ["bills list things"], "limit": 25}),
        ),
        ask(
            "describe_operations",
            &json!({"names": ["bills_list_things"]}),
        ),
        ask("call_read", &json!({"operation": "bills_list_thing"})),
        ask("bills_list_thing", &json!({})),
    ] {
        assert!(
            !hidden
                .to_string()
                .replace("`bills_list_things`", "")
                .contains("bills_list_things"),
            "{hidden}"
        );
    }
    // A call that lacks a scope asks for all of them at once; the wrong meta-tool is reported
    // first, and needs none.
    let message = |tool: &str, operation: &str| {
        call_message(tool, &json!({ "operation": operation }).to_string())
    };
    let (status, head, _) = post_to(
        &served.server,
        "/mcp",
        &[&token],
        &message("call_read", "bills_list_things"),
    );
    let challenge = answer_header(&head, "www-authenticate").unwrap_or_default();
    assert!(
        status == 403
            && challenge.contains("insufficient_scope")
            && challenge.contains("mcp")
            && challenge.contains("bills:read"),
        "{status} {head}"
    );
    let (status, _, answer) = post_to(
        &served.server,
        "/mcp",
        &[&token],
        &message("call_read", "bills_create_thing"),
    );
    assert!(
        status == 200 && words(&answer).contains("call_write"),
        "{status} {answer}"
    );
    // Two operations have this identifier; that one of them is hidden makes the other no answer.
    let (status, _, answer) = post_to(
        &served.server,
        "/mcp",
        &[&token],
        &message("call_read", "list_things"),
    );
    assert!(
        status == 200 && words(&answer).contains("There is no operation"),
        "{status} {answer}"
    );
    // With the scope, it is listed and called.
    let wide = served.token(PUBLIC, "mcp bills:read");
    let (status, _, answer) = post_to(
        &served.server,
        "/mcp",
        &[&wide],
        &message("call_read", "bills_list_things"),
    );
    assert!(
        status == 200 && answer["result"]["isError"] == false,
        "{status} {answer}"
    );
    let found = call(
        &served.server,
        "/mcp",
        &[&wide],
        "search_operations",
        &json!({"queries": "list things"}),
    );
    assert!(hits(&found).contains(&"bills_list_things"), "{found}");
}

#[test]
fn while_an_api_is_missing_an_operation_is_found_by_its_own_name_alone() {
    let (setup, pets) = (Setup::new(), Upstream::echo());
    setup.document("pets");
    setup.write("bills.json", "{");
    let (_silent, url) = crate::support::listener();
    for missing in ["bills.json".to_owned(), format!("{url}/openapi.json")] {
        // Without a prefix, it may have any name.
        let config = setup.config(&json!({"tools": "search", "apis": {
            "pets": {"spec": "pets.json", "base_url": pets.url, "allow_missing_credentials": true},
            "bills": {"spec": missing, "base_url": "http://127.0.0.1:9", "tool_prefix": ""},
        }}));
        // With an audit log, calls take the long way.
        let log = setup.write("audit.jsonl", "");
        for more in [&[][..], &["--audit-log", &log]] {
            let server =
                HttpServer::start_with(&[&["--config", &config][..], more].concat(), &KEYS);
            server.logged("The pets API: 2 tools");
            let started = std::time::Instant::now();
            let called = call(
                &server,
                "/mcp",
                &[],
                "call_read",
                &json!({"operation": "pets_list_things"}),
            );
            assert_eq!(called["result"]["isError"], false, "{called}");
            assert!(
                started.elapsed() < crate::support::within(2),
                "it waited for the other"
            );
            pets.take_one();
            if missing == "bills.json" {
                for name in ["list_things", "GET /things"] {
                    let refused = call(
                        &server,
                        "/mcp",
                        &[],
                        "call_read",
                        &json!({ "operation": name }),
                    );
                    assert!(
                        words(&refused).contains("found by its name alone"),
                        "{name}: {refused}"
                    );
                }
                assert!(pets.received().is_empty());
            }
            // At the endpoint of that API nothing is missing.
            let called = call(
                &server,
                "/mcp/pets",
                &[],
                "call_read",
                &json!({"operation": "GET /things"}),
            );
            assert_eq!(called["result"]["isError"], false, "{called}");
            pets.take_one();
        }
    }
}

#[test]
fn p55_a_result_names_no_tool_that_the_token_may_not_list() {
    let upstream = Upstream::start(Box::new(|_| {
        crate::support::reply(
            200,
            &["Content-Type: application/json", "ETag: \"v1\""],
            b"{\"ok\":true}",
        )
    }));
    let if_match = json!([{"name": "If-Match", "in": "header", "schema": {"type": "string"}}]);
    let spec = SpecFile::with_paths(&json!({"/note": {
        "get": {"operationId": "get_note"}, "put": {"operationId": "update_note", "parameters": if_match},
    }}));
    for (tools, tool, arguments) in [
        ("all", "notes_get_note", "{}"),
        ("search", "call_read", r#"{"operation":"notes_get_note"}"#),
    ] {
        let served = serve_with(
            &[],
            &json!({"mock": false, "tools": tools, "apis": {
                "notes": {"spec": spec.path(), "base_url": upstream.url, "oauth_write_scope": "notes:write"},
                "pets": {"spec": "pets.json", "base_url": upstream.url, "allow_missing_credentials": true},
            }}),
        );
        for (scope, names_it) in [("mcp", false), ("mcp notes:write", true)] {
            let token = served.token(PUBLIC, scope);
            let (_, _, answer) = post_to(
                &served.server,
                "/mcp",
                &[&token],
                &call_message(tool, arguments),
            );
            assert_eq!(
                answer["result"]["isError"], false,
                "{tools} {scope}: {answer}"
            );
            assert_eq!(
                answer.to_string().contains("notes_update_note"),
                names_it,
                "{tools} {scope}: {answer}"
            );
        }
    }
}

#[test]
fn no_document_speaks_about_the_tags_of_another() {
    let setup = Setup::new();
    for name in ["pets", "bills"] {
        let mut document = super::document(name);
        document["tags"] = json!([{"name": "things", "description": format!("Words of {name}.")}]);
        for method in ["get", "post"] {
            document["paths"]["/things"][method]["tags"] = json!(["things"]);
        }
        setup.write(&format!("{name}.json"), &document.to_string());
    }
    let config =
        setup.config(&json!({"mock": true, "tools": "search", "apis": {"pets": {"spec": "pets.json"}, "bills": {"spec": "bills.json"}}}));
    let server = HttpServer::start(&["--config", &config]);
    server.logged("all 2 APIs are served");
    for (path, expected) in [("/mcp", None), ("/mcp/pets", Some("Words of pets"))] {
        let found = call(&server, path, &[], "search_operations", &json!({}));
        assert!(words(&found).contains("things ("), "{path}: {found}");
        assert_eq!(
            words(&found).contains("Words of"),
            expected.is_some(),
            "{path}: {found}"
        );
        assert!(
            expected.is_none_or(|expected| words(&found).contains(expected)),
            "{path}: {found}"
        );
    }
}
