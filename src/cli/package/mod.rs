//! `openapi-mcp bundle`: the server as an MCP bundle.

pub(crate) mod bundle;
mod document_files;
mod manifest;
mod program;
