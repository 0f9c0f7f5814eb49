//! The import floors of ARCHITECTURE.md, read off the sources: who may know whom, and which library stays where.

use std::path::{Path, PathBuf};

use crate::support::project;

/// Folder or file under `src/`, and the modules of ours that it may name.
const FLOORS: [(&str, &[&str]); 15] = [
    ("text.rs", &[]),
    ("json.rs", &[]),
    ("descriptors.rs", &[]),
    ("outbound.rs", &[]),
    ("spec", &["spec", "json", "text"]),
    ("annotate", &["annotate", "spec", "json", "text"]),
    ("proxy", &["proxy", "spec", "outbound", "descriptors", "json", "text"]),
    ("api", &["api", "annotate", "proxy", "spec", "outbound", "json", "text"]),
    ("mock", &["mock", "spec", "json", "text"]),
    ("check", &["check", "annotate", "api", "spec", "text"]),
    (
        "server",
        &["server", "api", "proxy", "spec", "outbound", "descriptors", "json", "text"],
    ),
    ("config", &["config", "annotate", "proxy", "server", "spec", "outbound", "text"]),
    ("error.rs", &["config", "outbound", "spec", "text"]),
    (
        "cli",
        &[
            "cli",
            "annotate",
            "api",
            "check",
            "config",
            "descriptors",
            "error",
            "mock",
            "outbound",
            "server",
            "spec",
            "text",
        ],
    ),
    ("lib.rs", &["annotate", "api", "cli", "outbound", "proxy", "server", "spec"]),
];

/// A library, and the only places that may name it.
const FENCES: [(&str, &[&str]); 8] = [
    ("openapiv3::", &["spec"]),
    (
        "serde_yaml::",
        &[
            "spec/document/yaml.rs",
            "spec/document/file.rs",
            "spec/document/mod.rs",
            "config/file.rs",
        ],
    ),
    ("saphyr_parser::", &["spec/document/positions.rs"]),
    (
        "reqwest::",
        &[
            "outbound.rs",
            "spec/document/source.rs",
            "spec/document/revision.rs",
            "spec/document/external.rs",
        ],
    ),
    ("axum::", &["server", "mock"]),
    ("clap::", &["cli", "config"]),
    ("std::env::", &["config"]),
    ("jsonschema::", &["proxy/arguments/validate.rs"]),
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() {
            sources(&entry.path(), found);
        } else if entry.path().extension().is_some_and(|extension| extension == "rs") {
            found.push(entry.path());
        }
    }
}

/// Path under `src/` and the text before its unit tests, comments left out.
fn texts() -> Vec<(String, String)> {
    let mut found = Vec::new();
    sources(&project("src"), &mut found);
    let text = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        let code = text
            .split("#[cfg(test)]\nmod tests")
            .next()
            .unwrap_or_default()
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        code.collect::<Vec<_>>().join("\n")
    };
    found
        .iter()
        .map(|path| (path.strip_prefix(project("src")).unwrap().display().to_string(), text(path)))
        .collect()
}

#[test]
fn no_module_names_one_of_a_higher_floor() {
    for (path, text) in texts() {
        let Some((_, allowed)) = FLOORS
            .iter()
            .find(|(floor, _)| path == *floor || path.starts_with(&format!("{floor}/")))
        else {
            assert!(path == "main.rs", "{path} stands on no floor");
            continue;
        };
        for rest in text.split("crate::").skip(1) {
            let names: Vec<&str> = match rest.strip_prefix('{') {
                Some(list) => list
                    .split('}')
                    .next()
                    .unwrap_or_default()
                    .split(',')
                    .map(|item| item.trim().split("::").next().unwrap_or_default())
                    .take_while(|name| !name.is_empty())
                    .collect(),
                None => vec![
                    rest.split(|character: char| !character.is_alphanumeric() && character != '_')
                        .next()
                        .unwrap_or_default(),
                ],
            };
            for name in names
                .into_iter()
                .filter(|name| name.chars().all(|character| character.is_ascii_lowercase() || character == '_'))
            {
                assert!(allowed.contains(&name), "{path} names crate::{name}");
            }
        }
    }
}

#[test]
fn libraries_stay_behind_their_fences() {
    for (path, text) in texts() {
        for (library, places) in FENCES {
            let inside = places.iter().any(|place| path == *place || path.starts_with(&format!("{place}/")));
            assert!(inside || !text.contains(library), "{path} names {library}");
        }
    }
}

#[test]
fn files_can_be_held_in_mind() {
    for (path, text) in texts() {
        let lines = text.lines().count();
        assert!(lines <= 450, "{path} has {lines} lines");
    }
}
