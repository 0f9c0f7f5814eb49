//! What one process needs once, however many APIs it serves.

use std::sync::Arc;

use super::annotate;
use super::operations::{OperationsConfig, resolve_operations};
use super::settings::ServerSettings;
use super::transport::{Transport, resolve_transport};
use crate::annotate::confirm::Confirm;
use crate::proxy::MemoryBudget;
use crate::shared_state::state::SharedState;

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
    /// What it shares with other replicas.
    pub shared_state: Option<Arc<SharedState>>,
    /// What its requests and replies may take of the memory.
    pub memory: MemoryBudget,
}

/// The settings of the process; what is wrong with them is pushed to `problems`.
pub(crate) fn resolve_process(
    settings: &ServerSettings,
    shared_state: Option<&Arc<SharedState>>,
    problems: &mut Vec<String>,
) -> ProcessConfig {
    let memory = memory_budget(settings, problems);
    let mut transport = resolve_transport(settings, problems);
    if let Transport::Http { options, .. } = &mut transport {
        options.shared_state = shared_state.cloned();
        options.memory = memory.clone();
    }
    let is_stdio = matches!(transport, Transport::Stdio);
    ProcessConfig {
        operations: resolve_operations(&settings.operations, is_stdio, problems),
        transport,
        confirm: annotate::confirm(&settings.confirm, problems),
        require_all: settings.require_all.unwrap_or(false),
        shared_state: shared_state.cloned(),
        memory,
    }
}

/// The largest message must fit into what a client may take of it.
fn memory_budget(settings: &ServerSettings, problems: &mut Vec<String>) -> MemoryBudget {
    const MIN_BYTES: usize = 32 << 20;
    match settings.max_memory {
        Some(bytes) if bytes < MIN_BYTES => {
            problems.push(format!("--max-memory must be at least {MIN_BYTES} bytes"));
            MemoryBudget::default()
        }
        Some(bytes) => MemoryBudget::new(bytes),
        None => MemoryBudget::default(),
    }
}
