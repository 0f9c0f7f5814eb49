//! `tests/cases/mistakes.yaml`: natural mistakes, each of which is reported with advice.

use serde::Deserialize;
use std::collections::BTreeMap;

use crate::support::certificates::Authority;
use crate::support::{Upstream, command, petstore, project, reply, stderr, stdout};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mistake {
    name: String,
    args: Vec<String>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    variables: BTreeMap<String, String>,
    exit: i32,
    words: Vec<String>,
}

#[test]
fn p40_every_mistake_is_told_with_what_to_do_next() {
    let text = std::fs::read_to_string(project("tests/cases/mistakes.yaml")).unwrap();
    let mistakes: Vec<Mistake> = serde_yaml::from_str(&text).unwrap();
    assert!(mistakes.len() >= 25);
    let api = Upstream::start(Box::new(|request| match request.path() {
        "/page.html" => reply(
            200,
            &["Content-Type: text/html"],
            b"<!doctype html><html><body>API</body></html>",
        ),
        path => reply(
            path.trim_start_matches('/').parse().unwrap_or(400),
            &[],
            b"",
        ),
    }));
    let tls = Authority::new().serve();
    for mistake in mistakes {
        let directory = tempfile::tempdir().unwrap();
        for (name, content) in &mistake.files {
            std::fs::write(directory.path().join(name), content).unwrap();
        }
        let places = [
            ("{dir}", directory.path().display().to_string()),
            ("{petstore}", petstore()),
            ("{api}", api.url.clone()),
            ("{http_tls}", tls.replace("https://", "http://")),
            ("{tls}", tls.clone()),
            (
                "{taken}",
                api.url
                    .trim_start_matches("http://")
                    .trim_end_matches('/')
                    .to_owned(),
            ),
        ];
        let placed = |argument: &String| {
            places.iter().fold(argument.clone(), |text, (name, value)| {
                text.replace(name, value)
            })
        };
        let args: Vec<String> = mistake.args.iter().map(placed).collect();
        let mut command = command(&args.iter().map(String::as_str).collect::<Vec<_>>());
        let output = command.envs(&mistake.variables).output().unwrap();
        let said = stderr(&output) + &stdout(&output);
        assert_eq!(
            output.status.code(),
            Some(mistake.exit),
            "{}: {said}",
            mistake.name
        );
        for word in mistake.words.iter().map(placed) {
            assert!(
                said.contains(word.as_str()),
                "{}: `{word}` is not in: {said}",
                mistake.name
            );
        }
        assert!(!said.contains("panicked"), "{}: {said}", mistake.name);
    }
}
