//! What a caller sees of an endpoint: which operations of which APIs, and under which names.

use std::sync::Arc;

use super::auth::scopes::{Scopes, ToolScopes};
use crate::annotate::split_at_replacement;
use crate::api::{Api, ApiName, OfferedTool, ToolIndex};
use crate::proxy::ToolNames;

/// What an endpoint shows of its APIs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    /// The path of the endpoint.
    pub(crate) path: Arc<str>,
    /// Whether names stand without the prefix of their API.
    pub(crate) strips_prefix: bool,
    /// Whether there are only tools that read, by what is enforced of them.
    pub(crate) reads_only: bool,
}

/// An API as a caller sees it.
#[derive(Clone, Copy)]
pub(crate) struct VisibleApi<'c> {
    pub(crate) api: &'c Arc<Api>,
    /// Scopes that its calls need besides those of the whole server.
    pub(crate) needed: &'c Arc<ToolScopes>,
    /// What its tool names stand without here.
    stripped: &'c str,
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
            stripped: if view.strips_prefix { api.prefix() } else { "" },
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

    /// Whether the caller may list all operations, under the names that they have in their API: then its list is that of the API.
    pub(crate) fn shows_all_as_they_are(&self) -> bool {
        self.stripped.is_empty() && !self.reads_only && self.granted.is_none()
    }

    /// What the caller's token grants, where that decides what it may list.
    pub(crate) fn granted(&self) -> Option<&'c Scopes> {
        self.granted
    }

    /// The name of an operation at this endpoint.
    pub(crate) fn name_of(&self, index: ToolIndex) -> &'c str {
        let name = self.api.offered(index).tool.name.as_ref();
        name.strip_prefix(self.stripped).unwrap_or(name)
    }

    /// The name at this endpoint of the tool of that name in its API; `None` where the caller may not list it.
    fn listed_name(&self, name: &str) -> Option<&'c str> {
        let index = self.api.find(name)?;
        self.shows(&self.api.offered(index)).then(|| self.name_of(index))
    }

    /// The JSON of a tool as it is listed at this endpoint, in pieces. Names stand without the prefix, and the tool that takes the
    /// place of a deprecated one is named only where the caller may list it.
    pub(crate) fn text_of(&self, offered: &OfferedTool<'c>) -> [&'c str; 4] {
        self.pieces_of(offered.text, offered.replacement)
    }

    /// The same of the JSON of any tool, with the name of the one that takes its place.
    pub(crate) fn pieces_of<'t>(&self, text: &'t str, replacement: Option<&str>) -> [&'t str; 4]
    where
        'c: 't,
    {
        const BEFORE_NAME: &str = "{\"name\":\"";
        if self.shows_all_as_they_are() {
            return [text, "", "", ""];
        }
        let text = text.get(BEFORE_NAME.len() + self.stripped.len()..).unwrap_or_default();
        let replacement = replacement.and_then(|name| Some((name, split_at_replacement(text, name)?)));
        let Some((name, split)) = replacement else {
            return [BEFORE_NAME, text, "", ""];
        };
        match self.listed_name(name) {
            Some(name) => [BEFORE_NAME, split.before_name, name, split.after_name],
            None => [BEFORE_NAME, split.before_words, split.after_words, ""],
        }
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

impl ToolNames for VisibleApi<'_> {
    fn shown_name<'n>(&'n self, name: &'n str) -> Option<&'n str> {
        self.listed_name(name)
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
