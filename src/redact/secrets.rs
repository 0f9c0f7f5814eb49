//! The secrets in each form in which a reply may contain them, and the replacement of them in a
//! text.
//!
//! The second part decodes the escapes of JSON (RFC 8259 section 7), URLs (RFC 3986 section 2.1) and HTML
//! ("Character references") in a text of unknown format.

use std::collections::BTreeSet;
use std::sync::Arc;

use aho_corasick::AhoCorasick;
use memchr::memmem::Finder;
use memchr::{memchr2_iter, memchr3, memmem};

use crate::json::plain_integer;
use crate::observe;
use crate::outbound::request::{Keep, percent_encode};
use crate::spec::mask::{Mask, has_masked, masked};

/// Text that replaces a secret.
pub(crate) const MARK: &str = "[redacted]";
/// The minimum length of a secret, in bytes: shorter ones occur in unrelated text.
const MIN_SECRET_LEN: usize = 6;
/// The minimum length of a secret that consists of digits: identifiers in replies are short numbers
/// as well.
const MIN_NUMBER_LEN: usize = 12;
/// Number of layers of escapes that are decoded.
const MAX_ESCAPE_DEPTH: usize = 3;
/// Number of times that a text is searched. A mark and the text next to it may form another secret.
const MAX_PASSES: usize = 8;

/// Number of secrets up to which they are looked for one after the other.
const MAX_SINGLE_PASSES: usize = 8;

/// Collects secrets in all their forms.
#[derive(Default)]
pub(crate) struct SecretForms(BTreeSet<Vec<u8>>);

/// Finds secrets.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    all: Vec<Secret>,
    /// Automaton that finds any of them in one pass, if there are so many that one pass for each
    /// would take longer.
    any: Option<AhoCorasick>,
    /// Masks of a rule, which are applied in place of secrets.
    masks: Vec<Mask>,
}

#[derive(Debug)]
struct Secret {
    finder: Finder<'static>,
    /// True if it consists of digits alone.
    is_number: bool,
}

/// Place in which a text was found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextPlace {
    /// Text without known structure: a secret of digits counts only if it is the whole number.
    Text,
    /// A string of JSON, decoded: a secret counts anywhere.
    JsonString,
}

impl SecretForms {
    /// Adds a secret as it is, and as it looks in a URL and in JSON. One that is too short is left
    /// out.
    pub(crate) fn add(&mut self, secret: &[u8]) {
        if !is_long_enough(secret) {
            return;
        }
        if let Ok(text) = std::str::from_utf8(secret) {
            let encoded = percent_encode(text, Keep::Unreserved);
            // A form writes a space as `+`, and may leave other characters as they are (WHATWG URL
            // section 5.1).
            self.insert(encoded.replace("%20", "+").into_bytes());
            self.insert(text.replace(' ', "+").into_bytes());
            self.insert(encoded.into_bytes());
            let json = serde_json::Value::from(text).to_string();
            let inner = json
                .strip_prefix('"')
                .and_then(|json| json.strip_suffix('"'))
                .unwrap_or_default();
            self.insert(inner.as_bytes().to_vec());
            self.insert(inner.replace('/', "\\/").into_bytes());
        }
        // If a secret looks escaped itself, unescaping a reply unescapes the secret as well.
        if let Some(layer) = unescape(secret) {
            self.insert(layer.text);
        }
        // What reads headers as Latin-1, as RFC 9110 section 5.5 once had it, writes other
        // characters twice.
        if !secret.is_ascii() {
            self.insert(
                secret
                    .iter()
                    .map(|byte| char::from(*byte))
                    .collect::<String>()
                    .into_bytes(),
            );
        }
        self.insert(secret.to_vec());
    }

    fn insert(&mut self, form: Vec<u8>) {
        // The mark itself hides nothing.
        if is_long_enough(&form) && memmem::find(MARK.as_bytes(), &form).is_none() {
            self.0.insert(form);
        }
    }
}

fn is_long_enough(secret: &[u8]) -> bool {
    let is_number = secret.iter().all(u8::is_ascii_digit);
    secret.len()
        >= if is_number {
            MIN_NUMBER_LEN
        } else {
            MIN_SECRET_LEN
        }
}

