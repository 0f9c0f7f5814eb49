//! Settings of which clients may call, and what.

pub(crate) mod access;
pub(crate) mod access_rules;
pub(crate) mod approval;
pub(crate) mod claims;
pub(crate) mod introspection;
pub(crate) mod named_tokens;
pub(crate) mod scopes;
