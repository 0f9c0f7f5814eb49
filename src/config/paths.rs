//! Paths in settings. Those of the configuration file are relative to its folder, those of a flag
//! or a variable to the working directory.

use std::convert::Infallible;
use std::path::{Path, PathBuf};

use clap::Command;
use serde_json::{Map, Value};

use crate::spec::Source;

/// Keys of the file that are not flags, and hold paths under the keys `file`, `icon` and
/// `client_certificate`.
const NESTED: [&str; 3] = ["about", "auth", "tenants"];

/// Parses the value of a flag or a variable that is a path. clap refuses one that is not UTF-8, which
/// the map of settings could not hold.
pub(super) fn utf8_path(text: &str) -> Result<PathBuf, Infallible> {
    text.parse()
}

/// Makes the paths of a file's settings absolute, which are relative to `folder`; `command` has the
/// settings as flags, whose value names say which of them are paths.
pub(crate) fn make_paths_absolute(
    settings: &mut Map<String, Value>,
    folder: &Path,
    command: &Command,
) {
    for (key, value) in settings {
        if key == "apis" {
            for api in value.as_object_mut().into_iter().flat_map(Map::values_mut) {
                if let Value::Object(api) = api {
                    make_paths_absolute(api, folder, command);
                }
            }
        } else if key == "auth_tokens" {
            let tokens = value.as_array_mut().into_iter().flatten();
            for (key, member) in tokens.filter_map(Value::as_object_mut).flatten() {
                // A claim may be called `file`.
                if key != "claims" {
                    make_member_absolute(key, member, folder);
                }
            }
        } else if NESTED.contains(&key.as_str()) {
            make_nested_absolute(value, folder);
        } else if let Some(argument) = command.get_arguments().find(|known| known.get_id() == key) {
            for value_name in argument.get_value_names().unwrap_or_default() {
                make_value_absolute(value_name, value, folder);
            }
        }
    }
}

fn make_nested_absolute(value: &mut Value, folder: &Path) {
    match value {
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| make_nested_absolute(item, folder)),
        Value::Object(members) => {
            for (key, member) in members {
                make_member_absolute(key, member, folder);
            }
        }
        _ => {}
    }
}

fn make_member_absolute(key: &str, member: &mut Value, folder: &Path) {
    match key {
        "file" | "icon" | "client_certificate" if member.is_string() => {
            make_value_absolute("FILE", member, folder);
        }
        _ => make_nested_absolute(member, folder),
    }
}

fn make_value_absolute(value_name: &str, value: &mut Value, folder: &Path) {
    match value {
        Value::String(text) => {
            *text = change_path(value_name, text, |path| match Source::parse(path) {
                Ok(Source::Path(path)) if !path.as_os_str().is_empty() => {
                    folder.join(path).display().to_string()
                }
                _ => path.to_owned(),
            });
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| make_value_absolute(value_name, item, folder)),
        _ => {}
    }
}

/// The value of a setting with another path, if values of that name hold one.
pub(crate) fn change_path(
    value_name: &str,
    value: &str,
    change: impl FnOnce(&str) -> String,
) -> String {
    match value_name {
        "NAME=PATH" => split_header_file(value).map_or_else(
            || value.to_owned(),
            |(name, scheme, path)| {
                let space = if scheme.is_empty() { "" } else { " " };
                format!("{name}={scheme}{space}{}", change(path))
            },
        ),
        "NAME[=FILE|URL]" => value.split_once('=').map_or_else(
            || value.to_owned(),
            |(name, path)| format!("{name}={}", change(path)),
        ),
        _ if value_name
            .split('|')
            .any(|part| matches!(part, "FILE" | "DIR")) =>
        {
            change(value)
        }
        _ => value.to_owned(),
    }
}

/// The parts of a header of requests whose value is in a file: `NAME=PATH`, or `NAME=SCHEME PATH`
/// with an authentication scheme before the value. Returns the name, the scheme or an empty text,
/// and the path; `None` if there is no `=`.
pub(crate) fn split_header_file(text: &str) -> Option<(&str, &str, &str)> {
    let (name, value) = text.split_once('=')?;
    // A path has a separator or a dot in its first word, or no second one.
    let is_scheme = |word: &str| {
        word.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let (scheme, path) = value
        .trim()
        .split_once(' ')
        .filter(|(word, _)| is_scheme(word))
        .unwrap_or(("", value));
    Some((name, scheme, path.trim()))
}

#[cfg(test)]
mod tests {
    use clap::Args as _;
    use serde_json::json;

    use super::*;
    use crate::config::file::FileSettings;
    use crate::config::settings::{is_key_alone, with_variables};

    /// A path of another kind would take all other settings of its group with it.
    #[cfg(unix)]
    #[test]
    fn every_setting_refuses_a_value_that_is_not_utf_8() {
        use std::os::unix::ffi::OsStringExt as _;
        let command = with_variables(FileSettings::augment_args(Command::new("")));
        let flags = command.get_arguments().filter(|one| !is_key_alone(one));
        for argument in flags {
            let flag = argument.get_long().unwrap_or_default();
            let mut given = format!("--{flag}=").into_bytes();
            given.push(0xe9);
            let words = ["".into(), std::ffi::OsString::from_vec(given)];
            let read = command.clone().try_get_matches_from(words);
            assert!(read.is_err(), "--{flag}");
        }
    }

    #[test]
    fn only_a_relative_path_starts_at_the_folder() {
        for (text, expected) in [
            ("api.yaml", "/etc/mcp/api.yaml"),
            ("../api.yaml", "/etc/mcp/../api.yaml"),
            ("/api.yaml", "/api.yaml"),
            ("-", "-"),
            ("https://h.example/api.yaml", "https://h.example/api.yaml"),
            ("", ""),
        ] {
            let header = |path: &str| match path {
                "" => "X-Key".to_owned(),
                path => format!("X-Key=Bearer {path}"),
            };
            let file = json!({
                "spec": text,
                "base_url": text,
                "overlay": [text],
                "header_file": [header(text)],
                "save_files": text,
                "auth": { "key": { "file": text, "client_certificate": text, "env": text } },
                "about": { "icon": text, "title": text },
                "auth_tokens": [{ "file": text, "claims": { "file": text } }],
                "apis": { "pets": { "spec": text, "auth": { "key": { "password": { "file": text } } } } },
                "overrides": [{ "arguments": { "query:a": { "value": { "file": text } } } }],
            });
            let Value::Object(mut settings) = file else {
                panic!()
            };
            let command = FileSettings::augment_args(Command::new(""));
            make_paths_absolute(&mut settings, Path::new("/etc/mcp"), &command);
            assert_eq!(
                Value::Object(settings),
                json!({
                    "spec": expected,
                    "base_url": text,
                    "overlay": [expected],
                    "header_file": [header(expected)],
                    "save_files": expected,
                    "auth": { "key": { "file": expected, "client_certificate": expected, "env": text } },
                    "about": { "icon": expected, "title": text },
                    "auth_tokens": [{ "file": expected, "claims": { "file": text } }],
                    "apis": { "pets": { "spec": expected, "auth": { "key": { "password": { "file": expected } } } } },
                    "overrides": [{ "arguments": { "query:a": { "value": { "file": text } } } }],
                })
            );
        }
    }
}
