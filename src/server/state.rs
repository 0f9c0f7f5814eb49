//! What a server currently serves: nothing yet, a catalog, or a newer catalog after the document changed.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::ErrorData;
use rmcp::service::{Peer, SubscriptionContext};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::catalog::Catalog;

/// How often an idle session is checked for a closed connection.
const SESSION_CHECK: Duration = Duration::from_mins(1);

/// The state that all handlers of a server share.
pub(crate) struct ServerState {
    state: watch::Sender<ApiState>,
    /// How many times the list of tools has changed.
    changes: watch::Sender<u64>,
    /// How often the document is checked for changes.
    pub(crate) reload: Option<Duration>,
    /// Cancelled when the server stops: waits for changes end.
    pub(crate) ending: CancellationToken,
    /// Requests are still taken, but no more should be sent.
    pub(crate) draining: CancellationToken,
    /// Whether clients cannot be let in yet, because the keys of their issuer are not there.
    pub(crate) awaits_keys: OnceLock<Box<dyn Fn() -> bool + Send + Sync>>,
    /// Whether the last change of the document could not be served.
    pub(crate) has_failed_reload: AtomicBool,
}

/// Receives a count each time the list of tools changes.
pub(crate) type Changes = watch::Receiver<u64>;

enum ApiState {
    /// Nothing yet.
    Pending,
    Ready(Arc<Catalog>),
    /// Loading has failed, with a sentence for a model.
    Failed(String),
}

impl ServerState {
    pub(crate) fn pending(reload: Option<Duration>) -> Self {
        Self {
            state: watch::Sender::new(ApiState::Pending),
            changes: watch::Sender::new(0),
            reload,
            ending: CancellationToken::new(),
            draining: CancellationToken::new(),
            awaits_keys: OnceLock::new(),
            has_failed_reload: AtomicBool::new(false),
        }
    }

    /// Serves this catalog from now on, and notifies subscribers if the list of tools changed.
    pub(crate) fn ready(&self, served: Catalog) {
        let before = self.served();
        let is_other = before.is_some_and(|before| !before.texts().eq(served.texts()));
        self.state.send_replace(ApiState::Ready(Arc::new(served)));
        if is_other {
            self.changes.send_modify(|count| *count += 1);
        }
    }

    pub(crate) fn fail(&self, why: &str) {
        self.state.send_replace(ApiState::Failed(why.to_owned()));
    }

    /// The current catalog, if there is one.
    pub(crate) fn served(&self) -> Option<Arc<Catalog>> {
        match &*self.state.borrow() {
            ApiState::Ready(served) => Some(Arc::clone(served)),
            ApiState::Pending | ApiState::Failed(_) => None,
        }
    }

    /// The current catalog; waits for the first one.
    pub(crate) async fn catalog(&self) -> Result<Arc<Catalog>, ErrorData> {
        if let ApiState::Ready(served) = &*self.state.borrow() {
            return Ok(Arc::clone(served));
        }
        let mut states = self.state.subscribe();
        let state = states.wait_for(|state| !matches!(state, ApiState::Pending)).await;
        match state.as_deref() {
            Ok(ApiState::Ready(served)) => Ok(Arc::clone(served)),
            Ok(ApiState::Failed(why)) => Err(ErrorData::internal_error(why.clone(), None)),
            // The sender lives as long as this value.
            Ok(ApiState::Pending) | Err(_) => Err(ErrorData::internal_error("the server is ending", None)),
        }
    }

    /// Waits until loading has succeeded or failed.
    pub(crate) async fn settled(&self) {
        let mut states = self.state.subscribe();
        // The sender lives as long as this value.
        let _ = states.wait_for(|state| !matches!(state, ApiState::Pending)).await;
    }

    /// Subscribes to changes from now on.
    pub(crate) fn changes(&self) -> Changes {
        self.changes.subscribe()
    }

    /// Notifies the client of a session of changes, until the session or the server ends.
    pub(crate) async fn tell(self: Arc<Self>, mut changes: Changes, peer: Peer<RoleServer>) {
        while !peer.is_transport_closed() {
            let told = tokio::select! {
                () = self.ending.cancelled() => return,
                () = tokio::time::sleep(SESSION_CHECK) => continue,
                changed = changes.changed() => changed.is_ok() && peer.notify_tool_list_changed().await.is_ok(),
            };
            if !told {
                return;
            }
        }
    }

    /// Notifies a client that subscribed by a request (2026-07-28) of changes, until the request or the server ends.
    pub(crate) async fn listened(&self, subscription: &SubscriptionContext) {
        let mut changes = self.changes();
        let wants_tools = subscription.accepted().tools_list_changed == Some(true);
        loop {
            tokio::select! {
                () = subscription.cancelled() => return,
                () = self.ending.cancelled() => return,
                changed = changes.changed(), if wants_tools => {
                    if changed.is_err() || subscription.sink().notify_tool_list_changed().await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}
