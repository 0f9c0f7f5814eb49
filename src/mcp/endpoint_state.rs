//! The state of an endpoint: nothing yet, a catalog, or a newer catalog after the document changed.

use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::model::{ErrorData, JsonObject, ServerConfig};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::catalog::{Catalog, ListPieces};
use super::protocol::version::server_meta;
use crate::annotate::names;
use crate::caller::client_grant::ClientGrant;

/// Time for which a list waits for the last of several APIs. Clients give up after half a minute or
/// more.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// The state of an endpoint, which the handlers of its clients share.
pub(crate) struct EndpointState {
    state: watch::Sender<CatalogState>,
    /// Number of times that the list of tools has changed.
    change_count: watch::Sender<u64>,
    /// Interval at which the document is checked for changes.
    pub(crate) reload: Option<Duration>,
    /// True if clients are notified of changes.
    pub(crate) tells_changes: bool,
    /// The introduction as long as there is no catalog.
    introduction: ServerConfig,
    /// The server in the `_meta` of results until then.
    server_meta: Arc<str>,
    /// True if a client has a list that lacks APIs that are not loaded yet.
    was_listed_early: AtomicBool,
    /// Cancelled when the server stops: waits for changes end.
    pub(crate) ending: CancellationToken,
}

/// Subscription of a client to changes of the list that it sees.
pub(crate) struct Changes {
    counts: watch::Receiver<u64>,
    state: Arc<EndpointState>,
    granted: ClientGrant,
    /// Digest of its list, if not every client has the same list.
    seen: Option<u64>,
    /// True if the client wants to know of them.
    pub(crate) is_wanted: bool,
}

impl Changes {
    /// Continues for the same client with another token, which may grant other tools.
    pub(crate) fn continue_with(&mut self, granted: ClientGrant) {
        let now = self.state.list_digest(&granted);
        if now != self.state.list_digest(&self.granted) {
            self.seen = now;
        }
        self.granted = granted;
    }

    /// Waits for the next change. Returns false if there will be no more, because the server ends.
    pub(crate) async fn changed(&mut self) -> bool {
        loop {
            let has_changed = tokio::select! {
                () = self.state.ending.cancelled() => false,
                changed = self.counts.changed(), if self.is_wanted => changed.is_ok(),
            };
            if !has_changed {
                return false;
            }
            let now = self.state.list_digest(&self.granted);
            if now.is_none() || now != self.seen {
                self.seen = now;
                return true;
            }
        }
    }
}

enum CatalogState {
    /// No catalog yet.
    Pending,
    Ready(Arc<Catalog>),
    /// Loading has failed, with a sentence for a model.
    Failed(String),
}

impl EndpointState {
    /// The state of one endpoint; `ending` is that of the whole server.
    pub(crate) fn new(
        reload: Option<Duration>,
        tells_changes: bool,
        introduction: ServerConfig,
        ending: CancellationToken,
    ) -> Self {
        Self {
            server_meta: server_meta(&introduction.server_info).into(),
            introduction,
            state: watch::Sender::new(CatalogState::Pending),
            change_count: watch::Sender::new(0),
            reload,
            tells_changes,
            was_listed_early: AtomicBool::new(false),
            ending,
        }
    }

    /// Serves this catalog from now on, and notifies subscribers if the list of tools changed.
    pub(crate) fn ready(&self, served: Catalog) {
        let is_other = match &*self.state.borrow() {
            CatalogState::Pending => false,
            CatalogState::Failed(_) => true,
            // No client must be notified of a change of a list that no client has read.
            CatalogState::Ready(before) => {
                let is_known = before.is_decided() || self.was_listed_early.load(Ordering::Relaxed);
                is_known && ListPieces::new(before, None).ne(ListPieces::new(&served, None))
            }
        };
        self.state
            .send_replace(CatalogState::Ready(Arc::new(served)));
        if is_other {
            self.change_count.send_modify(|count| *count += 1);
        }
    }

    pub(crate) fn fail(&self, why: &str) {
        self.state
            .send_replace(CatalogState::Failed(why.to_owned()));
    }

    /// The introduction of the server as it is now.
    pub(crate) fn introduction(&self) -> ServerConfig {
        let served = self.served();
        let config = served
            .as_ref()
            .map_or(&self.introduction, |served| &served.config);
        config.clone()
    }

