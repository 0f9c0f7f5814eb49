//! `openapi-mcp bundle` and `registry`: the server as an MCP bundle, and its entry in the MCP registry.

mod archive;
pub(crate) mod bundle;
mod document_files;
mod manifest;
mod platform;
mod program;
pub(crate) mod registry;
