//! Savings of a table, measured on real replies: lists made of the examples in GitHub's document.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::support::{Session, SpecFile, Upstream, project, reply, text};

const LISTS: [&str; 10] = [
    "issues/list-for-repo",
    "pulls/list",
    "repos/list-commits",
    "repos/list-releases",
    "issues/list-milestones",
    "issues/list-labels-for-repo",
    "repos/list-contributors",
    "repos/list-forks",
    "issues/list-comments-for-repo",
    "repos/list-for-user",
];
const ROWS: usize = 30;
const FIELDS: usize = 8;

/// The ways in which each list is asked for: with chosen fields and whole, as JSON and as a table.
const WAYS: [&str; 4] = ["chosen_json", "chosen_table", "whole_json", "whole_table"];

/// The list that the document has as the example of an operation's reply, repeated to so many rows.
fn rows(github: &Value, operation: &str) -> Vec<Value> {
    let paths = github["paths"].as_object().unwrap();
    let is_it = |item: &&Value| item["get"]["operationId"] == operation;
    let item = paths
        .values()
        .find(is_it)
        .unwrap_or_else(|| panic!("{operation}"));
    let examples = item["get"]["responses"]["200"]["content"]["application/json"]["examples"]
        .as_object()
        .unwrap();
    let example = examples.values().next().unwrap();
    let place = example["$ref"].as_str().unwrap().trim_start_matches('#');
    let list = github.pointer(place).unwrap()["value"].as_array().unwrap();
    list.iter().cycle().take(ROWS).cloned().collect()
}

/// The first members of a row, by name, that are neither objects nor lists nor links.
fn flat_fields(row: &Value) -> Vec<String> {
    let members: std::collections::BTreeMap<_, _> = row.as_object().unwrap().iter().collect();
    let flat = members
        .into_iter()
        .filter(|(name, value)| !value.is_object() && !value.is_array() && !name.ends_with("url"));
    flat.map(|(name, _)| format!("/{name}"))
        .take(FIELDS)
        .collect()
}

/// The bytes of each list in each way.
fn measure(lists: Vec<Vec<Value>>) -> HashMap<(usize, &'static str), usize> {
    let (mut paths, mut rules) = (json!({}), Vec::new());
    for (index, list) in lists.iter().enumerate() {
        for way in WAYS {
            let operation = format!("{way}_{index}");
            paths[format!("/{index}/{way}")] = json!({"get": {"operationId": operation}});
            let mut response = json!({});
            if way.starts_with("chosen") {
                response["fields"] = json!(flat_fields(&list[0]));
            }
            if way.ends_with("table") {
                response["format"] = "table".into();
            }
            if response != json!({}) {
                rules.push(json!({"match": {"operation": operation}, "response": response}));
            }
        }
    }
    let count = lists.len();
    let upstream = Upstream::start(Box::new(move |request| {
        let index: usize = request.path().split('/').nth(1).unwrap().parse().unwrap();
        reply(
            200,
            &["Content-Type: application/json"],
            json!(lists[index]).to_string().as_bytes(),
        )
    }));
    let (spec, config) = (
        SpecFile::with_paths(&paths),
        SpecFile::new(&json!({ "overrides": rules }).to_string()),
    );
    let mut session = Session::serving(
        &spec,
        &upstream,
        &["--config", config.path(), "--max-result-tokens", "0"],
    );
    let mut sizes = HashMap::new();
    for index in 0..count {
        for way in WAYS {
            let result = session.call(&format!("{way}_{index}"), &json!({}));
            sizes.insert((index, way), text(&result).len());
        }
    }
    sizes
}

#[test]
fn a_table_saves_what_the_documentation_says() {
    let Ok(corpus) = std::env::var("OPENAPI_MCP_CORPUS") else {
        return;
    };
    let document = std::fs::read_to_string(format!("{corpus}/github/api.github.com.json")).unwrap();
    let github: Value = serde_json::from_str(&document).unwrap();
    let sizes = measure(
        LISTS
            .iter()
            .map(|operation| rows(&github, operation))
            .collect(),
    );
    let sum = |way: &'static str| {
        (0..LISTS.len())
            .map(|index| sizes[&(index, way)])
            .sum::<usize>()
    };
    let percent = |table: usize, json: usize| (200 * table + json) / (2 * json);
    let share = |index: usize| {
        percent(
            sizes[&(index, "chosen_table")],
            sizes[&(index, "chosen_json")],
        )
    };
    let shares: Vec<usize> = (0..LISTS.len()).map(share).collect();
    let chosen = format!(
        "{} % of the bytes of compact JSON ({} % to {} %)",
        percent(sum("chosen_table"), sum("chosen_json")),
        shares.iter().min().unwrap(),
        shares.iter().max().unwrap()
    );
    let whole = format!(
        "nested objects, {} %",
        percent(sum("whole_table"), sum("whole_json"))
    );
    let page = std::fs::read_to_string(project("docs/reference/overrides.md")).unwrap();
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for figure in [chosen, whole] {
        assert!(
            page.contains(&figure),
            "docs/reference/overrides.md does not say: {figure}"
        );
    }
}
