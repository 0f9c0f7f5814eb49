//! The start of a server: every API is loaded by itself, all at once, and then watched for changes.

mod reload;
pub(crate) mod served;

use std::sync::Arc;

use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

use self::served::Served;
use super::load;
use crate::annotate::options::Confirm;
use crate::annotate::{Pattern, TokenShare};
use crate::config::{ApiConfig, Problems, ProcessConfig};
use crate::error::Failure;
use crate::mcp::McpServer;
use crate::mcp::endpoints::api_slot::ApiSlot;
use crate::mcp::endpoints::served_apis::ApiCounts;
use crate::outbound::OutboundError;
use crate::text;

/// Returns true if a document that cannot be served at the start may be there later: it comes from
/// a server, which may be down or still starting.
fn may_come(config: &ApiConfig, failure: &Failure) -> bool {
    config.document.source.url().is_some()
        && matches!(failure, Failure::Read(_) | Failure::Document { .. })
}

/// Makes the slot of an API: the facts that are known before its document is read.
pub(crate) fn slot_of(config: &ApiConfig) -> ApiSlot {
    ApiSlot {
        name: config.options.name.clone(),
        about: config.options.about.clone(),
        is_mock: config.mock,
        prefix: config.options.annotate.names.prefix.clone(),
        list: config.list.clone(),
        scopes: Arc::new(config.scopes.clone()),
        shares: Arc::clone(&config.options.annotate.shares),
        access_scopes: config
            .options
            .annotate
            .access
            .iter()
            .flat_map(|rule| rule.says.scopes.clone())
            .collect(),
    }
}

/// APIs that are being loaded.
pub(crate) struct LoadingApis {
    loads: JoinSet<(usize, Result<Served, Failure>)>,
    configs: Vec<Arc<ApiConfig>>,
    server: McpServer,
    confirm: Confirm,
    shares: Arc<[TokenShare]>,
    require_all: bool,
}

/// The APIs of a server, held as long as it runs.
pub(crate) struct WatchedApis {
    _watching: Vec<AbortOnDropHandle<()>>,
}

impl LoadingApis {
    /// Begins to load all, each in a task of its own.
    pub(crate) fn start(
        configs: Vec<Arc<ApiConfig>>,
        process: &ProcessConfig,
        server: &McpServer,
    ) -> Self {
        let mut loads = JoinSet::new();
        for (index, config) in configs.iter().enumerate() {
            let (span, config, server) =
                (load::span_of(config), Arc::clone(config), server.clone());
            let load = async move {
                (
                    index,
                    served::load_into(&config, &server, index, None).await,
                )
            };
            loads.spawn(load.instrument(span));
        }
        Self {
            loads,
            configs,
            server: server.clone(),
            confirm: process.confirm.clone(),
            shares: Arc::clone(&process.shares),
            require_all: process.require_all,
        }
    }

    /// Waits until each is served, or is known not to be, and watches them for changes from then
    /// on. What concerns one of several APIs costs that one, unless the settings are wrong or all
    /// are required.
    ///
    /// # Errors
    /// The failure that ends the start.
    pub(crate) async fn finish(mut self) -> Result<WatchedApis, Failure> {
        let mut watching = Vec::new();
        let (mut problems, mut is_complete) = (Problems::default(), true);
        while let Some(loaded) = self.loads.join_next().await {
            let (index, outcome) = loaded.map_err(|error| {
                Failure::Io(
                    "a document cannot be loaded".into(),
                    std::io::Error::other(error),
                )
            })?;
            let Some(config) = self.configs.get(index) else {
                continue;
            };
            let standing = match (outcome, &config.options.name) {
                (Ok(served), _) => Some(served),
                (Err(failure), None) => {
                    match config.reload.filter(|_| may_come(config, &failure)) {
                        Some(every) => {
                            tracing::error!(
                                "there are no tools yet: {}; --reload tries again every {} s",
                                text::error_in_a_line(&failure),
                                every.as_secs_f64()
                            );
                            self.server.apis().fail(index, failure.for_clients());
                            is_complete = false;
                            None
                        }
                        None => return Err(failure),
                    }
                }
                (Err(Failure::Settings(own)), name @ Some(_)) => {
                    problems.of_api(name.as_ref(), |problems| problems.extend(own));
                    continue;
                }
                (Err(failure @ Failure::Outbound(OutboundError::Identity(_))), name @ Some(_)) => {
                    problems.of_api(name.as_ref(), |problems| {
                        problems.push(text::error_in_a_line(&failure));
                    });
                    continue;
                }
                (Err(failure), Some(name)) => {
                    tracing::error!(
                        "the API `{name}` is not served: {}",
                        text::error_in_a_line(&failure)
                    );
                    self.server.apis().fail(index, failure.for_clients());
                    is_complete = false;
                    None
                }
            };
            let watch = reload::watch(Arc::clone(config), self.server.clone(), index, standing);
            let watch = tokio::spawn(watch.instrument(load::span_of(config)));
            watching.push(AbortOnDropHandle::new(watch));
        }
        problems.extend(self.unmatched_patterns(is_complete));
        problems.check()?;
        let counts = self.server.apis().counts();
        let ApiCounts { served, all, .. } = counts;
        let is_single = self.server.apis().is_single();
        let is_tried_again = self.configs.iter().any(|config| config.reload.is_some());
        if (served == 0 && !is_tried_again) || (self.require_all && !is_complete && !is_single) {
            return Err(Failure::TooFew { served, all });
        }
        if !is_complete && !is_single {
            tracing::warn!("{served} of {all} APIs are served");
        } else if all > 1 {
            tracing::info!("all {all} APIs are served");
        }
        Ok(WatchedApis {
            _watching: watching,
        })
    }

    /// Returns a sentence for each pattern of `--confirm` and `auth_tokens` that matches no tool,
    /// if all APIs could be read.
    fn unmatched_patterns(&self, is_complete: bool) -> Vec<String> {
        let served = self.server.apis().served();
        let is_idle = |pattern: &Pattern| {
            !pattern.is_optional && !served.iter().any(|api| api.has_match(pattern))
        };
        // Patterns of `--confirm` were compared with the only document already.
        let confirmed = self
            .confirm
            .patterns
            .iter()
            .filter(|_| !self.server.apis().is_single());
        let confirmed = confirmed.filter(|pattern| is_idle(pattern));
        let mut problems: Vec<String> = confirmed
            .map(|pattern| format!("--confirm `{pattern}` matches no tool of any API; write `?{pattern}` if it may match nothing"))
            .collect();
        for share in self.shares.iter() {
            let idle = share.patterns().filter(|(_, pattern)| is_idle(pattern));
            problems.extend(idle.map(|(key, pattern)| share.describe_idle(key, pattern)));
        }
        if is_complete {
            return problems;
        }
        for problem in problems {
            tracing::warn!("{problem} (not all APIs could be read)");
        }
        Vec::new()
    }
}
