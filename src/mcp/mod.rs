//! The MCP server: lists and calls tools over stdio and streamable HTTP, in all supported protocol
//! versions.

pub(crate) mod api_slot;
pub(crate) mod calls;
pub(crate) mod catalog;
pub(crate) mod connections;
pub(crate) mod dispatch;
pub(crate) mod endpoint_state;
pub(crate) mod endpoints;
mod handler;
pub(crate) mod meta_tools;
pub(crate) mod observed;
pub(crate) mod page_tools;
pub(crate) mod protocol;
pub(crate) mod visible;

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::api_slot::ApiSlot;
use self::calls::approval::{Approver, AskedBy};
use self::calls::gate::Gate;
use self::endpoint_state::EndpointState;
use self::endpoints::served_apis::{McpEndpoint, ServedApis};
use crate::api::Api;
use crate::api::about::{About, ApiName};
use crate::caller::ClientKey;
use crate::shared_state::state::SharedState;
use crate::{observe, text};

/// Time for which calls in flight are waited for once no more can come.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(35);

/// An MCP server, and the handler of one client or request: clones share their state.
///
/// The API may still be loading when the first client connects: the handshake is answered at once,
/// and requests that need the tools wait. With a reload interval, the API may be replaced later.
#[derive(Clone)]
pub struct McpServer {
    /// State of the endpoint of this client.
    pub(crate) state: Arc<EndpointState>,
    /// All APIs, each with what became of it.
    pub(crate) apis: Arc<ServedApis>,
    calls: TaskTracker,
    /// The flags that decide if requests should be sent to this server.
    pub(crate) readiness: Arc<ReadinessFlags>,
    /// Decides about calls.
    pub(crate) gate: Gate,
    /// State that it shares with other replicas.
    pub(crate) shared_state: Option<Arc<SharedState>>,
    /// True if its page shows the base URL and the requests to the API.
    pub(crate) shows_requests: bool,
}

impl McpServer {
    /// A server that waits for its API. `reload` is the interval at which the API may be replaced;
    /// `None` means never.
    #[must_use]
    pub fn pending(reload: Option<Duration>) -> Self {
        Self::awaiting(vec![ApiSlot::default()], About::default(), reload)
    }

    /// A server that waits for these APIs; `about` introduces several of them.
    pub(crate) fn awaiting(slots: Vec<ApiSlot>, about: About, reload: Option<Duration>) -> Self {
        let apis = Arc::new(ServedApis::new(slots, about, reload));
        Self {
            state: Arc::clone(&apis.whole.state),
            apis,
            calls: TaskTracker::new(),
            readiness: Arc::default(),
            gate: Gate::default(),
            shared_state: None,
            shows_requests: false,
        }
    }

    /// Makes a person confirm calls of tools that require it, if `asks` is true.
    #[must_use]
    pub fn with_confirm(self, asks: bool) -> Self {
        let asked_by = AskedBy {
            client: asks,
            ..AskedBy::default()
        };
        self.confirmed_by(asked_by, None)
    }

    /// Makes these people confirm calls of tools that require it, as one of the replicas that share
    /// this state: an answer to a question is valid once among all of them.
    pub(crate) fn confirmed_by(
        mut self,
        asked_by: AskedBy,
        shared: Option<&Arc<SharedState>>,
    ) -> Self {
        let asks = asked_by.client || asked_by.link;
        let approver = asks.then(|| Arc::new(Approver::new(asked_by, shared.cloned())));
        self.gate.approver = approver;
        if let Some(key) = shared.and_then(|shared| shared.keys.hash_key("clients")) {
            ClientKey::share(key);
        }
        self.shared_state = shared.cloned();
        self
    }

    /// A server for the tools of `api`.
    #[must_use]
    pub fn new(api: Arc<Api>) -> Self {
        let server = Self::pending(None);
        server.ready(api);
        server
    }

