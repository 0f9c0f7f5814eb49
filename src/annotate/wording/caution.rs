//! The policies `careful` and `strict`: words that make a tool look more dangerous than its method
//! does.

use enumset::EnumSet;
use http::Method;

use super::lexicon::{KnownWord, Meaning, entry_of_form};
use super::operation_id::{snake_case, words};
use super::operation_verbs::{NamePart, OperationVerbs};
use crate::annotate::annotations::Reason;
use crate::spec::Operation;
use crate::text::is_word_of;

/// Strictness towards words.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Strictness {
    /// Counts only words that say that something is removed, ended, moved or taken back.
    Careful,
    /// Words also count that say that something is changed; and a POST must have one that says that
    /// it adds, starts or reads.
    Strict,
}

/// Verbs that say in the middle of a sentence that something may be changed: "Creates or updates".
const OR_CHANGES: &str = "update replace overwrite modify delete remove edit";

/// Returns the reason for which an operation is more dangerous than its method says; `None` if its
/// words give none. PUT, PATCH and DELETE have the highest class already.
pub(super) fn caution(
    words: &OperationVerbs,
    operation: &Operation,
    strictness: Strictness,
) -> Option<Reason> {
    let found = match operation.method.as_str() {
        "POST" => post_harm(words, operation, strictness),
        "GET" | "HEAD" | "OPTIONS" | "QUERY" => read_harm(words, operation, strictness),
        _ => return None,
    };
    let only_adds = || {
        operation.method != Method::POST
            || strictness == Strictness::Careful
            || says_that_it_adds(words, operation)
    };
    match found {
        Some(entry) => Some(Reason::Word(&entry.word)),
        None if only_adds() => None,
        None => changes_in_passing(operation).or(Some(Reason::Default)),
    }
}

/// The word that says that a POST harms what exists.
fn post_harm(
    words: &OperationVerbs,
    operation: &Operation,
    strictness: Strictness,
) -> Option<&'static KnownWord> {
    let harmful: EnumSet<Meaning> = match strictness {
        Strictness::Careful => Meaning::Destroys.into(),
        Strictness::Strict => Meaning::Destroys | Meaning::Changes,
    };
    let is_harmful =
        |entry: &&'static KnownWord| class(entry).is_some_and(|class| harmful.contains(class));
    let is_harmless =
        |entry: &KnownWord| matches!(class(entry), Some(Meaning::Adds | Meaning::Reads));
    let mut texts = words.texts.iter();
    let texts_are_harmless = texts.any(|entry| is_harmless(entry));
    // `/orders/{id}/cancel` is an action, and `/orders/archive` may be a thing.
    let action = words.action.head().filter(|_| !words.path.is_followed);
    let is_action = |entry: &KnownWord| {
        words.path.follows_variable && action.is_some_and(|action| action.word == entry.word)
    };
    let may_be_thing = |entry: &KnownWord| {
        let mut texts = words.texts.iter();
        words.is_whole_part(entry) || texts.any(|text| class(text) == Some(Meaning::Adds))
    };
    let is_excused = |entry: &KnownWord| {
        entry.is(Meaning::Noun) && texts_are_harmless && may_be_thing(entry) && !is_action(entry)
    };
    let counts = |entry: &&'static KnownWord| is_harmful(entry) && !is_excused(entry);
    let is_called_harmless = words.heads().any(is_harmless);
    let head = || words.heads().find(counts);
    let of_path = || {
        action.filter(counts).filter(|entry| {
            words.path.follows_variable && is_one_verb(words, entry) || !is_called_harmless
        })
    };
    let of_texts = || {
        let first = words.texts.first().copied().filter(is_harmful);
        first.filter(|_| !words.heads().any(|entry| entry.is(Meaning::Reads)))
    };
    // A harmful word counts anywhere, unless another one says what the operation is.
    let anywhere = || {
        let is_harmless =
            is_called_harmless || texts_are_harmless || action.is_some_and(is_harmless);
        let mut free = words.id.iter().flat_map(NamePart::free);
        free.find(is_harmful).filter(|_| !is_harmless)
    };
    // No position excuses one of these.
    let plainly = || {
        let named = words.all().find(|entry| entry.is(Meaning::Harms));
        let harm = named.or(words.path.harm);
        harm.filter(|_| strictness == Strictness::Strict)
    };
    // `OrderCancel`, `BuildPrune`: a noun, and then the verb.
    let last = || {
        let long = words.id.iter().filter(|part| part.words.len() > 1);
        let mut last = long
            .filter(|part| part.head().is_some_and(|head| head.is(Meaning::Noun)))
            .filter_map(NamePart::last);
        last.find(|entry| {
            is_harmful(entry) && (!entry.is(Meaning::Noun) || entry.is(Meaning::Harms))
        })
    };
    let behind = || {
        words
            .behind_path
            .iter()
            .filter_map(NamePart::head)
            .find(is_harmful)
    };
    runs_statement(words, operation)
        .or_else(|| words.id.iter().find_map(NamePart::forced_push))
        .or_else(head)
        .or_else(of_path)
        .or_else(of_texts)
        .or_else(last)
        .or_else(anywhere)
        .or_else(plainly)
        .or_else(behind)
}

