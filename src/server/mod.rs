//! The MCP server: lists and calls tools over stdio and streamable HTTP, in all supported protocol versions.

mod answered_questions;
mod auth;
mod calls;
pub(crate) mod catalog;
mod confirm;
mod handler;
pub(crate) mod http;
pub(crate) mod jsonrpc;
pub(crate) mod observed;
mod progress;
mod share;
pub(crate) mod state;
pub(crate) mod stdio;
pub(crate) mod tool_list;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::{Implementation, JsonObject, ServerCapabilities, ServerConfig};
use tokio_util::task::TaskTracker;

use self::catalog::{Catalog, ResolvedCall};
use self::confirm::Confirmation;
use self::state::{Changes, ServerState};
use crate::api::Api;
use crate::observe;
use crate::text;

/// An MCP server, and the handler of one client or request: clones share their state.
///
/// The API may still be loading when the first client connects: the handshake is answered at once, and requests that need the
/// tools wait. With a reload interval, the API may be replaced later.
#[derive(Clone)]
pub struct McpServer {
    live: Arc<ServerState>,
    calls: TaskTracker,
    /// Set where a person is asked before calls.
    confirmation: Option<Arc<Confirmation>>,
    /// In a session, the changes since its start, until the task that reports them takes this.
    untold: Option<Arc<Mutex<Option<Changes>>>>,
    #[cfg(test)]
    refuses_plain_calls: bool,
    /// How many calls were in plain form.
    #[cfg(test)]
    pub(crate) plain_calls: Arc<std::sync::atomic::AtomicUsize>,
}

impl McpServer {
    /// A server that waits for its API. `reload` is the interval at which the API may be replaced; `None` means never.
    #[must_use]
    pub fn pending(reload: Option<Duration>) -> Self {
        Self {
            live: Arc::new(ServerState::pending(reload)),
            calls: TaskTracker::new(),
            confirmation: None,
            untold: None,
            #[cfg(test)]
            refuses_plain_calls: false,
            #[cfg(test)]
            plain_calls: Arc::default(),
        }
    }

    /// With `asks`, a person is asked before calls of tools that require it.
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

    /// Sets or replaces the API; calls in flight continue with the one that they began with. Clients are notified if the list of
    /// tools changed.
    pub fn ready(&self, api: Arc<Api>) {
        if let Some(metrics) = observe::metrics() {
            let effects = api
                .iter()
                .map(|offered| observed::effect(offered.enforcement.is_read_only(), offered.enforcement.is_destructive()));
            metrics.tools_served(effects);
        }
        let config = server_config(Some(&api), self.live.reload.is_some());
        self.live.ready(Catalog::new(api, config));
    }

    /// Tells a pending server that loading failed: waiting and later requests are answered with `why`, a sentence for a model.
    pub fn fail(&self, why: &str) {
        self.live.fail(why);
    }

    /// Whether the API is loaded.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.live.served().is_some()
    }

    /// Notes whether a changed document could be served.
    pub(crate) fn note_reload(&self, is_served: bool) {
        self.live.has_failed_reload.store(!is_served, Ordering::Relaxed);
        if let Some(metrics) = observe::metrics() {
            metrics.reloaded(is_served);
        }
    }

    /// From now on `/readyz` tells balancers to send no more requests; those that come are still answered.
    pub fn begin_draining(&self) {
        self.live.draining.cancel();
    }

    /// Tracks the calls in flight, so that a clean shutdown can wait for them.
    #[must_use]
    pub fn calls(&self) -> &TaskTracker {
        &self.calls
    }

    /// Whether a person is asked before some of the calls.
    pub(crate) fn asks_before_calls(&self) -> bool {
        self.confirmation.is_some()
    }

    /// The same, but all calls go through rmcp: what they answer is what calls in plain form must answer.
    #[cfg(test)]
    pub(crate) fn without_plain_calls(mut self) -> Self {
        self.refuses_plain_calls = true;
        self
    }

    /// The call of a tool, where nobody has to agree to it and nobody observes it. `None` as well where there is no such tool.
    pub(crate) fn plain_call(&self, name: &str, arguments: JsonObject) -> Option<ResolvedCall> {
        #[cfg(test)]
        if self.refuses_plain_calls {
            return None;
        }
        let call = self.live.served()?.resolve(name, Some(arguments))?;
        // What observers are told of a client is known to rmcp alone.
        if observe::is_on() || (self.asks_before_calls() && call.offered().must_confirm) {
            return None;
        }
        #[cfg(test)]
        self.plain_calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Some(call)
    }

    /// The handler of a session, whose client can be notified of changes.
    fn of_session(&self) -> Self {
        Self {
            untold: Some(Arc::new(Mutex::new(Some(self.live.changes())))),
            ..self.clone()
        }
    }
}

fn server_config(api: Option<&Api>, reloads: bool) -> ServerConfig {
    // Prompts, resources and completions are declared although there are none: clients that request them get an empty list.
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
