//! Caution: what is enforced also counts harmful words that the policy `infer` takes for the name of a thing, or does not see.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use http::Method;

use super::operation_name::{NameText, without_method};
use super::words::{HARMS, Word, WordList, snake_case, words};
use crate::annotate::annotations::{Hint, Hints, Reason};
use crate::spec::Operation;
use crate::spec::operation::template::TemplatePart;

/// A harmful word of fewer letters begins many words that have nothing to do with it: `droplet`, `banner`, `stopwatch`.
const MIN_GLUED_LEN: usize = 5;
/// Of a POST, a harmful word of that many letters counts at the beginning of any word: `removes`, `cancellation`.
const MIN_STEM_LEN: usize = 6;
/// What shorter harmful words are written together with: `killall`, `dropwebhook`.
const OBJECTS: [&str; 18] = [
    "all",
    "cache",
    "container",
    "data",
    "db",
    "instance",
    "job",
    "member",
    "process",
    "server",
    "service",
    "session",
    "table",
    "task",
    "user",
    "vm",
    "webhook",
    "worker",
];
/// The beginnings of nouns that follow a verb in `-e`, where its participle would begin in the same way: `deletedevice`.
const NOUNS_IN_D: [&str; 12] = [
    "dashboard",
    "data",
    "definition",
    "department",
    "deployment",
    "detail",
    "device",
    "directory",
    "disk",
    "doc",
    "domain",
    "draft",
];
/// Harmful words that are names of things where they are a segment of a path: `/stop/{id}/departures`.
const THINGS: [&str; 4] = ["stop", "drop", "ban", "kick"];

/// Verbs of a write that are hardly ever a noun or an adjective, so that a GET whose name begins with one writes.
const PLAIN_WRITES: [&str; 42] = [
    "activate",
    "add",
    "allocate",
    "append",
    "apply",
    "approve",
    "assign",
    "associate",
    "attach",
    "authorize",
    "configure",
    "copy",
    "create",
    "deregister",
    "detach",
    "disassociate",
    "enable",
    "execute",
    "import",
    "insert",
    "install",
    "invoke",
    "merge",
    "modify",
    "move",
    "promote",
    "provision",
    "publish",
    "put",
    "rebuild",
    "register",
    "rename",
    "replace",
    "restore",
    "rollback",
    "rotate",
    "save",
    "send",
    "set",
    "start",
    "unassign",
    "update",
];
/// Words that read wherever they stand, so that what is before them is a noun: `register_retrieve`.
const READS_BEHIND: [&str; 5] = ["get", "retrieve", "describe", "fetch", "read"];

static MENTIONS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| AhoCorasick::builder().ascii_case_insensitive(true).build(HARMS).ok());

/// Makes what is enforced more careful than the hints that are inferred. Only the operator can say that such a word means something
/// else.
pub(crate) fn apply_caution(hints: &mut Hints, operation: &Operation) {
    if hints.is_destructive() {
        return;
    }
    let is_post = operation.method == Method::POST;
    let harm = if !names_of(operation).any(mentions_harm) {
        None
    } else if is_post {
        harm_in_post(operation)
    } else {
        harm_in_read(operation)
    };
    if let Some(word) = harm {
        hints.set(Hint::ReadOnly, false, Reason::Word(word));
        hints.set(Hint::Destructive, true, Reason::Word(word));
    } else if !is_post && let Some(word) = write_in_read(operation) {
        hints.set(Hint::ReadOnly, false, Reason::Word(word));
    }
}

/// What names an operation: the literal texts of its path, what tells it apart behind the path, and its operationId.
fn names_of(operation: &Operation) -> impl Iterator<Item = &str> {
    let segments = segments_of(operation).flatten();
    segments.chain(actions_behind_path(operation)).chain(operation.id.as_deref())
}

/// The segments of the path, each as its literal texts.
fn segments_of(operation: &Operation) -> impl Iterator<Item = impl Iterator<Item = &str>> {
    operation
        .template
        .segments
        .iter()
        .map(|parts| parts.iter().filter_map(literal_text))
}

fn literal_text(part: &TemplatePart) -> Option<&str> {
    match part {
        TemplatePart::Literal(text) => Some(text),
        TemplatePart::Variable(_) => None,
    }
}

/// The values in the query or the fragment that a document writes into a path: `DeleteStack` of `/#Action=DeleteStack`.
fn actions_behind_path(operation: &Operation) -> impl Iterator<Item = &str> {
    let start = operation.path.find(['?', '#']).unwrap_or(operation.path.len());
    let pairs = operation.path.get(start..).unwrap_or_default().split(['?', '#', '&']);
    pairs.map(|pair| pair.split_once('=').map_or(pair, |(_, value)| value))
}

