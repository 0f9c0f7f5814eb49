//! The secrets in each form in which a reply may contain them, and the replacement of them in a
//! text.

use std::collections::BTreeSet;
use std::sync::Arc;

use aho_corasick::AhoCorasick;
use memchr::memmem;
use memchr::memmem::Finder;
use secrecy::{ExposeSecret as _, SecretString};

use super::escapes::{Layer, has_escapes, unescape};
use crate::json::plain_integer;
use crate::observe;
use crate::outbound::request::{Keep, percent_encode};
use crate::spec::mask::{Mask, masked};

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
struct SecretForms(BTreeSet<Vec<u8>>);

/// Redacts a set of secrets.
#[derive(Debug, Default)]
pub(crate) struct Redactor {
    all: Vec<Secret>,
    /// Automaton that finds any of them in one pass, if there are so many that one pass for each
    /// would take longer.
    any: Option<AhoCorasick>,
    /// Masks of a rule, which are applied in place of secrets.
    masks: Vec<Mask>,
    /// The tokens it was made of, if another replica has to make the same.
    tokens: Vec<SecretString>,
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
    fn add(&mut self, secret: &[u8]) {
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

impl Redactor {
    /// Makes a redactor for secrets, in each form in which they are sent.
    pub(crate) fn for_values(values: impl IntoIterator<Item: AsRef<[u8]>>) -> Self {
        let mut forms = SecretForms::default();
        values
            .into_iter()
            .for_each(|value| forms.add(value.as_ref()));
        Self::for_forms(forms)
    }

    fn for_forms(forms: SecretForms) -> Self {
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
            ..Self::default()
        }
    }

    /// Makes a redactor for the values of masks.
    pub(crate) fn for_masks(masks: &[Mask]) -> Self {
        // Prometheus sees an increase between two values alone.
        masks.iter().for_each(|mask| count_masked(&mask.name, 0));
        Self {
            masks: masks.to_vec(),
            ..Self::default()
        }
    }

    /// Makes a redactor for tokens that were fetched.
    pub(crate) fn for_tokens<'t>(tokens: impl Iterator<Item = &'t str>) -> Self {
        let tokens: Vec<SecretString> = tokens.map(SecretString::from).collect();
        Self {
            tokens: tokens.clone(),
            ..Self::for_values(tokens.iter().map(SecretString::expose_secret))
        }
    }

    /// The tokens of [`Redactor::for_tokens`].
    pub(crate) fn tokens(&self) -> impl Iterator<Item = &str> {
        self.tokens.iter().map(SecretString::expose_secret)
    }

    /// Returns true if it redacts the tokens of another one.
    pub(crate) fn has_tokens_of(&self, other: &Self) -> bool {
        other
            .tokens()
            .all(|token| self.tokens().any(|own| own == token))
    }

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
        // A pattern may match a string of JSON, and not the text around it.
        if !self.masks.is_empty() {
            return true;
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
    pub(crate) fn clean_text(&self, text: &[u8], place: TextPlace) -> Option<Vec<u8>> {
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

    /// [`Self::clean_text`] for a decoded string of JSON.
    pub(crate) fn clean_string(&self, text: &str) -> Option<String> {
        let clean = self.clean_text(text.as_bytes(), TextPlace::JsonString)?;
        Some(String::from_utf8_lossy(&clean).into_owned())
    }

    /// The same secrets in UTF-16, whose units `to_bytes` writes.
    pub(super) fn in_utf16(&self, to_bytes: fn(u16) -> [u8; 2]) -> Self {
        let texts = self
            .all
            .iter()
            .filter_map(|secret| std::str::from_utf8(secret.finder.needle()).ok());
        let wide = texts.map(|text| text.encode_utf16().flat_map(to_bytes).collect());
        Self::for_forms(SecretForms(wide.collect()))
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
    pub(crate) fn finds_in_name(&self, name: &str, is_kept: fn(char) -> bool) -> bool {
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
