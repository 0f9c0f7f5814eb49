//! Settings of what a server shows of itself in production: metrics, traces and the audit log.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use crate::config::auth::references::resolve_secret;
use crate::config::observability::traces::{TracesConfig, resolve_traces};
use crate::config::problems::Problems;
use crate::config::values::read_address;
use crate::observe::audit::writer::{AuditOptions, AuditTarget};

pub(crate) mod shared_state;
pub(crate) mod traces;

/// The fewest bytes of a key; less can be guessed.
const MIN_KEY_BYTES: usize = 16;

/// Settings of metrics, of traces and of the audit log.
#[derive(Clone, Default, Args, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub(crate) struct ObservabilitySettings {
    /// Serve metrics for Prometheus at /metrics of this address; port 0 takes a free port
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Operations")]
    pub(crate) metrics_bind: Option<String>,

    /// Append a line of JSON for every call to this file; - is standard output, with --transport
    /// http
    #[arg(long, value_name = "FILE|-", help_heading = "Operations")]
    pub(crate) audit_log: Option<PathBuf>,

    /// An environment variable with the key of the hashes in the audit log [default: a random key]
    #[arg(
        long,
        hide = true,
        value_name = "VARIABLE",
        help_heading = "Operations"
    )]
    pub(crate) audit_key_env: Option<String>,

    /// A file with the key of the hashes in the audit log
    #[arg(long, hide = true, value_name = "FILE", help_heading = "Operations")]
    pub(crate) audit_key_file: Option<PathBuf>,

    /// Write a line to the audit log before each call is made, and refuse the call if that fails
    #[arg(long, hide = true, help_heading = "Operations")]
    pub(crate) audit_log_required: Option<bool>,

    /// Send the trace of a call to the API, in the headers traceparent and tracestate; the
    /// variables of OpenTelemetry configure the export of this server's spans
    #[arg(long, hide = true, help_heading = "Operations")]
    pub(crate) propagate_trace: Option<bool>,
}

/// Observability of a server.
#[derive(Clone)]
pub(crate) struct ObservabilityConfig {
    /// Address of metrics.
    pub(crate) metrics: Option<SocketAddr>,
    pub(crate) audit: Option<AuditOptions>,
    pub(crate) traces: TracesConfig,
}

/// The settings of metrics, traces and the audit log; what is wrong with them is pushed to
/// `problems`.
pub(crate) fn resolve_observability(
    settings: &ObservabilitySettings,
    is_stdio: bool,
    problems: &mut Problems,
) -> ObservabilityConfig {
    let metrics = settings.metrics_bind.as_deref();
    let metrics =
        metrics.and_then(|text| read_address("--metrics-bind", text, "127.0.0.1:9464", problems));
    ObservabilityConfig {
        metrics,
        audit: resolve_audit(settings, is_stdio, problems),
        traces: resolve_traces(settings.propagate_trace.unwrap_or(false)),
    }
}

fn resolve_audit(
    settings: &ObservabilitySettings,
    is_stdio: bool,
    problems: &mut Problems,
) -> Option<AuditOptions> {
    let parse = |text: &str| {
        let key = text.trim();
        let is_long = key.len() >= MIN_KEY_BYTES;
        is_long
            .then(|| SecretString::from(key))
            .ok_or("holds a key of less than 16 characters, which can be guessed; `openssl rand -hex 32` makes a good one")
    };
    let key = resolve_secret(
        ["`audit_key_env`", "`audit_key_file`"],
        settings.audit_key_env.as_deref(),
        settings.audit_key_file.as_deref(),
        parse,
        problems,
    );
    let path = settings.audit_log.as_ref()?;
    let target = if path.as_os_str() == "-" {
        if is_stdio {
            problems.push("--audit-log - needs --transport http: over stdio, standard output belongs to the protocol; name a file");
        }
        AuditTarget::Stdout
    } else {
        AuditTarget::File(path.clone())
    };
    Some(AuditOptions {
        target,
        key,
        required: settings.audit_log_required == Some(true),
    })
}
