//! Policy `infer`: what the words of an operation's name suggest. A method is evidence, a name is a guess, so that this is
//! off unless asked for, and where it disagrees with another rule the more careful one wins.

use heck::ToSnakeCase as _;
use http::Method;

use super::annotations::{Hint, Hints, Reason};
use crate::spec::Operation;
use crate::spec::template::Part;

/// Words of operations that only read.
const READS: [&str; 15] = [
    "show", "list", "get", "read", "search", "find", "query", "lookup", "count", "export", "download", "filter", "preview", "fetch", "view",
];
/// Words of operations that leave the same state however often they are repeated.
const SETS: [&str; 6] = ["set", "update", "configure", "put", "upsert", "replace"];
/// Words of operations that take something away, or stop it.
const HARMS: [&str; 25] = [
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
    "reboot",
    "shutdown",
    "stop",
    "disable",
    "kill",
    "wipe",
    "erase",
    "clear",
    "unsubscribe",
    "uninstall",
    "deactivate",
    "reject",
    "truncate",
    "abort",
];
/// Words of operations that do something else than read, whatever else their name says: `createExport`, `markAsRead`.
const WRITES: [&str; 75] = [
    "accept",
    "activate",
    "add",
    "allocate",
    "answer",
    "apply",
    "approve",
    "archive",
    "assign",
    "attach",
    "begin",
    "book",
    "build",
    "buy",
    "capture",
    "change",
    "charge",
    "claim",
    "clone",
    "close",
    "complete",
    "confirm",
    "copy",
    "create",
    "deploy",
    "edit",
    "enable",
    "enqueue",
    "execute",
    "finalize",
    "generate",
    "grant",
    "import",
    "increment",
    "insert",
    "install",
    "invite",
    "invoke",
    "issue",
    "join",
    "leave",
    "link",
    "lock",
    "log",
    "login",
    "make",
    "mark",
    "merge",
    "modify",
    "move",
    "new",
    "open",
    "order",
    "pay",
    "post",
    "process",
    "publish",
    "push",
    "register",
    "rename",
    "reply",
    "request",
    "resend",
    "restore",
    "rotate",
    "run",
    "save",
    "schedule",
    "send",
    "sign",
    "start",
    "submit",
    "subscribe",
    "sync",
    "trigger",
];
/// More of the same, which are also in [`SETS`] or speak of bytes that arrive.
const CHANGES: [&str; 10] = [
    "set",
    "update",
    "configure",
    "put",
    "upsert",
    "replace",
    "upload",
    "write",
    "store",
    "patch",
];
/// Words of things that are near, where the operator says that the API is.
const NEAR: [&str; 4] = ["memory", "session", "config", "local"];

/// What the words of the operation's name say, over what is already known. `local` is the operator's word that the API
/// deals with nothing outside.
pub(super) fn correct(hints: &mut Hints, operation: &Operation, local: bool) {
    let name = Name::of(operation);
    // What is known already keeps its better reason.
    let mut say = |hint: Hint, value: bool, word| {
        if hints.get(hint).map(|sourced| sourced.value) != Some(value) {
            hints.set(hint, value, Reason::Word(word));
        }
    };
    if local && let Some(word) = name.any(&NEAR) {
        say(Hint::OpenWorld, false, word);
    }
    if let Some(word) = name.acts(&HARMS) {
        say(Hint::ReadOnly, false, word);
        say(Hint::Destructive, true, word);
        return;
    }
    // What is not certain to leave everything where it is, stays as careful as its method.
    let is_open = matches!(operation.method, Method::POST | Method::PUT | Method::PATCH) && !name.hints_at_harm();
    if !is_open || name.any(&WRITES).is_some() {
        return;
    }
    if operation.method == Method::POST
        && name.any(&CHANGES).is_none()
        && let Some(word) = name.acts(&READS)
    {
        say(Hint::ReadOnly, true, word);
        say(Hint::Destructive, false, word);
        say(Hint::Idempotent, true, word);
    } else if let Some(word) = name.begins(&SETS) {
        // A word cannot take back that the method replaces what was there (MCP: only additive updates are not destructive),
        // nor a precondition's proof that a repeat fails.
        let proven = hints
            .get(Hint::Idempotent)
            .is_some_and(|idempotent| matches!(idempotent.reason, Reason::Evidence(_)));
        if !proven && !hints.effective(Hint::Idempotent) {
            hints.set(Hint::Idempotent, true, Reason::Word(word));
        }
    }
}

