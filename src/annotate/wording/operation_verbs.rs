//! The words of an operation, each with what is known of it: of its operationId, of its path, and
//! of its texts.

use std::sync::LazyLock;

use http::Method;
use percent_encoding::percent_decode_str;

use super::lexicon::{KnownWord, Meaning, entry, entry_of_form};
use super::operation_id::{snake_case, without_glue, words};
use crate::spec::Operation;
use crate::spec::operation::template::TemplatePart;
use crate::text::is_word_of;

/// Entry of a word in the lexicon.
pub(super) type Word = Option<&'static KnownWord>;

/// Verbs that names have in one word with what follows.
static GLUED: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let verbs =
        "delete remove purge drop destroy reset revoke cancel terminate restart reboot shutdown
        stop disable kill wipe erase clear unsubscribe uninstall deactivate reject truncate
        abort flush prune evict ban kick expire overwrite update modify replace rename restore";
    verbs.split_whitespace().collect()
});
/// A verb of fewer letters begins many words that have nothing to do with it: `droplet`, `banner`,
/// `stopwatch`.
const MIN_GLUED_LEN: usize = 5;
/// Objects that shorter verbs are written together with: `killall`, `dropwebhook`.
const OBJECTS: &str =
    "all cache container data db instance job member process server service session table
    task user vm webhook worker";
/// The beginnings of nouns that follow a verb in `-e`, whose participle would begin in the same
/// way: `deletedevice`.
const NOUNS_IN_D: &str =
    "dashboard data definition department deployment detail device directory disk doc domain
    draft";
/// A name with more `_` is a sentence, and its capitals begin no parts.
const MAX_PART_SEPARATORS: usize = 2;
/// Number of words of a text that are searched for its verb.
const MAX_FIRST_WORDS: usize = 10;
/// A name as its words.
pub(super) struct NamePart {
    pub(super) words: Vec<Word>,
}

/// The words of an operation.
pub(super) struct OperationVerbs {
    /// Verbs of each part of its operationId, of which `repos/list-for-org` has two, without a
    /// framework's additions.
    pub(super) id: Vec<NamePart>,
    /// The suffix by which a framework says what it does: `_list` of `deployments_list`.
    pub(super) suffix: &'static str,
    /// Verbs of the last literal segment of its path.
    pub(super) action: NamePart,
    pub(super) path: PathWords,
    /// Actions behind the path: `DeleteStack` of `/#Action=DeleteStack`.
    pub(super) behind_path: Vec<NamePart>,
    /// The first verbs of the summary and of the description.
    pub(super) texts: Vec<&'static KnownWord>,
}

impl OperationVerbs {
    pub(super) fn of(operation: &Operation) -> Self {
        let path = PathWords::of(operation);
        let (id, suffix) = id_parts(operation, &path.last);
        let texts = [&operation.summary, &operation.description];
        Self {
            id,
            suffix,
            action: NamePart::of(&path.last),
            path,
            behind_path: behind_path(&operation.path).map(NamePart::of).collect(),
            texts: texts
                .into_iter()
                .flatten()
                .filter_map(|text| first_verb(text))
                .collect(),
        }
    }

    /// Returns true if a part of the operationId consists of that word.
    pub(super) fn is_whole_part(&self, entry: &KnownWord) -> bool {
        self.id.iter().any(|part| {
            part.words.len() == 1 && part.last().is_some_and(|only| only.word == entry.word)
        })
    }

    /// The verbs that parts of the operationId begin with, and those that "and", "or" or "then"
    /// joins to them.
    pub(super) fn heads(&self) -> impl Iterator<Item = &'static KnownWord> {
        self.id
            .iter()
            .flat_map(|part| part.head().into_iter().chain(part.joined()))
    }

    /// All words of the operationId.
    pub(super) fn all(&self) -> impl Iterator<Item = &'static KnownWord> {
        self.id
            .iter()
            .flat_map(|part| part.words.iter().copied().flatten())
    }
}

