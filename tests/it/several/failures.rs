//! Failures of one API, and their effect on the others.

use serde_json::{Value, json};

use super::{KEYS, Setup, listed, names, pets_and_bills, post_to};
use crate::support::{
    HttpServer, LIST, Session, Upstream, call_message, command, run, stderr, wait_until,
};

fn two(broken: &str) -> (Setup, String, Upstream, Upstream) {
    let (setup, pets, bills) = (Setup::new(), Upstream::echo(), Upstream::echo());
    setup.document("pets");
    setup.write("bills.json", broken);
    let config = setup.config(&pets_and_bills(&pets, &bills));
    (setup, config, pets, bills)
}

#[test]
fn a_broken_document_costs_its_own_api_only() {
    let (_setup, config, pets, _bills) = two("{");
    let mut session = Session::start_with(&["serve", "--config", &config], &KEYS);
    assert_eq!(
        names(&session.tools()),
        ["pets_list_things", "pets_create_thing"]
    );
    session.call("pets_list_things", &json!({}));
    assert_eq!(pets.received().len(), 1);
    assert!(
        session
            .logged("the API `bills` is not served")
            .contains("bills.json")
    );
}

#[test]
fn the_endpoint_of_a_failed_api_answers_with_the_reason_in_a_sentence() {
    let (_setup, config, ..) = two("{");
    let server = HttpServer::start_with(&["--config", &config], &KEYS);
    server.logged("1 of 2 APIs are served");
    for body in [LIST.to_owned(), call_message("list_things", "{}")] {
        let (status, _, answer) = post_to(&server, "/mcp/bills", &[], &body);
        let why = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(
            status == 200 && why.contains("document could not be read"),
            "{answer}"
        );
        assert!(!why.contains("bills.json"), "nothing of where it is: {why}");
    }
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": crate::support::initialize_parameters(&json!({}))});
    let (_, _, answer) = post_to(&server, "/mcp/bills", &[], &hello.to_string());
    assert_eq!(
        answer["result"]["serverInfo"]["name"], "openapi-mcp",
        "{answer}"
    );
    assert_eq!(listed(&server, "/mcp", &[]).len(), 2);
}

