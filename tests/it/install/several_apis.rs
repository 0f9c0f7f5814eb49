//! Entries of servers with several APIs.

use serde_json::{Value, json};

use super::{Home, read};
use crate::support::{Session, stderr, stdout};

/// A document with one operation that needs a key.
fn document(title: &str) -> String {
    json!({
        "openapi": "3.1.0", "info": {"title": title, "version": "1"},
        "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
        "security": [{"key": []}],
        "paths": {"/things": {"get": {"operationId": "list_things", "parameters": [{"name": "tenant", "in": "query", "schema": {"type": "string"}}]}}},
    })
    .to_string()
}

/// A home with two documents and a configuration that serves both; `bills` is the second document.
fn home_with_two(bills: &str) -> (Home, String) {
    let home = Home::new();
    std::fs::create_dir(home.path(".cursor")).unwrap();
    home.write("apis/pets.json", &document("Pets"));
    home.write("apis/bills.json", bills);
    let config = json!({"apis": {
        "pets": {
            "spec": "pets.json", "base_url": "http://127.0.0.1:9", "auth": {"key": {"env": "PETS_KEY"}},
            "overrides": [{"arguments": {"query:tenant": {"value": {"env": "PETS_TENANT"}}}}],
        },
        "bills": {"spec": "bills.json", "base_url": "http://127.0.0.1:9", "header_env": ["X-Team=BILLS_TEAM"]},
    }});
    let config = home.write("apis/mcp.yaml", &config.to_string());
    (home, config.display().to_string())
}

const TENANT: (&str, &str) = ("PETS_TENANT", "acme");

#[test]
fn an_entry_serves_all_apis_and_names_the_variables_of_each() {
    let (home, config) = home_with_two(&document("Bills"));
    // As it would be typed: a path from the folder of the shell.
    let args = [
        "install",
        "--client",
        "cursor",
        "--config",
        "apis/mcp.yaml",
        "--write",
    ];
    let output = home.run(&args, &[TENANT]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let variables = [
        "BILLS_TEAM",
        "PETS_KEY",
        "PETS_TENANT",
        "OPENAPI_MCP_AUTH_BILLS_KEY",
    ];
    assert!(
        said.contains(&format!(
            "set {} where cursor is started",
            variables.join(", ")
        )),
        "{said}"
    );
    let file: Value = serde_json::from_str(&read(&home.path(".cursor/mcp.json"))).unwrap();
    let entry = &file["mcpServers"]["bills-pets"];
    assert_eq!(
        entry["args"],
        json!(["serve", "--client", "cursor", "--config", config]),
        "{file}"
    );
    let expected: serde_json::Map<String, Value> = variables
        .map(|name| (name.to_owned(), format!("${{env:{name}}}").into()))
        .into_iter()
        .collect();
    assert_eq!(entry["env"], Value::Object(expected), "{file}");
    let again = home.run(&args, &[TENANT]);
    assert!(
        stderr(&again).contains("`bills-pets` is already in"),
        "{}",
        stderr(&again)
    );
    // The client starts exactly this.
    let args: Vec<&str> = entry["args"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let values = [
        ("PETS_KEY", "k"),
        ("BILLS_TEAM", "t"),
        ("OPENAPI_MCP_AUTH_BILLS_KEY", "k"),
        TENANT,
    ];
    let tools = Session::start_with(&args, &values).tools();
    let names: Vec<&str> = tools
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert_eq!(names, ["bills_list_things", "pets_list_things"]);
}

#[test]
fn documents_of_the_command_line_stand_in_the_entry_with_their_names_and_whole_paths() {
    let (home, _) = home_with_two(&document("Bills"));
    let args = [
        "install",
        "--client",
        "cursor",
        "--api",
        "pets=apis/pets.json",
        "--api",
        "bills=apis/bills.json",
        "--mock",
        "--print",
    ];
    let output = home.run(&args, &[]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for (name, file) in [("pets", "apis/pets.json"), ("bills", "apis/bills.json")] {
        let given = format!(
            "\"--api\",\n        \"{name}={}\"",
            home.path(file).display()
        );
        assert!(text.contains(&given), "{given}: {text}");
    }
    assert!(
        !text.contains("\"env\""),
        "a mock needs no credential: {text}"
    );
}

#[test]
fn an_api_that_cannot_be_served_is_refused_unless_the_rest_is_wanted() {
    let (home, _) = home_with_two("{");
    let args = [
        "install",
        "--client",
        "cursor",
        "--config",
        "apis/mcp.yaml",
        "--print",
    ];
    let refused = home.run(&args, &[TENANT]);
    let said = stderr(&refused);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(
        said.contains("the API `bills` is left out") && said.contains("--force installs the rest"),
        "{said}"
    );
    let forced = home.run(&[&args[..], &["--force"]].concat(), &[TENANT]);
    assert_eq!(forced.status.code(), Some(0), "{}", stderr(&forced));
    assert!(
        stdout(&forced).contains("apis/mcp.yaml"),
        "{}",
        stdout(&forced)
    );
}

#[test]
fn values_of_clients_are_refused_in_an_entry_that_is_started_over_stdio() {
    let home = Home::new();
    home.write("pets.json", &document("Pets"));
    let rules = json!([{"arguments": {"query:tenant": {"value": {"forward": "X-Tenant"}}}}]);
    let config = json!({"apis": {"pets": {"spec": "pets.json", "base_url": "http://127.0.0.1:9", "overrides": rules}}});
    home.write("mcp.yaml", &config.to_string());
    let output = home.run(
        &[
            "install", "--client", "cursor", "--config", "mcp.yaml", "--print",
        ],
        &[],
    );
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("`apis.pets`") && said.contains("which there is only over HTTP"),
        "{said}"
    );
}

#[test]
fn a_name_that_the_client_would_cut_names_the_setting_of_its_api() {
    let (home, _) = home_with_two(
        &document("Bills").replace("list_things", &"list_a_thing_with_a_long_name_".repeat(2)),
    );
    let output = home.run(
        &[
            "install",
            "--client",
            "cursor",
            "--config",
            "apis/mcp.yaml",
            "--print",
            "--name",
            "the-apis-of-the-team",
        ],
        &[TENANT],
    );
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("`max_tool_name_length: 40` under the API"),
        "{said}"
    );
}
