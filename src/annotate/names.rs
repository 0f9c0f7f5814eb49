//! Tool names: legal for every client, unique, readable, and independent of the order of operations.
//! The names of the meta-tools are reserved in every mode, so that a change of mode renames nothing.
//!
//! # Changing how names are made unique and short
//!
//! - `names` and `shorten_name` in `annotate/names.rs`, for tools.
//! - `shorten_with_hash` in `spec/argument_names.rs`, which it calls, also shortens the names of
//!   arguments.

use foldhash::{HashMap, HashSet};

use super::annotations::Effect;
use super::layers::Candidate;
use super::wording::lexicon::names_removal;
use super::wording::operation_id::function_name;
use crate::spec::{Diagnostic, Operation, argument_names};
use crate::text::{self, counted};

/// The longest name that every client accepts, its own prefix not counted.
pub(crate) const MAX_NAME_BYTES: usize = 64;

/// The operator's settings for names.
#[derive(Debug, Clone)]
pub struct NameOptions {
    /// Put before every name.
    pub prefix: String,
    /// Longest name in bytes, prefix included.
    pub max_bytes: usize,
}

impl Default for NameOptions {
    fn default() -> Self {
        Self {
            prefix: String::new(),
            max_bytes: MAX_NAME_BYTES,
        }
    }
}

/// Returns one name per operation, in their order. It is the requested name, else the operationId
/// without the path and the method that a framework added to it ([`find_functions`]), with illegal
/// characters replaced, else method and path. If two operations would share a name, compared
/// without case, each is named by method and path; if that is not unique, or the name was
/// requested, it gets a hash of both.
pub(crate) fn names(candidates: &[Candidate], options: &NameOptions) -> Vec<String> {
    let wanted = candidates.iter().map(|candidate| {
        let wished = wished(candidate).map(legal).filter(|name| !name.is_empty());
        let wish = wished
            .or_else(|| candidate.function.clone())
            .unwrap_or_else(|| wish(&candidate.operation));
        shorten_name(&wish, &candidate.operation, options)
    });
    let wanted: Vec<String> = wanted.collect();
    let keys: Vec<String> = wanted
        .iter()
        .map(|name| name.to_ascii_lowercase())
        .collect();
    let count = count_names(keys.iter());
    let is_alone = |key: &String| count.get(key.as_str()) == Some(&1);
    let by_path = |(candidate, key): (&Candidate, &String)| {
        let is_named = !is_alone(key) && wished(candidate).is_none();
        let operation = &candidate.operation;
        is_named.then(|| shorten_name(&path_name(operation), operation, options))
    };
    let by_path: Vec<Option<String>> = candidates.iter().zip(&keys).map(by_path).collect();
    let keys_by_path = by_path
        .iter()
        .flatten()
        .map(|name| name.to_ascii_lowercase());
    let keys_by_path: Vec<String> = keys_by_path.collect();
    let count_by_path = count_names(keys_by_path.iter());
    let is_free = |name: &String| {
        let name = name.to_ascii_lowercase();
        count_by_path.get(name.as_str()) == Some(&1) && !count.contains_key(name.as_str())
    };
    let mut names = Vec::with_capacity(wanted.len());
    for (((name, key), by_path), candidate) in wanted.iter().zip(&keys).zip(by_path).zip(candidates)
    {
        let max_bytes = options.max_bytes.min(name.len() + 7);
        names.push(if is_alone(key) {
            name.clone()
        } else if let Some(by_path) = by_path.filter(is_free) {
            by_path
        } else {
            argument_names::shorten_with_hash(name, &candidate.operation.label(), max_bytes)
        });
    }
    // The names of the meta-tools are reserved, which have the prefix of the only API, and none if
    // there are several. A name with a hash may still be the name of another operation.
    let prefixes = [options.prefix.as_str(), ""];
    let reserved = MetaToolKind::ALL.into_iter().flat_map(|kind| {
        prefixes.map(|prefix| format!("{prefix}{}", kind.name()).to_ascii_lowercase())
    });
    let mut taken: HashSet<String> = reserved.collect();
    for (name, candidate) in names.iter_mut().zip(candidates) {
        let mut round = 0;
        while !taken.insert(name.to_ascii_lowercase()) {
            round += 1;
            let whole = format!("{} {round}", candidate.operation.label());
            *name = argument_names::shorten_with_hash(name, &whole, options.max_bytes);
        }
    }
    names
}

