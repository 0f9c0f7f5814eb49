//! The operations that a caller may list and call. [`Rights::decide`] decides once for each set of
//! rights, and lists, searches, descriptions, suggestions and calls all read that decision.

use std::num::NonZeroUsize;
use std::sync::Arc;

use lru::LruCache;
use parking_lot::Mutex;

use crate::annotate::TokenShare;
use crate::api::{Api, BoundTool, ToolIndex};
use crate::caller::client_grant::{ClientGrant, Permission, ToolScopes};

/// Number of sets of rights whose decisions are kept for each API.
const MAX_KEPT: NonZeroUsize = NonZeroUsize::new(64).unwrap();

/// Demands of an API on its callers.
pub(crate) struct AccessTable {
    api: Arc<Api>,
    /// Scopes that its calls need besides those of the whole server.
    scopes: Arc<ToolScopes>,
    /// Shares of tokens with a name, tool by tool; `None` for a share that has all.
    shares: Vec<Option<Box<[bool]>>>,
    /// Decisions by sets of rights; `None` for a set that may do everything.
    kept: Mutex<LruCache<RightsKey, Option<Arc<Rights>>>>,
}

/// Set of rights of a caller. All callers with the same set have the same list.
#[derive(PartialEq, Eq, Hash)]
struct RightsKey {
    /// By the share of a token with a name, if it lacks tools.
    share: Option<usize>,
    /// By the scopes of the API: for what reads, and for the rest.
    by_effect: [Permission; 2],
    /// By each rule of `access`.
    by_rule: Box<[Permission]>,
}

/// Permission of a caller for each operation of an API.
pub(crate) struct Rights {
    /// The permission for each operation, by its place.
    pub(crate) of_tools: Arc<[Permission]>,
}

/// Rights of a caller at an endpoint, for each API.
#[derive(Clone, Default)]
pub(crate) struct CallerRights(Vec<Option<Arc<Rights>>>);

impl AccessTable {
    /// Creates the table of an API; `None` if it demands nothing.
    pub(crate) fn new(
        api: &Arc<Api>,
        scopes: &Arc<ToolScopes>,
        shares: &[TokenShare],
    ) -> Option<Self> {
        let shares: Vec<Option<Box<[bool]>>> =
            shares.iter().map(|share| tools_of(share, api)).collect();
        let demands = !scopes.is_empty()
            || api.access_demands().next().is_some()
            || shares.iter().any(Option::is_some);
        demands.then(|| Self {
            api: Arc::clone(api),
            scopes: Arc::clone(scopes),
            shares,
            kept: Mutex::new(LruCache::new(MAX_KEPT)),
        })
    }

    /// Returns the rights of a caller; `None` if it may do everything.
    pub(crate) fn rights(&self, granted: &ClientGrant) -> Option<Arc<Rights>> {
        let by_effect = |is_read_only| match self.scopes.lacking(&granted.scopes, is_read_only) {
            Some(_) => Permission::LacksScope,
            None => Permission::Granted,
        };
        let share = granted.token.as_ref().map(|token| token.place);
        let key = RightsKey {
            share: share.filter(|place| self.shares.get(*place).is_some_and(Option::is_some)),
            by_effect: [true, false].map(by_effect),
            by_rule: self
                .api
                .access_demands()
                .map(|demand| demand.judge(granted))
                .collect(),
        };
        let mut kept = self.kept.lock();
        if let Some(known) = kept.get(&key) {
            return known.clone();
        }
        let rights = Rights::decide(self, &key);
        kept.put(key, rights.clone());
        rights
    }

    /// Returns the scopes that a caller lacks for an operation: the first of each demand that it
    /// does not meet.
    pub(crate) fn lacking_scopes(&self, granted: &ClientGrant, tool: ToolIndex) -> Vec<&str> {
        let is_read_only = self.api.tool(tool).hints.is_read_only();
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
    /// Decides about each operation; returns `None` if the caller may do everything.
    fn decide(table: &AccessTable, key: &RightsKey) -> Option<Arc<Self>> {
        let api = &table.api;
        let share = key
            .share
            .and_then(|place| table.shares.get(place)?.as_ref());
        let may = |index: ToolIndex| {
            if share.is_some_and(|tools| tools.get(index.place()) != Some(&true)) {
                return Permission::Denied;
            }
            let [reads, writes] = key.by_effect;
            let of_effect = if api.tool(index).hints.is_read_only() {
                reads
            } else {
                writes
            };
            let of_rules = api.demands_of(index).map(|(place, _)| {
                key.by_rule
                    .get(place)
                    .copied()
                    .unwrap_or(Permission::Denied)
            });
            of_rules.fold(of_effect, Permission::max)
        };
        let of_tools: Arc<[Permission]> = api.indexes().map(may).collect();
        let is_all = of_tools
            .iter()
            .all(|permission| *permission == Permission::Granted);
        (!is_all).then(|| Arc::new(Self { of_tools }))
    }

    /// Returns the permission for an operation.
    pub(crate) fn may(&self, index: ToolIndex) -> Permission {
        self.of_tools
            .get(index.place())
            .copied()
            .unwrap_or(Permission::Denied)
    }
}

/// Returns for each tool whether it belongs to a share; `None` if all do.
fn tools_of(share: &TokenShare, api: &Api) -> Option<Box<[bool]>> {
    let has = |offered: &BoundTool| {
        share.has(
            &offered.name,
            api.prefix(),
            &offered.operation,
            &offered.hints,
        )
    };
    let tools: Box<[bool]> = api.tools().iter().map(has).collect();
    (!tools.iter().all(|has| *has)).then_some(tools)
}

/// Rights of the operator, who may do everything.
pub(crate) static ALL_RIGHTS: CallerRights = CallerRights(Vec::new());

impl CallerRights {
    /// Returns the rights of a caller at an endpoint with these APIs.
    pub(crate) fn new<'t>(
        tables: impl Iterator<Item = Option<&'t AccessTable>>,
        granted: &ClientGrant,
    ) -> Self {
        Self(tables.map(|table| table?.rights(granted)).collect())
    }

    /// Returns the same as [`Self::of_api`], to be kept.
    pub(crate) fn shared(&self, place: usize) -> Option<Arc<Rights>> {
        self.0.get(place)?.clone()
    }

    /// Returns the rights at the API at that index; `None` if the caller may do everything there.
    pub(crate) fn of_api(&self, place: usize) -> Option<&Rights> {
        self.0.get(place)?.as_deref()
    }
}
