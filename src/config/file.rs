//! The configuration file: YAML with the same names as the flags. Unknown keys are errors, all of
//! them at once.

use std::path::Path;

use clap::{Args, Command};
use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::apis::admission::{FILE_ONLY, read_keys};
use super::apis::file::read_apis;
use super::apis::named::NamedSettings;
use super::forward::ForwardSettings;
use super::keys::path::make_paths_absolute;
use super::layer::{FILE_ONLY_OF_PROCESS, keys};
use super::problems::Problems;
use super::settings::{ApiSettings, CommandSettings, CommonSettings, ServerSettings};

/// The settings of a file.
#[derive(Debug, Default, Args, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub(crate) struct FileSettings {
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) command: CommandSettings,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) server: ServerSettings,
    /// Several APIs, as far as they can be read, if `apis` is there.
    #[arg(skip)]
    #[serde(skip)]
    pub(crate) apis: Option<Vec<NamedSettings>>,
}

/// The settings of a file's text, with paths that are relative to `folder`; what is wrong with it is
/// pushed to `problems`, each with its key.
pub(crate) fn parse(text: &str, folder: &Path, problems: &mut Problems) -> FileSettings {
    let mut map = read_map(text, problems);
    let command = FileSettings::augment_args(Command::new(""));
    make_paths_absolute(&mut map, folder, &command);
    if map.contains_key("apis") {
        refuse_keys_beside_apis(&map, problems);
    }
    let mut apis = None;
    let (mut settings, rules) = read_keys::<FileSettings>(
        map,
        &[&["apis"], &FILE_ONLY_OF_PROCESS[..]].concat(),
        problems,
        |key, value, problems| {
            let is_known = key == "apis";
            if is_known {
                apis = Some(read_apis(value, problems));
            }
            is_known
        },
    );
    settings.command.api.rules = rules;
    FileSettings { apis, ..settings }
}

/// Reports the keys of one API that are beside `apis`.
fn refuse_keys_beside_apis(map: &Map<String, Value>, problems: &mut Problems) {
    let (api, forward, common) = (
        keys::<ApiSettings>(),
        keys::<ForwardSettings>(),
        keys::<CommonSettings>(),
    );
    let is_of_one = |key: &String| {
        api.contains(key)
            || forward.contains(key)
            || (FILE_ONLY.contains(&key.as_str()) && key != "about")
    };
    for key in map
        .keys()
        .filter(|key| is_of_one(key) && !common.contains(key))
    {
        problems.push(format!(
            "`{key}` concerns one API and is not inherited; with `apis`, put it under the name of the API that it is for"
        ));
    }
}

/// The keys of a file and their values.
fn read_map(text: &str, problems: &mut Problems) -> Map<String, Value> {
    match read_yaml(text.trim_start_matches('\u{feff}')) {
        Ok(Value::Object(map))
            if map.contains_key("paths")
                && ["openapi", "swagger"]
                    .iter()
                    .any(|key| map.contains_key(*key)) =>
        {
            problems
                .push("it is an OpenAPI document, not a configuration file; give it with --spec");
        }
        Ok(Value::Object(map)) => return map,
        Ok(Value::Null) => {}
        Ok(_) => problems.push("it must be a mapping of keys to values"),
        Err(error) => problems.push(format!("it is not valid YAML: {error}")),
    }
    Map::new()
}

/// Reads a YAML text. A key that a mapping has twice is an error: of two lists of rules, one would
/// be lost without a message.
pub(super) fn read_yaml(text: &str) -> Result<Value, serde_yaml::Error> {
    // This one refuses a key twice, and the other one keeps keys as they are written: `1.10` is not
    // `1.1`.
    let yaml: serde_yaml::Value = serde_yaml::from_str(text)?;
    let json = serde_yaml::from_str(text)?;
    if has_all_keys(&json, &yaml) {
        return Ok(json);
    }
    Err(serde_yaml::Error::custom(
        "a key is there twice, once in quotes and once without",
    ))
}

