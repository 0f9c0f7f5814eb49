//! Calls of operations, from the name of a tool to its result. `plan.rs` finds what is meant,
//! `gate.rs` decides whether it may happen, and `session.rs` makes what the gate has admitted: it is
//! the only caller of an API. Whatever makes calls differs by the plan that it makes, and by the way
//! in which somebody can be asked.
//!
//! The result of `run` is what a model reads: filtered, cut to its size, with notes. What a program
//! reads must be taken before that, from `clean` in `proxy/call/finish.rs`, where secrets are out and
//! nothing is cut.
//!
//! # Adding something that makes one or several calls
//!
//! - An `OperationCall` in `mcp/calls/plan.rs` for each call. The gate admits each by itself, and
//!   `run` in `mcp/calls/session.rs` makes it. If it is a tool, a variant of `Plan`.
//! - An `Asking` of `mcp/calls/approval.rs`, if somebody can be asked for consent.
//! - A `CallObservation` (`observe/call.rs`) for each call, and its `watch` around its `admit` and
//!   its `run`. A second call under one record overwrites the first and has no line of its own, also
//!   with `audit_log_required`; in a spawned task, `note` does nothing.

pub(crate) mod approval;
pub(crate) mod by_link;
pub(crate) mod gate;
pub(crate) mod plan;
pub(crate) mod session;
