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
//! Only `read`, `send` and the server do IO; everything between is pure. The modules come in reading order: what the API
//! is, what its tools look like, what a call does, the two together, and then the doors to the outside.

pub mod spec;

pub mod annotate;
pub mod proxy;

pub mod api;

pub mod check;
pub mod mock;
pub mod server;

pub mod cli;
pub mod config;
pub mod error;
pub mod outbound;