/// Returns true if keys that differ in YAML differ as texts too: `1` and `"1"` do not.
fn has_all_keys(json: &Value, yaml: &serde_yaml::Value) -> bool {
    match (json, yaml) {
        (Value::Object(json), serde_yaml::Value::Mapping(yaml)) => {
            let mut members = json.values().zip(yaml.values());
            json.len() == yaml.len() && members.all(|(json, yaml)| has_all_keys(json, yaml))
        }
        (Value::Array(json), serde_yaml::Value::Sequence(yaml)) => {
            let mut items = json.iter().zip(yaml);
            items.all(|(json, yaml)| has_all_keys(json, yaml))
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::clients::access_rules::AccessSchema;
    use crate::config::layer::layer;
    use crate::config::overrides::OverridesSchema;
    use crate::config::tables::RANGES;

    fn parsed(text: &str, problems: &mut Problems) -> ApiSettings {
        parse(text, Path::new(""), problems).command.api
    }

    #[test]
    fn all_problems_of_a_file_are_told_at_once() {
        let mut problems = Problems::default();
        let api = parsed(
            "spec: a.yaml\nbse_url: x\ntimeout: soon\ntransport: tcp\nzzz: 1",
            &mut problems,
        );
        assert_eq!(api.document.spec, Some("a.yaml".into()));
        let all = problems.join("\n");
        for expected in [
            "`bse_url`; did you mean `base_url`?",
            "`timeout`",
            "`transport`",
            "`zzz`",
        ] {
            assert!(all.contains(expected), "{all}");
        }
        assert_eq!(problems.len(), 4);
    }

    #[test]
    fn a_key_that_is_there_twice_is_an_error_at_any_depth() {
        for (text, words) in [
            (
                "overrides: [{match: {method: GET}}]\nmock: true\noverrides: []",
                "\"overrides\"",
            ),
            ("mock: true\n\"mock\": false", "\"mock\""),
            (
                "overrides: [{enabled: true, enabled: false}]",
                "\"enabled\"",
            ),
            ("tenants: {entries: {1: {}, 1: {}}}", "key 1"),
            ("tenants: {entries: {1: {}, \"1\": {}}}", "there twice"),
            ("apis: [{1.0: a, \"1.0\": b}]", "there twice"),
        ] {
            let mut problems = Problems::default();
            parsed(text, &mut problems);
            assert_eq!(problems.len(), 1, "{text}: {problems:?}");
            assert!(problems[0].contains(words), "{text}: {problems:?}");
        }
    }

    #[test]
    fn keys_and_values_stay_as_they_are_written() {
        let value = |text: &str| read_yaml(text).unwrap();
        for (yaml, json) in [
            ("1.10: a", r#"{"1.10":"a"}"#),
            ("007: a", r#"{"007":"a"}"#),
            ("0x10: no", r#"{"0x10":"no"}"#),
            ("true: yes", r#"{"true":"yes"}"#),
            ("a: 1.5", r#"{"a":1.5}"#),
        ] {
            assert_eq!(value(yaml).to_string(), json);
        }
        assert!(read_yaml("a: !secret b").is_err(), "a tag is not ignored");
    }

    #[test]
    fn numbers_of_the_file_keep_their_value() {
        let mut problems = Problems::default();
        let api = parsed(
            "timeout: 0.1\nrate_limit: 2.5\nretries: 1\nbreaker_pause: 1e1\nmax_concurrency: 0",
            &mut problems,
        );
        assert!(problems.is_empty(), "{problems:?}");
        let api = layer(&ApiSettings::default(), &api);
        let upstream = api.upstream;
        assert_eq!(
            (api.timeout, upstream.rate_limit, upstream.breaker_pause),
            (Some(0.1), Some(2.5), Some(10.0))
        );
        assert_eq!(
            (upstream.retries, upstream.max_concurrency),
            (Some(1), Some(0))
        );
    }

    #[test]
    fn a_flag_is_stronger_than_the_file() {
        let mut problems = Problems::default();
        let file = parsed("spec: a.yaml\ntimeout: 5\nmock: true", &mut problems);
        let flags = ApiSettings {
            timeout: Some(9.0),
            common: CommonSettings {
                mock: Some(false),
                ..CommonSettings::default()
            },
            ..ApiSettings::default()
        };
        let merged = layer(&flags, &file);
        assert_eq!(
            (merged.document.spec, merged.timeout, merged.common.mock),
            (Some("a.yaml".into()), Some(9.0), Some(false))
        );
    }

    #[test]
    fn the_example_file_names_every_key_at_its_default() {
        let text = include_str!("../../config/openapi-mcp.yaml");
        let mut problems = Problems::default();
        parsed(text, &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
        let keys: Vec<String> = keys::<FileSettings>()
            .into_iter()
            .chain(FILE_ONLY.map(str::to_owned))
            .chain(FILE_ONLY_OF_PROCESS.map(str::to_owned))
            .collect();
        // The same file with every key switched on must be read as well.
        let is_key = |line: &&str| {
            keys.iter().any(|key| {
                line.strip_prefix("# ")
                    .and_then(|rest| rest.strip_prefix(key.as_str()))
                    .is_some_and(|rest| rest.starts_with(':'))
            })
        };
        let switched_on: Vec<&str> = text
            .lines()
            .filter(is_key)
            .map(|line| line.trim_start_matches("# "))
            .collect();
        parsed(&switched_on.join("\n"), &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
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
        assert_eq!((apis.len(), problems.to_vec()), (1, Vec::new()));
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

    fn remove_empty_defaults(schema: &mut Value) {
        let members = schema.as_object_mut().unwrap().values_mut();
        for member in members.filter_map(Value::as_object_mut) {
            if let Some(Value::Null | Value::Array(_)) = member.get("default") {
                member.remove("default");
            }
            if let Some(properties) = member.get_mut("properties") {
                remove_empty_defaults(properties);
            }
        }
    }

    #[test]
    fn the_published_schema_is_fresh() {
        let mut schema = serde_json::to_value(schemars::schema_for!(FileSettings)).unwrap();
        let overrides = serde_json::to_value(schemars::schema_for!(OverridesSchema)).unwrap();
        let access = serde_json::to_value(schemars::schema_for!(AccessSchema)).unwrap();
        for more in [overrides, access, crate::config::apis::schema::apis()] {
            for part in ["properties", "$defs"] {
                let more = more[part].as_object().cloned().unwrap_or_default();
                schema[part].as_object_mut().unwrap().extend(more);
            }
        }
        schema["dependentSchemas"] = crate::config::apis::schema::beside_apis(&schema);
        schema["title"] = "openapi-mcp configuration".into();
        schema["additionalProperties"] = false.into();
        schema.as_object_mut().unwrap().remove("description");
        // What is not given has no value in a file.
        for part in ["properties", "$defs"] {
            remove_empty_defaults(&mut schema[part]);
        }
        remove_null(&mut schema);
        for range in &RANGES {
            let number = |value: f64| serde_json::from_str::<Value>(&value.to_string()).unwrap();
            let property = &mut schema["properties"][range.key];
            let min = if range.zero.is_some() { 0.0 } else { range.min };
            property["minimum"] = number(min);
            if range.max.is_finite() {
                property["maximum"] = number(range.max);
            }
        }
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
