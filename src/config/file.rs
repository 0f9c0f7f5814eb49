//! The configuration file: YAML with the same names as the flags. Unknown keys are errors, all of them at once.

use std::fmt;

use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};

use super::apis::admission::{ApiMembers, admit_key};
use super::apis::file::read_apis;
use super::apis::keys::{KEYS_OF_BOTH, PROCESS_KEYS, refuse_keys_beside};
use super::apis::named::FileApis;
use super::forward::ForwardSettings;
use super::layer::{from_map, keys};
use super::settings::{ApiSettings, ServerSettings};
use super::wrong_value::FileProblems;

/// What a file says.
#[derive(Debug, Default)]
pub(crate) struct FileSettings {
    /// Of one API, and what every command takes.
    pub(crate) api: ApiSettings,
    pub(crate) server: ServerSettings,
    /// Of several APIs.
    pub(crate) several: FileApis,
}

/// The settings of a file's text; what is wrong with it is pushed to `problems`, each with its key.
pub(crate) fn parse(text: &str, problems: &mut FileProblems<'_>) -> FileSettings {
    let map = read_map(text, problems);
    let server_keys = keys::<ServerSettings>();
    let (mut api, mut server) = (ApiMembers::new(), Map::new());
    let mut several = FileApis::default();
    if map.contains_key("apis") {
        let forward_keys = keys::<ForwardSettings>();
        let is_of_one = |key: &&String| {
            let is_of_api = api.know(key) || forward_keys.contains(*key);
            is_of_api && !PROCESS_KEYS.contains(&key.as_str()) && !KEYS_OF_BOTH.contains(&key.as_str())
        };
        let beside: Vec<String> = map.keys().filter(is_of_one).cloned().collect();
        refuse_keys_beside(&beside, problems);
    }
    for (key, value) in map {
        let Some(value) = problems.without_nulls(&key, value) else {
            continue;
        };
        if key == "apis" {
            several = read_apis(&value, problems);
        } else if api.know(&key) {
            api.admit(key, value, problems);
        } else if server_keys.contains(&key) {
            admit_key::<ServerSettings>(key, value, &mut server, problems);
        } else {
            let known = api.known_keys().chain(server_keys.iter().map(String::as_str)).chain(["apis"]);
            problems.push_unknown_key("", &key, known);
        }
    }
    FileSettings {
        api: api.into_settings(),
        server: from_map(server),
        several,
    }
}

/// The keys of a file and their values.
fn read_map(text: &str, problems: &mut FileProblems<'_>) -> Map<String, Value> {
    match serde_yaml::from_str::<Once>(text) {
        Ok(Once(Value::Object(map))) => return map,
        Ok(Once(Value::Null)) => {}
        Ok(_) => problems.push("it must be a mapping of keys to values"),
        Err(error) => problems.push(format!("it is not valid YAML: {error}")),
    }
    Map::new()
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
                return Err(de::Error::custom(format!("the key `{key}` is there twice; put both into one")));
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
        // `.nan` and `.inf` are numbers in YAML that no setting takes.
        Ok(Number::from_f64(value).map_or_else(|| Value::String(value.to_string()), Value::Number))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::apis::admission::FILE_ONLY;
    use crate::config::layer::layer;
    use crate::config::overrides::OverridesSchema;

    fn parsed(text: &str, problems: &mut Vec<String>) -> (ApiSettings, ServerSettings) {
        let mut problems = FileProblems {
            file: "mcp.yaml",
            section: None,
            problems,
        };
        let FileSettings { api, server, .. } = parse(text, &mut problems);
        (api, server)
    }

    #[test]
    fn all_problems_of_a_file_are_told_at_once() {
        let mut problems = Vec::new();
        let (api, _) = parsed("spec: a.yaml\nbse_url: x\ntimeout: soon\ntransport: tcp\nzzz: 1", &mut problems);
        assert_eq!(api.spec, Some("a.yaml".into()));
        let all = problems.join("\n");
        for expected in ["`bse_url`; did you mean `base_url`?", "`timeout`", "`transport`", "`zzz`"] {
            assert!(all.contains(expected), "{all}");
        }
        assert_eq!(problems.len(), 4);
    }

    #[test]
    fn a_key_that_stands_twice_is_told() {
        let mut problems = Vec::new();
        parsed("overrides: [{match: {method: GET}}]\nmock: true\noverrides: []", &mut problems);
        assert!(problems[0].contains("`overrides` is there twice"), "{problems:?}");
    }

    #[test]
    fn numbers_of_the_file_keep_their_value() {
        let mut problems = Vec::new();
        let (api, _) = parsed(
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
        let (file, _) = parsed("spec: a.yaml\ntimeout: 5\nmock: true", &mut problems);
        let flags = ApiSettings {
            timeout: Some(9.0),
            mock: Some(false),
            ..ApiSettings::default()
        };
        let merged = layer(&flags, &file);
        assert_eq!(
            (merged.spec, merged.timeout, merged.mock),
            (Some("a.yaml".into()), Some(9.0), Some(false))
        );
    }

    #[test]
    fn the_example_file_names_every_key_at_its_default() {
        let text = include_str!("../../config/openapi-mcp.yaml");
        let mut problems = Vec::new();
        parsed(text, &mut problems);
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
        parsed(&switched_on.join("\n"), &mut problems);
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(
            switched_on.len(),
            keys.len(),
            "a key is missing in the example file, or stands there twice"
        );
        // It excludes the keys of a single API.
        let apis: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("# "))
            .filter(|line| line.starts_with("apis:"))
            .collect();
        parsed(&apis.join("\n"), &mut problems);
        assert_eq!((apis.len(), problems), (1, Vec::<String>::new()));
    }

    /// A setting that is left out has no key: a key without a value is an error.
    fn remove_null(schema: &mut Value) {
        match schema {
            Value::Array(items) => items.iter_mut().for_each(remove_null),
            Value::Object(members) => {
                members.values_mut().for_each(remove_null);
                if let Some(Value::Array(types)) = members.get_mut("type") {
                    types.retain(|name| name != "null");
                    if let [only] = types.as_slice() {
                        members["type"] = only.clone();
                    }
                }
                if let Some(Value::Array(any)) = members.get_mut("anyOf") {
                    any.retain(|one| one["type"] != "null");
                    if let [Value::Object(only)] = any.as_slice() {
                        let only = only.clone();
                        members.remove("anyOf");
                        members.extend(only);
                    }
                }
            }
            _ => {}
        }
    }

    #[test]
    fn the_published_schema_is_fresh() {
        let mut schema = serde_json::to_value(schemars::schema_for!(ApiSettings)).unwrap();
        let server = serde_json::to_value(schemars::schema_for!(ServerSettings)).unwrap();
        let overrides = serde_json::to_value(schemars::schema_for!(OverridesSchema)).unwrap();
        let apis = crate::config::apis::schema::apis(&schema, &overrides);
        for more in [server, overrides, apis] {
            for part in ["properties", "$defs"] {
                let more = more[part].as_object().cloned().unwrap_or_default();
                schema[part].as_object_mut().unwrap().extend(more);
            }
        }
        schema["dependentSchemas"] = crate::config::apis::schema::beside_apis(&schema);
        schema["title"] = "openapi-mcp configuration".into();
        schema["additionalProperties"] = false.into();
        schema.as_object_mut().unwrap().remove("description");
        remove_null(&mut schema);
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
