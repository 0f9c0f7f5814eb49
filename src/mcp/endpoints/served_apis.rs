//! The APIs of a server, each with what became of it so far, and the catalogs that its endpoints
//! get of them; and the endpoints, with their paths.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::introduction::{ApiSlot, Introduction, introduce_nothing, missing_apis, with_own_words};
use crate::annotate::Pattern;
use crate::api::Api;
use crate::api::about::{About, ApiName};
use crate::api::clashes::clashes_with;
use crate::mcp::catalog::{Catalog, visible};
use crate::mcp::endpoint_state::EndpointState;
use crate::mcp::meta_tools::{ListOptions, MetaTools, decide};
use crate::mcp::visible::{ALL_RIGHTS, CatalogApi, View};

/// The APIs of a server, and its endpoints.
pub(crate) struct ServedApis {
    /// Outcome of each API. The lock is held while endpoints get their catalogs, so that they
    /// change in one order.
    outcomes: Mutex<Vec<ApiOutcome>>,
    /// The slots of the APIs.
    pub(crate) slots: Vec<ApiSlot>,
    /// What the operator says of several APIs as a whole.
    about: About,
    /// True if the last change of each API's document could not be served.
    failed_reloads: Vec<AtomicBool>,
    /// The endpoints.
    pub(crate) endpoints: Endpoints,
    tells_changes: bool,
}

/// Outcome of loading an API.
#[derive(Clone)]
enum ApiOutcome {
    /// Not loaded yet.
    Awaited,
    Served(CatalogApi),
    /// Failed, with the reason in words for a model.
    Failed(String),
}

impl ApiOutcome {
    fn served(&self) -> Option<&Arc<Api>> {
        match self {
            Self::Served(of) => Some(&of.api),
            Self::Awaited | Self::Failed(_) => None,
        }
    }
}

