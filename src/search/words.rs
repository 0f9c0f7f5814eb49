//! The words of a text: split, folded and stemmed, by the same rules in documents and questions; and
//! the vocabulary of an index, in which each distinct word is numbered once.

use std::borrow::Cow;
use std::sync::LazyLock;

use foldhash::{HashMap, HashSet};
use frostem::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization as _;

/// Longer runs of letters are data, such as base64: their beginning counts.
const MAX_WORD_CHARACTERS: usize = 40;

/// Words that say nothing about an operation.
static STOP_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let words = "a about actually after again all already also always am an and another any anymore anyone anything are aren around as
        at be because been before being both but by called can could d did didn do does doesn doing don done each either else
        ever every everyone everything few for from get gets give given gives going had has hasn have haven having he her here
        hers him his how however i if instead into is isn it its itself just let lets like ll long longer m made many may
        maybe me might mine more most much must my named need needs neither never no nobody none nor not nothing now of once
        only onto or other our ours over own owned please re really right s same saying says shall she should show shows since
        so some somebody someone something still such t tell than that the their them then there these they thing things this
        those through till to too under until us ve very via want wants was wasn we were what whatever when where whether
        which while who whole whom whose why will with within without won would yet you your yours";
    words.split_whitespace().collect()
});

/// Words that are part of a verb in `turn on`; elsewhere in a question they say nothing. They are
/// not stop words: names have them.
const PARTICLES: [&str; 5] = ["on", "off", "in", "out", "up"];

/// Returns true if a folded word may be part of a verb.
pub(crate) fn is_particle(word: &str) -> bool {
    PARTICLES.contains(&word)
}

/// Returns true if a folded word has no meaning for an operation.
pub(crate) fn is_stop_word(word: &str) -> bool {
    let is_letter = word.len() == 1 && word.bytes().all(|byte| byte.is_ascii_lowercase());
    is_letter || STOP_WORDS.contains(word)
}

/// Form in which a text writes its words.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writing {
    /// A name: `listPets`.
    Identifier,
    /// Sentences, in which `MySQL` is one word as well as two.
    Prose,
}

/// Shows each word of a text, folded, in order, stop words included; a word of several parts comes
/// in parts.
pub(crate) fn each_word(text: &str, writing: Writing, mut visit: impl FnMut(&str)) {
    // Buffer in which words are folded, so that none needs an allocation of its own.
    let mut folded = String::new();
    for run in runs(text) {
        each_word_of_run(run, writing, &mut folded, &mut visit);
    }
}

/// All words of a text.
pub(crate) fn words_of(text: &str, writing: Writing) -> Vec<String> {
    let mut words = Vec::new();
    each_word(text, writing, |word| words.push(word.to_owned()));
    words
}

/// The first words of a text, of which no more is read than they take.
pub(crate) fn first_words(text: &str, writing: Writing, count: usize) -> Vec<String> {
    let (mut found, mut folded) = (Vec::new(), String::new());
    for run in runs(text) {
        each_word_of_run(run, writing, &mut folded, &mut |word| {
            found.push(word.to_owned());
        });
        if found.len() >= count {
            break;
        }
    }
    found.truncate(count);
    found
}

/// The parts of a text between marks and white space of ASCII.
fn runs(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| character.is_ascii() && !character.is_ascii_alphanumeric())
}

fn each_word_of_run(
    run: &str,
    writing: Writing,
    folded: &mut String,
    visit: &mut impl FnMut(&str),
) {
    if run.is_ascii() {
        each_part(run, writing, folded, visit);
    } else {
        each_word_of_any_script(run, writing, folded, visit);
    }
}

/// Visits words like [`each_word_of_run`], for letters that need more than a comparison to be
/// folded.
fn each_word_of_any_script(
    text: &str,
    writing: Writing,
    folded: &mut String,
    visit: &mut impl FnMut(&str),
) {
    let text = fold_marks(text);
    let mut run = String::new();
    // The last letter of a script without spaces, which forms a pair with the next one.
    let mut last_ideograph: Option<char> = None;
    for character in text.chars() {
        if is_ideograph(character) {
            each_part(&run, writing, folded, visit);
            run.clear();
            let mut single = [0; 4];
            visit(character.encode_utf8(&mut single));
            if let Some(last) = last_ideograph {
                visit(&[last, character].iter().collect::<String>());
            }
            last_ideograph = Some(character);
            continue;
        }
        last_ideograph = None;
        if character.is_alphanumeric() {
            run.push(character);
        } else {
            each_part(&run, writing, folded, visit);
            run.clear();
        }
    }
    each_part(&run, writing, folded, visit);
}

/// A text in compatibility forms without accents (NFKC, marks of Latin, Greek and Cyrillic letters
/// dropped); its case stays.
fn fold_marks(text: &str) -> String {
    let is_accent = |character: &char| ('\u{300}'..='\u{36f}').contains(character);
    text.nfkd()
        .filter(|character| !is_accent(character))
        .nfc()
        .collect()
}

/// Returns true if a letter belongs to a script that writes words without spaces between them.
fn is_ideograph(character: char) -> bool {
    matches!(character,
        '\u{e00}'..='\u{eff}' | '\u{1100}'..='\u{11ff}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3134f}')
        && character.is_alphanumeric()
}

