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
//! - A variant of `Listed` in `mcp/visible.rs`, with name, hints and schema: `MetaToolKind` is only
//!   for tools that every API has.
//! - `listed_beside_operations` in `mcp/catalog.rs` lists it, and `plan` in `mcp/calls/plan.rs`
//!   finds it.
//! - `catalog_for` in `mcp/endpoint_state.rs` waits for all APIs that it calls, and `clashes_with` in
//!   `api/clashes.rs` compares its name.

use std::sync::Arc;
use std::vec;

use bytes::Bytes;
use rmcp::model::ServerConfig;

use super::meta_tools::MetaTools;
use super::protocol::version::server_meta;
use super::visible::{
    CallerRights, CatalogApi, Listed, Rights, Suggestion, View, VisibleApi, VisibleApis,
};
use crate::annotate::names::MetaToolKind;
use crate::api::{Api, ToolIndex};
use crate::caller::client_grant::ClientGrant;

/// The tools of an endpoint, and how its server introduces itself. It never changes: a changed
/// document makes another one.
pub(crate) struct Catalog {
    apis: Vec<CatalogApi>,
    pub(crate) view: View,
    /// The prefixes of tool names of the APIs that are still loading.
    awaited: Vec<String>,
    /// The introduction of the server.
    pub(crate) config: ServerConfig,
    /// The server in the `_meta` of results.
    server_meta: Arc<str>,
    /// The meta-tools: those of search mode, and the one that waits.
    meta_tools: Option<Arc<MetaTools>>,
}

impl Catalog {
    /// The tools of these APIs, as the endpoint shows them.
    pub(crate) fn new(
        apis: Vec<CatalogApi>,
        view: View,
        awaited: Vec<String>,
        config: ServerConfig,
    ) -> Self {
        Self {
            apis,
            view,
            awaited,
            server_meta: server_meta(&config.server_info).into(),
            config,
            meta_tools: None,
        }
    }

    /// Puts the tools behind meta-tools.
    pub(crate) fn with_meta_tools(self, meta_tools: Option<MetaTools>) -> Self {
        Self {
            meta_tools: meta_tools.map(Arc::new),
            ..self
        }
    }

    /// Returns the rights of a caller.
    pub(crate) fn rights(&self, granted: &ClientGrant) -> CallerRights {
        if !self.depends_on_caller() {
            return CallerRights::default();
        }
        CallerRights::new(self.apis.iter().map(|api| api.access.as_deref()), granted)
    }

    /// Returns the APIs and tools that a caller with these rights may list.
    pub(crate) fn visible<'c>(&'c self, rights: &'c CallerRights) -> VisibleApis<'c> {
        visible(&self.apis, &self.view, rights)
    }

    /// Returns the API at that index.
    pub(crate) fn api(&self, place: usize) -> Option<&Arc<Api>> {
        self.apis.get(place).map(|of| &of.api)
    }

    /// Returns the meta-tools, in search mode.
    pub(crate) fn meta_tools(&self) -> Option<&MetaTools> {
        self.meta_tools
            .as_deref()
            .filter(|meta_tools| meta_tools.searches())
    }

    /// Returns the meta-tool of that name, if the endpoint has it, with all of them.
    pub(crate) fn meta_tool(&self, name: &str) -> Option<(&Arc<MetaTools>, MetaToolKind)> {
        let meta_tools = self.meta_tools.as_ref()?;
        Some((meta_tools, meta_tools.kind_of(name)?))
    }

    /// Returns the name of the meta-tool that waits, if the endpoint has it.
    pub(crate) fn wait_tool(&self) -> Option<String> {
        self.meta_tools
            .as_ref()
            .and_then(|meta_tools| meta_tools.wait_tool())
    }

    /// Returns the member of `_meta` that names the server in results.
    pub(super) fn server_meta(&self) -> &Arc<str> {
        &self.server_meta
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

    /// Returns true if an operation exists for the caller under that name.
    pub(crate) fn has(&self, name: &str, granted: &ClientGrant) -> bool {
        self.find(name, Some(granted)).is_some()
    }

    /// Returns the tools that a caller with these rights may list, in the order of the list: the
    /// operations unless they are searched, the meta-tools, and the pinned operations.
    pub(crate) fn listed<'c>(&'c self, rights: &'c CallerRights) -> Vec<Listed<'c>> {
        let seen = self.visible(rights);
        let operations = seen.operations().filter(|_| self.meta_tools().is_none());
        let mut listed: Vec<_> = operations
            .map(|(api, index, _)| Listed::Operation(*api, index))
            .collect();
        listed.extend(self.listed_beside_operations(&seen));
        listed
    }

    /// Returns the meta-tools and the pinned operations that a caller may list.
    pub(crate) fn listed_beside_operations<'c>(
        &'c self,
        seen: &VisibleApis<'c>,
    ) -> Vec<Listed<'c>> {
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
    ) -> Option<(&CatalogApi, Option<Arc<Rights>>, ToolIndex)> {
        let mut apis = self
            .apis
            .iter()
            .enumerate()
            .filter(|(_, of)| of.may_have(name));
        apis.find_map(|(place, of)| {
            let rights = of
                .access
                .as_ref()
                .zip(granted)
                .and_then(|(access, granted)| access.rights(granted));
            let tool = VisibleApi::new(of, place, &self.view, rights.as_deref()).find(name)?;
            Some((of, rights, tool))
        })
    }

    /// Returns a suggestion for a client with these rights, for a name that no tool has.
    pub(crate) fn suggestion<'c>(
        &'c self,
        name: &str,
        rights: &'c CallerRights,
    ) -> Option<Suggestion<'c>> {
        self.visible(rights).suggestion(name)
    }
}

