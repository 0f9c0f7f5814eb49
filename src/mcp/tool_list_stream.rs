//! The list of tools in pieces that are made while they are sent: an endpoint keeps no list of its
//! own, however many clients read it and however slowly. All pieces are made of the texts of the
//! APIs. As trees, the list of a large API would be built, copied and written again for each
//! client.

use std::sync::Arc;
use std::vec;

use bytes::Bytes;

use super::catalog::Catalog;
use super::visible::{Listed, VisibleApi};
use crate::api::ToolIndex;
use crate::caller::client_grant::ClientGrant;

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
