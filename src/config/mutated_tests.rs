//! Configuration files with random faults: none of them ends in a panic, and no error repeats a
//! secret.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::LayeredSettings;
use super::file::read_yaml;
use super::settings::{CommandSettings, ServerSettings};
use super::several::ConfigFile;

const FILES: usize = 3000;
const SECRET: &str = "hunter2-hunter2-hunter2";

/// Keys whose values, at any depth, may be secrets.
const CREDENTIALS: [&str; 9] = [
    "auth",
    "auth_tokens",
    "header",
    "header_env",
    "header_file",
    "proxy",
    "proxy_auth_env",
    "spec_header",
    "spec_header_env",
];
/// Keys whose values are URLs.
const URLS: [&str; 9] = [
    "allow_origin",
    "base_url",
    "credential_origin",
    "oauth_introspection_url",
    "oauth_issuer",
    "oauth_jwks_url",
    "public_url",
    "shared_state",
    "tenants",
];

/// Numbers that are the same in each run (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(end).unwrap()).unwrap()
    }
}

/// The example with every key switched on, as the only API and as one of several, and the files of
/// cases.
fn originals() -> Vec<Value> {
    let example = include_str!("../../config/openapi-mcp.yaml");
    let keys = example.lines().filter_map(|line| line.strip_prefix("# "));
    let is_key = |line: &&str| {
        line.split_once(": ").is_some_and(|(key, _)| {
            key.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        })
    };
    let lines: Vec<&str> = keys.filter(is_key).collect();
    let read = |key: &&str| read_yaml(key).ok()?.as_object().cloned();
    let mut all: Map<String, Value> = lines.iter().filter_map(read).flatten().collect();
    let apis = all.shift_remove("apis").unwrap();
    let cases = [
        include_str!("../../tests/cases/settings/file_problems.yaml"),
        include_str!("../../tests/cases/settings/several_problems.yaml"),
    ];
    let cases = cases
        .into_iter()
        .flat_map(|text| read_yaml(text).unwrap().as_array().unwrap().clone());
    let files = cases.filter_map(|case| read_yaml(case["file"].as_str()?).ok());
    let mut originals: Vec<Value> = files.filter(Value::is_object).collect();
    assert!(originals.len() > 20 && all.len() > 90, "{}", all.len());
    originals.push(json!({ "apis": apis }));
    // Half of the files are of the example.
    let examples = vec![Value::Object(all); originals.len()];
    originals.extend(examples);
    originals
}

/// Changes a random part of a value; `keys` are those that lead to it.
fn mutate(value: &mut Value, keys: &mut Vec<String>, random: &mut Random) {
    let count = match value {
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        _ => 0,
    };
    if count > 0 && (keys.is_empty() || random.below(3) > 0) {
        let index = random.below(count);
        match value {
            Value::Array(items) => mutate(&mut items[index], keys, random),
            Value::Object(members) => {
                let key = members.keys().nth(index).unwrap().clone();
                keys.push(key.clone());
                match random.below(6) {
                    0 => drop(members.shift_remove(&key)),
                    1 => {
                        let member = members[&key].clone();
                        members.insert(key + "x", member);
                    }
                    _ => mutate(&mut members[&key], keys, random),
                }
            }
            _ => {}
        }
        return;
    }
    let has = |known: &[&str]| keys.iter().any(|key| known.contains(&key.as_str()));
    let (is_credential, is_url) = (has(&CREDENTIALS), has(&URLS));
    *value = match random.below(11) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!(1.5),
        4 => json!(18_446_744_073_709_551_615_u64),
        5 => json!(""),
        6 => json!([value]),
        7 => json!({ "a": value }),
        8 => json!({}),
        _ if is_credential => SECRET.into(),
        _ if is_url => format!("https://user:{SECRET}@h.example/x?key={SECRET}").into(),
        _ => json!("\u{1b}[31m$\"`\n"),
    };
}

#[test]
fn no_fault_of_a_file_is_a_panic_or_shows_a_secret() {
    let (originals, folder) = (originals(), tempfile::tempdir().unwrap());
    let path = folder.path().join("mcp.yaml");
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut faults, mut shown) = (0, BTreeSet::new());
    for number in 0..FILES {
        let mut file = originals[number % originals.len()].clone();
        let members = file.as_object_mut().unwrap();
        if members.len() > 90 {
            members.retain(|_, _| random.below(6) == 0);
        }
        let mut keys = Vec::new();
        for _ in 0..=random.below(3) {
            keys.clear();
            mutate(&mut file, &mut keys, &mut random);
        }
        let mut text = file.to_string();
        if random.below(20) == 0 {
            let first = file.as_object().and_then(|members| members.iter().next());
            text.extend(first.map(|(key, value)| format!("\n{}: {value}", json!(key))));
        }
        std::fs::write(&path, &text).unwrap();
        let error = problems_of(&path);
        let is_bad = |line: &&str| line.contains("hunter2") || line.contains('\u{1b}');
        shown.extend(error.lines().filter(is_bad).map(str::to_owned));
        faults += usize::from(!error.is_empty());
    }
    assert!(shown.is_empty(), "{shown:#?}");
    assert!(faults > FILES / 2, "{faults}");
}

fn problems_of(path: &Path) -> String {
    let layered = LayeredSettings::read(
        &CommandSettings::default(),
        &ServerSettings::default(),
        &ConfigFile {
            config: Some(path.to_owned()),
            ..ConfigFile::default()
        },
    );
    layered
        .resolve()
        .map_or_else(|error| error.to_string(), |_| String::new())
}
