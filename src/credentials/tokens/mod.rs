//! Access tokens: grants, the endpoints that give tokens, and where tokens are kept.
//!
//! # Adding a way to obtain a token
//!
//! - The request in `credentials/tokens/token_endpoint.rs`.
//! - If all calls share the token, a variant of `Grant` in `credentials/tokens/access_token.rs`; if
//!   it belongs to a user, a file like `credentials/tokens/token_exchange.rs`, which finds tokens by
//!   the digest of the caller. A token that outlives the process has a `TokenOwner` in
//!   `credentials/tokens/stored_token.rs`.
//! - A variant of `Authenticator` in `credentials/authenticator.rs`.

pub(crate) mod access_token;
pub(crate) mod issuer_metadata;
pub(crate) mod oauth_client;
pub(crate) mod stored_token;
pub(crate) mod token_endpoint;
pub(crate) mod token_exchange;
pub(crate) mod token_keeper;
pub(crate) mod token_source;
pub(crate) mod token_store;
