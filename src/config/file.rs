//! The configuration file: YAML with the same names as the flags. Unknown keys are errors, all of them at once.

use std::fmt;

use clap::{Args, Command};
use serde::de::{self, DeserializeOwned, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::settings::{ApiSettings, ServerSettings};
use crate::text;

/// The settings of a file's text; what is wrong with it is pushed to `problems`, each with its key.
pub(crate) fn parse(text: &str, problems: &mut Vec<String>) -> (ApiSettings, ServerSettings) {
    let value: Value = match serde_yaml::from_str::<Once>(text) {
        Ok(Once(value)) => value,
        Err(error) => {
            problems.push(format!("the configuration file is no YAML: {error}"));
            return Default::default();
        }
    };
    let map = match value {
        Value::Null => Map::new(),
        Value::Object(map) => map,
        _ => {
            problems.push("the configuration file must be a mapping of keys to values".into());
            return Default::default();
        }
    };
    let (mut api_keys, server_keys) = (keys::<ApiSettings>(), keys::<ServerSettings>());
    api_keys.extend(FILE_ONLY.map(str::to_owned));
    let (mut api, mut server) = (Map::new(), Map::new());
    for (key, value) in map {
        if value.is_null() {
            continue;
        }
        if api_keys.contains(&key) || FILE_ONLY.contains(&key.as_str()) {
            admit_key::<ApiSettings>(key, value, &mut api, problems);
        } else if server_keys.contains(&key) {
            admit_key::<ServerSettings>(key, value, &mut server, problems);
        } else {
            let known = api_keys.iter().chain(&server_keys).map(String::as_str).chain(FILE_ONLY);
            let hint = text::nearest(&key, known, 0.75)
                .map(|nearest| format!("; did you mean `{nearest}`?"))
                .unwrap_or_default();
            problems.push(format!("the configuration file has the unknown key `{key}`{hint}"));
        }
    }
    (from_map(api), from_map(server))
}

/// A value in which no key stands twice: of two lists of rules one would silently be lost.
struct Once(Value);

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OnceVisitor).map(Self)
    }
}

struct OnceVisitor;

impl<'de> Visitor<'de> for OnceVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let Once(value) = access.next_value()?;
            if map.contains_key(&key) {
                return Err(de::Error::custom(format!("the key `{key}` stands there twice; put both into one")));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Once(item)) = access.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// `over` wherever it says something, else `under`.
pub(crate) fn layer<T: Serialize + DeserializeOwned + Default>(over: &T, under: &T) -> T {
    let (mut merged, over) = (to_map(under), to_map(over));
    merged.extend(over);
    from_map(merged)
}

/// Keys of [`ApiSettings`] that are no flags, because no line could hold their values.
const FILE_ONLY: [&str; 2] = ["auth", "overrides"];

/// The names of all settings of `T`, which are those of its flags.
pub(crate) fn keys<T: Args>() -> Vec<String> {
    T::augment_args(Command::new(""))
        .get_arguments()
        .map(|argument| argument.get_id().to_string())
        .collect()
}

/// Takes one key where its value alone makes sense.
fn admit_key<T: DeserializeOwned>(key: String, value: Value, map: &mut Map<String, Value>, problems: &mut Vec<String>) {
    let alone = Value::Object(Map::from_iter([(key.clone(), value.clone())]));
    match serde_json::from_value::<T>(alone) {
        Ok(_) => {
            map.insert(key, value);
        }
        // The value may be a secret, which is not repeated.
        Err(_) if key == "auth" => problems.push(
            "the configuration file has a wrong value for `auth`: each scheme is `{ env: VARIABLE }` or `{ file: PATH }`, or has parts of that form, such as `username` and `password`".into(),
        ),
        Err(_) if key.contains("header") => problems.push(format!(
            "the configuration file has a wrong value for `{key}`: it must be a list of texts"
        )),
        Err(error) => problems.push(format!("the configuration file has a wrong value for `{key}`: {error}")),
    }
}

