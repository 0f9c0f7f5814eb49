//! Integration tests: the real binary, through the interfaces that users have.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should stop"
)]
#![expect(unreachable_pub, reason = "nobody but these tests sees this")]

#[path = "../support/mod.rs"]
mod support;

mod approval;
mod architecture;
mod cli;
mod documents;
mod files;
mod floors;
mod http;
mod install;
mod mcp;
mod promises;
mod several;
mod shared_state;
mod sources;
mod stdio;
mod traces;
mod upstream;
mod waiting;
mod words;
