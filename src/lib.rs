//! `openapi-mcp` turns an OpenAPI document into an MCP server.
//!
//! One straight pipe. At start:
//!
//! ```text
//! Source ─read─▶ bytes ─parse─▶ Document ─operations─▶ Operations + Diagnostics ─annotate─▶ Tools ─▶ Server
//! ```
//!
//! and for each call:
//!
//! ```text
//! JSON arguments ─bind─▶ Arguments ─build─▶ Request ─send─▶ Response ─render─▶ CallToolResult
//! ```
//!
//! Only `read`, `send` and the server do IO; everything between is pure. The modules below come in reading order.

pub mod annotate;
pub mod outbound;
pub mod proxy;
pub mod spec;
