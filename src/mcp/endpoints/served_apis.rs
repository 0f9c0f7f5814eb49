//! The APIs of a server, each with what became of it so far, and the catalogs that its endpoints
//! get of them; and the endpoints, with their paths.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::introduction::{Introduction, introduce_nothing, missing_apis, with_own_words};
use crate::annotate::Pattern;
use crate::api::Api;
use crate::api::about::{About, ApiName};
use crate::api::clashes::clashes_with;
use crate::mcp::api_slot::ApiSlot;
use crate::mcp::catalog::Catalog;
use crate::mcp::endpoint_state::EndpointState;
use crate::mcp::meta_tools::{MetaTools, decide};
use crate::mcp::visible::{CatalogApi, View, VisibleApis};

/// The APIs of a server, and its endpoints.
pub(crate) struct ServedApis {
    /// State of each API. The lock is held while endpoints get their catalogs, so that they change
    /// in one order.
    states: Mutex<Vec<ApiState>>,
    /// The slots of the APIs.
    pub(crate) slots: Vec<Arc<ApiSlot>>,
    /// What the operator says of several APIs as a whole.
    about: About,
    /// The endpoints, the one with all APIs first.
    pub(crate) endpoints: Vec<Arc<McpEndpoint>>,
    /// The one with all APIs.
    pub(crate) whole: Arc<McpEndpoint>,
}

/// State of an API.
struct ApiState {
    outcome: ApiOutcome,
    /// True if the last change of its document could not be served.
    has_failed_reload: bool,
}

/// Outcome of loading an API.
enum ApiOutcome {
    /// Not loaded yet.
    Awaited,
    Served(Arc<CatalogApi>),
    /// Failed, with the reason in words for a model.
    Failed(String),
}

impl ApiState {
    fn served(&self) -> Option<&Arc<CatalogApi>> {
        match &self.outcome {
            ApiOutcome::Served(api) => Some(api),
            ApiOutcome::Awaited | ApiOutcome::Failed(_) => None,
        }
    }
}

/// State of one API, for the operator.
pub(crate) struct ServedState {
    pub(crate) name: Option<ApiName>,
    /// `loading`, `served` or `failed`.
    pub(crate) status: &'static str,
    /// Number of tools that are served.
    pub(crate) tools: usize,
    /// True if the last change of its document could not be served.
    pub(crate) has_failed_reload: bool,
}

impl ServedApis {
    /// No API is loaded yet. `about` introduces several APIs; `reload` is the interval at which the
    /// document of each is checked for changes.
    pub(crate) fn new(slots: Vec<ApiSlot>, about: About, reload: Option<Duration>) -> Self {
        let slots: Vec<Arc<ApiSlot>> = slots.into_iter().map(Arc::new).collect();
        let is_single = is_single(&slots);
        // Of several, one may come late.
        let tells_changes = reload.is_some() || !is_single;
        let ending = CancellationToken::new();
        let state = |api: Option<usize>| {
            let about = about_of(&slots, &about, api);
            let introduction = introduce_nothing(tells_changes, about);
            EndpointState::new(reload, tells_changes, introduction, ending.clone())
        };
        let (whole, endpoints) = endpoints_of(&slots, state);
        let states = slots.iter().map(|_| ApiState {
            outcome: ApiOutcome::Awaited,
            has_failed_reload: false,
        });
        let served = Self {
            states: Mutex::new(states.collect()),
            endpoints,
            whole,
            slots,
            about,
        };
        if !is_single {
            let states = served.states.lock();
            let endpoints = served.endpoints.iter();
            endpoints.for_each(|endpoint| served.publish(endpoint, &states));
        }
        served
    }

    /// Returns what the operator says of an endpoint.
    pub(crate) fn about(&self, endpoint: &McpEndpoint) -> &About {
        about_of(&self.slots, &self.about, endpoint.api)
    }

    /// Returns true if each API is served or has failed, and one is served.
    pub(crate) fn is_ready(&self) -> bool {
        let states = self.states.lock();
        let is_awaited = |state: &ApiState| matches!(state.outcome, ApiOutcome::Awaited);
        states.iter().any(|state| state.served().is_some()) && !states.iter().any(is_awaited)
    }

