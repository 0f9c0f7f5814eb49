//! Outbound authentication: which of the operator's credentials each operation carries, and how they get into a request.

pub(crate) mod digest;
pub(crate) mod forward;
pub(crate) mod resolve;
pub(crate) mod scheme;
pub(crate) mod token_source;
pub(crate) mod values;
