//! `openapi-mcp serve`.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::each_api::slot_of;
use super::end_signals::{EndSignals, INTERRUPTED};
use super::install::entry::page_entries;
use super::log::LogDelivery;
use super::settings::{self, SettingsUse};
use super::start::start_apis;
use super::{ServeCommand, observability};
use crate::api::Api;
use crate::config::settings::LogLevel;
use crate::config::{ApiConfig, Config, LayeredSettings, ProcessConfig, Transport};
use crate::error::Failure;
use crate::mcp::McpServer;
use crate::outbound::{self, OutboundOptions};
use crate::proxy::waiting::handle::seal_handles_with;
use crate::spec::Source;
use crate::transport::http::page::{PageKind, PageOptions};
use crate::transport::http::{self, HttpOptions};
use crate::transport::stdio;
use crate::{fd_limit, observe};

/// Time for which a server without a document still answers, so that requests in flight get the
/// reason instead of a closed connection.
const FAILURE_GRACE: Duration = Duration::from_millis(100);

/// Time for which a server over HTTP waits for a document from a URL before it listens.
const FIRST_LOOK: Duration = Duration::from_secs(1);

/// Time for which a document is still waited for after the client has left, to report an error in
/// it.
const ABANDONED_LOAD_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) async fn run(command: &ServeCommand) -> Result<ExitCode, Failure> {
    let layered = LayeredSettings::read(&command.settings, &command.server, &command.config);
    let Config { process, apis } = settings::resolve(
        layered,
        SettingsUse::Serve,
        LogLevel::Info,
        LogDelivery::Queued,
    )?;
    let configs: Vec<Arc<ApiConfig>> = apis.into_iter().map(Arc::new).collect();
    let reads_stdin = configs
        .iter()
        .any(|config| config.document.source == Source::Stdin);
    if reads_stdin && matches!(process.transport, Transport::Stdio) {
        let problem =
            "--spec - needs --transport http: over stdio, standard input belongs to the client"
                .to_owned();
        return Err(Failure::setting(problem));
    }
    warn_about_confirmation(&process, &configs);
    fd_limit::raise_descriptor_limit();
    disable_core_dumps();
    let server = awaiting_server(&process, &configs);
    let drain_delay = match &process.transport {
        Transport::Stdio => Duration::ZERO,
        Transport::Http { options, .. } => options.drain_delay,
    };
    // Of several APIs, none decides how other servers are reached.
    let of_one = configs
        .first()
        .filter(|config| config.options.name.is_none());
    let outbound = of_one
        .map(|config| config.outbound.for_others())
        .unwrap_or_default();
    observability::start(&process, &outbound, &server).await?;
    let outcome = Box::pin(serve_apis(process, configs, server, outbound, drain_delay)).await;
    // However serving ends, what was observed is written.
    observe::call::finish().await;
    outcome
}

