//! Calls of operations, from the name of a tool to its result. `plan.rs` finds what is meant,
//! `gate.rs` decides whether it may happen, and `session.rs` makes what the gate has admitted: it is
//! the only caller of an API. Whatever makes calls differs by the plan that it makes, and by the way
//! in which somebody can be asked.
//!
//! # Adding something that calls operations
//!
//! - An `OperationCall` in `mcp/calls/plan.rs`.
//! - A variant of `Via` in `mcp/calls/gate.rs`, if it asks for consent or is recorded in another way.

pub(crate) mod approval;
pub(crate) mod by_link;
pub(crate) mod gate;
pub(crate) mod plan;
pub(crate) mod session;
mod verdict;
