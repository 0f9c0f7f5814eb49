//! Verbs: what a question wants to do, and what an operation does.

use std::sync::LazyLock;

use foldhash::HashMap;
use http::Method;

use super::words::{Writing, first_words, is_stop_word, stem};
use crate::annotate::Effect;
use crate::text::is_word_of;

/// A kind of action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Read,
    Create,
    Update,
    Delete,
    /// Any action but reading.
    Act,
}

/// Words that begin a question about what there is.
const ASKS: &str =
    " who whom whose which what where when why how is are was were does did has have do ";
const READS: &str = " list show view see check find search get read fetch look lookup retrieve display inspect download export count compare browse monitor query describe ";
const CREATES: &str = " create add make new invite post send generate register submit upload insert start launch attach write publish import buy book schedule \
     clone fork copy put give email leave trigger run rerun redeliver sync issue request ";
const UPDATES: &str = " update change rename set edit modify replace enable promote move adjust upgrade resize extend convert alter mark assign configure transfer \
     restrict lock reorder rotate make ";
const DELETES: &str = " delete remove kick revoke cancel drop purge disable stop unfollow unsubscribe unstar unwatch unassign unlink unblock uninstall destroy erase \
     wipe clear terminate detach expire dismiss discard leave deactivate abort end kill void ";

/// Words that are verbs, and as often the name of something.
const NOUNS: &str = " email book schedule issue request transfer query fork clone void trigger ";

/// The stems of these words, each with its kind, and true if it is as often a name: an index asks
/// for thousands.
static STEMS: LazyLock<HashMap<String, (Verb, bool)>> = LazyLock::new(|| {
    let mut stems = HashMap::default();
    // Of two meanings, the more careful one counts, which comes last.
    for (verb, words) in [
        (Verb::Read, READS),
        (Verb::Create, CREATES),
        (Verb::Update, UPDATES),
        (Verb::Delete, DELETES),
    ] {
        stems.extend(words.split_whitespace().map(|word| {
            let is_name = is_word_of(NOUNS, word);
            (stem(word).into_owned(), (verb, is_name))
        }));
    }
    stems
});

impl Verb {
    /// Returns the kind of a word, if it is a verb of one kind.
    fn of_word(word: &str) -> Option<Self> {
        STEMS.get(stem(word).as_ref()).map(|(verb, _)| *verb)
    }

    /// Returns true if a word is an action, and not its object.
    pub(crate) fn is_verb(word: &str) -> bool {
        let known = STEMS.get(stem(word).as_ref());
        known.is_some_and(|(_, is_name)| !is_name)
    }

    /// Returns the kind of action that a question in folded words asks for.
    pub(crate) fn of_question(words: &[String]) -> Option<Self> {
        let first = words.first()?;
        if is_word_of(ASKS, first) {
            return Some(Self::Read);
        }
        for (index, word) in words.iter().enumerate() {
            match (word.as_str(), words.get(index + 1).map(String::as_str)) {
                ("turn" | "switch" | "power" | "shut", Some("off" | "down")) => {
                    return Some(Self::Delete);
                }
                ("turn" | "switch", Some("on")) => return Some(Self::Update),
                ("set", Some("up")) => return Some(Self::Create),
                ("tell" | "give", Some("me")) => return Some(Self::Read),
                ("open", Some(what)) if index == 0 && is_plural(what) => return Some(Self::Read),
                ("leave", Some("a" | "an" | "some")) | ("open", Some(_)) if index == 0 => {
                    return Some(Self::Create);
                }
                ("close" | "reopen", Some(_)) if index == 0 => return Some(Self::Update),
                ("roll", Some("back")) => return Some(Self::Update),
                ("get", Some("rid")) => return Some(Self::Delete),
                ("take", Some("away")) => return Some(Self::Delete),
                _ => {}
            }
            if let Some(verb) = Self::of_word(word) {
                return Some(verb);
            }
        }
        // `archive a feature` asks for an action of any kind.
        (!is_stop_word(first)
            && words.get(1).is_some_and(|article| {
                matches!(article.as_str(), "a" | "an" | "the" | "this" | "my" | "our")
            }))
        .then_some(Self::Act)
    }

    /// Returns the kind of an operation's action: by its method; POST and PUT by the verb that one
    /// of its texts begins with, the first text that has one, or else that its path ends with.
    pub(crate) fn of_operation(method: &Method, effect: Effect, texts: &[&str]) -> Self {
        let otherwise = match method.as_str() {
            "GET" | "HEAD" | "OPTIONS" | "QUERY" => return Self::Read,
            "DELETE" => return Self::Delete,
            "PATCH" => return Self::Update,
            "PUT" => Self::Update,
            _ if effect == Effect::Read => return Self::Read,
            _ if effect == Effect::Destructive => Self::Delete,
            _ => Self::Create,
        };
        let first_verb = |text: &&str| {
            let words = first_words(text, Writing::Identifier, 2);
            words
                .iter()
                .filter(|word| !matches!(word.as_str(), "post" | "put"))
                .find_map(|word| Self::of_word(word))
        };
        texts.iter().find_map(first_verb).unwrap_or(otherwise)
    }
}

/// Returns true if a word looks like a plural: `open issues` are those that are open.
fn is_plural(word: &str) -> bool {
    word.ends_with('s') && !word.ends_with("ss")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_says_what_it_wants_to_do() {
        for (question, expected) in [
            ("who can push", Some(Verb::Read)),
            ("kick someone from org", Some(Verb::Delete)),
            ("turn off security updates", Some(Verb::Delete)),
            ("please renaming the branch", Some(Verb::Update)),
            ("inviting a person", Some(Verb::Create)),
            ("workflow minutes", None),
            ("leave a comment", Some(Verb::Create)),
            ("leave the room", Some(Verb::Delete)),
            ("open an issue", Some(Verb::Create)),
            ("open issues", Some(Verb::Read)),
            ("archive a feature", Some(Verb::Act)),
        ] {
            let words: Vec<String> = question.split(' ').map(str::to_owned).collect();
            assert_eq!(Verb::of_question(&words), expected, "{question}");
        }
    }

    #[test]
    fn an_operation_does_what_its_texts_say() {
        for (method, text, expected) in [
            ("GET", "Delete a pet", Verb::Read),
            ("POST", "Update a pet", Verb::Update),
            ("POST", "Cancels an order", Verb::Delete),
            ("PUT", "Add a member", Verb::Create),
            ("PUT", "Members", Verb::Update),
            ("POST", "PostCustomers", Verb::Create),
        ] {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            assert_eq!(
                Verb::of_operation(&method, Effect::Write, &[text]),
                expected,
                "{text}"
            );
        }
    }
}