/// The name most like one that no tool has. A name that says that something is removed or ended is
/// not suggested for one that does not say so, nor the reverse.
pub(crate) fn nearest_name<'c, I: Iterator<Item = &'c str>>(
    name: &str,
    candidates: impl Fn() -> I,
) -> Option<&'c str> {
    /// Smallest similarity at which a name is suggested.
    const LEAST: f64 = 0.8;
    let near = text::nearest(name, candidates(), LEAST)?;
    let removes = names_removal(name);
    let is_alike = |other: &&str| names_removal(other) == removes;
    if is_alike(&near) {
        return Some(near);
    }
    text::nearest(name, candidates().filter(is_alike), LEAST)
}

/// Returns true if a requested name has any character that a tool name may have.
pub(crate) fn is_sayable(wish: &str) -> bool {
    !legal(wish).is_empty()
}

/// The name before it is shortened: from the operationId, else from method and path.
fn wish(operation: &Operation) -> String {
    let id = operation.id.as_deref().map(legal);
    id.filter(|name| !name.is_empty())
        .unwrap_or_else(|| path_name(operation))
}

/// Finds the names of the functions whose operationIds consist of the function, the path and the
/// method, as `FastAPI` makes them: `count_flows` for `count_flows_flows_count_post`. An operation
/// has none if it would share that name with the operationId or the function of another.
pub(crate) fn find_functions(candidates: &mut [Candidate]) {
    let function = |Candidate { operation, .. }: &Candidate| {
        let id = operation.id.as_deref()?;
        let name = legal(function_name(id, &operation.method, &operation.path)?);
        let mut reserved = MetaToolKind::ALL.iter();
        let is_reserved = reserved.any(|kind| kind.name().eq_ignore_ascii_case(&name));
        Some(name).filter(|name| !name.is_empty() && !is_reserved)
    };
    let functions: Vec<Option<String>> = candidates.iter().map(function).collect();
    if functions.iter().all(Option::is_none) {
        return;
    }
    let wishes = candidates
        .iter()
        .map(|candidate| wish(&candidate.operation));
    let names = functions.iter().flatten().cloned().chain(wishes);
    let names: Vec<String> = names.map(|name| name.to_ascii_lowercase()).collect();
    let count = count_names(names.iter());
    for (candidate, function) in candidates.iter_mut().zip(functions) {
        candidate.function =
            function.filter(|name| count.get(name.to_ascii_lowercase().as_str()) == Some(&1));
    }
}

/// A note on the operations whose names have neither the path nor the method that their
/// operationIds end with.
pub(crate) fn function_names_note(candidates: &[Candidate]) -> Option<Diagnostic> {
    let mut named = candidates.iter().filter(|candidate| {
        let function = candidate.function.as_ref();
        function.is_some_and(|function| candidate.name.ends_with(function.as_str()))
    });
    let Candidate {
        operation, name, ..
    } = named.next()?;
    let message = format!(
        "{} without the path and the method that a framework added to the operationId: `{name}` for `{}`; `overrides` in the configuration file set other names",
        match named.count() + 1 {
            1 => "1 tool is named".to_owned(),
            many => format!("{} are named", counted(many, "tool")),
        },
        operation.id.as_deref().unwrap_or_default(),
    );
    Some(Diagnostic::note("#/paths", message))
}

/// A name made from method and path: `get_pets_petId`.
fn path_name(operation: &Operation) -> String {
    let path = legal(&operation.path);
    let method = operation.method.as_str().to_ascii_lowercase();
    if path.is_empty() {
        method
    } else {
        format!("{method}_{path}")
    }
}

/// Counts the occurrences of each name.
fn count_names<'n>(names: impl Iterator<Item = &'n String>) -> HashMap<&'n str, usize> {
    let mut count = HashMap::default();
    for name in names {
        *count.entry(name.as_str()).or_default() += 1;
    }
    count
}

/// Runs of characters outside `[A-Za-z0-9_-]` become one underscore; none at the ends.
fn legal(text: &str) -> String {
    let is_legal = |character: char| character.is_ascii_alphanumeric() || "_-".contains(character);
    let words = text.split(|character| !is_legal(character));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("_").trim_matches(['_', '-']).to_owned()
}