impl NamePart {
    fn of(name: &str) -> Self {
        let snake = snake_case(name);
        let mut known: Vec<Word> = words(&snake)
            .map(|word| entry(word).or_else(|| entry(without_number(word))))
            .collect();
        // Only the verb at the beginning is looked for in a longer word.
        let first = known
            .iter()
            .take_while(|word| is_before_verb(**word))
            .count()
            .min(known.len().saturating_sub(1));
        if let (Some(slot @ None), Some(word)) = (known.get_mut(first), words(&snake).nth(first)) {
            *slot = glued(word);
        }
        Self { words: known }
    }

    /// The verb that the name begins with, behind words such as `bulk`.
    pub(super) fn head(&self) -> Word {
        let (last, before) = self.words.split_last()?;
        let mut before = before.iter().skip_while(|word| is_before_verb(**word));
        let head = before.next().copied().unwrap_or(*last);
        head.filter(|entry| entry.is_verb())
    }

    /// The verbs behind "and", "or" and "then", unless these join nouns behind a preposition.
    pub(super) fn joined(&self) -> impl Iterator<Item = &'static KnownWord> {
        let is = |word: &Word, meaning: Meaning| word.is_some_and(|entry| entry.is(meaning));
        let pairs = self.words.iter().zip(self.words.iter().skip(1));
        pairs
            .take_while(move |(word, _)| !is(word, Meaning::Preposition))
            .filter(move |(join, _)| is(join, Meaning::Join))
            .filter_map(|(_, next)| *next)
            .filter(|next| next.is_verb())
    }

    /// All words that do not follow a preposition.
    pub(super) fn free(&self) -> impl Iterator<Item = &'static KnownWord> {
        let before = std::iter::once(&None).chain(&self.words);
        let pairs = before.zip(&self.words);
        pairs
            .filter(|(before, _)| !before.is_some_and(|before| before.is(Meaning::Preposition)))
            .filter_map(|(_, word)| *word)
    }

    pub(super) fn last(&self) -> Word {
        self.words.last().copied().flatten()
    }

    /// The last word, unless it follows a preposition.
    pub(super) fn free_last(&self) -> Word {
        let before = self.words.iter().rev().nth(1).copied().flatten();
        self.last()
            .filter(|_| !before.is_some_and(|before| before.is(Meaning::Preposition)))
    }

    /// The verb of `forcePush`, which replaces what is there.
    pub(super) fn forced_push(&self) -> Word {
        let is = |word: &Word, text: &str| word.is_some_and(|entry| entry.word == text);
        let mut pairs = self.words.iter().zip(self.words.iter().skip(1));
        let pair = pairs.find(|(first, second)| is(first, "force") && is(second, "push"))?;
        *pair.1
    }
}

/// A word without the number at its end: `kill` of `kill2`.
fn without_number(word: &str) -> &str {
    word.trim_end_matches(|last: char| last.is_ascii_digit())
}

fn is_before_verb(word: Word) -> bool {
    word.is_some_and(|entry| entry.is(Meaning::BeforeVerb))
}

/// The words of a path.
#[derive(Default)]
pub(super) struct PathWords {
    /// The last literal segment.
    last: String,
    /// True if that does not end the path, and so is not a verb: `/stops/{id}` names a thing.
    pub(super) is_followed: bool,
    /// True if it follows a variable: `/orders/{id}/cancel`.
    pub(super) follows_variable: bool,
    /// The literal segments that are one word.
    pub(super) segments: Vec<&'static KnownWord>,
    /// The words whose plural is a segment, which names things: `/invites/{code}`.
    pub(super) things: Vec<&'static KnownWord>,
    /// A word that harms, at any position.
    pub(super) harm: Word,
}