/// The verb that says that a POST runs a statement of the caller, which may do anything: "Runs
/// SQL".
fn runs_statement(words: &OperationVerbs, operation: &Operation) -> Option<&'static KnownWord> {
    let mut verbs = words.heads().chain(words.texts.first().copied());
    let runs = verbs.find(|entry| is_word_of("execute exec run", &entry.word))?;
    let names = [operation.id.as_deref(), Some(operation.path.as_str())];
    mentions(names, "sql statement").then_some(runs)
}

/// Returns true if a text has one of the words, in any spelling of names.
fn mentions(texts: [Option<&str>; 2], any: &str) -> bool {
    let mut texts = texts.into_iter().flatten();
    texts.any(|text| words(&snake_case(text)).any(|word| is_word_of(any, word)))
}

/// Returns true if the last segment of the path is a verb rather than a name that begins with one:
/// `/cancel`, `/unlink-customer`, `/deploy-keys`.
fn is_one_verb(words: &OperationVerbs, entry: &KnownWord) -> bool {
    words.action.words.len() == 1 || !entry.is(Meaning::Noun)
}

/// The first of the classes that a word is in, the most dangerous one first.
fn class(entry: &KnownWord) -> Option<Meaning> {
    let classes = [
        Meaning::Destroys,
        Meaning::Changes,
        Meaning::Adds,
        Meaning::Reads,
    ];
    classes.into_iter().find(|class| entry.is(*class))
}

/// Returns true if a word says that a POST adds, starts or reads something.
fn says_that_it_adds(words: &OperationVerbs, operation: &Operation) -> bool {
    let harmless = Meaning::Adds | Meaning::Reads;
    let said = words
        .heads()
        .chain(words.action.head())
        .chain(words.texts.first().copied())
        .chain(words.all());
    let replaces = |entry: &KnownWord| {
        let mut parameters = operation.parameters.iter();
        entry.word == "copy" && parameters.any(|parameter| parameter.name == "force")
    };
    let mut said = said.filter(|entry| entry.is(harmless) && !replaces(entry));
    let adds = words.suffix == "_create" || said.next().is_some();
    adds && changes_in_passing(operation).is_none()
}

/// The verb in the first sentence of a text that says that something may be changed: "Creates an
/// alert or updates an existing one".
fn changes_in_passing(operation: &Operation) -> Option<Reason> {
    let mut joined = joined_verbs(operation);
    let entry = joined.find(|entry| is_word_of(OR_CHANGES, &entry.word))?;
    Some(Reason::Word(&entry.word))
}

/// The verbs behind "or" and "and" in the first sentences of summary and description.
fn joined_verbs(operation: &Operation) -> impl Iterator<Item = &'static KnownWord> {
    let texts = [&operation.summary, &operation.description];
    texts.into_iter().flatten().flat_map(|text| joined_in(text))
}

fn joined_in(text: &str) -> Vec<&'static KnownWord> {
    let sentence = text.split(". ").next().unwrap_or_default();
    let lower = sentence
        .get(..sentence.floor_char_boundary(400))
        .unwrap_or_default()
        .to_lowercase();
    let tokens: Vec<&str> = lower
        .split(|letter: char| !letter.is_alphabetic())
        .filter(|token| !token.is_empty())
        .collect();
    let pairs = tokens.iter().zip(tokens.iter().skip(1));
    pairs
        .filter(|(join, _)| matches!(**join, "or" | "and"))
        .filter_map(|(_, verb)| entry_of_form(verb))
        .collect()
}

/// Copies of data that a GET makes of what there is.
const REPRESENTATIONS: &str = "archive csrf diff html media pdf preview thumbnail zip";
/// Segments that are a thing unless a text says that they are an act.
const THINGS: &str = "archive ban trash";

/// Returns true if the name or the first sentence says what a GET makes of what there is.
fn makes_representation(operation: &Operation) -> bool {
    let text = operation
        .summary
        .as_ref()
        .or(operation.description.as_ref());
    let sentence = text.and_then(|text| text.split(". ").next());
    mentions([operation.id.as_deref(), sentence], REPRESENTATIONS)
}

