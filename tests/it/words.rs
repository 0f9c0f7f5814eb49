//! The prose of the project: words that have a plainer one are in no page, help text and message.

use std::path::Path;

use serde::Deserialize;

use crate::cli::book::pages;
use crate::sources::rust_files;
use crate::support::{project, run, stdout};

#[derive(Deserialize)]
struct Words {
    avoid: Vec<Avoided>,
    allowed: Vec<Allowed>,
}

#[derive(Deserialize)]
struct Avoided {
    words: Vec<String>,
    /// What is plainer, for the reader of a failure.
    say: String,
}

/// A place at which such words are right.
#[derive(Deserialize)]
struct Allowed {
    file: String,
    text: String,
    reason: String,
}

/// A text in which words are looked for: where it is from, and what it says.
struct Prose {
    file: String,
    text: String,
}

/// The text in lower case with single spaces, so that a line break within a phrase does not hide it.
fn plain(text: &str) -> String {
    text.to_lowercase()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// The places of a phrase that is not a part of other words.
fn places(text: &str, phrase: &str) -> Vec<usize> {
    let is_word = |character: Option<char>| {
        character.is_some_and(|character| character.is_alphanumeric() || "-_/".contains(character))
    };
    let found = text.match_indices(phrase).filter(|(at, _)| {
        !is_word(
            text.get(..*at)
                .and_then(|before| before.chars().next_back()),
        ) && !is_word(
            text.get(at + phrase.len()..)
                .and_then(|after| after.chars().next()),
        )
    });
    found.map(|(at, _)| at).collect()
}

/// The sentences that begin with `Of X, Y`.
fn of_openings(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.lines() {
        let sentences = line
            .split(". ")
            .map(|sentence| sentence.trim_start_matches(['-', '|', '#', ' ']));
        for sentence in sentences.filter(|sentence| sentence.starts_with("Of ")) {
            found.push(sentence.to_owned());
        }
    }
    found
}

/// The texts in quotes of a Rust file, without its comments and tests.
fn literals(source: &str) -> String {
    let code = source.split("#[cfg(test)]\nmod tests").next().unwrap();
    let (mut rest, mut texts) = (code, String::new());
    while let Some(at) = rest.find(['"', '/', '\'']) {
        let tail = rest.get(at..).unwrap_or_default();
        if tail.starts_with("//") {
            rest = tail.split_once('\n').map_or("", |(_, after)| after);
        } else if tail.starts_with("'\"'") || tail.starts_with("'\\\"'") {
            rest = tail.get(3..).unwrap_or_default();
            rest = rest.strip_prefix('\'').unwrap_or(rest);
        } else if let Some(inner) = tail.strip_prefix('"') {
            let mut end = inner.len();
            let mut escaped = false;
            for (index, character) in inner.char_indices() {
                match character {
                    '"' if !escaped => {
                        end = index;
                        break;
                    }
                    '\\' => escaped = !escaped,
                    _ => escaped = false,
                }
            }
            let text = inner.get(..end).unwrap_or_default();
            if text.contains(' ') {
                texts.push_str(&text.replace("\\n", "\n").replace("\\\n", " "));
                texts.push('\n');
            }
            rest = inner.get(end + 1..).unwrap_or_default();
        } else {
            rest = tail.get(1..).unwrap_or_default();
        }
    }
    texts
}

/// Everything that a user reads: the documentation, the example of a configuration file, the help
/// and the messages.
fn all_prose() -> Vec<Prose> {
    let root = project("");
    let name = |path: &Path| path.strip_prefix(&root).unwrap().display().to_string();
    let mut files = pages();
    files.extend(
        [
            "README.md",
            "SECURITY.md",
            "CONTRIBUTING.md",
            "ARCHITECTURE.md",
            "CHANGELOG.md",
            "config/openapi-mcp.yaml",
        ]
        .map(project),
    );
    let mut all: Vec<Prose> = files
        .iter()
        .map(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            let is_page = path.extension().is_some_and(|extension| extension == "md");
            Prose {
                file: name(path),
                text: if is_page {
                    text.split("\n```").step_by(2).collect()
                } else {
                    text.replace("\n#", "\n")
                },
            }
        })
        .collect();
    all.extend(rust_files("src").iter().map(|path| Prose {
        file: name(path),
        text: literals(&std::fs::read_to_string(path).unwrap()),
    }));
    for command in [
        "serve",
        "tools",
        "check",
        "call",
        "login",
        "logout",
        "install",
        "uninstall",
        "bundle",
        "diff",
        "completions",
        "man",
        "demo",
        "health",
    ] {
        all.push(Prose {
            file: format!("openapi-mcp {command} --help"),
            text: stdout(&run(&[command, "--help"])),
        });
    }
    all
}

#[test]
fn pages_help_and_messages_use_the_plainer_word() {
    let words = std::fs::read_to_string(project("tests/cases/words.yaml")).unwrap();
    let Words { avoid, mut allowed } = serde_yaml::from_str(&words).unwrap();
    assert!(
        allowed.len() <= 10,
        "at most 10 exceptions: {}",
        allowed.len()
    );
    assert!(allowed.iter().all(|allowed| !allowed.reason.is_empty()));
    let mut problems = Vec::new();
    let mut used = vec![false; allowed.len()];
    for allowed in &mut allowed {
        allowed.text = plain(&allowed.text);
    }
    let mut judge = |file: &str, around: &str, say: &str| {
        let found = allowed
            .iter()
            .position(|allowed| allowed.file == file && around.contains(&allowed.text));
        match found {
            Some(index) => used[index] = true,
            None => problems.push(format!("{file}: …{around}… (say: {say})")),
        }
    };
    for Prose { file, text } in all_prose() {
        let whole = plain(&text);
        for Avoided { words, say } in &avoid {
            for phrase in words {
                for at in places(&whole, phrase) {
                    let from = whole.floor_char_boundary(at.saturating_sub(50));
                    let to = whole.ceil_char_boundary((at + phrase.len() + 50).min(whole.len()));
                    judge(&file, whole.get(from..to).unwrap_or_default(), say);
                }
            }
        }
        for opening in of_openings(&text) {
            judge(&file, &plain(&opening), "the subject first");
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    let idle = allowed.iter().zip(used).filter(|(_, used)| !used);
    let idle: Vec<&str> = idle.map(|(allowed, _)| allowed.text.as_str()).collect();
    assert!(idle.is_empty(), "exceptions that are not needed: {idle:?}");
}
