//! The tools of an endpoint that a caller may list: operations of its APIs, and their names.

use std::sync::Arc;

use crate::annotate::names::nearest_name;
use crate::api::{Api, ApiName, OfferedTool, ToolIndex};
use crate::proxy::caller::scopes::{Scopes, ToolScopes};

/// View of an endpoint of its APIs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    /// The path of the endpoint.
    pub(crate) path: Arc<str>,
    /// True if it serves all of several APIs, each by its name.
    pub(crate) names_apis: bool,
    /// True if it serves only tools that count as read-only.
    pub(crate) reads_only: bool,
}

/// An API as a caller sees it.
#[derive(Clone, Copy)]
pub(crate) struct VisibleApi<'c> {
    pub(crate) api: &'c Arc<Api>,
    /// Scopes that its calls need besides those of the whole server.
    pub(crate) needed: &'c Arc<ToolScopes>,
    reads_only: bool,
    /// Scopes of the caller's token, if they decide what it may list; without, it may list all.
    granted: Option<&'c Scopes>,
}

/// The APIs that a caller may list, in the order of the list.
#[derive(Clone)]
pub(crate) struct VisibleApis<'c> {
    pub(crate) apis: Vec<VisibleApi<'c>>,
    /// True if the endpoint serves APIs that have names, all of them.
    pub(crate) names_apis: bool,
}

/// Suggestion for a name that no operation has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Suggestion<'c> {
    /// The nearest name.
    Nearest(&'c str),
    /// The settings of this server, or of the endpoint, leave the operation out.
    LeftOut,
}

impl<'c> VisibleApi<'c> {
    /// `granted` is what the caller's token grants.
    pub(crate) fn new(api: &'c Arc<Api>, needed: &'c Arc<ToolScopes>, view: &View, granted: Option<&'c Scopes>) -> Self {
        Self {
            api,
            needed,
            reads_only: view.reads_only,
            // Without scopes of its own, an API shows every caller the same.
            granted: granted.filter(|_| !needed.is_empty()),
        }
    }

    /// Returns true if the endpoint has the operation, independent of the caller.
    pub(crate) fn has(&self, offered: &OfferedTool<'_>) -> bool {
        !self.reads_only || offered.enforcement.is_read_only()
    }

    /// Returns true if the caller may list the operation: its token needs the scopes of the API in addition to those of the server.
    pub(crate) fn shows(&self, offered: &OfferedTool<'_>) -> bool {
        let lacks = |granted| self.needed.lacking(granted, offered.enforcement.is_read_only()).is_some();
        self.has(offered) && !self.granted.is_some_and(lacks)
    }

    /// The operations that the caller may list.
    pub(crate) fn operations(&self) -> impl Iterator<Item = (ToolIndex, OfferedTool<'c>)> + use<'c> {
        let seen = *self;
        let all = seen.api.indexes().map(move |index| (index, seen.api.offered(index)));
        all.filter(move |(_, offered)| seen.shows(offered))
    }

    /// Returns true if the caller may list all operations: its list is then that of the API.
    pub(crate) fn shows_all(&self) -> bool {
        !self.reads_only && self.granted.is_none()
    }

    /// Returns the scopes of the caller's token, if they decide what it may list.
    pub(crate) fn granted(&self) -> Option<&'c Scopes> {
        self.granted
    }

    /// The name of an operation.
    pub(crate) fn name_of(&self, index: ToolIndex) -> &'c str {
        self.api.offered(index).tool.name.as_ref()
    }

    /// The tool of that name, if the caller may list it.
    pub(crate) fn listed(&self, name: &str) -> Option<OfferedTool<'c>> {
        let offered = self.api.offered(self.api.find(name)?);
        self.shows(&offered).then_some(offered)
    }

    /// The operation of that name at this endpoint, whether or not the caller may list it.
    pub(crate) fn find(&self, name: &str) -> Option<ToolIndex> {
        // Names begin with the prefix, and looking at it is less work than looking for the name.
        let index = name.starts_with(self.api.prefix()).then(|| self.api.find(name)).flatten()?;
        self.has(&self.api.offered(index)).then_some(index)
    }

    /// Returns true if the document has an operation of that name, but the settings or the endpoint leave it out.
    fn leaves_out(&self, name: &str) -> bool {
        let index = self.api.find(name);
        self.api.why_left_out(name).is_some() || index.is_some_and(|index| !self.has(&self.api.offered(index)))
    }

    /// The name that its operator gave the API.
    pub(crate) fn label(&self) -> Option<&'c str> {
        self.api.name().map(ApiName::as_str)
    }
}

impl<'c> VisibleApis<'c> {
    /// All operations that the caller may list, each with its API.
    pub(crate) fn operations(&self) -> impl Iterator<Item = (&VisibleApi<'c>, ToolIndex, OfferedTool<'c>)> {
        self.apis
            .iter()
            .flat_map(|api| api.operations().map(move |(index, offered)| (api, index, offered)))
    }

    /// Finds the operation of that name, even if the caller may not list it.
    pub(crate) fn find(&self, name: &str) -> Option<(VisibleApi<'c>, ToolIndex)> {
        self.apis.iter().find_map(|api| Some((*api, api.find(name)?)))
    }

    /// Returns a suggestion for an unknown name: the nearest one that the caller may list, or that this server leaves the operation out.
    pub(crate) fn suggestion(&self, name: &str) -> Option<Suggestion<'c>> {
        let is_left_out = self.apis.iter().any(|api| api.leaves_out(name));
        if is_left_out {
            return self.apis.iter().all(|api| api.granted.is_none()).then_some(Suggestion::LeftOut);
        }
        let names = || self.operations().map(|(api, index, _)| api.name_of(index));
        nearest_name(name, names).map(Suggestion::Nearest)
    }
}
