//! Text on its way to a model or to the log: cleaned of what a person would not see, cut to a size,
//! put into one line.

use std::error::Error;

/// The longest description, in bytes, that every client reads whole.
pub(crate) const MAX_DESCRIPTION_BYTES: usize = 2048;

/// A token of JSON takes at least about so many bytes: for limits in tokens, which must hold.
pub(crate) const MIN_BYTES_PER_TOKEN: usize = 3;

/// A token of JSON takes about so many bytes: for estimates.
pub(crate) const TYPICAL_BYTES_PER_TOKEN: usize = 4;

/// Drops control characters (but newline and tab) and characters that are not shown (Unicode,
/// `Default_Ignorable_Code_Point`): nothing a reader would miss, everything a text could hide
/// instructions in. Zero-width joiners stay, because scripts and emoji need them, and a variation
/// selector behind an emoji. A separator of lines becomes a newline.
pub(crate) fn clean(text: &str) -> String {
    // Nearly every text is clean already, and is then copied at once.
    if has_hidden_characters(text) {
        let shown = with_previous(text).filter_map(|(previous, character)| match character {
            '\u{2028}' | '\u{2029}' => Some('\n'),
            character => (!is_hidden(character, previous)).then_some(character),
        });
        return shown.collect::<String>().trim().to_owned();
    }
    text.trim().to_owned()
}

/// Returns true if a text holds characters that are invisible to a reader; see [`clean`].
pub(crate) fn has_hidden_characters(text: &str) -> bool {
    // Nearly every byte of nearly every text is plain; a block is judged as a whole, without a
    // branch for each byte.
    let is_odd = |byte: u8| !(0x20..0x7f).contains(&byte) && byte != b'\n' && byte != b'\t';
    text.as_bytes()
        .chunks(64)
        .any(|block: &[u8]| block.iter().fold(false, |odd, byte| odd | is_odd(*byte)))
        && with_previous(text).any(|(previous, character)| is_hidden(character, previous))
}

/// The characters of a text, each with the one before it.
fn with_previous(text: &str) -> impl Iterator<Item = (Option<char>, char)> {
    let previous = std::iter::once(None).chain(text.chars().map(Some));
    previous.zip(text.chars())
}

/// [`clean`], with every run of white space as one space.
pub(crate) fn one_line(text: &str) -> String {
    let plain = text
        .bytes()
        .all(|byte| byte.is_ascii_graphic() || byte == b' ');
    if plain && !text.starts_with(' ') && !text.ends_with(' ') && !text.contains("  ") {
        return text.to_owned();
    }
    clean(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns true if a word is in a list of words with spaces between them.
pub(crate) fn is_word_of(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == word)
}

/// Writes a number and its noun, in the plural if there is not exactly one: `1 tool`, `2 tools`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

/// The causes of an error, from the nearest to the deepest.
pub(crate) fn error_causes<'e>(
    error: &'e (dyn Error + 'static),
) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(error.source(), |cause| (*cause).source())
}

/// An error and its causes, for a line of the log. A cause that its error repeats already is
/// written once.
pub(crate) fn error_in_a_line(error: &(dyn Error + 'static)) -> String {
    let mut line = error.to_string().replace('\n', "; ");
    for cause in error_causes(error) {
        let cause = cause.to_string().replace('\n', "; ");
        if !line.ends_with(&cause) {
            line = format!("{line}: {cause}");
        }
    }
    line
}

/// The longest name that another one is suggested for, in bytes: comparing takes time in proportion
/// to both.
pub(crate) const MAX_LIKENED_BYTES: usize = 128;

/// Returns the candidate most similar to `name`, if its similarity is above `least` (Jaro-Winkler,
/// 0 to 1, without case). A name of more than 128 bytes is similar to none.
pub(crate) fn nearest<'c>(
    name: &str,
    candidates: impl IntoIterator<Item = &'c str>,
    least: f64,
) -> Option<&'c str> {
    if name.len() > MAX_LIKENED_BYTES {
        return None;
    }
    let folded = name.to_lowercase();
    let score = |candidate: &str| strsim::jaro_winkler(&candidate.to_lowercase(), &folded);
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= MAX_LIKENED_BYTES)
        .map(|candidate| (score(candidate), candidate))
        .filter(|(score, _)| *score > least)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// Returns at most `max_bytes` bytes of `text`: cut after a sentence, else after a word, and marked
/// with `…`.
pub(crate) fn truncate(text: &str, max_bytes: usize) -> String {
    const MARK: &str = "…";
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let room = text.floor_char_boundary(max_bytes.saturating_sub(MARK.len() + 1));
    let head = text.get(..room).unwrap_or_default();
    // A sentence end in the second half keeps most of the text; an earlier one would lose too much.
    let is_late = |end: &usize| *end > room / 2;
    let sentence = head
        .rfind(['.', '!', '?', '\n'])
        .map(|at| at + 1)
        .filter(is_late);
    let space = if sentence.is_some() { " " } else { "" };
    let end = sentence
        .or_else(|| head.rfind(char::is_whitespace).filter(is_late))
        .unwrap_or(room);
    let head = head.get(..end).unwrap_or_default().trim_end();
    format!("{head}{space}{MARK}")
}

