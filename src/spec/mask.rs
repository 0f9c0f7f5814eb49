//! Masks: kinds of values that no result shows, and where a text holds one.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use memchr::memmem;
use regex::Regex;
use schemars::JsonSchema;
use serde::Deserialize;

/// Number of times that a text is searched: without a match, another one may begin.
const MAX_PASSES: usize = 8;

/// A local part, and a domain whose last label is no number.
const EMAIL: &str = r"\w[\w.+%'-]*@(?:[\w-]+\.)+\p{L}[\w-]+";
/// JWS with three parts, or JWE with five (RFC 7515 section 7.1, RFC 7516 section 7.1), whose header
/// begins with `{"`.
const JWT: &str = r"eyJ[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*){2}(?:(?:\.[A-Za-z0-9_-]*){2})?";

/// A kind of value that no result shows.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "MaskKeys")]
pub struct Mask {
    /// The name that replaces a value, in brackets.
    pub name: Arc<str>,
    values: MaskedValues,
}

/// A mask as a rule names it.
#[derive(Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected email, card, iban, jwt, or a mapping such as { name: order, pattern: \"ORD-[0-9]{8}\" }"
)]
pub(crate) enum MaskKeys {
    Known(KnownMask),
    Own(OwnMask),
}

/// A mask that needs no pattern.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum KnownMask {
    Email,
    Card,
    Iban,
    Jwt,
}

/// A mask with a pattern.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OwnMask {
    /// The name that replaces a match, in brackets
    name: String,
    /// A regular expression, without look-around and back-references
    pattern: String,
}

impl TryFrom<MaskKeys> for Mask {
    type Error = String;

    fn try_from(keys: MaskKeys) -> Result<Self, String> {
        let (name, values) = match keys {
            MaskKeys::Own(own) => return Self::of_pattern(&own.name, &own.pattern),
            MaskKeys::Known(KnownMask::Email) => return Self::of_pattern("email", EMAIL),
            MaskKeys::Known(KnownMask::Jwt) => return Self::of_pattern("jwt", JWT),
            MaskKeys::Known(KnownMask::Card) => ("card".into(), MaskedValues::Card),
            MaskKeys::Known(KnownMask::Iban) => ("iban".into(), MaskedValues::Iban),
        };
        Ok(Self { name, values })
    }
}

/// Values of one kind.
#[derive(Debug, Clone)]
enum MaskedValues {
    /// Numbers of payment cards (ISO/IEC 7812), with the check digit of Luhn.
    Card,
    /// Numbers of bank accounts (ISO 13616), with check digits by ISO 7064.
    Iban,
    /// Matches of a pattern.
    Pattern(Regex),
}

impl PartialEq for Mask {
    fn eq(&self, other: &Self) -> bool {
        let pattern = |mask: &Self| match &mask.values {
            MaskedValues::Pattern(regex) => Some(regex.as_str().to_owned()),
            _ => None,
        };
        self.name == other.name && pattern(self) == pattern(other)
    }
}

impl Eq for Mask {}

impl Mask {
    /// Makes a mask of a pattern.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the name or the pattern.
    pub fn of_pattern(name: &str, pattern: &str) -> Result<Self, String> {
        if name.len() > 32
            || !name.starts_with(|first: char| first.is_ascii_lowercase())
            || !name
                .bytes()
                .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'))
        {
            return Err(
                "a name has 1 to 32 small letters, digits, `_` and `-`, and begins with a letter"
                    .into(),
            );
        }
        let regex = Regex::new(pattern).map_err(|error| {
            let error = error.to_string();
            let why = error.rsplit("error: ").next().unwrap_or_default().trim();
            format!("the pattern cannot be used: {why}")
        })?;
        // A boundary matches nothing as well, but only beside a character.
        let matches_empty = |text| regex.find_iter(text).any(|found| found.is_empty());
        if matches_empty("") || matches_empty(" a ") {
            return Err("the pattern matches the empty text".into());
        }
        let (name, values) = (name.into(), MaskedValues::Pattern(regex));
        Ok(Self { name, values })
    }

    /// Returns the places of values in a text, as indexes of bytes.
    fn places(&self, text: &str) -> Vec<(usize, usize)> {
        match &self.values {
            MaskedValues::Card => grouped(text, &CARD),
            MaskedValues::Iban => grouped(text, &IBAN),
            MaskedValues::Pattern(regex) => {
                let found = regex.find_iter(text).filter(|found| !found.is_empty());
                found.map(|found| (found.start(), found.end())).collect()
            }
        }
    }

    fn mark(&self) -> String {
        format!("[{}]", self.name)
    }
}

/// Returns true if a text holds a value of one of the masks.
#[cfg(test)]
pub(crate) fn has_masked(masks: &[Mask], text: &str) -> bool {
    masks.iter().any(|mask| !mask.places(text).is_empty())
}

