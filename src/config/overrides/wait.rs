//! The key `wait` of a rule of `overrides`: how a call waits until its operation is done.

use http::HeaderName;
use serde_json::{Map, Value};

use super::arguments::read_target;
use crate::config::keys::wrong_value::{Disclosure, FileProblems, join_path};
use crate::spec::Location;
use crate::spec::operation::rules::{
    ArgumentTarget, FieldValues, NamedRead, ResultPlace, StatusPlace, WaitRule, WaitSettings,
};

const KEYS: [&str; 5] = ["status", "done", "failed", "result", "interval"];
/// The longest interval, in seconds.
const MAX_INTERVAL: u64 = 3600;

/// Settings of a rule for waiting, for the published schema.
#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its shape counts")]
pub(super) enum WaitSchema {
    /// `false`: calls never wait
    Never(bool),
    Wait(Box<WaitSettingsSchema>),
}

#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape counts")]
pub(super) struct WaitSettingsSchema {
    /// The place of the status: a header or a member of the first reply that has its URL, or a GET
    /// operation
    status: Option<StatusSchema>,
    /// The member of the status and its values once the operation is done
    done: Option<FieldSchema>,
    /// The member of the status and its values once the operation has failed
    failed: Option<FieldSchema>,
    /// The place of the result: `status`, `location`, `original`, a member of the status that has
    /// its URL, or a GET operation
    result: Option<ResultSchema>,
    /// Seconds between two requests for the status, if the API names none
    interval: Option<u64>,
}

#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape counts")]
struct StatusSchema {
    /// The header of the first reply
    header: Option<String>,
    /// A JSON Pointer
    field: Option<String>,
    /// An operationId, or method and path
    operation: Option<String>,
    /// The arguments of the operation, each with a JSON Pointer to its value in the first reply
    arguments: Option<std::collections::BTreeMap<String, String>>,
}

#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape counts")]
struct FieldSchema {
    /// A JSON Pointer
    field: String,
    /// Values, compared to the letter
    values: Vec<Value>,
}

#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its shape counts")]
enum ResultSchema {
    Place(ResultPlaceSchema),
    Named(NamedResultSchema),
}

#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its shape counts")]
enum ResultPlaceSchema {
    Status,
    Location,
    Original,
}

#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape counts")]
struct NamedResultSchema {
    /// A JSON Pointer
    field: Option<String>,
    /// An operationId, or method and path
    operation: Option<String>,
    /// The arguments of the operation, each with a JSON Pointer to its value in the status
    arguments: Option<std::collections::BTreeMap<String, String>>,
}

/// Reads the key `wait` of the rule at `path`; what is wrong with it is pushed to `problems`.
pub(super) fn read_wait(
    path: &str,
    value: &Value,
    problems: &mut FileProblems<'_>,
) -> Option<WaitRule> {
    let path = join_path(path, "wait");
    let said = match value {
        Value::Bool(false) => return Some(WaitRule::Never),
        Value::Object(said) => said,
        _ => {
            problems.push_wrong_value(
                &path,
                value,
                "false, or a mapping such as { status: { header: Location } }",
                Disclosure::Shown,
            );
            return None;
        }
    };
    let mut settings = WaitSettings::default();
    for (key, value) in said {
        let place = join_path(&path, key);
        match key.as_str() {
            "status" => settings.status = read_status(&place, value, problems),
            "done" => settings.done = read_values(&place, value, problems),
            "failed" => settings.failed = read_values(&place, value, problems),
            "result" => settings.result = read_result(&place, value, problems),
            "interval" => {
                settings.interval = value
                    .as_u64()
                    .filter(|seconds| (1..=MAX_INTERVAL).contains(seconds));
                if settings.interval.is_none() {
                    let expected = format!("a whole number of seconds from 1 to {MAX_INTERVAL}");
                    problems.push_wrong_value(&place, value, &expected, Disclosure::Shown);
                }
            }
            _ => problems.push_unknown_key(&path, key, KEYS),
        }
    }
    Some(WaitRule::Wait(Box::new(settings)))
}