    /// A server for the tools of several APIs, each with a [name](crate::ApiOptions::name) of its
    /// own.
    ///
    /// # Errors
    /// A sentence for each API without such a name, or for each tool name that two APIs have.
    pub fn of_several(apis: Vec<Arc<Api>>) -> Result<Self, Vec<String>> {
        let mut names = HashSet::new();
        let unnamed = apis.iter().filter(|api| {
            !api.name()
                .is_some_and(|name| names.insert(name.in_variables()))
        });
        let unnamed: Vec<String> = unnamed
            .map(|api| {
                format!(
                    "the API `{}` needs a name that no other API has",
                    text::one_line(api.label())
                )
            })
            .collect();
        if !unnamed.is_empty() {
            return Err(unnamed);
        }
        let slot = |api: &Arc<Api>| ApiSlot {
            name: api.name().cloned(),
            about: api.about.clone(),
            prefix: api.prefix().to_owned(),
            ..ApiSlot::default()
        };
        let slots = apis.iter().map(slot).collect();
        let server = Self::awaiting(slots, About::default(), None);
        for (index, api) in apis.into_iter().enumerate() {
            server.serve_api(index, api)?;
        }
        Ok(server)
    }

    /// Sets or replaces the API; calls in flight continue with the one that they began with.
    /// Clients are notified if the list of tools changed.
    pub fn ready(&self, api: Arc<Api>) {
        // A single API clashes with none.
        let _ = self.serve_api(0, api);
    }

    /// Sets or replaces one of several APIs.
    ///
    /// # Errors
    /// A sentence for each of its tool names that another API has; then everything stays as it was.
    pub(crate) fn serve_api(&self, index: usize, api: Arc<Api>) -> Result<(), Vec<String>> {
        self.apis.serve(index, api)?;
        if let Some(metrics) = observe::metrics() {
            let served = self.apis.served();
            let tools = served.iter().flat_map(|api| {
                let label = api.metrics_label();
                api.tools()
                    .iter()
                    .map(move |offered| (label.clone(), offered.hints.effect().word()))
            });
            metrics.tools_served(tools);
        }
        Ok(())
    }

    /// Reports to a pending server that loading failed: waiting and later requests are answered
    /// with `why`, a sentence for a model.
    pub fn fail(&self, why: &str) {
        self.apis.fail_all(why);
    }

    /// Returns true if the API is loaded; of several, if each is loaded or has failed, and one is
    /// served.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.apis.is_ready()
    }

    /// Notes whether the changed document of an API could be served.
    pub(crate) fn note_reload(&self, index: usize, is_served: bool) {
        self.apis.note_reload(index, is_served);
        if let Some(metrics) = observe::metrics() {
            let name = self
                .apis
                .slots
                .get(index)
                .and_then(|slot| slot.name.as_ref());
            metrics.reloaded(ApiName::metrics_label(name), is_served);
        }
    }

    /// Makes `/readyz` report that no more requests should be sent; those that arrive are still
    /// answered.
    pub fn begin_draining(&self) {
        self.readiness.draining.cancel();
    }

    /// Tracks the calls in flight, so that a clean shutdown can wait for them.
    #[must_use]
    pub fn calls(&self) -> &TaskTracker {
        &self.calls
    }

    /// The same at an endpoint of its own.
    pub(crate) fn at(&self, endpoint: &McpEndpoint) -> Self {
        Self {
            state: Arc::clone(&endpoint.state),
            ..self.clone()
        }
    }

    /// Returns true if the client asks its user before some of the calls.
    pub(crate) fn asks_by_client(&self) -> bool {
        let approver = self.gate.approver.as_ref();
        approver.is_some_and(|approver| approver.asked_by.client)
    }
}

/// Waits for the calls in flight, once no more can come.
pub(crate) async fn drain_calls(calls: &TaskTracker) {
    calls.close();
    if tokio::time::timeout(DRAIN_TIMEOUT, calls.wait())
        .await
        .is_err()
    {
        tracing::warn!(
            "gave up on calls that were still in flight after {} s",
            DRAIN_TIMEOUT.as_secs()
        );
    }
}

/// Conditions of `/readyz` besides the APIs.
#[derive(Default)]
pub(crate) struct ReadinessFlags {
    /// Requests are still taken, but no more should be sent.
    pub(crate) draining: CancellationToken,
    /// True if clients cannot be admitted yet, because the keys of their issuer are not loaded.
    pub(crate) awaits_keys: OnceLock<Box<dyn Fn() -> bool + Send + Sync>>,
}
