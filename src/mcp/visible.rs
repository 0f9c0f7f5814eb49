//! The operations of an endpoint that a caller may list and call, and their names.
//! [`CatalogApi::decide`] decides once for each set of rights, and lists, searches, descriptions,
//! suggestions and calls all read that decision.

use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::ops::Deref;
use std::sync::Arc;

use lru::LruCache;
use parking_lot::Mutex;

use super::api_slot::ApiSlot;
use crate::annotate::TokenShare;
use crate::annotate::names::nearest_name;
use crate::api::{Api, ApiName, BoundTool, ToolIndex};
use crate::caller::client_grant::{ClientGrant, Permission};

/// Part of the APIs that an endpoint shows.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct View {
    /// The path of the endpoint.
    pub(crate) path: Arc<str>,
    /// True if it serves all of several APIs, each by its name.
    pub(crate) names_apis: bool,
    /// True if it serves only tools that count as read-only.
    pub(crate) reads_only: bool,
}

/// An API of the catalogs of a server.
pub(crate) struct CatalogApi {
    pub(crate) api: Arc<Api>,
    pub(crate) slot: Arc<ApiSlot>,
    /// Demands on its callers; `None` if there are none.
    pub(crate) access: Option<AccessTable>,
}

/// An API as a caller sees it.
#[derive(Clone)]
pub(crate) struct VisibleApi {
    pub(crate) api: Arc<CatalogApi>,
    /// True if the endpoint serves only tools that count as read-only.
    pub(crate) reads_only: bool,
    /// Permission of the caller for each operation, by its place; `None` if it may do everything.
    pub(crate) rights: Option<Arc<[Permission]>>,
}

/// The APIs that a caller may list, in the order of the list.
#[derive(Clone)]
pub(crate) struct VisibleApis {
    pub(crate) apis: Vec<VisibleApi>,
    /// True if the endpoint serves APIs that have names, all of them.
    pub(crate) names_apis: bool,
}

/// An operation that a caller may list, with its API.
pub(crate) type SeenOperation<'s> = (&'s VisibleApi, ToolIndex, &'s BoundTool);

/// A tool that a caller may list.
pub(crate) struct ListedTool<'c> {
    /// The name by which clients call it.
    pub(crate) name: Cow<'c, str>,
    /// The tool as JSON.
    pub(crate) text: Cow<'c, str>,
}

/// Suggestion for a name that no operation has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Suggestion<'c> {
    /// The nearest name.
    Nearest(&'c str),
    /// The settings of this server, or of the endpoint, leave the operation out.
    LeftOut,
}

impl Deref for CatalogApi {
    type Target = Api;

    fn deref(&self) -> &Api {
        &self.api
    }
}

impl CatalogApi {
    /// Creates the entry of an API.
    pub(crate) fn new(api: Arc<Api>, slot: Arc<ApiSlot>) -> Self {
        Self {
            access: AccessTable::new(&api, &slot),
            api,
            slot,
        }
    }

    /// Returns true if the API may have an operation of that name: names begin with its prefix, and
    /// looking at that is less work than looking for the name.
    pub(crate) fn may_have(&self, name: &str) -> bool {
        name.starts_with(self.prefix())
    }
}

impl VisibleApi {
    /// Returns what a caller sees of an API; without `granted`, the operator, who may do everything.
    pub(crate) fn new(api: &Arc<CatalogApi>, view: &View, granted: Option<&ClientGrant>) -> Self {
        Self {
            rights: granted.and_then(|granted| api.rights(granted)),
            api: Arc::clone(api),
            reads_only: view.reads_only,
        }
    }

    /// Returns the permission of the caller for an operation, independent of the endpoint.
    pub(crate) fn may(&self, index: ToolIndex) -> Permission {
        let Some(rights) = &self.rights else {
            return Permission::Granted;
        };
        let permission = rights.get(index.place()).copied();
        permission.unwrap_or(Permission::Denied)
    }

