//! The configuration of the process, independent of the number of its APIs.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::Semaphore;

use super::annotate;
use super::clients::named_tokens::resolve_shares;
use super::observability::shared_state::resolve_shared_state;
use super::observability::{ObservabilityConfig, resolve_observability};
use super::problems::Problems;
use super::saved_files::resolve_delivery;
use super::settings::{ProcessSettings, ServerSettings, TransportKind};
use super::transport::{Transport, resolve_transport};
use super::values::ConfirmBy;
use crate::annotate::TokenShare;
use crate::annotate::options::Confirm;
use crate::api::about::About;
use crate::caller::memory_budget::MemoryBudget;
use crate::files::FileDelivery;
use crate::mcp::calls::approval::AskedBy;
use crate::results::filter::MAX_PARALLEL_FILTERS;
use crate::shared_state::keys::StateKeys;
use crate::shared_state::state::SharedState;

/// Configuration of the process.
#[derive(Clone)]
pub(crate) struct ProcessConfig {
    /// Transport by which clients reach the server.
    pub(crate) transport: Transport,
    /// Observability.
    pub(crate) observability: ObservabilityConfig,
    /// Introduction of several APIs as a whole.
    pub(crate) about: About,
    /// The calls that a person must confirm.
    pub(crate) confirm: Confirm,
    /// Who is asked about them.
    pub(crate) asked_by: AskedBy,
    /// True if all of several APIs must be served.
    pub(crate) require_all: bool,
    /// State that it shares with other replicas.
    pub(crate) shared_state: Option<Arc<SharedState>>,
    /// The keys that encrypt what is kept outside the process.
    pub(crate) state_keys: Option<StateKeys>,
    /// Budget of memory for its requests and replies.
    pub(crate) memory: MemoryBudget,
    /// Replies that become files.
    pub(crate) delivery: FileDelivery,
    /// Shares of the tools that tokens with a name may call.
    pub(crate) shares: Arc<[TokenShare]>,
    /// Places for filters of replies.
    pub(crate) filters: Arc<Semaphore>,
}

/// The settings of the process; what is wrong with them is pushed to `problems`. The certificate of
/// the shared state may come from `authorities` as well.
pub(crate) fn resolve_process(
    process: &ProcessSettings,
    settings: &ServerSettings,
    authorities: &[PathBuf],
    problems: &mut Problems,
) -> ProcessConfig {
    let (state_keys, shared_state) =
        resolve_shared_state(&process.shared_state, authorities, problems);
    let memory = settings
        .max_memory
        .map_or_else(MemoryBudget::default, MemoryBudget::new);
    let mut transport = resolve_transport(settings, problems);
    if let Transport::Http { options, .. } = &mut transport {
        options.shared_state.clone_from(&shared_state);
        options.memory = memory.clone();
    }
    let is_stdio = matches!(transport, Transport::Stdio);
    let confirm = annotate::confirm(&settings.confirm, problems);
    let asked_by = resolve_approval(settings.confirm_by, &transport, confirm.is_on(), problems);
    let delivery = resolve_files(settings, &mut transport, state_keys.as_ref(), problems);
    ProcessConfig {
        delivery,
        observability: resolve_observability(&settings.observability, is_stdio, problems),
        about: About::default(),
        shares: resolve_shares(&settings.http.access.auth_tokens, problems),
        transport,
        confirm,
        asked_by,
        require_all: settings.require_all.unwrap_or(false),
        shared_state,
        state_keys,
        memory,
        filters: Arc::new(Semaphore::new(MAX_PARALLEL_FILTERS)),
    }
}

/// Resolves what becomes of large replies, and gives the listener the store of files.
fn resolve_files(
    settings: &ServerSettings,
    transport: &mut Transport,
    keys: Option<&StateKeys>,
    problems: &mut Problems,
) -> FileDelivery {
    let listener = match &*transport {
        Transport::Http { bind, options } => Some((*bind, &options.access)),
        Transport::Stdio => None,
    };
    let delivery = resolve_delivery(
        &settings.saved_files,
        &settings.file_store,
        settings.transport == Some(TransportKind::Http),
        listener,
        keys,
        problems,
    );
    if let Transport::Http { options, .. } = transport {
        options.files = delivery.store().cloned();
    }
    delivery
}

/// Resolves who is asked, if some calls need agreement; faults of the settings are pushed to
/// `problems`.
fn resolve_approval(
    confirm_by: Option<ConfirmBy>,
    transport: &Transport,
    some_calls_ask: bool,
    problems: &mut Problems,
) -> AskedBy {
    if confirm_by.is_some() && !some_calls_ask {
        problems.push("--confirm-by needs --confirm, which says what is asked about");
    }
    let links = matches!(confirm_by, Some(ConfirmBy::Link | ConfirmBy::ClientOrLink));
    let mut asked_by = AskedBy {
        client: some_calls_ask && confirm_by != Some(ConfirmBy::Link),
        link: some_calls_ask && links,
        approver_scope: None,
    };
    let Transport::Http { bind, options } = transport else {
        return asked_by;
    };
    let access = &options.access;
    asked_by.approver_scope.clone_from(&access.approver_scope);
    if access.has_approvers() && !links {
        problems.push("`approve` in `auth_tokens` and `approver_scope` need --confirm-by link");
    }
    if !links {
        return asked_by;
    }
    if !access.has_approvers() {
        problems.push("--confirm-by link needs somebody who may agree: in the configuration file, a token with `approve: true` in `auth_tokens`, or `approver_scope` beside `oauth_issuer`");
    }
    let is_local = bind.ip().is_loopback();
    if !is_local && access.public_url.is_none() {
        problems.push("--confirm-by link needs --public-url URL, with which links begin");
    }
    if !is_local && access.is_open() {
        problems.push("--confirm-by link needs clients that authenticate, because others can reach this server: without a credential, no client can be distinguished from another");
    }
    asked_by
}