#[test]
fn all_may_be_required_and_one_must_be_there() {
    let (setup, config, ..) = two("{");
    let mut serve = command(&["serve", "require_all: true", "--config", &config]);
    let output = serve.envs(KEYS).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("`require_all`"),
        "{}",
        stderr(&output)
    );
    setup.write("pets.json", "[]");
    let mut serve = command(&["serve", "--config", &config]);
    let output = serve.envs(KEYS).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("0 of 2 APIs can be served"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_failed_api_comes_with_the_reload_that_can_read_it() {
    let (setup, config, _pets, bills) = two("{");
    let mut session =
        Session::start_with(&["serve", "--reload", "0.2", "--config", &config], &KEYS);
    assert_eq!(session.tools().len(), 2);
    setup.document("bills");
    let told = session.receive();
    assert_eq!(told["method"], "notifications/tools/list_changed", "{told}");
    assert_eq!(session.tools().len(), 4);
    session.call("bills_list_things", &json!({}));
    assert_eq!(bills.take_one().header("x-key"), Some("the-key-of-bills"));
}

#[test]
fn a_change_that_takes_a_name_of_another_api_is_refused_whole() {
    let setup = Setup::new();
    setup.document("pets");
    setup.document("bills");
    let config = setup.config(&json!({"mock": true, "reload": 0.2, "apis": {
        "pets": {"spec": "pets.json", "tool_prefix": ""}, "bills": {"spec": "bills.json"},
    }}));
    let mut session = Session::start(&["serve", "--config", &config]);
    let before = session.tools();
    let mut clashing = super::document("pets");
    clashing["paths"]["/things"]["get"]["operationId"] = "Bills_List_Things".into();
    clashing["paths"]["/things"]["post"]["summary"] = "New words.".into();
    setup.write("pets.json", &clashing.to_string());
    session.logged("`bills_list_things` would name");
    assert_eq!(session.tools(), before);
    // The next edit that clashes with nothing is served.
    clashing["paths"]["/things"]["get"]["operationId"] = "other".into();
    setup.write("pets.json", &clashing.to_string());
    wait_until("the edit is served", || {
        names(&session.tools()).contains(&"other")
    });
}

#[test]
fn a_late_api_that_clashes_stays_out_and_moves_no_name() {
    let setup = Setup::new();
    setup.document("bills");
    setup.write("pets.json", "{");
    let config = setup.config(&json!({"mock": true, "reload": 0.2, "apis": {
        "pets": {"spec": "pets.json", "tool_prefix": ""}, "bills": {"spec": "bills.json"},
    }}));
    let mut session = Session::start(&["serve", "--config", &config]);
    let before = session.tools();
    let mut clashing = super::document("pets");
    clashing["paths"]["/things"]["get"]["operationId"] = "bills_list_things".into();
    setup.write("pets.json", &clashing.to_string());
    session.logged("`bills_list_things` would name");
    assert_eq!(session.tools(), before);
}

#[test]
fn a_document_that_breaks_on_reload_leaves_its_tools_and_the_others() {
    let (setup, config, ..) = two(&super::document("bills").to_string());
    let mut session =
        Session::start_with(&["serve", "--reload", "0.2", "--config", &config], &KEYS);
    let before = session.tools();
    setup.write("bills.json", "{");
    let line = session.logged("cannot be served; the tools stay as they were");
    assert!(line.contains("bills"), "{line}");
    assert_eq!(session.tools(), before);
    let mut changed = super::document("pets");
    changed["paths"]["/things"]["get"]["operationId"] = "list_all".into();
    setup.write("pets.json", &changed.to_string());
    wait_until("the other one is reloaded", || {
        names(&session.tools()).contains(&"pets_list_all")
    });
}

#[test]
fn an_address_that_refuses_costs_its_own_api_only() {
    let setup = Setup::new();
    setup.document("pets");
    let (gone, url) = crate::support::listener();
    drop(gone);
    let config =
        setup.config(&json!({"mock": true, "apis": {"pets": {"spec": "pets.json"}, "bills": {"spec": format!("{url}/api.json")}}}));
    let mut session = Session::start(&["serve", "--config", &config]);
    assert_eq!(session.tools().len(), 2);
    session.logged("the API `bills` is not served");
    let alone: Value =
        json!({"mock": true, "apis": {"bills": {"spec": format!("{url}/api.json")}}});
    assert_eq!(
        run(&["serve", "--config", &setup.config(&alone)])
            .status
            .code(),
        Some(3)
    );
}

#[test]
fn a_rule_that_matches_nothing_ends_the_start_only_where_its_document_can_be_read() {
    let setup = Setup::new();
    setup.document("pets");
    let config = setup.config(&json!({"mock": true, "apis": {
        "pets": {"spec": "pets.json"},
        "bills": {"spec": "bills.json", "overrides": [{"match": {"operation": "nowhere"}, "title": "X"}]},
    }}));
    setup.write("bills.json", "{");
    let mut session = Session::start(&["serve", "--config", &config]);
    assert_eq!(session.tools().len(), 2);
    drop(session);
    setup.document("bills");
    let output = run(&["serve", "--config", &config]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("`apis.bills`"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn an_address_that_does_not_answer_on_reload_delays_no_other() {
    let setup = Setup::new();
    setup.document("pets");
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let document = super::document("slow").to_string();
    // It answers once, and then never again.
    let slow = Upstream::raw(move |_, stream| {
        if asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0 {
            let answer = crate::support::reply(
                200,
                &["Content-Type: application/json", "Connection: close"],
                document.as_bytes(),
            );
            let _ = std::io::Write::write_all(stream, &answer);
            return;
        }
        let _ = std::io::Read::read(stream, &mut [0]);
    });
    let config = setup.config(&json!({"mock": true, "reload": 0.2, "apis": {
        "pets": {"spec": "pets.json"}, "slow": {"spec": format!("{}/api.json", slow.url)},
    }}));
    let mut session = Session::start(&["serve", "--config", &config]);
    assert_eq!(session.tools().len(), 4);
    wait_until("the address is asked again", || slow.received().len() > 1);
    let mut changed = super::document("pets");
    changed["paths"]["/things"]["get"]["operationId"] = "list_all".into();
    setup.write("pets.json", &changed.to_string());
    wait_until("the other one is reloaded", || {
        names(&session.tools()).contains(&"pets_list_all")
    });
    assert_eq!(session.tools().len(), 4);
}

#[test]
fn instructions_and_searches_name_the_api_that_is_missing() {
    let (setup, config, ..) = two("{");
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": crate::support::initialize_parameters(&json!({}))});
    let missing = "Not available at the moment, so that nothing of it is found: bills.";
    for (tools, told) in [
        ("all", "- bills: not available at the moment"),
        ("search", missing),
    ] {
        let server = HttpServer::start_with(&["--tools", tools, "--config", &config], &KEYS);
        server.logged("1 of 2 APIs are served");
        let (_, _, answer) = post_to(&server, "/mcp", &[], &hello.to_string());
        let instructions = answer["result"]["instructions"].to_string();
        assert!(instructions.contains(told), "{instructions}");
    }
    let args = [
        "serve", "--reload", "0.2", "--tools", "search", "--config", &config,
    ];
    let mut session = Session::start_with(&args, &KEYS);
    session.logged("1 of 2 APIs are served");
    for arguments in [
        json!({}),
        json!({"queries": ["list things"]}),
        json!({"queries": ["pay a bill"]}),
    ] {
        let found = session.call("search_operations", &arguments)["content"].to_string();
        assert!(found.contains(missing), "{arguments}: {found}");
    }
    setup.document("bills");
    wait_until("the other one is found", || {
        !session.call("search_operations", &json!({}))["content"]
            .to_string()
            .contains(missing)
    });
}

#[test]
fn with_reload_none_of_several_has_to_be_there_at_the_start() {
    let (setup, config, ..) = two("{");
    setup.write("pets.json", "{");
    let mut session =
        Session::start_with(&["serve", "--reload", "0.2", "--config", &config], &KEYS);
    session.logged("0 of 2 APIs are served");
    setup.document("pets");
    session.logged("the document can be read now and is served");
    assert_eq!(
        names(&session.tools()),
        ["pets_list_things", "pets_create_thing"]
    );
}
