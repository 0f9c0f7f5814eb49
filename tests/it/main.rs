//! Integration tests: the real binary, through the doors that users use.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should stop"
)]
#![expect(unreachable_pub, reason = "nobody but these tests sees this")]

mod support;

mod access;
mod annotations;
mod bad_input;
mod call_cases;
mod checked;
mod client_hostile;
mod clients_hostile;
mod command_line;
mod confirmed;
mod corpus;
mod credentials;
mod documents_hostile;
mod encrypted;
mod filtered;
mod floors;
mod golden;
mod http_door;
mod life_cycle;
mod limits;
mod mocked;
mod mutated;
mod oauth;
mod protocol;
mod readme;
mod reloaded;
mod replies_hostile;
mod requests_hostile;
mod safety;
mod tls;
mod tokens;
mod uploads;