fn shorten_name(name: &str, operation: &Operation, options: &NameOptions) -> String {
    let name = options.prefix.clone() + name;
    if name.len() <= options.max_bytes {
        name
    } else {
        argument_names::shorten_with_hash(&name, &operation.label(), options.max_bytes)
    }
}

/// The name that the document or the operator asks for.
fn wished(candidate: &Candidate) -> Option<&str> {
    candidate.decision.said.name.as_deref()
}

/// Replaces the names by those that the document or the operator asked for. One without any
/// character that a name may have is reported and ignored.
pub(crate) fn apply_wished_names(
    candidates: &mut [Candidate],
    options: &NameOptions,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let mut is_wished = false;
    for candidate in &*candidates {
        let Some(name) = wished(candidate) else {
            continue;
        };
        is_wished = true;
        if is_sayable(name) {
            continue;
        }
        let message = format!(
            "the name `{name}` has no letter or digit that a tool name may have, and is ignored"
        );
        let diagnostic = Diagnostic::warning(&candidate.operation.pointer, message);
        if !diagnostics.contains(&diagnostic) {
            diagnostics.push(diagnostic);
        }
    }
    if is_wished {
        let names = names(candidates, options);
        for (candidate, name) in candidates.iter_mut().zip(names) {
            candidate.name = name;
        }
    }
}

/// A meta-tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum MetaToolKind {
    /// Finds operations.
    #[strum(serialize = "search_operations")]
    Search,
    /// Describes the arguments of operations.
    #[strum(serialize = "describe_operations")]
    Describe,
    /// Calls an operation that reads.
    CallRead,
    /// Calls an operation that adds.
    CallWrite,
    /// Calls an operation that may change or remove what exists.
    CallDestructive,
    /// Goes on waiting for an operation.
    #[strum(serialize = "wait_operation")]
    Wait,
}

impl MetaToolKind {
    /// All of them, in the order in which they are listed.
    pub(crate) const ALL: [Self; 6] = [
        Self::Search,
        Self::Describe,
        Self::CallRead,
        Self::CallWrite,
        Self::CallDestructive,
        Self::Wait,
    ];

    /// The name, without the prefix of the operator.
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the meta-tool that calls operations of a class.
    pub(crate) fn of_effect(effect: Effect) -> Self {
        match effect {
            Effect::Read => Self::CallRead,
            Effect::Write => Self::CallWrite,
            Effect::Destructive => Self::CallDestructive,
        }
    }
}

