//! The entry of one server, in the form of a client, without any secret: for a client's file, and for
//! the server's page, which shows entries for its own address.

use std::path::Path;

use base64::Engine as _;
use clap::ValueEnum as _;
use clap::builder::PossibleValue;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::clients::{CLIENTS, FileFormat, InstallableClient};
use super::flags::WSL;
use super::place::{InstallScope, Surroundings, place_of};
use crate::annotate::KnownClient;
use crate::cli::operating_system::OperatingSystem;
use crate::json::JsonObject;
use crate::transport::http::page::{ENDPOINT, PageSnippet};

/// A server, as it is entered into a client's file.
#[derive(Clone)]
pub(crate) struct ClientEntry {
    pub(crate) name: String,
    pub(crate) target: EntryTarget,
}

/// Way by which a client reaches the server.
#[derive(Clone)]
pub(crate) enum EntryTarget {
    /// The client starts a command.
    Command {
        /// The program, and its arguments.
        words: Vec<String>,
        /// Variables that the server reads its secrets from, by name.
        variables: Vec<String>,
    },
    /// The client connects to a running server.
    Url {
        url: String,
        /// The variable with the bearer token.
        token: Option<String>,
    },
}

/// A variable as a client resolves it, if it can.
pub(super) fn placeholder(
    client: &InstallableClient,
    server: &str,
    variable: &str,
) -> Option<String> {
    let form = client.variable?.replace("ID", &input_id(server, variable));
    Some(form.replace("NAME", variable))
}

/// The id of a question that VS Code asks: the server, and what is asked for.
fn input_id(server: &str, variable: &str) -> String {
    let what = variable
        .strip_prefix("OPENAPI_MCP_AUTH_")
        .unwrap_or(variable);
    format!("{server}-{}", what.to_ascii_lowercase().replace('_', "-"))
}

/// A question of VS Code.
fn input(server: &str, variable: &str) -> Value {
    json!({
        "type": "promptString",
        "id": input_id(server, variable),
        "description": format!("{variable} of {server}"),
        "password": true,
    })
}

/// The value of `WSLENV`, which names the variables of Windows that programs in WSL get.
fn shared_with_wsl(variables: &[String]) -> String {
    let names: Vec<String> = variables.iter().map(|name| format!("{name}/u")).collect();
    names.join(":")
}

/// Returns `true` if a client can hand over variables at all.
pub(crate) fn hands_over_variables(client: KnownClient) -> bool {
    !matches!(client, KnownClient::ClaudeDesktop | KnownClient::Zed)
}

impl ClientEntry {
    /// The names of the variables that the entry refers to.
    pub(crate) fn variables(&self) -> &[String] {
        match &self.target {
            EntryTarget::Command { variables, .. } => variables,
            EntryTarget::Url { token, .. } => token.as_slice(),
        }
    }

    /// The entry as the client's value.
    pub(crate) fn value(&self, client: &InstallableClient) -> Value {
        let variables = self.variables();
        let form = |variable: &String| placeholder(client, &self.name, variable);
        let mut plain = JsonObject::new();
        let (words, url, template) = match &self.target {
            EntryTarget::Command { words, .. } => (words.as_slice(), None, Some(client.command)),
            EntryTarget::Url { url, .. } => (&[][..], Some(url), client.address),
        };
        if words.first().is_some_and(|program| program == WSL) && !variables.is_empty() {
            plain.insert("WSLENV".into(), shared_with_wsl(variables).into());
        }
        let resolve = |name: &str| {
            let value = match name {
                "name" => json!(self.name),
                "program" => json!(words.first()),
                "args" => json!(words.get(1..)),
                "words" => json!(words),
                "names" => json!(variables),
                "plain" => json!(plain),
                "env" => {
                    let named = |name: &String| Some((name.clone(), form(name)?.into()));
                    let mut resolved: JsonObject = variables.iter().filter_map(named).collect();
                    resolved.extend(plain.clone());
                    resolved.into()
                }
                "url" => json!(url),
                "token" => json!(variables.first().and_then(form)),
                _ => json!(variables.first()),
            };
            let is_empty = value.is_null() || value == json!({}) || value == json!([]);
            (!is_empty).then_some(value)
        };
        let template = serde_json::from_str(template.unwrap_or_default()).unwrap_or_default();
        filled(template, &resolve).unwrap_or_default()
    }

