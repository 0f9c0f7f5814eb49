//! The key `arguments` of a rule of `overrides`: what no call gives, and what is said of the
//! others.

use secrecy::SecretString;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde_json::Value;

use crate::config::headers::read_client_header;
use crate::config::problems::{Disclosure, Problems, join_path, read_all};
use crate::config::values::check_claim;
use crate::spec::Location;
use crate::spec::operation::rules::{ArgumentRule, ArgumentTarget, Validation, ValueSource};
use crate::spec::pointer::unescaped_token;
use crate::text;

const PLACES: [(&str, Location); 4] = [
    ("path", Location::Path),
    ("query", Location::Query),
    ("header", Location::Header),
    ("cookie", Location::Cookie),
];

/// Settings of a rule for one argument.
#[derive(Default, Deserialize, schemars::JsonSchema)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "a mapping such as { hide: true }"
)]
pub(super) struct ArgumentKeys {
    /// True if calls may not give it; without `value` or `default`, it is left out of every request
    hide: Option<bool>,
    /// Value that is sent in every call, and that the model cannot change: a literal,
    /// `{ env: NAME }`, `{ forward: Header-Name }` or `{ claim: NAME }`
    value: Option<Value>,
    /// Value that is sent if a call does not give it
    default: Option<Value>,
    /// Its name
    #[serde(deserialize_with = "read_text")]
    name: Option<String>,
    /// Its description
    #[serde(deserialize_with = "read_text")]
    description: Option<String>,
    /// The only values that it may have, each of which the document allows
    #[serde(rename = "enum", deserialize_with = "read_values")]
    values: Option<Vec<Value>>,
    /// True if calls must give it, in spite of the document; a path parameter may be left out only
    /// with `default`
    required: Option<bool>,
    /// True if the value of a path parameter may hold slashes
    slashes: Option<bool>,
    /// Treatment of a property of the body that does not fit its schema: refused (strict), or sent
    /// with a note (lenient)
    validate: Option<Validation>,
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
    problems: &mut Problems,
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
        let Some(keys) = read_all(&place, said, Disclosure::Hidden, problems) else {
            continue;
        };
        let mut rule = ArgumentRule::new(target);
        rule.origins.push(origin.clone());
        set_rule(&place, keys, &mut rule, &mut read.slashes, problems);
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

fn set_rule(
    place: &str,
    keys: ArgumentKeys,
    rule: &mut ArgumentRule,
    slashes: &mut Vec<String>,
    problems: &mut Problems,
) {
    rule.hide = keys.hide;
    rule.required = keys.required;
    rule.name = keys.name;
    rule.description = keys
        .description
        .map(|said| text::truncate(&text::clean(&said), text::MAX_DESCRIPTION_BYTES));
    rule.default = keys.default;
    rule.values = keys.values;
    match (&rule.target, keys.slashes) {
        (ArgumentTarget::Parameter(Location::Path, name), Some(true)) => slashes.push(name.clone()),
        (ArgumentTarget::Parameter(Location::Path, _), _) | (_, None) => {}
        _ => problems.push(format!(
            "`{place}.slashes`: only a path parameter may hold slashes"
        )),
    }
    match (&rule.target, keys.validate) {
        (ArgumentTarget::Parameter(..), Some(_)) => problems.push(format!(
            "`{place}.validate`: parameters are always checked; only a property of the body may be sent unchecked"
        )),
        (_, how) => rule.lenient = how.map(|how| how == Validation::Lenient),
    }
    rule.value = keys
        .value
        .and_then(|value| read_source(&join_path(place, "value"), &value, problems));
}

/// Checks a rule for contradictions that no document resolves.
fn check_rule(place: &str, rule: &ArgumentRule, problems: &mut Problems) {
    if rule.value.is_some() && rule.hide == Some(false) {
        problems.push(format!(
            "`{place}` has a `value`, which no call may give; leave out `hide: false`"
        ));
    }
}

fn read_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer).unwrap_or_default();
    match text.trim() {
        "" => Err(D::Error::custom("expected a text that is not empty")),
        text => Ok(Some(text.to_owned())),
    }
}

fn read_values<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Value>>, D::Error> {
    let values = Vec::<Value>::deserialize(deserializer)?;
    if values.is_empty() {
        return Err(D::Error::custom("expected a list of values"));
    }
    Ok(Some(values))
}

/// Reads a value, or its source.
fn read_source(path: &str, value: &Value, problems: &mut Problems) -> Option<ValueSource> {
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
    problems.ok(format!("`{path}`"), read)
}

fn read_variable(name: &str) -> Result<SecretString, String> {
    match std::env::var(name) {
        Ok(value) if !value.is_empty() => Ok(value.into()),
        Ok(_) => Err(format!(
            "the environment variable `{}` is empty",
            name.escape_debug()
        )),
        Err(_) => Err(format!(
            "the environment variable `{}` is not set, or is not valid UTF-8",
            name.escape_debug()
        )),
    }
}
