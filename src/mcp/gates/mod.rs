//! Search mode: a few tools that stand for all operations, so that a client lists thousands of them in a few thousand tokens. Calls
//! are split by effect, so that the hints of each gate are true of all operations that it lets through.

mod describe;
mod gate_set;
mod inner_call;
mod listing;
mod mode;
mod search_tool;

pub(crate) use self::describe::describe_operations;
pub(crate) use self::gate_set::Gates;
pub(crate) use self::inner_call::{InnerCall, read_inner_call};
pub(crate) use self::mode::{ListMode, ListOptions, decide};
pub(crate) use self::search_tool::search_operations;