fn to_map<T: Serialize>(settings: &T) -> Map<String, Value> {
    match serde_json::to_value(settings) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

fn from_map<T: DeserializeOwned + Default>(map: Map<String, Value>) -> T {
    // Every key was admitted on its own, and no two of them depend on each other.
    serde_json::from_value(Value::Object(map)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_problems_of_a_file_are_told_at_once() {
        let mut problems = Vec::new();
        let (api, _) = parse("spec: a.yaml\nbse_url: x\ntimeout: soon\ntransport: tcp\nzzz: 1", &mut problems);
        assert_eq!(api.spec.as_deref(), Some("a.yaml"));
        let all = problems.join("\n");
        for expected in ["`bse_url`; did you mean `base_url`?", "`timeout`", "`transport`", "`zzz`"] {
            assert!(all.contains(expected), "{all}");
        }
        assert_eq!(problems.len(), 4);
    }

    #[test]
    fn a_key_that_stands_twice_is_told() {
        let mut problems = Vec::new();
        parse("overrides: [{match: {method: GET}}]\nmock: true\noverrides: []", &mut problems);
        assert!(problems[0].contains("`overrides` stands there twice"), "{problems:?}");
    }

    #[test]
    fn numbers_of_the_file_keep_their_value() {
        let mut problems = Vec::new();
        let (api, _) = parse(
            "timeout: 0.1\nrate_limit: 2.5\nretries: 1\nbreaker_pause: 1e1\nmax_queue: 0",
            &mut problems,
        );
        assert_eq!(problems, Vec::<String>::new());
        let api = layer(&ApiSettings::default(), &api);
        let upstream = api.upstream;
        assert_eq!(
            (api.timeout, upstream.rate_limit, upstream.breaker_pause),
            (Some(0.1), Some(2.5), Some(10.0))
        );
        assert_eq!((upstream.retries, upstream.max_queue), (Some(1), Some(0)));
    }

    #[test]
    fn a_flag_is_stronger_than_the_file() {
        let mut problems = Vec::new();
        let (file, _) = parse("spec: a.yaml\ntimeout: 5\nmock: true", &mut problems);
        let flags = ApiSettings {
            timeout: Some(9.0),
            mock: Some(false),
            ..ApiSettings::default()
        };
        let merged = layer(&flags, &file);
        assert_eq!(
            (merged.spec.as_deref(), merged.timeout, merged.mock),
            (Some("a.yaml"), Some(9.0), Some(false))
        );
    }

    #[test]
    fn the_example_file_names_every_key_at_its_default() {
        let text = include_str!("../../config/openapi-mcp.yaml");
        let mut problems = Vec::new();
        parse(text, &mut problems);
        assert_eq!(problems, Vec::<String>::new());
        let flags = keys::<ApiSettings>().into_iter().chain(keys::<ServerSettings>());
        let keys: Vec<String> = flags.chain(FILE_ONLY.map(str::to_owned)).collect();
        // The same file with every key switched on must be read as well.
        let is_key = |line: &&str| {
            keys.iter().any(|key| {
                line.strip_prefix("# ")
                    .and_then(|rest| rest.strip_prefix(key.as_str()))
                    .is_some_and(|rest| rest.starts_with(':'))
            })
        };
        let switched_on: Vec<&str> = text.lines().filter(is_key).map(|line| line.trim_start_matches("# ")).collect();
        parse(&switched_on.join("\n"), &mut problems);
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(
            switched_on.len(),
            keys.len(),
            "a key is missing in the example file, or stands there twice"
        );
    }

    #[test]
    fn the_published_schema_is_fresh() {
        let mut schema = serde_json::to_value(schemars::schema_for!(ApiSettings)).unwrap();
        let server = serde_json::to_value(schemars::schema_for!(ServerSettings)).unwrap();
        for part in ["properties", "$defs"] {
            let more = server[part].as_object().cloned().unwrap_or_default();
            schema[part].as_object_mut().unwrap().extend(more);
        }
        schema["title"] = "openapi-mcp configuration".into();
        schema["additionalProperties"] = false.into();
        schema.as_object_mut().unwrap().remove("description");
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/config/schema.json");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        assert_eq!(
            std::fs::read_to_string(path).unwrap_or_default(),
            text,
            "run the tests once with UPDATE=1"
        );
    }
}
