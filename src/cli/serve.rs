//! `openapi-mcp serve`.

use std::process::ExitCode;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::ServeCommand;
use super::load::{self, Purpose};
use crate::annotate::hints;
use crate::api::Api;
use crate::config::Transport;
use crate::config::settings::LogLevel;
use crate::error::Failure;
use crate::server::{McpServer, http, stdio};
use crate::spec::Severity;

/// Exit code of a process that a second signal ended: 128 + SIGINT.
const INTERRUPTED: i32 = 130;

pub(super) async fn run(command: &ServeCommand) -> Result<ExitCode, Failure> {
    let config = load::settings(&command.api, &command.server, command.config.config.as_deref(), LogLevel::Info)?;
    // The port first: a taken one is told before a large document is read.
    let listener = match &config.transport {
        Transport::Stdio => None,
        Transport::Http { bind, .. } => Some(http::bind(*bind).await.map_err(|error| Failure::Bind(bind.to_string(), error))?),
    };
    let stop = CancellationToken::new();
    watch_signals(stop.clone()).map_err(|error| Failure::Io("signals cannot be watched".into(), error))?;
    let (api, diagnostics) = load::api(&config, Purpose::Calls).await?;
    let lost = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .count();
    announce(&api, lost);
    let server = McpServer::new(Arc::new(api));
    let served = match (config.transport, listener) {
        (Transport::Http { allowed, .. }, Some(listener)) => {
            let address = listener
                .local_addr()
                .map_err(|error| Failure::Io("the address is not known".into(), error))?;
            tracing::info!("listening on http://{address}/mcp");
            http::serve(listener, server, allowed, stop).await
        }
        _ => stdio::serve(server, stop).await,
    };
    served.map_err(|error| Failure::Io("serving failed".into(), error))?;
    Ok(ExitCode::SUCCESS)
}

fn announce(api: &Api, lost: usize) {
    let tools = api.tools().len();
    let read_only = api
        .tools()
        .iter()
        .filter(|tool| hints::is_read_only(tool.annotations.as_ref()))
        .count();
    let left_out = if lost == 0 {
        String::new()
    } else {
        format!(", {lost} operations left out")
    };
    tracing::info!(
        "{}: {tools} tools ({read_only} read-only){left_out}",
        crate::spec::text::one_line(api.document().title())
    );
    if tools == 0 {
        tracing::warn!("there is no tool to serve; see the patterns and the document");
    }
}

/// The first SIGTERM or SIGINT asks for a clean end, the second one ends at once.
fn watch_signals(stop: CancellationToken) -> std::io::Result<()> {
    #[cfg(unix)]
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::spawn(async move {
        for round in 0..2 {
            #[cfg(unix)]
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            #[cfg(not(unix))]
            let _ = tokio::signal::ctrl_c().await;
            if round == 0 {
                tracing::info!("stopping: calls in flight are answered first; a second signal ends at once");
                stop.cancel();
            } else {
                #[expect(clippy::exit, reason = "the operator asked twice")]
                std::process::exit(INTERRUPTED);
            }
        }
    });
    Ok(())
}
