//! Search mode: a few tools that find, describe and call all operations, so that the list of an API
//! with thousands of operations takes a few thousand tokens. There is one calling tool for each
//! effect, so that its hints are true of all operations that it calls.
//!
//! # Adding a tool that is not an operation
//!
//! - A variant of `MetaToolKind` in `annotate/names.rs`, which reserves its name.
//! - `mcp/meta_tools/meta_tools.json` has its hints, description and input schema; `is_there` and
//!   `why_meta_tool_is_missing` in `mcp/meta_tools/listing.rs` say when it is listed.
//! - A module beside `mcp/meta_tools/inner_call.rs` reads its arguments: an answer, or the call of
//!   an operation.
//! - An arm of `plan` in `mcp/calls/plan.rs` makes a `Plan` of that. Clients and
//!   `openapi-mcp call` both use it.

mod inner_call;
mod listing;
mod meta_tool_set;
mod search_tool;

pub(crate) use self::inner_call::{InnerCall, describe_operations, read_handle, read_inner_call};
pub(crate) use self::listing::{MAX_QUERY_LENGTH, tag_counts, why_meta_tool_is_missing};
pub(crate) use self::meta_tool_set::{MetaTools, decide};
pub(crate) use self::search_tool::{has_effect_and_tag, rank_operations, search_operations};
