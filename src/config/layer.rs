//! Settings as maps of the keys that are given, which is how one source is put over another.

use clap::{Args, Command};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Keys of the process that are not flags.
pub(crate) const FILE_ONLY_OF_PROCESS: [&str; 2] = ["auth_tokens", "openai_apps_challenge"];

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

/// The name of a setting as the operator writes it: a flag, or a key that has none.
pub(crate) fn setting_name(command: &Command, key: &str) -> String {
    let mut arguments = command.get_arguments();
    if arguments.any(|argument| argument.get_id() == key && !argument.is_hide_set()) {
        format!("--{}", key.replace('_', "-"))
    } else {
        format!("`{key}`")
    }
}

/// The names and keys of the settings that are given; a boolean that is false asks for nothing.
pub(crate) fn given_settings<T: Args + Serialize>(settings: &T) -> Vec<(String, String)> {
    let command = T::augment_args(Command::new(""));
    let mut given = to_map(settings);
    given.retain(|_, value| *value != Value::Bool(false));
    let named = |key: String| (setting_name(&command, &key), key);
    given.into_iter().map(|(key, _)| named(key)).collect()
}

/// The settings that are given: a blank `spec`, as by `--spec "$UNSET"`, is not.
pub(crate) fn to_map<T: Serialize>(settings: &T) -> Map<String, Value> {
    let Ok(Value::Object(mut map)) = serde_json::to_value(settings) else {
        return Map::new();
    };
    map.retain(|key, value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::String(text) => key != "spec" || !text.trim().is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    });
    map
}

pub(crate) fn from_map<T: DeserializeOwned + Default>(map: Map<String, Value>) -> T {
    // Every key was admitted on its own, and no two of them depend on each other.
    serde_json::from_value(Value::Object(map)).unwrap_or_default()
}
