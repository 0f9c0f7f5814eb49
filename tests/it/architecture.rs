//! The files, items and tests that ARCHITECTURE.md and the recipes in the documentation of modules
//! name exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::sources::rust_files;
use crate::support::project;

/// They are read once for all tests of this file.
static DEFINED_NAMES: LazyLock<BTreeSet<String>> = LazyLock::new(defined_names);

/// The names of all functions, types and variants that the sources and the tests define.
fn defined_names() -> BTreeSet<String> {
    struct Names(BTreeSet<String>);
    impl<'ast> syn::visit::Visit<'ast> for Names {
        fn visit_ident(&mut self, ident: &'ast syn::Ident) {
            self.0.insert(ident.to_string());
        }
        fn visit_macro(&mut self, tokens: &'ast syn::Macro) {
            // Property tests are functions inside of a macro.
            let text = tokens.tokens.to_string();
            let words: Vec<&str> = text
                .split(|character: char| !character.is_alphanumeric() && character != '_')
                .collect();
            let functions = words
                .iter()
                .zip(words.iter().skip(1))
                .filter(|(word, _)| **word == "fn");
            self.0.extend(functions.map(|(_, name)| (*name).to_owned()));
        }
    }
    let mut names = Names(BTreeSet::new());
    for path in ["src", "tests/it"].into_iter().flat_map(rust_files) {
        let parsed = syn::parse_file(&std::fs::read_to_string(path).unwrap()).unwrap();
        syn::visit::Visit::visit_file(&mut names, &parsed);
    }
    names.0
}

/// The file of the project that has this name in the documentation: a path from `src`, a path from
/// the root, or the end of a path.
fn named_file(name: &str) -> Option<PathBuf> {
    let paths = [project("src").join(name), project(name)];
    let known = paths.into_iter().find(|path| path.exists());
    known.or_else(|| {
        rust_files("src")
            .into_iter()
            .find(|path| path.ends_with(name))
    })
}

fn is_file_name(name: &str) -> bool {
    let is_path = name.contains('/') && !name.contains(' ') && !name.starts_with(['/', '-']);
    is_path
        || Path::new(name)
            .extension()
            .is_some_and(|extension| extension == "rs")
}

/// Returns true if a name in the documentation is one of ours: a path of modules, a type, a
/// constant or a function of several words.
fn is_name_of_ours(name: &str) -> bool {
    let is_word = |part: &str| {
        !part.is_empty()
            && part
                .chars()
                .all(|character| character.is_ascii_alphanumeric() || character == '_')
    };
    let is_path = name.contains("::") && name.split("::").all(is_word);
    let begins_like_a_type = name.starts_with(|character: char| character.is_ascii_uppercase());
    let is_snake_case = name.contains('_')
        && name
            .chars()
            .all(|character| character.is_ascii_lowercase() || character == '_');
    is_path || is_word(name) && (begins_like_a_type || is_snake_case)
}

fn is_defined(name: &str) -> bool {
    let is_module = |path: &[&str]| {
        let path = path.join("/");
        project("src").join(format!("{path}.rs")).exists() || project("src").join(path).is_dir()
    };
    let parts: Vec<&str> = name.split("::").collect();
    let (item, modules) = parts.split_last().unwrap();
    let in_library =
        ["axum", "rmcp", "serde_json"].contains(&parts[0]) || name == "arbitrary_precision";
    let is_known = |name: &str| DEFINED_NAMES.contains(name);
    let is_item = is_known(item)
        && (modules.is_empty() || is_module(modules) || is_known(modules[modules.len() - 1]));
    in_library || is_module(&parts) || is_item
}