/// A name as words: `petId` → `Pet id`, `X-Request-ID` → `X request id`; a name without letters
/// stays as it is.
pub(crate) fn spelled(name: &str) -> String {
    use heck::ToTitleCase as _;
    let words = one_line(&name.to_title_case().to_lowercase());
    let mut characters = words.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => one_line(name),
    }
}

fn is_hidden(character: char, previous: Option<char>) -> bool {
    match character {
        '\u{fe0e}' | '\u{fe0f}' => !previous.is_some_and(may_be_emoji),
        character => matches!(character,
            '\u{0}'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}'
            | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'),
    }
}

/// Returns true if a character is one that a variation selector shows as an emoji, or as text:
/// keycaps, symbols and pictographs.
fn may_be_emoji(character: char) -> bool {
    matches!(character, '#' | '*' | '0'..='9' | '\u{a9}' | '\u{ae}' | '\u{203c}'..='\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

/// Words of a title that say nothing about an API; a number behind one is its version.
const WORDS_OF_NO_API: &str = "official openapi swagger spec specification api apis rest the s";

/// Returns a name of lower-case ASCII words from a title, joined by `-` and cut between words, at
/// most `max_bytes` bytes long: `github-v3` for `GitHub v3 REST API`. Only a first word that is
/// longer by itself is cut.
pub(crate) fn name_from_title(title: &str, max_bytes: usize) -> String {
    let title = title.to_ascii_lowercase();
    let words = || {
        title
            .split(|character: char| !character.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
    };
    let mut is_behind_dropped = false;
    let named = words().filter(|word| {
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        is_behind_dropped = is_word_of(WORDS_OF_NO_API, word) || (is_behind_dropped && is_number);
        !is_behind_dropped
    });
    let mut kept: Vec<&str> = named.collect();
    if kept.is_empty() {
        kept.extend(words().next());
    }
    let mut name = String::new();
    for word in kept {
        if name.is_empty() {
            name.push_str(word.get(..max_bytes).unwrap_or(word));
        } else if name.len() + 1 + word.len() <= max_bytes {
            name.extend(["-", word]);
        } else {
            break;
        }
    }
    if name.is_empty() {
        "api".to_owned()
    } else {
        name
    }
}

/// One word of a POSIX shell (POSIX.1-2024 XCU section 2.2.2): inside single quotes nothing means
/// anything.
pub(crate) fn shell_word(text: &str) -> String {
    if !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_./:=@".contains(&byte))
    {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Hexadecimal digits, in lower case.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    digits
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

/// A random identifier: 128 bits in hexadecimal digits.
pub(crate) fn random_id() -> String {
    let mut bytes = [0; 16];
    // Without randomness, all identifiers are the same.
    let _ = getrandom::fill(&mut bytes);
    hex(&bytes)
}

/// The letters and digits of a name in lower case: names with the same letters are the same to a
/// model.
pub(crate) fn letters(name: &str) -> String {
    name.chars()
        .filter(|character| character.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// The characters of a text, those equal that some decoders of JSON take for one another: Go's
/// folds U+017F to `s` and U+212A to `k`.
pub(crate) fn without_case(text: &str) -> impl Iterator<Item = char> {
    text.chars()
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_dropped_and_scripts_are_not() {
        assert_eq!(
            clean("a\u{200b}b\u{202e}c\u{e0041}d\u{7}\r\n e\t👩\u{200d}👩 "),
            "abcd\n e\t👩\u{200d}👩"
        );
        // A selector behind an emoji shows; others, and more of them, carry bytes that no reader
        // sees.
        assert_eq!(
            clean("\u{2764}\u{fe0f}\u{fe0f}\u{fe01} a\u{fe0f}\u{e0101}b"),
            "\u{2764}\u{fe0f} ab"
        );
        assert_eq!(clean("a\u{2028}b\u{3164}c\u{ffa0}\u{1160}"), "a\nbc");
        assert_eq!(one_line("a\u{2029}b"), "a b");
    }

    #[test]
    fn names_are_made_of_the_words_of_a_title_that_name_the_api() {
        for (title, max_bytes, name) in [
            ("GitHub v3 REST API", 32, "github-v3"),
            ("GitHub v3 REST API", 8, "github"),
            ("Swagger Petstore - OpenAPI 3.0", 32, "petstore"),
            ("Kubernetes", 9, "kubernete"),
            (
                "The Stripe API: payments, refunds and subscriptions",
                32,
                "stripe-payments-refunds-and",
            ),
            ("OpenAPI", 32, "openapi"),
            ("Petstore 3", 32, "petstore-3"),
            ("Größe", 32, "gr-e"),
            ("宠物", 32, "api"),
        ] {
            assert_eq!(name_from_title(title, max_bytes), name, "{title}");
        }
    }

    #[test]
    fn long_texts_end_at_a_sentence_with_a_mark() {
        let text =
            "First sentence is here. Second sentence is longer. Third one goes on and on and on.";
        assert_eq!(
            truncate(text, 60),
            "First sentence is here. Second sentence is longer. …"
        );
        assert_eq!(truncate("short", 60), "short");
        let long = "é".repeat(3000);
        assert!(truncate(&long, 2048).len() <= 2048);
    }
}