/// Returns the APIs of an endpoint and the tools that a caller with these rights may list.
pub(crate) fn visible<'c>(
    apis: &'c [CatalogApi],
    view: &View,
    rights: &'c CallerRights,
) -> VisibleApis<'c> {
    let api = |(place, of)| VisibleApi::new(of, place, view, rights.of_api(place));
    VisibleApis {
        apis: apis.iter().enumerate().map(api).collect(),
        names_apis: view.names_apis,
    }
}

/// Number of bytes of a list that are given to the connection at once; a piece has up to one tool
/// more.
const MAX_PIECE_BYTES: usize = 64 << 10;

/// The list of an endpoint for one client: tools as JSON, separated by commas.
pub(crate) struct ListPieces {
    catalog: Arc<Catalog>,
    /// Rest of the part that is being given.
    current: Bytes,
    parts: vec::IntoIter<ListPart>,
    length: usize,
}

/// A part of a list.
enum ListPart {
    /// A text that is there.
    Text(Bytes),
    /// Tools of the API at that place, which become text when it is their turn.
    Tools(usize, Vec<ToolIndex>),
}

/// The parts of a list, with the commas between them, and the bytes of all.
#[derive(Default)]
struct ListParts {
    parts: Vec<ListPart>,
    length: usize,
}

impl ListPieces {
    /// The whole list for a client to which this is granted.
    pub(crate) fn new(catalog: Arc<Catalog>, granted: &ClientGrant) -> Self {
        let rights = catalog.rights(granted);
        let mut all = ListParts::default();
        let seen = catalog.visible(&rights);
        if catalog.meta_tools().is_none() {
            seen.apis.iter().for_each(|api| all.add_api(api));
        }
        // Without operations, there is nothing to search either.
        let meta_tools = catalog.listed_beside_operations(&seen);
        let texts: Vec<_> = meta_tools.into_iter().map(Listed::into_text).collect();
        let meta_tools = texts.join(",");
        drop(seen);
        if !meta_tools.is_empty() {
            all.push(meta_tools.len(), ListPart::Text(meta_tools.into()));
        }
        Self {
            catalog,
            current: Bytes::new(),
            parts: all.parts.into_iter(),
            length: all.length,
        }
    }

    /// The bytes of the whole list.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    fn write(&self, part: ListPart) -> Bytes {
        match part {
            ListPart::Text(text) => text,
            ListPart::Tools(place, tools) => {
                let Some(api) = self.catalog.api(place) else {
                    return Bytes::new();
                };
                let texts = tools.iter().map(|tool| api.tool(*tool).json());
                texts.collect::<Vec<_>>().join(&b',').into()
            }
        }
    }
}

impl ListParts {
    fn push(&mut self, length: usize, part: ListPart) {
        if !self.parts.is_empty() {
            self.parts.push(ListPart::Text(Bytes::from_static(b",")));
            self.length += 1;
        }
        self.parts.push(part);
        self.length += length;
    }

    /// Adds the tools of an API that a caller may list.
    fn add_api(&mut self, api: &VisibleApi<'_>) {
        if api.shows_all() {
            let list = api.api.list();
            if !list.is_empty() {
                self.push(list.len(), ListPart::Text(list.clone()));
            }
            return;
        }
        let (mut tools, mut length) = (Vec::new(), 0);
        for (tool, offered) in api.operations() {
            if length > MAX_PIECE_BYTES {
                self.push(
                    length,
                    ListPart::Tools(api.place, std::mem::take(&mut tools)),
                );
                length = 0;
            }
            length += usize::from(!tools.is_empty()) + offered.json().len();
            tools.push(tool);
        }
        if !tools.is_empty() {
            self.push(length, ListPart::Tools(api.place, tools));
        }
    }
}

impl Iterator for ListPieces {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.current.is_empty() {
            let part = self.parts.next()?;
            self.current = self.write(part);
        }
        Some(
            self.current
                .split_to(self.current.len().min(MAX_PIECE_BYTES)),
        )
    }
}
