//! What the replicas of a server share, in Redis or Valkey: limits, refresh tokens, answers to questions and replies that are kept.
//!
//! Nothing that is kept there can be read there: values are encrypted, and names are keyed hashes. All keys begin with
//! `openapi-mcp:{INSTANCE}:`; the braces make a cluster keep them together, should one be supported some day.

mod client;
pub(crate) mod keys;
pub(crate) mod link;
pub(crate) mod rate;
pub(crate) mod record;
pub(crate) mod replies;
mod server;
pub(crate) mod state;