/// Returns the meta-tool of a name without prefix.
pub(crate) fn kind_of(name: &str) -> Option<MetaToolKind> {
    name.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::spec::{Document, operations};

    fn names_of(ids: &[(&str, &str)]) -> Vec<String> {
        named_with(ids, &NameOptions::default())
    }

    fn named_with(ids: &[(&str, &str)], options: &NameOptions) -> Vec<String> {
        let paths: serde_json::Map<String, serde_json::Value> = ids
            .iter()
            .map(|(path, id)| {
                (
                    (*path).to_owned(),
                    if id.is_empty() {
                        serde_json::json!({"get": {}})
                    } else {
                        serde_json::json!({"get": {"operationId": id}})
                    },
                )
            })
            .collect();
        let text = serde_json::json!({"openapi": "3.1.0", "paths": paths}).to_string();
        let (operations, _) = operations(&Document::parse(text.into_bytes(), None).unwrap());
        let new =
            |operation| Candidate::new(operation, crate::annotate::layers::Decision::default());
        let mut candidates: Vec<Candidate> = operations.into_iter().map(new).collect();
        find_functions(&mut candidates);
        names(&candidates, options)
    }

    #[test]
    fn names_read_like_their_operation() {
        for (path, id, expected) in [
            ("/a", "listPets", "listPets"),
            ("/a", "repos/list-for-org", "repos_list-for-org"),
            ("/a", "Users.Get (all)", "Users_Get_all"),
            ("/pets/{petId}/photos", "", "get_pets_petId_photos"),
            ("/", "", "get"),
            ("/a", "日本", "get_a"),
        ] {
            assert_eq!(names_of(&[(path, id)]), [expected]);
        }
    }

    #[test]
    fn a_path_and_a_method_that_a_framework_added_are_no_part_of_a_name_that_stays_unique() {
        let names = names_of(&[
            ("/flows/{id}", "read_flow_flows__id__get"),
            ("/flows/", "read_flows_flows__get"),
            ("/", "root__get"),
            (
                "/deployments/{id}/create_flow_run_from_the_latest_version",
                "create_flow_run_from_deployment_deployments__id__create_flow_run_from_the_latest_version_get",
            ),
            ("/a/b", "list_a_b_get"),
            ("/b", "list_b_get"),
            ("/c", "Health_c_get"),
            ("/d", "health"),
            ("/e", "call_read_e_get"),
            ("/f", "_f_get"),
            ("/g", "pets_get"),
            ("/series/schema", "series_schema_get"),
        ]);
        let expected = [
            "read_flow",
            "read_flows",
            "root",
            "create_flow_run_from_deployment",
            "list_a_b_get",
            "list_b_get",
            "Health_c_get",
            "health",
            "call_read_e_get",
            "f_get",
            "pets_get",
            "series_schema_get",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn no_name_with_the_opposite_verb_is_suggested() {
        let nearest = |name, names: &[&'static str]| nearest_name(name, || names.iter().copied());
        assert_eq!(
            nearest("dns_deleteZone", &["dns_createZone", "dns_getZone"]),
            None
        );
        assert_eq!(nearest("dns_createZone", &["dns_deleteZone"]), None);
        assert_eq!(
            nearest("dns_deleteZon", &["dns_createZone", "dns_deleteZone"]),
            Some("dns_deleteZone")
        );
        assert_eq!(
            nearest("get_pets", &["get_pet", "remove_pet"]),
            Some("get_pet")
        );
    }

    #[test]
    fn equal_names_are_told_apart_by_method_and_path_in_any_order() {
        let forward = names_of(&[("/a", "x.y"), ("/b", "x/y"), ("/c", "other")]);
        let backward = names_of(&[("/c", "other"), ("/b", "x/y"), ("/a", "x.y")]);
        assert_eq!(forward, backward.iter().rev().cloned().collect::<Vec<_>>());
        assert_eq!(forward, ["get_a", "get_b", "other"]);
    }

    #[test]
    fn a_name_from_method_and_path_that_is_taken_gets_a_hash() {
        let names = names_of(&[("/a/b", "x"), ("/a_b", "x"), ("/c", "x"), ("/d", "get_c")]);
        assert!(
            names.iter().take(3).all(|name| name.starts_with("x_")),
            "{names:?}"
        );
        assert_eq!(names[3], "get_c");
    }

    #[test]
    fn a_name_with_a_hash_may_be_taken_too() {
        let first = names_of(&[("/a/b", "x"), ("/a_b", "x")])[0].clone();
        let names = names_of(&[("/a/b", "x"), ("/a_b", "x"), ("/c", &first)]);
        assert_eq!(
            names.iter().collect::<std::collections::HashSet<_>>().len(),
            3,
            "{names:?}"
        );
    }

    #[test]
    fn the_names_of_meta_tools_are_reserved() {
        let names = names_of(&[
            ("/a", "call_read"),
            ("/b", "Search_Operations"),
            ("/c", "call_reader"),
        ]);
        assert!(
            names[0].starts_with("call_read_") && names[1].starts_with("Search_Operations_"),
            "{names:?}"
        );
        assert_eq!(names[2], "call_reader");
    }

    #[test]
    fn long_names_are_cut_with_a_stable_hash() {
        let long = "a".repeat(90);
        let names = names_of(&[("/a", &long), ("/b", &long)]);
        assert!(names.iter().all(|name| name.len() <= 64), "{names:?}");
        assert_ne!(names[0], names[1]);
        let options = NameOptions {
            prefix: "shop_".into(),
            max_bytes: 20,
        };
        assert_eq!(named_with(&[("/a", "list")], &options), ["shop_list"]);
        assert!(named_with(&[("/a", &long)], &options)[0].len() <= 20);
    }

    proptest! {
        #[test]
        fn every_name_is_legal_and_unique(ids in proptest::collection::vec(".{0,100}", 1..20)) {
            let paths: Vec<String> = (0..ids.len()).map(|index| format!("/p{index}")).collect();
            let pairs: Vec<(&str, &str)> = paths.iter().map(String::as_str).zip(ids.iter().map(String::as_str)).collect();
            let names = names_of(&pairs);
            let unique: std::collections::HashSet<_> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
            prop_assert_eq!(unique.len(), ids.len());
            for name in names {
                prop_assert!((1..=64).contains(&name.len()));
                prop_assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)), "{}", name);
            }
        }
    }
}
