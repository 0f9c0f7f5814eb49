//! Startup of a server: every API is loaded by itself, all at once, served, and then watched for
//! changes if `--reload` asks for it.

use std::sync::{Arc, Weak};

use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

use super::each_api;
use super::load::{self, LoadPurpose, Loaded};
use crate::annotate::Pattern;
use crate::annotate::hint_review::summarize_words;
use crate::api::Api;
use crate::check::cost;
use crate::config::{ApiConfig, Problems, ProcessConfig};
use crate::error::Failure;
use crate::mcp::McpServer;
use crate::mcp::api_slot::ListMode;
use crate::mock::Running;
use crate::spec::{Revision, Severity};
use crate::text;
use crate::text::{TYPICAL_BYTES_PER_TOKEN, counted, one_line};

/// Returns true if a document that cannot be served at the start may be there later: it comes from
/// a server, which may be down or still starting.
fn may_come(config: &ApiConfig, failure: &Failure) -> bool {
    config.document.source.url().is_some()
        && matches!(failure, Failure::Read(_) | Failure::Document { .. })
}

/// Begins to load all APIs, each in a task of its own; waits until each is served, or is known not to
/// be; and watches them for changes from then on, for as long as what it returns is held. What
/// concerns one of several APIs costs that one, unless the settings are wrong or all are required.
///
/// # Errors
/// The failure with which startup ends.
pub(crate) async fn start_apis(
    configs: &[Arc<ApiConfig>],
    process: &ProcessConfig,
    server: &McpServer,
) -> Result<Vec<AbortOnDropHandle<()>>, Failure> {
    let mut loads = JoinSet::new();
    for (index, config) in configs.iter().enumerate() {
        let (own, server) = (Arc::clone(config), server.clone());
        let load = async move { (index, load_into(&own, &server, index, None).await) };
        loads.spawn(load.instrument(load::span_of(config)));
    }
    let mut watching = Vec::new();
    let (mut problems, mut is_complete) = (Problems::default(), true);
    while let Some(ended) = loads.join_next().await {
        let (index, outcome) = ended.map_err(each_api::load_broke)?;
        let Some(config) = configs.get(index) else {
            continue;
        };
        let standing = match outcome {
            Ok(served) => Some(served),
            Err(failure) => {
                let every = config.reload.filter(|_| may_come(config, &failure));
                let failure = match (every, &config.options.name) {
                    (Some(every), None) => {
                        tracing::error!(
                            "there are no tools yet: {}; --reload tries again every {} s",
                            text::error_in_a_line(&failure),
                            every.as_secs_f64()
                        );
                        failure
                    }
                    (_, name) => {
                        let own = each_api::own_failure(config, failure, &mut problems)?;
                        let (Some(failure), Some(name)) = (own, name) else {
                            continue;
                        };
                        tracing::error!(
                            "the API `{name}` is not served: {}",
                            text::error_in_a_line(&failure)
                        );
                        failure
                    }
                };
                server.apis.fail(index, failure.for_clients());
                is_complete = false;
                None
            }
        };
        let watch = watch(Arc::clone(config), server.clone(), index, standing);
        let watch = tokio::spawn(watch.instrument(load::span_of(config)));
        watching.push(AbortOnDropHandle::new(watch));
    }
    problems.extend(unmatched_patterns(process, server, is_complete));
    problems.check()?;
    let (served, all) = (server.apis.served().len(), server.apis.slots.len());
    let is_single = server.apis.is_single();
    let is_tried_again = configs.iter().any(|config| config.reload.is_some());
    if (served == 0 && !is_tried_again) || (process.require_all && !is_complete && !is_single) {
        return Err(Failure::TooFew { served, all });
    }
    if !is_complete && !is_single {
        tracing::warn!("{served} of {all} APIs are served");
    } else if all > 1 {
        tracing::info!("all {all} APIs are served");
    }
    Ok(watching)
}

