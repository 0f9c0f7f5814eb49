//! `openapi-mcp bundle`: the server as an MCP bundle.

mod archive;
pub(crate) mod bundle;
mod document_files;
mod manifest;
mod platform;
mod program;