/// Returns true if the first sentence of a text joins a verb that reads to its first one: "Ignores
/// deleted items and returns the rest".
fn reads_in_passing(operation: &Operation) -> bool {
    joined_verbs(operation).any(|entry| class(entry) == Some(Meaning::Reads))
}

/// The word that says that a method acts which is safe by its definition (RFC 9110 section 9.2.1).
fn read_harm(
    words: &OperationVerbs,
    operation: &Operation,
    strictness: Strictness,
) -> Option<&'static KnownWord> {
    let is_strict = strictness == Strictness::Strict;
    let changing = Meaning::Destroys | Meaning::Adds | Meaning::Changes;
    let first_text = words.texts.first().copied();
    let texts_read = first_text.is_some_and(|entry| class(entry) == Some(Meaning::Reads))
        || first_text.is_some_and(|entry| entry.word == "ignore") && reads_in_passing(operation);
    let makes = first_text
        .into_iter()
        .chain(words.heads())
        .any(|entry| entry.word == "create" || entry.word == "generate");
    let acts = |entry: &KnownWord| {
        if entry.is(Meaning::SignsIn) {
            is_strict
        } else {
            entry.is(Meaning::ActsInRead | Meaning::Destroys)
        }
    };
    let is_sure = |entry: &KnownWord| !entry.is(Meaning::Noun);
    // `/invites/{code}` is an invitation, and `preview_prune` a preview.
    let is_thing = |entry: &KnownWord| {
        let mut things = words.path.things.iter();
        words.path.is_followed && things.any(|thing| thing.word == entry.word)
    };
    let head = words.heads().next();
    let says_read = |entry: &KnownWord| entry.is(Meaning::SaysRead);
    let is_computed = head.is_some_and(|entry| {
        is_sure(entry) && class(entry) == Some(Meaning::Reads) && !says_read(entry)
    });
    let is_of_thing = head.is_some_and(|entry| !is_sure(entry) && is_thing(entry));
    let in_path = words.action.words.iter().copied().flatten();
    let reads = ["_list", "_retrieve", "_read"].contains(&words.suffix)
        || words.all().any(says_read)
        || is_computed
        || words.id.is_empty() && in_path.clone().any(says_read);
    if is_of_thing || makes && makes_representation(operation) {
        return None;
    }
    let may_be_thing =
        |entry: &KnownWord| is_word_of(THINGS, &entry.word) && !first_text.is_some_and(acts);
    let named = || {
        let mut heads = words.heads().filter(|_| !reads);
        heads.find(|entry| acts(entry) && (is_sure(entry) || !texts_read))
    };
    let joined = || {
        let mut joined = words.id.iter().flat_map(NamePart::joined);
        joined.find(|entry| entry.is(changing) && is_sure(entry))
    };
    let of_path = || {
        let head = words.action.head().filter(|_| !reads && !texts_read)?;
        let may_act = acts(head) && is_one_verb(words, head) && !may_be_thing(head);
        (may_act && (!words.path.is_followed || is_sure(head))).then_some(head)
    };
    let of_texts = || {
        let is_named = words.heads().next().is_some();
        first_text.filter(|entry| {
            acts(entry)
                && is_sure(entry)
                && !is_named
                && !reads
                && !texts_read
                && (is_strict || entry.is(Meaning::Destroys))
        })
    };
    // `serverTerminate`: the verb may come last, and is a noun behind a preposition.
    let last = || {
        let of_path = Some(&words.action).filter(|_| words.id.is_empty());
        let parts = words.id.iter().chain(of_path);
        let long = parts.filter(|part| part.words.len() > 1);
        let mut last = long.filter_map(NamePart::free_last);
        let last = last.find(|entry| acts(entry) && is_sure(entry))?;
        let excused = if is_strict {
            texts_read || is_computed || reads && !last.is(Meaning::Destroys)
        } else {
            reads || texts_read
        };
        (!excused).then_some(last)
    };
    let segment = || {
        let mut segments = words.path.segments.iter().copied();
        let act = segments
            .find(|entry| entry.is(Meaning::Destroys | Meaning::SignsIn) && is_sure(entry))?;
        let ends_in_read = !words.path.is_followed && in_path.clone().any(says_read);
        let is_excused =
            reads && (act.is(Meaning::Adds) || texts_read || is_computed || ends_in_read);
        (is_strict && !is_excused && !may_be_thing(act)).then_some(act)
    };
    let behind = || {
        let mut heads = words.behind_path.iter().filter_map(NamePart::head);
        heads.find(|entry| entry.is(changing))
    };
    named()
        .or_else(joined)
        .or_else(of_path)
        .or_else(of_texts)
        .or_else(last)
        .or_else(segment)
        .or_else(behind)
}
