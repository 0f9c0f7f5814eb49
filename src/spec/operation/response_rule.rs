//! The operator's settings for the replies of an operation: the parts that a model gets, and their
//! form.

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeInclusive;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};

use crate::spec::mask::Mask;
use crate::spec::pointer::unescaped_token;

/// Settings for replies. Parts without a setting stay as the API sends them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "a mapping such as { fields: [id, name] }"
)]
pub struct ResponseRule {
    /// The only fields that are given: names of members, or JSON Pointers with `*` and `**`
    #[serde(deserialize_with = "read_patterns")]
    #[schemars(with = "Option<Vec<String>>")]
    pub fields: Vec<FieldPattern>,
    /// Fields that are never given, not even in errors: names of members at any depth, or JSON
    /// Pointers with `*` and `**`
    #[serde(deserialize_with = "read_patterns_at_any_depth")]
    #[schemars(with = "Option<Vec<String>>")]
    pub drop: Vec<FieldPattern>,
    /// A jq program that makes the reply anew
    #[serde(deserialize_with = "read_program")]
    pub jq: Option<String>,
    /// Number of items of a list that are returned
    #[serde(deserialize_with = "read_count::<1, _>")]
    pub max_items: Option<usize>,
    /// Approximate number of tokens that a result may take; it can only lower `max_result_tokens`
    #[serde(deserialize_with = "read_count::<MIN_TOKENS, _>")]
    pub max_tokens: Option<usize>,
    /// Give every success as a file, as `save_files` or `file_store` says
    pub file: Option<bool>,
    /// Kinds of values that are replaced by their names wherever a reply holds them, at most 20
    #[serde(rename = "mask", deserialize_with = "read_masks")]
    #[schemars(with = "Option<Vec<crate::spec::mask::MaskKeys>>")]
    pub masks: Vec<Mask>,
}

/// Results with less room say nothing.
const MIN_TOKENS: usize = 50;
/// The number of masks of one rule.
const MASKS: RangeInclusive<usize> = 1..=20;

/// Reader of a list with a number of elements, which is described in words.
struct ListReader<T>(RangeInclusive<usize>, &'static str, PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListReader<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.1)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut read = Vec::new();
        while let Some(element) = list.next_element()? {
            read.push(element);
        }
        if self.0.contains(&read.len()) {
            Ok(read)
        } else {
            Err(A::Error::invalid_length(read.len(), &self))
        }
    }
}

fn read_patterns<'de, D: Deserializer<'de>>(reader: D) -> Result<Vec<FieldPattern>, D::Error> {
    let words = "a list of names or JSON Pointers, as in [id, /user/login]";
    reader.deserialize_seq(ListReader(1..=usize::MAX, words, PhantomData))
}

fn read_patterns_at_any_depth<'de, D: Deserializer<'de>>(
    reader: D,
) -> Result<Vec<FieldPattern>, D::Error> {
    let patterns = read_patterns(reader)?.into_iter();
    Ok(patterns.map(FieldPattern::at_any_depth).collect())
}

fn read_masks<'de, D: Deserializer<'de>>(reader: D) -> Result<Vec<Mask>, D::Error> {
    let words = "a list of 1 to 20 masks, as in [email, card]";
    reader.deserialize_seq(ListReader(MASKS, words, PhantomData))
}

fn read_program<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<String>, D::Error> {
    let program = String::deserialize(reader).unwrap_or_default();
    if program.trim().is_empty() {
        return Err(D::Error::custom("expected a jq program"));
    }
    Ok(Some(program))
}

fn read_count<'de, const LEAST: usize, D: Deserializer<'de>>(
    reader: D,
) -> Result<Option<usize>, D::Error> {
    let count = usize::deserialize(reader).ok();
    let count = count.filter(|count| *count >= LEAST).map(Some);
    count.ok_or_else(|| D::Error::custom(format!("expected a whole number of at least {LEAST}")))
}

