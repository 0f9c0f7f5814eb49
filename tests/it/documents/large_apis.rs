//! docs/guides/large-apis.md on GitHub's document, and what search mode costs on it; without the
//! corpus there is nothing to test.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Session, SpecFile, project, text};

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
        (
            "list workflow runs for a repository",
            "actions_list-workflow-runs-for-repo",
        ),
        ("re-run a workflow", "actions_re-run-workflow"),
    ],
    &[("add a repository collaborator", "repos_add-collaborator")],
    &[("remove an organization member", "orgs_remove-member")],
    &[("create a gist", "gists_create")],
    &[(
        "star a repository",
        "activity_star-repo-for-authenticated-user",
    )],
    &[("create a repository webhook", "repos_create-webhook")],
    &[("get the license for a repository", "licenses_get-for-repo")],
    &[(
        "list secret scanning alerts",
        "secret-scanning_list-alerts-for-repo",
    )],
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

/// The questions about one document.
#[derive(Deserialize)]
struct Asked<Q> {
    document: String,
    questions: Vec<Q>,
}

#[derive(Deserialize)]
struct Question {
    asks: String,
    #[serde(default)]
    shares_words: bool,
    #[serde(default)]
    steps: bool,
    wants: Vec<String>,
}

fn cases<Q: serde::de::DeserializeOwned>(name: &str) -> Vec<Asked<Q>> {
    let text =
        std::fs::read_to_string(project(&format!("tests/cases/search/{name}.yaml"))).unwrap();
    serde_yaml::from_str(&text).unwrap()
}

/// Search mode on a document of the corpus.
#[expect(clippy::print_stdout, reason = "what is skipped says so")]
fn searching(document: &str) -> Option<Session> {
    let Ok(corpus) = std::env::var("OPENAPI_MCP_CORPUS") else {
        println!("skipped: OPENAPI_MCP_CORPUS is not set");
        return None;
    };
    let spec = format!("{corpus}/{document}");
    Some(Session::start(&[
        "serve", "--spec", &spec, "--tools", "search", "--mock",
    ]))
}

fn github() -> Option<Session> {
    searching("github/api.github.com.json")
}

/// Method and path of the first hits.
fn hits(session: &mut Session, question: &str, limit: usize) -> Vec<String> {
    let found = session.call(
        "search_operations",
        &json!({"queries": [question], "limit": limit}),
    );
    let hits = found["_meta"]["openapi-mcp/search"]["results"][0]["hits"]
        .as_array()
        .unwrap()
        .iter();
    hits.map(|hit| {
        format!(
            "{} {}",
            hit["method"].as_str().unwrap(),
            hit["path"].as_str().unwrap()
        )
    })
    .collect()
}

/// Returns the approximate number of tokens of a value: four bytes each.
fn tokens(value: &Value) -> usize {
    value.to_string().len() / 4
}

/// The same of an answer, which has no structured content: every host shows the text.
fn answer_tokens(result: &Value) -> usize {
    assert_eq!(result.get("structuredContent"), None, "{result}");
    text(result).len() / 4
}