/// Returns true if a secret that is redacted occurs in text by chance: it is short, or consists of
/// plain words (`dummy-key`).
pub(crate) fn is_common(secret: &str) -> bool {
    /// Shorter secrets are common.
    const MIN_RARE_LEN: usize = 8;
    /// Longer ones are rare, even if they consist of letters.
    const MAX_WORDS_LEN: usize = 20;
    let is_plain = |word: &str| {
        let rest = word.get(1..).unwrap_or_default();
        word.bytes().all(|byte| byte.is_ascii_alphabetic())
            && (rest.bytes().all(|byte| byte.is_ascii_lowercase())
                || word.bytes().all(|byte| byte.is_ascii_uppercase()))
    };
    let are_words =
        || secret.len() <= MAX_WORDS_LEN && secret.split(['-', '_', '.', ' ']).all(is_plain);
    is_long_enough(secret.as_bytes()) && (secret.len() < MIN_RARE_LEN || are_words())
}

impl From<SecretForms> for Secrets {
    fn from(forms: SecretForms) -> Self {
        let secret = |form: Vec<u8>| Secret {
            is_number: form.iter().all(u8::is_ascii_digit),
            finder: Finder::new(&form).into_owned(),
        };
        let forms: Vec<Vec<u8>> = forms.0.into_iter().collect();
        let any = (forms.len() > MAX_SINGLE_PASSES)
            .then(|| AhoCorasick::new(&forms).ok())
            .flatten();
        Self {
            all: forms.into_iter().map(secret).collect(),
            any,
            masks: Vec::new(),
        }
    }
}

impl From<&[Mask]> for Secrets {
    fn from(masks: &[Mask]) -> Self {
        // Prometheus sees an increase between two values alone.
        masks.iter().for_each(|mask| count_masked(&mask.name, 0));
        Self {
            masks: masks.to_vec(),
            ..Self::default()
        }
    }
}

