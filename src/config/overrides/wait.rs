//! The key `wait` of a rule of `overrides`: how a call waits until its operation is done.

use std::collections::BTreeMap;

use http::HeaderName;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _};
use serde_json::Value;

use crate::config::overrides::arguments::read_target;
use crate::config::problems::{Disclosure, Problems, join_path, read_all};
use crate::spec::Location;
use crate::spec::operation::rules::{
    ArgumentTarget, FieldValues, NamedRead, ResultPlace, StatusPlace, WaitRule, WaitSettings,
};

/// The longest interval, in seconds.
const MAX_INTERVAL: u64 = 3600;

/// Settings of a rule for waiting.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "false, or a mapping such as { status: { header: Location } }"
)]
pub(super) struct WaitKeys {
    /// The place of the status: a header or a member of the first reply that has its URL, or a GET
    /// operation
    #[serde(deserialize_with = "of_a_kind::<_, PlaceKeys, _>")]
    #[schemars(with = "Option<PlaceKeys>")]
    status: Option<StatusPlace>,
    /// The member of the status and its values once the operation is done
    #[serde(deserialize_with = "of_a_kind::<_, FieldKeys, _>")]
    #[schemars(with = "Option<FieldKeys>")]
    done: Option<FieldValues>,
    /// The member of the status and its values once the operation has failed
    #[serde(deserialize_with = "of_a_kind::<_, FieldKeys, _>")]
    #[schemars(with = "Option<FieldKeys>")]
    failed: Option<FieldValues>,
    /// The place of the result: `status`, `location`, `original`, a member of the status that has
    /// its URL, or a GET operation
    #[serde(deserialize_with = "of_a_kind::<_, ResultKeys, _>")]
    #[schemars(with = "Option<ResultKeys>")]
    result: Option<ResultPlace>,
    /// Seconds between two requests for the status, if the API names none
    #[serde(deserialize_with = "read_interval")]
    interval: Option<u64>,
}

/// The key `wait`, for the published schema.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its shape counts")]
pub(super) enum WaitSchema {
    /// `false`: calls never wait
    Never(bool),
    Wait(Box<WaitKeys>),
}

/// A place in the reply that comes before, or an operation: one of `header`, `field` and
/// `operation`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlaceKeys {
    /// The header of the first reply
    header: Option<String>,
    /// A JSON Pointer
    field: Option<String>,
    /// An operationId, or method and path
    operation: Option<String>,
    /// The arguments of the operation, each with a JSON Pointer to its value in the reply
    arguments: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum ResultKeys {
    Word(ResultWord),
    Place(PlaceKeys),
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ResultWord {
    Status,
    Location,
    Original,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FieldKeys {
    /// A JSON Pointer
    field: String,
    /// Values, compared to the letter
    values: Vec<Value>,
}

/// Keys of which a part of a wait is made.
trait PartKeys: DeserializeOwned {
    type Part;
    const EXPECTED: &'static str;

    /// The part.
    ///
    /// # Errors
    /// What was expected in place of these keys.
    fn part(self) -> Result<Self::Part, &'static str>;
}

impl PartKeys for PlaceKeys {
    type Part = StatusPlace;
    const EXPECTED: &'static str =
        "{ header: NAME }, { field: /POINTER } or { operation: NAME, arguments: {…} }";

    fn part(self) -> Result<StatusPlace, &'static str> {
        match (self.header, self.field, self.operation, self.arguments) {
            (Some(name), None, None, None) => HeaderName::from_bytes(name.as_bytes())
                .map(StatusPlace::Header)
                .map_err(|_| "the name of a header, as in { header: Location }"),
            (None, Some(field), None, None) => pointer(field).map(StatusPlace::Field),
            (None, None, Some(name), arguments) if !name.trim().is_empty() => {
                let arguments = arguments.unwrap_or_default().into_iter();
                Ok(StatusPlace::Operation(NamedRead {
                    name: name.trim().to_owned(),
                    arguments: arguments.map(argument).collect::<Result<_, _>>()?,
                }))
            }
            _ => Err(Self::EXPECTED),
        }
    }
}

impl PartKeys for ResultKeys {
    type Part = ResultPlace;
    const EXPECTED: &'static str =
        "status, location, original, { field: /POINTER } or { operation: NAME, arguments: {…} }";

    fn part(self) -> Result<ResultPlace, &'static str> {
        Ok(match self {
            Self::Word(ResultWord::Status) => ResultPlace::Status,
            Self::Word(ResultWord::Location) => ResultPlace::Location,
            Self::Word(ResultWord::Original) => ResultPlace::Original,
            Self::Place(keys) => match keys.part()? {
                StatusPlace::Header(_) => return Err(Self::EXPECTED),
                StatusPlace::Field(field) => ResultPlace::Field(field),
                StatusPlace::Operation(named) => ResultPlace::Operation(named),
            },
        })
    }
}

impl PartKeys for FieldKeys {
    type Part = FieldValues;
    const EXPECTED: &'static str =
        "a JSON Pointer and a list of values, as in { field: /state, values: [done] }";

    fn part(self) -> Result<FieldValues, &'static str> {
        let Self { field, values } = self;
        let is_right = field.starts_with('/') && !values.is_empty();
        is_right
            .then_some(FieldValues { field, values })
            .ok_or(Self::EXPECTED)
    }
}

fn of_a_kind<'de, D: Deserializer<'de>, K: PartKeys<Part = P>, P>(
    deserializer: D,
) -> Result<Option<P>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let keys = serde_json::from_value::<K>(value);
    keys.map_err(|_| K::EXPECTED)
        .and_then(K::part)
        .map(Some)
        .map_err(|expected| D::Error::custom(format!("expected {expected}")))
}

fn pointer(text: String) -> Result<String, &'static str> {
    if text.starts_with('/') {
        Ok(text)
    } else {
        Err("a JSON Pointer, such as /statusUrl")
    }
}

/// An argument of an operation, with the place of its value.
fn argument((name, value): (String, String)) -> Result<(Location, String, String), &'static str> {
    match read_target(&name) {
        Some(ArgumentTarget::Parameter(location @ (Location::Path | Location::Query), name))
            if value.starts_with('/') =>
        {
            Ok((location, name, value))
        }
        _ => Err(
            "`path:NAME` or `query:NAME` with a JSON Pointer to its value in the reply, as in { \"path:id\": /id }",
        ),
    }
}

fn read_interval<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let seconds = u64::deserialize(deserializer).ok();
    seconds
        .filter(|seconds| (1..=MAX_INTERVAL).contains(seconds))
        .map(Some)
        .ok_or_else(|| {
            D::Error::custom(format!(
                "expected a whole number of seconds from 1 to {MAX_INTERVAL}"
            ))
        })
}

/// Reads the key `wait` of the rule at `path`; what is wrong with it is pushed to `problems`.
pub(super) fn read_wait(path: &str, value: &Value, problems: &mut Problems) -> Option<WaitRule> {
    if *value == Value::Bool(false) {
        return Some(WaitRule::Never);
    }
    let path = join_path(path, "wait");
    let keys: WaitKeys = read_all(&path, value, Disclosure::Shown, problems)?;
    Some(WaitRule::Wait(Box::new(WaitSettings {
        status: keys.status,
        done: keys.done,
        failed: keys.failed,
        result: keys.result,
        interval: keys.interval,
    })))
}
