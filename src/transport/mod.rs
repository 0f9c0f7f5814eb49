//! The ways in which messages come and go: standard input and output, and HTTP. They know no method of MCP.

pub(crate) mod http;
pub(crate) mod stdio;
