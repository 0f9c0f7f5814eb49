//! The reader and the writer of messages for all versions of MCP, and the differences between the
//! versions.
//!
//! # Adding a version of MCP
//!
//! - A variant of `ProtocolVersion` in `mcp/protocol/version.rs`, and each difference as a method.
//! - The rules of its HTTP headers in `transport/http/message.rs`.
//! - The members of lists in `mcp/protocol/answer.rs`, and those of a tool's result in `write_json`
//!   in `results/tool_result.rs`. The results of the first request are types of rmcp, made
//!   in `mcp/handler.rs`.

pub(crate) mod answer;
pub(crate) mod message;
pub(crate) mod unreadable;
pub(crate) mod version;
