//! Keys of the configuration file, each judged by its value alone.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::annotate::Rule;
use crate::config::apis::tenants::settings::check_tenants;
use crate::config::credentials::check_schemes;
use crate::config::layer::{from_map, keys};
use crate::config::overrides::read_rules;
use crate::config::settings::ApiSettings;
use crate::config::wrong_value::{Disclosure, FileProblems, expected_by};

/// Keys of [`ApiSettings`] that are not flags, because no line could hold their values.
pub(crate) const FILE_ONLY: [&str; 3] = ["auth", "overrides", "tenants"];

/// The settings of one API in a file, while its keys are read.
#[derive(Debug)]
pub(crate) struct ApiMembers {
    flags: Vec<String>,
    settings: Map<String, Value>,
    rules: Vec<Rule>,
}

impl ApiMembers {
    pub(crate) fn new() -> Self {
        Self {
            flags: keys::<ApiSettings>(),
            settings: Map::new(),
            rules: Vec::new(),
        }
    }

    /// Whether `key` is a setting of an API.
    pub(crate) fn know(&self, key: &str) -> bool {
        self.known_keys().any(|known| known == key)
    }

    /// The keys of an API's settings.
    pub(crate) fn known_keys(&self) -> impl Iterator<Item = &str> {
        self.flags.iter().map(String::as_str).chain(FILE_ONLY)
    }

    /// Takes a key that is known, where its value makes sense.
    pub(crate) fn admit(&mut self, key: String, value: Value, problems: &mut FileProblems<'_>) {
        match key.as_str() {
            "overrides" => self.rules = read_rules(&value, problems),
            "auth" if !check_schemes(&key, &value, problems) => {}
            "tenants" if !check_tenants(&value, problems) => {}
            "auth" | "tenants" => {
                self.settings.insert(key, value);
            }
            _ => admit_key::<ApiSettings>(key, value, &mut self.settings, problems),
        }
    }

    /// The settings that were admitted.
    pub(crate) fn into_settings(self) -> ApiSettings {
        ApiSettings {
            overrides: self.rules,
            ..from_map(self.settings)
        }
    }
}

/// Takes one key where its value alone makes sense.
pub(crate) fn admit_key<T: DeserializeOwned>(key: String, value: Value, map: &mut Map<String, Value>, problems: &mut FileProblems<'_>) {
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
    // One wrong element is told as such.
    let elements = value.as_array().into_iter().flatten().enumerate();
    let wrong = elements.filter_map(|(index, element)| Some((index, element, admits(&vec![element.clone()].into()).err()?)));
    let before = problems.problems.len();
    if admits(&Vec::<Value>::new().into()).is_ok() {
        for (index, element, error) in wrong {
            problems.push_wrong_value(&format!("{key}[{index}]"), element, &expected_by(&error), disclosure);
        }
    }
    if problems.problems.len() == before {
        problems.push_wrong_value(&key, &value, &expected_by(&error), disclosure);
    }
}
