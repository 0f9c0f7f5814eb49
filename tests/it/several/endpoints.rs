//! The endpoints over HTTP: what each lists and calls, and what is at no other path.

use serde_json::{Value, json};

use super::{KEYS, Setup, call_statelessly, listed, pets_and_bills, post_statelessly, post_to};
use crate::support::{
    HttpServer, LIST, SpecFile, Upstream, call_message, petstore, stateless_meta, wait_until,
};

fn serve_two(more: &[&str]) -> (Setup, HttpServer, Upstream, Upstream) {
    let (setup, pets, bills) = (Setup::new(), Upstream::echo(), Upstream::echo());
    setup.document("pets");
    setup.document("bills");
    let config = setup.config(&pets_and_bills(&pets, &bills));
    let variables = [&KEYS[..], &[("MCP_TOKEN", "a-token-of-sixteen-characters")]].concat();
    let server = HttpServer::start_with(&[&["--config", &config][..], more].concat(), &variables);
    server.logged("all 2 APIs are served");
    (setup, server, pets, bills)
}

fn call_at(server: &HttpServer, path: &str, tool: &str) -> Value {
    post_to(server, path, &[], &call_message(tool, "{}")).2
}

#[test]
fn each_endpoint_lists_and_calls_what_is_its_own() {
    let (_setup, server, pets, bills) = serve_two(&[]);
    for (path, tools) in [
        (
            "/mcp",
            &[
                "bills_list_things",
                "bills_create_thing",
                "pets_list_things",
                "pets_create_thing",
            ][..],
        ),
        ("/mcp/readonly", &["bills_list_things", "pets_list_things"]),
        ("/mcp/pets", &["pets_list_things", "pets_create_thing"]),
        ("/mcp/pets/readonly", &["pets_list_things"]),
        ("/mcp/bills/readonly", &["bills_list_things"]),
    ] {
        assert_eq!(listed(&server, path, &[]), tools, "{path}");
        for tool in tools {
            assert_ne!(
                call_at(&server, path, tool)["result"],
                Value::Null,
                "{path} {tool}"
            );
        }
        for (tool, is_there) in [
            ("pets_create_thing", path == "/mcp" || path == "/mcp/pets"),
            ("create_thing", false),
            ("bills_list_things", !path.starts_with("/mcp/pets")),
            ("pets_pets_list_things", false),
        ] {
            let answer = call_at(&server, path, tool);
            assert_eq!(
                answer["error"]["code"] == -32602,
                !is_there,
                "{path} {tool}: {answer}"
            );
        }
    }
    assert!(
        pets.received()
            .iter()
            .all(|request| request.header("x-key") == Some("the-key-of-pets"))
    );
    assert!(
        bills
            .received()
            .iter()
            .all(|request| request.header("x-key") == Some("the-key-of-bills"))
    );
}

#[test]
fn the_text_of_a_tool_is_the_same_at_every_endpoint() {
    let (_setup, server, ..) = serve_two(&[]);
    let tools = |path: &str| post_to(&server, path, &[], LIST).2["result"]["tools"].clone();
    let (whole, own) = (tools("/mcp"), tools("/mcp/pets"));
    for tool in own.as_array().unwrap() {
        assert!(whole.as_array().unwrap().contains(tool), "{tool}");
    }
}

#[test]
fn a_single_api_has_an_endpoint_for_what_reads() {
    let server = HttpServer::start(&["--spec", &petstore(), "--mock"]);
    let (all, reading) = (
        listed(&server, "/mcp", &[]),
        listed(&server, "/mcp/readonly", &[]),
    );
    assert!(
        reading.len() < all.len() && !reading.is_empty(),
        "{reading:?} of {all:?}"
    );
    let writing = all.iter().find(|name| !reading.contains(name)).unwrap();
    assert_eq!(
        call_at(&server, "/mcp/readonly", writing)["error"]["code"],
        -32602
    );
    assert_eq!(post_to(&server, "/mcp/petstore", &[], LIST).0, 404);
}

#[test]
fn what_only_looks_as_if_it_reads_is_not_at_the_readonly_endpoint() {
    let spec = SpecFile::with_paths(
        &json!({"/volumes": {"get": {"operationId": "list_volumes"}}, "/volumes/prune": {"get": {"operationId": "prune_volumes"}}}),
    );
    let server = HttpServer::start(&["--spec", spec.path(), "--mock"]);
    assert_eq!(listed(&server, "/mcp/readonly", &[]), ["list_volumes"]);
}

