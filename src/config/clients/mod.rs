//! Which clients may call, and what.

pub(crate) mod access;
