//! The key `apis` of the configuration file.

use serde_json::{Map, Value};

use super::admission::{ApiMembers, admit_key};
use super::keys::PROCESS_KEYS;
use super::named::{FileApis, NamedSettings, add_api};
use super::scopes::ScopeSettings;
use crate::api::name::ApiName;
use crate::config::forward::ForwardSettings;
use crate::config::layer::{from_map, keys};
use crate::config::settings::ServerSettings;
use crate::config::wrong_value::{Disclosure, FileProblems};

/// The APIs of a file; what is wrong with them is pushed to `problems`, each with its key.
pub(crate) fn read_apis(value: &Value, problems: &mut FileProblems<'_>) -> FileApis {
    let mut found = FileApis {
        given: true,
        ..FileApis::default()
    };
    let Value::Object(members) = value else {
        problems.push_wrong_value("apis", value, "a mapping of names to settings", Disclosure::Hidden);
        return found;
    };
    if members.is_empty() {
        problems.push("`apis` names no API; write `NAME: { spec: … }` under it");
    }
    for (key, settings) in members {
        let name = match ApiName::parse(key) {
            Ok(name) => name,
            Err(problem) => {
                problems.push(format!("`apis`: {problem}"));
                continue;
            }
        };
        let Value::Object(settings) = settings else {
            problems.push_wrong_value(&format!("apis.{name}"), settings, "a mapping of settings", Disclosure::Hidden);
            continue;
        };
        let section = format!("apis.{name}");
        let mut own = FileProblems {
            section: Some(&section),
            file: problems.file,
            problems: problems.problems,
        };
        let api = read_api(name, settings, &mut own);
        let place = format!("the configuration file `{}`", problems.file);
        add_api(&mut found.apis, api, &place, problems.problems);
    }
    found
}

/// What stands under one name.
fn read_api(name: ApiName, settings: &Map<String, Value>, problems: &mut FileProblems<'_>) -> NamedSettings {
    let (forward_keys, scope_keys, server_keys) = (keys::<ForwardSettings>(), keys::<ScopeSettings>(), keys::<ServerSettings>());
    let (mut api, mut forward, mut scopes) = (ApiMembers::new(), Map::new(), Map::new());
    for (key, value) in settings {
        let Some(value) = problems.without_nulls(key, value.clone()) else {
            continue;
        };
        let key = key.clone();
        if forward_keys.contains(&key) {
            admit_key::<ForwardSettings>(key, value, &mut forward, problems);
        } else if scope_keys.contains(&key) {
            admit_key::<ScopeSettings>(key, value, &mut scopes, problems);
        } else if PROCESS_KEYS.contains(&key.as_str()) || server_keys.contains(&key) {
            problems.push(format!(
                "`{key}` concerns the whole process, and not one API; put it at the top of the file"
            ));
        } else if api.know(&key) {
            api.admit(key, value, problems);
        } else {
            let others = forward_keys.iter().chain(&scope_keys).map(String::as_str);
            let known = api.known_keys().filter(|key| !PROCESS_KEYS.contains(key)).chain(others);
            problems.push_unknown_key("", &key, known);
        }
    }
    NamedSettings {
        name,
        api: api.into_settings(),
        forward: from_map(forward),
        scopes: from_map(scopes),
    }
}
