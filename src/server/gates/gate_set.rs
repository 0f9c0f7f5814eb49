//! The gates of an endpoint: which are listed, under which names.

use rmcp::model::{CallToolResult, ContentBlock, JsonObject};

use super::listing::{about_gates, write_gates};
use crate::annotate::gate_names::{self, GateKind};
use crate::annotate::{Effect, Pattern};
use crate::api::{Api, ToolIndex};
use crate::text::{MAX_DESCRIPTION_BYTES, truncate};

/// The gates of an endpoint.
pub(crate) struct Gates {
    prefix: String,
    /// The classes that have operations.
    effects: Vec<Effect>,
    /// The gates as clients get them, each as JSON.
    texts: Vec<Box<str>>,
    /// The operations that are listed beside the gates.
    pinned: Vec<ToolIndex>,
}

impl Gates {
    /// The gates of an API; `pins` are the operations that are listed as well.
    #[must_use]
    pub(crate) fn new(api: &Api, prefix: &str, pins: &[Pattern]) -> Self {
        let has = |effect: &Effect| api.iter().any(|offered| offered.enforcement.effect() == *effect);
        let effects: Vec<Effect> = Effect::ALL.into_iter().filter(has).collect();
        let is_pinned = |index: &ToolIndex| {
            let offered = api.offered(*index);
            let name = offered.tool.name.as_ref();
            pins.iter().any(|pin| pin.matches([name, name], offered.operation))
        };
        Self {
            prefix: prefix.to_owned(),
            texts: write_gates(api, prefix, &effects),
            effects,
            pinned: api.indexes().filter(is_pinned).collect(),
        }
    }

    /// The gates as clients get them.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(AsRef::as_ref)
    }

    /// What a client is told of the server: the API, the three steps, the tags.
    #[must_use]
    pub(crate) fn instructions(&self, api: &Api) -> String {
        truncate(&about_gates(api, &self.prefix, &self.effects), MAX_DESCRIPTION_BYTES)
    }

    /// The operations that are listed beside the gates.
    pub(crate) fn pinned(&self) -> &[ToolIndex] {
        &self.pinned
    }

    /// The gate of that name, where it is listed.
    #[must_use]
    pub(crate) fn kind_of(&self, name: &str) -> Option<GateKind> {
        let kind = gate_names::kind_of(name.strip_prefix(self.prefix.as_str())?)?;
        let is_listed = kind.effect().is_none_or(|effect| self.effects.contains(&effect));
        is_listed.then_some(kind)
    }

    /// The name of a gate as it is listed.
    #[must_use]
    pub(crate) fn name_of(&self, kind: GateKind) -> String {
        format!("{}{}", self.prefix, kind.name())
    }
}

/// A result with `isError` that says what is wrong and what to do.
#[must_use]
pub(crate) fn refused(text: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// The keys of some arguments that are not among the known ones.
pub(super) fn unknown_keys<'a>(arguments: &'a JsonObject, known: &[&str]) -> Vec<&'a str> {
    arguments.keys().map(String::as_str).filter(|key| !known.contains(key)).collect()
}
