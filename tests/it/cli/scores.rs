//! Figures of test suites in the documentation are those of the last run, which
//! `tests/scores/expected.json` keeps.

use std::path::Path;

use serde_json::Value;

use crate::support::project;

/// A page with its lines joined, because a sentence may be broken anywhere.
fn page(name: &str) -> String {
    let text = std::fs::read_to_string(project(name)).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn expected() -> Value {
    serde_json::from_slice(&std::fs::read(project("tests/scores/expected.json")).unwrap()).unwrap()
}

/// A number as the pages write it: `1,234`.
fn grouped(number: &Value) -> String {
    let number = number.as_u64().unwrap();
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", number / 1000, number % 1000),
    }
}

/// The sentences of the documentation that give figures of suites.
fn sentences(expected: &Value) -> Vec<(&'static str, String)> {
    let passed = |suite: &str| {
        let figures = &expected[suite];
        format!(
            "{} of {}",
            grouped(&figures["passed"]),
            grouped(&figures["of"])
        )
    };
    let search = &expected["search"];
    let tokens = |figure: &str| grouped(&search["fewer"][figure]);
    vec![
        (
            "README.md",
            format!(
                "[Test suites of other projects](docs/scores.md) judge it: {} scenarios of TypeSpec's http-specs pass, and requests \
                 reach {} coverage keys of AutoRest's test server.",
                passed("typespec-3.1.0"),
                passed("autorest"),
            ),
        ),
        (
            "docs/guides/large-apis.md",
            format!(
                "On GitHub's API, the list of these five tools takes {} tokens. A whole task takes {} on average and {} at most, over [{} \
                 tasks](../scores.md#search-questions-of-people), at four bytes for a token.",
                tokens("list"),
                tokens("mean"),
                tokens("most"),
                search["tasks"],
            ),
        ),
    ]
}

#[test]
fn figures_of_suites_in_the_documentation_are_those_of_the_last_run() {
    for (name, sentence) in sentences(&expected()) {
        assert!(
            page(name).contains(&sentence),
            "{name} does not say: {sentence}"
        );
    }
}

#[test]
fn no_other_sentence_of_the_documentation_gives_figures_of_a_suite() {
    let suites = [
        "RFC 6570",
        "JSON Schema",
        "swagger-js",
        "AutoRest",
        "TypeSpec",
        "Prism",
        "conformance",
        "RestBench",
        "recall@",
    ];
    let known = sentences(&expected());
    let folders = [
        "docs",
        "docs/get-started",
        "docs/guides",
        "docs/concepts",
        "docs/reference",
    ]
    .into_iter();
    let folders =
        folders.filter_map(|folder| Some((folder, std::fs::read_dir(project(folder)).ok()?)));
    let files = folders.flat_map(|(folder, files)| {
        files.map(move |file| format!("{folder}/{}", file.unwrap().file_name().display()))
    });
    let mut names: Vec<String> = files
        .filter(|name| {
            Path::new(name)
                .extension()
                .is_some_and(|extension| extension == "md")
                && name != "docs/scores.md"
        })
        .collect();
    assert!(names.len() > 30, "{names:?}");
    names.extend(
        [
            "README.md",
            "CHANGELOG.md",
            "ARCHITECTURE.md",
            "SECURITY.md",
            "CONTRIBUTING.md",
        ]
        .map(String::from),
    );
    for name in names {
        for sentence in page(&name).split_inclusive(". ") {
            let figures = sentence
                .split(" of ")
                .zip(sentence.split(" of ").skip(1))
                .any(|(before, after)| {
                    before.ends_with(|last: char| last.is_ascii_digit())
                        && after.starts_with(|first: char| first.is_ascii_digit())
                });
            if (figures || sentence.contains(" %"))
                && suites.iter().any(|suite| sentence.contains(suite))
            {
                let listed = known
                    .iter()
                    .any(|(page, text)| *page == name && text.contains(sentence.trim()));
                assert!(
                    listed,
                    "{name} gives figures that no test compares with the last run: {sentence}"
                );
            }
        }
    }
}

#[test]
fn the_rates_of_wrong_hints_are_those_of_the_last_run() {
    let expected = expected();
    let beside = &expected["effects-careful"]["beside"];
    let columns = [
        &expected["effects-careful"],
        &expected["effects-strict"],
        &expected["effects-infer"],
        &beside["the method alone"],
        &beside["MCP's defaults"],
    ];
    let rows = [
        ("de", "published as not destructive, but it destroys"),
        ("ro", "published as read-only, but it acts"),
        ("de-", "published as destructive, but it only adds"),
        ("rd-", "published as destructive, but it reads"),
        ("ro-", "reads, but is not published as read-only"),
        ("esc-nd", "destroys, and passes `--no-destructive`"),
        ("esc-ro", "acts, and passes `--read-only`"),
        (
            "cut-nd",
            "does not destroy, and is left out by `--no-destructive`",
        ),
        ("cut-ro", "reads, and is left out by `--read-only`"),
    ];
    let page = std::fs::read_to_string(project("docs/concepts/hints.md")).unwrap();
    for (kind, title) in rows {
        let cells = columns.map(|figures| {
            let (wrong, of) = (
                figures["fewer"][kind].as_f64().unwrap(),
                figures["of each"][kind].as_f64().unwrap(),
            );
            match wrong / of {
                0.0 => "0 %".to_string(),
                1.0 => "100 %".to_string(),
                rate => format!("{:.1} %", 100.0 * rate),
            }
        });
        let row = format!("| {title} | {} |", cells.join(" | "));
        assert!(
            page.lines().any(|line| line == row),
            "docs/concepts/hints.md does not have the row: {row}"
        );
    }
}