/// The parts of a run of letters and digits: `listPets` is `list` and `pets`, `IPv6` is `ipv` and
/// `ipv6`.
fn each_part(run: &str, writing: Writing, folded: &mut String, visit: &mut impl FnMut(&str)) {
    if run.is_empty() {
        return;
    }
    folded.clear();
    // Most words are of this form, and of one part.
    let is_lower = run.bytes().skip(1).all(|byte| byte.is_ascii_lowercase());
    if is_lower && run.len() <= MAX_WORD_CHARACTERS {
        match run.as_bytes().first() {
            Some(first) if first.is_ascii_lowercase() => return visit(run),
            Some(first) if first.is_ascii_uppercase() => {
                folded.push_str(run);
                folded.make_ascii_lowercase();
                return visit(folded);
            }
            _ => {}
        }
    }
    let mut characters = run.chars().take(MAX_WORD_CHARACTERS).enumerate().peekable();
    let mut before: Option<char> = None;
    // Start of the part that is being read, and the number of parts with it.
    let (mut start, mut parts) = (0, 1);
    while let Some((index, character)) = characters.next() {
        let is_start = before.is_some_and(|before| {
            let next_is_lower = characters
                .peek()
                .is_some_and(|(_, next)| next.is_lowercase());
            character.is_uppercase() && (!before.is_uppercase() || next_is_lower)
        });
        // A single letter at the start belongs to what follows: `OAuth`, `iOS`, `IPv6`.
        let is_first_letter = parts == 1 && index == 1;
        if is_start && !is_first_letter {
            visit_part(folded, start, visit);
            start = folded.len();
            parts += 1;
        }
        folded.extend(character.to_lowercase());
        before = Some(character);
    }
    visit_part(folded, start, visit);
    if writing == Writing::Prose && parts == 2 {
        visit(folded);
    }
}

/// Shows the part that begins at `start`; of one with digits, first its letters.
fn visit_part(folded: &str, start: usize, visit: &mut impl FnMut(&str)) {
    let part = folded.get(start..).unwrap_or_default();
    if part.contains(char::is_numeric) {
        part.split(char::is_numeric)
            .filter(|letters| letters.chars().nth(1).is_some())
            .for_each(&mut *visit);
    }
    visit(part);
}

/// The stem of a folded word; only English is stemmed, so that words of other scripts stay whole.
pub(crate) fn stem(word: &str) -> Cow<'_, str> {
    if word.is_ascii() {
        Stemmer::new(Algorithm::English).stem(word)
    } else {
        Cow::Borrowed(word)
    }
}

/// A stem, by its number.
pub(crate) type Term = u32;

/// The words of a document.
#[derive(Default)]
pub(crate) struct Vocabulary {
    /// Folded words; nothing for stop words.
    words: HashMap<Box<str>, Option<Term>>,
    terms: HashMap<Box<str>, Term>,
}

impl Vocabulary {
    /// Adds the term of each word of a text, in order; stop words have none.
    pub(crate) fn add_terms(&mut self, text: &str, writing: Writing, terms: &mut Vec<Term>) {
        each_word(text, writing, |word| terms.extend(self.term(word)));
    }

    /// The number of each stem.
    pub(crate) fn into_terms(mut self) -> HashMap<Box<str>, Term> {
        self.terms.shrink_to_fit();
        self.terms
    }

    /// The number of the stem of a folded word; none for a stop word.
    pub(crate) fn term(&mut self, word: &str) -> Option<Term> {
        if let Some(known) = self.words.get(word) {
            return *known;
        }
        let term = (!is_stop_word(word)).then(|| {
            let stem = stem(word);
            let next = Term::try_from(self.terms.len()).unwrap_or(Term::MAX);
            match self.terms.get(stem.as_ref()) {
                Some(term) => *term,
                None => *self.terms.entry(stem.into()).or_insert(next),
            }
        });
        self.words.insert(word.into(), term);
        term
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str, writing: Writing) -> String {
        let mut found = Vec::new();
        each_word(text, writing, |word| found.push(word.to_owned()));
        found.join(" ")
    }

    #[test]
    fn words_are_split_where_people_see_a_new_word() {
        for (text, expected) in [
            ("listPets", "list pets listpets"),
            ("HTTPServer_error", "http server httpserver error"),
            ("On GitHub with OAuth", "on git hub github with oauth"),
            ("IPv6 and SHA-256", "ipv ipv6 and sha 256"),
            ("Größe, naïve ＡＢＣ", "große naive abc"),
            ("Улица й", "улица и"),
            ("猫を飼う", "猫 を 猫を 飼 を飼 う 飼う"),
            ("a猫b", "a 猫 b"),
            ("猫-犬 — “Zoë’s” caféBar", "猫 犬 zoe s cafe bar cafebar"),
            ("sha256Sum v10", "sha sha256 sum sha256sum v10"),
            ("\u{202e}x\u{0}y", "x y"),
        ] {
            assert_eq!(words(text, Writing::Prose), expected, "{text}");
        }
        assert_eq!(
            words("createAPet/{petId}", Writing::Identifier),
            "create a pet pet id"
        );
    }

    #[test]
    fn stop_words_are_whole_words() {
        for (word, stops) in [
            ("the", true),
            ("show", true),
            ("th", false),
            ("pets", false),
            ("x", true),
            ("7", false),
            ("猫", false),
        ] {
            assert_eq!(is_stop_word(word), stops, "{word}");
        }
    }
}
