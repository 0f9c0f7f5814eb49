//! `--mock` and the petstore: every tool can be called without an API and without a network.

use serde_json::{Value, json};

use crate::support::{Session, petstore};

#[test]
fn every_tool_of_the_petstore_answers() {
    let mut session = Session::start(&["serve", "--spec", &petstore(), "--mock"]);
    let special = json!({
        "upload_pet_photo": {"petId": 7, "body": {"photo": "aGk="}},
        "create_pet": {"body": {"name": "Rex", "status": "available", "price": 10.5}},
        "update_pet": {"petId": 7, "body": {"status": "sold"}},
        "create_user": {"body": {"name": "Ada", "email": "ada@example.com", "username": "ada", "password": "correct horse"}},
        "log_in": {"body": {"username": "ada", "password": "correct horse"}},
    });
    for tool in session.tools() {
        let name = tool["name"].as_str().unwrap().to_owned();
        let arguments = special
            .get(&name)
            .cloned()
            .unwrap_or_else(|| arguments(&tool["inputSchema"], &tool["inputSchema"]));
        let result = session.call(&name, &arguments);
        assert_eq!(result["isError"], false, "{name} {arguments}: {result:#}");
    }
}

#[test]
fn the_kinds_of_replies_are_the_documents() {
    let mut session = Session::start(&["serve", "--spec", &petstore(), "--mock"]);
    assert_eq!(
        session.call("get_pet", &json!({"petId": 7}))["structuredContent"]["name"],
        "Biscuit"
    );
    assert!(session.call("list_pets", &json!({}))["structuredContent"].is_object());
    assert_eq!(
        session.call("get_pet_photo", &json!({"petId": 7}))["content"][1]["mimeType"],
        "image/png"
    );
    assert_eq!(
        session.call("store_status", &json!({}))["content"][0]["type"],
        "text"
    );
    assert!(
        session.call("delete_pet", &json!({"petId": 7}))["content"][0]["text"]
            .as_str()
            .unwrap()
            .starts_with("204 No Content")
    );
    assert!(
        session.call("check_store", &json!({}))["content"][0]["text"]
            .as_str()
            .unwrap()
            .starts_with("20")
    );
}

/// The least a schema asks for.
fn arguments(schema: &Value, root: &Value) -> Value {
    let schema = match schema["$ref"].as_str() {
        Some(reference) => &root["$defs"][reference.trim_start_matches("#/$defs/")],
        None => schema,
    };
    if let Some(example) = schema["examples"]
        .get(0)
        .or_else(|| schema["enum"].get(0))
        .or_else(|| schema.get("default"))
    {
        return example.clone();
    }
    if let Some(branches) = schema["allOf"].as_array() {
        let parts = branches.iter().map(|branch| arguments(branch, root));
        return parts
            .flat_map(|part| part.as_object().cloned().unwrap_or_default())
            .collect::<serde_json::Map<_, _>>()
            .into();
    }
    let kind = schema["type"]
        .as_str()
        .or_else(|| schema["type"][0].as_str())
        .unwrap_or("object");
    match kind {
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or_else(|| json!(7)),
        "boolean" => json!(true),
        "array" => json!([arguments(&schema["items"], root)]),
        "string" => match schema["format"].as_str() {
            Some("date-time") => json!("2024-01-31T12:00:00Z"),
            Some("date") => json!("2024-01-31"),
            Some("email") => json!("ada@example.com"),
            // The petstore's names and words all fit this.
            _ => json!("ada_lovelace"),
        },
        _ => {
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            required
                .iter()
                .map(|name| {
                    (
                        name.as_str().unwrap().to_owned(),
                        arguments(&schema["properties"][name.as_str().unwrap()], root),
                    )
                })
                .collect::<serde_json::Map<_, _>>()
                .into()
        }
    }
}