/// Returns the text with a mark in place of each value, and the number of values of each name;
/// `None` if it holds none.
pub(crate) fn masked(masks: &[Mask], text: &str) -> Option<(String, BTreeMap<Arc<str>, u64>)> {
    let mut counts = BTreeMap::new();
    let mut clean = masked_once(masks, text, &mut counts)?;
    for _ in 0..MAX_PASSES {
        match masked_once(masks, &clean, &mut counts) {
            Some(cleaner) => clean = cleaner,
            None => return Some((clean, counts)),
        }
    }
    Some((masks.first()?.mark(), counts))
}

fn masked_once(masks: &[Mask], text: &str, counts: &mut BTreeMap<Arc<str>, u64>) -> Option<String> {
    let mut found: Vec<((usize, usize), &Mask)> = Vec::new();
    for mask in masks {
        found.extend(mask.places(text).into_iter().map(|place| (place, mask)));
    }
    if found.is_empty() {
        return None;
    }
    // A mark is no value, even if a pattern matches a part of it.
    let marks: Vec<String> = masks.iter().map(Mask::mark).collect();
    let is_in_mark = |start: usize, end: usize| {
        marks.iter().any(|mark| {
            let around = end.saturating_sub(mark.len())..(start + mark.len()).min(text.len());
            let around = text.as_bytes().get(around).unwrap_or_default();
            memmem::find(around, mark.as_bytes()).is_some()
        })
    };
    found.retain(|((start, end), _)| !is_in_mark(*start, *end));
    found.sort_by_key(|((start, end), _)| (*start, Reverse(*end)));
    let (mut clean, mut from) = (String::new(), 0);
    for &((start, end), mask) in &found {
        if start >= from {
            clean.push_str(text.get(from..start).unwrap_or_default());
            clean.push_str(&mask.mark());
            *counts.entry(Arc::clone(&mask.name)).or_default() += 1;
        }
        from = from.max(end);
    }
    clean.push_str(text.get(from..).unwrap_or_default());
    (!found.is_empty()).then_some(clean)
}

/// A number with check digits, of characters that may be in groups.
struct CheckedNumber {
    is_part: fn(u8) -> bool,
    /// Returns true if a number can begin with that group, before which the text is.
    begins: fn(&[u8], &[u8]) -> bool,
    /// Number of characters of each group but the last.
    min_group: usize,
    length: RangeInclusive<usize>,
    is_valid: fn(&[u8]) -> bool,
}

const CARD: CheckedNumber = CheckedNumber {
    is_part: |byte| byte.is_ascii_digit(),
    // No card begins with 0 or 1, and times in milliseconds do. Digits behind a point are those of
    // a fraction.
    begins: |before, group| {
        group.len() >= 4
            && matches!(group.first(), Some(b'2'..=b'9'))
            && !matches!(before, [.., b'0'..=b'9', b'.'])
    },
    min_group: 3,
    length: 13..=19,
    is_valid: has_luhn_digit,
};

const IBAN: CheckedNumber = CheckedNumber {
    is_part: |byte| byte.is_ascii_alphanumeric(),
    begins: |_, group| match group {
        [first, second, third, fourth, ..] => {
            first.is_ascii_alphabetic()
                && second.is_ascii_alphabetic()
                && third.is_ascii_digit()
                && fourth.is_ascii_digit()
        }
        _ => false,
    },
    min_group: 4,
    length: 15..=34,
    is_valid: has_mod_97_digits,
};

/// Returns the places of numbers, each as long as possible. Groups are separated by one space or
/// hyphen. This takes linear time, because a number has few characters.
fn grouped(text: &str, number: &CheckedNumber) -> Vec<(usize, usize)> {
    let text = text.as_bytes();
    let is_part = |at: usize| text.get(at).is_some_and(|byte| (number.is_part)(*byte));
    let (mut places, mut at) = (Vec::new(), 0);
    while at < text.len() {
        if !is_part(at) {
            at += 1;
            continue;
        }
        let (before, rest) = text.split_at_checked(at).unwrap_or_default();
        let length = rest
            .iter()
            .position(|byte| !(number.is_part)(*byte))
            .unwrap_or(rest.len());
        let group = rest.get(..length).unwrap_or_default();
        let number_length = Some(number)
            .filter(|number| (number.begins)(before, group))
            .and_then(|number| checked_end(before, rest, number));
        places.extend(number_length.map(|length| (at, at + length)));
        at += number_length.unwrap_or(length);
    }
    places
}