/// Serves until the client leaves or a signal comes.
async fn serve_apis(
    process: ProcessConfig,
    configs: Vec<Arc<ApiConfig>>,
    server: McpServer,
    outbound: OutboundOptions,
    drain_delay: Duration,
) -> Result<ExitCode, Failure> {
    let stop = CancellationToken::new();
    watch_signals(stop.clone(), server.clone(), drain_delay)
        .map_err(|error| Failure::Io("signals cannot be watched".into(), error))?;
    let mut loading = Box::pin(start_apis(&configs, &process, &server));
    // A single file is read before the first answer, so that an invalid one is reported at once. A
    // URL, or one of several documents, may be slow, and clients give up on a slow handshake.
    // Over HTTP, no client waits yet for a document that cannot be fetched.
    let mut watched = None;
    if let [config] = configs.as_slice()
        && config.options.name.is_none()
    {
        let is_file = config.document.source.url().is_none();
        let is_http = matches!(process.transport, Transport::Http { .. });
        let patience = match config.reload {
            _ if is_file => Some(Duration::MAX),
            None if is_http => Some(FIRST_LOOK),
            _ => None,
        };
        if let Some(patience) = patience {
            let loaded = tokio::select! {
                () = stop.cancelled() => return Ok(ExitCode::SUCCESS),
                loaded = tokio::time::timeout(patience, &mut loading) => loaded,
            };
            if matches!(loaded, Ok(Err(Failure::Read(_)))) && !is_file {
                tracing::info!("--reload waits for a document that is not there yet");
            }
            watched = loaded.ok().transpose()?;
        }
    }
    let transport = serve_transport(&process.transport, &server, outbound, &stop);
    tokio::pin!(transport);
    let _watched = if let Some(watched) = watched {
        watched
    } else {
        tokio::select! {
            served = &mut transport => {
                served?;
                // The client left before the documents were loaded. The reason of a failure is
                // still logged.
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
                Ok(watched) => watched,
                Err(failure) => {
                    // Clients wait for an answer already.
                    server.fail(failure.for_clients());
                    tokio::time::sleep(FAILURE_GRACE).await;
                    stop.cancel();
                    let _ = transport.await;
                    return Err(failure);
                }
            },
            () = stop.cancelled() => {
                // Calls that wait for a document would keep the process from its end.
                server.fail("this server is about to end, and not every document is there yet");
                transport.await?;
                return Ok(ExitCode::SUCCESS);
            }
        }
    };
    report_missing_settings(&server, &process);
    transport.await?;
    Ok(ExitCode::SUCCESS)
}

/// Serves over the transport until the client leaves or `stop` is cancelled.
async fn serve_transport(
    transport: &Transport,
    server: &McpServer,
    outbound: OutboundOptions,
    stop: &CancellationToken,
) -> Result<(), Failure> {
    match transport {
        Transport::Stdio => {
            if std::io::stdin().is_terminal() {
                tracing::info!(
                    "waiting for an MCP client on standard input; usually a client starts this command itself, see README.md, and `openapi-mcp tools` lists the tools"
                );
            }
            stdio::serve(server.clone(), stop.clone())
                .await
                .map_err(serving_failed)
        }
        Transport::Http { bind, options } => {
            serve_http(*bind, options, server, outbound, stop).await
        }
    }
}

async fn serve_http(
    bind: SocketAddr,
    options: &HttpOptions,
    server: &McpServer,
    outbound: OutboundOptions,
    stop: &CancellationToken,
) -> Result<(), Failure> {
    let listener = http::bind(bind)
        .await
        .map_err(|error| Failure::Bind(bind.to_string(), error))?;
    let address = listener.local_addr().map_err(serving_failed)?;
    tracing::info!("listening on {}://{address}/mcp", options.scheme());
    if let Some(page) = options.page_address(address) {
        let tools = match options.page.kind {
            PageKind::Full => "the tools and ",
            PageKind::Public | PageKind::Off => "",
        };
        tracing::info!("open {page} in a browser to see {tools}how to connect a client");
    }
    // The issuer's keys may be behind TLS even if the API is not, and the issuer is not the API.
    let outbound = OutboundOptions {
        tls: true,
        ..outbound
    };
    let oauth = options.access.oauth.as_ref();
    if oauth.is_some_and(|oauth| !oauth.audiences.is_empty()) {
        tracing::info!(
            "--oauth-audience: a token for one endpoint is good at all of them; /mcp/readonly then limits the settings of a client, and not its token"
        );
    }
    if options.files.is_some() && options.shared_state.is_some() {
        tracing::info!(
            "`file_store`: a link leads to the replica that made it; with several replicas, route each client to one of them, or give all of them one folder and one state key"
        );
    }
    let keys = oauth
        .map(|_| outbound::http_client(&outbound))
        .transpose()?;
    let mut options = options.clone();
    options.page.snippets = page_entries(options.access.has_static_tokens());
    introduce_on_page(server, &mut options.page);
    http::serve(listener, server.clone(), &options, keys, stop.clone())
        .await
        .map_err(serving_failed)
}

