//! The words that names of operations are made of, and the lists of those whose meaning is known.

use std::sync::LazyLock;

use enumset::{EnumSet, EnumSetType};
use foldhash::HashMap;
use heck::ToSnakeCase as _;

/// A list of words with something in common.
#[derive(Debug, EnumSetType)]
pub(crate) enum WordList {
    /// [`READS`].
    Reads,
    /// [`SETS`].
    Sets,
    /// [`HARMS`].
    Harms,
    /// [`WRITES`].
    Writes,
    /// [`CHANGES`].
    Changes,
    /// [`JOINS`].
    Joins,
    /// [`PREPOSITIONS`].
    Prepositions,
    /// [`NEAR`].
    Near,
}

/// Words in names of operations that only read.
const READS: [&str; 15] = [
    "show", "list", "get", "read", "search", "find", "query", "lookup", "count", "export", "download", "filter", "preview", "fetch", "view",
];
/// Words in names of operations that leave the same state, however often they are repeated.
const SETS: [&str; 6] = ["set", "update", "configure", "put", "upsert", "replace"];
/// Words in names of operations that remove or stop something.
pub(crate) const HARMS: [&str; 32] = [
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

/// The words of a name in any spelling, in lower case, with `_` between them.
pub(crate) fn snake_case(name: &str) -> String {
    if !name.is_ascii() {
        return name.to_snake_case();
    }
    // As heck splits ASCII: at what is not alphanumeric, before a capital after a small letter, and before the last of several
    // capitals that a small letter follows.
    let bytes = name.as_bytes();
    let mut words = String::with_capacity(bytes.len() + 8);
    let (mut is_lower, mut is_upper) = (false, false);
    for (index, byte) in bytes.iter().enumerate() {
        if !byte.is_ascii_alphanumeric() {
            (is_lower, is_upper) = (false, false);
            if !words.ends_with('_') {
                words.push('_');
            }
            continue;
        }
        let next = bytes.get(index + 1).copied().unwrap_or(b' ');
        if byte.is_ascii_uppercase() && (is_lower || (is_upper && next.is_ascii_lowercase())) && !words.ends_with('_') {
            words.push('_');
        }
        words.push(char::from(byte.to_ascii_lowercase()));
        if byte.is_ascii_alphabetic() {
            (is_lower, is_upper) = (byte.is_ascii_lowercase(), byte.is_ascii_uppercase());
        }
    }
    words
}

/// The words of a name that [`snake_case`] has split.
pub(crate) fn words(snake: &str) -> impl DoubleEndedIterator<Item = &str> + Clone {
    snake.split('_').filter(|word| !word.is_empty())
}

/// All words of the lists, each with the lists that it is in.
static KNOWN: LazyLock<HashMap<&'static str, (&'static str, EnumSet<WordList>)>> = LazyLock::new(|| {
    let lists = [
        (WordList::Reads, &READS[..]),
        (WordList::Sets, &SETS),
        (WordList::Harms, &HARMS),
        (WordList::Writes, &WRITES),
        (WordList::Changes, &CHANGES),
        (WordList::Joins, &JOINS),
        (WordList::Prepositions, &PREPOSITIONS),
        (WordList::Near, &NEAR),
    ];
    let mut known: HashMap<_, (_, EnumSet<WordList>)> = HashMap::default();
    for (list, words) in lists {
        for word in words {
            known.entry(*word).or_insert((*word, EnumSet::empty())).1.insert(list);
        }
    }
    known
});

/// A word of a name, in lower case, and what is known of it.
#[derive(Clone, Copy)]
pub(crate) struct Word<'n> {
    pub(crate) text: &'n str,
    known: Option<(&'static str, EnumSet<WordList>)>,
}

impl<'n> Word<'n> {
    #[must_use]
    pub(crate) fn of(text: &'n str) -> Self {
        Self {
            text,
            known: KNOWN.get(text).copied(),
        }
    }

    /// The word, where it is in one of the lists.
    #[must_use]
    pub(crate) fn is_in(self, lists: impl Into<EnumSet<WordList>>) -> Option<&'static str> {
        let lists = lists.into();
        self.known.filter(|(_, known)| !known.is_disjoint(lists)).map(|(word, _)| word)
    }
}

/// Whether a word is a verb that names of operations have, in lower case.
#[must_use]
pub(crate) fn is_verb(word: &str) -> bool {
    let verbs = WordList::Reads | WordList::Sets | WordList::Harms | WordList::Writes | WordList::Changes;
    Word::of(word).is_in(verbs).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn names_are_split_as_heck_splits_them(name in "[a-cA-C1_. -]{0,12}") {
            let (own, heck) = (snake_case(&name), name.to_snake_case());
            prop_assert_eq!(words(&own).collect::<Vec<_>>(), words(&heck).collect::<Vec<_>>());
        }
    }
}