#[test]
fn paths_match_byte_for_byte_and_an_unknown_name_is_401_before_404() {
    let (_setup, server, ..) = serve_two(&["--auth-token-env", "MCP_TOKEN"]);
    let token = "Authorization: Bearer a-token-of-sixteen-characters";
    for path in [
        "/mcp/%70ets",
        "/mcp/pets/",
        "/MCP/pets",
        "//mcp",
        "/mcp/",
        "/mcp/dogs",
        "/mcp/pets/readonly/",
        "/mcp//pets",
        "/mcp/readonly/pets",
    ] {
        assert_eq!(post_to(&server, path, &[token], LIST).0, 404, "{path}");
        assert_eq!(post_to(&server, path, &[], LIST).0, 401, "{path}");
        assert_eq!(
            post_to(&server, path, &["Origin: https://evil.example"], LIST).0,
            403,
            "{path}"
        );
        // A body of a client that may not send it is not read first.
        assert_eq!(
            post_to(&server, path, &[token, "Content-Type: text/plain"], LIST).0,
            404,
            "{path}"
        );
    }
    for path in ["/mcp", "/mcp/pets", "/mcp/pets/readonly", "/mcp/readonly"] {
        assert_eq!(post_to(&server, path, &[], LIST).0, 401, "{path}");
        assert_eq!(
            post_to(&server, path, &["Host: evil.example"], LIST).0,
            403,
            "{path}"
        );
        assert_eq!(post_to(&server, path, &[token], LIST).0, 200, "{path}");
    }
}

#[test]
fn a_session_of_one_endpoint_is_nothing_at_another() {
    let (_setup, server, ..) = serve_two(&["--confirm", "write"]);
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": crate::support::initialize_parameters(&json!({}))}).to_string();
    let (status, head, _) = post_to(&server, "/mcp/pets", &[], &body);
    assert_eq!(status, 200, "{head}");
    let id = crate::support::http_server::answer_header(&head, "mcp-session-id").unwrap();
    let session = format!("Mcp-Session-Id: {id}");
    for (path, expected) in [
        ("/mcp", 404),
        ("/mcp/bills", 404),
        ("/mcp/pets/readonly", 404),
        ("/mcp/pets", 200),
    ] {
        let request = crate::support::http_server::http_request(
            &server.address,
            "POST",
            &["Connection: close", &session],
            LIST,
        );
        let mut stream = server.connect();
        std::io::Write::write_all(
            &mut stream,
            request
                .replacen(" /mcp ", &format!(" {path} "), 1)
                .as_bytes(),
        )
        .unwrap();
        let mut head = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stream), &mut head).unwrap();
        assert!(head.contains(&format!(" {expected} ")), "{path}: {head}");
    }
}

#[test]
fn an_answer_of_a_person_at_one_endpoint_counts_at_no_other() {
    let setup = Setup::new();
    let upstream = Upstream::echo();
    setup.document("pets");
    // Without a prefix, the tool has the same name at both endpoints.
    let config = setup.config(&json!({"confirm": "write", "apis": {
        "pets": {"spec": "pets.json", "base_url": upstream.url, "tool_prefix": "", "allow_missing_credentials": true},
    }}));
    let server = HttpServer::start(&["--config", &config]);
    server.logged("2 tools");
    let ask = |path: &str, mut parameters: Value| {
        parameters["_meta"] = stateless_meta(&json!({"elicitation": {}}));
        call_statelessly(&server, path, "create_thing", parameters)
    };
    let question = ask("/mcp/pets", json!({"arguments": {}}));
    let state = question["result"]["requestState"].clone();
    assert!(state.is_string(), "{question}");
    let answer = json!({"arguments": {}, "requestState": state, "inputResponses": {"confirm": {"action": "accept"}}});
    let elsewhere = ask("/mcp", answer.clone());
    assert!(
        elsewhere["result"]["requestState"].is_string(),
        "it is asked anew: {elsewhere}"
    );
    assert_eq!(upstream.received().len(), 0);
    ask("/mcp/pets", answer);
    assert_eq!(upstream.received().len(), 1);
}

