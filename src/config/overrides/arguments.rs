//! The key `arguments` of a rule of `overrides`: what no call gives, and what is said of the
//! others.

use secrecy::SecretString;
use serde_json::{Map, Value};

use super::read_validate;
use crate::config::forward::read_client_header;
use crate::config::keys::claim::check_claim;
use crate::config::keys::wrong_value::{Disclosure, FileProblems, join_path};
use crate::spec::Location;
use crate::spec::operation::rules::{ArgumentRule, ArgumentTarget, ValueSource};
use crate::spec::pointer::unescaped_token;
use crate::text;

const KEYS: [&str; 9] = [
    "hide",
    "value",
    "default",
    "name",
    "description",
    "enum",
    "required",
    "slashes",
    "validate",
];
const PLACES: [(&str, Location); 4] = [
    ("path", Location::Path),
    ("query", Location::Query),
    ("header", Location::Header),
    ("cookie", Location::Cookie),
];

/// Settings of a rule for arguments, for the published schema.
#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape counts")]
pub(super) struct ArgumentSchema {
    /// True if calls may not give it; without `value` or `default`, it is left out of every request
    hide: Option<bool>,
    /// Value that is sent in every call, and that the model cannot change: a literal,
    /// `{ env: NAME }`, `{ forward: Header-Name }` or `{ claim: NAME }`
    value: Option<Value>,
    /// Value that is sent if a call does not give it
    default: Option<Value>,
    /// Its name
    name: Option<String>,
    /// Its description
    description: Option<String>,
    /// The only values that it may have, each of which the document allows
    #[schemars(rename = "enum")]
    values: Option<Vec<Value>>,
    /// True if calls must give it, in spite of the document; a path parameter may be left out only
    /// with `default`
    required: Option<bool>,
    /// True if the value of a path parameter may hold slashes
    slashes: Option<bool>,
    /// Treatment of a property of the body that does not fit its schema: refused (strict), or sent
    /// with a note (lenient)
    validate: Option<super::ValidateSchema>,
}

/// Contents of the key `arguments`.
#[derive(Default)]
pub(super) struct ReadArguments {
    pub(super) rules: Vec<ArgumentRule>,
    /// The path parameters whose values may hold slashes.
    pub(super) slashes: Vec<String>,
}

/// Reads the key `arguments` of the rule at `path`; what is wrong with it is pushed to `problems`.
pub(super) fn read_arguments(
    path: &str,
    optional: bool,
    value: &Value,
    problems: &mut FileProblems<'_>,
) -> ReadArguments {
    let origin = (format!("`{path}`"), optional);
    let path = join_path(path, "arguments");
    let mut read = ReadArguments::default();
    let Value::Object(arguments) = value else {
        let expected =
            "a mapping of arguments, such as `query:tenant` or `/tenant`, to what is set for them";
        problems.push_wrong_value(&path, value, expected, Disclosure::Hidden);
        return read;
    };
    for (name, said) in arguments {
        let place = join_path(&path, name);
        let Some(target) = read_target(name) else {
            problems.push(format!(
                "`{place}` is not an argument; write a parameter as `path:NAME`, `query:NAME`, `header:NAME` or `cookie:NAME`, and a property of the body as a JSON Pointer such as `/name`"
            ));
            continue;
        };
        let Value::Object(said) = said else {
            problems.push_wrong_value(
                &place,
                said,
                "a mapping such as { hide: true }",
                Disclosure::Hidden,
            );
            continue;
        };
        let mut rule = ArgumentRule::new(target);
        rule.origins.push(origin.clone());
        read_rule(&place, said, &mut rule, &mut read.slashes, problems);
        check_rule(&place, &rule, problems);
        if read.rules.iter().any(|other| other.target == rule.target) {
            problems.push(format!(
                "`{place}` names an argument that the rule names already"
            ));
        }
        read.rules.push(rule);
    }
    read
}

pub(super) fn read_target(name: &str) -> Option<ArgumentTarget> {
    if let Some(steps) = name.strip_prefix('/') {
        let steps: Vec<String> = steps.split('/').map(unescaped_token).collect();
        let names_property = steps.last().is_some_and(|last| last != "*")
            && steps.iter().all(|step| !step.is_empty());
        return names_property.then_some(ArgumentTarget::Body(steps));
    }
    let (place, name) = name.split_once(':')?;
    let (_, location) = PLACES
        .into_iter()
        .find(|(known, _)| *known == place.trim())?;
    let name = name.trim();
    (!name.is_empty()).then(|| ArgumentTarget::Parameter(location, name.to_owned()))
}

