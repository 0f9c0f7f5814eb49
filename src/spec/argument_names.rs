//! Argument names: property keys that model APIs accept, made from the names in a document.

use foldhash::HashSet;
use sha2::{Digest, Sha256};

use crate::text::hex;

/// The longest property key that every client accepts.
const MAX_ARGUMENT_NAME: usize = 64;

/// Returns `name` as a key that matches `^[a-zA-Z0-9_.-]{1,64}$`: unchanged if it matches already,
/// else with every run of other characters as one underscore (none at the ends), and cut with a
/// stable hash if it is too long.
#[must_use]
pub fn sanitize_argument_name(name: &str) -> String {
    if is_legal(name) {
        return name.to_owned();
    }
    let legal = |character: char| u8::try_from(character).is_ok_and(is_key_byte);
    let words = name.split(|character| !legal(character));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    match words.join("_") {
        // A name that lost everything but a shared stand-in would clash with its like; the hash
        // distinguishes them.
        key if key.is_empty() => shorten_with_hash("argument", name, MAX_ARGUMENT_NAME),
        key if key.len() > MAX_ARGUMENT_NAME => shorten_with_hash(&key, name, MAX_ARGUMENT_NAME),
        key => key,
    }
}

/// Punctuation that distinguishes names, each with the word for it: `DateSent<` is `DateSent_lt`. A
/// sign comes before those that it overlaps.
const SPELLED: &str = "<>ne <=lte >=gte !=ne ==eq <lt >gt =eq !not ~like *any +plus $dollar @at #hash &and |or %percent";

/// `name` as a legal key in which punctuation is written as words, for names that differ in nothing
/// else.
pub(crate) fn spell_argument_name(name: &str) -> String {
    let spelled = SPELLED.split(' ').fold(name.to_owned(), |name, known| {
        let word = known.trim_start_matches(|sign: char| sign.is_ascii_punctuation());
        let sign = known.strip_suffix(word).unwrap_or_default();
        name.replace(sign, &format!(" {word} "))
    });
    sanitize_argument_name(&spelled)
}

/// Returns true if `key` does not show the name of the parameter: letters or comparisons of its
/// `name` are gone, or the key had to give way to a parameter of nearly the same name.
pub(crate) fn loses_information(name: &str, key: &str) -> bool {
    let is_lost = |character: char| {
        (character.is_alphanumeric() && !character.is_ascii()) || "<>=!~".contains(character)
    };
    !is_legal(name) && (name.contains(is_lost) || key != sanitize_argument_name(name))
}

/// Returns true if [`sanitize_argument_name`] leaves `name` as it is.
pub(crate) fn is_legal(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_ARGUMENT_NAME && name.bytes().all(is_key_byte)
}

fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

/// The first characters of `text` and a hash of `whole`, together at most `max_bytes` bytes. `text`
/// is ASCII.
pub(crate) fn shorten_with_hash(text: &str, whole: &str, max_bytes: usize) -> String {
    let tail = hash(whole);
    let room = max_bytes.saturating_sub(tail.len() + 1);
    let head: String = text.chars().take(room).collect();
    format!("{}_{tail}", head.trim_end_matches(['_', '-', '.']))
}

/// Six hexadecimal digits that depend on nothing but `text`.
pub(crate) fn hash(text: &str) -> String {
    hex(Sha256::digest(text.as_bytes()).get(..3).unwrap_or_default())
}

/// `key`, or the first of `key_suffix`, `key_suffix_2`, … that `taken` does not hold; the answer is
/// taken then.
pub(crate) fn claim(taken: &mut HashSet<String>, key: &str, suffix: &str) -> String {
    let candidates = std::iter::once(key.to_owned())
        .chain(std::iter::once_with(|| format!("{key}_{suffix}")))
        .chain((2_usize..).map(|number| format!("{key}_{suffix}_{number}")));
    let mut short = candidates.map(|candidate| match candidate.len() {
        ..=MAX_ARGUMENT_NAME => candidate,
        _ => shorten_with_hash(&candidate, &candidate, MAX_ARGUMENT_NAME),
    });
    let free = short.find(|candidate| taken.insert(candidate.clone()));
    free.unwrap_or_else(|| key.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_stay_readable() {
        for (name, expected) in [
            ("limit", "limit"),
            ("$top", "top"),
            ("filter[id]", "filter_id"),
            ("ids[]", "ids"),
            ("@type", "type"),
            ("user name", "user_name"),
            ("naïve", "na_ve"),
            ("a.b-c_d", "a.b-c_d"),
        ] {
            assert_eq!(sanitize_argument_name(name), expected);
        }
        assert_ne!(
            sanitize_argument_name("日本"),
            sanitize_argument_name("中国")
        );
    }

    #[test]
    fn punctuation_is_spelled_where_names_differ_in_nothing_else() {
        for (name, expected) in [
            ("DateSent<", "DateSent_lt"),
            ("DateSent>", "DateSent_gt"),
            ("DateSent>=", "DateSent_gte"),
            ("a<=b", "a_lte_b"),
            ("!active", "not_active"),
            ("$top", "dollar_top"),
            ("filter[id]", "filter_id"),
            ("limit", "limit"),
        ] {
            assert_eq!(spell_argument_name(name), expected);
        }
        for (name, key, expected) in [
            ("DateSent<", "DateSent_lt", true),
            ("DateSent>", "DateSent", true),
            ("na\u{ef}ve", "na_ve", true),
            ("filter[id]", "filter_id_query", true),
            ("filter[id]", "filter_id", false),
            ("$top", "top", false),
            ("id", "id_query", false),
        ] {
            assert_eq!(loses_information(name, key), expected, "{name} {key}");
        }
    }

    #[test]
    fn a_taken_key_gets_its_location_and_then_a_number() {
        let mut taken = HashSet::default();
        let claimed: Vec<_> = ["path", "query", "query"]
            .iter()
            .map(|location| claim(&mut taken, "id", location))
            .collect();
        assert_eq!(claimed, ["id", "id_query", "id_query_2"]);
    }

    proptest! {
        #[test]
        fn every_name_becomes_a_legal_key(name in ".*") {
            let key = sanitize_argument_name(&name);
            prop_assert!((1..=64).contains(&key.len()));
            prop_assert!(key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte)));
            prop_assert_eq!(&sanitize_argument_name(&key), &key);
        }
    }
}
