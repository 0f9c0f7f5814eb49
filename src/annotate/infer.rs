//! Policy `infer`: what the words of an operation's name suggest. A name is a guess, so the hints follow it only if the operator
//! asks for that, and where it disagrees with another rule the more careful one wins. What is enforced always counts the
//! dangerous words (`enforcement`).

use heck::ToSnakeCase as _;
use http::Method;

use super::annotations::{Hint, Hints, Reason};
use crate::spec::Operation;
use crate::spec::operation::template::TemplatePart;

/// Words in names of operations that only read.
const READS: [&str; 15] = [
    "show", "list", "get", "read", "search", "find", "query", "lookup", "count", "export", "download", "filter", "preview", "fetch", "view",
];
/// Words in names of operations that leave the same state, however often they are repeated.
const SETS: [&str; 6] = ["set", "update", "configure", "put", "upsert", "replace"];
/// Words in names of operations that remove or stop something.
const HARMS: [&str; 32] = [
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
    "flush",
    "prune",
    "evict",
    "ban",
    "kick",
    "expire",
    "overwrite",
];
/// Words in names of operations that write, whatever else the name says: `createExport`, `markAsRead`.
const WRITES: [&str; 106] = [
    "accept",
    "activate",
    "add",
    "allocate",
    "answer",
    "append",
    "apply",
    "approve",
    "archive",
    "assign",
    "attach",
    "begin",
    "block",
    "book",
    "build",
    "buy",
    "capture",
    "change",
    "charge",
    "checkout",
    "claim",
    "clone",
    "close",
    "commit",
    "complete",
    "confirm",
    "connect",
    "convert",
    "copy",
    "create",
    "deploy",
    "detach",
    "disconnect",
    "downgrade",
    "edit",
    "enable",
    "enqueue",
    "exec",
    "execute",
    "finalize",
    "follow",
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
    "like",
    "link",
    "lock",
    "log",
    "login",
    "make",
    "mark",
    "merge",
    "migrate",
    "modify",
    "move",
    "mute",
    "new",
    "notify",
    "open",
    "order",
    "pay",
    "post",
    "process",
    "promote",
    "publish",
    "push",
    "redeem",
    "refresh",
    "refund",
    "regenerate",
    "register",
    "rename",
    "reply",
    "report",
    "request",
    "resend",
    "resize",
    "restore",
    "retry",
    "rollback",
    "rotate",
    "run",
    "save",
    "scale",
    "schedule",
    "send",
    "sign",
    "start",
    "submit",
    "subscribe",
    "sync",
    "transfer",
    "trigger",
    "undo",
    "unlink",
    "unlock",
    "upgrade",
    "vote",
];
/// More words in names of operations that write. Some are also in [`SETS`].
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
/// These join a second verb to the first: `getAndDelete`.
const JOINS: [&str; 3] = ["and", "or", "then"];
/// A word after one of these is a noun: `getByStop`.
const PREPOSITIONS: [&str; 10] = ["for", "by", "at", "of", "in", "to", "from", "with", "on", "per"];
/// Words for things that are local, if the operator says that the API is (`--local-api`).
const NEAR: [&str; 4] = ["memory", "session", "config", "local"];