/// The words of an operation's name: of each part of its operationId (`repos/list-for-org` has two), and of the last
/// segment of its path, where that is literal: `/stops/{id}` is about a thing, `/lines/{id}/stop` may be an act.
struct Name {
    parts: Vec<Vec<String>>,
    is_safe: bool,
}

impl Name {
    fn of(operation: &Operation) -> Self {
        let literal = |parts: &Vec<Part>| match parts.as_slice() {
            [Part::Literal(text)] => Some(text.clone()),
            _ => None,
        };
        let segment = operation.template.segments.last().and_then(literal);
        let id = operation.id.as_deref().unwrap_or_default();
        let parts = id.split(['/', '.', ':', '#', ' ']).chain(segment.as_deref());
        let words = |part: &str| -> Vec<String> {
            let snake = part.to_snake_case();
            snake.split('_').filter(|word| !word.is_empty()).map(str::to_owned).collect()
        };
        Self {
            parts: parts.map(words).filter(|words: &Vec<String>| !words.is_empty()).collect(),
            is_safe: Hints::of_method(&operation.method).is_read_only(),
        }
    }

    /// A word of the list at the begin or the end of a part, or after an `and`: where names have their verb.
    fn acts(&self, list: &[&'static str]) -> Option<&'static str> {
        let verbs = self.parts.iter().flat_map(|words| {
            let after_and = words.windows(2).filter_map(|pair| {
                matches!(pair.first().map(String::as_str), Some("and" | "or" | "then"))
                    .then(|| pair.last())
                    .flatten()
            });
            // A GET that says `get` has its verb: what comes last is a thing, as in `getByStop`.
            let has_verb = self.is_safe && words.iter().any(|word| known(&READS, word).is_some());
            let last = words.last().filter(|_| !has_verb || words.len() == 1);
            words.first().into_iter().chain(last).chain(after_and)
        });
        verbs.into_iter().find_map(|verb| known(list, verb))
    }

    /// A word of the list at the begin of a part.
    fn begins(&self, list: &[&'static str]) -> Option<&'static str> {
        self.parts
            .iter()
            .filter_map(|words| words.first())
            .find_map(|word| known(list, word))
    }

    /// A word of the list anywhere.
    fn any(&self, list: &[&'static str]) -> Option<&'static str> {
        self.parts.iter().flatten().find_map(|word| known(list, word))
    }

    /// Whether anything in the name sounds like harm: `deletepet`, `bulk_deletes`, `removed`.
    fn hints_at_harm(&self) -> bool {
        let mut words = self.parts.iter().flatten();
        words.any(|word| HARMS.iter().any(|harm| word.contains(harm)))
    }
}

fn known(list: &[&'static str], word: &str) -> Option<&'static str> {
    list.iter().copied().find(|known| *known == word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Document, operations};

    /// `rdio`, with `-` for what is false.
    fn inferred(method: &str, path: &str, id: &str, local: bool) -> String {
        let id = if id.is_empty() {
            String::new()
        } else {
            format!(r#""operationId":"{id}""#)
        };
        let text = format!(r#"{{"openapi":"3.1.0","paths":{{"{path}":{{"{method}":{{{id}}}}}}}}}"#);
        let (operations, _) = operations(&Document::parse(text.into_bytes(), None).unwrap());
        let mut hints = Hints::of_method(&operations[0].method);
        correct(&mut hints, &operations[0], local);
        let letters = Hint::ALL.into_iter().zip("rdio".chars());
        letters
            .map(|(hint, letter)| if hints.effective(hint) { letter } else { '-' })
            .collect()
    }

    #[test]
    fn c_a_post_that_reads_is_a_read() {
        for (path, id) in [
            ("/pets/search", ""),
            ("/pets", "searchPets"),
            ("/pets", "pets/list-all"),
            ("/a", "showPet"),
            ("/a", "get_pet"),
            ("/a", "readPet"),
            ("/a", "findPet"),
            ("/a", "queryPets"),
            ("/a", "lookupPet"),
            ("/a", "countPets"),
            ("/a", "exportPets"),
            ("/a", "downloadPet"),
            ("/reports/search", "reportsSearchPost"),
            ("/a", "listDeletedNot"),
        ] {
            let expected = if id == "listDeletedNot" || id == "reportsSearchPost" {
                "---o"
            } else {
                "r-io"
            };
            assert_eq!(inferred("post", path, id, false), expected, "{path} {id}");
        }
    }

    #[test]
    fn c_what_sets_something_is_idempotent_and_as_destructive_as_its_method() {
        for id in ["setName", "updatePet", "configurePet", "putPet", "upsertPet", "replacePet"] {
            assert_eq!(inferred("post", "/a", id, false), "--io", "{id}");
            assert_eq!(inferred("patch", "/a", id, false), "-dio", "{id}");
            assert_eq!(inferred("put", "/a", id, false), "-dio", "{id}");
        }
    }

    #[test]
    fn c_nothing_that_may_harm_becomes_harmless() {
        for (method, path, id, expected) in [
            ("delete", "/a", "getA", "-dio"),
            ("delete", "/a", "updateA", "-dio"),
            ("put", "/a", "setAndReset", "-dio"),
            ("post", "/a", "getAndDelete", "-d-o"),
            ("post", "/a/revoke", "searchTokens", "-d-o"),
            ("post", "/a", "searchdeleteall", "---o"),
            ("patch", "/a", "updateRemovedItems", "-d-o"),
            ("post", "/a", "updateRemovedItems", "---o"),
            ("post", "/a", "purge", "-d-o"),
            ("post", "/a", "cancelOrder", "-d-o"),
        ] {
            assert_eq!(inferred(method, path, id, false), expected, "{method} {path} {id}");
        }
    }

    #[test]
    fn c_a_get_that_harms_is_neither_a_read_nor_harmless() {
        for (path, id) in [
            ("/users/{id}/delete", ""),
            ("/users/{id}/delete", "userAction"),
            ("/session", "logout"),
            ("/a", "restartServer"),
            ("/a", "resetPassword"),
            ("/a", "serverTerminate"),
            ("/a", "getAndDelete"),
        ] {
            assert_eq!(inferred("get", path, id, false), "-dio", "{path} {id}");
        }
        for (path, id) in [
            ("/deleted", "listDeleted"),
            ("/a", "listResetTokens"),
            ("/dropdown", "dropdownItems"),
            ("/routes/stop/{id}", "Departures_GetForStop"),
        ] {
            assert_eq!(inferred("get", path, id, false), "r-io", "{path} {id}");
        }
    }

    #[test]
    fn c_a_write_that_also_names_a_read_stays_a_write() {
        for id in [
            "createSearch",
            "startExport",
            "markAsRead",
            "addToList",
            "getOrCreate",
            "sendDownload",
            "updateList",
        ] {
            assert!(inferred("post", "/a", id, false).starts_with("--"), "{id}");
        }
    }

    #[test]
    fn c_near_things_are_closed_only_where_the_operator_says_that_the_api_is_local() {
        assert_eq!(inferred("get", "/session", "getSession", true), "r-i-");
        assert_eq!(inferred("get", "/session", "getSession", false), "r-io");
        assert_eq!(inferred("get", "/pets", "getPets", true), "r-io");
    }

    #[test]
    fn c_a_method_that_says_nothing_learns_only_what_is_careful() {
        assert_eq!(inferred("trace", "/a", "searchPets", false), "-d-o");
        assert_eq!(inferred("trace", "/a", "purge", false), "-d-o");
    }
}
