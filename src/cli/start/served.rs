//! The API that a server serves at the moment, and what it depends on.

use std::sync::{Arc, Weak};

use crate::annotate::hint_review::summarize_words;
use crate::api::Api;
use crate::check::cost;
use crate::cli::load::{self, LoadPurpose, Loaded};
use crate::config::{ApiConfig, Problems};
use crate::error::Failure;
use crate::mcp::McpServer;
use crate::mcp::meta_tools::ListMode;
use crate::mock::Running;
use crate::spec::{Revision, Severity};
use crate::text::{TYPICAL_BYTES_PER_TOKEN, counted, one_line};

/// Reads the document and hands its tools to the server, as the API at that place; gives what they
/// depend on. Warnings that were logged `before` are not logged again.
pub(crate) async fn load_into(
    config: &ApiConfig,
    server: &McpServer,
    index: usize,
    before: Option<&Served>,
) -> Result<Served, Failure> {
    if before.is_none() {
        load::warn_about_insecure_upstream(config);
    }
    let Loaded {
        api,
        diagnostics,
        mock,
        seen,
    } = load::load_api(config, LoadPurpose::Serve).await?;
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
    announce(&api, config, lost, server.searches());
    Ok(Served {
        mocks,
        seen,
        warnings,
    })
}

/// Resources that an API depends on while it is served.
pub(crate) struct Served {
    /// Mocks that calls go to under `--mock`, including those of calls in flight that began with an
    /// earlier API.
    pub(crate) mocks: Vec<(Weak<Api>, Running)>,
    /// Revisions of what was read for it.
    pub(crate) seen: Vec<Revision>,
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
                let bytes = api.too_long().unwrap_or_else(|| cost::list_bytes(api));
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
