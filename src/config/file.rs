//! The configuration file: YAML with the same names as the flags. Unknown keys are errors, all of
//! them at once.

use std::collections::BTreeMap;
use std::path::Path;

use clap::{Args, Command};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::about::AboutSettings;
use super::auth::settings::SchemeSettings;
use super::clients::access_rules::read_access;
use super::clients::named_tokens::check_tokens;
use super::headers::ForwardSettings;
use super::overrides::read_rules;
use super::paths::make_paths_absolute;
use super::problems::{Disclosure, Problems, can_be_read, expected_by};
use super::settings::{
    ApiSettings, CommandSettings, CommonSettings, FileRules, ProcessSettings, ServerSettings,
    TenantSettings,
};
use super::several::{NamedSettings, add_api};
use super::tables::{FILE_ONLY_OF_PROCESS, from_map, keys};
use crate::api::about::ApiName;

/// The settings of a file.
#[derive(Default, Args, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub(crate) struct FileSettings {
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) command: CommandSettings,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) server: ServerSettings,
    /// The rules of the only API.
    #[arg(skip)]
    #[serde(skip)]
    pub(crate) rules: FileRules,
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
    let (settings, rules) = read_keys::<FileSettings>(
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
    FileSettings {
        rules,
        apis,
        ..settings
    }
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

/// Keys of the settings of an API that are not flags, because no line could hold their values.
pub(crate) const FILE_ONLY: [&str; 5] = ["about", "access", "auth", "overrides", "tenants"];

/// The value of `auth`.
type Schemes = BTreeMap<String, SchemeSettings>;

/// The settings of a mapping, and its rules. A key that `T` does not have is handed to
/// `take_other`, and is unknown if that does not take it; `others` are the keys that it takes.
fn read_keys<T: Args + DeserializeOwned + Default>(
    members: Map<String, Value>,
    others: &[&str],
    problems: &mut Problems,
    mut take_other: impl FnMut(&str, &Value, &mut Problems) -> bool,
) -> (T, FileRules) {
    let flags = keys::<T>();
    let (mut settings, mut rules) = (Map::new(), FileRules::default());
    for (key, value) in members {
        let Some(value) = problems.without_nulls(&key, value) else {
            continue;
        };
        let is_right = match key.as_str() {
            "overrides" => {
                rules.overrides = read_rules(&value, problems);
                rules.written.insert(key, value);
                continue;
            }
            "access" => {
                rules.access = read_access(&value, problems);
                rules.written.insert(key, value);
                continue;
            }
            "auth" => can_be_read::<Schemes>(&key, &value, Disclosure::Hidden, problems),
            "tenants" => can_be_read::<TenantSettings>(&key, &value, Disclosure::Hidden, problems),
            "about" => can_be_read::<AboutSettings>(&key, &value, Disclosure::Shown, problems),
            "auth_tokens" if others.contains(&"auth_tokens") => check_tokens(&value, problems),
            other
                if flags.contains(&key)
                    || (other == "openai_apps_challenge" && others.contains(&other)) =>
            {
                admits_key::<T>(other, &value, problems)
            }
            other => {
                if !take_other(other, &value, problems) {
                    let known = flags.iter().map(String::as_str).chain(FILE_ONLY);
                    problems.push_unknown_key("", other, known.chain(others.iter().copied()));
                }
                false
            }
        };
        if is_right {
            settings.insert(key, value);
        }
    }
    // An empty list limits nothing.
    rules
        .written
        .retain(|_, value| value.as_array().is_none_or(|list| !list.is_empty()));
    (from_map(settings), rules)
}

/// Returns true if the value of one key by itself is valid.
fn admits_key<T: DeserializeOwned>(key: &str, value: &Value, problems: &mut Problems) -> bool {
    let admits = |value: &Value| {
        let alone = Value::Object(Map::from_iter([(key.to_owned(), value.clone())]));
        serde_json::from_value::<T>(alone).map(|_| ())
    };
    let Err(error) = admits(value) else {
        return true;
    };
    let disclosure = if key.contains("header") || key == "proxy" {
        Disclosure::Hidden
    } else {
        Disclosure::Shown
    };
    // One wrong element is reported as such.
    let elements = value.as_array().into_iter().flatten().enumerate();
    let wrong = elements.filter_map(|(index, element)| {
        Some((index, element, admits(&vec![element.clone()].into()).err()?))
    });
    let before = problems.len();
    if admits(&Vec::<Value>::new().into()).is_ok() {
        for (index, element, error) in wrong {
            problems.push_wrong_value(
                &format!("{key}[{index}]"),
                element,
                &expected_by(&error),
                disclosure,
            );
        }
    }
    if problems.len() == before {
        problems.push_wrong_value(key, value, &expected_by(&error), disclosure);
    }
    false
}

/// The APIs of a file; what is wrong with them is pushed to `problems`, each with its key.
fn read_apis(value: &Value, problems: &mut Problems) -> Vec<NamedSettings> {
    let mut found = Vec::new();
    let keys_of_process = [keys::<ProcessSettings>(), keys::<ServerSettings>()].concat();
    let expected = "a mapping of names to settings";
    let Value::Object(members) = value else {
        problems.push_wrong_value("apis", value, expected, Disclosure::Hidden);
        return found;
    };
    if members.is_empty() {
        problems.push("`apis` names no API; write `NAME: { spec: … }` under it");
    }
    for (key, settings) in members {
        let Some(name) = problems.ok("`apis`", ApiName::parse(key)) else {
            continue;
        };
        let place = format!("apis.{name}");
        let Value::Object(settings) = settings else {
            let expected = "a mapping of settings";
            problems.push_wrong_value(&place, settings, expected, Disclosure::Hidden);
            continue;
        };
        let is_of_process = |key: &str, _: &Value, problems: &mut Problems| {
            let is_known = keys_of_process.iter().any(|known| known == key)
                || FILE_ONLY_OF_PROCESS.contains(&key);
            if is_known {
                problems.push(format!(
                    "`{key}` concerns the whole process, and not one API; put it at the top of the file"
                ));
            }
            is_known
        };
        let (one, rules) = problems.of_api(Some(&name), |problems| {
            read_keys::<NamedSettings>(settings.clone(), &[], problems, is_of_process)
        });
        let one = NamedSettings { rules, ..one };
        add_api(&mut found, name, one, problems);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tables::layer;

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
}
