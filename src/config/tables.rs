//! Settings as maps of the keys that are given, which is how one source is put over another, and what
//! they may hold, need and exclude, each as a row of a table.

use std::fmt;

use clap::{Args, Command};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::problems::Problems;

/// The numbers that a setting may have.
pub(crate) struct NumberRange {
    pub(crate) key: &'static str,
    pub(crate) min: f64,
    /// Infinite if there is no maximum.
    pub(crate) max: f64,
    /// What 0 means, if it is allowed below the minimum.
    pub(crate) zero: Option<&'static str>,
    unit: &'static str,
}

const fn range(key: &'static str, min: f64, max: f64, unit: &'static str) -> NumberRange {
    NumberRange {
        key,
        min,
        max,
        zero: None,
        unit,
    }
}

impl fmt::Display for NumberRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { min, max, unit, .. } = self;
        if let Some(zero) = self.zero {
            write!(f, "0 ({zero}) or ")?;
        }
        if max.is_infinite() && *min <= 1.0 {
            f.write_str("more than 0")
        } else if *max == NO_MAX {
            write!(f, "at least {min} {unit}")
        } else {
            write!(f, "between {min} and {max} {unit}")
        }
    }
}

const NO_MAX: f64 = f64::INFINITY;

/// The settings that take some numbers only.
pub(crate) const RANGES: [NumberRange; 18] = [
    range("breaker_pause", 0.001, 3600.0, "seconds"),
    range("client_rate_limit", 0.001, 1e6, "requests a second"),
    range("collect_pages", 0.0, 100.0, "pages"),
    // Platforms end a process by force long before ten minutes.
    range("drain_delay", 0.0, 600.0, "seconds"),
    range("file_store_bytes", 1_048_576.0, NO_MAX, "bytes"),
    range("max_concurrency", 1.0, NO_MAX, "calls"),
    range("max_connections", 1.0, NO_MAX, "connections"),
    range("max_file_bytes", 1.0, NO_MAX, "bytes"),
    // The largest message must fit into what a client may take of it.
    range("max_memory", 33_554_432.0, NO_MAX, "bytes"),
    range("max_response_bytes", 1.0, NO_MAX, "bytes"),
    NumberRange {
        zero: Some("no limit"),
        ..range("max_result_tokens", 100.0, NO_MAX, "tokens")
    },
    // Into fewer bytes, no schema fits.
    range("max_schema_bytes", 512.0, NO_MAX, "bytes"),
    range("max_tool_name_length", 16.0, 128.0, "characters"),
    range("rate_limit", 0.001, 1e6, "requests a second"),
    NumberRange {
        zero: Some("never"),
        ..range("reload", 0.1, 86_400.0, "seconds")
    },
    range("retries", 0.0, 3.0, "times"),
    range("shared_state_timeout", 0.001, 10.0, "seconds"),
    // Clients stop waiting for a call after a minute.
    range("timeout", 0.001, 3600.0, "seconds"),
];

/// Settings, those of which each of them needs one, and what else is to be said of these.
const NEEDS: [(&[&str], &[&str], &str); 12] = [
    (
        &["audit_key_env", "audit_key_file", "audit_log_required"],
        &["audit_log"],
        "",
    ),
    (&["client_key"], &["client_cert"], ""),
    (&["file_store_bytes"], &["file_store"], ""),
    (&["max_file_bytes"], &["save_files", "file_store"], ""),
    (&["approver_scope"], &["oauth_issuer"], ""),
    (
        &[
            "oauth_client_id",
            "oauth_client_secret_env",
            "oauth_client_secret_file",
        ],
        &["oauth_introspection_url"],
        "",
    ),
    (
        &["oauth_introspection_url"],
        &["oauth_client_id"],
        ", the client that may ask it",
    ),
    (
        &["oauth_introspection_url"],
        &["oauth_client_secret_env", "oauth_client_secret_file"],
        "",
    ),
    (&["proxy_auth_env"], &["proxy"], ""),
    (
        &[
            "shared_state_password_env",
            "shared_state_password_file",
            "shared_state_timeout",
        ],
        &["shared_state"],
        "",
    ),
    (
        &["tls_cert"],
        &["tls_key"],
        ", the file of the certificate's private key",
    ),
    (&["tls_key"], &["tls_cert"], ", the file of its certificate"),
];

