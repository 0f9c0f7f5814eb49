//! `openapi-mcp diff`.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{SpecFile, petstore, project, run, stderr, stdout};

#[derive(Deserialize)]
struct Versions {
    #[serde(default)]
    name: String,
    old: Value,
    new: Value,
    says: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Cases {
    schemas: Vec<Versions>,
    operations: Vec<Versions>,
}

/// Returns the output of `diff` for two path items.
fn changes(old: &Value, new: &Value) -> BTreeSet<String> {
    let document = |item: &Value| {
        let whole = json!({"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "servers": [{"url": "https://h.example"}], "paths": {"/a": item}});
        SpecFile::new(&whole.to_string())
    };
    let (old, new) = (document(old), document(new));
    let output = run(&["diff", old.path(), new.path(), "--format", "json"]);
    let report: Value =
        serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let changes = report["changes"].as_array().unwrap();
    let said: BTreeSet<String> = changes
        .iter()
        .map(|change| {
            format!(
                "{}: {}",
                change["impact"].as_str().unwrap(),
                change["change"].as_str().unwrap()
            )
        })
        .filter(|change| change != "compatible: its description changed")
        .collect();
    let breaks = said.iter().any(|change| change.starts_with("breaking"));
    assert_eq!(output.status.code(), Some(i32::from(breaks)), "{said:?}");
    said
}

#[test]
fn what_breaks_a_client_is_told_from_what_does_not() {
    let text = std::fs::read_to_string(project("tests/cases/diff.yaml")).unwrap();
    let cases: Cases = serde_yaml::from_str(&text).unwrap();
    for Versions { old, new, says, .. } in cases.schemas {
        let item = |schema: &Value| json!({"get": {"operationId": "a", "parameters": [{"name": "x", "in": "query", "schema": schema}]}});
        assert_eq!(changes(&item(&old), &item(&new)), says, "{old} {new}");
    }
    for Versions {
        name,
        old,
        new,
        says,
    } in cases.operations
    {
        assert_eq!(changes(&old, &new), says, "{name}");
    }
}

#[test]
fn a_new_version_is_compared_as_the_tools_that_clients_see() {
    let other = run(&["diff", &petstore(), &petstore(), "--api", "pets=other.yaml"]);
    assert_eq!(other.status.code(), Some(2), "{}", stderr(&other));
    assert!(stderr(&other).contains("leave --api (or OPENAPI_MCP_API) out"));
    let same = run(&["diff", &petstore(), &petstore()]);
    assert_eq!(same.status.code(), Some(0), "{}", stderr(&same));
    assert!(
        stdout(&same)
            .contains("20 tools before, 20 after: 0 breaking changes, 0 risks, 0 changes in all"),
        "{}",
        stdout(&same)
    );
    let text = std::fs::read_to_string(project("examples/petstore/petstore.yaml")).unwrap();
    let changed = SpecFile::new(
        &text
            .replace("operationId: getPet\n", "operationId: fetchPet\n")
            .replace("operationId: get_pet\n", "operationId: fetch_pet\n"),
    );
    let output = run(&["diff", &petstore(), changed.path()]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(
        stdout(&output).contains("breaking") && stdout(&output).contains("was called get_pet"),
        "{}",
        stdout(&output)
    );
    let output = run(&["diff", &petstore(), changed.path(), "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(report["breaking"], 1);
    // What is left out by the settings does not count.
    let output = run(&[
        "diff",
        &petstore(),
        changed.path(),
        "--tool-include",
        "tag:users",
        "--format",
        "markdown",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    let output = run(&["diff", &petstore(), "/nowhere.yaml"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
}
