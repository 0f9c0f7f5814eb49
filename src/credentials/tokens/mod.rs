//! Access tokens: grants, the endpoints that give tokens, and where tokens are kept.

pub(crate) mod access_token;
pub(crate) mod issuer_metadata;
pub(crate) mod oauth_client;
pub(crate) mod stored_token;
pub(crate) mod token_endpoint;
pub(crate) mod token_exchange;
pub(crate) mod token_keeper;
pub(crate) mod token_source;
pub(crate) mod token_store;
