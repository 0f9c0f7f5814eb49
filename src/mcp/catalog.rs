//! The catalog of one endpoint: tools of one API or of several, under the names by which clients
//! call them.
//!
//! Its list comes in pieces that are made while they are sent: an endpoint keeps no list of its
//! own, however many clients read it and however slowly. All pieces are made of the texts of the
//! APIs. As trees, the list of a large API would be built, copied and written again for each
//! client.
//!
//! # Adding a tool that the operator declares
//!
//! - A `ListedTool` of `mcp/visible.rs`, whose JSON has its hints and schema: `MetaToolKind` is only
//!   for tools that every API has.
//! - Let `listed_beside_operations` in `mcp/catalog.rs` list it, and `plan` in `mcp/calls/plan.rs`
//!   find it.
//! - Let `catalog_for` in `mcp/endpoint_state.rs` wait for all APIs that it calls, and `clashes_with`
//!   in `api/clashes.rs` compare its name.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use rmcp::model::ServerConfig;

use super::meta_tools::MetaTools;
use super::protocol::version::server_meta;
use super::visible::{CatalogApi, ListedTool, View, VisibleApi, VisibleApis};
use crate::api::ToolIndex;
use crate::caller::client_grant::ClientGrant;

/// The tools of an endpoint, and how its server introduces itself. It never changes: a changed
/// document makes another one.
pub(crate) struct Catalog {
    apis: Vec<Arc<CatalogApi>>,
    pub(crate) view: View,
    /// The prefixes of tool names of the APIs that are still loading.
    awaited: Vec<String>,
    /// The introduction of the server.
    pub(crate) config: ServerConfig,
    /// The server in the `_meta` of results.
    pub(super) server_meta: Arc<str>,
    /// The meta-tools: those of search mode, and the one that waits.
    pub(super) meta_tools: Option<Arc<MetaTools>>,
}

impl Catalog {
    /// The tools of these APIs, as the endpoint shows them.
    pub(crate) fn new(
        apis: Vec<Arc<CatalogApi>>,
        view: View,
        awaited: Vec<String>,
        config: ServerConfig,
        meta_tools: Option<MetaTools>,
    ) -> Self {
        Self {
            apis,
            view,
            awaited,
            server_meta: server_meta(&config.server_info).into(),
            config,
            meta_tools: meta_tools.map(Arc::new),
        }
    }

    /// Returns the APIs and tools that a caller may list; without `granted`, the operator.
    pub(crate) fn visible(&self, granted: Option<&ClientGrant>) -> VisibleApis {
        VisibleApis::new(&self.apis, &self.view, granted)
    }

    /// Returns the meta-tools, in search mode.
    pub(crate) fn search_tools(&self) -> Option<&Arc<MetaTools>> {
        self.meta_tools
            .as_ref()
            .filter(|meta_tools| meta_tools.searches)
    }

    /// Returns the name of the meta-tool that waits, if the endpoint has it.
    pub(crate) fn wait_tool(&self) -> Option<String> {
        self.meta_tools.as_ref()?.wait_tool()
    }

    /// Returns true if every API is loaded or has failed.
    pub(crate) fn is_decided(&self) -> bool {
        self.awaited.is_empty()
    }

    /// Returns true if an API that is not loaded yet may have a tool of that name.
    pub(crate) fn awaits(&self, name: &str) -> bool {
        !self.awaited.is_empty() && self.apis.is_empty()
            || self
                .awaited
                .iter()
                .any(|prefix| name.starts_with(prefix.as_str()))
    }

    /// Returns the names of the tools that a client may list that may list all: the operations unless
    /// they are searched, the meta-tools, and the pinned operations.
    pub(crate) fn names(&self) -> Vec<String> {
        let seen = self.visible(None);
        let operations = seen.operations().filter(|_| self.search_tools().is_none());
        let operations = operations.map(|(.., offered)| offered.name.to_string());
        let beside = self.listed_beside_operations(&seen).into_iter();
        operations
            .chain(beside.map(|tool| tool.name.into_owned()))
            .collect()
    }