impl<'de> Deserialize<'de> for FieldPattern {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let text = String::deserialize(reader).unwrap_or_default();
        let words = "expected a name, or a JSON Pointer such as /items/*/id that ends in a name";
        Self::parse(&text).ok_or_else(|| D::Error::custom(words))
    }
}

/// Fields of a reply: a JSON Pointer (RFC 6901) in which `*` matches any part of a name and `**`
/// for any number of steps. Lists need no step of their own: a pattern for a list applies to each
/// of its items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPattern {
    /// True if it is written as a JSON Pointer, with a leading `/`.
    is_pointer: bool,
    steps: Vec<FieldStep>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum FieldStep {
    /// `**`.
    AnyDepth,
    /// A name, with `*` for any characters.
    Name(String),
}

/// Position of a value of a reply in the patterns: the steps of each that are still to be taken.
#[derive(Clone, Default)]
pub(crate) struct FieldPosition<'p> {
    ahead: Vec<&'p [FieldStep]>,
}

impl ResponseRule {
    /// Takes what a later rule sets.
    pub fn take(&mut self, later: Self) {
        if !later.fields.is_empty() {
            self.fields = later.fields;
        }
        // What one rule keeps back, no other rule gives.
        self.drop.extend(later.drop);
        self.masks.extend(later.masks);
        self.jq = later.jq.or(self.jq.take());
        self.max_items = later.max_items.or(self.max_items);
        self.max_tokens = later.max_tokens.or(self.max_tokens);
        self.file = later.file.or(self.file);
    }

    /// The names of what it masks, each once; empty if there are none.
    pub fn mask_names(&self) -> String {
        let mut names: Vec<&str> = self.masks.iter().map(|mask| &*mask.name).collect();
        names.sort_unstable();
        names.dedup();
        names.join(", ")
    }

    /// The keys that are set, with the names of what it masks.
    pub(crate) fn keys_in_words(&self) -> String {
        let masks = format!("mask ({})", self.mask_names());
        set_keys(&[
            ("fields", !self.fields.is_empty()),
            ("drop", !self.drop.is_empty()),
            ("jq", self.jq.is_some()),
            ("max_items", self.max_items.is_some()),
            ("max_tokens", self.max_tokens.is_some()),
            ("file", self.file == Some(true)),
            (&masks, !self.masks.is_empty()),
        ])
    }

    /// Returns true if the rule removes members of replies, so errors must not show them.
    pub fn withholds(&self) -> bool {
        !self.fields.is_empty() || !self.drop.is_empty() || self.jq.is_some()
    }
}

/// The keys that are set, in words.
pub(super) fn set_keys(keys: &[(&str, bool)]) -> String {
    let set = keys.iter().filter(|(_, is_set)| *is_set);
    set.map(|(key, _)| *key).collect::<Vec<_>>().join(", ")
}

impl FieldPattern {
    /// Reads a pattern. One without a leading `/` is a member of the reply. `None` if it names
    /// nothing.
    pub fn parse(text: &str) -> Option<Self> {
        let pointer = text.strip_prefix('/');
        let step = |step: &str| match step {
            "" => None,
            "**" => Some(FieldStep::AnyDepth),
            name => Some(FieldStep::Name(unescaped_token(name))),
        };
        let steps = pointer.unwrap_or(text).split('/').map(step);
        let steps = steps.collect::<Option<Vec<FieldStep>>>()?;
        if steps.last() == Some(&FieldStep::AnyDepth) {
            return None;
        }
        Some(Self {
            is_pointer: pointer.is_some(),
            steps,
        })
    }

    /// The same, in which a name without a leading `/` is a member anywhere in the reply.
    fn at_any_depth(mut self) -> Self {
        if !self.is_pointer {
            self.steps.insert(0, FieldStep::AnyDepth);
        }
        self
    }
}