    /// The questions that VS Code asks the user; other clients have none.
    pub(crate) fn inputs(&self, client: &InstallableClient) -> Vec<Value> {
        if client.client != KnownClient::Vscode {
            return Vec::new();
        }
        self.variables()
            .iter()
            .map(|variable| input(&self.name, variable))
            .collect()
    }

    /// The text to paste into the client's file.
    pub(crate) fn snippet(&self, client: &InstallableClient) -> String {
        let value = self.value(client);
        match client.format {
            FileFormat::Toml => super::toml_file::snippet(client.keys, &self.name, &value),
            FileFormat::Yaml => yaml_snippet(client, &self.name, &value),
            FileFormat::Json | FileFormat::JsonWithComments | FileFormat::Jsonc => {
                let mut whole = json!({ self.name.clone(): value });
                for key in client.keys.iter().rev() {
                    whole = json!({ *key: whole });
                }
                let inputs = self.inputs(client);
                if let (false, Some(members)) = (inputs.is_empty(), whole.as_object_mut()) {
                    members.insert("inputs".into(), Value::Array(inputs));
                }
                format!("{whole:#}\n")
            }
        }
    }

    /// A link that a click installs.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn link(&self, client: &InstallableClient) -> Result<String, String> {
        const MAX_LINK_LEN: usize = 2000;
        if !self.variables().is_empty() {
            return Err(
                "a link cannot carry the credential that this entry needs; --write or --print does"
                    .into(),
            );
        }
        let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let value = self.value(client);
        let link = match client.client {
            KnownClient::Vscode => {
                let mut whole =
                    JsonObject::from_iter([("name".to_owned(), Value::from(self.name.clone()))]);
                whole.extend(value.as_object().cloned().unwrap_or_default());
                format!(
                    "vscode:mcp/install?{}",
                    encode(&Value::Object(whole).to_string())
                )
            }
            KnownClient::Cursor => {
                let config = base64::engine::general_purpose::STANDARD.encode(value.to_string());
                format!(
                    "cursor://anysphere.cursor-deeplink/mcp/install?name={}&config={}",
                    encode(&self.name),
                    encode(&config)
                )
            }
            KnownClient::Goose => self.goose_link(&encode)?,
            other => {
                return Err(format!(
                    "{other} has no links; vscode, cursor and goose have"
                ));
            }
        };
        if link.len() > MAX_LINK_LEN {
            return Err(format!(
                "the link would have {} characters, and clients take {MAX_LINK_LEN}",
                link.len()
            ));
        }
        Ok(link)
    }

    /// Goose Desktop takes links to an address, and of commands only those of a list, which has no
    /// paths.
    fn goose_link(&self, encode: &dyn Fn(&str) -> String) -> Result<String, String> {
        let target = match &self.target {
            EntryTarget::Command { words, .. } => match words.as_slice() {
                [program, arguments @ ..] if ["npx", "uvx"].contains(&program.as_str()) => {
                    let arguments = arguments.iter();
                    let arguments: String = arguments
                        .map(|argument| format!("&arg={}", encode(argument)))
                        .collect();
                    format!("cmd={program}{arguments}")
                }
                _ => {
                    return Err(
                        "goose takes links only to servers that npx or uvx starts, and to an address (--url); --print shows the entry"
                            .into(),
                    );
                }
            },
            EntryTarget::Url { url, .. } => format!("type=streamable_http&url={}", encode(url)),
        };
        let name = encode(&self.name);
        Ok(format!(
            "goose://extension?{target}&id={name}&name={name}&timeout=300"
        ))
    }
}