    fn is_at_endpoint(&self, index: ToolIndex) -> bool {
        !self.reads_only || self.api.tool(index).hints.is_read_only()
    }

    /// Returns true if the operation exists for the caller: it may list it, or could with other
    /// scopes.
    pub(crate) fn has(&self, index: ToolIndex) -> bool {
        self.is_at_endpoint(index) && self.may(index) != Permission::Denied
    }

    /// Returns true if the caller may list the operation.
    pub(crate) fn shows(&self, index: ToolIndex) -> bool {
        self.is_at_endpoint(index) && self.may(index) == Permission::Granted
    }

    /// The operations that the caller may list.
    pub(crate) fn operations(&self) -> impl Iterator<Item = (ToolIndex, &BoundTool)> {
        let shown = self.api.indexes().filter(|index| self.shows(*index));
        shown.map(|index| (index, self.api.tool(index)))
    }

    /// Returns true if the caller may list all operations: its list is then that of the API.
    pub(crate) fn shows_all(&self) -> bool {
        !self.reads_only && self.rights.is_none()
    }

    /// The name of an operation.
    pub(crate) fn name_of(&self, index: ToolIndex) -> &str {
        &self.api.tool(index).name
    }

    /// Finds the operation of that name, if it exists for the caller.
    pub(crate) fn find(&self, name: &str) -> Option<ToolIndex> {
        let found = self.api.may_have(name).then(|| self.api.find(name));
        found.flatten().filter(|index| self.has(*index))
    }

    /// Returns true if the document has an operation of that name, but the settings or the endpoint
    /// leave it out.
    fn leaves_out(&self, name: &str) -> bool {
        let is_elsewhere =
            |index| !self.is_at_endpoint(index) && self.may(index) != Permission::Denied;
        // A rule of `access` may hide what the settings leave out as well, so that no caller learns
        // of it.
        let is_left_out = self.api.access.is_none() && self.api.why_left_out(name).is_some();
        is_left_out || self.api.find(name).is_some_and(is_elsewhere)
    }

    /// The name that its operator gave the API.
    pub(crate) fn label(&self) -> Option<&str> {
        self.api.name().map(ApiName::as_str)
    }
}

impl VisibleApis {
    /// What a caller sees of the APIs of an endpoint; without `granted`, the operator.
    pub(crate) fn new(
        apis: &[Arc<CatalogApi>],
        view: &View,
        granted: Option<&ClientGrant>,
    ) -> Self {
        let apis = apis.iter();
        Self {
            apis: apis
                .map(|api| VisibleApi::new(api, view, granted))
                .collect(),
            names_apis: view.names_apis,
        }
    }

    /// All operations that the caller may list, each with its API.
    pub(crate) fn operations(&self) -> impl Iterator<Item = SeenOperation<'_>> {
        self.apis.iter().flat_map(|api| {
            api.operations()
                .map(move |(index, offered)| (api, index, offered))
        })
    }

    /// Returns true if the caller may not list all operations of these APIs.
    pub(crate) fn is_restricted(&self) -> bool {
        self.apis.iter().any(|api| api.rights.is_some())
    }

    /// All operations that exist for the caller.
    pub(crate) fn existing(&self) -> impl Iterator<Item = &BoundTool> {
        self.apis.iter().flat_map(|api| {
            let indexes = api.api.indexes().filter(|index| api.has(*index));
            indexes.map(|index| api.api.tool(index))
        })
    }

    /// Finds the operation of that name, if it exists for the caller.
    pub(crate) fn find(&self, name: &str) -> Option<(&VisibleApi, ToolIndex)> {
        let mut apis = self.apis.iter();
        apis.find_map(|api| Some((api, api.find(name)?)))
    }

    /// Returns a suggestion for an unknown name: the nearest one that the caller may list, or that
    /// this server leaves the operation out.
    pub(crate) fn suggestion(&self, name: &str) -> Option<Suggestion<'_>> {
        let is_left_out = self.apis.iter().any(|api| api.leaves_out(name));
        if is_left_out {
            return Some(Suggestion::LeftOut);
        }
        let names = || self.operations().map(|(api, index, _)| api.name_of(index));
        nearest_name(name, names).map(Suggestion::Nearest)
    }
}