impl PathWords {
    fn of(operation: &Operation) -> Self {
        let mut path = Self::default();
        for (index, parts) in operation.template.segments.iter().enumerate().rev() {
            let literals = parts.iter().filter_map(|part| match part {
                TemplatePart::Literal(text) => Some(text.as_str()),
                TemplatePart::Variable(_) => None,
            });
            let text = literals.collect::<Vec<_>>().join(" ");
            let has_variable = parts.iter().any(is_variable);
            if text.trim().is_empty() {
                path.is_followed |= has_variable && path.last.is_empty();
                continue;
            }
            let text = percent_decode_str(&text).decode_utf8_lossy();
            path.things.extend(text.strip_suffix('s').and_then(entry));
            let known = NamePart::of(&text).words;
            if let (false, [Some(only)]) = (has_variable, known.as_slice()) {
                path.segments.push(only);
            }
            let mut known = known.into_iter().flatten();
            path.harm = path
                .harm
                .or_else(|| known.find(|entry| entry.is(Meaning::Harms)));
            if path.last.is_empty() {
                let before = index
                    .checked_sub(1)
                    .and_then(|before| operation.template.segments.get(before));
                path.follows_variable = has_variable
                    || before.is_some_and(|parts| match parts.as_slice() {
                        [TemplatePart::Literal(text)] => {
                            is_word_of("action actions", &text.to_ascii_lowercase())
                        }
                        parts => parts.iter().any(is_variable),
                    });
                // `{id}:delete` and `orders:cancel` end with a verb as well, and so does
                // `update.json`.
                let action = text.rsplit(':').next().unwrap_or(&text);
                let action = [".json", ".xml"]
                    .iter()
                    .find_map(|format| action.strip_suffix(format))
                    .unwrap_or(action);
                action.clone_into(&mut path.last);
            }
        }
        path
    }
}

fn is_variable(part: &TemplatePart) -> bool {
    matches!(part, TemplatePart::Variable(_))
}

/// The parts of the operationId without the suffix by which a framework says what the operation
/// does, and that suffix.
fn id_parts(operation: &Operation, last_segment: &str) -> (Vec<NamePart>, &'static str) {
    let Some(id) = operation.id.as_deref() else {
        return (Vec::new(), "");
    };
    let mut id = without_glue(id, &operation.method, &operation.path);
    let mut suffix = "";
    // Django REST framework names an operation by its path and what its method does most often:
    // `tasks_reject_create`.
    let usual = "_create _list _retrieve _read _update _partial_update _destroy _delete";
    let mut endings = usual.split(' ');
    let letters = |name: &str| snake_case(name).replace('_', "");
    if let Some((rest, ending)) =
        endings.find_map(|ending| Some((id.strip_suffix(ending)?, ending)))
        && !last_segment.is_empty()
        && letters(rest).ends_with(&letters(last_segment))
    {
        suffix = ending;
        id = rest;
    }
    let is_post = operation.method == Method::POST;
    let parts = name_parts(id).into_iter();
    let parts = parts.map(|part| NamePart::of(if is_post { without_post(part) } else { part }));
    (
        parts.filter(|part| !part.words.is_empty()).collect(),
        suffix,
    )
}

/// The parts of an operationId: `pets/delete`, `Pets_Delete` and `PetsController_delete` have two,
/// `delete_pets` and `Delete_All_My_Pets` one.
fn name_parts(id: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for section in id.split(['/', '.', ':', '#']) {
        let mut start = 0;
        let count = section.matches('_').count();
        let is_group = count == 1 && begins_with_capital(Some(section));
        let separators = section
            .match_indices('_')
            .map(|(at, _)| at)
            .filter(|_| count <= MAX_PART_SEPARATORS);
        for at in separators.filter(|at| is_group || begins_with_capital(section.get(at + 1..))) {
            parts.extend(section.get(start..at));
            start = at + 1;
        }
        parts.extend(section.get(start..));
    }
    parts
}

