//! The configurations of `examples/`, with real documents.

use serde_json::json;

use crate::support::{Session, SpecFile, Upstream, project, reply};

#[test]
fn the_example_for_github_issues_gives_columns_of_the_repository_that_the_operator_chose() {
    let Ok(corpus) = std::env::var("OPENAPI_MCP_CORPUS") else {
        return;
    };
    let issue = |number: u64| {
        json!({"url": "https://api/1", "html_url": "https://h/1", "number": number, "title": "It | fails", "state": "open", "node_id": "N",
            "user": {"login": "ferris", "avatar_url": "https://a"}, "comments": 2, "updated_at": "2026-11-22", "body": "Long words.",
            "reactions": {"url": "https://r"}})
    };
    let body = json!([issue(1), issue(2)]).to_string();
    let upstream = Upstream::start(Box::new(move |_| {
        reply(200, &["Content-Type: application/json"], body.as_bytes())
    }));
    let example =
        std::fs::read_to_string(project("examples/github-issues/openapi-mcp.yaml")).unwrap();
    let spec = format!("{corpus}/github/api.github.com.json");
    let config = SpecFile::new(&example.replace(
        "https://raw.githubusercontent.com/github/rest-api-description/main/descriptions/api.github.com/api.github.com.json",
        &spec,
    ));
    let mut session = Session::start(&[
        "serve",
        "--config",
        config.path(),
        "--base-url",
        &upstream.url,
    ]);
    assert_eq!(session.tools().len(), 5);
    let result = session.call("issues_list-for-repo", &json!({"owner": "mine"}));
    assert_eq!(
        result["isError"], true,
        "the repository is the operator's: {result}"
    );
    let result = session.call("issues_list-for-repo", &json!({}));
    assert_eq!(
        upstream.take_one().path(),
        "/repos/rust-lang/rust/issues?per_page=30"
    );
    let row = |number: u64| json!([number, "It | fails", "open", "ferris", 2, "2026-11-22"]);
    assert_eq!(
        result["structuredContent"],
        json!({
            "columns": ["number", "title", "state", "author", "comments", "updated_at"],
            "rows": [row(1), row(2)],
        }),
        "{result}"
    );
}
