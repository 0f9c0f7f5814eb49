//! The introduction of an endpoint's server: its title and its instructions.

use std::sync::Arc;

use rmcp::model::{Icon, Implementation, ServerCapabilities, ServerConfig};

use crate::api::Api;
use crate::api::about::{About, AboutIcon, ApiName};
use crate::mcp::api_slot::ApiSlot;
use crate::mcp::visible::{CatalogApi, View, VisibleApi};
use crate::text::{self, counted};

/// The name of a server of several APIs, and of one whose document is not read yet.
pub(crate) const UNNAMED: &str = "openapi-mcp";

/// The longest title of one of several APIs, in bytes. Of several, only titles are shown: the
/// description of one document must not speak about another API.
const MAX_TITLE_BYTES: usize = 60;

/// Number of bytes that the names of missing APIs may take.
const MAX_MISSING_BYTES: usize = 400;

/// Introduction of an endpoint.
pub(crate) struct Introduction<'i> {
    pub(crate) tells_changes: bool,
    /// What the operator says of the endpoint.
    pub(crate) about: &'i About,
    pub(crate) view: &'i View,
    pub(crate) apis: &'i [Arc<CatalogApi>],
    /// APIs that may still come.
    pub(crate) awaited: &'i [&'i ApiSlot],
    /// APIs that could not be loaded.
    pub(crate) failed: &'i [&'i ApiSlot],
}

impl Introduction<'_> {
    /// The introduction as MCP has it.
    pub(crate) fn write(&self) -> ServerConfig {
        let config = introduce_nothing(self.tells_changes, self.about);
        match self.apis {
            [only] if !self.view.names_apis => introduce_one(config, only, self.view.reads_only),
            [] if self.awaited.is_empty() => config,
            _ if self.view.names_apis => self.introduce_several(config),
            _ => config,
        }
    }

    fn introduce_several(&self, mut config: ServerConfig) -> ServerConfig {
        let names = self.apis.iter().filter_map(|api| api.name());
        let names: Vec<&str> = names.map(ApiName::as_str).collect();
        let what = tools_in_words(self.view.reads_only);
        let intro = format!(
            "{what} of {}; each makes one HTTP request to its API.",
            counted(names.len(), "API")
        );
        let line = |slot: &&ApiSlot, why| Some(format!("- {}: {why}", slot.name.as_ref()?));
        let awaited = self.awaited.iter();
        let awaited = awaited.filter_map(|slot| line(slot, "not loaded yet"));
        let missing = "not available at the moment; it has no tools";
        let failed = self.failed.iter().filter_map(|slot| line(slot, missing));
        // What is not there comes first: some clients cut the instructions.
        let lines = awaited
            .chain(failed)
            .chain(self.apis.iter().map(|api| self.line_of(api)));
        let lines: Vec<String> = lines.collect();
        let whole = format!("{intro}\n{}", lines.join("\n"));
        let room = room_beside(self.about);
        let instructions = if whole.len() <= room {
            whole
        } else {
            let missing = missing_apis(&[self.awaited, self.failed].concat());
            let missing = missing
                .map(|missing| format!(" {missing}"))
                .unwrap_or_default();
            let left = room.saturating_sub(intro.len() + missing.len() + 64);
            format!("{intro}{missing}\nThey are {}.", list_within(&names, left))
        };
        if self.about.title.is_none() {
            let listed = list_within(&names, 160);
            config.server_info.title = Some(listed).filter(|title| !title.is_empty());
        }
        config.with_instructions(with_own_words(&instructions, self.about))
    }

    /// Describes one API in a line. The number of its tools is given only if it is the same for
    /// every caller.
    fn line_of(&self, api: &Arc<CatalogApi>) -> String {
        let name = api.name().map(ApiName::as_str).unwrap_or_default();
        let title = text::truncate(api.title(), MAX_TITLE_BYTES);
        let prefix = match api.prefix() {
            "" => String::new(),
            prefix => format!(" (names begin with {prefix})"),
        };
        let line = format!("- {name}{prefix}: {title}");
        if api.access.is_some() {
            return line;
        }
        let shown = VisibleApi::new(api, self.view, None);
        format!("{line}, {}", counted(shown.operations().count(), "tool"))
    }
}

/// A sentence that names the APIs that are not there; nothing if all are.
pub(crate) fn missing_apis(slots: &[&ApiSlot]) -> Option<String> {
    let names = slots.iter().filter_map(|slot| slot.name.as_ref());
    let names: Vec<&str> = names.map(ApiName::as_str).collect();
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

/// A server of which only what the operator says is known yet.
pub(crate) fn introduce_nothing(tells_changes: bool, about: &About) -> ServerConfig {
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
    ServerConfig::new(capabilities).with_server_info(identify(about))
}

/// A server as MCP identifies it.
pub(crate) fn identify(about: &About) -> Implementation {
    let name = about.name.as_deref().unwrap_or(UNNAMED);
    let mut info = Implementation::new(name, env!("CARGO_PKG_VERSION"));
    info.title.clone_from(&about.title);
    info.description.clone_from(&about.description);
    info.website_url.clone_from(&about.website);
    let icon = |icon: &AboutIcon| {
        let mut made = Icon::new(&*icon.src);
        made.mime_type = icon.media_type.map(str::to_owned);
        made.sizes = icon.size.clone().map(|size| vec![size]);
        vec![made]
    };
    info.icons = about.icon.as_ref().map(icon);
    info
}

/// Number of bytes that the server's own instructions may take beside those of the operator.
fn room_beside(about: &About) -> usize {
    let own = about.instructions.as_ref();
    text::MAX_DESCRIPTION_BYTES
        - own.map_or(0, |own| (own.len() + 2).min(text::MAX_DESCRIPTION_BYTES))
}

/// The server's instructions, and behind them those of the operator, which are never cut.
pub(crate) fn with_own_words(instructions: &str, about: &About) -> String {
    let cut = text::truncate(instructions, room_beside(about));
    match &about.instructions {
        Some(own) => format!("{cut}\n\n{own}"),
        None => cut,
    }
}

fn tools_in_words(reads_only: bool) -> &'static str {
    if reads_only {
        "Read-only tools"
    } else {
        "Tools"
    }
}

/// A server of one API, in the words of the operator and of the document.
fn introduce_one(mut config: ServerConfig, api: &Api, reads_only: bool) -> ServerConfig {
    let document = api.document();
    let title = api.title();
    let version = document.api_version();
    let version = version.map(|version| format!(" {}", text::one_line(version)));
    let about = &api.about;
    let described = document
        .description()
        .filter(|_| about.instructions.is_none());
    let described = described
        .map(|described| format!("\n\n{}", text::clean(described)))
        .unwrap_or_default();
    let what = tools_in_words(reads_only);
    let instructions = format!(
        "{what} for {title}{}; each makes one HTTP request to that API.{described}",
        version.unwrap_or_default()
    );
    config.server_info = identify(about);
    config.with_instructions(with_own_words(&instructions, about))
}