/// Number of APIs by outcome.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ApiCounts {
    pub(crate) all: usize,
    pub(crate) served: usize,
    pub(crate) awaited: usize,
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
        let is_single = matches!(slots.as_slice(), [ApiSlot { name: None, .. }]);
        // Of several, one may come late.
        let tells_changes = reload.is_some() || !is_single;
        let ending = CancellationToken::new();
        let names: Vec<Option<ApiName>> = slots.iter().map(|slot| slot.name.clone()).collect();
        let state = |api: Option<usize>| {
            let about = about_of(&slots, &about, api);
            let introduction = introduce_nothing(tells_changes, about);
            EndpointState::new(reload, introduction, ending.clone())
        };
        let served = Self {
            outcomes: Mutex::new(vec![ApiOutcome::Awaited; slots.len()]),
            endpoints: Endpoints::new(&names, state),
            failed_reloads: slots.iter().map(|_| AtomicBool::new(false)).collect(),
            slots,
            about,
            tells_changes,
        };
        if !is_single {
            let outcomes = served.outcomes.lock();
            let endpoints = served.endpoints.iter();
            endpoints.for_each(|endpoint| served.publish(endpoint, &outcomes));
        }
        served
    }

    /// Returns what the operator says of an endpoint.
    pub(crate) fn about(&self, endpoint: &McpEndpoint) -> &About {
        about_of(&self.slots, &self.about, endpoint.api)
    }

    /// Counts the APIs by outcome.
    pub(crate) fn counts(&self) -> ApiCounts {
        let outcomes = self.outcomes.lock();
        let count =
            |is: fn(&ApiOutcome) -> bool| outcomes.iter().filter(|outcome| is(outcome)).count();
        ApiCounts {
            all: outcomes.len(),
            served: count(|outcome| outcome.served().is_some()),
            awaited: count(|outcome| matches!(outcome, ApiOutcome::Awaited)),
        }
    }

    /// Those that are served now.
    pub(crate) fn served(&self) -> Vec<Arc<Api>> {
        let outcomes = self.outcomes.lock();
        let served = outcomes.iter().filter_map(ApiOutcome::served);
        served.cloned().collect()
    }

    /// Returns the state of each API, for the operator.
    pub(crate) fn states(&self) -> Vec<ServedState> {
        let outcomes = self.outcomes.lock();
        let state =
            |((slot, outcome), failed): ((&ApiSlot, &ApiOutcome), &AtomicBool)| ServedState {
                name: slot.name.clone(),
                status: match outcome {
                    ApiOutcome::Awaited => "loading",
                    ApiOutcome::Served(_) => "served",
                    ApiOutcome::Failed(_) => "failed",
                },
                tools: outcome.served().map_or(0, |api| api.tools().len()),
                has_failed_reload: failed.load(Ordering::Relaxed),
            };
        self.slots
            .iter()
            .zip(outcomes.iter())
            .zip(&self.failed_reloads)
            .map(state)
            .collect()
    }

    /// Notes whether the changed document of an API could be served.
    pub(crate) fn note_reload(&self, index: usize, is_served: bool) {
        if let Some(failed) = self.failed_reloads.get(index) {
            failed.store(!is_served, Ordering::Relaxed);
        }
    }

    /// Returns true if no API has a name, because there is only one.
    pub(crate) fn is_single(&self) -> bool {
        matches!(self.slots.as_slice(), [ApiSlot { name: None, .. }])
    }

    /// Serves an API from now on.
    ///
    /// # Errors
    /// A sentence for each of its tool names that another API has; then everything stays as it was.
    pub(crate) fn serve(&self, index: usize, api: Arc<Api>) -> Result<(), Vec<String>> {
        let mut outcomes = self.outcomes.lock();
        let others = others_than(index, &outcomes).flatten();
        let clashes = clashes_with(&api, others.map(Arc::as_ref));
        if !clashes.is_empty() {
            return Err(clashes);
        }
        let Some(slot) = self.slots.get(index) else {
            return Ok(());
        };
        let served = CatalogApi::new(api, &slot.scopes, &slot.shares);
        let idle = self.newly_idle_patterns(index, &served.api, &outcomes);
        if !idle.is_empty() {
            return Err(idle);
        }
        self.settle(index, ApiOutcome::Served(served), &mut outcomes);
        Ok(())
    }

    /// Notes that an API cannot be served: `why` is a sentence for a model.
    pub(crate) fn fail(&self, index: usize, why: &str) {
        let outcome = ApiOutcome::Failed(why.to_owned());
        self.settle(index, outcome, &mut self.outcomes.lock());
    }

    /// Notes that no API will ever be served, because the server ends.
    pub(crate) fn fail_all(&self, why: &str) {
        self.endpoints
            .iter()
            .for_each(|endpoint| endpoint.state.fail(why));
    }

    /// Returns true if the endpoint with all APIs is served in search mode.
    pub(crate) fn searches(&self) -> bool {
        let whole = self.endpoints.iter().next();
        whole.is_some_and(|whole| whole.searches.get() == Some(&true))
    }

    /// Returns the meta-tools: those of search mode, which replace all tools of an endpoint, and
    /// the one that waits. The mode is decided when all its APIs are loaded and stays, because a
    /// client that is not notified of changes would call removed tools.
    fn meta_tools(
        &self,
        endpoint: &McpEndpoint,
        slots: &[&ApiSlot],
        apis: &[CatalogApi],
        is_decided: bool,
    ) -> Option<MetaTools> {
        let all = visible(apis, &endpoint.view, &ALL_RIGHTS);
        let options: Vec<&ListOptions> = slots.iter().map(|slot| &slot.list).collect();
        let now = decide(&options, &all);
        let is_first = endpoint.searches.get().is_none();
        let searches = endpoint.searches.get().copied().unwrap_or(now);
        if is_decided && !apis.is_empty() {
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
        let single = options.first().filter(|_| self.is_single());
        let prefix = single.map_or("", |options| options.prefix.as_str());
        let meta_tools = MetaTools::new(&all, prefix, &options, searches);
        let most = options.iter().filter_map(|options| options.max_tools).min();
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
        api: &Arc<Api>,
        outcomes: &[ApiOutcome],
    ) -> Vec<String> {
        let others = || others_than(index, outcomes);
        let before = match outcomes.get(index) {
            Some(ApiOutcome::Served(before)) => Some(before),
            Some(ApiOutcome::Failed(_)) if others().all(|other| other.is_some()) => None,
            _ => return Vec::new(),
        };
        let was_matched =
            |pattern: &Pattern| before.is_none_or(|before| before.api.has_match(pattern));
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

    fn settle(&self, index: usize, outcome: ApiOutcome, outcomes: &mut [ApiOutcome]) {
        if let Some(known) = outcomes.get_mut(index) {
            *known = outcome;
        }
        let concerned = self
            .endpoints
            .iter()
            .filter(|endpoint| endpoint.api.is_none_or(|api| api == index));
        concerned.for_each(|endpoint| self.publish(endpoint, outcomes));
    }

    /// Gives an endpoint the catalog of what is there now.
    fn publish(&self, endpoint: &McpEndpoint, outcomes: &[ApiOutcome]) {
        let (mut apis, mut slots, mut awaited, mut failed) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut failure = None;
        for (index, (slot, outcome)) in self.slots.iter().zip(outcomes).enumerate() {
            if endpoint.api.is_some_and(|api| api != index) {
                continue;
            }
            match outcome {
                ApiOutcome::Awaited => awaited.push(slot),
                ApiOutcome::Failed(why) => {
                    failed.push(slot);
                    failure.get_or_insert(why);
                }
                ApiOutcome::Served(of) => {
                    slots.push(slot);
                    apis.push(of.clone());
                }
            }
        }
        match failure {
            Some(why) if apis.is_empty() && awaited.is_empty() => endpoint.state.fail(why),
            _ => {
                let about = self.about(endpoint);
                let introduction = Introduction {
                    about,
                    tells_changes: self.tells_changes,
                    view: &endpoint.view,
                    apis: &apis,
                    awaited: &awaited,
                    failed: &failed,
                };
                let mut config = introduction.write();
                let meta_tools = self.meta_tools(endpoint, &slots, &apis, awaited.is_empty());
                let meta_tools = meta_tools.map(|meta_tools| {
                    meta_tools.lacking_apis(missing_apis(&[awaited.as_slice(), &failed].concat()))
                });
                let awaited = awaited.iter().map(|slot| slot.prefix.clone()).collect();
                if let Some(meta_tools) = meta_tools
                    .as_ref()
                    .filter(|meta_tools| meta_tools.searches())
                {
                    let seen = visible(&apis, &endpoint.view, &ALL_RIGHTS);
                    let steps = meta_tools.instructions(&seen);
                    config = config.with_instructions(with_own_words(&steps, about));
                }
                let catalog = Catalog::new(apis, endpoint.view.clone(), awaited, config);
                endpoint.state.ready(catalog.with_meta_tools(meta_tools));
            }
        }
    }
}

/// The APIs besides the one at that place; `None` for each that is not served.
fn others_than(index: usize, outcomes: &[ApiOutcome]) -> impl Iterator<Item = Option<&Arc<Api>>> {
    let others = outcomes.iter().enumerate();
    let others = others.filter(move |(other, _)| *other != index);
    others.map(|(_, outcome)| outcome.served())
}

/// Returns what the operator says of an API, or of all.
fn about_of<'a>(slots: &'a [ApiSlot], all: &'a About, api: Option<usize>) -> &'a About {
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

/// All endpoints of a server.
pub(crate) struct Endpoints {
    all: Vec<Arc<McpEndpoint>>,
    by_path: HashMap<Arc<str>, usize>,
}

impl Endpoints {
    /// Those for APIs of these names; `state` makes the state of each, by the index of its API.
    pub(crate) fn new(
        names: &[Option<ApiName>],
        state: impl Fn(Option<usize>) -> EndpointState,
    ) -> Self {
        let is_single = matches!(names, [None]);
        let mut all = Vec::new();
        let mut add = |path: String, api: Option<usize>, names_apis: bool| {
            for (path, reads_only) in [(path.clone(), false), (format!("{path}/readonly"), true)] {
                let view = View {
                    path: path.into(),
                    names_apis,
                    reads_only,
                };
                let state = Arc::new(state(api));
                let searches = OnceLock::new();
                all.push(Arc::new(McpEndpoint {
                    view,
                    api,
                    state,
                    searches,
                }));
            }
        };
        add(MCP_PATH.into(), is_single.then_some(0), !is_single);
        for (index, name) in names.iter().enumerate() {
            if let Some(name) = name {
                add(format!("{MCP_PATH}/{name}"), Some(index), false);
            }
        }
        let paths = all.iter().enumerate();
        let by_path = paths
            .map(|(index, endpoint)| (Arc::clone(&endpoint.view.path), index))
            .collect();
        Self { all, by_path }
    }

    /// The endpoint at a path, compared byte for byte: a proxy in front may guard by path, and must
    /// not be got round by another spelling.
    pub(crate) fn at(&self, path: &str) -> Option<&Arc<McpEndpoint>> {
        self.by_path
            .get(path)
            .and_then(|index| self.all.get(*index))
    }

    /// All, the one with all APIs first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<McpEndpoint>> {
        self.all.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_match_byte_for_byte() {
        let names = ["pets", "bills"].map(|name| ApiName::parse(name).ok());
        let endpoints = Endpoints::new(&names, |_| EndpointState::pending(None));
        for path in [
            "/mcp",
            "/mcp/readonly",
            "/mcp/pets",
            "/mcp/pets/readonly",
            "/mcp/bills",
            "/mcp/bills/readonly",
        ] {
            assert_eq!(
                endpoints
                    .at(path)
                    .map(|endpoint| endpoint.view.path.as_ref()),
                Some(path)
            );
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
            assert!(endpoints.at(path).is_none(), "{path}");
        }
        assert_eq!(
            Endpoints::new(&[None], |_| EndpointState::pending(None))
                .iter()
                .count(),
            2
        );
    }
}