    /// The member of `_meta` that names the server in results.
    pub(crate) fn server_meta(&self) -> Arc<str> {
        match &*self.state.borrow() {
            CatalogState::Ready(served) => Arc::clone(&served.server_meta),
            CatalogState::Pending | CatalogState::Failed(_) => Arc::clone(&self.server_meta),
        }
    }

    /// The current catalog, if there is one.
    pub(crate) fn served(&self) -> Option<Arc<Catalog>> {
        match &*self.state.borrow() {
            CatalogState::Ready(served) => Some(Arc::clone(served)),
            CatalogState::Pending | CatalogState::Failed(_) => None,
        }
    }

    /// The current catalog; waits for the first one.
    pub(crate) async fn catalog(&self) -> Result<Arc<Catalog>, ErrorData> {
        self.catalog_when(|_| true).await
    }

    /// The current catalog, once it is as it should be.
    async fn catalog_when(
        &self,
        is_right: impl Fn(&Catalog) -> bool,
    ) -> Result<Arc<Catalog>, ErrorData> {
        if let CatalogState::Ready(served) = &*self.state.borrow()
            && is_right(served)
        {
            return Ok(Arc::clone(served));
        }
        let mut states = self.state.subscribe();
        let is_over = |state: &CatalogState| match state {
            CatalogState::Pending => false,
            CatalogState::Ready(catalog) => is_right(catalog),
            CatalogState::Failed(_) => true,
        };
        match states.wait_for(is_over).await.as_deref() {
            Ok(CatalogState::Ready(served)) => Ok(Arc::clone(served)),
            Ok(CatalogState::Failed(why)) => Err(ErrorData::internal_error(why.clone(), None)),
            // The sender lives as long as this value.
            Ok(CatalogState::Pending) | Err(_) => {
                Err(ErrorData::internal_error("the server is ending", None))
            }
        }
    }

    /// Returns the catalog to list: waits for the first API, and then for a limited time for all of
    /// them.
    pub(crate) async fn catalog_to_list(&self) -> Result<Arc<Catalog>, ErrorData> {
        let catalog = self.catalog().await?;
        if catalog.is_decided() {
            return Ok(catalog);
        }
        let _ = tokio::time::timeout(LIST_TIMEOUT, self.settled()).await;
        let catalog = self.catalog().await?;
        if !catalog.is_decided() {
            self.was_listed_early.store(true, Ordering::Relaxed);
            // Something may have come before that was noted.
            return self.catalog().await;
        }
        Ok(catalog)
    }

    /// Returns the catalog in which a tool of that name is looked for: waits for an API that may
    /// have it, and for no other. A tool that does not exist for the caller is in none. `arguments`
    /// may name the operation of a meta-tool.
    pub(crate) async fn catalog_for(
        &self,
        name: &str,
        arguments: Option<&JsonObject>,
        granted: &ClientGrant,
    ) -> Result<Arc<Catalog>, ErrorData> {
        if names::kind_of(name).is_some() {
            let operation = arguments.and_then(|arguments| arguments.get("operation")?.as_str());
            let catalog = self.catalog().await?;
            if operation.is_some_and(|operation| catalog.find(operation, Some(granted)).is_some()) {
                return Ok(catalog);
            }
            // Meta-tools serve all APIs.
            return self.catalog_to_list().await;
        }
        let is_found = |catalog: &Catalog| {
            !catalog.awaits(name) || catalog.find(name, Some(granted)).is_some()
        };
        self.catalog_when(is_found).await
    }

    /// Waits until every API is loaded or has failed.
    pub(crate) async fn settled(&self) {
        let _ = self.catalog_when(Catalog::is_decided).await;
    }

    /// Subscribes to changes from now on, for a client to which this is granted.
    pub(crate) fn subscribe(self: &Arc<Self>, granted: &ClientGrant) -> Changes {
        Changes {
            counts: self.change_count.subscribe(),
            state: Arc::clone(self),
            granted: granted.clone(),
            seen: self.list_digest(granted),
            is_wanted: self.tells_changes,
        }
    }

    /// Returns a digest of the list of a client; `None` if every client has the same list.
    fn list_digest(&self, granted: &ClientGrant) -> Option<u64> {
        let catalog = self
            .served()
            .filter(|catalog| catalog.depends_on_caller())?;
        let mut digest = foldhash::fast::FixedState::default().build_hasher();
        ListPieces::new(&catalog, Some(granted)).for_each(|piece| digest.write(&piece));
        Some(digest.finish())
    }
}