#[test]
fn readiness_counts_the_apis_without_their_names() {
    let (setup, server, ..) = serve_two(&[]);
    let answer = server.get("/readyz");
    assert!(
        answer.contains(" 200 ") && answer.contains(r#""served":2,"apis":2"#),
        "{answer}"
    );
    drop(server);
    setup.write("bills.json", "{");
    let config = setup.folder.path().join("mcp.yaml").display().to_string();
    let server = HttpServer::start_with(&["--config", &config], &KEYS);
    server.logged("1 of 2 APIs are served");
    let answer = server.get("/readyz");
    assert!(
        answer.contains(" 200 ") && answer.contains(r#""served":1,"apis":2"#),
        "{answer}"
    );
    assert!(
        !answer.contains("pets") && !answer.contains("bills"),
        "{answer}"
    );
}

#[test]
fn only_the_endpoints_are_told_whose_own_list_changed() {
    let (setup, server, ..) = serve_two(&["--reload", "0.2"]);
    let listen = |path: &str| {
        let parameters = json!({"_meta": stateless_meta(&json!({})), "notifications": {"toolsListChanged": true}});
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen", "params": parameters}).to_string();
        let headers = [
            "MCP-Protocol-Version: 2026-07-28",
            "Mcp-Method: subscriptions/listen",
        ];
        let request =
            crate::support::http_server::http_request(&server.address, "POST", &headers, &body);
        let mut stream = server.connect();
        std::io::Write::write_all(
            &mut stream,
            request
                .replacen(" /mcp ", &format!(" {path} "), 1)
                .as_bytes(),
        )
        .unwrap();
        let heard = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
        let told = std::sync::Arc::clone(&heard);
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = std::io::Read::read(&mut stream, &mut piece) {
                told.lock()
                    .unwrap()
                    .push_str(&String::from_utf8_lossy(&piece[..length]));
            }
        });
        heard
    };
    let paths = [
        "/mcp",
        "/mcp/pets",
        "/mcp/pets/readonly",
        "/mcp/bills",
        "/mcp/readonly",
    ];
    let heard = paths.map(listen);
    for (heard, path) in heard.iter().zip(paths) {
        wait_until("the subscription stands", || {
            heard.lock().unwrap().contains("acknowledged")
        });
        assert!(!heard.lock().unwrap().contains("list_changed"), "{path}");
    }
    // Only what writes becomes another.
    let mut changed = super::document("pets");
    changed["paths"]["/things"]["post"]["summary"] = "Makes one.".into();
    setup.write("pets.json", &changed.to_string());
    let is_told = |index: usize| {
        heard[index]
            .lock()
            .unwrap()
            .contains("notifications/tools/list_changed")
    };
    wait_until("the whole and its own endpoint are told", || {
        is_told(0) && is_told(1)
    });
    server.logged("the document changed; the new version is served");
    for index in [2, 3, 4] {
        assert!(
            !is_told(index),
            "{}: {}",
            paths[index],
            heard[index].lock().unwrap()
        );
    }
}

#[test]
fn a_description_names_no_tool_that_the_settings_leave_out() {
    let setup = Setup::new();
    setup.write("notes.json", &notes().to_string());
    for (settings, words) in [
        (
            json!({}),
            "Deprecated; use `notes_get_note` instead. Use get_note.",
        ),
        (
            json!({"read_only": true}),
            "Deprecated; use `notes_get_note` instead. Use get_note.",
        ),
        (
            json!({"tool_exclude": ["get_note"]}),
            "Deprecated. Use get_note.",
        ),
    ] {
        let mut api = json!({"spec": "notes.json", "describe": "brief", "mock": true});
        api.as_object_mut()
            .unwrap()
            .extend(settings.as_object().unwrap().clone());
        let config = setup.config(&json!({"apis": {"notes": api}}));
        let tools = crate::support::Session::start(&["serve", "--config", &config]).tools();
        let old = tools
            .iter()
            .find(|tool| tool["name"] == "notes_get_old")
            .unwrap();
        assert!(
            old["description"].as_str().unwrap().starts_with(words),
            "{settings}: {old}"
        );
    }
}

/// A document whose replies and descriptions name other tools.
fn notes() -> Value {
    let if_match = json!([{"name": "If-Match", "in": "header", "schema": {"type": "string"}}]);
    json!({"openapi": "3.1.0", "info": {"title": "Notes", "version": "1"}, "paths": {
        "/note": {"get": {"operationId": "get_note"}, "put": {"operationId": "update_note", "parameters": if_match}},
        "/old": {"get": {"operationId": "get_old", "deprecated": true, "description": "Use get_note."}},
        "/older": {"get": {"operationId": "get_older", "deprecated": true, "description": "Use update_note."}},
    }})
}

/// A server of that document.
struct Notes {
    _setup: Setup,
    _upstream: Upstream,
    server: HttpServer,
    tools: &'static str,
}

fn serve_notes(tools: &'static str) -> Notes {
    let setup = Setup::new();
    let upstream = Upstream::start(Box::new(|_| {
        crate::support::reply(
            200,
            &["Content-Type: application/json", "ETag: \"v1\""],
            b"{\"ok\":true}",
        )
    }));
    setup.write("notes.json", &notes().to_string());
    let api = json!({"spec": "notes.json", "base_url": upstream.url, "describe": "brief"});
    let config = setup.config(&json!({"tools": tools, "confirm": "write", "apis": {"notes": api}}));
    let server = HttpServer::start(&["--config", &config]);
    server.logged("4 tools");
    Notes {
        _setup: setup,
        _upstream: upstream,
        server,
        tools,
    }
}