/// Returns a sentence for each pattern of `--confirm` and `auth_tokens` that matches no tool,
/// if all APIs could be read.
fn unmatched_patterns(
    process: &ProcessConfig,
    server: &McpServer,
    is_complete: bool,
) -> Vec<String> {
    let served = server.apis.served();
    let is_idle = |pattern: &Pattern| {
        !pattern.is_optional && !served.iter().any(|api| api.has_match(pattern))
    };
    // Patterns of `--confirm` were compared with the only document already.
    let confirmed = process.confirm.patterns.iter();
    let confirmed = confirmed.filter(|_| !server.apis.is_single());
    let confirmed = confirmed.filter(|pattern| is_idle(pattern));
    let mut problems: Vec<String> = confirmed
            .map(|pattern| format!("--confirm `{pattern}` matches no tool of any API; write `?{pattern}` if it may match nothing"))
            .collect();
    for share in process.shares.iter() {
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

/// Reads the document and hands its tools to the server, as the API at that place; gives what they
/// depend on. Warnings that were logged `before` are not logged again.
async fn load_into(
    config: &ApiConfig,
    server: &McpServer,
    index: usize,
    before: Option<&Served>,
) -> Result<Served, Failure> {
    if before.is_none() {
        load::warn_about_insecure_upstream(config);
    }
    let mut lists_all = server.apis.lists_all(index);
    let Loaded {
        api,
        diagnostics,
        mock,
        seen,
    } = loop {
        let loaded = load::load_api(config, LoadPurpose::Serve { lists_all }).await?;
        // While it was loaded, another API may have made an endpoint list all tools.
        if lists_all || !loaded.api.is_finished_on_use() || !server.apis.lists_all(index) {
            break loaded;
        }
        lists_all = true;
    };
    let lost = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .count();
    if before.is_none_or(|before| before.warnings != api.warnings()) {
        for warning in api.warnings().iter().take(load::MAX_LOGGED_LINES) {
            tracing::warn!("{warning}");
        }
    }
    let warnings = api.warnings().to_vec();
    let mocks = mock
        .into_iter()
        .map(|mock| (Arc::downgrade(&api), mock))
        .collect();
    server
        .serve_api(index, Arc::clone(&api))
        .map_err(Problems::from)?;
    announce(&api, config, lost, server.apis.searches());
    Ok(Served {
        mocks,
        seen,
        warnings,
    })
}

/// Resources that an API depends on while it is served.
struct Served {
    /// Mocks that calls go to under `--mock`, including those of calls in flight that began with an
    /// earlier API.
    mocks: Vec<(Weak<Api>, Running)>,
    /// Revisions of what was read for it.
    seen: Vec<Revision>,
    /// Warnings that were logged about it.
    warnings: Vec<String>,
}

fn announce(api: &Api, config: &ApiConfig, lost: usize, searches: bool) {
    let tools = api.tools().len();
    let read_only = api
        .tools()
        .iter()
        .filter(|offered| offered.hints.is_read_only())
        .count();
    let confirmed = api
        .tools()
        .iter()
        .filter(|offered| offered.must_confirm)
        .count();
    let confirmed = if confirmed == 0 {
        String::new()
    } else {
        format!(", {confirmed} only after a person agreed")
    };
    let left_out = if lost == 0 {
        String::new()
    } else {
        format!(", {} left out", counted(lost, "operation"))
    };
    tracing::info!(
        "{}: {} ({read_only} read-only{confirmed}){left_out}",
        one_line(api.document().title()),
        counted(tools, "tool")
    );
    let words = summarize_words(
        api.tools()
            .iter()
            .map(|offered| (&offered.hints, &offered.operation.method)),
    );
    if let Some(words) = words {
        tracing::info!("{words}");
    }
    if tools == 0 {
        tracing::warn!(
            "there is no tool to serve; check --tool-include, --tool-exclude, --read-only, --no-destructive and the document"
        );
    }
    if searches {
        let about = if api.is_finished_on_use() {
            "more than"
        } else {
            "about"
        };
        let (tokens, instead) = (
            cost::list_tokens(api),
            "clients list a few tools that search and call these, instead of a list of",
        );
        match config.list.mode {
            ListMode::Unset => {
                let bytes = api.too_long.unwrap_or_else(|| cost::list_bytes(api));
                tracing::warn!(
                    "{instead} at least {bytes} bytes, about {} tokens, which is longer than 6 MiB; --tools all lists all, and --tools search says that this is meant",
                    bytes / TYPICAL_BYTES_PER_TOKEN
                );
            }
            ListMode::All | ListMode::Search | ListMode::Auto => {
                tracing::info!("--tools search: {instead} {about} {tokens} tokens");
            }
        }
        return;
    }
    if config.profile.is_known() {
        tracing::info!("{}", config.profile.results_in_words());
    }
    let warnings = cost::list_warnings(tools, cost::list_tokens(api), &config.profile);
    if !warnings.is_empty() {
        tracing::warn!("{}", warnings.join("; "));
    }
}

/// Checks regularly whether a source of the document changed, and serves the new document. One that
/// cannot be served is not used. Never ends, even if no source is watched, and holds what the tools
/// depend on.
///
/// An API that could not be served at the start has no revision: it is loaded again at each check.
async fn watch(
    config: Arc<ApiConfig>,
    server: McpServer,
    index: usize,
    mut standing: Option<Served>,
) {
    let Some(every) = config.reload else {
        return std::future::pending().await;
    };
    let (mut unseen, mut unread) = (None, None);
    loop {
        tokio::time::sleep(every).await;
        // What could not even be read may be there the next time, although it is not another one
        // then.
        if let Some(standing) = &mut standing
            && !changed(standing, &mut unseen).await
            && unread.is_none()
        {
            continue;
        }
        match load_into(&config, &server, index, standing.as_ref()).await {
            Ok(mut now) => {
                tracing::info!(
                    "{}",
                    match standing {
                        Some(_) => "the document changed; the new version is served",
                        None => "the document can be read now and is served",
                    }
                );
                // Calls in flight go to the mock that they began with.
                let before = standing.into_iter().flat_map(|before| before.mocks);
                now.mocks
                    .extend(before.filter(|(api, _)| api.strong_count() > 0));
                standing = Some(now);
                unread = None;
                server.note_reload(index, true);
            }
            Err(failure) => {
                server.note_reload(index, false);
                let why = text::error_in_a_line(&failure);
                if unread.as_ref() != Some(&why) {
                    if standing.is_some() {
                        tracing::error!(
                            "the document changed and cannot be served; the tools stay as they were: {why}"
                        );
                    } else {
                        tracing::warn!("the document still cannot be served: {why}");
                    }
                }
                let is_tried_again =
                    standing.is_none() || matches!(failure, Failure::Read(_) | Failure::Io(..));
                unread = is_tried_again.then_some(why);
            }
        }
    }
}

/// Looks at everything, so that a change of two files is one. What cannot be looked at is said
/// once, and counts as it was.
async fn changed(standing: &mut Served, said: &mut Option<String>) -> bool {
    let (mut changed, mut problem) = (false, None);
    for seen in &mut standing.seen {
        match seen.has_changed().await {
            Ok(is_other) => changed |= is_other,
            Err(error) => problem = Some(text::error_in_a_line(&error)),
        }
    }
    if let Some(problem) = problem
        .as_ref()
        .filter(|problem| said.as_ref() != Some(problem))
    {
        tracing::warn!(
            "a source of the document could not be checked for changes, and is taken as unchanged: {problem}"
        );
    }
    *said = problem;
    changed
}
