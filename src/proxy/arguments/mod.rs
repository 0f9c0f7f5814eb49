//! The arguments of a call: checked against the input schema, repaired if only one reading fits,
//! and given the property names of the wire again.

pub(crate) mod check;
pub(crate) mod placement;
mod problem;
mod problems;
pub(crate) mod repair;
pub(crate) mod ruled;
pub(crate) mod validate;
