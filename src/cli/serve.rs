//! `openapi-mcp serve`.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::install::page_entries::page_entries;
use super::{ServeCommand, load, operations, reload, served};
use crate::config::{ConfigError, Transport};
use crate::descriptors;
use crate::error::Failure;
use crate::observe;
use crate::outbound::{self, OutboundOptions};
use crate::server::{McpServer, http, stdio};
use crate::spec::Source;

/// Exit code of a process that a second signal ended: 128 + SIGINT.
const INTERRUPTED: i32 = 130;

/// How long a server without a document still answers, so that requests on their way get the reason and not a closed
/// connection.
const FAILURE_GRACE: Duration = Duration::from_millis(100);

/// How long a document is still waited for after the client has left: an error in it is reported then.
const ABANDONED_LOAD_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) async fn run(command: &ServeCommand) -> Result<ExitCode, Failure> {
    let (process, config) = load::server_settings(&command.api, &command.server, command.config.config.as_deref())?;
    let config = Arc::new(config);
    if matches!((&process.transport, &config.source), (Transport::Stdio, Source::Stdin)) {
        let problem = "--spec - needs --transport http: over stdio, standard input belongs to the client".to_owned();
        return Err(Failure::Settings(ConfigError(vec![problem])));
    }
    descriptors::raise_descriptor_limit();
    let stop = CancellationToken::new();
    let server = McpServer::pending(config.reload).with_confirm(config.annotate.confirm.is_on());
    let drain_delay = match &process.transport {
        Transport::Stdio => Duration::ZERO,
        Transport::Http { options, .. } => options.drain_delay,
    };
    operations::start(&process, &server).await?;
    let _finish = FinishOnDrop;
    watch_signals(stop.clone(), server.clone(), drain_delay).map_err(|error| Failure::Io("signals cannot be watched".into(), error))?;
    // A file is read before anything is answered, so that a bad one is told at once. A URL may be slow, and clients give up
    // on a handshake that is.
    let mut standing = None;
    if config.source.url().is_none() {
        standing = tokio::select! {
            () = stop.cancelled() => return Ok(ExitCode::SUCCESS),
            loaded = served::load_into(&config, &server, None) => Some(loaded?),
        };
    }
    let transport = async {
        match &process.transport {
            Transport::Stdio => {
                if std::io::stdin().is_terminal() {
                    tracing::info!(
                        "waiting for an MCP client on standard input; usually a client starts this command itself, see README.md, and `openapi-mcp tools` lists the tools"
                    );
                }
                stdio::serve(server.clone(), stop.clone()).await.map_err(serving_failed)
            }
            Transport::Http { bind, options } => {
                let listener = http::bind(*bind).await.map_err(|error| Failure::Bind(bind.to_string(), error))?;
                let address = listener.local_addr().map_err(serving_failed)?;
                tracing::info!("listening on {}://{address}/mcp", options.scheme());
                // The issuer's keys may be behind TLS even where the API is not, and the issuer is not the API.
                let outbound = OutboundOptions {
                    tls: true,
                    ..config.outbound.for_others()
                };
                let oauth = options.access.oauth.as_ref();
                let keys = oauth
                    .map(|_| outbound::http_client(&outbound))
                    .transpose()
                    .map_err(Failure::Outbound)?;
                let mut options = options.clone();
                options.page.snippets = page_entries(!options.access.tokens.is_empty() || !options.access.token_files.is_empty());
                http::serve(listener, server.clone(), &options, keys, stop.clone())
                    .await
                    .map_err(serving_failed)
            }
        }
    };
    tokio::pin!(transport);
    let standing = if let Some(standing) = standing {
        standing
    } else {
        let loading = served::load_into(&config, &server, None);
        tokio::pin!(loading);
        tokio::select! {
            served = &mut transport => {
                served?;
                // The client left before the document was there. Whoever started the server still learns why it would have failed.
                let outcome = tokio::select! {
                    () = stop.cancelled() => return Ok(ExitCode::SUCCESS),
                    outcome = tokio::time::timeout(ABANDONED_LOAD_TIMEOUT, loading) => outcome,
                };
                return match outcome {
                    Ok(Err(failure)) => Err(failure),
                    Ok(Ok(_)) | Err(_) => Ok(ExitCode::SUCCESS),
                };
            }
            loaded = &mut loading => match loaded {
                Ok(standing) => standing,
                Err(failure) => {
                    // Clients wait for an answer already.
                    server.fail(failure.for_clients());
                    tokio::time::sleep(FAILURE_GRACE).await;
                    stop.cancel();
                    let _ = transport.await;
                    return Err(failure);
                }
            },
        }
    };
    // A task of its own, so that nothing waits while a document is read. It holds what the tools depend on.
    let _watching = AbortOnDropHandle::new(tokio::spawn(reload::watch(Arc::clone(&config), server.clone(), standing)));
    transport.await?;
    Ok(ExitCode::SUCCESS)
}

/// However serving ends, what was observed is written.
struct FinishOnDrop;

impl Drop for FinishOnDrop {
    fn drop(&mut self) {
        observe::call::finish();
    }
}

fn serving_failed(error: std::io::Error) -> Failure {
    Failure::Io("serving failed".into(), error)
}

/// The first SIGTERM or SIGINT asks for a clean end, the second one ends at once. After SIGTERM, which is how platforms end a
/// process, requests are still answered for `drain_delay`.
fn watch_signals(stop: CancellationToken, server: McpServer, drain_delay: Duration) -> std::io::Result<()> {
    #[cfg(unix)]
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::spawn(async move {
        for round in 0..2 {
            #[cfg(unix)]
            let is_polite = tokio::select! {
                _ = tokio::signal::ctrl_c() => false,
                _ = terminate.recv() => true,
            };
            #[cfg(not(unix))]
            let is_polite = tokio::signal::ctrl_c().await.is_err();
            if round == 0 && is_polite && !drain_delay.is_zero() {
                server.begin_draining();
                tracing::info!(
                    "draining: requests are still answered for {} s, and /readyz asks for no more; a second signal ends at once",
                    drain_delay.as_secs_f64()
                );
                let stop = stop.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(drain_delay).await;
                    tracing::info!("stopping: calls in flight are answered first");
                    stop.cancel();
                });
            } else if round == 0 {
                server.begin_draining();
                tracing::info!("stopping: calls in flight are answered first; a second signal ends at once");
                stop.cancel();
            } else {
                observe::call::finish();
                #[expect(clippy::exit, reason = "the operator asked twice")]
                std::process::exit(INTERRUPTED);
            }
        }
    });
    Ok(())
}