impl Secrets {
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty() && self.masks.is_empty()
    }

    /// Returns true if a text may contain a secret. `false` is certain: it contains neither a
    /// secret nor anything that could be an escape.
    pub(crate) fn may_be_in(&self, text: &[u8]) -> bool {
        has_escapes(text) || self.may_be_plain_in(text)
    }

    /// Returns true if a text may contain an unescaped secret.
    pub(crate) fn may_be_plain_in(&self, text: &[u8]) -> bool {
        if !self.masks.is_empty() {
            return has_exponent(text) || has_masked(&self.masks, &String::from_utf8_lossy(text));
        }
        match &self.any {
            Some(any) => any.is_match(text),
            None => self
                .all
                .iter()
                .any(|secret| secret.finder.find(text).is_some()),
        }
    }

    /// Returns the text in place of a JSON number that, with any sign, has the digits of a secret.
    pub(crate) fn clean_number(&self, number: &[u8]) -> Option<String> {
        if !self.masks.is_empty() {
            let number = std::str::from_utf8(number).ok()?;
            return self
                .masked(number)
                .or_else(|| self.masked(&plain_integer(number)?));
        }
        let digits = number.strip_prefix(b"-").unwrap_or(number);
        self.all
            .iter()
            .any(|secret| [number, digits].contains(&secret.finder.needle()))
            .then(|| MARK.to_owned())
    }

    /// The text after the masks, which are counted; `None` if it holds nothing that is masked.
    fn masked(&self, text: &str) -> Option<String> {
        let (clean, counts) = masked(&self.masks, text)?;
        for (name, count) in counts {
            count_masked(&name, count);
        }
        Some(clean)
    }

    /// Redacts the text, including escaped secrets; `None` if it contains none.
    pub(crate) fn clean(&self, text: &[u8], place: TextPlace) -> Option<Vec<u8>> {
        if !self.masks.is_empty() {
            let clean = self.masked(&String::from_utf8_lossy(text))?;
            return Some(clean.into_bytes());
        }
        let mut clean = self.replaced(text, place)?;
        for _ in 0..MAX_PASSES {
            match self.replaced(&clean, place) {
                Some(cleaner) => clean = cleaner,
                None => return Some(clean),
            }
        }
        Some(MARK.as_bytes().to_vec())
    }

    /// [`Self::clean`] for a decoded string of JSON.
    pub(crate) fn clean_string(&self, text: &str) -> Option<String> {
        let clean = self.clean(text.as_bytes(), TextPlace::JsonString)?;
        Some(String::from_utf8_lossy(&clean).into_owned())
    }

    /// The same secrets in UTF-16, whose units `to_bytes` writes.
    pub(super) fn in_utf16(&self, to_bytes: fn(u16) -> [u8; 2]) -> Self {
        let texts = self
            .all
            .iter()
            .filter_map(|secret| std::str::from_utf8(secret.finder.needle()).ok());
        let wide = texts.map(|text| text.encode_utf16().flat_map(to_bytes).collect());
        SecretForms(wide.collect()).into()
    }

    /// Returns the length of the longest secret.
    pub(super) fn longest(&self) -> usize {
        self.all
            .iter()
            .map(|secret| secret.finder.needle().len())
            .max()
            .unwrap_or_default()
    }

    /// Returns where the text contains a secret, also an escaped one.
    pub(super) fn ranges_with_escapes(&self, text: &[u8], place: TextPlace) -> Vec<(usize, usize)> {
        let mut ranges = self.ranges(text, place);
        let mut layers: Vec<Layer> = Vec::new();
        while layers.len() < MAX_ESCAPE_DEPTH
            && let Some(layer) = unescape(layers.last().map_or(text, |layer| &layer.text))
        {
            layers.push(layer);
            let source = |at: usize| layers.iter().rev().fold(at, |at, layer| layer.source(at));
            let found = layers
                .last()
                .map(|layer| self.ranges(&layer.text, place))
                .unwrap_or_default();
            ranges.extend(
                found
                    .into_iter()
                    .map(|(start, end)| (source(start), source(end))),
            );
        }
        ranges
    }

    /// Returns true if a name holds a secret, escaped or not, or what is left of one if only some
    /// characters are kept.
    pub(super) fn are_in_name(&self, name: &str, is_kept: fn(char) -> bool) -> bool {
        let kept = |text: &str| {
            text.chars()
                .filter(|character| is_kept(*character))
                .collect::<String>()
        };
        let kept_name = kept(name);
        let is_left = |secret: &Secret| {
            let secret = String::from_utf8_lossy(secret.finder.needle());
            let secret = kept(&secret);
            is_long_enough(secret.as_bytes()) && kept_name.contains(&secret)
        };
        !self
            .ranges_with_escapes(name.as_bytes(), TextPlace::JsonString)
            .is_empty()
            || self.all.iter().any(is_left)
    }

    fn replaced(&self, text: &[u8], place: TextPlace) -> Option<Vec<u8>> {
        let mut ranges = self.ranges_with_escapes(text, place);
        if ranges.is_empty() {
            return None;
        }
        ranges.sort_unstable();
        let mut clean = Vec::with_capacity(text.len());
        let mut from = 0;
        for (start, end) in ranges {
            if start >= from {
                clean.extend_from_slice(text.get(from..start).unwrap_or_default());
                clean.extend_from_slice(MARK.as_bytes());
            }
            from = from.max(end);
        }
        clean.extend_from_slice(text.get(from..).unwrap_or_default());
        Some(clean)
    }

    fn ranges(&self, text: &[u8], place: TextPlace) -> Vec<(usize, usize)> {
        let is_digit = |at: Option<usize>| {
            at.and_then(|at| text.get(at))
                .is_some_and(u8::is_ascii_digit)
        };
        let mut ranges = Vec::new();
        if self.any.as_ref().is_some_and(|any| !any.is_match(text)) {
            return ranges;
        }
        for Secret { finder, is_number } in &self.all {
            let found = finder
                .find_iter(text)
                .map(|start| (start, start + finder.needle().len()));
            let is_part =
                |start: usize, end: usize| is_digit(start.checked_sub(1)) || is_digit(Some(end));
            ranges.extend(found.filter(|(start, end)| {
                place == TextPlace::JsonString || !is_number || !is_part(*start, *end)
            }));
        }
        ranges
    }
}

fn count_masked(name: &Arc<str>, count: u64) {
    if let Some(metrics) = observe::metrics() {
        metrics.masked(name, count);
    }
}