#[test]
fn the_guide_to_large_apis_works_as_written() {
    let Some(mut session) = github() else { return };
    let guide = std::fs::read_to_string(project("docs/guides/large-apis.md")).unwrap();
    let mut blocks = guide.split("```").skip(1).step_by(2).peekable();
    let mut calls = 0;
    while let Some(block) = blocks.next() {
        let Some(call) = block.strip_prefix("json\n") else {
            continue;
        };
        let call: Value = serde_json::from_str(call).unwrap();
        let result = session.call(call["name"].as_str().unwrap(), &call["arguments"]);
        assert_ne!(result["isError"], true, "{call}: {result}");
        if let Some(shown) = blocks.peek().and_then(|next| next.strip_prefix("text\n")) {
            assert!(
                text(&result).contains(shown.trim()),
                "{shown}\n{}",
                text(&result)
            );
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
        let hits = search["_meta"]["openapi-mcp/search"].to_string();
        found += usize::from(
            names
                .iter()
                .all(|name| hits.contains(&format!("\"{name}\""))),
        );
        let answer = answer_tokens(&search);
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
fn a_search_answer_stays_short_whatever_is_asked() {
    let Some(mut session) = github() else { return };
    let asked: Vec<Value> = TASKS
        .iter()
        .flat_map(|task| task.iter())
        .map(|(question, _)| json!(question))
        .collect();
    let one = asked
        .iter()
        .map(|question| json!({"queries": [question], "limit": 25}));
    let five = asked
        .chunks(5)
        .map(|questions| json!({"queries": questions, "limit": 5}));
    let others = [
        json!({}),
        json!({"tag": "repos", "limit": 25}),
        json!({"effect": "destructive", "limit": 25, "offset": 100}),
        json!({"queries": ["issues ".repeat(2000)], "limit": 25}),
    ];
    for arguments in one.chain(five).chain(others) {
        let answer = answer_tokens(&session.call("search_operations", &arguments));
        assert!(
            answer <= 1500,
            "{answer} tokens: {:.200}",
            arguments.to_string()
        );
    }
}

/// As many tags as Microsoft Graph has, with names, tags and titles as long as its own.
#[test]
fn the_list_of_an_api_of_thousands_of_operations_stays_short() {
    let operation = |tag: usize, number: usize, method: &str| {
        json!({
            "operationId": format!("{method}.organizationalUnits{tag}.administrativeAssignments{number}"),
            "summary": format!("{method} the administrative assignment {number} of an organizational unit {tag}"),
            "tags": [format!("organizationalUnits{tag}.administrativeAssignment")]
        })
    };
    let paths: serde_json::Map<String, Value> = (0..2_000)
        .map(|number| {
            let tag = number % 420;
            let item = ["get", "post", "delete"]
                .map(|method| (method.to_owned(), operation(tag, number, method)));
            let path = format!("/organizationalUnits{tag}/administrativeAssignments{number}");
            (path, Value::Object(item.into_iter().collect()))
        })
        .collect();
    let spec = SpecFile::with_paths(&paths.into());
    let mut session = Session::start(&[
        "serve",
        "--spec",
        spec.path(),
        "--tools",
        "search",
        "--mock",
    ]);
    let (list, about) = (
        Value::from(session.tools()),
        session.handshake()["instructions"].clone(),
    );
    assert!(
        tokens(&list) < 4000 && tokens(&about) <= 512,
        "{} {}",
        tokens(&list),
        tokens(&about)
    );
    let hit = "delete_organizationalUnits7_administrativeAssignments7";
    for arguments in [
        json!({}),
        json!({"queries": ["delete the administrative assignment 7 of organizational unit 7"], "limit": 25}),
        json!({"queries": ["administrative", "assignment", "organizational", "unit", hit], "limit": 5}),
    ] {
        let found = session.call("search_operations", &arguments);
        assert!(
            answer_tokens(&found) <= 1500,
            "{} tokens: {arguments}",
            answer_tokens(&found)
        );
        assert!(
            arguments == json!({}) || found.to_string().contains(hit),
            "{found}"
        );
    }
}

#[test]
fn questions_that_no_operation_answers_get_no_hit() {
    let (mut answered, mut count) = (Vec::new(), 0);
    for Asked {
        document,
        questions,
    } in cases::<String>("unanswerable")
    {
        let Some(mut session) = searching(&document) else {
            return;
        };
        for question in questions {
            count += 1;
            if let Some(hit) = hits(&mut session, &question, 1).first() {
                answered.push(format!("{document}: {question}: {hit}"));
            }
        }
    }
    println!("{} of {count} were answered", answered.len());
    assert_eq!(count, 60);
    assert!(answered.len() <= 6, "{answered:#?}");
}

#[test]
fn questions_find_their_operations() {
    let (mut single, mut sharing, mut steps) = (Vec::new(), Vec::new(), Vec::new());
    for Asked {
        document,
        questions,
    } in cases::<Question>("questions")
    {
        let Some(mut session) = searching(&document) else {
            return;
        };
        for Question {
            asks,
            shares_words,
            steps: has_steps,
            wants,
        } in questions
        {
            let found = hits(&mut session, &asks, 10);
            let is_found = |limit: usize| {
                wants
                    .iter()
                    .filter(|wanted| found.iter().take(limit).any(|hit| hit == *wanted))
                    .count()
            };
            if has_steps {
                steps.push((is_found(10), wants.len()));
                continue;
            }
            single.push((usize::from(is_found(5) > 0), 1));
            if shares_words {
                sharing.push((usize::from(is_found(5) > 0), 1));
            }
        }
    }
    let percent = |found: &[(usize, usize)]| {
        let (found, wanted) = found
            .iter()
            .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        100 * found / wanted
    };
    let [single, sharing, steps] = [&single, &sharing, &steps].map(|found| percent(found));
    println!(
        "among five hits: {single} %, of questions that share words {sharing} %; of several steps, among ten: {steps} %"
    );
    assert!(
        single >= 68 && sharing >= 95 && steps >= 80,
        "{single} {sharing} {steps}"
    );
}
