//! Keys of the configuration file, each judged by its value alone.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::config::wrong_value::{Disclosure, FileProblems, expected_by};

/// Keys of [`ApiSettings`] that are not flags, because no line could hold their values.
pub(crate) const FILE_ONLY: [&str; 3] = ["auth", "overrides", "tenants"];

/// Takes one key where its value alone makes sense.
pub(crate) fn admit_key<T: DeserializeOwned>(key: String, value: Value, map: &mut Map<String, Value>, problems: &mut FileProblems<'_>) {
    let admits = |value: &Value| {
        let alone = Value::Object(Map::from_iter([(key.clone(), value.clone())]));
        serde_json::from_value::<T>(alone).map(|_| ())
    };
    let Err(error) = admits(&value) else {
        map.insert(key, value);
        return;
    };
    let disclosure = if key.contains("header") || key == "proxy" {
        Disclosure::Hidden
    } else {
        Disclosure::Shown
    };
    // One wrong element is told as such.
    let elements = value.as_array().into_iter().flatten().enumerate();
    let wrong = elements.filter_map(|(index, element)| Some((index, element, admits(&vec![element.clone()].into()).err()?)));
    let before = problems.problems.len();
    if admits(&Vec::<Value>::new().into()).is_ok() {
        for (index, element, error) in wrong {
            problems.push_wrong_value(&format!("{key}[{index}]"), element, &expected_by(&error), disclosure);
        }
    }
    if problems.problems.len() == before {
        problems.push_wrong_value(&key, &value, &expected_by(&error), disclosure);
    }
}