/// Corrects the hints by the words of the operation's name. `local`: the operator says that the API deals with nothing outside.
pub(crate) fn apply_inference(hints: &mut Hints, operation: &Operation, local: bool) {
    let name = Name::of(operation);
    // A value that is already known keeps its reason.
    let mut say = |hint: Hint, value: bool, word| {
        if hints.get(hint).map(|sourced| sourced.value) != Some(value) {
            hints.set(hint, value, Reason::Word(word));
        }
    };
    if local && let Some(word) = name.any(&NEAR) {
        say(Hint::OpenWorld, false, word);
    }
    if let Some(word) = name.harms() {
        say(Hint::ReadOnly, false, word);
        say(Hint::Destructive, true, word);
        return;
    }
    // An operation whose name hints at harm stays as careful as its method.
    let is_open = matches!(operation.method, Method::POST | Method::PUT | Method::PATCH) && !name.hints_at_harm();
    if !is_open || name.any(&WRITES).is_some() || name.joins_unknown_word() {
        return;
    }
    if operation.method == Method::POST
        && name.any(&CHANGES).is_none()
        && let Some(word) = name.reads()
    {
        say(Hint::ReadOnly, true, word);
        say(Hint::Destructive, false, word);
        say(Hint::Idempotent, true, word);
    } else if let Some(word) = name.begins(&SETS) {
        // A word does not undo that the method replaces what was there (MCP: only additive updates are not destructive), nor
        // that a precondition makes a repeated call fail.
        let proven = hints
            .get(Hint::Idempotent)
            .is_some_and(|idempotent| matches!(idempotent.reason, Reason::Evidence(_)));
        if !proven && !hints.effective(Hint::Idempotent) {
            hints.set(Hint::Idempotent, true, Reason::Word(word));
        }
    }
}

/// Makes what is enforced of a POST more careful than the hints that are inferred: there, no position excuses a harmful word, in the
/// operationId or in any literal segment of the path. Only the operator can say that it names a thing.
pub(crate) fn apply_caution(hints: &mut Hints, operation: &Operation) {
    if operation.method != Method::POST || hints.is_destructive() {
        return;
    }
    let segments = operation.template.segments.iter().flatten().filter_map(|part| match part {
        TemplatePart::Literal(text) => Some(text.as_str()),
        TemplatePart::Variable(_) => None,
    });
    let name = segments.chain(operation.id.as_deref()).flat_map(split_words);
    if let Some(word) = name
        .into_iter()
        .find_map(|word| known(&HARMS, word.trim_end_matches(|last: char| last.is_ascii_digit())))
    {
        hints.set(Hint::ReadOnly, false, Reason::Word(word));
        hints.set(Hint::Destructive, true, Reason::Word(word));
    }
}