fn read_status(place: &str, value: &Value, problems: &mut FileProblems<'_>) -> Option<StatusPlace> {
    const EXPECTED: &str =
        "{ header: NAME }, { field: /POINTER } or { operation: NAME, arguments: {…} }";
    let Some((key, said, rest)) = sole_kind(value, &["header", "field", "operation"]) else {
        problems.push_wrong_value(place, value, EXPECTED, Disclosure::Shown);
        return None;
    };
    match key {
        "header" => match HeaderName::from_bytes(said.as_bytes()) {
            Ok(name) if rest.is_empty() => return Some(StatusPlace::Header(name)),
            _ => problems.push_wrong_value(
                place,
                value,
                "the name of a header, as in { header: Location }",
                Disclosure::Shown,
            ),
        },
        "field" if rest.is_empty() => {
            return read_pointer(place, said, problems).map(StatusPlace::Field);
        }
        "operation" => {
            return read_operation(place, said, &rest, problems).map(StatusPlace::Operation);
        }
        _ => problems.push_wrong_value(place, value, EXPECTED, Disclosure::Shown),
    }
    None
}

fn read_result(place: &str, value: &Value, problems: &mut FileProblems<'_>) -> Option<ResultPlace> {
    const EXPECTED: &str =
        "status, location, original, { field: /POINTER } or { operation: NAME, arguments: {…} }";
    match value.as_str() {
        Some("status") => return Some(ResultPlace::Status),
        Some("location") => return Some(ResultPlace::Location),
        Some("original") => return Some(ResultPlace::Original),
        _ => {}
    }
    match sole_kind(value, &["field", "operation"]) {
        Some(("field", said, rest)) if rest.is_empty() => {
            read_pointer(place, said, problems).map(ResultPlace::Field)
        }
        Some(("operation", said, rest)) => {
            read_operation(place, said, &rest, problems).map(ResultPlace::Operation)
        }
        _ => {
            problems.push_wrong_value(place, value, EXPECTED, Disclosure::Shown);
            None
        }
    }
}

/// Returns the only one of the kinds that a mapping has, its text, and the other members.
fn sole_kind<'v>(
    value: &'v Value,
    kinds: &[&'static str],
) -> Option<(&'static str, &'v str, Map<String, Value>)> {
    let members = value.as_object()?;
    let mut found = kinds.iter().filter(|kind| members.contains_key(**kind));
    let kind = *found.next().filter(|_| found.next().is_none())?;
    let said = members
        .get(kind)?
        .as_str()
        .filter(|said| !said.trim().is_empty())?;
    let rest = members.iter().filter(|(key, _)| *key != kind);
    Some((
        kind,
        said,
        rest.map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
    ))
}

fn read_operation(
    place: &str,
    name: &str,
    rest: &Map<String, Value>,
    problems: &mut FileProblems<'_>,
) -> Option<NamedRead> {
    let mut arguments = Vec::new();
    let mut is_read = true;
    for (key, value) in rest {
        let Some(given) = value.as_object().filter(|_| key == "arguments") else {
            problems.push_unknown_key(place, key, ["operation", "arguments"]);
            is_read = false;
            continue;
        };
        let place = join_path(place, "arguments");
        for (argument, pointer) in given {
            let target = match read_target(argument) {
                Some(ArgumentTarget::Parameter(
                    location @ (Location::Path | Location::Query),
                    name,
                )) => Some((location, name)),
                _ => None,
            };
            let pointer = pointer.as_str().filter(|pointer| pointer.starts_with('/'));
            if let (Some((location, name)), Some(pointer)) = (target, pointer) {
                arguments.push((location, name, pointer.to_owned()));
            } else {
                problems.push(format!(
                    "`{}`: expected `path:NAME` or `query:NAME` with a JSON Pointer to its value in the reply, as in {{ \"path:id\": /id }}",
                    join_path(&place, argument)
                ));
                is_read = false;
            }
        }
    }
    is_read.then(|| NamedRead {
        name: name.trim().to_owned(),
        arguments,
    })
}

fn read_values(place: &str, value: &Value, problems: &mut FileProblems<'_>) -> Option<FieldValues> {
    let read = value.as_object().and_then(|members| {
        let field = members
            .get("field")?
            .as_str()
            .filter(|field| field.starts_with('/'))?;
        let values = members
            .get("values")?
            .as_array()
            .filter(|values| !values.is_empty())?;
        (members.len() == 2).then(|| FieldValues {
            field: field.to_owned(),
            values: values.clone(),
        })
    });
    if read.is_none() {
        let expected =
            "a JSON Pointer and a list of values, as in { field: /state, values: [done] }";
        problems.push_wrong_value(place, value, expected, Disclosure::Shown);
    }
    read
}

fn read_pointer(place: &str, text: &str, problems: &mut FileProblems<'_>) -> Option<String> {
    let is_pointer = text.starts_with('/');
    if !is_pointer {
        problems.push(format!(
            "`{}`: expected a JSON Pointer, such as /statusUrl",
            join_path(place, "field")
        ));
    }
    is_pointer.then(|| text.to_owned())
}
