//! Search mode on a large API: input schemas are made when an operation is described or called, and
//! are those that a list would have.

use serde_json::{Map, Value, json};

use crate::support::{Session, SpecFile, Upstream, run, stdout, text};

/// Input schemas of together about 2 MB, more than are made at the start; one property has a name
/// that clients refuse.
fn large() -> SpecFile {
    let properties = |number: usize| -> Map<String, Value> {
        let plain = (0..60).map(|index| {
            let says = format!("What the property {index} of the thing {number} stands for in this API, in some words");
            (format!("property{index}"), json!({"type": "string", "description": says}))
        });
        plain
            .chain([("@thing.type".to_owned(), json!({"type": "string"}))])
            .collect()
    };
    let paths: Map<String, Value> = (0..300)
        .map(|number| {
            let body = json!({"type": "object", "properties": properties(number), "required": ["property0"]});
            let operation = json!({
                "operationId": format!("createThing{number}"), "tags": ["things"],
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
    let flags = ["--tools", "search", "--pin", "operation:createThing7"];
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
    let (spec, upstream) = (large(), Upstream::echo());
    // Names alone are too long; with the first schemas, they are; as a whole, they are not.
    for (max_bytes, searches) in [("20000", true), ("400000", true), ("90000000", false)] {
        let flags = [
            "--max-list-bytes",
            max_bytes,
            "--pin",
            "operation:createThing7",
        ];
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
            session.logged("which is longer than --max-list-bytes; --tools all lists all");
            let called = session.call(
                "call_write",
                &json!({"operation": "createThing9", "arguments": {"body": {}}}),
            );
            assert!(text(&called).contains("createThing9"), "{called}");
        } else {
            assert_eq!(names.len(), 300);
        }
        let mut all = Session::serving(
            &spec,
            &upstream,
            &["--tools", "all", "--max-list-bytes", max_bytes],
        );
        assert_eq!(all.tools().len(), 300);
        let inspected = stdout(&run(&[
            "tools",
            "--spec",
            spec.path(),
            "--max-list-bytes",
            max_bytes,
        ]));
        assert!(inspected.contains("300 tools"), "{inspected}");
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