    /// Those that are served now.
    pub(crate) fn served(&self) -> Vec<Arc<Api>> {
        let states = self.states.lock();
        let served = states.iter().filter_map(ApiState::served);
        served.map(|served| Arc::clone(&served.api)).collect()
    }

    /// Returns the state of each API, for the operator.
    pub(crate) fn states(&self) -> Vec<ServedState> {
        let states = self.states.lock();
        let state = |(slot, state): (&Arc<ApiSlot>, &ApiState)| ServedState {
            name: slot.name.clone(),
            status: match state.outcome {
                ApiOutcome::Awaited => "loading",
                ApiOutcome::Served(_) => "served",
                ApiOutcome::Failed(_) => "failed",
            },
            tools: state.served().map_or(0, |api| api.tools().len()),
            has_failed_reload: state.has_failed_reload,
        };
        self.slots.iter().zip(states.iter()).map(state).collect()
    }

    /// Notes whether the changed document of an API could be served.
    pub(crate) fn note_reload(&self, index: usize, is_served: bool) {
        if let Some(state) = self.states.lock().get_mut(index) {
            state.has_failed_reload = !is_served;
        }
    }

    /// Returns true if no API has a name, because there is only one.
    pub(crate) fn is_single(&self) -> bool {
        is_single(&self.slots)
    }

    /// Serves an API from now on.
    ///
    /// # Errors
    /// A sentence for each of its tool names that another API has; then everything stays as it was.
    pub(crate) fn serve(&self, index: usize, api: Arc<Api>) -> Result<(), Vec<String>> {
        let mut states = self.states.lock();
        let others = others_than(index, &states).flatten();
        let clashes = clashes_with(&api, others.map(|other| &*other.api));
        if !clashes.is_empty() {
            return Err(clashes);
        }
        let Some(slot) = self.slots.get(index) else {
            return Ok(());
        };
        let served = Arc::new(CatalogApi::new(api, Arc::clone(slot)));
        let idle = self.newly_idle_patterns(index, &served, &states);
        if !idle.is_empty() {
            return Err(idle);
        }
        self.settle(index, ApiOutcome::Served(served), &mut states);
        Ok(())
    }

    /// Notes that an API cannot be served: `why` is a sentence for a model.
    pub(crate) fn fail(&self, index: usize, why: &str) {
        let outcome = ApiOutcome::Failed(why.to_owned());
        self.settle(index, outcome, &mut self.states.lock());
    }

    /// Notes that no API will ever be served, because the server ends.
    pub(crate) fn fail_all(&self, why: &str) {
        self.endpoints
            .iter()
            .for_each(|endpoint| endpoint.state.fail(why));
    }

    /// Returns true if the endpoint with all APIs is served in search mode.
    pub(crate) fn searches(&self) -> bool {
        self.whole.searches.get() == Some(&true)
    }

    /// Returns true if an endpoint lists all tools of the API at that place, and goes on to do so.
    pub(crate) fn lists_all(&self, index: usize) -> bool {
        self.endpoints.iter().any(|endpoint| {
            endpoint.api.is_none_or(|api| api == index) && endpoint.searches.get() == Some(&false)
        })
    }

    /// Returns the meta-tools: those of search mode, which replace all tools of an endpoint, and
    /// the one that waits. The mode is decided when all its APIs are loaded and stays, because a
    /// client that is not notified of changes would call removed tools.
    fn meta_tools(
        &self,
        endpoint: &McpEndpoint,
        all: &VisibleApis,
        is_decided: bool,
        missing_apis: Option<String>,
    ) -> Option<MetaTools> {
        let now = decide(all);
        let is_first = endpoint.searches.get().is_none();
        let searches = endpoint.searches.get().copied().unwrap_or(now);
        if is_decided && !all.apis.is_empty() {
            endpoint.searches.get_or_init(|| now);
        }
        if searches != now && !endpoint.view.reads_only {
            let name = |searches| if searches { "search" } else { "all" };
            let (mode, other) = (name(searches), name(now));
            tracing::warn!(
                "--tools auto would now mean `{other}`; it stays `{mode}` until a restart"
            );
        }
        // Of several APIs, each has its own prefix.
        let single = self.slots.first().filter(|_| self.is_single());
        let prefix = single.map_or("", |slot| slot.prefix.as_str());
        let meta_tools = MetaTools::new(all, prefix, searches, missing_apis);
        let limits = all.apis.iter();
        let most = limits.filter_map(|api| api.api.slot.list.max_tools).min();
        let count = meta_tools.count();
        if let Some(most) = most.filter(|most| count > *most)
            && searches
            && is_first
            && !endpoint.view.reads_only
        {
            tracing::warn!(
                "the client takes at most {most} tools, and with the pinned ones these are {count}; pin fewer with `pin`"
            );
        }
        (count > 0).then_some(meta_tools)
    }

