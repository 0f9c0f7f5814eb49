//! What a caller sees of an endpoint: which operations of which APIs, and under which names.

use std::sync::Arc;

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

    /// Whether the caller may list the tool of that name.
    pub(crate) fn lists(&self, name: &str) -> bool {
        self.api.find(name).is_some_and(|index| self.shows(&self.api.offered(index)))
    }

    /// The operation of that name at this endpoint, whether or not the caller may list it.
    pub(crate) fn find(&self, name: &str) -> Option<ToolIndex> {
        // Names begin with the prefix, and looking at it is less work than looking for the name.
        let index = name.starts_with(self.api.prefix()).then(|| self.api.find(name)).flatten()?;
        self.has(&self.api.offered(index)).then_some(index)
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

    /// The name of an operation that the caller may list, nearest to one that is not there.
    pub(crate) fn nearest(&self, name: &str) -> Option<&'c str> {
        crate::text::nearest(name, self.operations().map(|(api, index, _)| api.name_of(index)), 0.8)
    }
}
