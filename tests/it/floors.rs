//! The imports of the sources: which room may import which, as the map of ARCHITECTURE.md lists it,
//! that no modules import each other in a circle, and which library stays behind which fence.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use syn::visit::Visit;

use crate::sources::rust_files;
use crate::support::project;

/// Folder or file under `src/`, and the modules of ours that it may import besides itself.
const FLOORS: [(&str, &[&str]); 26] = [
    ("text", &[]),
    ("json", &[]),
    ("fd_limit", &[]),
    ("outbound", &["text"]),
    ("observe", &["outbound", "text"]),
    ("shared_state", &["observe", "outbound", "text"]),
    ("spec", &["json", "outbound", "text"]),
    ("annotate", &["json", "spec", "text"]),
    ("search", &["annotate", "spec", "text"]),
    ("redact", &["json", "observe", "outbound", "spec"]),
    ("caller", &["json", "shared_state", "spec", "text"]),
    ("call_error", &["caller", "observe", "outbound"]),
    (
        "files",
        &[
            "call_error",
            "caller",
            "redact",
            "shared_state",
            "spec",
            "text",
        ],
    ),
    (
        "credentials",
        &[
            "call_error",
            "caller",
            "files",
            "observe",
            "outbound",
            "redact",
            "shared_state",
            "spec",
            "text",
        ],
    ),
    (
        "results",
        &[
            "call_error",
            "caller",
            "credentials",
            "files",
            "json",
            "observe",
            "outbound",
            "redact",
            "spec",
            "text",
        ],
    ),
    (
        "proxy",
        &[
            "call_error",
            "caller",
            "credentials",
            "fd_limit",
            "files",
            "json",
            "observe",
            "outbound",
            "redact",
            "results",
            "shared_state",
            "spec",
            "text",
        ],
    ),
    (
        "api",
        &[
            "annotate",
            "call_error",
            "caller",
            "credentials",
            "json",
            "observe",
            "outbound",
            "proxy",
            "results",
            "search",
            "spec",
            "text",
        ],
    ),
    ("mock", &["spec"]),
    ("check", &["annotate", "api", "credentials", "spec", "text"]),
    (
        "mcp",
        &[
            "annotate",
            "api",
            "caller",
            "json",
            "observe",
            "outbound",
            "proxy",
            "results",
            "search",
            "shared_state",
            "spec",
            "text",
        ],
    ),
    (
        "admission",
        &[
            "call_error",
            "caller",
            "credentials",
            "json",
            "mcp",
            "observe",
            "outbound",
            "shared_state",
            "spec",
        ],
    ),
    (
        "transport",
        &[
            "admission",
            "caller",
            "fd_limit",
            "files",
            "mcp",
            "observe",
            "outbound",
            "shared_state",
            "spec",
            "text",
        ],
    ),
    (
        "config",
        &[
            "annotate",
            "api",
            "caller",
            "credentials",
            "files",
            "mcp",
            "observe",
            "outbound",
            "proxy",
            "redact",
            "results",
            "shared_state",
            "spec",
            "text",
            "transport",
        ],
    ),
    ("error", &["config", "outbound", "spec", "text"]),
    (
        "cli",
        &[
            "annotate",
            "api",
            "caller",
            "check",
            "config",
            "credentials",
            "error",
            "fd_limit",
            "json",
            "mcp",
            "mock",
            "observe",
            "outbound",
            "proxy",
            "results",
            "spec",
            "text",
            "transport",
        ],
    ),
    (
        "lib",
        &[
            "annotate",
            "api",
            "caller",
            "cli",
            "credentials",
            "mcp",
            "outbound",
            "proxy",
            "results",
            "spec",
            "transport",
        ],
    ),
];

