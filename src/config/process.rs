//! What one process needs once, however many APIs it serves.

use super::operations::{OperationsConfig, resolve_operations};
use super::settings::ServerSettings;
use super::transport::{Transport, resolve_transport};

/// What one process needs once.
#[derive(Debug, Clone)]
pub(crate) struct ProcessConfig {
    /// How clients reach the server.
    pub transport: Transport,
    /// What it shows of itself.
    pub operations: OperationsConfig,
}

/// The settings of the process; what is wrong with them is pushed to `problems`.
pub(crate) fn resolve_process(settings: &ServerSettings, problems: &mut Vec<String>) -> ProcessConfig {
    let transport = resolve_transport(settings, problems);
    let is_stdio = matches!(transport, Transport::Stdio);
    ProcessConfig {
        operations: resolve_operations(&settings.operations, is_stdio, problems),
        transport,
    }
}
