//! Which operations a caller may list and call. It is decided once for each set of rights, in [`Rights::decide`], and lists, searches,
//! descriptions, suggestions and calls all read that one decision.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;

use crate::api::{Api, ToolIndex};
use crate::proxy::caller::client_grant::{ClientGrant, Permission};
use crate::proxy::caller::scopes::ToolScopes;

/// The sets of rights of which is kept what they decide, for each API.
const MAX_KEPT: NonZeroUsize = NonZeroUsize::new(64).unwrap();

/// What an API asks of those who call its operations.
pub(crate) struct AccessTable {
    api: Arc<Api>,
    /// Scopes that its calls need besides those of the whole server.
    scopes: Arc<ToolScopes>,
    /// What sets of rights decide; nothing for one that may do everything.
    kept: Mutex<LruCache<RightsKey, Option<Arc<Rights>>>>,
}

/// What of a caller decides which operations of an API it may call: all callers with the same have the same list.
#[derive(PartialEq, Eq, Hash)]
struct RightsKey {
    /// By the scopes of the API: for what reads, and for the rest.
    by_effect: [Permission; 2],
    /// By each rule of `access`.
    by_rule: Box<[Permission]>,
}

/// What a caller may do with each operation of an API.
pub(crate) struct Rights {
    of_tools: Box<[Permission]>,
}

/// What a caller may do with the operations of an endpoint, API by API.
#[derive(Clone, Default)]
pub(crate) struct CallerRights(Vec<Option<Arc<Rights>>>);

impl AccessTable {
    /// What the API asks for; `None` if that is nothing.
    pub(crate) fn new(api: &Arc<Api>, scopes: &Arc<ToolScopes>) -> Option<Self> {
        (!scopes.is_empty() || !api.access_demands().is_empty()).then(|| Self {
            api: Arc::clone(api),
            scopes: Arc::clone(scopes),
            kept: Mutex::new(LruCache::new(MAX_KEPT)),
        })
    }

    /// The rights of a caller; `None` if it may do everything.
    pub(crate) fn rights(&self, granted: &ClientGrant) -> Option<Arc<Rights>> {
        let by_effect = |is_read_only| match self.scopes.lacking(&granted.scopes, is_read_only) {
            Some(_) => Permission::LacksScope,
            None => Permission::Granted,
        };
        let key = RightsKey {
            by_effect: [true, false].map(by_effect),
            by_rule: self.api.access_demands().iter().map(|demand| demand.judge(granted)).collect(),
        };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.get(&key) {
            return known.clone();
        }
        let rights = Rights::decide(&self.api, &key);
        kept.put(key, rights.clone());
        rights
    }

    /// The scopes that a caller lacks for an operation: of each demand that it does not meet, the first.
    pub(crate) fn lacking_scopes(&self, granted: &ClientGrant, tool: ToolIndex) -> Vec<&str> {
        let is_read_only = self.api.offered(tool).enforcement.is_read_only();
        let of_api = self.scopes.lacking(&granted.scopes, is_read_only);
        let unmet = self
            .api
            .demands_of(tool)
            .filter(|(_, demand)| demand.judge(granted) == Permission::LacksScope);
        let of_rules = unmet.filter_map(|(_, demand)| demand.scopes.first().map(String::as_str));
        of_api.into_iter().chain(of_rules).collect()
    }
}

impl Rights {
    /// What a caller may do with each operation; `None` if everything.
    fn decide(api: &Api, key: &RightsKey) -> Option<Arc<Self>> {
        let may = |index: ToolIndex| {
            let [reads, writes] = key.by_effect;
            let of_effect = if api.offered(index).enforcement.is_read_only() {
                reads
            } else {
                writes
            };
            let of_rules = api
                .demands_of(index)
                .map(|(place, _)| key.by_rule.get(place).copied().unwrap_or(Permission::Denied));
            of_rules.fold(of_effect, Permission::max)
        };
        let of_tools: Box<[Permission]> = api.indexes().map(may).collect();
        let is_all = of_tools.iter().all(|permission| *permission == Permission::Granted);
        (!is_all).then(|| Arc::new(Self { of_tools }))
    }

    /// What the caller may do with the operation.
    pub(crate) fn may(&self, index: ToolIndex) -> Permission {
        self.of_tools.get(index.place()).copied().unwrap_or(Permission::Denied)
    }
}

/// The rights of somebody who may do everything, as the operator.
pub(crate) static ALL_RIGHTS: CallerRights = CallerRights(Vec::new());

impl CallerRights {
    /// Those of a caller at an endpoint with these APIs.
    pub(crate) fn new<'t>(tables: impl Iterator<Item = Option<&'t AccessTable>>, granted: &ClientGrant) -> Self {
        Self(tables.map(|table| table?.rights(granted)).collect())
    }

    /// As [`Self::of_api`], to be kept.
    pub(crate) fn shared(&self, place: usize) -> Option<Arc<Rights>> {
        self.0.get(place)?.clone()
    }

    /// Those for the API at that place; `None` if it may do everything there.
    pub(crate) fn of_api(&self, place: usize) -> Option<&Rights> {
        self.0.get(place)?.as_deref()
    }
}
