//! The entries that the server's page shows: for its own address, in the form of each client.

use std::path::Path;

use clap::ValueEnum as _;
use serde_json::json;

use super::entry::{ClientEntry, EntryTarget, takes_url};
use super::place::{INSTALLABLE, InstallScope, OperatingSystem, Surroundings, place_of};
use crate::annotate::KnownClient;
use crate::transport::http::page::{ENDPOINT, PageSnippet};

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
    let clients = INSTALLABLE.into_iter().filter(|client| takes_url(*client));
    // Zed's file takes no variable, and a token is never shown as a value.
    let clients = clients.filter(|client| token.is_none() || *client != KnownClient::Zed);
    let snippets = clients.filter_map(|client| {
        let place = place_of(client, InstallScope::User, &at).ok()?;
        let variable = if needs_token {
            format!("It reads the token from the variable {TOKEN_VARIABLE}.")
        } else {
            String::new()
        };
        Some(PageSnippet {
            client: shown_name(client),
            command: add_command(client, &entry),
            text: entry.snippet(client, &place),
            file: place.file.display().to_string(),
            note: variable,
        })
    });
    snippets.collect()
}

/// The name by which people know a client.
fn shown_name(client: KnownClient) -> String {
    let value = client.to_possible_value();
    let name = value
        .as_ref()
        .and_then(|value| value.get_help().map(ToString::to_string));
    name.unwrap_or_else(|| client.to_string())
}

/// The command of a client that adds the entry, for clients that have one.
fn add_command(client: KnownClient, entry: &ClientEntry) -> Option<String> {
    let ClientEntry { name, target } = entry;
    let EntryTarget::Url { url, token } = target else {
        return None;
    };
    let header = |form: &str| {
        token
            .as_ref()
            .map(|_| format!(" --header 'Authorization: Bearer {form}'"))
            .unwrap_or_default()
    };
    Some(match client {
        KnownClient::ClaudeCode => format!(
            "claude mcp add --transport http --scope user {name} {url}{}",
            header(&format!("${{{TOKEN_VARIABLE}}}"))
        ),
        KnownClient::Gemini => format!(
            "gemini mcp add --transport http --scope user {name} {url}{}",
            header(&format!("${TOKEN_VARIABLE}"))
        ),
        KnownClient::Codex => {
            let token = token
                .as_ref()
                .map(|name| format!(" --bearer-token-env-var {name}"))
                .unwrap_or_default();
            format!("codex mcp add {name} --url {url}{token}")
        }
        // A question for the token is not part of an entry.
        KnownClient::Vscode if token.is_none() => {
            let value = json!({ "name": name, "type": "http", "url": url });
            format!("code --add-mcp '{value}'")
        }
        _ => return None,
    })
}
