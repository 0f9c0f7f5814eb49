//! What a caller sees of an endpoint: which operations of which APIs, and under which names.

use std::sync::Arc;

use super::auth::scopes::{Scopes, ToolScopes};
use crate::api::{Api, ApiName, OfferedTool, ToolIndex};

/// An API as a caller sees it.
#[derive(Clone, Copy)]
pub(crate) struct VisibleApi<'c> {
    pub(crate) api: &'c Arc<Api>,
    /// Scopes that its calls need besides those of the whole server.
    pub(crate) needed: &'c Arc<ToolScopes>,
    /// What its tool names stand without here.
    stripped: &'c str,
    reads_only: bool,
    /// What the caller's token grants; a caller without one sees all.
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
    pub(crate) fn new(
        api: &'c Arc<Api>,
        needed: &'c Arc<ToolScopes>,
        strips_prefix: bool,
        reads_only: bool,
        granted: Option<&'c Scopes>,
    ) -> Self {
        Self {
            api,
            needed,
            stripped: if strips_prefix { api.prefix() } else { "" },
            reads_only,
            granted,
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

    /// What its tool names stand without here; most often nothing.
    pub(crate) fn stripped(&self) -> &'c str {
        self.stripped
    }

    /// The name of an operation at this endpoint.
    pub(crate) fn name_of(&self, index: ToolIndex) -> &'c str {
        let name = self.api.offered(index).tool.name.as_ref();
        name.strip_prefix(self.stripped).unwrap_or(name)
    }

    /// The operation of that name at this endpoint, whether or not the caller may list it.
    pub(crate) fn find(&self, name: &str) -> Option<ToolIndex> {
        let index = if self.stripped.is_empty() {
            // Names begin with the prefix, and looking at it is less work than looking for the name.
            name.starts_with(self.api.prefix()).then(|| self.api.find(name)).flatten()?
        } else {
            self.api.find(&format!("{}{name}", self.stripped))?
        };
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
    pub(crate) fn find(&self, name: &str) -> Option<(usize, ToolIndex)> {
        let mut places = self.apis.iter().enumerate();
        places.find_map(|(place, api)| Some((place, api.find(name)?)))
    }

    /// The name of an operation that the caller may list, nearest to one that is not there.
    pub(crate) fn nearest(&self, name: &str) -> Option<&'c str> {
        crate::text::nearest(name, self.operations().map(|(api, index, _)| api.name_of(index)), 0.8)
    }
}