    /// Returns a sentence for each pattern of `auth_tokens` that matches no tool of any API any
    /// more if the document of one changes: a tool that a token may not call could have got another
    /// name. If the last document comes late, the start could not compare the patterns, and each
    /// must match.
    fn newly_idle_patterns(
        &self,
        index: usize,
        api: &Arc<CatalogApi>,
        states: &[ApiState],
    ) -> Vec<String> {
        let others = || others_than(index, states);
        let before = match states.get(index).map(|state| &state.outcome) {
            Some(ApiOutcome::Served(before)) => Some(before),
            Some(ApiOutcome::Failed(_)) if others().all(|other| other.is_some()) => None,
            _ => return Vec::new(),
        };
        let was_matched = |pattern: &Pattern| before.is_none_or(|before| before.has_match(pattern));
        let is_matched = |pattern: &Pattern| {
            let mut now = others().flatten().chain([api]);
            now.any(|api| api.has_match(pattern))
        };
        let shares = self.slots.first().map(|slot| slot.shares.iter());
        let patterns = shares.into_iter().flatten().flat_map(|share| {
            share
                .patterns()
                .map(move |(key, pattern)| (share, key, pattern))
        });
        patterns
            .filter(|(.., pattern)| {
                !pattern.is_optional && was_matched(pattern) && !is_matched(pattern)
            })
            .map(|(share, key, pattern)| share.describe_idle(key, pattern))
            .collect()
    }

    fn settle(&self, index: usize, outcome: ApiOutcome, states: &mut [ApiState]) {
        if let Some(state) = states.get_mut(index) {
            state.outcome = outcome;
        }
        let concerned = self
            .endpoints
            .iter()
            .filter(|endpoint| endpoint.api.is_none_or(|api| api == index));
        concerned.for_each(|endpoint| self.publish(endpoint, states));
    }

