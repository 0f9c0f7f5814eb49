//! What a caller sees of an endpoint: which operations of which APIs, and under which names.

use std::sync::Arc;

use crate::annotate::names::nearest_name;
use crate::api::{Api, ApiName, OfferedTool, ToolIndex};
use crate::proxy::caller::scopes::{Scopes, ToolScopes};

/// What an endpoint shows of its APIs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    /// The path of the endpoint.
    pub(crate) path: Arc<str>,
    /// Whether it serves all of several APIs, each by its name.
    pub(crate) names_apis: bool,
    /// Whether there are only tools that read, by what is enforced of them.
    pub(crate) reads_only: bool,
}

/// An API as a caller sees it.
#[derive(Clone, Copy)]
pub(crate) struct VisibleApi<'c> {
    pub(crate) api: &'c Arc<Api>,
    /// Scopes that its calls need besides those of the whole server.
    pub(crate) needed: &'c Arc<ToolScopes>,
    reads_only: bool,
    /// What the caller's token grants, where that decides what it may list; without, it may list all.
    granted: Option<&'c Scopes>,
}

/// What a caller sees, in the order in which it is listed.
#[derive(Clone)]
pub(crate) struct VisibleApis<'c> {
    pub(crate) apis: Vec<VisibleApi<'c>>,
    /// Whether the endpoint serves APIs that have names, all of them.
    pub(crate) names_apis: bool,
}

/// What is said of a name that no operation has.
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

    /// Whether the endpoint has the operation, whatever the caller may do.
    pub(crate) fn has(&self, offered: &OfferedTool<'_>) -> bool {
        !self.reads_only || offered.enforcement.is_read_only()
    }

    /// Whether the caller may list the operation: a token needs what the API asks for besides the rest of the server.
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

    /// Whether the caller may list all operations: then its list is that of the API.
    pub(crate) fn shows_all(&self) -> bool {
        !self.reads_only && self.granted.is_none()
    }

    /// What the caller's token grants, where that decides what it may list.
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

    /// Whether the document has the operation of that name, and the settings or the endpoint have not.
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

    /// Where the operation of that name is, whether or not the caller may list it.
    pub(crate) fn find(&self, name: &str) -> Option<(VisibleApi<'c>, ToolIndex)> {
        self.apis.iter().find_map(|api| Some((*api, api.find(name)?)))
    }

    /// What can be said of a name that is not there: the nearest one that the caller may list, or that this server leaves the operation
    /// out.
    pub(crate) fn suggestion(&self, name: &str) -> Option<Suggestion<'c>> {
        let is_left_out = self.apis.iter().any(|api| api.leaves_out(name));
        if is_left_out {
            return self.apis.iter().all(|api| api.granted.is_none()).then_some(Suggestion::LeftOut);
        }
        let names = || self.operations().map(|(api, index, _)| api.name_of(index));
        nearest_name(name, names).map(Suggestion::Nearest)
    }
}