fn read_rule(
    place: &str,
    said: &Map<String, Value>,
    rule: &mut ArgumentRule,
    slashes: &mut Vec<String>,
    problems: &mut FileProblems<'_>,
) {
    for (key, value) in said {
        let path = join_path(place, key);
        let mut wrong =
            |expected: &str| problems.push_wrong_value(&path, value, expected, Disclosure::Hidden);
        match key.as_str() {
            "hide" => rule.hide = read_boolean(value, &mut wrong),
            "required" => rule.required = read_boolean(value, &mut wrong),
            "name" => rule.name = read_text(value, &mut wrong),
            "description" => {
                let read = read_text(value, &mut wrong);
                rule.description = read.map(|said| text::truncate(&text::clean(&said), text::MAX_DESCRIPTION_BYTES));
            }
            "default" => rule.default = Some(value.clone()),
            "enum" => match value.as_array().filter(|values| !values.is_empty()) {
                Some(values) => rule.values = Some(values.clone()),
                None => wrong("a list of values"),
            },
            "slashes" => match (&rule.target, read_boolean(value, &mut wrong)) {
                (ArgumentTarget::Parameter(Location::Path, name), Some(true)) => slashes.push(name.clone()),
                (ArgumentTarget::Parameter(Location::Path, _), _) | (_, None) => {}
                _ => problems.push(format!("`{path}`: only a path parameter may hold slashes")),
            },
            "validate" => match &rule.target {
                ArgumentTarget::Body(_) => rule.lenient = read_validate(place, value, problems),
                ArgumentTarget::Parameter(..) => problems.push(format!(
                    "`{path}`: parameters are always checked; only a property of the body may be sent unchecked"
                )),
            },
            "value" => rule.value = read_source(&path, value, problems),
            _ => problems.push_unknown_key(place, key, KEYS),
        }
    }
}

/// Checks a rule for contradictions that no document resolves.
fn check_rule(place: &str, rule: &ArgumentRule, problems: &mut FileProblems<'_>) {
    if rule.value.is_some() && rule.hide == Some(false) {
        problems.push(format!(
            "`{place}` has a `value`, which no call may give; leave out `hide: false`"
        ));
    }
}

fn read_boolean(value: &Value, wrong: &mut impl FnMut(&str)) -> Option<bool> {
    let read = value.as_bool();
    if read.is_none() {
        wrong("true or false");
    }
    read
}

fn read_text(value: &Value, wrong: &mut impl FnMut(&str)) -> Option<String> {
    let read = value
        .as_str()
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .map(str::to_owned);
    if read.is_none() {
        wrong("a text that is not empty");
    }
    read
}

/// Reads a value, or its source.
fn read_source(path: &str, value: &Value, problems: &mut FileProblems<'_>) -> Option<ValueSource> {
    let sources = ["env", "forward", "claim"];
    let Some(members) = value
        .as_object()
        .filter(|members| members.keys().any(|key| sources.contains(&key.as_str())))
    else {
        return Some(ValueSource::Literal(value.clone()));
    };
    let mut entries = members.iter();
    let (Some((key, Value::String(name))), None) = (entries.next(), entries.next()) else {
        let expected =
            "a value, or one of { env: NAME }, { forward: Header-Name } and { claim: NAME }";
        problems.push_wrong_value(path, value, expected, Disclosure::Hidden);
        return None;
    };
    let read = match key.as_str() {
        "env" => read_variable(name).map(|value| ValueSource::Secret {
            variable: name.clone(),
            value,
        }),
        "forward" => read_client_header(name).map(ValueSource::Forward),
        _ => check_claim(name.trim()).map(|()| ValueSource::Claim(name.trim().to_owned())),
    };
    read.map_err(|problem| problems.push(format!("`{path}`: {problem}")))
        .ok()
}

fn read_variable(name: &str) -> Result<SecretString, String> {
    match std::env::var(name) {
        Ok(value) if !value.is_empty() => Ok(value.into()),
        Ok(_) => Err(format!(
            "the environment variable `{}` is empty",
            name.escape_debug()
        )),
        Err(_) => Err(format!(
            "the environment variable `{}` is not set, or is not UTF-8",
            name.escape_debug()
        )),
    }
}
