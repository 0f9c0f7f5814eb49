//! Every link of the documentation leads to a file that exists.

use std::path::Path;

use crate::support::project;

/// The targets of the links of a page, outside of blocks of code.
fn targets(text: &str) -> Vec<&str> {
    let prose = text.split("\n```").step_by(2);
    let links = prose.flat_map(|part| part.split("](").skip(1));
    links.filter_map(|rest| rest.split(')').next()).collect()
}

#[test]
fn every_link_of_the_documentation_leads_to_a_file() {
    let mut pages = vec![
        project("README.md"),
        project("ARCHITECTURE.md"),
        project("SECURITY.md"),
        project("CONTRIBUTING.md"),
    ];
    pages.extend(super::book::pages());
    let mut count = 0;
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        for target in targets(&text) {
            let file = target.split('#').next().unwrap();
            if file.is_empty() || file.contains("://") || file.starts_with("mailto:") {
                continue;
            }
            let path = page.parent().unwrap_or(Path::new("")).join(file);
            assert!(path.exists(), "{} links to {target}", page.display());
            count += 1;
        }
    }
    assert!(count > 30, "{count}");
}

/// The text of all sources, so that a message can be found whichever file holds it.
fn sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else {
            text.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn every_message_of_the_troubleshooting_page_is_one_of_the_program() {
    let mut text = String::new();
    sources(&project("src"), &mut text);
    let page = std::fs::read_to_string(project("docs/reference/troubleshooting.md")).unwrap();
    let messages = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let mut count = 0;
    for message in messages {
        assert!(text.contains(message), "no source says: {message}");
        count += 1;
    }
    assert!(count > 15, "{count}");
}
