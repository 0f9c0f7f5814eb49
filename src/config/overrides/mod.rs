//! The rules of `overrides` in the configuration file. Any part of a rule that cannot be read is an
//! error: a rule that is read in part would protect less than intended.

use http::HeaderMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::annotate::names::is_sayable;
use crate::annotate::overrides::{ExpectedType, OverrideProblem, OverrideProblemKind};
use crate::annotate::selection::PatternField;
use crate::annotate::{DescriptionDetail, Override, Pattern, Rule};
use crate::config::problems::{Disclosure, Problems, join_path, key_names, read_all};
use crate::config::transport::Transport;
use crate::credentials::forward::Forwarding;
use crate::redact::carries_credential;
use crate::results::filter::check_program;
use crate::spec::Location;
use crate::spec::operation::response_rule::ResponseRule;
use crate::spec::operation::rules::{ArgumentRule, ArgumentTarget, CallKeys, ValueSource};

mod arguments;
mod wait;

const MATCH_KEYS: [(&str, PatternField); 4] = [
    ("operation", PatternField::Operation),
    ("tag", PatternField::Tag),
    ("path", PatternField::Path),
    ("method", PatternField::Method),
];

/// The key `overrides`, for the published schema.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its shape counts")]
pub(crate) struct OverridesSchema {
    /// Rules for the operations that match, applied in order: a later rule overrides an earlier one,
    /// field by field (docs/reference/overrides.md). Only in the configuration file.
    #[schemars(
        example = &"[{ match: { method: POST, path: /**/search }, annotations: { readOnlyHint: true } }]"
    )]
    overrides: Option<Vec<OverrideSchema>>,
}

/// Form of a rule of `overrides`, for the published schema.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape counts")]
struct OverrideSchema {
    /// The operations that the rule applies to: all that match a glob of each key; without it, all
    /// operations
    #[schemars(rename = "match")]
    matches: Option<MatchSchema>,
    /// True if there is a tool
    enabled: Option<bool>,
    /// Its name
    name: Option<String>,
    /// Its title
    title: Option<String>,
    /// Its description
    description: Option<String>,
    /// Its category
    category: Option<String>,
    /// Words by which a search finds it as well; they are never shown
    keywords: Option<Vec<String>>,
    #[schemars(flatten)]
    own: RuleKeys,
    #[schemars(flatten)]
    of_calls: CallKeys,
    /// Settings for arguments: a parameter as `path:NAME`, `query:NAME`, `header:NAME` or
    /// `cookie:NAME`, a property of the body as a JSON Pointer
    arguments: Option<std::collections::BTreeMap<String, arguments::ArgumentKeys>>,
    /// The parts of a reply that are returned
    response: Option<ResponseRule>,
    /// The way to wait until an operation is done; `false` never waits
    wait: Option<wait::WaitSchema>,
    /// Its hints; a hint that is not mentioned stays as it is
    annotations: Option<AnnotationsSchema>,
}

/// Keys of a rule that are about the rule, and about the list of tools.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct RuleKeys {
    /// True if the rule may match no operation; without it, that is an error
    optional: Option<bool>,
    /// Detail of its description
    describe: Option<DescriptionDetail>,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape counts")]
pub(crate) struct MatchSchema {
    /// Globs on the tool name and the operationId
    operation: Option<Globs>,
    /// Globs on the tags
    tag: Option<Globs>,
    /// Globs on the path; `*` stays within a segment, `**` does not
    path: Option<Globs>,
    /// HTTP methods
    method: Option<Globs>,
}

