//! The entries that the server's page shows: for its own address, in the form of each client.

use std::path::Path;

use super::entry::{ClientEntry, EntryTarget, takes_url};
use super::place::{INSTALLABLE, InstallScope, OperatingSystem, Surroundings, place_of};
use crate::config::settings::ClientName;
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
    let clients = clients.filter(|client| token.is_none() || *client != ClientName::Zed);
    let snippets = clients.filter_map(|client| {
        let place = place_of(client, InstallScope::User, &at).ok()?;
        let variable = if needs_token {
            format!(" It reads the token from the variable {TOKEN_VARIABLE}.")
        } else {
            String::new()
        };
        Some(PageSnippet {
            client: client.to_string(),
            text: entry.snippet(client, &place),
            note: format!("On Linux, it goes into {}.{variable}", place.file.display()),
        })
    });
    snippets.collect()
}
