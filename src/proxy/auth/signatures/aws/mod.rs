//! Requests that are signed for AWS (Signature Version 4), and the access keys that sign them.

pub(crate) mod access_keys;
mod issued_keys;
pub(crate) mod key_endpoint;
mod key_reply;
pub(crate) mod request_signer;
pub(crate) mod signature_options;
