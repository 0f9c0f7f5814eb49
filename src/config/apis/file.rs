//! The key `apis` of the configuration file.

use serde_json::Value;

use super::admission::read_keys;
use super::named::{NamedSettings, add_api};
use crate::api::name::ApiName;
use crate::config::keys::wrong_value::{Disclosure, FileProblems};
use crate::config::layer::{FILE_ONLY_OF_PROCESS, keys};
use crate::config::settings::{ProcessSettings, ServerSettings};

/// The APIs of a file; what is wrong with them is pushed to `problems`, each with its key.
pub(crate) fn read_apis(value: &Value, problems: &mut FileProblems<'_>) -> Vec<NamedSettings> {
    let mut found = Vec::new();
    let keys_of_process = [keys::<ProcessSettings>(), keys::<ServerSettings>()].concat();
    let Value::Object(members) = value else {
        problems.push_wrong_value(
            "apis",
            value,
            "a mapping of names to settings",
            Disclosure::Hidden,
        );
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
            problems.push_wrong_value(
                &format!("apis.{name}"),
                settings,
                "a mapping of settings",
                Disclosure::Hidden,
            );
            continue;
        };
        let section = format!("apis.{name}");
        let mut own = FileProblems {
            section: Some(&section),
            file: problems.file,
            problems: problems.problems,
        };
        let is_of_process = |key: &str, _: &Value, problems: &mut FileProblems<'_>| {
            let is_known = keys_of_process.iter().any(|known| known == key)
                || FILE_ONLY_OF_PROCESS.contains(&key);
            if is_known {
                problems.push(format!(
                    "`{key}` concerns the whole process, and not one API; put it at the top of the file"
                ));
            }
            is_known
        };
        let (mut one, rules) =
            read_keys::<NamedSettings>(settings.clone(), &[], &mut own, is_of_process);
        one.api.rules = rules;
        let place = format!("the configuration file `{}`", problems.file);
        add_api(&mut found, name, one, &place, problems.problems);
    }
    found
}
