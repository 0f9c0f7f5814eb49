//! `--reload`: a changed document becomes new tools while the server runs.

use std::sync::Arc;

use super::served::{self, Served};
use crate::config::ApiConfig;
use crate::error::Failure;
use crate::mcp::McpServer;
use crate::text;

/// Checks regularly whether a source of the document changed, and serves the new document. One that
/// cannot be served is not used. Never ends, even if no source is watched, and holds what the tools
/// depend on.
///
/// An API that could not be served at the start has no revision: it is loaded again at each check.
pub(crate) async fn watch(
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
        match served::load_into(&config, &server, index, standing.as_ref()).await {
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