/// A setting, those that may not be given beside it, and the reason.
const EXCLUDES: [(&str, &[&str], &str); 7] = [
    ("audit_key_env", &["audit_key_file"], ""),
    ("mock", &["base_url"], ": a mocked call goes to no API"),
    ("oauth_client_secret_env", &["oauth_client_secret_file"], ""),
    (
        "shared_state_password_env",
        &["shared_state_password_file"],
        "",
    ),
    ("state_key_env", &["state_key_file"], ""),
    (
        "tenants",
        &["base_url", "server", "server_var"],
        ": each entry of `tenants` has a base URL of its own",
    ),
    (
        "tenants",
        &["auth", "client_cert", "credential_origin", "token_store"],
        ": a tenant has the credentials of its own entry alone, under `auth` there",
    ),
];

/// The settings without those that are outside their range; each fault is pushed to `problems`.
pub(crate) fn check_tables<T>(settings: &T, problems: &mut Problems) -> T
where
    T: Args + Serialize + DeserializeOwned + Default + Clone,
{
    // Only a fault needs the command.
    let name = |key: &str| setting_name(&T::augment_args(Command::new("")), key);
    let mut map = to_map(settings);
    let count = map.len();
    for range in &RANGES {
        let is_within = |number: f64| {
            (range.min..=range.max).contains(&number) || (range.zero.is_some() && number == 0.0)
        };
        let number = map.get(range.key).and_then(Value::as_f64);
        if number.is_some_and(|number| !is_within(number)) {
            problems.push(format!("{} must be {range}", name(range.key)));
            map.remove(range.key);
        }
    }
    let is_given = |key: &&&str| {
        map.get(**key).is_some_and(|value| match value {
            Value::String(text) => !text.trim().is_empty(),
            value => *value != Value::Bool(false),
        })
    };
    for (keys, needed, which) in NEEDS {
        if needed.iter().any(|needed| is_given(&needed)) {
            continue;
        }
        problems.extend(keys.iter().filter(is_given).map(|key| {
            let names: Vec<String> = needed.iter().map(|needed| name(needed)).collect();
            format!("{} needs {}{which}", name(key), names.join(" or "))
        }));
    }
    for (key, others, why) in EXCLUDES {
        if is_given(&&key) {
            let given = others.iter().filter(is_given);
            problems.extend(
                given.map(|other| {
                    format!("{} and {} exclude each other{why}", name(key), name(other))
                }),
            );
        }
    }
    if map.len() == count {
        settings.clone()
    } else {
        from_map(map)
    }
}

/// Keys of the process that are not flags.
pub(crate) const FILE_ONLY_OF_PROCESS: [&str; 2] = ["auth_tokens", "openai_apps_challenge"];

/// Returns `over` for each setting that it has, else `under`.
pub(crate) fn layer<T: Serialize + DeserializeOwned + Default + Clone>(over: &T, under: &T) -> T {
    let mut merged = to_map(under);
    if merged.is_empty() {
        return over.clone();
    }
    merged.extend(to_map(over));
    from_map(merged)
}

/// The names of all settings of `T`, which are those of its flags.
pub(crate) fn keys<T: Args>() -> Vec<String> {
    T::augment_args(Command::new(""))
        .get_arguments()
        .map(|argument| argument.get_id().to_string())
        .collect()
}

/// The name of a setting as the operator writes it: a flag, or a key that has none.
fn setting_name(command: &Command, key: &str) -> String {
    let mut arguments = command.get_arguments();
    if arguments.any(|argument| argument.get_id() == key && !argument.is_hide_set()) {
        format!("--{}", key.replace('_', "-"))
    } else {
        format!("`{key}`")
    }
}

/// The names and keys of the settings that are given; a boolean that is false asks for nothing.
pub(crate) fn given_settings<T: Args + Serialize>(settings: &T) -> Vec<(String, String)> {
    let command = T::augment_args(Command::new(""));
    let mut given = to_map(settings);
    given.retain(|_, value| *value != Value::Bool(false));
    let named = |key: String| (setting_name(&command, &key), key);
    given.into_iter().map(|(key, _)| named(key)).collect()
}

/// The settings that are given: a blank `spec`, as by `--spec "$UNSET"`, is not.
pub(crate) fn to_map<T: Serialize>(settings: &T) -> Map<String, Value> {
    let Ok(Value::Object(mut map)) = serde_json::to_value(settings) else {
        return Map::new();
    };
    map.retain(|key, value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::String(text) => key != "spec" || !text.trim().is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    });
    map
}

pub(crate) fn from_map<T: DeserializeOwned + Default>(map: Map<String, Value>) -> T {
    // Every key was admitted on its own, and no two of them depend on each other.
    serde_json::from_value(Value::Object(map)).unwrap_or_default()
}
