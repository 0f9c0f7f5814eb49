//! The console examples of the documentation are run, and print what they show.

use crate::support::{command, project, stderr, stdout};

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
