//! The list of tools: the operations that become tools, and their schemas: their size in the list, those that are made on first use, those
//! of replies, and the other tools that descriptions name.

pub(super) mod candidate;
pub(super) mod merge_patch;
mod outputs;
pub(crate) mod tool_json;
pub(crate) mod unfinished_tool;
