//! The operations of an endpoint that a caller may list and call, and their names. [`Rights::decide`] decides once for each set of
//! rights, and lists, searches, descriptions, suggestions and calls all read that decision.

use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::sync::Arc;

use lru::LruCache;
use parking_lot::Mutex;

use crate::annotate::TokenShare;
use crate::annotate::names::nearest_name;
use crate::api::{Api, ApiName, BoundTool, ToolIndex};
use crate::caller::client_grant::{ClientGrant, Permission, ToolScopes};

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

/// An API of a catalog.
#[derive(Clone)]
pub(crate) struct CatalogApi {
    pub(crate) api: Arc<Api>,
    /// Demands on its callers; `None` if there are none.
    pub(crate) access: Option<Arc<AccessTable>>,
}

/// An API as a caller sees it.
#[derive(Clone, Copy)]
pub(crate) struct VisibleApi<'c> {
    pub(crate) api: &'c Arc<Api>,
    /// The same with its demands on callers.
    pub(crate) of: &'c CatalogApi,
    /// Index among the APIs of the endpoint.
    pub(crate) place: usize,
    reads_only: bool,
    /// Rights of the caller; `None` if it may do everything.
    rights: Option<&'c Rights>,
}

/// The APIs that a caller may list, in the order of the list.
#[derive(Clone)]
pub(crate) struct VisibleApis<'c> {
    pub(crate) apis: Vec<VisibleApi<'c>>,
    /// True if the endpoint serves APIs that have names, all of them.
    pub(crate) names_apis: bool,
}

/// A tool that a caller may list.
pub(crate) enum Listed<'c> {
    /// An operation of an API.
    Operation(VisibleApi<'c>, ToolIndex),
    /// A meta-tool, with its name and its JSON.
    Meta(String, Cow<'c, str>),
}

impl<'c> Listed<'c> {
    /// The name by which clients call it.
    pub(crate) fn into_name(self) -> String {
        match self {
            Self::Operation(api, index) => api.name_of(index).to_owned(),
            Self::Meta(name, _) => name,
        }
    }

    /// The tool as JSON.
    pub(crate) fn into_text(self) -> Cow<'c, str> {
        match self {
            Self::Operation(api, index) => api.api.tool(index).text().into(),
            Self::Meta(_, text) => text,
        }
    }
}

/// Suggestion for a name that no operation has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Suggestion<'c> {
    /// The nearest name.
    Nearest(&'c str),
    /// The settings of this server, or of the endpoint, leave the operation out.
    LeftOut,
}

impl CatalogApi {
    /// Creates the entry of an API.
    pub(crate) fn new(api: Arc<Api>, scopes: &Arc<ToolScopes>, shares: &[TokenShare]) -> Self {
        Self {
            access: AccessTable::new(&api, scopes, shares).map(Arc::new),
            api,
        }
    }

    /// Returns true if the API may have an operation of that name: names begin with its prefix, and
    /// looking at that is less work than looking for the name.
    pub(crate) fn may_have(&self, name: &str) -> bool {
        name.starts_with(self.api.prefix())
    }

    /// Finds the operation of that name, independent of the caller.
    pub(crate) fn find(&self, name: &str) -> Option<ToolIndex> {
        self.may_have(name).then(|| self.api.find(name)).flatten()
    }
}

impl<'c> VisibleApi<'c> {
    /// Returns the view of an API at that index for a caller with these rights.
    pub(crate) fn new(
        of: &'c CatalogApi,
        place: usize,
        view: &View,
        rights: Option<&'c Rights>,
    ) -> Self {
        Self {
            api: &of.api,
            of,
            place,
            reads_only: view.reads_only,
            rights,
        }
    }

    /// Returns true if the caller may not list all operations of the API.
    pub(crate) fn is_restricted(&self) -> bool {
        self.rights.is_some()
    }

    /// Returns the permission of the caller for an operation, independent of the endpoint.
    fn may(&self, index: ToolIndex) -> Permission {
        self.rights
            .map_or(Permission::Granted, |rights| rights.may(index))
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
    pub(crate) fn operations(&self) -> impl Iterator<Item = (ToolIndex, &'c BoundTool)> + use<'c> {
        let seen = *self;
        let all = seen
            .api
            .indexes()
            .map(move |index| (index, seen.api.tool(index)));
        all.filter(move |(index, _)| seen.shows(*index))
    }

    /// Returns true if the caller may list all operations: its list is then that of the API.
    pub(crate) fn shows_all(&self) -> bool {
        !self.reads_only && self.rights.is_none()
    }

    /// The name of an operation.
    pub(crate) fn name_of(&self, index: ToolIndex) -> &'c str {
        &self.api.tool(index).name
    }

    /// Finds the operation of that name, if it exists for the caller.
    pub(crate) fn find(&self, name: &str) -> Option<ToolIndex> {
        self.of.find(name).filter(|index| self.has(*index))
    }

    /// Returns true if the document has an operation of that name, but the settings or the endpoint
    /// leave it out.
    fn leaves_out(&self, name: &str) -> bool {
        let is_elsewhere =
            |index| !self.is_at_endpoint(index) && self.may(index) != Permission::Denied;
        // A rule of `access` may hide what the settings leave out as well, so that no caller learns
        // of it.
        let is_left_out = self.of.access.is_none() && self.api.why_left_out(name).is_some();
        is_left_out || self.api.find(name).is_some_and(is_elsewhere)
    }

    /// The name that its operator gave the API.
    pub(crate) fn label(&self) -> Option<&'c str> {
        self.api.name().map(ApiName::as_str)
    }
}

impl<'c> VisibleApis<'c> {
    /// All operations that the caller may list, each with its API.
    pub(crate) fn operations(
        &self,
    ) -> impl Iterator<Item = (&VisibleApi<'c>, ToolIndex, &'c BoundTool)> {
        self.apis.iter().flat_map(|api| {
            api.operations()
                .map(move |(index, offered)| (api, index, offered))
        })
    }

    /// Returns true if the caller may not list all operations of these APIs.
    pub(crate) fn is_restricted(&self) -> bool {
        self.apis.iter().any(VisibleApi::is_restricted)
    }

    /// All operations that exist for the caller.
    pub(crate) fn existing(&self) -> impl Iterator<Item = &'c BoundTool> {
        self.apis.iter().flat_map(|api| {
            let indexes = api.api.indexes().filter(|index| api.has(*index));
            indexes.map(|index| api.api.tool(index))
        })
    }

    /// Finds the operation of that name, if it exists for the caller.
    pub(crate) fn find(&self, name: &str) -> Option<(VisibleApi<'c>, ToolIndex)> {
        self.apis
            .iter()
            .find_map(|api| Some((*api, api.find(name)?)))
    }

    /// Returns a suggestion for an unknown name: the nearest one that the caller may list, or that
    /// this server leaves the operation out.
    pub(crate) fn suggestion(&self, name: &str) -> Option<Suggestion<'c>> {
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
