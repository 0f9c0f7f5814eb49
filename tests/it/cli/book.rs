//! Every command that the documentation shows runs, and the authentication recipes give the
//! credential that the API demands.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::shell::{Shell, blocks};
use crate::support::{Received, Upstream, certificates, project, reply, stderr, stdout};
use crate::upstream::signed_requests::is_signed;

/// Replacements of addresses that a test must not use.
const ADDRESSES: [(&str, &str); 7] = [
    ("https://bills.example/openapi.json", "bills.json"),
    ("http://127.0.0.1:8000/openapi.json", "shop-api.json"),
    ("https://login.example/", "http://127.0.0.1:9/"),
    ("redis.example:6379", "127.0.0.1:9"),
    ("127.0.0.1:8080", "127.0.0.1:0"),
    ("0.0.0.0:8080", "127.0.0.1:0"),
    ("0.0.0.0:8443", "127.0.0.1:0"),
];

/// The pages whose recipes are tested against an API that demands a credential.
const RECIPES: [&str; 2] = ["guides/authentication.md", "guides/aws.md"];

/// Adds the Markdown files of a folder, and of those below it.
fn add_pages(folder: &Path, pages: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            add_pages(&path, pages);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
}

/// The files of the book, sorted.
pub fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    add_pages(&project("docs"), &mut pages);
    pages.sort();
    pages
}

#[test]
fn every_command_of_the_documentation_runs() {
    let mut count = 0;
    for path in [vec![project("README.md")], pages()].concat() {
        if RECIPES.iter().any(|recipes| path.ends_with(recipes)) {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let page = ADDRESSES.iter().fold(text, |page, (address, instead)| {
            page.replace(address, instead)
        });
        let scripts = blocks(&page, "sh");
        if scripts.is_empty() {
            continue;
        }
        let shell = Shell::new();
        shell.write_files_of(&page);
        certificates::write_self_signed(shell.path());
        count += scripts.len();
        let output = shell.run(
            &scripts.join("\n"),
            &[
                ("OPENAPI_MCP_MOCK", "true"),
                ("PETS_KEY", "k"),
                ("PETS_TOKEN", "t"),
            ],
        );
        assert!(
            output.status.success(),
            "{}: {}\n{}",
            path.display(),
            stdout(&output),
            stderr(&output)
        );
    }
    assert!(count > 25, "{count}");
}

#[test]
fn every_page_is_short_and_every_table_can_be_read_as_text() {
    // Of the test suites of others, there are as many rows as there are.
    for path in pages()
        .into_iter()
        .filter(|path| !path.ends_with("scores.md"))
    {
        let text = std::fs::read_to_string(&path).unwrap();
        let is_guide = path.starts_with(project("docs/guides"));
        let most = if is_guide { 120 } else { 249 };
        assert!(
            text.lines().count() <= most,
            "{} has more than {most} lines",
            path.display()
        );
        assert!(
            !text.contains("\\|"),
            "{} has an escaped bar in a table",
            path.display()
        );
    }
}

#[derive(Deserialize)]
struct Recipe {
    #[serde(rename = "recipe")]
    title: String,
    file: String,
    document: Value,
    line: String,
    api: BTreeMap<String, String>,
    #[serde(default)]
    present: Vec<String>,
    token: Option<TokenRequest>,
    /// The secret key of AWS that the request is signed with.
    secret: Option<String>,
}

#[derive(Clone, Deserialize)]
struct TokenRequest {
    line: String,
    headers: BTreeMap<String, String>,
    body: BTreeMap<String, String>,
}

fn has_headers(request: &Received, headers: &BTreeMap<String, String>) -> bool {
    headers
        .iter()
        .all(|(name, value)| request.header(name) == Some(value))
}

/// Answers 200 only to a request with exactly the credential of the recipe.
fn strict_upstream(recipe: &Recipe) -> Upstream {
    let (line, api, present, token, secret) = (
        recipe.line.clone(),
        recipe.api.clone(),
        recipe.present.clone(),
        recipe.token.clone(),
        recipe.secret.clone(),
    );
    Upstream::start(Box::new(move |request| {
        let json = |status, body: &[u8]| reply(status, &["Content-Type: application/json"], body);
        if let Some(token) = &token
            && request.line.starts_with(&format!("{} ", token.line))
        {
            let body: BTreeMap<String, String> = url::form_urlencoded::parse(&request.body)
                .into_owned()
                .collect();
            let accepted = has_headers(request, &token.headers) && body == token.body;
            return if accepted {
                json(
                    200,
                    br#"{"access_token":"issued-access-token","token_type":"Bearer","expires_in":3600}"#,
                )
            } else {
                json(400, br#"{"error":"invalid_client"}"#)
            };
        }
        let credentials = request
            .headers
            .iter()
            .filter(|header| header.starts_with("authorization: "))
            .count();
        let accepted = request.line.starts_with(&format!("{line} "))
            && credentials == 1
            && has_headers(request, &api)
            && secret
                .as_ref()
                .is_none_or(|secret| is_signed(request, secret))
            && present.iter().all(|name| request.header(name).is_some());
        if accepted {
            json(200, br#"{"accepted":true}"#)
        } else {
            json(401, br#"{"accepted":false}"#)
        }
    }))
}

#[test]
fn every_authentication_recipe_gives_the_credential_that_the_api_demands() {
    let read = |page: &str| std::fs::read_to_string(project("docs").join(page)).unwrap();
    let page = RECIPES.map(read).concat();
    let cases = std::fs::read_to_string(project("tests/cases/docs/authentication.yaml")).unwrap();
    let recipes: Vec<Recipe> = serde_yaml::from_str(&cases).unwrap();
    assert_eq!(
        recipes.len(),
        page.matches("\n## ").count(),
        "a recipe has no case"
    );
    for recipe in recipes {
        let upstream = strict_upstream(&recipe);
        let section = page
            .split("\n## ")
            .find_map(|section| section.strip_prefix(&recipe.title))
            .expect("a section");
        let section = [
            "https://cluster.example:6443",
            "https://login.example",
            "https://login.microsoftonline.com",
        ]
        .iter()
        .fold(section.to_owned(), |section, origin| {
            section.replace(origin, &upstream.url)
        });
        let shell = Shell::new();
        let document = recipe
            .document
            .to_string()
            .replace("https://login.example", &upstream.url);
        shell.write(&recipe.file, &document);
        shell.write(&format!("{}.published", recipe.file), &document);
        certificates::write_self_signed(shell.path());
        std::fs::rename(shell.path().join("tls.crt"), shell.path().join("ca.crt")).unwrap();
        shell.write_files_of(&section);
        let output = shell.run(
            &blocks(&section, "sh").join("\n"),
            &[("OPENAPI_MCP_BASE_URL", &upstream.url)],
        );
        let shown = stdout(&output);
        assert!(
            output.status.success() && shown.contains("\"accepted\": true"),
            "{}: {shown}\n{}\n{:?}",
            recipe.title,
            stderr(&output),
            upstream.received()
        );
    }
}
