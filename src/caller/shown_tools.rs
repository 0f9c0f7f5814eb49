//! The tools of an API that a caller may list at an endpoint, and how it calls them.

use std::sync::Arc;

use super::client_grant::Permission;

/// The tools of an API that a caller may list at an endpoint; all of them by default.
#[derive(Clone, Default)]
pub(crate) struct ShownTools {
    /// The permission for each tool, by its place; `None` if all are granted.
    pub(crate) permissions: Option<Arc<[Permission]>>,
    /// True if the endpoint serves only tools that count as read-only.
    pub(crate) reads_only: bool,
    /// The names of the meta-tools that call what reads, what writes and what is destructive; `None`
    /// if each tool is called by its own name.
    pub(crate) meta_tools: Option<Arc<[String; 3]>>,
}

/// A tool, as far as it decides who may list it and how it is called.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct NamedTool {
    /// The name of the tool.
    pub(crate) name: Arc<str>,
    /// Its place among the tools of its API.
    pub(crate) place: usize,
    pub(crate) is_read_only: bool,
    pub(crate) is_destructive: bool,
}

impl ShownTools {
    /// Returns true if the tool at that place is one of them.
    pub(crate) fn has(&self, place: usize, is_read_only: bool) -> bool {
        let is_granted =
            |permissions: &Arc<[Permission]>| permissions.get(place) == Some(&Permission::Granted);
        (!self.reads_only || is_read_only) && self.permissions.as_ref().is_none_or(is_granted)
    }

    /// Returns how the caller calls a tool; `None` if it may not list it.
    pub(crate) fn call_of(&self, tool: &NamedTool) -> Option<String> {
        if !self.has(tool.place, tool.is_read_only) {
            return None;
        }
        let Some(meta_tools) = &self.meta_tools else {
            return Some(tool.name.to_string());
        };
        let [reads, writes, destroys] = &**meta_tools;
        let meta_tool = match (tool.is_read_only, tool.is_destructive) {
            (true, _) => reads,
            (false, false) => writes,
            (false, true) => destroys,
        };
        Some(format!("`{meta_tool}` with operation `{}`", tool.name))
    }
}
