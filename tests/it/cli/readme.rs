//! The console examples of the documentation are run, and print what they show.

use serde_json::Value;

use crate::support::{binary, command, petstore, project, run, stderr, stdout};

/// The lines of a `console` block: a command after `$ `, and what it prints; `…` matches any lines.
fn examples(text: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for block in text.split("```console\n").skip(1) {
        let block = block.split("\n```").next().unwrap();
        let mut lines = block.lines();
        let command = lines
            .next()
            .unwrap()
            .strip_prefix("$ openapi-mcp ")
            .expect("a command of ours");
        found.push((command.to_owned(), lines.map(str::to_owned).collect()));
    }
    found
}

/// Splits a command line as a shell does, as far as the examples go: blanks and single quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

#[test]
fn every_example_prints_what_it_shows() {
    let mut count = 0;
    for path in [
        vec![project("examples/petstore/README.md")],
        super::book::pages(),
    ]
    .concat()
    {
        let file = path.display();
        for (line, expected) in examples(&std::fs::read_to_string(&path).unwrap()) {
            let words = words(&line);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let output = command(&words).current_dir(project("")).output().unwrap();
            let text = stdout(&output);
            let mut printed = text.lines();
            for want in expected {
                if want == "…" {
                    printed.by_ref().for_each(drop);
                } else {
                    assert_eq!(
                        printed.next(),
                        Some(want.as_str()),
                        "{file}: {line}\n{text}{}",
                        stderr(&output)
                    );
                }
            }
            assert_eq!(
                printed.next(),
                None,
                "{file}: {line} prints more than it shows"
            );
            count += 1;
        }
    }
    assert!(count >= 5);
}

#[test]
fn the_entry_of_the_readme_for_claude_desktop_is_what_install_prints() {
    let readme = std::fs::read_to_string(project("README.md")).unwrap();
    let shown = super::shell::blocks(&readme, "json")[0]
        .replace(
            "/home/you/.cargo/bin/openapi-mcp",
            &binary().display().to_string(),
        )
        .replace(
            "/home/you/openapi-mcp",
            project("").to_str().unwrap().trim_end_matches('/'),
        );
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let output = run(&[
        "install",
        "--client",
        "claude-desktop",
        "--spec",
        &petstore(),
        "--mock",
        "--print",
    ]);
    let mut printed: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let arguments = printed["mcpServers"]["petstore"]["args"].as_array_mut();
    arguments
        .unwrap()
        .retain(|word| word != "--client" && word != "claude-desktop");
    assert_eq!(shown, printed);
    let words = shown["mcpServers"]["petstore"]["args"].as_array().unwrap();
    let words: Vec<&str> = words.iter().map(|word| word.as_str().unwrap()).collect();
    let mut server = command(&words);
    let messages = std::fs::File::open(project("examples/petstore/session.jsonl")).unwrap();
    let answers = stdout(&server.stdin(messages).output().unwrap());
    assert!(answers.contains(r#""name":"Biscuit""#), "{answers}");
}
