//! The list of tools: which operations become tools; their schemas, the size of these in the list,
//! and those that are made on first use; schemas of replies; and the other tools that descriptions
//! name.

pub(super) mod candidate;
pub(super) mod merge_patch;
mod outputs;
pub(crate) mod tool_json;
pub(crate) mod unfinished_tool;
