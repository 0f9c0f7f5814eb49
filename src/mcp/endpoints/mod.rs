//! The endpoints of a server: `/mcp` with all its APIs, `/mcp/<name>` with one of them, and each
//! with `/readonly` behind it for what only reads. Each is an MCP server of its own, with a list
//! and an introduction of its own.
//!
//! # Adding an endpoint
//!
//! - `endpoints_of` in `mcp/endpoints/served_apis.rs` lists it.
//! - `View` in `mcp/visible.rs` says what it shows.
//! - `ServedApis` in `mcp/endpoints/served_apis.rs` gives it its catalog.

pub(crate) mod introduction;
pub(crate) mod served_apis;
