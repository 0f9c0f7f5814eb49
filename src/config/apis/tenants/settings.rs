//! The key `tenants` of the configuration file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::config::auth::settings::{SchemeSettings, check_schemes};
use crate::config::keys::wrong_value::{Disclosure, FileProblems, join_path};

/// Tenants: calls go to the base URL of the client's tenant, with the credentials of that tenant
/// alone. A client that is none of them is refused.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TenantSettings {
    /// The claim of the client's verified access token that names its tenant, by its name or its
    /// JSON Pointer
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
    /// The header of the client's HTTP request that names its tenant; it proves nothing, so that
    /// only one tenant may have credentials then
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// The tenants by the value of the claim or header, compared byte for byte
    pub entries: BTreeMap<String, TenantEntrySettings>,
}

/// One tenant.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TenantEntrySettings {
    /// The complete URL that its calls go to
    pub base_url: String,
    /// Its credentials by the name of the document's security scheme, each by reference; without
    /// any, none are sent
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub auth: BTreeMap<String, SchemeSettings>,
}

/// Returns true if the value of `tenants` can be read; faults are pushed to `problems`.
pub(crate) fn check_tenants(value: &Value, problems: &mut FileProblems<'_>) -> bool {
    const EXPECTED: &str = "a mapping with `claim` or `header`, and `entries`";
    let before = problems.problems.len();
    let Value::Object(members) = value else {
        problems.push_wrong_value("tenants", value, EXPECTED, Disclosure::Hidden);
        return false;
    };
    for (key, value) in members {
        let path = join_path("tenants", key);
        match (key.as_str(), value) {
            ("claim" | "header", Value::String(_)) => {}
            ("claim" | "header", _) => {
                problems.push_wrong_value(&path, value, "a name", Disclosure::Shown);
            }
            ("entries", Value::Object(entries)) => check_entries(&path, entries, problems),
            ("entries", _) => {
                let expected =
                    "a mapping of the values of the claim or header to `{ base_url: …, auth: … }`";
                problems.push_wrong_value(&path, value, expected, Disclosure::Hidden);
            }
            _ => problems.push_unknown_key("tenants", key, ["claim", "header", "entries"]),
        }
    }
    problems.problems.len() == before
}

fn check_entries(path: &str, entries: &Map<String, Value>, problems: &mut FileProblems<'_>) {
    for (name, entry) in entries {
        let path = join_path(path, name);
        let Value::Object(members) = entry else {
            problems.push_wrong_value(
                &path,
                entry,
                "a mapping with `base_url`",
                Disclosure::Hidden,
            );
            continue;
        };
        for (key, value) in members {
            match (key.as_str(), value) {
                ("base_url", Value::String(_)) => {}
                ("base_url", _) => problems.push_wrong_value(
                    &join_path(&path, key),
                    value,
                    "a URL",
                    Disclosure::Hidden,
                ),
                ("auth", value) => {
                    check_schemes(&join_path(&path, key), value, problems);
                }
                _ => problems.push_unknown_key(&path, key, ["base_url", "auth"]),
            }
        }
    }
}