/// A library or a part of ours, and the only places that may name it.
const FENCES: [(&str, &[&str]); 17] = [
    // What the gate has not admitted is not called.
    ("crate::api::calling", &["mcp/calls/session.rs"]),
    ("rmcp", &["mcp", "transport"]),
    ("redis", &["shared_state/client.rs"]),
    ("aws_sigv4", &["credentials/signatures/aws/mod.rs"]),
    (
        "aws_credential_types",
        &["credentials/signatures/aws/access_keys.rs"],
    ),
    (
        "crate::credentials::signatures::aws",
        &[
            "credentials/signatures",
            "credentials/authenticator.rs",
            "config/auth",
        ],
    ),
    ("prometheus_client", &["observe/metrics"]),
    ("opentelemetry_proto", &["observe/traces/exporter.rs"]),
    ("prost", &["observe/traces/exporter.rs"]),
    ("openapiv3", &["spec", "mock"]),
    (
        "serde_yaml",
        &[
            "spec/document/yaml.rs",
            "spec/document/file.rs",
            "spec/document/mod.rs",
            "config/file.rs",
        ],
    ),
    ("saphyr_parser", &["spec/document/positions.rs"]),
    (
        "reqwest",
        &[
            "outbound.rs",
            "outbound",
            "proxy/exchange",
            "spec/document/source.rs",
        ],
    ),
    ("axum", &["transport", "admission", "mock"]),
    (
        "clap",
        // A type that is a choice of the operator names its words.
        &["cli", "config", "annotate/client_profile.rs"],
    ),
    ("std::env", &["config"]),
    (
        "jsonschema",
        &[
            "proxy/arguments/validate.rs",
            "proxy/arguments/problem.rs",
            "proxy/arguments/problems.rs",
        ],
    ),
];

type ModulePath = Vec<String>;

/// A module of the crate that has a file of its own.
struct Module {
    /// The path of the file under `src/`.
    file: String,
    /// Every path that the module names outside its tests, from the root of the crate or, of a
    /// library, from its name.
    imports: BTreeSet<ModulePath>,
    /// The names that it exports with `pub use`, and their sources.
    exports: BTreeMap<String, ModulePath>,
}

/// Reads the paths that one module names.
struct PathReader<'m> {
    here: &'m ModulePath,
    found: BTreeSet<ModulePath>,
    exports: BTreeMap<String, ModulePath>,
}

impl PathReader<'_> {
    /// The path from the root of the crate; a path that begins with the name of a library stays as
    /// it is.
    fn absolute(&self, path: &[String]) -> ModulePath {
        let mut parts = path.iter();
        let mut from = match path[0].as_str() {
            "crate" => vec!["crate".to_owned()],
            "self" => [&["crate".to_owned()], self.here.as_slice()].concat(),
            "super" => {
                let up = path.iter().take_while(|part| *part == "super").count();
                parts.nth(up - 1);
                let kept = self.here.len().saturating_sub(up);
                return [
                    &["crate".to_owned()],
                    &self.here[..kept],
                    &parts.cloned().collect::<Vec<_>>(),
                ]
                .concat();
            }
            _ => return path.to_vec(),
        };
        from.extend(parts.skip(1).cloned());
        from
    }

    fn read_use(&mut self, tree: &syn::UseTree, before: &[String], exported: bool) {
        let mut path = before.to_vec();
        match tree {
            syn::UseTree::Path(part) => {
                path.push(part.ident.to_string());
                self.read_use(&part.tree, &path, exported);
            }
            syn::UseTree::Group(group) => group
                .items
                .iter()
                .for_each(|item| self.read_use(item, before, exported)),
            syn::UseTree::Glob(_) => {
                let absolute = self.absolute(&path);
                self.found.insert(absolute);
            }
            syn::UseTree::Name(_) | syn::UseTree::Rename(_) => {
                let (name, shown) = match tree {
                    syn::UseTree::Rename(renamed) => {
                        (renamed.ident.to_string(), renamed.rename.to_string())
                    }
                    syn::UseTree::Name(name) => (name.ident.to_string(), name.ident.to_string()),
                    _ => unreachable!(),
                };
                if name != "self" {
                    path.push(name);
                }
                let absolute = self.absolute(&path);
                if exported {
                    self.exports.insert(shown, absolute.clone());
                }
                self.found.insert(absolute);
            }
        }
    }
}

impl<'ast> Visit<'ast> for PathReader<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Mod(module) => &module.attrs,
            syn::Item::Use(import) => &import.attrs,
            syn::Item::Fn(function) => &function.attrs,
            syn::Item::Impl(block) => &block.attrs,
            _ => &Vec::new(),
        };
        let is_test = |attribute: &syn::Attribute| {
            attribute.path().is_ident("cfg")
                && attribute
                    .parse_args::<syn::Path>()
                    .is_ok_and(|path| path.is_ident("test"))
        };
        if !attributes.iter().any(is_test) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let exported = !matches!(item.vis, syn::Visibility::Inherited);
        self.read_use(&item.tree, &[], exported);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<String> = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string())
            .collect();
        if parts.len() > 1 {
            let absolute = self.absolute(&parts);
            self.found.insert(absolute);
        }
        syn::visit::visit_path(self, path);
    }
}