impl<'p> FieldPosition<'p> {
    /// Makes the position of the root of a reply.
    pub(crate) fn root(patterns: &'p [FieldPattern]) -> Self {
        let mut position = Self::default();
        patterns
            .iter()
            .for_each(|pattern| position.add(&pattern.steps));
        position
    }

    /// Returns the position of the member of that name, or the item of that index, and true if a
    /// pattern names it.
    pub(crate) fn step(&self, name: &str) -> (Self, bool) {
        let mut next = Self::default();
        let mut is_named = false;
        for steps in &self.ahead {
            match steps {
                [FieldStep::AnyDepth, ..] => next.add(steps),
                [FieldStep::Name(glob), after @ ..] if matches_glob(glob, name) => {
                    is_named |= after.is_empty();
                    next.add(after);
                }
                _ => {}
            }
        }
        (next, is_named)
    }

    /// Returns the position of an item of a list: one step on for a pattern that names items, else
    /// unchanged.
    pub(crate) fn item(&self, index: usize) -> (Self, bool) {
        let index = index.to_string();
        let mut next = Self::default();
        let mut is_named = false;
        for steps in &self.ahead {
            let one = Self {
                ahead: vec![*steps],
            };
            let (stepped, names_it) = one.step(&index);
            is_named |= names_it;
            let goes_on = if stepped.is_over() { one } else { stepped };
            for steps in goes_on.ahead {
                next.add_once(steps);
            }
        }
        (next, is_named)
    }

    /// Returns true if no pattern can name anything from here on.
    pub(crate) fn is_over(&self) -> bool {
        self.ahead.is_empty()
    }

    fn add(&mut self, steps: &'p [FieldStep]) {
        self.add_once(steps);
        // `**` also matches zero steps.
        if let [FieldStep::AnyDepth, after @ ..] = steps {
            self.add(after);
        }
    }

    fn add_once(&mut self, steps: &'p [FieldStep]) {
        let is_known = self.ahead.iter().any(|known| std::ptr::eq(*known, steps));
        if !is_known && !steps.is_empty() {
            self.ahead.push(steps);
        }
    }
}

/// Returns true if a glob with `*` matches the whole name: greedy, with backtracking of one step.
fn matches_glob(glob: &str, name: &str) -> bool {
    let Some((first, rest)) = glob.split_once('*') else {
        return glob == name;
    };
    let Some(mut left) = name.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let Some(last) = parts.pop() else { return true };
    for part in parts {
        match left.find(part) {
            Some(at) => left = left.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_whole_names() {
        for (glob, name, matches) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("*_url", "html_url", true),
            ("*_url", "url", false),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXc", false),
            ("*a*a", "a", false),
        ] {
            assert_eq!(matches_glob(glob, name), matches, "{glob} {name}");
        }
    }

    #[test]
    fn a_pattern_names_fields_at_its_depth() {
        let patterns: Vec<FieldPattern> = ["/items/*/id", "/**/secret", "/a/b"]
            .iter()
            .filter_map(|text| FieldPattern::parse(text))
            .collect();
        let root = FieldPosition::root(&patterns);
        let is_named = |path: &[&str]| {
            let mut position = root.clone();
            let mut is_named = false;
            for step in path {
                (position, is_named) = match step.parse::<usize>() {
                    Ok(index) => position.item(index),
                    Err(_) => position.step(step),
                };
            }
            is_named
        };
        assert!(is_named(&["secret"]) && is_named(&["x", "y", "secret"]) && is_named(&["a", "b"]));
        assert!(is_named(&["items", "0", "id"]) && is_named(&["a", "3", "b"]));
        assert!(!is_named(&["b"]) && !is_named(&["items", "id", "x"]) && !is_named(&["a"]));
        for wrong in ["", "/", "/a/", "/**", "a//b"] {
            assert_eq!(FieldPattern::parse(wrong), None, "{wrong}");
        }
    }
}
