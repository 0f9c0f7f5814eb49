//! The key `response` of a rule of `overrides`: what of a reply a model gets.

use serde_json::Value;

use crate::config::problems::{Disclosure, Problems, join_path};
use crate::results::filter::check_program;
use crate::spec::mask::Mask;
use crate::spec::operation::response_rule::{FieldPattern, ResponseRule};

const KEYS: [&str; 7] = [
    "fields",
    "drop",
    "jq",
    "max_items",
    "max_tokens",
    "file",
    "mask",
];
/// The most masks of one rule.
const MAX_MASKS: usize = 20;
/// Results with less room say nothing.
const MIN_TOKENS: usize = 50;

/// Settings of a rule for replies, for the published schema.
#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape counts")]
pub(super) struct ResponseSchema {
    /// The only fields that are given: names of members, or JSON Pointers with `*` and `**`
    fields: Option<Vec<String>>,
    /// Fields that are never given, not even in errors: names of members at any depth, or JSON
    /// Pointers with `*` and `**`
    drop: Option<Vec<String>>,
    /// A jq program that makes the reply anew
    jq: Option<String>,
    /// Number of items of a list that are returned
    max_items: Option<usize>,
    /// Approximate number of tokens that a result may take; it can only lower `max_result_tokens`
    max_tokens: Option<usize>,
    /// Give every success as a file, as `save_files` or `file_store` says
    file: Option<bool>,
    /// Kinds of values that are replaced by their names wherever a reply holds them, at most 20
    mask: Option<Vec<MaskSchema>>,
}

#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its shape counts")]
enum MaskSchema {
    Known(KnownMask),
    Own(OwnMask),
}

#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its shape counts")]
enum KnownMask {
    Email,
    Card,
    Iban,
    Jwt,
}

#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape counts")]
struct OwnMask {
    /// The name that replaces a match, in brackets
    name: String,
    /// A regular expression, without look-around and back-references
    pattern: String,
}

/// Reads the key `response` of the rule at `path`; what is wrong with it is pushed to `problems`.
pub(super) fn read_response(path: &str, value: &Value, problems: &mut Problems) -> ResponseRule {
    let path = join_path(path, "response");
    let mut rule = ResponseRule::default();
    let Value::Object(said) = value else {
        problems.push_wrong_value(
            &path,
            value,
            "a mapping such as { fields: [id, name] }",
            Disclosure::Shown,
        );
        return rule;
    };
    for (key, value) in said {
        let place = join_path(&path, key);
        match key.as_str() {
            "fields" => rule.fields = read_patterns(&place, value, false, problems),
            "drop" => rule.drop = read_patterns(&place, value, true, problems),
            "jq" => match value.as_str().filter(|program| !program.trim().is_empty()) {
                Some(program) => match check_program(program) {
                    Ok(()) => rule.jq = Some(program.to_owned()),
                    Err(why) => problems.push(format!("`{place}`: {why}")),
                },
                None => problems.push_wrong_value(&place, value, "a jq program", Disclosure::Shown),
            },
            "max_items" => rule.max_items = read_count(&place, value, 1, problems),
            "max_tokens" => rule.max_tokens = read_count(&place, value, MIN_TOKENS, problems),
            "file" => match value.as_bool() {
                Some(is_file) => rule.file = Some(is_file),
                None => {
                    problems.push_wrong_value(&place, value, "true or false", Disclosure::Shown);
                }
            },
            "mask" => rule.masks = read_masks(&place, value, problems),
            _ => problems.push_unknown_key(&path, key, KEYS),
        }
    }
    rule
}

fn read_patterns(
    place: &str,
    value: &Value,
    at_any_depth: bool,
    problems: &mut Problems,
) -> Vec<FieldPattern> {
    let Some(list) = value.as_array().filter(|list| !list.is_empty()) else {
        problems.push_wrong_value(
            place,
            value,
            "a list of names or JSON Pointers, as in [id, /user/login]",
            Disclosure::Shown,
        );
        return Vec::new();
    };
    let mut patterns = Vec::with_capacity(list.len());
    for (index, item) in list.iter().enumerate() {
        if let Some(pattern) = item
            .as_str()
            .and_then(|text| FieldPattern::parse(text, at_any_depth))
        {
            patterns.push(pattern);
        } else {
            let place = format!("{place}[{index}]");
            problems.push_wrong_value(
                &place,
                item,
                "a name, or a JSON Pointer such as /items/*/id that ends in a name",
                Disclosure::Shown,
            );
        }
    }
    patterns
}

fn read_masks(place: &str, value: &Value, problems: &mut Problems) -> Vec<Mask> {
    let fits = |list: &&Vec<Value>| !list.is_empty() && list.len() <= MAX_MASKS;
    let Some(list) = value.as_array().filter(fits) else {
        let expected = format!("a list of 1 to {MAX_MASKS} masks, as in [email, card]");
        problems.push_wrong_value(place, value, &expected, Disclosure::Shown);
        return Vec::new();
    };
    let mut masks = Vec::with_capacity(list.len());
    for (index, item) in list.iter().enumerate() {
        let place = format!("{place}[{index}]");
        let text = |key: &str| item.get(key).and_then(Value::as_str);
        let is_own = item.as_object().is_some_and(|own| own.len() == 2);
        match (item.as_str(), text("name"), text("pattern")) {
            (None, Some(name), Some(pattern)) if is_own => match Mask::of_pattern(name, pattern) {
                Ok(mask) => masks.push(mask),
                Err(why) => problems.push(format!("`{place}`: {why}")),
            },
            (known, ..) => match known.and_then(Mask::known) {
                Some(mask) => masks.push(mask),
                None => problems.push_wrong_value(
                    &place,
                    item,
                    &format!(
                        "{}, or a mapping such as {{ name: order, pattern: \"ORD-[0-9]{{8}}\" }}",
                        Mask::KNOWN.join(", ")
                    ),
                    Disclosure::Shown,
                ),
            },
        }
    }
    masks
}

fn read_count(place: &str, value: &Value, least: usize, problems: &mut Problems) -> Option<usize> {
    let read = value
        .as_u64()
        .and_then(|count| usize::try_from(count).ok())
        .filter(|count| *count >= least);
    if read.is_none() {
        problems.push_wrong_value(
            place,
            value,
            &format!("a whole number of at least {least}"),
            Disclosure::Shown,
        );
    }
    read
}