/// They are read once for all tests of this file.
static MODULES: LazyLock<BTreeMap<ModulePath, Module>> = LazyLock::new(read_modules);

/// All modules of the library by their path from the root of the crate, but for those that hold
/// tests alone.
fn read_modules() -> BTreeMap<ModulePath, Module> {
    let mut modules = BTreeMap::new();
    for path in rust_files("src") {
        let file = path
            .strip_prefix(project("src"))
            .unwrap()
            .display()
            .to_string();
        if ["main.rs", "proxy/request/proptests.rs"].contains(&file.as_str()) {
            continue;
        }
        let here: ModulePath = file
            .trim_end_matches(".rs")
            .split('/')
            .filter(|part| !["mod", "lib"].contains(part))
            .map(str::to_owned)
            .collect();
        let text = std::fs::read_to_string(&path).unwrap();
        let mut reader = PathReader {
            here: &here,
            found: BTreeSet::new(),
            exports: BTreeMap::new(),
        };
        reader.visit_file(&syn::parse_file(&text).unwrap());
        let PathReader {
            found: imports,
            exports,
            ..
        } = reader;
        modules.insert(
            here,
            Module {
                file,
                imports,
                exports,
            },
        );
    }
    modules
}

/// The module that a path of the crate leads to, through `pub use`.
fn home<'m>(modules: &'m BTreeMap<ModulePath, Module>, path: &[String]) -> Option<&'m ModulePath> {
    let rest = path.strip_prefix(&["crate".to_owned()])?;
    let length = (0..=rest.len())
        .rev()
        .find(|length| modules.contains_key(&rest[..*length]))?;
    let (module, held) = modules.get_key_value(&rest[..length])?;
    match rest.get(length).and_then(|name| held.exports.get(name)) {
        Some(target) if target.as_slice() != path => home(modules, target),
        _ => Some(module),
    }
}

fn floor(module: &ModulePath) -> &str {
    module.first().map_or("lib", String::as_str)
}

#[test]
fn no_module_imports_one_of_a_higher_floor() {
    let modules = &*MODULES;
    for (path, module) in modules {
        let Some((own, allowed)) = FLOORS.iter().find(|(name, _)| *name == floor(path)) else {
            panic!("{} stands on no floor", module.file);
        };
        for import in module
            .imports
            .iter()
            .filter_map(|import| import.strip_prefix(&["crate".to_owned()]))
        {
            let Some(name) = import
                .first()
                .filter(|name| modules.contains_key(&vec![(*name).clone()]))
            else {
                continue;
            };
            assert!(
                name == own || allowed.contains(&name.as_str()),
                "{} imports {}",
                module.file,
                import.join("::")
            );
        }
    }
}

/// The rooms in the map of ARCHITECTURE.md from top to bottom, each with what it may import besides
/// `text`.
fn rooms_of_the_map(page: &str) -> Vec<(&str, BTreeSet<&str>)> {
    let (_, map) = page.split_once("## The map").unwrap();
    let rows = map
        .lines()
        .skip_while(|line| !line.starts_with("| room |"))
        .skip(2);
    rows.take_while(|line| line.starts_with('|'))
        .map(|row| {
            let cells: Vec<&str> = row.split('|').collect();
            let [_, room, _, imports, _] = cells.as_slice() else {
                panic!("the map has the row {row}")
            };
            let room = room
                .trim()
                .trim_matches('`')
                .trim_end_matches('/')
                .trim_end_matches(".rs");
            (room, imports.split('`').skip(1).step_by(2).collect())
        })
        .collect()
}

#[test]
fn the_map_lists_what_each_room_may_import() {
    let page = std::fs::read_to_string(project("ARCHITECTURE.md")).unwrap();
    let rooms = rooms_of_the_map(&page);
    let listed: BTreeMap<&str, &BTreeSet<&str>> = rooms
        .iter()
        .map(|(room, imports)| (*room, imports))
        .collect();
    let tested: BTreeMap<&str, BTreeSet<&str>> = FLOORS
        .iter()
        .filter(|(room, _)| *room != "lib")
        .map(|(room, imports)| {
            (
                *room,
                imports
                    .iter()
                    .copied()
                    .filter(|import| *import != "text")
                    .collect(),
            )
        })
        .collect();
    assert_eq!(
        listed,
        tested
            .iter()
            .map(|(room, imports)| (*room, imports))
            .collect()
    );
    for (row, (room, imports)) in rooms.iter().enumerate() {
        let is_below = |import: &&str| rooms[row + 1..].iter().any(|(other, _)| other == import);
        assert!(
            imports.iter().all(is_below),
            "{room} imports a room above it in the map"
        );
    }
}

