//! ARCHITECTURE.md names files, items and tests: all of them exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::sources::rust_files;
use crate::support::project;

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
            let functions = words.iter().zip(words.iter().skip(1)).filter(|(word, _)| **word == "fn");
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

#[test]
fn what_architecture_md_names_exists() {
    let page = std::fs::read_to_string(project("ARCHITECTURE.md")).unwrap();
    // Code blocks draw the pipe; they name nothing.
    let prose: String = page.split("```").step_by(2).collect();
    let known = defined_names();
    let sources = rust_files("src");
    let mut missing = Vec::new();
    for name in prose.split('`').skip(1).step_by(2) {
        let is_path = name.contains('/') && !name.contains(' ') && !name.starts_with(['/', '-']);
        if is_path || Path::new(name).extension().is_some_and(|extension| extension == "rs") {
            let is_file = |path: &PathBuf| path.ends_with(name);
            let exists = project("src").join(name).exists() || project(name).exists() || sources.iter().any(is_file);
            if !exists && name != "tools/list" {
                missing.push(name);
            }
            continue;
        }
        let is_name = |part: &str| !part.is_empty() && part.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
        let parts: Vec<&str> = name.split("::").collect();
        let is_ours =
            parts.len() > 1 || name.contains('_') && name.chars().all(|character| character.is_ascii_lowercase() || character == '_');
        if !is_ours || !parts.iter().all(|part| is_name(part)) {
            continue;
        }
        let (item, modules) = parts.split_last().unwrap();
        let is_module = |path: &[&str]| {
            let path = path.join("/");
            project("src").join(format!("{path}.rs")).exists() || project("src").join(path).is_dir()
        };
        let in_library = ["axum", "rmcp", "serde_json"].contains(&parts[0]);
        if !in_library
            && name != "arbitrary_precision"
            && !is_module(&parts)
            && !(known.contains(*item) && (modules.is_empty() || is_module(modules) || known.contains(modules[modules.len() - 1])))
        {
            missing.push(name);
        }
    }
    assert!(missing.is_empty(), "ARCHITECTURE.md names what does not exist: {missing:?}");
    // "`item` in `file.rs`": the file defines or names the item.
    let pieces: Vec<&str> = prose.split('`').collect();
    for window in pieces.windows(3).skip(1).step_by(2) {
        let [item, between, file] = window else { continue };
        let path = project("src").join(file);
        if between.split_whitespace().collect::<Vec<_>>() == ["in"] && path.is_file() {
            let text = std::fs::read_to_string(path).unwrap();
            assert!(text.contains(item), "ARCHITECTURE.md says that `{item}` is in {file}");
        }
    }
}

#[test]
fn a_type_name_stands_for_one_type() {
    /// All types that a file defines outside of its tests.
    struct Types(Vec<String>);
    impl<'ast> syn::visit::Visit<'ast> for Types {
        fn visit_item(&mut self, item: &'ast syn::Item) {
            match item {
                syn::Item::Struct(item) => self.0.push(item.ident.to_string()),
                syn::Item::Enum(item) => self.0.push(item.ident.to_string()),
                syn::Item::Trait(item) => self.0.push(item.ident.to_string()),
                syn::Item::Type(item) => self.0.push(item.ident.to_string()),
                syn::Item::Mod(module) if module.ident == "tests" => return,
                _ => {}
            }
            syn::visit::visit_item(self, item);
        }
    }
    let mut places: std::collections::BTreeMap<String, Vec<String>> = std::collections::BTreeMap::new();
    for path in rust_files("src") {
        let shown = path.strip_prefix(project("src")).unwrap().display().to_string();
        let mut types = Types(Vec::new());
        syn::visit::Visit::visit_file(&mut types, &syn::parse_file(&std::fs::read_to_string(&path).unwrap()).unwrap());
        for name in types.0 {
            places.entry(name).or_default().push(shown.clone());
        }
    }
    places.retain(|_, files| files.len() > 1);
    assert!(places.is_empty(), "these names stand for several types: {places:?}");
}
