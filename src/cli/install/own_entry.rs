//! Recognizes our entries in a client's file: they start this program, or have the form that
//! `install --url` writes.

use serde_json::Value;

use super::entry::{ClientEntry, EntryTarget};
use crate::annotate::KnownClient;

/// Returns `true` if `install` could have written the entry of that name, so that it may be
/// replaced and removed.
pub(super) fn is_own_entry(client: KnownClient, name: &str, entry: &Value) -> bool {
    let words = command_words(entry);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    starts_this_program(&words) || is_own_url_entry(client, name, entry)
}

/// The command with its arguments. opencode has both in one array.
fn command_words(entry: &Value) -> Vec<String> {
    let mut words = Vec::new();
    for key in ["command", "cmd", "args"] {
        match entry.get(key) {
            Some(Value::String(word)) => words.push(word.clone()),
            Some(Value::Array(items)) => {
                words.extend(items.iter().filter_map(Value::as_str).map(str::to_owned));
            }
            _ => {}
        }
    }
    words
}

/// Returns `true` if the words start this program: by its file, with npx or uvx from its package,
/// or one of these through `cmd` or `wsl`.
fn starts_this_program(words: &[&str]) -> bool {
    let Some((program, rest)) = words.split_first() else {
        return false;
    };
    let file = program.rsplit(['/', '\\']).next().unwrap_or_default();
    let lower = file.to_ascii_lowercase();
    let stem = lower
        .strip_suffix(".exe")
        .or(lower.strip_suffix(".cmd"))
        .unwrap_or(&lower);
    match (stem, rest) {
        _ if matches!(file, "openapi-mcp" | "openapi-mcp.exe") => true,
        ("cmd", [flag, rest @ ..]) if flag.eq_ignore_ascii_case("/c") => starts_this_program(rest),
        (
            "wsl",
            [
                "-d" | "--distribution",
                _,
                "--exec" | "-e" | "--",
                rest @ ..,
            ]
            | ["--exec" | "-e" | "--", rest @ ..],
        ) => starts_this_program(rest),
        ("npx", ["-y" | "--yes", package, ..] | [package, ..])
        | ("uvx", ["--from", package, ..] | [package, ..]) => is_own_package(package),
        _ => false,
    }
}

/// The package's name, alone or with a version.
fn is_own_package(text: &str) -> bool {
    let Some(version) = text.strip_prefix(env!("CARGO_PKG_NAME")) else {
        return false;
    };
    version.is_empty() || version.starts_with('@') || version.starts_with("==")
}

/// Returns `true` if `install --url` writes exactly this entry for its address and the variable of
/// its token.
fn is_own_url_entry(client: KnownClient, name: &str, entry: &Value) -> bool {
    let text = |pointer: &&str| entry.pointer(pointer).and_then(Value::as_str);
    let Some(url) = ["/url", "/serverUrl", "/httpUrl", "/uri"]
        .iter()
        .find_map(text)
    else {
        return false;
    };
    let header = [
        "/headers/Authorization",
        "/requestOptions/headers/Authorization",
        "/bearer_token_env_var",
    ];
    let target = EntryTarget::Url {
        url: url.to_owned(),
        token: header
            .iter()
            .find_map(text)
            .map(|header| token_variable(client, name, header)),
    };
    let name = name.to_owned();
    ClientEntry { name, target }.value(client) == *entry
}

/// The variable at the end of a header, such as `Bearer ${NAME}`. VS Code has the id of a question
/// there.
fn token_variable(client: KnownClient, name: &str, header: &str) -> String {
    let mut words = header.rsplit(|character: char| {
        !character.is_ascii_alphanumeric() && !matches!(character, '_' | '-')
    });
    let last = words.find(|word| !word.is_empty()).unwrap_or_default();
    match last.strip_prefix(&format!("{name}-")) {
        Some(id) if client == KnownClient::Vscode => id.to_ascii_uppercase().replace('-', "_"),
        _ => last.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_program_and_the_exact_package_are_ours() {
        for (words, expected) in [
            (&["openapi-mcp"][..], true),
            (&["/usr/local/bin/openapi-mcp", "serve"], true),
            (&["C:\\bin\\openapi-mcp.exe", "serve"], true),
            (&["npx", "-y", "openapi-mcp-server"], true),
            (&["npx", "-y", "openapi-mcp-server@0.1.0", "serve"], true),
            (
                &["cmd", "/c", "npx", "-y", "openapi-mcp-server@0.1.0"],
                true,
            ),
            (
                &[
                    "uvx",
                    "--from",
                    "openapi-mcp-server==0.1.0",
                    "openapi-mcp",
                    "serve",
                ],
                true,
            ),
            (&["uvx", "openapi-mcp-server@latest"], true),
            (
                &[
                    "wsl.exe",
                    "-d",
                    "Debian",
                    "--exec",
                    "/usr/bin/openapi-mcp",
                    "serve",
                ],
                true,
            ),
            (&["uvx", "awslabs.openapi-mcp-server@latest"], false),
            (
                &[
                    "uvx",
                    "--from",
                    "git+https://h.example/openapi-mcp-server",
                    "openapi-mcp",
                ],
                false,
            ),
            (&["npx", "-y", "@ivotoby/openapi-mcp-server"], false),
            (&["npx", "-y", "openapi-mcp-server-extra"], false),
            (&["node", "/home/me/openapi-mcp-tests/other.js"], false),
            (&["/opt/openapi-mcp/bin/other"], false),
            (&["cmd", "/c", "openapi-mcp-tests"], false),
            (&["python", "openapi-mcp"], false),
            (&["my-openapi-mcp"], false),
            (&[], false),
        ] {
            assert_eq!(starts_this_program(words), expected, "{words:?}");
        }
    }
}