/// Returns true if a text may hold a number with an exponent, whose digits look different.
fn has_exponent(text: &[u8]) -> bool {
    let is_digit = |at: usize| text.get(at).is_some_and(u8::is_ascii_digit);
    memchr2_iter(b'e', b'E', text).any(|at| at > 0 && is_digit(at - 1))
}

/// Returns true if a text holds a character that escapes begin with.
pub(crate) fn has_escapes(text: &[u8]) -> bool {
    memchr3(b'\\', b'&', b'%', text).is_some()
}

/// The HTML character references of punctuation that occurs in credentials, and of the no-break
/// space.
const NAMES: [(&[u8], char); 30] = [
    (b"amp", '&'),
    (b"lt", '<'),
    (b"gt", '>'),
    (b"quot", '"'),
    (b"apos", '\''),
    (b"plus", '+'),
    (b"sol", '/'),
    (b"bsol", '\\'),
    (b"equals", '='),
    (b"colon", ':'),
    (b"semi", ';'),
    (b"period", '.'),
    (b"comma", ','),
    (b"lowbar", '_'),
    (b"num", '#'),
    (b"dollar", '$'),
    (b"percnt", '%'),
    (b"excl", '!'),
    (b"quest", '?'),
    (b"commat", '@'),
    (b"ast", '*'),
    (b"lpar", '('),
    (b"rpar", ')'),
    (b"lsqb", '['),
    (b"rsqb", ']'),
    (b"lcub", '{'),
    (b"rcub", '}'),
    (b"verbar", '|'),
    (b"Hat", '^'),
    (b"nbsp", '\u{a0}'),
];

/// A numeric reference has no more digits, leading zeros included.
const MAX_DIGITS: usize = 8;

/// A decoded text, with a mapping to the positions of its source.
pub(crate) struct Layer {
    /// The text.
    pub(crate) text: Vec<u8>,
    /// The position after each escape, in this text and in the source.
    jumps: Vec<(usize, usize)>,
}

impl Layer {
    /// The position in the source of a position in the text.
    pub(crate) fn source(&self, at: usize) -> usize {
        let before = self.jumps.partition_point(|(here, _)| *here <= at);
        let jump = before
            .checked_sub(1)
            .and_then(|index| self.jumps.get(index));
        jump.map_or(at, |(here, there)| there + (at - here))
    }
}

