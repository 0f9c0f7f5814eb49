//! Receives and sends messages over standard input and output, and over HTTP. How a request is
//! answered is decided in `mcp`.
//!
//! # Adding a transport
//!
//! - `TransportKind` in `config/values.rs` and `Transport` in `config/transport.rs`.
//! - An arm of `serve_transport` in `cli/serve.rs`, and a folder beside this file.
//! - It reads a message with `Message` and has it answered by `answer` in `mcp/dispatch.rs`, with a
//!   `RequestOrigin` of `mcp/connections/connection.rs`.

pub(crate) mod http;
pub(crate) mod login_callback;
pub(crate) mod stdio;
