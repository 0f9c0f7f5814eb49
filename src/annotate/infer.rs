//! What the words of an operation's name suggest: advice for a person, who decides. A method is evidence, a name is a guess.

use heck::ToSnakeCase as _;
use http::Method;

use crate::spec::Operation;
use crate::spec::template::Part;

/// Words of operations that only read.
const READS: [&str; 14] = [
    "show", "list", "get", "read", "search", "find", "query", "lookup", "count", "export", "download", "filter", "preview", "validate",
];
/// Words of operations that take something away, or stop it.
const HARMS: [&str; 17] = [
    "delete",
    "remove",
    "purge",
    "drop",
    "destroy",
    "reset",
    "revoke",
    "cancel",
    "terminate",
    "logout",
    "restart",
    "stop",
    "disable",
    "kill",
    "wipe",
    "erase",
    "unsubscribe",
];

/// Where a name speaks against the method's hints, a sentence on it.
#[must_use]
pub fn advice(operation: &Operation) -> Option<String> {
    let words = words(operation);
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let label = operation.label();
    if operation.method == Method::GET && has(&HARMS) {
        return Some(format!(
            "`{label}` is marked as read-only because it is a GET, but its name speaks of changing something; leave it out with --tool-exclude if it does"
        ));
    }
    let reads = words.first().is_some_and(|word| READS.contains(&word.as_str())) || (operation.id.is_none() && has(&READS));
    if operation.method == Method::POST && reads && !has(&HARMS) {
        return Some(format!(
            "`{label}` is marked as writing because it is a POST, but its name speaks of reading; --read-only leaves it out"
        ));
    }
    None
}

/// The words of the operationId, else of the last literal segment of the path.
fn words(operation: &Operation) -> Vec<String> {
    let last = || {
        let literal = |parts: &Vec<Part>| match parts.as_slice() {
            [Part::Literal(text)] => Some(text.clone()),
            _ => None,
        };
        operation.template.segments.iter().rev().find_map(literal).unwrap_or_default()
    };
    let name = operation.id.clone().unwrap_or_else(last);
    name.to_snake_case()
        .split('_')
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Document, operations};

    fn advised(method: &str, path: &str, id: &str) -> bool {
        let id = if id.is_empty() {
            String::new()
        } else {
            format!(r#""operationId":"{id}""#)
        };
        let text = format!(r#"{{"openapi":"3.1.0","paths":{{"{path}":{{"{method}":{{{id}}}}}}}}}"#);
        let (operations, _) = operations(&Document::parse(text.into_bytes(), None).unwrap());
        advice(&operations[0]).is_some()
    }

    #[test]
    fn names_that_speak_against_their_method_are_noticed() {
        for (method, path, id, expected) in [
            ("post", "/pets/search", "", true),
            ("post", "/pets", "searchPets", true),
            ("post", "/pets", "createPet", false),
            ("post", "/x", "getAndDelete", false),
            ("get", "/users/{id}/delete", "", true),
            ("get", "/session", "logout", true),
            ("get", "/deleted", "listDeleted", false),
            ("delete", "/a", "deleteA", false),
        ] {
            assert_eq!(advised(method, path, id), expected, "{method} {path} {id}");
        }
    }
}
