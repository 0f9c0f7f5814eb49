//! The introduction of an endpoint's server: its title and its instructions.

use rmcp::model::{Implementation, ServerCapabilities, ServerConfig};

use super::api_slot::ApiSlot;
use crate::api::{Api, ApiName};
use crate::mcp::visible::{CatalogApi, View};
use crate::text::{self, counted};

/// The longest title of one of several APIs, in bytes. Of several, only titles are shown: the
/// description of one document must not speak about another API.
const MAX_TITLE_BYTES: usize = 60;

/// Number of bytes that the names of missing APIs may take.
const MAX_MISSING_BYTES: usize = 400;

/// Introduction of an endpoint.
pub(crate) struct Introduction<'i> {
    pub(crate) tells_changes: bool,
    pub(crate) view: &'i View,
    pub(crate) apis: &'i [CatalogApi],
    /// APIs that may still come.
    pub(crate) awaited: &'i [&'i ApiSlot],
    /// APIs that could not be loaded.
    pub(crate) failed: &'i [&'i ApiSlot],
}

impl Introduction<'_> {
    /// The introduction as MCP has it.
    pub(crate) fn write(&self) -> ServerConfig {
        let config = introduce_nothing(self.tells_changes);
        match self.apis {
            [only] if !self.view.names_apis => {
                introduce_one(config, &only.api, self.view.reads_only)
            }
            [] if self.awaited.is_empty() => config,
            _ if self.view.names_apis => self.introduce_several(config),
            _ => config,
        }
    }

    fn introduce_several(&self, mut config: ServerConfig) -> ServerConfig {
        let names: Vec<&str> = self
            .apis
            .iter()
            .filter_map(|api| api.api.name())
            .map(ApiName::as_str)
            .collect();
        let what = if self.view.reads_only {
            "Read-only tools"
        } else {
            "Tools"
        };
        let intro = format!(
            "{what} of {}; each makes one HTTP request to its API.",
            counted(names.len(), "API")
        );
        let line = |slot: &&ApiSlot, why| Some(format!("- {}: {why}", slot.name.as_ref()?));
        let awaited = self
            .awaited
            .iter()
            .filter_map(|slot| line(slot, "not loaded yet"));
        let missing = "not available at the moment; it has no tools";
        let failed = self.failed.iter().filter_map(|slot| line(slot, missing));
        // What is not there comes first: some clients cut the instructions.
        let lines = awaited
            .chain(failed)
            .chain(self.apis.iter().map(|api| self.line_of(api)));
        let lines: Vec<String> = lines.collect();
        let whole = format!("{intro}\n{}", lines.join("\n"));
        let instructions = if whole.len() <= text::MAX_DESCRIPTION_BYTES {
            whole
        } else {
            let missing = missing_apis(&[self.awaited, self.failed].concat());
            let missing = missing
                .map(|missing| format!(" {missing}"))
                .unwrap_or_default();
            let left = text::MAX_DESCRIPTION_BYTES.saturating_sub(intro.len() + missing.len() + 64);
            format!("{intro}{missing}\nThey are {}.", list_within(&names, left))
        };
        config.server_info.title = Some(list_within(&names, 160)).filter(|title| !title.is_empty());
        config.with_instructions(instructions)
    }

    /// Describes one API in a line. The number of its tools is given only if it is the same for
    /// every caller.
    fn line_of(&self, api: &CatalogApi) -> String {
        let name = api.api.name().map(ApiName::as_str).unwrap_or_default();
        let title = text::truncate(&text::one_line(api.api.document().title()), MAX_TITLE_BYTES);
        let prefix = match api.api.prefix() {
            "" => String::new(),
            prefix => format!(" (names begin with {prefix})"),
        };
        let count = if api.access.is_none() {
            let shown = api
                .api
                .tools()
                .iter()
                .filter(|offered| !self.view.reads_only || offered.hints.is_read_only());
            format!(", {}", counted(shown.count(), "tool"))
        } else {
            String::new()
        };
        format!("- {name}{prefix}: {title}{count}")
    }
}

/// A sentence that names the APIs that are not there; nothing if all are.
pub(crate) fn missing_apis(slots: &[&ApiSlot]) -> Option<String> {
    let names: Vec<&str> = slots
        .iter()
        .filter_map(|slot| slot.name.as_ref())
        .map(ApiName::as_str)
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "Not available at the moment, so that nothing of it is found: {}.",
            list_within(&names, MAX_MISSING_BYTES)
        )
    })
}

/// Lists as many names as fit into so many bytes, and the number of others.
fn list_within(names: &[&str], max_bytes: usize) -> String {
    let mut list = String::new();
    for (index, name) in names.iter().enumerate() {
        if list.len() + name.len() + 2 > max_bytes {
            return format!("{list} and {} more", names.len() - index);
        }
        if index > 0 {
            list.push_str(", ");
        }
        list.push_str(name);
    }
    list
}

/// A server of which nothing is known yet.
pub(crate) fn introduce_nothing(tells_changes: bool) -> ServerConfig {
    // Prompts, resources and completions are declared, and empty: clients that ask anyway get a
    // clean answer.
    let mut capabilities = ServerCapabilities::builder()
        .enable_tools()
        .enable_prompts()
        .enable_resources()
        .enable_completions()
        .build();
    if let Some(tools) = capabilities.tools.as_mut().filter(|_| tells_changes) {
        tools.list_changed = Some(true);
    }
    ServerConfig::new(capabilities).with_server_info(Implementation::new(
        "openapi-mcp",
        env!("CARGO_PKG_VERSION"),
    ))
}

/// A server of one API, with the words of its document.
fn introduce_one(mut config: ServerConfig, api: &Api, reads_only: bool) -> ServerConfig {
    let document = api.document();
    let title = text::truncate(&text::one_line(document.title()), 200);
    let version = document
        .api_version()
        .map(|version| format!(" {}", text::one_line(version)))
        .unwrap_or_default();
    let about = document
        .description()
        .map(|about| format!("\n\n{}", text::clean(about)))
        .unwrap_or_default();
    let what = if reads_only {
        "Read-only tools"
    } else {
        "Tools"
    };
    let instructions =
        format!("{what} for {title}{version}; each makes one HTTP request to that API.{about}");
    config.server_info.title = Some(title);
    config.with_instructions(text::truncate(&instructions, text::MAX_DESCRIPTION_BYTES))
}
