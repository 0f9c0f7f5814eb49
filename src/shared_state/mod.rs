//! State that the replicas of a server share in Redis or Valkey: limits, refresh tokens, and answers
//! to questions.
//!
//! Values are encrypted and names are keyed hashes, so that the server cannot read them. All keys
//! begin with `openapi-mcp:`.
//!
//! # Adding something that replicas share
//!
//! - A file in `shared_state/` with its `RedisScript` (`shared_state/client.rs`), made of a
//!   `SharedState` (`shared_state/state.rs`).
//! - A variant of `StatePurpose` in `shared_state/connection.rs`, with its name in `SHARED_STATE_USES` in
//!   `observe/metrics/labels.rs`.
//! - Each user of it decides what happens without the server, and documents it.

pub(crate) mod cells;
pub(crate) mod client;
pub(crate) mod connection;
pub(crate) mod keys;
pub(crate) mod rate;
pub(crate) mod record;
pub(crate) mod state;