/// The words of a name in any spelling, in lower case.
fn split_words(name: &str) -> Vec<String> {
    let snake = name.to_snake_case();
    snake.split('_').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The words of an operation's name.
struct Name {
    /// The words of each part of its operationId: `repos/list-for-org` has two parts.
    id: Vec<Vec<String>>,
    /// The words of the last literal segment of its path.
    path: Vec<String>,
    /// Whether that is the last segment of the path, and so may be a verb: `/stops/{id}` names a thing.
    path_ends: bool,
}

impl Name {
    fn of(operation: &Operation) -> Self {
        // `{id}:delete` ends with a verb as well.
        let literal = |parts: &Vec<TemplatePart>| {
            let texts = parts.iter().filter_map(|part| match part {
                TemplatePart::Literal(text) => Some(text.as_str()),
                TemplatePart::Variable(_) => None,
            });
            Some(texts.collect::<Vec<_>>().join(" ")).filter(|text| !text.trim().is_empty())
        };
        let segments = operation.template.segments.iter().rev();
        let mut segments =
            segments.filter(|parts| literal(parts).is_some() || parts.iter().any(|part| matches!(part, TemplatePart::Variable(_))));
        let path_ends = segments.clone().next().is_some_and(|parts| literal(parts).is_some());
        let segment = segments.find_map(literal).unwrap_or_default();
        let id = operation.id.as_deref().unwrap_or_default();
        let parts = id.split(['/', '.', ':', '#', ' ']).map(split_words);
        Self {
            id: parts.filter(|words: &Vec<String>| !words.is_empty()).collect(),
            path: split_words(&segment),
            path_ends,
        }
    }

    fn parts(&self) -> impl Iterator<Item = &Vec<String>> {
        self.id.iter().chain(std::iter::once(&self.path))
    }

    /// A harmful word that does not clearly name a thing: `listResetTokens` and `getForStop` read, `adminDeleteUser` does not.
    fn harms(&self) -> Option<&'static str> {
        let parts = self.id.iter().map(|part| (false, part)).chain(std::iter::once((true, &self.path)));
        for (is_path, part) in parts {
            let reads = part.first().is_some_and(|word| known(&READS, word).is_some());
            let joins = part.iter().any(|word| known(&JOINS, word).is_some());
            for (index, word) in part.iter().enumerate() {
                let Some(harm) = known(&HARMS, word) else { continue };
                let before = index.checked_sub(1).and_then(|index| part.get(index));
                let is_last = index + 1 == part.len();
                let thing = before.is_some_and(|word| PREPOSITIONS.contains(&word.as_str()))
                    || (reads && !joins && !is_last)
                    || (is_path && !self.path_ends && harm == "stop");
                if !thing {
                    return Some(harm);
                }
            }
        }
        None
    }

    /// A reading word at the beginning or the end of a part, where names have their verb. If there is an operationId, only its
    /// parts count, because a path often names a thing.
    fn reads(&self) -> Option<&'static str> {
        let verb = |words: &Vec<String>| {
            let mut verbs = words.first().into_iter().chain(words.last());
            verbs.find_map(|verb| known(&READS, verb))
        };
        if self.id.is_empty() {
            return verb(&self.path);
        }
        self.id.iter().find_map(verb)
    }

    /// A word of the list at the beginning of a part.
    fn begins(&self, list: &[&'static str]) -> Option<&'static str> {
        self.parts().filter_map(|words| words.first()).find_map(|word| known(list, word))
    }

    /// A word of the list anywhere.
    fn any(&self, list: &[&'static str]) -> Option<&'static str> {
        self.parts().flatten().find_map(|word| known(list, word))
    }

    /// Whether "and", "or" or "then" is followed by anything but a known harmless verb: `showAndHide`, `fetchAndAck`. Any
    /// unknown word may be a verb.
    fn joins_unknown_word(&self) -> bool {
        let harmless = |word: &String| [&READS[..], &SETS, &JOINS].into_iter().any(|list| known(list, word).is_some());
        let pairs = self.parts().flat_map(|words| words.iter().zip(words.iter().skip(1)));
        pairs
            .into_iter()
            .any(|(join, next)| known(&JOINS, join).is_some() && !harmless(next))
    }

    /// Whether a harmful word is part of any word of the name: `deletepet`, `bulk_deletes`, `removed`.
    fn hints_at_harm(&self) -> bool {
        self.parts().flatten().any(|word| HARMS.iter().any(|harm| word.contains(harm)))
    }
}

/// Whether a word is a verb that names of operations have, in lower case.
#[must_use]
pub(crate) fn is_verb(word: &str) -> bool {
    [&READS[..], &SETS, &HARMS, &WRITES, &CHANGES]
        .into_iter()
        .any(|list| known(list, word).is_some())
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
        apply_inference(&mut hints, &operations[0], local);
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
            ("/a", "get_and_then_delete_user"),
            ("/users/delete/{id}", ""),
            ("/a", "UsersController_deleteUser"),
            ("/a", "adminDeleteUser"),
            ("/a", "bulkRemoveItems"),
            ("/a6/{id}:delete", ""),
            ("/a8/{id}/delete/", ""),
            ("/a", "getDelete"),
        ] {
            assert_eq!(inferred("get", path, id, false), "-d-o", "{path} {id}");
        }
        for (path, id) in [
            ("/deleted", "listDeleted"),
            ("/a", "listResetTokens"),
            ("/dropdown", "dropdownItems"),
            ("/routes/stop/{id}", "Departures_GetForStop"),
            ("/tokens", "getByCancelReason"),
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
    fn c_a_word_that_and_joins_to_a_reading_one_ends_its_harmlessness() {
        for id in [
            "showAndHide",
            "fetchAndAck",
            "getAndConsume",
            "findAndTag",
            "find_pets_and_tag_them",
            "listThenArchive",
            "searchOrDo",
            "updateAndPing",
        ] {
            assert_eq!(inferred("post", "/a", id, false), "---o", "{id}");
        }
        assert_eq!(inferred("post", "/search-and-tag", "searchPets", false), "---o");
        for id in ["findAndCount", "searchAndThenExport"] {
            assert_eq!(inferred("post", "/a", id, false), "r-io", "{id}");
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