/// The names in a text of the documentation that do not exist, and the items that are not in the
/// file that is named with them.
fn missing_names(text: &str) -> Vec<String> {
    let (mut missing, mut prose) = (Vec::new(), String::new());
    for (index, part) in text.split("```").enumerate() {
        if index % 2 == 0 {
            prose.push_str(part);
        } else {
            let names = part.split_whitespace().filter(|word| is_name_of_ours(word));
            let names = names.filter(|word| word.contains(['_', ':']) && !is_defined(word));
            missing.extend(names.map(str::to_owned));
        }
    }
    let pieces: Vec<&str> = prose.split('`').collect();
    for (index, name) in pieces.iter().enumerate().skip(1).step_by(2) {
        let exists = if is_file_name(name) {
            *name == "tools/list" || named_file(name).is_some()
        } else {
            !is_name_of_ours(name) || is_defined(name)
        };
        if !exists {
            missing.push((*name).to_owned());
        }
        // "`item` and `other` in `file.rs`": the file defines or names the items.
        let joins = |at: usize, words: &[&str]| {
            words.contains(
                &pieces[at]
                    .split_whitespace()
                    .collect::<Vec<_>>()
                    .join(" ")
                    .as_str(),
            )
        };
        let file = joins(index - 1, &["in"])
            .then(|| named_file(name))
            .flatten();
        let Some(file) = file.filter(|file| file.is_file()) else {
            continue;
        };
        let text = std::fs::read_to_string(file).unwrap();
        let mut at = index - 2;
        loop {
            if !text.contains(pieces[at]) {
                missing.push(format!("{} in {name}", pieces[at]));
            }
            if at < 2
                || is_file_name(pieces[at - 2])
                || !joins(at - 1, &[",", "and", ", and", "or"])
            {
                break;
            }
            at -= 2;
        }
    }
    missing
}

#[test]
fn what_architecture_md_names_exists() {
    let page = std::fs::read_to_string(project("ARCHITECTURE.md")).unwrap();
    let missing = missing_names(&page);
    assert!(
        missing.is_empty(),
        "ARCHITECTURE.md names what does not exist: {missing:?}"
    );
}

/// Recipe for one change: a section of the documentation of a module whose heading begins with
/// `Adding` or `Changing`.
struct Recipe {
    /// The file in which it is, from `src`.
    file: String,
    /// The heading without its first word.
    subject: String,
    text: String,
}

fn recipes() -> Vec<Recipe> {
    let mut found: Vec<Recipe> = Vec::new();
    for path in rust_files("src") {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut is_in_recipe = false;
        for line in text
            .lines()
            .map_while(|line| line.strip_prefix("//!"))
            .map(str::trim_start)
        {
            if let Some(heading) = line.strip_prefix("# ") {
                let subject = heading
                    .strip_prefix("Adding ")
                    .or_else(|| heading.strip_prefix("Changing "));
                is_in_recipe = subject.is_some();
                found.extend(subject.map(|subject| {
                    Recipe {
                        file: path
                            .strip_prefix(project("src"))
                            .unwrap()
                            .display()
                            .to_string(),
                        subject: subject.to_owned(),
                        text: String::new(),
                    }
                }));
            } else if let Some(recipe) = found.last_mut().filter(|_| is_in_recipe) {
                recipe.text.push_str(line);
                recipe.text.push('\n');
            }
        }
    }
    found
}

#[test]
fn what_recipes_name_exists() {
    const MAX_FILES: usize = 5;
    let recipes = recipes();
    for Recipe {
        file,
        subject,
        text,
    } in &recipes
    {
        let missing = missing_names(text);
        assert!(
            missing.is_empty(),
            "{file} names what does not exist: {missing:?}"
        );
        let names = text
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|name| is_file_name(name));
        let files: BTreeSet<PathBuf> = names
            .filter_map(named_file)
            .filter(|file| file.is_file())
            .collect();
        assert!(
            files.len() <= MAX_FILES,
            "{file} names {} files for {subject}",
            files.len()
        );
    }
    let page = std::fs::read_to_string(project("ARCHITECTURE.md")).unwrap();
    let (_, table) = page.split_once("## What to add, and where").unwrap();
    let rows = table.lines().filter_map(|line| {
        line.strip_prefix("| ")?
            .strip_suffix("` |")?
            .rsplit_once(" | `")
    });
    let listed: BTreeSet<(&str, &str)> = rows.collect();
    let written: BTreeSet<(&str, &str)> = recipes
        .iter()
        .map(|recipe| (recipe.subject.as_str(), recipe.file.as_str()))
        .collect();
    assert_eq!(
        listed, written,
        "the table of ARCHITECTURE.md and the recipes differ"
    );
}