    /// Returns the meta-tools and the pinned operations that a caller may list.
    fn listed_beside_operations<'c>(&'c self, seen: &'c VisibleApis) -> Vec<ListedTool<'c>> {
        let meta_tools = self.meta_tools.as_ref();
        meta_tools.map_or_else(Vec::new, |meta_tools| meta_tools.listed(seen))
    }

    /// Returns true if the list depends on the caller.
    pub(crate) fn depends_on_caller(&self) -> bool {
        self.apis.iter().any(|api| api.access.is_some())
    }

    /// Finds the operation of that name, if it exists for the caller. A call looks at one API after
    /// the other, without a list of all. The rights come first, so that a name that is hidden from
    /// the caller takes as long as one that no operation has.
    pub(crate) fn find(
        &self,
        name: &str,
        granted: Option<&ClientGrant>,
    ) -> Option<(VisibleApi, ToolIndex)> {
        let mut apis = self.apis.iter().filter(|api| api.may_have(name));
        apis.find_map(|api| {
            let seen = VisibleApi::new(api, &self.view, granted);
            let tool = seen.find(name)?;
            Some((seen, tool))
        })
    }
}

/// Number of bytes of a list that are given to the connection at once; a piece has up to one tool
/// more.
const MAX_PIECE_BYTES: usize = 64 << 10;

/// The list of an endpoint for one client: tools as JSON, separated by commas.
#[derive(Default)]
pub(crate) struct ListPieces {
    /// Rest of the part that is being given.
    current: Bytes,
    parts: VecDeque<ListPart>,
    /// The bytes of the whole list.
    pub(crate) length: usize,
}

/// A part of a list.
enum ListPart {
    /// A text that is there.
    Text(Bytes),
    /// Tools of an API, which become text when it is their turn.
    Tools(Arc<CatalogApi>, Vec<ToolIndex>),
}

impl ListPieces {
    /// The whole list for a client to which this is granted; without `granted`, for one that may
    /// list all.
    pub(crate) fn new(catalog: &Catalog, granted: Option<&ClientGrant>) -> Self {
        let mut list = Self::default();
        let seen = catalog.visible(granted);
        if catalog.search_tools().is_none() {
            seen.apis.iter().for_each(|api| list.add_api(api));
        }
        // Without operations, there is nothing to search either.
        let meta_tools = catalog.listed_beside_operations(&seen);
        let texts: Vec<_> = meta_tools.into_iter().map(|tool| tool.text).collect();
        let meta_tools = texts.join(",");
        list.push(meta_tools.len(), ListPart::Text(meta_tools.into()));
        list
    }

    /// Adds a part of that length, with a comma before it.
    fn push(&mut self, length: usize, part: ListPart) {
        if length == 0 {
            return;
        }
        if !self.parts.is_empty() {
            let comma = Bytes::from_static(b",");
            self.parts.push_back(ListPart::Text(comma));
            self.length += 1;
        }
        self.parts.push_back(part);
        self.length += length;
    }

    /// Adds the tools of an API that a caller may list.
    fn add_api(&mut self, seen: &VisibleApi) {
        if seen.shows_all() {
            let list = &seen.api.list;
            return self.push(list.len(), ListPart::Text(list.clone()));
        }
        let part = |tools| ListPart::Tools(Arc::clone(&seen.api), tools);
        let (mut tools, mut length) = (Vec::new(), 0);
        for (tool, offered) in seen.operations() {
            if length > MAX_PIECE_BYTES {
                self.push(length, part(std::mem::take(&mut tools)));
                length = 0;
            }
            length += usize::from(!tools.is_empty()) + offered.json().len();
            tools.push(tool);
        }
        self.push(length, part(tools));
    }
}

impl Iterator for ListPieces {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.current.is_empty() {
            self.current = match self.parts.pop_front()? {
                ListPart::Text(text) => text,
                ListPart::Tools(api, tools) => {
                    let texts = tools.iter().map(|tool| api.tool(*tool).json());
                    texts.collect::<Vec<_>>().join(&b',').into()
                }
            };
        }
        let length = self.current.len().min(MAX_PIECE_BYTES);
        Some(self.current.split_to(length))
    }
}