/// Returns the length of the longest valid number that a text begins with. One between letters is
/// a part of a word.
fn checked_end(before: &[u8], text: &[u8], number: &CheckedNumber) -> Option<usize> {
    let is_letter = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphabetic);
    let (mut digits, mut group, mut longest) = (Vec::new(), 0, None);
    let mut at = 0;
    while digits.len() <= *number.length.end() {
        match text.get(at) {
            Some(byte) if (number.is_part)(*byte) => {
                digits.push(*byte);
                group += 1;
            }
            after => {
                let is_in_word = is_letter(before.last()) && is_letter(after);
                if number.length.contains(&digits.len())
                    && !is_in_word
                    && (number.is_valid)(&digits)
                {
                    longest = Some(at);
                }
                let next = text.get(at + 1);
                if group < number.min_group
                    || !matches!(after, Some(b' ' | b'-'))
                    || !next.is_some_and(|byte| (number.is_part)(*byte))
                {
                    break;
                }
                group = 0;
            }
        }
        at += 1;
    }
    longest
}

/// Returns true if the last digit is the check digit of Luhn (ISO/IEC 7812-1 annex B).
fn has_luhn_digit(digits: &[u8]) -> bool {
    let sum = digits.iter().rev().enumerate().map(|(index, digit)| {
        let digit = u32::from(digit - b'0') << (index % 2);
        if digit > 9 { digit - 9 } else { digit }
    });
    sum.sum::<u32>().is_multiple_of(10)
}

/// Returns true if a number has the remainder 1 with its first four characters at its end, and with
/// letters as numbers from 10 (ISO 7064 MOD 97-10).
fn has_mod_97_digits(number: &[u8]) -> bool {
    let (head, rest) = number.split_at_checked(4).unwrap_or_default();
    let values = rest
        .iter()
        .chain(head)
        .map(|byte| char::from(*byte).to_digit(36));
    let remainder = values.flatten().fold(0, |remainder, value| {
        let shifted = if value > 9 {
            remainder * 100
        } else {
            remainder * 10
        };
        (shifted + value) % 97
    });
    remainder == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_masked_and_what_looks_like_them_stays() {
        let masks: Vec<Mask> = ["email", "card", "iban", "jwt"]
            .map(|name| serde_json::from_value(name.into()).unwrap())
            .into();
        for (text, clean) in [
            ("ann@example.org, o'brien+x@a-b.co.uk.", "[email], [email]."),
            ("jörg@müller.de", "[email]"),
            ("root@localhost, pkg@1.2.3, @ann, a@b", ""),
            ("4111111111111111", "[card]"),
            ("4111 1111 1111 1111/3782-822463-10005", "[card]/[card]"),
            ("4111-1111-1111-1111 123", "[card] 123"),
            ("2024 4111111111111111", "2024 [card]"),
            (
                "visa4111111111111111 4222222222222EUR",
                "visa[card] [card]EUR",
            ),
            ("4111111111111112, 411111111111, 41111111111111111111", ""),
            ("4111  1111 1111 1111, 41 11 11 11 11 11 11 11", ""),
            ("1700000000003 0000000000000000", ""),
            ("52.5105105105105100", ""),
            ("a4111111111111111b", ""),
            ("4111111111111111.4111111111111111", "[card].[card]"),
            ("DE89370400440532013000", "[iban]"),
            ("to de89 3704 0044 0532 0130 00 now", "to [iban] now"),
            ("GB29-NWBK-6016-1331-9268-19", "[iban]"),
            ("DE88370400440532013000 xDE89370400440532013000", ""),
            ("eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.", "[jwt]"),
            (
                "Bearer eyJh.eyJz.c2ln; eyJh.eyJz",
                "Bearer [jwt]; eyJh.eyJz",
            ),
            ("[email] [card]", ""),
        ] {
            let found = masked(&masks, text).map(|(clean, _)| clean);
            assert_eq!(found.as_deref().unwrap_or_default(), clean, "{text}");
        }
    }

    #[test]
    fn a_pattern_that_matches_its_own_mark_ends() {
        let mask = |pattern| [Mask::of_pattern("order", pattern).unwrap()];
        let clean = |pattern, text| masked(&mask(pattern), text).map(|(clean, _)| clean);
        assert_eq!(
            clean("[a-z]+", "a 1 b").as_deref(),
            Some("[order] 1 [order]")
        );
        assert_eq!(clean("[a-z]+", "[order]"), None);
        // Each match uncovers another one.
        assert_eq!(clean(r"\ba", &"a".repeat(99)).as_deref(), Some("[order]"));
    }

    #[test]
    fn names_and_patterns_are_checked() {
        for (name, pattern, problem) in [
            ("Order", "x", "small letters"),
            ("", "x", "small letters"),
            ("order", "x*", "matches the empty text"),
            ("order", r"\b", "matches the empty text"),
            ("order", "(?=x)", "look-around"),
            ("order", r"(x)\1", "backreferences are not supported"),
            ("order", "(", "unclosed group"),
        ] {
            let found = Mask::of_pattern(name, pattern).unwrap_err();
            assert!(found.contains(problem) && !found.contains('\n'), "{found}");
        }
    }
}
