//! Settings as maps of the keys that are given, which is how one source is put over another. A
//! field that is not given is not serialized.

use clap::{Args, Command};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Key of the process that is not a flag, because no line could hold its value.
pub(crate) const FILE_ONLY_OF_PROCESS: &str = "auth_tokens";

/// Returns `over` for each setting that it has, else `under`.
pub(crate) fn layer<T: Serialize + DeserializeOwned + Default + Clone>(over: &T, under: &T) -> T {
    let mut merged = to_map(under);
    if merged.is_empty() {
        return over.clone();
    }
    merged.extend(to_map(over));
    from_map(merged)
}

/// The names of all settings of `T`, which are those of its flags.
pub(crate) fn keys<T: Args>() -> Vec<String> {
    T::augment_args(Command::new(""))
        .get_arguments()
        .map(|argument| argument.get_id().to_string())
        .collect()
}

/// The flags of the settings that are given; a boolean that is false asks for nothing.
pub(crate) fn given_flags<T: Serialize>(settings: &T) -> Vec<String> {
    let given = to_map(settings)
        .into_iter()
        .filter(|(_, value)| *value != Value::Bool(false));
    let name = |key: String| match key.as_str() {
        FILE_ONLY_OF_PROCESS => format!("`{key}`"),
        _ => format!("--{}", key.replace('_', "-")),
    };
    given.map(|(key, _)| name(key)).collect()
}

/// The settings that are given.
pub(crate) fn to_map<T: Serialize>(settings: &T) -> Map<String, Value> {
    match serde_json::to_value(settings) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

pub(crate) fn from_map<T: DeserializeOwned + Default>(map: Map<String, Value>) -> T {
    // Every key was admitted on its own, and no two of them depend on each other.
    serde_json::from_value(Value::Object(map)).unwrap_or_default()
}
