//! The operator's settings for the replies of an operation: the parts that a model gets, and their
//! form.

use crate::spec::mask::Mask;
use crate::spec::pointer::unescaped_token;

/// Settings for replies. Parts without a setting stay as the API sends them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResponseRule {
    /// The only fields that are returned; empty if all are.
    pub fields: Vec<FieldPattern>,
    /// Fields that are never given.
    pub drop: Vec<FieldPattern>,
    /// A jq program that makes the reply anew.
    pub jq: Option<String>,
    /// Number of items of a list that are returned.
    pub max_items: Option<usize>,
    /// Approximate number of tokens that a result may take; it can only lower the limit of the
    /// server.
    pub max_tokens: Option<usize>,
    /// True if every success becomes a file.
    pub file: Option<bool>,
    /// Kinds of values that no result shows.
    pub masks: Vec<Mask>,
}

/// Fields of a reply: a JSON Pointer (RFC 6901) in which `*` matches any part of a name and `**`
/// for any number of steps. Lists need no step of their own: a pattern for a list applies to each
/// of its items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPattern {
    text: String,
    steps: Vec<FieldStep>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum FieldStep {
    /// `**`.
    AnyDepth,
    /// A name, with `*` for any characters.
    Name(String),
}

/// Position of a value of a reply in the patterns: for each pattern, the number of completed steps.
#[derive(Clone)]
pub(crate) struct FieldPosition<'p> {
    behind: Vec<(&'p FieldPattern, usize)>,
}

impl ResponseRule {
    /// Takes what a later rule sets.
    pub fn take(&mut self, later: Self) {
        fn over<T>(weak: &mut Vec<T>, strong: Vec<T>) {
            if !strong.is_empty() {
                *weak = strong;
            }
        }
        over(&mut self.fields, later.fields);
        // What one rule keeps back, no other rule gives.
        self.drop.extend(later.drop);
        self.masks.extend(later.masks);
        self.jq = later.jq.or(self.jq.take());
        self.max_items = later.max_items.or(self.max_items);
        self.max_tokens = later.max_tokens.or(self.max_tokens);
        self.file = later.file.or(self.file);
    }

    /// The names of what it masks, each once; empty if there are none.
    #[must_use]
    pub fn mask_names(&self) -> String {
        let mut names: Vec<&str> = self.masks.iter().map(|mask| &*mask.name).collect();
        names.sort_unstable();
        names.dedup();
        names.join(", ")
    }

    /// Returns true if the rule removes members of replies, so errors must not show them.
    #[must_use]
    pub fn withholds(&self) -> bool {
        !self.fields.is_empty() || !self.drop.is_empty() || self.jq.is_some()
    }
}

impl FieldPattern {
    /// Reads a pattern. One without a leading `/` is a member of the reply, or, with
    /// `at_any_depth`, a member anywhere in it. `None` if it names nothing.
    #[must_use]
    pub fn parse(text: &str, at_any_depth: bool) -> Option<Self> {
        let (pointer, is_rooted) = match text.strip_prefix('/') {
            Some(pointer) => (pointer, true),
            None => (text, false),
        };
        let step = |step: &str| match step {
            "**" => FieldStep::AnyDepth,
            name => FieldStep::Name(unescaped_token(name)),
        };
        let mut steps: Vec<FieldStep> = pointer.split('/').map(step).collect();
        let is_empty = |step: &FieldStep| matches!(step, FieldStep::Name(name) if name.is_empty());
        if steps.iter().any(is_empty) || !matches!(steps.last(), Some(FieldStep::Name(_))) {
            return None;
        }
        if at_any_depth && !is_rooted {
            steps.insert(0, FieldStep::AnyDepth);
        }
        Some(Self {
            text: text.to_owned(),
            steps,
        })
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl<'p> FieldPosition<'p> {
    /// Makes the position of the root of a reply.
    pub(crate) fn root(patterns: &'p [FieldPattern]) -> Self {
        let mut position = Self { behind: Vec::new() };
        patterns.iter().for_each(|pattern| position.add(pattern, 0));
        position
    }

    /// Returns the position of the member of that name, or the item of that index, and true if a
    /// pattern names it.
    pub(crate) fn step(&self, name: &str) -> (Self, bool) {
        let mut next = Self { behind: Vec::new() };
        let mut is_named = false;
        for (pattern, behind) in &self.behind {
            match pattern.steps.get(*behind) {
                Some(FieldStep::AnyDepth) => next.add(pattern, *behind),
                Some(FieldStep::Name(glob)) if matches_glob(glob, name) => {
                    is_named |= behind + 1 == pattern.steps.len();
                    next.add(pattern, behind + 1);
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
        let mut next = Self { behind: Vec::new() };
        let mut is_named = false;
        for (pattern, behind) in &self.behind {
            let one = Self {
                behind: vec![(pattern, *behind)],
            };
            let (stepped, names_it) = one.step(&index);
            is_named |= names_it;
            let goes_on = if stepped.is_over() { one } else { stepped };
            goes_on
                .behind
                .into_iter()
                .for_each(|(pattern, behind)| next.add_once(pattern, behind));
        }
        (next, is_named)
    }

    /// Returns true if no pattern can name anything from here on.
    pub(crate) fn is_over(&self) -> bool {
        self.behind.is_empty()
    }

    fn add(&mut self, pattern: &'p FieldPattern, behind: usize) {
        self.add_once(pattern, behind);
        // `**` also matches zero steps.
        if pattern.steps.get(behind) == Some(&FieldStep::AnyDepth) {
            self.add(pattern, behind + 1);
        }
    }

    fn add_once(&mut self, pattern: &'p FieldPattern, behind: usize) {
        let is_known = self
            .behind
            .iter()
            .any(|(known, at)| std::ptr::eq(*known, pattern) && *at == behind);
        if !is_known && behind < pattern.steps.len() {
            self.behind.push((pattern, behind));
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
            .filter_map(|text| FieldPattern::parse(text, false))
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
            assert_eq!(FieldPattern::parse(wrong, false), None, "{wrong}");
        }
    }
}
