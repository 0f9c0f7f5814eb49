//! From a reply to a result: what a model gets to see of it.

pub(crate) mod failure;
pub(crate) mod filter;
pub(crate) mod multipart;
pub(crate) mod pagination;
pub(crate) mod records;
pub(crate) mod render;
pub(crate) mod sandbox;
pub(crate) mod truncate;