#[test]
fn no_modules_import_each_other_in_a_circle() {
    let modules = &*MODULES;
    let arrows: BTreeMap<&ModulePath, BTreeSet<&ModulePath>> = modules
        .iter()
        .filter(|(path, _)| !path.is_empty())
        .map(|(path, module)| {
            let targets = module
                .imports
                .iter()
                .filter_map(|import| home(modules, import));
            (
                path,
                targets
                    .filter(|target| *target != path && !target.is_empty())
                    .collect(),
            )
        })
        .collect();
    let reachable = |from: &ModulePath| -> BTreeSet<&ModulePath> {
        let (mut found, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(path) = next.pop() {
            let fresh: Vec<&ModulePath> = arrows[path]
                .iter()
                .copied()
                .filter(|target| found.insert(*target))
                .collect();
            next.extend(fresh);
        }
        found
    };
    let tied: Vec<String> = arrows
        .iter()
        .flat_map(|(path, targets)| targets.iter().map(move |target| (path, target)))
        .filter(|(path, target)| reachable(target).contains(*path))
        .map(|(path, target)| format!("{} -> {}", path.join("::"), target.join("::")))
        .collect();
    assert!(
        tied.is_empty(),
        "these imports are in a circle:\n{}",
        tied.join("\n")
    );
}

#[test]
fn no_rooms_in_a_room_import_each_other_in_a_circle() {
    let modules = &*MODULES;
    let is_room = |path: &[String]| {
        modules
            .keys()
            .any(|module| module.len() > path.len() && module.starts_with(path))
    };
    let mut arrows: BTreeMap<&[String], BTreeMap<&[String], String>> = BTreeMap::new();
    for (path, module) in modules {
        for target in module
            .imports
            .iter()
            .filter_map(|import| home(modules, import))
        {
            let shared = path
                .iter()
                .zip(target)
                .take_while(|(ours, theirs)| ours == theirs)
                .count();
            if shared < path.len().min(target.len())
                && is_room(&path[..=shared])
                && is_room(&target[..=shared])
            {
                let edge = format!("{} -> {}", path.join("::"), target.join("::"));
                arrows
                    .entry(&path[..=shared])
                    .or_default()
                    .entry(&target[..=shared])
                    .or_insert(edge);
            }
        }
    }
    let reaches = |from: &[String], to: &[String]| {
        let (mut found, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(part) = next.pop() {
            let targets = arrows.get(part).into_iter().flat_map(BTreeMap::keys);
            next.extend(targets.filter(|target| found.insert(**target)));
        }
        found.contains(to)
    };
    let tied: Vec<&str> = arrows
        .iter()
        .flat_map(|(part, targets)| {
            targets
                .iter()
                .map(move |(target, edge)| (part, target, edge))
        })
        .filter(|(part, target, _)| reaches(target, part))
        .map(|(_, _, edge)| edge.as_str())
        .collect();
    assert!(
        tied.is_empty(),
        "these imports are in a circle of rooms:\n{}",
        tied.join("\n")
    );
}

#[test]
fn libraries_stay_behind_their_fences() {
    for module in MODULES.values() {
        for (library, places) in FENCES {
            let library: Vec<&str> = library.split("::").collect();
            let named = module.imports.iter().any(|import| {
                import.len() >= library.len() && library.iter().zip(import).all(|(a, b)| a == b)
            });
            let inside = places.iter().any(|place| {
                module.file == *place || module.file.starts_with(&format!("{place}/"))
            });
            assert!(
                inside || !named,
                "{} names {}",
                module.file,
                library.join("::")
            );
        }
    }
}

#[test]
fn files_and_rooms_can_be_held_in_mind() {
    let modules = &*MODULES;
    let mut rooms: BTreeMap<&[String], usize> = BTreeMap::new();
    for (path, module) in modules {
        let text = std::fs::read_to_string(project("src").join(&module.file)).unwrap();
        let code = text
            .split("#[cfg(test)]\nmod tests")
            .next()
            .unwrap_or_default();
        let lines = code
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .count();
        assert!(lines <= 500, "{} has {lines} lines", module.file);
        // A folder in a room is a room of its own.
        if let Some((_, room)) = path.split_last()
            && !module.file.ends_with("/mod.rs")
        {
            *rooms.entry(room).or_default() += 1;
        }
    }
    for (room, files) in rooms {
        assert!(files <= 20, "{} has {files} files", room.join("/"));
    }
}