impl Notes {
    /// Calls an operation by its name at that endpoint, in search mode through its meta-tool.
    fn call(&self, path: &str, operation: &str, arguments: Value) -> Value {
        let (tool, arguments) = match self.tools {
            "all" => (operation, arguments),
            _ if operation.ends_with("update_note") => (
                "call_destructive",
                json!({"operation": operation, "arguments": arguments}),
            ),
            _ => (
                "call_read",
                json!({"operation": operation, "arguments": arguments}),
            ),
        };
        call_statelessly(&self.server, path, tool, json!({ "arguments": arguments }))
    }

    /// Returns the description of an operation for a client of that endpoint.
    fn described(&self, path: &str, operation: &str) -> String {
        let answer = if self.tools == "all" {
            post_statelessly(&self.server, path, "tools/list", json!({}))
        } else {
            let arguments = json!({"names": [operation]});
            call_statelessly(
                &self.server,
                path,
                "describe_operations",
                json!({ "arguments": arguments }),
            )
        };
        let answer = answer["result"].clone();
        let is_it = |tool: &&Value| tool["name"] == operation;
        let listed = answer["tools"]
            .as_array()
            .and_then(|tools| tools.iter().find(is_it).cloned());
        listed.unwrap_or(answer).to_string()
    }
}

#[test]
fn a_result_names_no_tool_that_the_endpoint_does_not_have() {
    for tools in ["all", "search"] {
        let notes = serve_notes(tools);
        let used = match tools {
            "all" => "(pass it as If-Match to notes_update_note)",
            _ => "(pass it as If-Match to `call_destructive` with operation `notes_update_note`)",
        };
        for path in ["/mcp", "/mcp/notes"] {
            let call = |tool: &str, arguments: Value| notes.call(path, tool, arguments).to_string();
            for (answer, words) in [
                (call("notes_get_note", json!({})), used),
                (
                    call("notes_get_note", json!({"nothing": 1})),
                    "`nothing` is not an argument of notes_get_note",
                ),
                (
                    call("notes_update_note", json!({})),
                    "\"notes_update_note (PUT /note) was not called",
                ),
            ] {
                assert!(answer.contains(words), "{tools} {path}: {words}: {answer}");
            }
        }
        let answer = notes.call("/mcp/readonly", "notes_get_note", json!({}));
        assert_eq!(
            answer["result"]["_meta"]["openapi-mcp/headers"]["etag"], "\"v1\"",
            "{answer}"
        );
        assert!(
            !answer.to_string().contains("update_note"),
            "it is not at this endpoint: {answer}"
        );
    }
}

#[test]
fn a_description_names_no_tool_that_an_endpoint_does_not_have() {
    for tools in ["all", "search"] {
        let notes = serve_notes(tools);
        for (path, operation, words) in [
            (
                "/mcp",
                "notes_get_old",
                "Deprecated; use `notes_get_note` instead. ",
            ),
            (
                "/mcp/notes",
                "notes_get_old",
                "Deprecated; use `notes_get_note` instead. ",
            ),
            (
                "/mcp/readonly",
                "notes_get_old",
                "Deprecated; use `notes_get_note` instead. ",
            ),
            // A tool that changes data is not at every endpoint that has one that reads.
            ("/mcp", "notes_get_older", "Deprecated. Use update_note."),
            (
                "/mcp/readonly",
                "notes_get_older",
                "Deprecated. Use update_note.",
            ),
        ] {
            let said = notes.described(path, operation);
            assert!(said.contains(words), "{tools} {path} {operation}: {said}");
        }
    }
}

#[test]
fn a_long_list_is_whole_at_every_endpoint() {
    let setup = Setup::new();
    let words = "Words that make the list long. ".repeat(20);
    let paths: serde_json::Map<String, Value> = (0..500)
        .map(|number| {
            let get = json!({"operationId": format!("list_{number}"), "description": words});
            let post = json!({"operationId": format!("create_{number}")});
            (
                format!("/things/{number}"),
                json!({"get": get, "post": post}),
            )
        })
        .collect();
    let document =
        json!({"openapi": "3.1.0", "info": {"title": "Long", "version": "1"}, "paths": paths});
    setup.write("long.json", &document.to_string());
    setup.document("pets");
    let config = setup.config(&json!({"mock": true, "apis": {"long": {"spec": "long.json"}, "pets": {"spec": "pets.json"}}}));
    let server = HttpServer::start(&["--config", &config]);
    server.logged("all 2 APIs are served");
    for (path, expected, first) in [
        ("/mcp", 1002, "long_list_0"),
        ("/mcp/readonly", 501, "long_list_0"),
        ("/mcp/long", 1000, "long_list_0"),
        ("/mcp/long/readonly", 500, "long_list_0"),
        ("/mcp/pets/readonly", 1, "pets_list_things"),
    ] {
        let names = listed(&server, path, &[]);
        let different: std::collections::HashSet<&String> = names.iter().collect();
        assert_eq!(
            (names.len(), different.len()),
            (expected, expected),
            "{path}"
        );
        assert_eq!(names[0], first, "{path}");
    }
}
