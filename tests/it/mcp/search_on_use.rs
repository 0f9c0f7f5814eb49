//! Search mode on a large API: input schemas are made when an operation is described or called, and
//! are those that a list would have.

use serde_json::{Map, Value, json};

use crate::support::{Session, SpecFile, Upstream, run, stdout, text};

/// Input schemas of together about 2 MB, more than are made at the start; one property has a name
/// that clients refuse.
fn large() -> SpecFile {
    document(300, 60, "")
}

/// So many operations with that description, whose bodies have so many properties.
fn document(operations: usize, properties: usize, description: &str) -> SpecFile {
    let properties_of = |number: usize| -> Map<String, Value> {
        let plain = (0..properties).map(|index| {
            let says = format!("What the property {index} of the thing {number} stands for in this API, in some words");
            (format!("property{index}"), json!({"type": "string", "description": says}))
        });
        plain
            .chain([("@thing.type".to_owned(), json!({"type": "string"}))])
            .collect()
    };
    let paths: Map<String, Value> = (0..operations)
        .map(|number| {
            let body = json!({"type": "object", "properties": properties_of(number), "required": ["property0"]});
            let operation = json!({
                "operationId": format!("createThing{number}"), "tags": ["things"], "description": description,
                "requestBody": {"required": true, "content": {"application/json": {"schema": body}}}
            });
            (format!("/things{number}"), json!({"post": operation}))
        })
        .collect();
    SpecFile::with_paths(&paths.into())
}

/// The input schema that `describe_operations` gives.
fn described(session: &mut Session, name: &str) -> Value {
    let answer = session.call(
        "describe_operations",
        &json!({"names": [name], "detail": "schema"}),
    );
    let schema = text(&answer).lines().last().unwrap_or_default();
    serde_json::from_str::<Value>(schema).unwrap_or_else(|error| panic!("{error}: {answer}"))["inputSchema"].clone()
}

#[test]
fn a_schema_that_is_made_when_it_is_used_is_that_of_the_list() {
    let (spec, upstream) = (large(), Upstream::echo());
    let mut all = Session::serving(&spec, &upstream, &[]);
    let listed = all.tools();
    let flags = ["--tools", "search", "pin: [\"operation:createThing7\"]"];
    let mut session = Session::serving(&spec, &upstream, &flags);
    session.logged("instead of a list of more than");
    let tools = session.tools();
    let names: Vec<&str> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "search_operations",
            "describe_operations",
            "call_write",
            "createThing7"
        ]
    );
    let pinned = listed
        .iter()
        .find(|tool| tool["name"] == "createThing7")
        .unwrap();
    assert_eq!(tools[3]["inputSchema"], pinned["inputSchema"]);
    for number in [0, 1, 150, 298, 299] {
        let name = format!("createThing{number}");
        let expected = listed
            .iter()
            .find(|tool| tool["name"] == name.as_str())
            .unwrap();
        assert_eq!(
            described(&mut session, &name),
            expected["inputSchema"],
            "{name}"
        );
    }
}

/// A list is as long as the operator asked for, and if the operator did not ask, no longer than any
/// client takes.
#[test]
fn a_list_that_no_client_takes_is_served_in_search_mode_unless_the_operator_wants_all() {
    let upstream = Upstream::echo();
    let long = "A thing of this API, in some words. ".repeat(50);
    // Without schemas the list is too long; with the first schemas, it is; as a whole, it is not.
    for (operations, properties, description, searches) in [
        (4000, 0, long.as_str(), true),
        (300, 250, "", true),
        (300, 60, "", false),
    ] {
        let spec = document(operations, properties, description);
        let flags = ["pin: [\"operation:createThing7\"]"];
        let mut session = Session::serving(&spec, &upstream, &flags);
        let tools = session.tools();
        let names: Vec<&str> = tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        if searches {
            assert_eq!(
                names,
                [
                    "search_operations",
                    "describe_operations",
                    "call_write",
                    "createThing7"
                ]
            );
            session.logged("which is longer than 6 MiB; --tools all lists all");
            let called = session.call(
                "call_write",
                &json!({"operation": "createThing9", "arguments": {"body": {}}}),
            );
            assert!(text(&called).contains("createThing9"), "{called}");
        } else {
            assert_eq!(names.len(), operations);
        }
        let mut all = Session::serving(&spec, &upstream, &["--tools", "all"]);
        assert_eq!(all.tools().len(), operations);
        let inspected = stdout(&run(&["tools", "--spec", spec.path()]));
        assert!(inspected.contains(&format!("{operations} tools")));
    }
}

#[test]
fn a_call_of_an_operation_whose_schema_was_not_made_yet_is_checked_and_sent_as_any_other() {
    let (spec, upstream) = (large(), Upstream::echo());
    let mut all = Session::serving(&spec, &upstream, &[]);
    let mut session = Session::serving(&spec, &upstream, &["--tools", "search"]);
    let schema = described(
        &mut Session::serving(&spec, &upstream, &["--tools", "search"]),
        "createThing299",
    );
    let properties = schema["properties"]["body"]["properties"]
        .as_object()
        .unwrap();
    let renamed = properties.keys().find(|key| key.contains("thing")).unwrap();
    assert_ne!(renamed, "@thing.type");
    let right = json!({"body": {"property0": "a", renamed.as_str(): "b"}});
    let wrong = json!({"body": {"property1": "a"}});
    for operation in ["createThing298", "createThing299"] {
        for arguments in [&right, &wrong] {
            let plain = all.call(operation, arguments);
            let sent_plain = upstream.take_all();
            for (tool, arguments) in [
                (
                    "call_write",
                    &json!({"operation": operation, "arguments": arguments}),
                ),
                (operation, arguments),
            ] {
                assert_eq!(session.call(tool, arguments), plain, "{tool}");
                let sent = upstream.take_all();
                let bodies = [&sent_plain, &sent].map(|sent| {
                    sent.iter()
                        .map(|request| request.body.clone())
                        .collect::<Vec<_>>()
                });
                assert_eq!(bodies[0], bodies[1], "{tool}");
            }
        }
        let sent = all.call(operation, &right);
        assert_eq!(sent["isError"], false, "{sent}");
        let body = String::from_utf8(upstream.take_one().body).unwrap();
        assert!(body.contains("\"@thing.type\":\"b\""), "{body}");
    }
}