#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its shape counts")]
pub(crate) enum Globs {
    One(String),
    Any(Vec<String>),
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its shape counts")]
struct AnnotationsSchema {
    /// A title beside the tool's own
    title: Option<String>,
    read_only_hint: Option<bool>,
    destructive_hint: Option<bool>,
    idempotent_hint: Option<bool>,
    open_world_hint: Option<bool>,
}

/// The rules for arguments, each with the rule that it is of.
fn argument_rules(rules: &[Rule]) -> impl Iterator<Item = (&Rule, &ArgumentRule)> {
    rules.iter().flat_map(|rule| {
        let arguments = rule.says.arguments.iter();
        arguments.map(move |argument| (rule, argument))
    })
}

/// A sentence for each rule in which the value of a header with a credential is written out.
pub(crate) fn secrets_of_rules(rules: &[Rule]) -> Vec<String> {
    let problem = |(rule, argument): (&Rule, &ArgumentRule)| {
        let ArgumentTarget::Parameter(Location::Header, name) = &argument.target else {
            return None;
        };
        let is_written =
            matches!(argument.value, Some(ValueSource::Literal(_))) || argument.default.is_some();
        let is_secret = is_written && carries_credential(&name.parse().ok()?);
        is_secret.then(|| {
            format!(
                "{}: the value of `{}` is a credential that would be written out; put it into a variable, and give {{ env: VARIABLE }}",
                rule.name, argument.target
            )
        })
    };
    argument_rules(rules).filter_map(problem).collect()
}

/// Checks that the transport has the clients' values that rules send.
pub(crate) fn check_client_values(rules: &[Rule], transport: &Transport) -> Vec<String> {
    let problem = |(rule, argument): (&Rule, &ArgumentRule)| {
        let why = match argument.value.as_ref()? {
            ValueSource::Forward(_) => transport.lacks_value_of_client(false)?,
            ValueSource::Claim(_) => transport.lacks_value_of_client(true)?,
            ValueSource::Literal(_) | ValueSource::Secret { .. } => return None,
        };
        let (name, target) = (&rule.name, &argument.target);
        Some(format!("{name}: `{target}` gets its value from {why}"))
    };
    argument_rules(rules).filter_map(problem).collect()
}

/// The variables of the environment that rules take values from.
pub(crate) fn variables_of_rules(rules: &[Rule]) -> impl Iterator<Item = &str> {
    argument_rules(rules).filter_map(|(_, argument)| match &argument.value {
        Some(ValueSource::Secret { variable, .. }) => Some(variable.as_str()),
        _ => None,
    })
}

/// Rules for headers that are not arguments, because another setting sends them: such a rule would
/// change nothing, and a client could give what the rule says is fixed.
pub(crate) fn check_set_headers(
    rules: &[Rule],
    headers: &HeaderMap,
    forward: &Forwarding,
) -> Vec<String> {
    let problem = |(rule, argument): (&Rule, &ArgumentRule)| {
        let ArgumentTarget::Parameter(Location::Header, name) = &argument.target else {
            return None;
        };
        let setting = if forward.sets(name) {
            "`forward_header` takes it from the client"
        } else if headers.contains_key(name) {
            "--header sets it"
        } else {
            return None;
        };
        Some(format!(
            "{}: `{}` is sent whatever the rule says, because {setting}; leave out one of the two",
            rule.name, argument.target
        ))
    };
    argument_rules(rules).filter_map(problem).collect()
}

/// The rules of the key `overrides`; what is wrong with them is pushed to `problems`.
pub(crate) fn read_rules(value: &Value, problems: &mut Problems) -> Vec<Rule> {
    let Value::Array(rules) = value else {
        problems.push_wrong_value("overrides", value, "a list of rules", Disclosure::Shown);
        return Vec::new();
    };
    let names = [key_names::<RuleKeys>(), key_names::<CallKeys>()];
    let rules = rules.iter().enumerate();
    rules
        .filter_map(|(index, rule)| {
            read_rule(&format!("overrides[{index}]"), rule, &names, problems)
        })
        .collect()
}

fn read_rule(
    path: &str,
    value: &Value,
    names: &[Vec<String>; 2],
    problems: &mut Problems,
) -> Option<Rule> {
    let Value::Object(members) = value else {
        problems.push_wrong_value(
            path,
            value,
            "a mapping with `match` and what is to be set",
            Disclosure::Shown,
        );
        return None;
    };
    let mut said = members.clone();
    let matches = said
        .remove("match")
        .map(|value| read_match(path, &value, problems))
        .unwrap_or_default();
    let [of_rule, of_call] = names;
    let own: RuleKeys = take_keys(path, of_rule, &mut said, problems);
    let of_calls: CallKeys = take_keys(path, of_call, &mut said, problems);
    let optional = own.optional.unwrap_or_default();
    let arguments = said.remove("arguments");
    let arguments = arguments
        .map(|value| arguments::read_arguments(path, optional, &value, problems))
        .unwrap_or_default();
    let response = said
        .remove("response")
        .map(|value| read_response(path, &value, problems));
    let wait = said
        .remove("wait")
        .and_then(|value| wait::read_wait(path, &value, problems));
    let mut says = read_said(path, said, names, problems);
    says.keys = of_calls;
    says.keys.slashes.extend(arguments.slashes);
    says.describe = own.describe;
    says.arguments = arguments.rules;
    says.response = response.unwrap_or_default();
    says.wait = wait;
    Some(Rule {
        name: format!("`{path}`"),
        remedy: "add `optional: true` to the rule".into(),
        optional,
        matches,
        says,
    })
}

/// Reads the key `response` of the rule at `path`: what of a reply a model gets.
fn read_response(path: &str, value: &Value, problems: &mut Problems) -> ResponseRule {
    let path = join_path(path, "response");
    let rule: ResponseRule =
        read_all(&path, value, Disclosure::Shown, problems).unwrap_or_default();
    if let Some(program) = &rule.jq {
        problems.ok(format!("`{path}.jq`"), check_program(program));
    }
    rule
}

/// Takes the keys of a type, which have these names, out of a rule, and reads them.
fn take_keys<T: DeserializeOwned + Default>(
    path: &str,
    names: &[String],
    said: &mut Map<String, Value>,
    problems: &mut Problems,
) -> T {
    let own = names.iter().filter_map(|key| said.shift_remove_entry(key));
    let own = Value::Object(own.collect());
    read_all(path, &own, Disclosure::Shown, problems).unwrap_or_default()
}

fn read_said(
    path: &str,
    said: Map<String, Value>,
    names: &[Vec<String>; 2],
    problems: &mut Problems,
) -> Override {
    let mut wrong = Vec::new();
    let says = Override::read(&Value::Object(said), &mut wrong);
    for OverrideProblem { path: keys, kind } in wrong {
        let place = keys
            .iter()
            .fold(path.to_owned(), |path, key| join_path(&path, key));
        match kind {
            OverrideProblemKind::UnknownKey(Some(advice)) => {
                problems.push(format!("unknown key `{place}`; {advice}"));
            }
            OverrideProblemKind::UnknownKey(None) => {
                let key = keys.last().map(String::as_str).unwrap_or_default();
                let known = names.concat();
                let known = known.iter().map(String::as_str);
                let parts = ["match", "arguments", "response", "wait"];
                problems.push_unknown_key(path, key, known.chain(parts));
            }
            OverrideProblemKind::WrongType { found, expected } => {
                let expected = match expected {
                    ExpectedType::Boolean => "true or false",
                    ExpectedType::Text => "a text that is not empty",
                    ExpectedType::Texts => "a list of texts",
                    ExpectedType::Object => "a mapping",
                };
                problems.push_wrong_value(&place, &found, expected, Disclosure::Shown);
            }
        }
    }
    if let Some(name) = says.name.as_ref().filter(|name| !is_sayable(name)) {
        let name = Value::String(name.clone());
        problems.push_wrong_value(
            &join_path(path, "name"),
            &name,
            "a name with a letter or a digit",
            Disclosure::Shown,
        );
    }
    says
}

/// The groups of patterns of `match`, of each of which an operation must match one.
pub(super) fn read_match(path: &str, value: &Value, problems: &mut Problems) -> Vec<Vec<Pattern>> {
    let path = join_path(path, "match");
    let Value::Object(fields) = value else {
        problems.push_wrong_value(
            &path,
            value,
            "a mapping with operation, tag, path or method",
            Disclosure::Shown,
        );
        return Vec::new();
    };
    let mut groups = Vec::new();
    for (key, globs) in fields {
        let Some((key, field)) = MATCH_KEYS.into_iter().find(|(known, _)| known == key) else {
            problems.push_unknown_key(&path, key, MATCH_KEYS.map(|(key, _)| key));
            continue;
        };
        let path = join_path(&path, key);
        let group = match globs {
            Value::Array(globs) if !globs.is_empty() => {
                let globs = globs.iter().enumerate();
                globs
                    .filter_map(|(index, glob)| {
                        read_glob(&format!("{path}[{index}]"), key, field, glob, problems)
                    })
                    .collect()
            }
            Value::Array(_) => {
                problems.push(format!(
                    "`{path}` is an empty list; expected at least one glob"
                ));
                continue;
            }
            glob => read_glob(&path, key, field, glob, problems)
                .into_iter()
                .collect(),
        };
        groups.push(group);
    }
    groups
}

fn read_glob(
    path: &str,
    key: &str,
    field: PatternField,
    value: &Value,
    problems: &mut Problems,
) -> Option<Pattern> {
    let Value::String(glob) = value else {
        problems.push_wrong_value(path, value, "a text or a list of texts", Disclosure::Shown);
        return None;
    };
    let pattern = Pattern::of(field, glob, &format!("{key}:{glob}"));
    problems.ok(format!("`{path}`"), pattern)
}
