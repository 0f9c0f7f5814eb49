//! Credentials of an API: the values for its security schemes, OAuth clients, and signatures.

pub(crate) mod oauth_client;
pub(crate) mod references;
pub(crate) mod settings;
pub(crate) mod signature;
