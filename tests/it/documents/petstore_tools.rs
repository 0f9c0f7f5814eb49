//! The whole tool list of the petstore as digest lines, so that a change of what clients see can be
//! read in a diff.

use serde_json::Value;

use crate::support::{Session, petstore};

#[test]
fn the_petstores_tools_are_these() {
    let mut session = Session::start(&["serve", "--spec", &petstore(), "--mock"]);
    let lines: Vec<String> = session.tools().iter().map(digest).collect();
    insta::with_settings!({snapshot_path => "../../snapshots", prepend_module_to_snapshot => false}, {
        insta::assert_snapshot!("petstore", lines.join("\n"));
    });
}

#[test]
fn every_tool_of_the_petstore_is_what_clients_accept() {
    let mut session = Session::start(&["serve", "--spec", &petstore(), "--mock"]);
    for tool in session.tools() {
        let name = tool["name"].as_str().unwrap();
        assert!(
            !name.is_empty()
                && name.len() <= 64
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)),
            "{name}"
        );
        assert!(
            !tool["title"].as_str().unwrap().is_empty()
                && !tool["description"].as_str().unwrap().is_empty()
        );
        let schema = tool["inputSchema"].as_object().unwrap();
        assert_eq!(schema["type"], "object", "{name}");
        for combinator in ["oneOf", "anyOf", "allOf", "not", "if"] {
            assert!(
                !schema.contains_key(combinator),
                "{name}: {combinator} at the root"
            );
        }
        for (key, property) in schema["properties"].as_object().unwrap() {
            assert!(
                key.len() <= 64
                    && key
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte)),
                "{name}: {key}"
            );
            assert!(
                property["description"]
                    .as_str()
                    .is_some_and(|text| !text.is_empty()),
                "{name}: {key} has no description"
            );
        }
        jsonschema::meta::validate(&tool["inputSchema"])
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

/// `name · hints · arguments · bytes of the input schema · title`.
fn digest(tool: &Value) -> String {
    let hint = |name: &str, letter: &str| match tool["annotations"][name].as_bool() {
        Some(true) => letter.to_owned(),
        Some(false) => "-".to_owned(),
        None => "?".to_owned(),
    };
    let hints = hint("readOnlyHint", "r")
        + &hint("destructiveHint", "d")
        + &hint("idempotentHint", "i")
        + &hint("openWorldHint", "o");
    let required: Vec<&str> = tool["inputSchema"]["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let arguments = tool["inputSchema"]["properties"]
        .as_object()
        .into_iter()
        .flatten();
    let arguments: Vec<String> = arguments
        .map(|(key, _)| {
            if required.contains(&key.as_str()) {
                format!("{key}*")
            } else {
                key.clone()
            }
        })
        .collect();
    let bytes = tool["inputSchema"].to_string().len();
    format!(
        "{} · {hints} · {} · {bytes} · {}",
        tool["name"].as_str().unwrap(),
        arguments.join(" "),
        tool["title"].as_str().unwrap()
    )
}
