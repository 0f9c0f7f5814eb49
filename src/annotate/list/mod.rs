//! Which schemas tools have: how large they may be in the list, which are made when they are used, and which replies have one.

pub(super) mod list_budget;
pub(crate) mod on_use;
mod outputs;
