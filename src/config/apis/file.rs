//! The key `apis` of the configuration file.

use serde_json::Value;

use super::admission::read_keys;
use super::named::{NamedSettings, add_api};
use crate::api::about::ApiName;
use crate::config::layer::{FILE_ONLY_OF_PROCESS, keys};
use crate::config::problems::{Disclosure, Problems};
use crate::config::settings::{ProcessSettings, ServerSettings};

/// The APIs of a file; what is wrong with them is pushed to `problems`, each with its key.
pub(crate) fn read_apis(value: &Value, problems: &mut Problems) -> Vec<NamedSettings> {
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
        let (mut one, rules) = problems.of_api(Some(&name), |problems| {
            read_keys::<NamedSettings>(settings.clone(), &[], problems, is_of_process)
        });
        one.api.rules = rules;
        add_api(&mut found, name, one, problems);
    }
    found
}
