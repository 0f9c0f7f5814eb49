//! Signatures of whole requests.

pub(crate) mod aws;
