//! `describe`: how much descriptions say.

use serde_json::{Value, json};

use crate::support::{SpecFile, run, stderr, stdout};

fn document() -> SpecFile {
    SpecFile::new(
        &json!({"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "paths": {
            "/old": {"get": {"operationId": "listOld", "deprecated": true, "description": "Lists pets. Use `listPets` for new code."}},
            "/pets": {
                "get": {"operationId": "listPets", "summary": "List pets", "parameters": [
                    {"name": "limit", "in": "query", "schema": {"type": "integer", "default": 20}}],
                    "responses": {"200": {"description": "ok", "content": {"application/json": {"schema": {"type": "array", "items": {"$ref": "#/components/schemas/Pet"}}}}}}},
                "post": {"operationId": "createPet", "summary": "Create a pet", "description": "Adds a pet v1.2\nto the shop. Its name may be any.\n\nSee the guide.", "requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}},
                    "responses": {"201": {"description": "ok", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}}}}}},
            "components": {"schemas": {"Pet": {"type": "object", "required": ["id", "name"], "properties": {
                "id": {"type": "integer", "readOnly": true}, "name": {"type": "string", "example": "Rex"}}}}}})
        .to_string(),
    )
}

fn descriptions(more: &[&str]) -> Vec<(String, String)> {
    let spec = document();
    let output = run(&[&["tools", "--spec", spec.path(), "--format", "json"], more].concat());
    let listed: Value = serde_json::from_str(&stdout(&output))
        .unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
    let tools = listed
        .as_array()
        .or_else(|| listed["tools"].as_array())
        .unwrap();
    let of = |tool: &Value| {
        let tool = tool.get("tool").unwrap_or(tool);
        let text = |key: &str| tool[key].as_str().unwrap().to_owned();
        (text("name"), text("description"))
    };
    tools.iter().map(of).collect()
}

#[test]
fn descriptions_say_as_much_as_is_asked() {
    let rule = SpecFile::new(
        &json!({"overrides": [{"match": {"operation": "listPets"}, "describe": "plain"}]})
            .to_string(),
    );
    let dropping = SpecFile::new(
        &json!({"overrides": [{"match": {"operation": "createPet"}, "response": {"drop": ["id"]}}]})
            .to_string(),
    );
    for (more, expected) in [
        (
            &[][..],
            [
                "Deprecated. Lists pets. Use `listPets` for new code.",
                "List pets",
                "Create a pet\n\nAdds a pet v1.2\nto the shop. Its name may be any.\n\nSee the guide.",
            ],
        ),
        (
            &["describe: brief"],
            [
                "Deprecated; use `listPets` instead. Lists pets. Use `listPets` for new code.",
                "List pets\nReturns a list of objects with id, name.",
                "Create a pet\n\nAdds a pet v1.2\nto the shop. Its name may be any.\n\nSee the guide.\nReturns an object with id, name.",
            ],
        ),
        (
            &["describe: brief", "--config", dropping.path()],
            [
                "Deprecated; use `listPets` instead. Lists pets. Use `listPets` for new code.",
                "List pets\nReturns a list of objects with id, name.",
                "Create a pet\n\nAdds a pet v1.2\nto the shop. Its name may be any.\n\nSee the guide.\nReturns an object with name.",
            ],
        ),
        (
            &["describe: title"],
            [
                "Deprecated. Lists pets.",
                "List pets",
                "Adds a pet v1.2 to the shop.",
            ],
        ),
        (
            &["describe: brief", "--config", rule.path()],
            [
                "Deprecated; use `listPets` instead. Lists pets. Use `listPets` for new code.",
                "List pets",
                "Create a pet\n\nAdds a pet v1.2\nto the shop. Its name may be any.\n\nSee the guide.\nReturns an object with id, name.",
            ],
        ),
    ] {
        let found: Vec<String> = descriptions(more)
            .into_iter()
            .map(|(_, description)| description)
            .collect();
        assert_eq!(found, expected, "{more:?}");
    }
}

#[test]
fn check_says_what_brief_descriptions_cost() {
    let spec = document();
    let text = stdout(&run(&["check", "--spec", spec.path()]));
    assert!(
        text.contains("`describe: brief` adds about 18 tokens"),
        "{text}"
    );
}
