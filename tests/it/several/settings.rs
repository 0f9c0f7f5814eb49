//! Settings of several APIs, and those that end the start.

use serde_json::json;

use super::{KEYS, Setup};
use crate::support::{command, run, stderr};

#[test]
fn a_key_in_the_wrong_place_is_an_error_that_says_where_it_belongs() {
    let text = std::fs::read_to_string(crate::support::project(
        "tests/cases/settings/several_problems.yaml",
    ))
    .unwrap();
    let cases: Vec<serde_json::Value> = serde_yaml::from_str(&text).unwrap();
    let setup = Setup::new();
    setup.document("pets");
    setup.document("bills");
    for case in cases {
        let config = setup.write("mcp.yaml", case["file"].as_str().unwrap());
        let flags = case["flags"].as_array().cloned().unwrap_or_default();
        let flags: Vec<&str> = flags.iter().map(|flag| flag.as_str().unwrap()).collect();
        let variables = case["variables"].as_object().cloned().unwrap_or_default();
        let mut serve = command(&[&["serve", "--config", &config][..], &flags].concat());
        for (name, value) in &variables {
            serve.env(name, value.as_str().unwrap());
        }
        let output = serve.output().unwrap();
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{}: {told}", case["name"]);
        for problem in case["problems"].as_array().unwrap() {
            let words: Vec<&str> = problem
                .as_array()
                .unwrap()
                .iter()
                .map(|word| word.as_str().unwrap())
                .collect();
            let tells = |line: &str| words.iter().all(|word| line.contains(word));
            assert!(
                told.lines().any(tells),
                "{}: no line has {words:?}: {told}",
                case["name"]
            );
        }
        let errors = told
            .lines()
            .filter(|line| line.starts_with("error: "))
            .count();
        assert_eq!(
            errors,
            case["problems"].as_array().unwrap().len(),
            "{}: {told}",
            case["name"]
        );
        assert!(!told.contains("hunter2"), "{}: {told}", case["name"]);
    }
}

#[test]
fn p66_a_variable_that_could_belong_to_two_apis_ends_the_start_and_no_document_decides() {
    let setup = Setup::new();
    setup.document("a");
    setup.document("a_b");
    let config = setup.config(&json!({"apis": {
        "a": {"spec": "a.json", "base_url": "http://127.0.0.1:9"},
        "a_b": {"spec": "a_b.json", "base_url": "http://127.0.0.1:9"},
    }}));
    let mut serve = command(&["serve", "--config", &config]);
    let output = serve
        .env("OPENAPI_MCP_AUTH_A_B_KEY", "hunter2-hunter2")
        .output()
        .unwrap();
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{told}");
    for words in [
        "OPENAPI_MCP_AUTH_A_B_KEY",
        "`b_key` of the API `a`",
        "`key` of the API `a_b`",
    ] {
        assert!(told.contains(words), "{told}");
    }
    assert!(!told.contains("hunter2"), "{told}");
}

#[test]
fn a_variable_that_could_hold_two_parts_of_one_credential_ends_the_start() {
    let setup = Setup::new();
    let schemes = json!({
        "x": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "/token", "scopes": {}}}},
        "x_client_id": {"type": "apiKey", "in": "header", "name": "X-Id"},
    });
    let mut document = super::document("pets");
    document["components"]["securitySchemes"] = schemes;
    document["security"] = json!([{"x": []}, {"x_client_id": []}]);
    setup.write("pets.json", &document.to_string());
    let config = setup.config(
        &json!({"apis": {"pets": {"spec": "pets.json", "base_url": "http://127.0.0.1:9"}}}),
    );
    let mut serve = command(&["serve", "--config", &config]);
    let output = serve
        .env("OPENAPI_MCP_AUTH_PETS_X_CLIENT_ID", "hunter2-hunter2")
        .output()
        .unwrap();
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(
        told.contains("client_id of `x`") && told.contains("the value of `x_client_id`"),
        "{told}"
    );
}

#[test]
fn names_that_clash_end_the_start_whatever_the_case_of_their_letters() {
    let setup = Setup::new();
    let with = |id: &str| {
        json!({"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": {"/a": {"get": {"operationId": id}}}}).to_string()
    };
    setup.write("a.json", &with("b_List"));
    setup.write("ab.json", &with("list"));
    let config = setup.config(
        &json!({"mock": true, "apis": {"a": {"spec": "a.json"}, "a_b": {"spec": "ab.json"}}}),
    );
    let output = run(&["serve", "--config", &config]);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{told}");
    for words in ["`a_b_list`", "the API `a`", "the API `a_b`", "GET /a"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert_eq!(run(&["tools", "--config", &config]).status.code(), Some(2));
    // Another prefix keeps them apart.
    let config = setup.config(&json!({"mock": true, "apis": {"a": {"spec": "a.json"}, "a_b": {"spec": "ab.json", "tool_prefix": ""}}}));
    let output = run(&["tools", "--config", &config]);
    let told = crate::support::stdout(&output);
    assert!(
        told.contains("\n a_b_List ") && told.contains("\n list "),
        "{told}"
    );
}

#[test]
fn a_pattern_of_confirm_must_match_a_tool_of_some_api() {
    let setup = Setup::new();
    setup.document("pets");
    setup.document("bills");
    let config = |confirm: &str| {
        setup.config(&json!({"confirm": confirm, "mock": true, "apis": {"pets": {"spec": "pets.json"}, "bills": {"spec": "bills.json"}}}))
    };
    let output = run(&["serve", "--config", &config("pets_remove_thing")]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("`pets_remove_thing` matches no tool of any API"),
        "{}",
        stderr(&output)
    );
    let output = run(&["serve", "--config", &config("pets_create_thing")]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn a_document_is_read_from_the_folder_of_the_file_and_keys_are_its_own() {
    let setup = Setup::new();
    setup.document("pets");
    setup.document("bills");
    let config = setup.config(&json!({"apis": {
        "pets": {"spec": "pets.json", "mock": true, "tool_exclude": ["create_thing"]},
        "bills": {"spec": "bills.json", "mock": true},
    }}));
    let mut tools = command(&["tools", "--config", &config]);
    let output = tools.envs(KEYS).current_dir("/").output().unwrap();
    let told = crate::support::stdout(&output);
    for (name, is_there) in [
        ("pets_list_things", true),
        ("pets_create_thing", false),
        ("bills_create_thing", true),
    ] {
        assert_eq!(
            told.contains(&format!(" {name} ")),
            is_there,
            "{name}: {told}{}",
            stderr(&output)
        );
    }
}
