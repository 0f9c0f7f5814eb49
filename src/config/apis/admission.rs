//! Keys of the configuration file, each judged by its value alone.

use std::collections::BTreeMap;

use clap::Args;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::config::apis::about::AboutSettings;
use crate::config::apis::tenants::settings::TenantSettings;
use crate::config::auth::settings::SchemeSettings;
use crate::config::clients::access_rules::read_access;
use crate::config::clients::named_tokens::check_tokens;
use crate::config::keys::read_all::can_be_read;
use crate::config::layer::{from_map, keys};
use crate::config::overrides::read_rules;
use crate::config::problems::{Disclosure, Problems, expected_by};
use crate::config::settings::FileRules;

/// Keys of the settings of an API that are not flags, because no line could hold their values.
pub(crate) const FILE_ONLY: [&str; 5] = ["about", "access", "auth", "overrides", "tenants"];

/// The value of `auth`.
type Schemes = BTreeMap<String, SchemeSettings>;

/// The settings of a mapping, and its rules. A key that `T` does not have is handed to
/// `take_other`, and is unknown if that does not take it; `others` are the keys that it takes.
pub(crate) fn read_keys<T: Args + DeserializeOwned + Default>(
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
        match key.as_str() {
            "overrides" => rules.overrides = read_rules(&value, problems),
            "access" => rules.access = read_access(&value, problems),
            "auth" if !can_be_read::<Schemes>(&key, &value, Disclosure::Hidden, problems) => {}
            "tenants"
                if !can_be_read::<TenantSettings>(&key, &value, Disclosure::Hidden, problems) => {}
            "about" if !can_be_read::<AboutSettings>(&key, &value, Disclosure::Shown, problems) => {
            }
            "auth_tokens" if others.contains(&"auth_tokens") => {
                if check_tokens(&value, problems) {
                    settings.insert(key, value);
                }
            }
            "openai_apps_challenge" if others.contains(&"openai_apps_challenge") => {
                admit_key::<T>(key, value, &mut settings, problems);
            }
            "about" | "auth" | "tenants" => {
                settings.insert(key, value);
            }
            _ if flags.contains(&key) => admit_key::<T>(key, value, &mut settings, problems),
            _ if take_other(&key, &value, problems) => {}
            _ => {
                let known = flags.iter().map(String::as_str).chain(FILE_ONLY);
                problems.push_unknown_key("", &key, known.chain(others.iter().copied()));
            }
        }
    }
    (from_map(settings), rules)
}

/// Takes one key if its value by itself is valid.
fn admit_key<T: DeserializeOwned>(
    key: String,
    value: Value,
    map: &mut Map<String, Value>,
    problems: &mut Problems,
) {
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
        problems.push_wrong_value(&key, &value, &expected_by(&error), disclosure);
    }
}
