//! Start of metrics, traces and the audit log, before the first call can arrive.

use tokio::net::TcpListener;

use crate::config::observability::ObservabilityConfig;
use crate::config::observability::traces::TracesConfig;
use crate::config::{ProcessConfig, Transport};
use crate::error::Failure;
use crate::mcp::McpServer;
use crate::observe::audit::AuditLog;
use crate::observe::audit::writer::AuditTarget;
use crate::observe::metrics::Metrics;
use crate::observe::traces::Tracer;
use crate::observe::traces::options::TraceOptions;
use crate::observe::{self, Observers};
use crate::outbound::OutboundOptions;
use crate::transport::http::{self, Allowed};

/// Begins to observe, and serves the page of metrics until the process ends. `outbound` says how
/// other servers than the API are reached.
///
/// # Errors
/// The shared state refuses us, the audit log cannot be opened, or, over HTTP, the address is
/// taken. Over stdio each client starts a process of its own, and a taken address is a warning.
pub(crate) async fn start(
    process: &ProcessConfig,
    outbound: &OutboundOptions,
    server: &McpServer,
) -> Result<(), Failure> {
    if let Some(shared) = &process.shared_state {
        shared
            .start()
            .await
            .map_err(|problem| Failure::setting(format!("--shared-state: {problem}")))?;
    }
    if process.confirm.is_on()
        && process.shared_state.is_none()
        && matches!(process.transport, Transport::Http { .. })
    {
        tracing::info!(
            "--confirm: only the replica that asked a question takes its answer; several replicas need sticky routing, or --shared-state"
        );
    }
    let ObservabilityConfig {
        metrics,
        audit,
        traces,
    } = &process.observability;
    let log = audit
        .as_ref()
        .map(|options| AuditLog::start(options, observe::count_lost_line))
        .transpose()
        .map_err(|problem| Failure::setting(format!("--audit-log: {problem}")))?;
    let mut listener = None;
    if let Some(address) = *metrics {
        match (http::bind(address).await, &process.transport) {
            (Ok(bound), _) => listener = Some(bound),
            (Err(error), Transport::Http { .. }) => {
                return Err(Failure::Bind(address.to_string(), error));
            }
            (Err(error), Transport::Stdio) => {
                tracing::warn!(
                    "--metrics-bind: cannot listen on {address} ({error}); there are no metrics"
                );
            }
        }
    }
    observe::start(Observers {
        metrics: listener.as_ref().map(|_| Metrics::new()),
        audit: log,
        tracer: start_tracer(traces, outbound),
    });
    #[cfg(unix)]
    if audit
        .as_ref()
        .is_some_and(|audit| matches!(audit.target, AuditTarget::File(_)))
    {
        reopen_on_hangup()
            .map_err(|error| Failure::Io("signals cannot be watched".into(), error))?;
    }
    if let Some(listener) = listener {
        serve_metrics(listener, process, server);
    }
    Ok(())
}

/// Starts the tracer of calls, or only the propagation of their traces. No fault ends the start,
/// because clients pass their own variables to servers.
fn start_tracer(traces: &TracesConfig, outbound: &OutboundOptions) -> Option<Tracer> {
    let start = |options: &TraceOptions| {
        let tracer = Tracer::start(options.clone(), outbound, observe::count_dropped_spans)?;
        tracing::info!(
            "traces go to {}",
            options.endpoint.origin().ascii_serialization()
        );
        Ok(tracer)
    };
    let started = match &traces.export {
        Ok(options) => options.as_ref().map(start).transpose(),
        Err(why) => Err(why.clone()),
    };
    let tracer = started.unwrap_or_else(|why| {
        tracing::warn!("there are no traces: {why}");
        None
    });
    tracer.or_else(|| traces.propagates.then(Tracer::passing_on))
}

fn serve_metrics(listener: TcpListener, process: &ProcessConfig, server: &McpServer) {
    if let Ok(address) = listener.local_addr() {
        tracing::info!("metrics at http://{address}/metrics");
        if !address.ip().is_loopback() {
            tracing::warn!(
                "--metrics-bind: others can reach {address}, and metrics need no token; let the network admit only who scrapes them"
            );
        }
    }
    let allowed = match &process.transport {
        Transport::Http { options, .. } => options.allowed.clone(),
        Transport::Stdio => Allowed::default(),
    };
    tokio::spawn(http::serve_metrics(listener, server.clone(), allowed));
}

/// Opens the file anew at each SIGHUP, as tools that rotate logs expect. Without a file the signal
/// keeps its meaning.
#[cfg(unix)]
fn reopen_on_hangup() -> std::io::Result<()> {
    let mut hangup = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())?;
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            if let Some(audit) = observe::audit() {
                audit.reopen();
            }
        }
    });
    Ok(())
}
