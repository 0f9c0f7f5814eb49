//! Repairs never change what was valid, never lose a value, and never let a call out that would
//! have been refused.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Api, ApiOptions};
use crate::caller::Caller;
use crate::json::JsonObject;
use crate::outbound::{OutboundOptions, http_client};
use crate::proxy::{Destination, OnMissingCredential};
use crate::spec::Document;

static API: LazyLock<Api> = LazyLock::new(build_api);

fn build_api() -> Api {
    let document = json!({
        "openapi": "3.1.0",
        "info": { "title": "Repairs", "version": "1" },
        "paths": { "/pets/{petId}": { "post": {
            "operationId": "update",
            "parameters": [
                { "name": "petId", "in": "path", "required": true, "schema": { "type": "string" } },
                { "name": "max-age", "in": "query", "schema": { "type": "integer" } },
                { "name": "status", "in": "query", "schema": { "type": "array", "items": { "enum": ["a", "b", "c"] } } },
                { "name": "X-Trace", "in": "header", "schema": { "type": "string" } },
                { "name": "free", "in": "query", "schema": {} }
            ],
            "requestBody": { "content": { "application/json": { "schema": {
                "type": "object",
                "properties": {
                    "name": { "type": "string" }, "petID": { "type": "string" }, "age": { "type": "integer" },
                    "body": { "type": "string" }, "inner": { "type": "object", "properties": { "zipCode": { "type": "string" } }, "required": ["zipCode"] }
                }
            } } } }
        } } }
    });
    let document = Document::parse(document.to_string().into_bytes(), None).unwrap();
    let options = ApiOptions {
        destination: Destination::Fixed("https://h.example/v1".parse().unwrap()),
        ..ApiOptions::default()
    };
    let plain = OutboundOptions {
        tls: false,
        ..OutboundOptions::default()
    };
    Api::build(document, options, http_client(&plain).unwrap())
        .unwrap()
        .0
}

/// Returns the URL and headers of the request, or `None` if nothing would be sent.
fn sent(arguments: &Value) -> Option<(String, String)> {
    let request = API
        .preview(
            "update",
            arguments.as_object().cloned(),
            OnMissingCredential::Omit,
            &Caller::default(),
        )
        .unwrap()
        .ok()?;
    Some((request.url.to_string(), format!("{:?}", request.headers)))
}

fn checked(arguments: &JsonObject) -> Option<(JsonObject, Option<String>)> {
    let update = API.find("update").unwrap();
    let checked = API.wire_arguments(update, arguments.clone()).ok()?;
    Some((checked.arguments, checked.repairs))
}

/// Collects the texts of a value that begin with `m`.
fn markers(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.starts_with('m') => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| markers(item, found)),
        Value::Object(members) => members.values().for_each(|member| markers(member, found)),
        _ => {}
    }
}

fn sorted_markers(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    markers(value, &mut found);
    found.sort();
    found
}

fn hostile_text() -> impl Strategy<Value = String> {
    let parts = [
        "..", ".", "/", "\\", "%2e", "%2E%2e", "%252e", "a", "", "\r\n", "\0", "é", "?", "#",
        "{petId}", " ",
    ];
    proptest::collection::vec(proptest::sample::select(parts.to_vec()), 0..5)
        .prop_map(|parts| parts.concat())
}

fn any_argument() -> impl Strategy<Value = Value> {
    let marker =
        proptest::collection::vec(0..9_u8, 1..4).prop_map(|digits| json!(format!("m{digits:?}")));
    let leaf = prop_oneof![
        4 => marker,
        1 => Just(json!("a,b")),
        1 => Just(json!("5")),
        1 => Just(json!("")),
        1 => Just(json!(7)),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            3 => proptest::collection::btree_map(any_name(), inner.clone(), 0..4).prop_map(|members| Value::Object(members.into_iter().collect())),
            1 => proptest::collection::vec(inner, 0..3).prop_map(Value::Array),
        ]
    })
}

fn any_name() -> impl Strategy<Value = String> {
    let names = [
        "petId",
        "pet_id",
        "PetID",
        "petID",
        "max-age",
        "max_age",
        "status",
        "X-Trace",
        "x_trace",
        "free",
        "body",
        "Body",
        "name",
        "age",
        "inner",
        "zip_code",
        "zipCode",
        "arguments",
        "params",
        "path",
        "query",
        "headers",
        "requestBody",
        "other",
    ];
    proptest::sample::select(names.to_vec()).prop_map(str::to_owned)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_repair_sends_a_call_that_would_have_been_refused(path in hostile_text(), header in hostile_text()) {
        let plain = sent( &json!({ "petId": path, "X-Trace": header }));
        let text = json!({ "petId": path, "X-Trace": header }).to_string();
        for given in [
            json!({ "pet-id": path, "x_trace": header }),
            json!({ "arguments": { "petId": path, "X-Trace": header } }),
            json!({ "arguments": { "path": { "petId": path }, "headers": { "X-Trace": header } } }),
            json!({ "path": { "petId": path }, "X-Trace": header }),
            json!({ "params": text }),
        ] {
            let repaired = sent( &given);
            prop_assert!(repaired.is_none() || repaired == plain, "{given}: {repaired:?} instead of {plain:?}");
        }
    }

    #[test]
    fn repairs_change_nothing_that_was_valid_and_lose_nothing(
        members in proptest::collection::btree_map(any_name(), any_argument(), 0..5),
    ) {
        let given: JsonObject = members.into_iter().collect();
        let Some((repaired, notes)) = checked( &given) else { return Ok(()) };
        prop_assert_eq!(notes.is_some(), repaired != given, "{:?} of {:?} became {:?}", notes, given, repaired);
        prop_assert_eq!(sorted_markers(&Value::Object(given.clone())), sorted_markers(&Value::Object(repaired.clone())));
        for name in ["petId", "max-age", "status", "X-Trace", "free"] {
            // Alone with what is required, so that only this value is judged.
            let alone = [("petId".to_owned(), json!("1")), (name.to_owned(), given.get(name).cloned().unwrap_or_default())];
            let alone: JsonObject = alone.into_iter().collect();
            let is_valid = checked( &alone).is_some_and(|(_, notes)| notes.is_none());
            if given.contains_key(name) && is_valid {
                prop_assert_eq!(repaired.get(name), given.get(name), "{:?}", given);
            }
        }
    }

    #[test]
    fn members_of_the_body_beside_it_have_the_errors_of_the_same_members_in_it(
        members in proptest::collection::btree_map(
            proptest::sample::select(vec!["name", "age", "inner"]).prop_map(str::to_owned),
            any_argument(),
            1..4,
        ),
    ) {
        let update = API.find("update").unwrap();
        let outcome = |arguments: Value| {
            let arguments = arguments.as_object().cloned().unwrap_or_default();
            let checked = API.wire_arguments(update, arguments);
            checked.map(|checked| checked.arguments).map_err(|error| error.to_string())
        };
        let body: JsonObject = members.into_iter().collect();
        let mut beside = body.clone();
        beside.insert("petId".to_owned(), json!("1"));
        prop_assert_eq!(outcome(Value::Object(beside)), outcome(json!({ "petId": "1", "body": body })));
    }
}
