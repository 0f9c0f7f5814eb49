//! The promises of SECURITY.md, each of which carries a number (`**P1**`), and the tests that prove
//! them, whose names begin with the numbers (`p1_…`, `p14_p15_…`).

use std::collections::BTreeSet;
use std::path::Path;

use crate::support::project;

/// The number that a text begins with after this mark, and what follows it.
fn number_after<'a>(text: &'a str, mark: &str) -> Option<(u32, &'a str)> {
    let rest = text.strip_prefix(mark)?;
    let end = rest
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(rest.len());
    Some((rest.get(..end)?.parse().ok()?, rest.get(end..)?))
}

/// Returns the numbers of the promises, in their order.
fn promised() -> Vec<u32> {
    let text = std::fs::read_to_string(project("SECURITY.md")).unwrap();
    let (_, promises) = text
        .split_once("\n## What this version promises\n")
        .expect("the section");
    let section = promises.split("\n## ").next().unwrap();
    let bullets = section.lines().filter_map(|line| line.strip_prefix("- "));
    bullets
        .map(|bullet| match number_after(bullet, "**P") {
            Some((number, rest)) if rest.starts_with("** ") => number,
            _ => panic!("a promise without a number: {bullet}"),
        })
        .collect()
}

/// The numbers at the beginning of the name of a test.
fn numbers(name: &str) -> Vec<u32> {
    let mut numbers = Vec::new();
    let mut rest = name;
    while let Some((number, after)) =
        number_after(rest, "p").filter(|(_, after)| after.starts_with('_'))
    {
        numbers.push(number);
        rest = after.trim_start_matches('_');
    }
    numbers
}

/// The numbers that tests carry, each with the name of the test.
fn proven(folder: &Path, found: &mut Vec<(u32, String)>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            proven(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            for code in text.split("#[test]\n").skip(1) {
                let (_, name) = code.split_once("fn ").expect("a function follows");
                let name = name.split('(').next().unwrap();
                found.extend(
                    numbers(name)
                        .into_iter()
                        .map(|number| (number, name.to_owned())),
                );
            }
        }
    }
}

#[test]
fn every_promise_has_a_test_and_every_numbered_test_a_promise() {
    let promised = promised();
    let distinct: BTreeSet<u32> = promised.iter().copied().collect();
    assert_eq!(
        distinct.len(),
        promised.len(),
        "a number stands twice in SECURITY.md: {promised:?}"
    );
    let mut proven_by = Vec::new();
    proven(&project("tests/it"), &mut proven_by);
    proven(&project("src"), &mut proven_by);
    for (number, name) in &proven_by {
        assert!(
            distinct.contains(number),
            "`{name}` proves P{number}, which SECURITY.md does not promise"
        );
    }
    let proven: BTreeSet<u32> = proven_by.iter().map(|(number, _)| *number).collect();
    let open: Vec<_> = distinct.difference(&proven).collect();
    assert!(
        open.is_empty(),
        "SECURITY.md promises what no test proves: {open:?}"
    );
}

#[test]
fn the_numbers_of_a_test_stand_at_the_beginning_of_its_name() {
    assert_eq!(numbers("p14_p15_calls_leave_once"), [14, 15]);
    for other in ["a_call_leaves_once_p14", "p_is_a_letter", "p14"] {
        assert!(numbers(other).is_empty(), "{other}");
    }
}