/// A template with the values of what begins with `$`. A member without a value is left out.
fn filled(template: Value, resolve: &dyn Fn(&str) -> Option<Value>) -> Option<Value> {
    match template {
        Value::String(text) => match text.split_once('$') {
            None => Some(text.into()),
            Some((before, name)) => Some(match resolve(name)? {
                Value::String(value) => format!("{before}{value}").into(),
                value => value,
            }),
        },
        Value::Object(members) => {
            let member = |(key, member)| Some((key, filled(member, resolve)?));
            let members: JsonObject = members.into_iter().filter_map(member).collect();
            (!members.is_empty()).then_some(members.into())
        }
        other => Some(other),
    }
}

/// YAML in which every value is written as JSON, which YAML contains.
fn yaml_snippet(client: &InstallableClient, name: &str, value: &Value) -> String {
    let is_continue = client.client == KnownClient::Continue;
    let mut text = String::new();
    if is_continue {
        text.push_str("name: openapi-mcp\nversion: 0.0.1\nschema: v1\n");
    }
    for key in client.keys {
        text.push_str(&format!("{key}:\n"));
    }
    let members = value.as_object().into_iter().flatten();
    if is_continue {
        for (index, (key, value)) in members.enumerate() {
            let mark = if index == 0 { "- " } else { "  " };
            text.push_str(&format!("  {mark}{key}: {value}\n"));
        }
    } else {
        text.push_str(&format!("  {name}:\n"));
        for (key, value) in members {
            text.push_str(&format!("    {key}: {value}\n"));
        }
    }
    text
}

/// Returns the length of the longest tool's name in the client, and its limit.
pub(super) fn name_limit(
    client: &InstallableClient,
    server: &str,
    tool: &str,
) -> Option<(usize, usize)> {
    let (around, limit) = client.name_limit?;
    Some((server.len() + tool.len() + around, limit))
}

/// The variable that holds the token in the entries.
const TOKEN_VARIABLE: &str = "MCP_TOKEN";

/// An entry for each client that takes an address. A visitor has neither our binary nor our files.
pub(crate) fn page_entries(needs_token: bool) -> Vec<PageSnippet> {
    let variable = |name: &str| (name == "HOME").then(|| "~".to_owned());
    let at = Surroundings {
        system: OperatingSystem::Linux,
        variable: &variable,
        project: Path::new("."),
    };
    let token = needs_token.then(|| TOKEN_VARIABLE.to_owned());
    let entry = ClientEntry {
        // The page puts a name there that it makes from the title of the server.
        name: "name-of-the-entry".into(),
        target: EntryTarget::Url {
            url: ENDPOINT.into(),
            token: token.clone(),
        },
    };
    let clients = CLIENTS.iter().filter(|row| row.address.is_some());
    // Zed's file takes no variable, and a token is never shown as a value.
    let clients = clients.filter(|row| token.is_none() || row.client != KnownClient::Zed);
    let snippets = clients.filter_map(|row| {
        let place = place_of(row, InstallScope::User, &at).ok()?;
        let variable = if needs_token {
            format!("It reads the token from the variable {TOKEN_VARIABLE}.")
        } else {
            String::new()
        };
        Some(PageSnippet {
            client: shown_name(row.client),
            command: add_command(row, needs_token, &entry.name),
            text: entry.snippet(row),
            file: place.file.display().to_string(),
            note: variable,
        })
    });
    snippets.collect()
}

/// The name by which people know a client.
fn shown_name(client: KnownClient) -> String {
    let value = client.to_possible_value();
    let name = value.as_ref().and_then(PossibleValue::get_help);
    name.map_or_else(|| client.to_string(), ToString::to_string)
}

/// The command of a client that adds the address, for clients that have one.
fn add_command(row: &InstallableClient, needs_token: bool, name: &str) -> Option<String> {
    let (command, with_token) = row.add?;
    let end = if needs_token { with_token? } else { "" };
    let form = placeholder(row, name, TOKEN_VARIABLE).unwrap_or_default();
    let end = end.replace("$variable", TOKEN_VARIABLE);
    let command = command.replace("$name", name).replace("$url", ENDPOINT);
    Some(command + &end.replace("$token", &form))
}
