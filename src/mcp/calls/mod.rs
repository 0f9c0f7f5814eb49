//! Calls of operations.

mod answered_questions;
pub(crate) mod approval;
pub(crate) mod plan;
mod session;