fn begins_with_capital(text: Option<&str>) -> bool {
    text.is_some_and(|text| text.starts_with(|first: char| first.is_ascii_uppercase()))
}

/// The part of a name behind or before the method, as in `PostInvoices`, `postV3Keys` and
/// `SavePost`.
fn without_post(part: &str) -> &str {
    let mut posts = ["post", "Post", "POST"].iter();
    let front = posts.find_map(|post| part.strip_prefix(post));
    let is_end = |first: char| first.is_ascii_uppercase() || "_-".contains(first);
    let front = front.filter(|rest| rest.starts_with(is_end));
    front
        .or_else(|| part.strip_suffix("Post").or(part.strip_suffix("POST")))
        .unwrap_or(part)
}

/// The values in the query or the fragment that a document writes into a path: `DeleteStack` of
/// `/#Action=DeleteStack`.
fn behind_path(path: &str) -> impl Iterator<Item = &str> {
    let start = path.find(['?', '#']).unwrap_or(path.len());
    let pairs = path.get(start..).unwrap_or_default().split(['?', '#', '&']);
    pairs
        .map(|pair| pair.split_once('=').map_or(pair, |(_, value)| value))
        .filter(|value| !value.is_empty())
}

/// The verb that a text begins with: `Deletes a pet`, `This method can be used to delete a pet`,
/// `Pets - Delete a pet`; in its first paragraph.
fn first_verb(text: &str) -> Word {
    let heading = text.split(".\n").next().unwrap_or_default();
    let behind = |separator: &str| verb_of(heading.split_once(separator)?.1);
    verb_of(text)
        .or_else(|| behind(" - "))
        .or_else(|| behind(": "))
}

fn verb_of(text: &str) -> Word {
    let is_letter = |character: char| character.is_alphabetic() || character == '\'';
    let tokens = text
        .split(|character: char| !is_letter(character))
        .filter(|token| !token.is_empty());
    let is_skipped = |token: &&str| {
        // A method, as in `POST route optimization`.
        let is_method = token.len() > 1 && token.chars().all(|letter| letter.is_ascii_uppercase());
        let known = entry(&token.to_lowercase());
        is_method || known.is_some_and(|entry| entry.is(Meaning::BeforeText))
    };
    let word = tokens
        .take(MAX_FIRST_WORDS)
        .find(|token| !is_skipped(token))?;
    let word = word.to_lowercase();
    entry_of_form(&word)
        .or_else(|| glued(&word))
        .filter(|entry| entry.is_verb())
}

/// Returns the verb that a word begins with, if it is written together with its object: `killall`,
/// `deleteuser`, `updatelabels`.
fn glued(word: &str) -> Word {
    let begins = |verb: &&str| {
        let Some(rest) = word.strip_prefix(verb) else {
            return false;
        };
        if verb.len() < MIN_GLUED_LEN {
            begins_with(rest, OBJECTS)
        } else {
            !is_inflected(verb, rest)
        }
    };
    GLUED.iter().copied().find(begins).and_then(entry)
}

/// Returns true if a text begins with one of the words of a list.
fn begins_with(text: &str, words: &str) -> bool {
    words.split_whitespace().any(|word| text.starts_with(word))
}

/// Returns true if a verb and the text after it are a form of that verb, or a noun made of it,
/// alone or before another noun: `deleted`, `cancellations`, `expiredkeys`.
fn is_inflected(verb: &str, rest: &str) -> bool {
    if rest.is_empty() || is_word_of("s r er rs ers able ment ments", rest) {
        return true;
    }
    if verb.ends_with('e') {
        return rest.starts_with('d') && !begins_with(rest, NOUNS_IN_D);
    }
    // A final consonant may be doubled: `cancelled`.
    let last = verb.get(verb.len() - 1..).unwrap_or_default();
    let rest = rest.strip_prefix(last).unwrap_or(rest);
    begins_with(rest, "ed ing ion ation ance")
}
