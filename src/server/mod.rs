//! The MCP side: tools listed and called over stdio and streamable HTTP, in both protocol eras. Knows only the API.

mod answered_questions;
mod auth;
pub(crate) mod catalog;
mod confirm;
mod handler;
pub(crate) mod http;
pub(crate) mod jsonrpc;
mod progress;
mod share;
pub(crate) mod state;
pub(crate) mod stdio;
pub(crate) mod tool_list;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::{Implementation, ServerCapabilities, ServerConfig};
use tokio_util::task::TaskTracker;

use self::catalog::Catalog;
use self::confirm::Confirmation;
use self::state::{Changes, ServerState};
use crate::api::Api;
use crate::text;

/// The handler of one client, or of one request where there are no sessions: a cheap clone.
///
/// The API may still be on its way when the first client arrives: the handshake is answered at once, and what needs the
/// tools waits for them. Afterwards it may become another one.
#[derive(Clone)]
pub struct McpServer {
    live: Arc<ServerState>,
    calls: TaskTracker,
    /// Where a person is asked about calls first.
    confirmation: Option<Arc<Confirmation>>,
    /// In a session, the changes since it began, until somebody tells its client of them.
    untold: Option<Arc<Mutex<Option<Changes>>>>,
}

impl McpServer {
    /// A server that waits for its API. `reload` says how often that may become another one afterwards, if at all.
    #[must_use]
    pub fn pending(reload: Option<Duration>) -> Self {
        Self {
            live: Arc::new(ServerState::pending(reload)),
            calls: TaskTracker::new(),
            confirmation: None,
            untold: None,
        }
    }

    /// The same, but with `asks` it asks a person before calls of the tools for which its APIs require that.
    #[must_use]
    pub fn with_confirm(mut self, asks: bool) -> Self {
        self.confirmation = asks.then(|| Arc::new(Confirmation::new()));
        self
    }

    /// A server for the tools of `api`.
    #[must_use]
    pub fn new(api: Arc<Api>) -> Self {
        let server = Self::pending(None);
        server.ready(api);
        server
    }

    /// Gives the server its API, or another one; calls in flight stay with the one that they began with. Clients that can be
    /// told are told where the list of tools is another one.
    pub fn ready(&self, api: Arc<Api>) {
        let config = server_config(Some(&api), self.live.reload.is_some());
        self.live.ready(Catalog::new(api, config));
    }

    /// Tells a pending server that its API will never come: what waits for it, and what comes yet, is answered with `why`,
    /// a sentence for a model.
    pub fn fail(&self, why: &str) {
        self.live.fail(why);
    }

    /// Whether the API is there.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.live.served().is_some()
    }

    /// The calls in flight; waiting for it to empty is a clean end.
    #[must_use]
    pub fn calls(&self) -> &TaskTracker {
        &self.calls
    }

    /// The handler of a session: a client that stays, and can be told of changes.
    fn of_session(&self) -> Self {
        Self {
            untold: Some(Arc::new(Mutex::new(Some(self.live.changes())))),
            ..self.clone()
        }
    }
}

fn server_config(api: Option<&Api>, reloads: bool) -> ServerConfig {
    // Prompts, resources and completions are declared, and empty: clients that ask anyway get a clean answer.
    let mut capabilities = ServerCapabilities::builder()
        .enable_tools()
        .enable_prompts()
        .enable_resources()
        .enable_completions()
        .build();
    if let Some(tools) = capabilities.tools.as_mut().filter(|_| reloads) {
        tools.list_changed = Some(true);
    }
    let info = Implementation::new("openapi-mcp", env!("CARGO_PKG_VERSION"));
    let Some(document) = api.map(Api::document) else {
        return ServerConfig::new(capabilities).with_server_info(info);
    };
    let title = text::truncate(&text::one_line(document.title()), 200);
    let version = document
        .api_version()
        .map(|version| format!(" {}", text::one_line(version)))
        .unwrap_or_default();
    let about = document
        .description()
        .map(|about| format!("\n\n{}", text::clean(about)))
        .unwrap_or_default();
    let instructions = format!("Tools for {title}{version}; each makes one HTTP request to that API.{about}");
    ServerConfig::new(capabilities)
        .with_server_info(info.with_title(title))
        .with_instructions(text::truncate(&instructions, text::MAX_DESCRIPTION_BYTES))
}