/// Number of sets of rights whose decisions are kept for each API.
const MAX_KEPT: NonZeroUsize = NonZeroUsize::new(64).unwrap();

/// Demands of an API on its callers.
pub(crate) struct AccessTable {
    /// Shares of tokens with a name, tool by tool; `None` for a share that has all.
    shares: Vec<Option<Box<[bool]>>>,
    /// Permissions by sets of rights; `None` for a set that may do everything.
    kept: Mutex<LruCache<RightsKey, Option<Arc<[Permission]>>>>,
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

impl AccessTable {
    /// Creates the table of an API; `None` if it demands nothing.
    fn new(api: &Api, slot: &ApiSlot) -> Option<Self> {
        let shares = slot.shares.iter().map(|share| tools_of(share, api));
        let shares: Vec<Option<Box<[bool]>>> = shares.collect();
        let demands = !slot.scopes.is_empty()
            || api.access_demands().next().is_some()
            || shares.iter().any(Option::is_some);
        demands.then(|| Self {
            shares,
            kept: Mutex::new(LruCache::new(MAX_KEPT)),
        })
    }
}

impl CatalogApi {
    /// Returns the permission of a caller for each operation; `None` if it may do everything.
    fn rights(&self, granted: &ClientGrant) -> Option<Arc<[Permission]>> {
        let table = self.access.as_ref()?;
        let scopes = &self.slot.scopes;
        let by_effect = |is_read_only| match scopes.lacking(&granted.scopes, is_read_only) {
            Some(_) => Permission::LacksScope,
            None => Permission::Granted,
        };
        let share = granted.token.as_ref().map(|token| token.place);
        let key = RightsKey {
            share: share.filter(|place| table.shares.get(*place).is_some_and(Option::is_some)),
            by_effect: [true, false].map(by_effect),
            by_rule: self
                .access_demands()
                .map(|demand| demand.judge(granted))
                .collect(),
        };
        let mut kept = table.kept.lock();
        if let Some(known) = kept.get(&key) {
            return known.clone();
        }
        let rights = self.decide(table, &key);
        kept.put(key, rights.clone());
        rights
    }

    /// Decides about each operation; returns `None` if the caller may do everything.
    fn decide(&self, table: &AccessTable, key: &RightsKey) -> Option<Arc<[Permission]>> {
        let share = key
            .share
            .and_then(|place| table.shares.get(place)?.as_ref());
        let may = |index: ToolIndex| {
            if share.is_some_and(|tools| tools.get(index.place()) != Some(&true)) {
                return Permission::Denied;
            }
            let [reads, writes] = key.by_effect;
            let of_effect = if self.tool(index).hints.is_read_only() {
                reads
            } else {
                writes
            };
            let of_rules = self.demands_of(index).map(|(place, _)| {
                key.by_rule
                    .get(place)
                    .copied()
                    .unwrap_or(Permission::Denied)
            });
            of_rules.fold(of_effect, Permission::max)
        };
        let rights: Arc<[Permission]> = self.indexes().map(may).collect();
        let is_all = rights
            .iter()
            .all(|permission| *permission == Permission::Granted);
        (!is_all).then_some(rights)
    }

    /// Returns the scopes that a caller lacks for an operation: the first of each demand that it
    /// does not meet.
    pub(crate) fn lacking_scopes(&self, granted: &ClientGrant, tool: ToolIndex) -> Vec<&str> {
        let is_read_only = self.tool(tool).hints.is_read_only();
        let of_api = self.slot.scopes.lacking(&granted.scopes, is_read_only);
        let unmet = self
            .demands_of(tool)
            .filter(|(_, demand)| demand.judge(granted) == Permission::LacksScope);
        let of_rules = unmet.filter_map(|(_, demand)| demand.scopes.first().map(String::as_str));
        of_api.into_iter().chain(of_rules).collect()
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
