//! Which operations may become tools, and which schemas those have: how large they may be in the list, which are made when they are
//! used, which replies have one, and which other tools descriptions name.

pub(super) mod candidate;
pub(super) mod merge_patch;
pub(crate) mod on_use;
mod outputs;
pub(crate) mod tool_json;