    /// Gives an endpoint the catalog of what is there now.
    fn publish(&self, endpoint: &McpEndpoint, states: &[ApiState]) {
        let (mut apis, mut awaited, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        let mut failure = None;
        for (index, (slot, state)) in self.slots.iter().zip(states).enumerate() {
            if endpoint.api.is_some_and(|api| api != index) {
                continue;
            }
            match &state.outcome {
                ApiOutcome::Awaited => awaited.push(&**slot),
                ApiOutcome::Failed(why) => {
                    failed.push(&**slot);
                    failure.get_or_insert(why);
                }
                ApiOutcome::Served(api) => apis.push(Arc::clone(api)),
            }
        }
        match failure {
            Some(why) if apis.is_empty() && awaited.is_empty() => endpoint.state.fail(why),
            _ => {
                let about = self.about(endpoint);
                let introduction = Introduction {
                    about,
                    tells_changes: endpoint.state.tells_changes,
                    view: &endpoint.view,
                    apis: &apis,
                    awaited: &awaited,
                    failed: &failed,
                };
                let mut config = introduction.write();
                let seen = VisibleApis::new(&apis, &endpoint.view, None);
                let missing = missing_apis(&[awaited.as_slice(), &failed].concat());
                let meta_tools = self.meta_tools(endpoint, &seen, awaited.is_empty(), missing);
                let awaited = awaited.iter().map(|slot| slot.prefix.clone()).collect();
                if let Some(meta_tools) = meta_tools.as_ref().filter(|tools| tools.searches) {
                    let steps = meta_tools.instructions(&seen);
                    config = config.with_instructions(with_own_words(&steps, about));
                }
                let view = endpoint.view.clone();
                let catalog = Catalog::new(apis, view, awaited, config, meta_tools);
                endpoint.state.ready(catalog);
            }
        }
    }
}

/// Returns true if there is one API, which has no name.
fn is_single(slots: &[Arc<ApiSlot>]) -> bool {
    matches!(slots, [only] if only.name.is_none())
}

/// The APIs besides the one at that place; `None` for each that is not served.
fn others_than(
    index: usize,
    states: &[ApiState],
) -> impl Iterator<Item = Option<&Arc<CatalogApi>>> {
    let others = states.iter().enumerate();
    let others = others.filter(move |(other, _)| *other != index);
    others.map(|(_, state)| state.served())
}

/// Returns what the operator says of an API, or of all.
fn about_of<'a>(slots: &'a [Arc<ApiSlot>], all: &'a About, api: Option<usize>) -> &'a About {
    api.and_then(|api| slots.get(api))
        .map_or(all, |slot| &slot.about)
}

/// The path of the endpoint with all APIs; those of single APIs are below it.
pub(crate) const MCP_PATH: &str = "/mcp";

/// One endpoint.
pub(crate) struct McpEndpoint {
    pub(crate) view: View,
    /// The API that it serves, by its place; all without one.
    pub(crate) api: Option<usize>,
    pub(crate) state: Arc<EndpointState>,
    /// True if the endpoint is served in search mode, once that is decided.
    pub(crate) searches: OnceLock<bool>,
}

/// The endpoints for APIs with these slots, the one with all APIs first; `state` makes the state of
/// each, by the index of its API.
fn endpoints_of(
    slots: &[Arc<ApiSlot>],
    state: impl Fn(Option<usize>) -> EndpointState,
) -> (Arc<McpEndpoint>, Vec<Arc<McpEndpoint>>) {
    let is_single = is_single(slots);
    let endpoint = |path: String, reads_only: bool, api: Option<usize>, names_apis: bool| {
        let view = View {
            path: path.into(),
            names_apis,
            reads_only,
        };
        Arc::new(McpEndpoint {
            view,
            api,
            state: Arc::new(state(api)),
            searches: OnceLock::new(),
        })
    };
    let pair = |path: String, api, names_apis| {
        let reading = endpoint(format!("{path}/readonly"), true, api, names_apis);
        [endpoint(path, false, api, names_apis), reading]
    };
    let all = pair(MCP_PATH.into(), is_single.then_some(0), !is_single);
    let whole = Arc::clone(&all[0]);
    let named = slots.iter().enumerate().filter_map(|(index, slot)| {
        let path = format!("{MCP_PATH}/{}", slot.name.as_ref()?);
        Some(pair(path, Some(index), false))
    });
    let endpoints = std::iter::once(all).chain(named).flatten();
    (whole, endpoints.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_match_byte_for_byte() {
        let slot = |name: &str| ApiSlot {
            name: ApiName::parse(name).ok(),
            ..ApiSlot::default()
        };
        let served = ServedApis::new(["pets", "bills"].map(slot).into(), About::default(), None);
        let is_path = |path: &str| {
            let mut endpoints = served.endpoints.iter();
            endpoints.any(|endpoint| *endpoint.view.path == *path)
        };
        for path in [
            "/mcp",
            "/mcp/readonly",
            "/mcp/pets",
            "/mcp/pets/readonly",
            "/mcp/bills",
            "/mcp/bills/readonly",
        ] {
            assert!(is_path(path), "{path}");
        }
        for path in [
            "/mcp/",
            "/mcp/%70ets",
            "/mcp/pets/",
            "/MCP/pets",
            "//mcp",
            "/mcp//pets",
            "/mcp/Pets",
            "/mcp/readonly/pets",
            "/mcp/./pets",
            "mcp",
            "",
        ] {
            assert!(!is_path(path), "{path}");
        }
        let single = ServedApis::new(vec![ApiSlot::default()], About::default(), None);
        assert_eq!(single.endpoints.len(), 2);
    }
}