/// Decodes one layer of escapes; `None` if there are none.
pub(crate) fn unescape(source: &[u8]) -> Option<Layer> {
    let mut layer: Option<Layer> = None;
    let (mut from, mut at) = (0, 0);
    while let Some(next) = memchr3(b'\\', b'&', b'%', source.get(at..).unwrap_or_default()) {
        let start = at + next;
        let Some((character, length)) = escape(source.get(start..).unwrap_or_default()) else {
            at = start + 1;
            continue;
        };
        let layer = layer.get_or_insert_with(|| Layer {
            text: Vec::with_capacity(source.len()),
            jumps: Vec::new(),
        });
        layer
            .text
            .extend_from_slice(source.get(from..start).unwrap_or_default());
        match character {
            Escaped::Byte(byte) => layer.text.push(byte),
            Escaped::Character(character) => layer
                .text
                .extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
        at = start + length;
        from = at;
        layer.jumps.push((layer.text.len(), at));
    }
    if let Some(layer) = &mut layer {
        layer
            .text
            .extend_from_slice(source.get(from..).unwrap_or_default());
    }
    layer
}

enum Escaped {
    Byte(u8),
    Character(char),
}

/// Reads an escape at the start of the text: its character, and its length.
fn escape(text: &[u8]) -> Option<(Escaped, usize)> {
    match text {
        [b'%', high, low, ..] => Some((
            Escaped::Byte(u8::try_from(read_code_point(&[*high, *low], 16)?).ok()?),
            3,
        )),
        [b'\\', byte @ (b'"' | b'\\' | b'/' | b'\''), ..] => Some((Escaped::Byte(*byte), 2)),
        [b'\\', letter @ (b'b' | b'f' | b'n' | b'r' | b't'), ..] => {
            let byte = match letter {
                b'b' => 0x08,
                b'f' => 0x0c,
                b'n' => b'\n',
                b'r' => b'\r',
                _ => b'\t',
            };
            Some((Escaped::Byte(byte), 2))
        }
        [b'\\', b'x', high, low, ..] => Some((
            Escaped::Character(char::from_u32(read_code_point(&[*high, *low], 16)?)?),
            4,
        )),
        [b'\\', b'u', rest @ ..] => {
            let first = read_code_point(rest.get(..4)?, 16)?;
            if let Some(character) = char::from_u32(first) {
                return Some((Escaped::Character(character), 6));
            }
            let second = rest.get(4..).and_then(|rest| rest.strip_prefix(b"\\u"))?;
            let units = [first, read_code_point(second.get(..4)?, 16)?]
                .map(|unit| u16::try_from(unit).unwrap_or_default());
            Some((
                Escaped::Character(char::decode_utf16(units).next()?.ok()?),
                12,
            ))
        }
        [b'&', ..] => {
            let (character, length) = read_html_reference(text)?;
            Some((Escaped::Character(character), length))
        }
        _ => None,
    }
}

/// Reads an HTML character reference at the start of the text: its character, and its length.
fn read_html_reference(text: &[u8]) -> Option<(char, usize)> {
    let rest = text.strip_prefix(b"&")?;
    if let [b'#', number @ ..] = rest {
        let (before, radix) = match number {
            [b'x' | b'X', ..] => (1, 16),
            _ => (0, 10),
        };
        let number = number.get(before..)?;
        let length = number
            .iter()
            .take(MAX_DIGITS)
            .take_while(|digit| char::from(**digit).is_digit(radix))
            .count();
        let character = char::from_u32(read_code_point(number.get(..length)?, radix)?)?;
        // WHATWG HTML section 13.2.5.80: a numeric reference counts without its semicolon as well.
        let end = usize::from(number.get(length) == Some(&b';'));
        return Some((character, "&#".len() + before + length + end));
    }
    let end = rest.iter().take(10).position(|byte| *byte == b';')?;
    let name = rest.get(..end)?;
    let character = NAMES.iter().find(|(known, _)| *known == name)?.1;
    Some((character, end + 2))
}

/// An HTML text with its character references read, each once; unknown ones stay as they are.
pub(crate) fn unescape_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, _)) = rest.split_once('&') {
        out.push_str(before);
        rest = rest.get(before.len()..).unwrap_or_default();
        let (character, length) = read_html_reference(rest.as_bytes()).unwrap_or(('&', 1));
        out.push(character);
        rest = rest.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

fn read_code_point(digits: &[u8], radix: u32) -> Option<u32> {
    let is_number = !digits.is_empty()
        && digits
            .iter()
            .all(|digit| char::from(*digit).is_digit(radix));
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_number)?;
    u32::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_is_unescaped_once() {
        assert_eq!(
            unescape_html("a &amp;lt; b &#39;c&#x27; &none; & d&nbsp;é&"),
            "a &lt; b 'c' &none; & d\u{a0}é&"
        );
    }

    #[test]
    fn escapes_come_off_and_places_are_known() {
        for (source, text) in [
            (r"a\u002bb\/\\c\ud83d\ude00", "a+b/\\c😀"),
            ("%2B%c3%a9%%zz", "+é%%zz"),
            ("&#43;&#x2F;&amp;&plus;&none;&", "+/&+&none;&"),
        ] {
            assert_eq!(
                String::from_utf8(unescape(source.as_bytes()).unwrap().text).unwrap(),
                text
            );
        }
        let layer = unescape(br"ab\u002bcd").unwrap();
        assert_eq!([0, 2, 3, 5].map(|at| layer.source(at)), [0, 2, 8, 10]);
        for plain in [r"a\", r"\u12", r"\ud800x", "%", "&#;", "&#99999999;", "abc"] {
            assert!(unescape(plain.as_bytes()).is_none(), "{plain}");
        }
    }

    #[test]
    fn a_numeric_reference_counts_without_its_semicolon() {
        assert_eq!(
            unescape_html("&#115&#x33;&#99r&#x65t &#; &#x &#xZZ &#9999999999"),
            "s3cret &#; &#x &#xZZ &#9999999999"
        );
        assert_eq!(unescape(b"&#115x").unwrap().text, b"sx");
    }
}