/// Whether a text holds a harmful word anywhere. Nearly all names hold none, and need not be split.
fn mentions_harm(name: &str) -> bool {
    MENTIONS.as_ref().is_none_or(|harms| harms.is_match(name))
}

/// A POST does something. No position excuses a harmful word, in any name of the operation.
fn harm_in_post(operation: &Operation) -> Option<&'static str> {
    let harm = |word: &str| {
        let word = word.trim_end_matches(|last: char| last.is_ascii_digit());
        let stem = || beginnings(word).find_map(|(harm, _)| (harm.len() >= MIN_STEM_LEN).then_some(harm));
        Word::of(word).is_in(WordList::Harms).or_else(stem).or_else(|| glued_harm(word))
    };
    names_of(operation).find_map(|name| words(&snake_case(name)).find_map(harm))
}

/// A method that is safe by its definition does harm where a harmful word is a segment of the path (`/delete/user/{id}`), begins an
/// action behind the path, or begins a word that is not an inflection of it (`dropwebhook`).
fn harm_in_read(operation: &Operation) -> Option<&'static str> {
    let exact = |word: &str| Word::of(word).is_in(WordList::Harms);
    let segment_harm = |segment: &str| {
        let name = snake_case(segment);
        let mut words = words(&name);
        let only = words.next().filter(|_| words.next().is_none())?;
        exact(only).filter(|harm| !THINGS.contains(harm))
    };
    let by_itself = || {
        segments_of(operation).find_map(|mut texts| {
            let only = texts.next().filter(|_| texts.next().is_none())?;
            segment_harm(only)
        })
    };
    let action_harm = |action: &str| words(&snake_case(action)).next().and_then(exact);
    let behind = || actions_behind_path(operation).find_map(action_harm);
    let glued = || NameText::of(operation).name().harms(|word| glued_harm(word.text));
    by_itself().or_else(behind).or_else(glued)
}

/// A method that is safe by its definition writes where a name begins with a verb that means that, and holds no word of a read:
/// `GET_CreateUser`, but not `UpdateLocations_Get`; or where "and", "or" or "then" joins a write to it: `getOrCreateUser`. An action
/// behind the path begins with a verb; an operationId may begin with a noun.
fn write_in_read(operation: &Operation) -> Option<&'static str> {
    let id = operation.id.as_deref().filter(|id| !id.contains(' '));
    let id = id
        .map(|id| without_method(id, &operation.method))
        .and_then(|id| id.rsplit(['/', '.', ':', '#']).next());
    let plain = |word: &str| PLAIN_WRITES.iter().find(|verb| **verb == word).copied();
    let any = |word: &str| Word::of(word).is_in(WordList::Writes | WordList::Changes);
    let of_id = |id: &str| {
        let id = id.strip_suffix("UsingGET").unwrap_or(id);
        leading_write(id, plain).or_else(|| joined_write(id, any))
    };
    let of_action = || actions_behind_path(operation).find_map(|action| leading_write(action, any));
    id.and_then(of_id).or_else(of_action)
}

