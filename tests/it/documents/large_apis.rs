//! docs/large-apis.md on GitHub's document, and what search mode costs on it; without the corpus there is nothing to test.

use serde_json::{Value, json};

use crate::support::{Session, project, text};

/// A step of a task: the question, and an operation that answers it.
const TASKS: [&[(&str, &str)]; 20] = [
    &[
        ("list issues of a repository", "issues_list-for-repo"),
        ("create an issue comment", "issues_create-comment"),
    ],
    &[("create a pull request", "pulls_create")],
    &[("merge a pull request", "pulls_merge")],
    &[("list branches", "repos_list-branches")],
    &[("rename a branch", "repos_rename-branch")],
    &[
        ("create a release", "repos_create-release"),
        ("generate release notes", "repos_generate-release-notes"),
    ],
    &[
        ("list workflow runs for a repository", "actions_list-workflow-runs-for-repo"),
        ("re-run a workflow", "actions_re-run-workflow"),
    ],
    &[("add a repository collaborator", "repos_add-collaborator")],
    &[("remove an organization member", "orgs_remove-member")],
    &[("create a gist", "gists_create")],
    &[("star a repository", "activity_star-repo-for-authenticated-user")],
    &[("create a repository webhook", "repos_create-webhook")],
    &[("get the license for a repository", "licenses_get-for-repo")],
    &[("list secret scanning alerts", "secret-scanning_list-alerts-for-repo")],
    &[
        ("create a team", "teams_create"),
        ("list team members", "teams_list-members-in-org"),
    ],
    &[("block a user", "users_block")],
    &[("lock an issue", "issues_lock")],
    &[("compare two commits", "repos_compare-commits")],
    &[
        ("create a blob", "git_create-blob"),
        ("create a tree", "git_create-tree"),
        ("create a commit", "git_create-commit"),
    ],
    &[("delete a deployment", "repos_delete-deployment")],
];

/// Questions that GitHub's API does not answer.
const UNANSWERABLE: [&str; 20] = [
    "What is the weather in Berlin tomorrow?",
    "order a pizza with extra cheese",
    "translate this sentence to Japanese",
    "what is the capital of Australia",
    "turn on the living room lights",
    "recipe for chocolate cake",
    "call me a taxi",
    "remind me to water the plants",
    "find a restaurant nearby",
    "how many calories are in a banana",
    "horoscope for virgo",
    "population of Brazil",
    "pollen forecast",
    "lyrics of Yesterday by the Beatles",
    "rent a car for the weekend",
    "feed the dog at noon",
    "vacuum the kitchen floor",
    "how tall is Mount Everest",
    "symptoms of influenza",
    "knitting pattern for a scarf",
];

fn github() -> Option<Session> {
    let corpus = std::env::var("OPENAPI_MCP_CORPUS").ok()?;
    let spec = format!("{corpus}/github/api.github.com.json");
    Some(Session::start(&["serve", "--spec", &spec, "--tools", "search", "--mock"]))
}

/// About how many tokens a value takes: four bytes each.
fn tokens(value: &Value) -> usize {
    value.to_string().len() / 4
}

#[test]
fn the_guide_to_large_apis_works_as_written() {
    let Some(mut session) = github() else { return };
    let guide = std::fs::read_to_string(project("docs/large-apis.md")).unwrap();
    let mut blocks = guide.split("```").skip(1).step_by(2).peekable();
    let mut calls = 0;
    while let Some(block) = blocks.next() {
        let Some(call) = block.strip_prefix("json\n") else { continue };
        let call: Value = serde_json::from_str(call).unwrap();
        let result = session.call(call["name"].as_str().unwrap(), &call["arguments"]);
        assert_ne!(result["isError"], true, "{call}: {result}");
        if let Some(shown) = blocks.peek().and_then(|next| next.strip_prefix("text\n")) {
            assert!(text(&result).contains(shown.trim()), "{shown}\n{}", text(&result));
        }
        calls += 1;
    }
    assert_eq!(calls, 3);
}

#[test]
fn a_task_on_a_large_api_takes_a_few_thousand_tokens() {
    let Some(mut session) = github() else { return };
    let list = tokens(&Value::from(session.tools()));
    assert!(list < 3000, "the list takes {list} tokens");
    let (mut sum, mut most, mut found) = (0, 0, 0);
    for task in TASKS {
        let questions: Vec<&str> = task.iter().map(|(question, _)| *question).collect();
        let names: Vec<&str> = task.iter().map(|(_, name)| *name).collect();
        let search = session.call("search_operations", &json!({"queries": questions}));
        let hits = search["structuredContent"].to_string();
        found += usize::from(names.iter().all(|name| hits.contains(&format!("\"{name}\""))));
        let answer = (text(&search).len().max(hits.len())) / 4;
        assert!(answer < 1500, "{questions:?} takes {answer} tokens");
        let described = session.call("describe_operations", &json!({"names": names}));
        assert_ne!(described["isError"], true, "{described}");
        let calls: usize = names.iter().map(|name| name.len() / 4 + 60).sum();
        let all = list + answer + text(&described).len() / 4 + calls;
        (sum, most) = (sum + all, most.max(all));
    }
    println!(
        "list {list}, task {} on average and {most} at the most, {found} of {} answered",
        sum / TASKS.len(),
        TASKS.len()
    );
    assert!(most < 8000, "a task takes {most} tokens");
    assert!(found >= 16, "only {found} tasks found all their operations");
}

#[test]
fn questions_that_no_operation_answers_get_no_hit() {
    let Some(mut session) = github() else { return };
    let mut answered = Vec::new();
    for question in UNANSWERABLE {
        let search = session.call("search_operations", &json!({"queries": question}));
        if !search["structuredContent"]["results"][0]["hits"].as_array().unwrap().is_empty() {
            answered.push(question);
        }
    }
    assert!(answered.len() <= 2, "{answered:?}");
}
