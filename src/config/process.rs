//! What one process needs once, however many APIs it serves.

use super::annotate;
use super::operations::{OperationsConfig, resolve_operations};
use super::settings::ServerSettings;
use super::transport::{Transport, resolve_transport};
use crate::annotate::confirm::Confirm;

/// What one process needs once.
#[derive(Debug, Clone)]
pub(crate) struct ProcessConfig {
    /// How clients reach the server.
    pub transport: Transport,
    /// What it shows of itself.
    pub operations: OperationsConfig,
    /// Which calls a person is asked about first.
    pub confirm: Confirm,
    /// Whether every one of several APIs must be served.
    pub require_all: bool,
}

/// The settings of the process; what is wrong with them is pushed to `problems`.
pub(crate) fn resolve_process(settings: &ServerSettings, problems: &mut Vec<String>) -> ProcessConfig {
    let transport = resolve_transport(settings, problems);
    let is_stdio = matches!(transport, Transport::Stdio);
    ProcessConfig {
        operations: resolve_operations(&settings.operations, is_stdio, problems),
        transport,
        confirm: annotate::confirm(&settings.confirm, problems),
        require_all: settings.require_all.unwrap_or(false),
    }
}