/// A write that directly follows a word which joins it to what is before.
fn joined_write(name: &str, write_of: impl Fn(&str) -> Option<&'static str>) -> Option<&'static str> {
    let name = snake_case(name);
    let pairs = words(&name).zip(words(&name).skip(1));
    pairs
        .filter(|(join, _)| Word::of(join).is_in(WordList::Joins).is_some())
        .find_map(|(_, next)| write_of(next))
}

/// The first word of a name, where `write_of` knows it as a write and nothing behind it reads.
fn leading_write(name: &str, write_of: impl Fn(&str) -> Option<&'static str>) -> Option<&'static str> {
    let snake = snake_case(name);
    let write = words(&snake).next().and_then(write_of)?;
    let mut parts = name
        .split('_')
        .skip(1)
        .filter(|part| part.starts_with(|first: char| first.is_ascii_uppercase()));
    let reads = parts.any(|part| {
        words(&snake_case(part))
            .next()
            .is_some_and(|verb| Word::of(verb).is_in(WordList::Reads).is_some())
    }) || words(&snake).any(|word| READS_BEHIND.contains(&word));
    (!reads).then_some(write)
}

/// The harmful word that a word begins with as a verb: `killall`, `deleteuser`, `clearcache`.
fn glued_harm(word: &str) -> Option<&'static str> {
    beginnings(word).find_map(|(harm, rest)| {
        let is_verb = if harm.len() < MIN_GLUED_LEN {
            OBJECTS.iter().any(|object| rest.starts_with(object))
        } else {
            !is_inflected(harm, rest)
        };
        is_verb.then_some(harm)
    })
}

/// The harmful words that a word begins with, each with what follows it there.
fn beginnings(word: &str) -> impl Iterator<Item = (&'static str, &str)> {
    HARMS.iter().filter_map(move |harm| Some((*harm, word.strip_prefix(harm)?)))
}

/// Whether a harmful word and what follows it are a form of that word, or a noun made of it, alone or before another noun: `deleted`,
/// `cancellations`, `expiredkeys`. The word by itself is one as well, because it is judged where whole words are.
fn is_inflected(harm: &str, rest: &str) -> bool {
    if ["", "s", "r", "er", "rs", "ers"].contains(&rest) {
        return true;
    }
    if harm.ends_with('e') {
        return rest.starts_with('d') && !NOUNS_IN_D.iter().any(|noun| rest.starts_with(noun));
    }
    // A final consonant may be doubled: `cancelled`.
    let rest = harm.get(harm.len() - 1..).and_then(|last| rest.strip_prefix(last)).unwrap_or(rest);
    ["ed", "ing", "ion", "ation", "ance"].iter().any(|ending| rest.starts_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Document, operations};

    /// The word that makes an operation count as more than a read.
    fn feared(method: &str, path: &str, id: &str) -> Option<&'static str> {
        let text = format!(r#"{{"openapi":"3.2.0","paths":{{"{path}":{{"{method}":{{"operationId":"{id}"}}}}}}}}"#);
        let (operations, _) = operations(&Document::parse(text.into_bytes(), None).unwrap());
        let mut hints = Hints::of_method(&operations[0].method);
        apply_caution(&mut hints, &operations[0]);
        match hints.get(Hint::ReadOnly).map(|sourced| sourced.reason) {
            Some(Reason::Word(word)) => Some(word),
            _ => None,
        }
    }

    #[test]
    fn a_post_whose_word_begins_with_a_harmful_one_is_treated_with_caution() {
        for (path, word) in [
            ("/processes/killall", Some("kill")),
            ("/deleteuser", Some("delete")),
            ("/a/removes2", Some("remove")),
            ("/wipeall", Some("wipe")),
            ("/clearcache", Some("clear")),
            ("/droplets", None),
            ("/banners", None),
            ("/stopwords", None),
            ("/clearances", None),
        ] {
            assert_eq!(feared("post", path, "op"), word, "{path}");
        }
    }

    #[test]
    fn a_read_that_names_a_harmful_verb_is_treated_with_caution() {
        for (path, id, word) in [
            ("/dropwebhook", "dropwebhook", Some("drop")),
            ("/cancelbabel/{boxId}", "op", Some("cancel")),
            ("/a/{id}", "Removeallpersonaldata", Some("remove")),
            ("/deletedevice", "op", Some("delete")),
            ("/clearcache", "op", Some("clear")),
            ("/resetpassword", "op", Some("reset")),
            ("/killall", "op", Some("kill")),
            ("/archive/delete/network", "op", Some("delete")),
            ("/delete/user/{id}", "user", Some("delete")),
            ("/v1/Logout/{id}/now", "op", Some("logout")),
            ("/#Action=DeleteStack", "op", Some("delete")),
            ("/rpc?action=deleteUser", "op", Some("delete")),
            ("/a", "createUser", Some("create")),
            ("/a", "users.create", Some("create")),
            ("/a", "createWishList", Some("create")),
            ("/a", "getOrCreateUser", Some("create")),
            ("/a", "fetchAndMark", Some("mark")),
            ("/#Action=RunInstances", "op", Some("run")),
        ] {
            for method in ["get", "head", "options", "query"] {
                assert_eq!(feared(method, path, id), word, "{method} {path} {id}");
            }
        }
        for (path, id) in [
            ("/worklog/deleted", "getDeletedSince"),
            ("/deletedcertificates", "GetDeletedCertificates"),
            ("/deleteddevices", "op"),
            ("/cancellations", "op"),
            ("/cancelledorders", "op"),
            ("/rejectedSenders", "op"),
            ("/evictionpolicy", "op"),
            ("/suppression/unsubscribes", "op"),
            ("/clearances", "op"),
            ("/droplets", "op"),
            ("/banners/{id}", "op"),
            ("/bankaccounts", "op"),
            ("/killmails/{id}", "op"),
            ("/stopwatches", "op"),
            ("/stopscans", "StopScansPage"),
            ("/stop/{id}/departures", "op"),
            ("/pets", "listResettokensForUser"),
            ("/a", "UpdateLocations_Get"),
            ("/a", "UpdateLocations_ListByGroup"),
            ("/a", "register_retrieve"),
            ("/a", "settings.sendAs.get"),
            ("/a", "Get earnings by start date"),
            ("/a", "orderInfo"),
            ("/a", "getTermsAndConditions"),
        ] {
            assert_eq!(feared("get", path, id), None, "{path} {id}");
        }
        assert_eq!(feared("get", "/a", "GET_CreateUser"), Some("create"));
        assert_eq!(feared("get", "/createAuthor", "createAuthorUsingGET"), Some("create"));
    }
}