/// Puts what the operator says of the server on its page. The page loads no picture from elsewhere.
fn introduce_on_page(server: &McpServer, page: &mut PageOptions) {
    let about = server.apis.about(&server.apis.whole);
    let icon = about.icon.as_ref().map(|icon| icon.src.clone());
    page.title.clone_from(&about.title);
    page.entry.clone_from(&about.name);
    page.icon = icon.filter(|src| src.starts_with("data:"));
}

/// Warns that every call of which the user must be asked will be refused, if the client cannot ask.
fn warn_about_confirmation(process: &ProcessConfig, configs: &[Arc<ApiConfig>]) {
    let warning = configs
        .iter()
        .find_map(|config| config.profile.confirmation_warning());
    if let Some(warning) = warning.filter(|_| process.asked_by.needs_client()) {
        tracing::warn!("{warning}");
    }
}

/// A core dump would hold every secret of the process.
fn disable_core_dumps() {
    #[cfg(unix)]
    if let Err(error) = rlimit::setrlimit(rlimit::Resource::CORE, 0, 0) {
        tracing::warn!("core dumps cannot be disabled: {error}");
    }
}

/// A server that waits for its APIs.
fn awaiting_server(process: &ProcessConfig, configs: &[Arc<ApiConfig>]) -> McpServer {
    let slots = configs.iter().map(|config| slot_of(config)).collect();
    let reload = configs.first().and_then(|config| config.reload);
    let server = McpServer::awaiting(slots, process.about.clone(), reload)
        .confirmed_by(process.asked_by.clone(), process.shared_state.as_ref());
    seal_handles_with(process.state_keys.as_ref());
    server
}

/// Reports that handles end with the process, if operations may need some and replicas could not go
/// on with them; and rules for files that have no folder.
fn report_missing_settings(server: &McpServer, process: &ProcessConfig) {
    let any = |is_it: fn(&Api) -> bool| server.apis.served().iter().any(|api| is_it(api));
    if process.state_keys.is_none()
        && matches!(process.transport, Transport::Http { .. })
        && any(Api::says_how_to_wait)
    {
        tracing::info!(
            "handles of operations that take long end with this process; --state-key-env or --state-key-file lets replicas go on with them"
        );
    }
    if process.delivery.destination.is_none() && any(Api::has_files_by_rule) {
        tracing::warn!(
            "a rule has `response: {{ file: true }}`, but there is no folder for files, so that these replies are left out: set {}",
            process.delivery.setting
        );
    }
}

fn serving_failed(error: std::io::Error) -> Failure {
    Failure::Io("serving failed".into(), error)
}

/// The first SIGTERM or SIGINT asks for a clean end, the second one ends at once. After SIGTERM,
/// which is how platforms end a process, requests are still answered for `drain_delay`.
fn watch_signals(
    stop: CancellationToken,
    server: McpServer,
    drain_delay: Duration,
) -> std::io::Result<()> {
    let mut signals = EndSignals::listen()?;
    tokio::spawn(async move {
        let is_sigterm = signals.next().await;
        server.begin_draining();
        if is_sigterm && !drain_delay.is_zero() {
            tracing::info!(
                "draining: requests are still answered for {} s, and /readyz asks for no more; a second signal ends at once",
                drain_delay.as_secs_f64()
            );
            tokio::spawn(async move {
                tokio::time::sleep(drain_delay).await;
                tracing::info!("stopping: calls in flight are answered first");
                stop.cancel();
            });
        } else {
            tracing::info!(
                "stopping: calls in flight are answered first; a second signal ends at once"
            );
            stop.cancel();
        }
        signals.next().await;
        observe::call::finish_at_once();
        #[expect(clippy::exit, reason = "the operator asked twice")]
        std::process::exit(INTERRUPTED.into());
    });
    Ok(())
}
