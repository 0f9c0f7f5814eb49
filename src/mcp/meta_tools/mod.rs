//! Search mode: a few tools that find, describe and call all operations, so that the list of an API with thousands of operations takes a
//! few thousand tokens. There is one calling tool for each effect, so that its hints are true of all operations that it calls.
//!
//! # Adding a meta-tool
//!
//! - A variant of `MetaToolKind` in `annotate/meta_tool_names.rs`, which reserves its name.
//! - Its hints, description and input schema in `mcp/meta_tools/listing.rs`.
//! - `resolve` in `mcp/resolution.rs` makes a `Resolution` of its name and arguments; scopes, confirmation and call use that value.
//! - An arm of `call_tool` in `mcp/tool_call.rs`, and of the command in `cli/call/mod.rs`, if it is neither a call nor a lookup.

mod describe;
mod inner_call;
mod listing;
mod meta_tool_set;
mod mode;
mod search_tool;
mod wait_tool;

pub(crate) use self::describe::describe_operations;
pub(crate) use self::inner_call::{InnerCall, OpenedWait, RefusedCall, read_inner_call};
pub(crate) use self::listing::{MAX_QUERY_LENGTH, may_wait, tag_counts};
pub(crate) use self::meta_tool_set::MetaTools;
pub(crate) use self::mode::{ListMode, ListOptions, decide};
pub(crate) use self::search_tool::{has_effect_and_tag, rank_operations, search_operations};
pub(crate) use self::wait_tool::read_handle;
