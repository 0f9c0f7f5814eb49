//! `openapi-mcp registry`: the entry of a server in the MCP registry (server.json, schema 2025-12-11).

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};
use url::Url;

use super::bundle::sha256;
use crate::cli::output;
use crate::config::ConfigError;
use crate::error::Failure;
use crate::text::has_hidden_characters;

const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";

/// How long a description may be.
const MAX_DESCRIPTION: usize = 100;

#[derive(Debug, clap::Args)]
pub(crate) struct RegistryCommand {
    /// The server's name: a namespace that you own and a name, as in io.github.you/pets
    #[arg(long, value_name = "NAMESPACE/NAME")]
    name: String,
    /// What the server does, in at most 100 characters
    #[arg(long, value_name = "TEXT")]
    description: String,
    /// The server's version, exactly; not a range
    #[arg(long, value_name = "VERSION")]
    server_version: String,
    /// What is installed: mcpb:URL, oci:IMAGE:TAG, npm:NAME@VERSION or pypi:NAME==VERSION (repeatable)
    #[arg(long, value_name = "KIND:WHAT")]
    package: Vec<String>,
    /// The file behind mcpb:URL, for its digest
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// The address of a server that runs (repeatable)
    #[arg(long, value_name = "URL")]
    remote: Vec<String>,
}

pub(crate) fn run(command: &RegistryCommand) -> Result<ExitCode, Failure> {
    let mut problems = Vec::new();
    check_name(&command.name, &mut problems);
    let length = command.description.chars().count();
    if length == 0 || length > MAX_DESCRIPTION {
        problems.push(format!(
            "--description has {length} characters; the registry takes 1 to {MAX_DESCRIPTION}"
        ));
    }
    if has_hidden_characters(&command.description) {
        problems.push("--description holds characters that are not shown".into());
    }
    check_version(&command.server_version, &mut problems);
    if command.package.is_empty() && command.remote.is_empty() {
        problems.push("an entry says what it points at: --package mcpb:URL with --file, oci:, npm: or pypi:, or --remote URL".into());
    }
    let digest = match &command.file {
        None => None,
        Some(path) => match std::fs::read(path) {
            Ok(bytes) => Some(sha256(&bytes)),
            Err(error) => {
                problems.push(format!("--file: `{}` cannot be read: {error}", path.display()));
                None
            }
        },
    };
    let packages: Vec<Value> = command
        .package
        .iter()
        .filter_map(|text| package(text, digest.as_deref(), &mut problems))
        .collect();
    let remotes: Vec<Value> = command.remote.iter().filter_map(|text| remote(text, &mut problems)).collect();
    if !problems.is_empty() {
        return Err(Failure::Settings(ConfigError(problems)));
    }
    let mut entry = json!({
        "$schema": SCHEMA,
        "name": command.name,
        "description": command.description,
        "version": command.server_version,
    });
    if let Some(members) = entry.as_object_mut() {
        if !packages.is_empty() {
            members.insert("packages".into(), packages.into());
        }
        if !remotes.is_empty() {
            members.insert("remotes".into(), remotes.into());
        }
    }
    output::print_result(&(serde_json::to_string_pretty(&entry).unwrap_or_default() + "\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// `^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$`, 3 to 200 characters.
fn check_name(name: &str, problems: &mut Vec<String>) {
    let part = |text: &str, more: &str| {
        !text.is_empty()
            && text
                .chars()
                .all(|character| character.is_ascii_alphanumeric() || more.contains(character))
    };
    let legal = name
        .split_once('/')
        .is_some_and(|(namespace, name)| part(namespace, ".-") && part(name, "._-"));
    if !legal || !(3..=200).contains(&name.len()) {
        problems.push(
            "--name must be a namespace and a name, as in io.github.you/pets: letters, digits, `.`, `-`, and `_` after the slash".into(),
        );
    }
}

fn check_version(version: &str, problems: &mut Vec<String>) {
    let is_range =
        version.contains(['^', '~', '<', '>', '=', '*', '|', ' ']) || version.split('.').any(|part| part.eq_ignore_ascii_case("x"));
    if version.is_empty() || version.len() > 255 || is_range || version == "latest" {
        problems.push("--server-version must be one exact version, as in 1.2.3".into());
    }
}

fn package(text: &str, digest: Option<&str>, problems: &mut Vec<String>) -> Option<Value> {
    let stdio = json!({ "type": "stdio" });
    match text.split_once(':') {
        Some(("mcpb", url)) => {
            if !Url::parse(url).is_ok_and(|url| url.scheme() == "https") {
                problems.push(format!("--package mcpb: `{url}` must be the https address of the bundle"));
                return None;
            }
            let Some(digest) = digest else {
                problems.push("--package mcpb: needs --file PATH, the bundle itself, for its digest".into());
                return None;
            };
            Some(json!({ "registryType": "mcpb", "identifier": url, "fileSha256": digest, "transport": stdio }))
        }
        Some(("oci", image)) => {
            let tag = image
                .rsplit('/')
                .next()
                .and_then(|last| last.split_once(':').or(last.split_once('@')));
            if tag.is_none_or(|(_, tag)| tag.is_empty() || tag == "latest") {
                problems.push(format!(
                    "--package oci: `{image}` needs an exact tag or digest, as in ghcr.io/you/pets:1.2.3"
                ));
                return None;
            }
            Some(json!({ "registryType": "oci", "identifier": image, "transport": stdio }))
        }
        Some(("npm", what)) => versioned("npm", what.rsplit_once('@').filter(|(name, _)| !name.is_empty()), &stdio, problems),
        Some(("pypi", what)) => versioned("pypi", what.split_once("=="), &stdio, problems),
        _ => {
            problems.push(format!("--package `{text}` must begin with mcpb:, oci:, npm: or pypi:"));
            None
        }
    }
}

fn versioned(kind: &str, parts: Option<(&str, &str)>, stdio: &Value, problems: &mut Vec<String>) -> Option<Value> {
    let Some((name, version)) = parts.filter(|(name, version)| !name.is_empty() && !version.is_empty()) else {
        problems.push(format!(
            "--package {kind}: needs an exact version, as in npm:NAME@1.2.3 or pypi:NAME==1.2.3"
        ));
        return None;
    };
    check_version(version, problems);
    Some(json!({ "registryType": kind, "identifier": name, "version": version, "transport": stdio }))
}

fn remote(text: &str, problems: &mut Vec<String>) -> Option<Value> {
    let is_public = Url::parse(text).is_ok_and(|url| url.scheme() == "https" && url.username().is_empty() && url.query().is_none());
    if !is_public {
        problems.push("--remote must be an https URL without user and query, as in https://mcp.example/mcp".into());
        return None;
    }
    Some(json!({ "type": "streamable-http", "url": text }))
}
