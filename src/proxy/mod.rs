//! What a call does: from arguments to an HTTP request, and from the reply to a result. Knows the document's operations,
//! and nothing of how tools look.

pub mod access;
pub mod body;
pub mod breaker;
pub mod client;
pub mod content;
pub mod credential;
pub mod cut;
pub mod destination;
pub mod digest;
pub mod error;
pub mod events;
mod failure;
pub mod file;
pub mod filter;
pub mod folder;
pub mod forward;
pub mod limit;
pub mod media;
pub mod multipart;
pub mod oauth;
pub mod paging;
pub mod parts;
pub mod proof;
#[cfg(test)]
mod properties;
pub mod redact;
pub mod render;
pub mod repair;
pub mod request;
pub mod restore;
pub mod retry;
pub mod sandbox;
pub mod style;
pub mod target;
pub mod unescape;
pub mod upstream;
pub mod validate;
pub mod xml;

pub use access::{Access, Advice, Credential};
pub use client::{CallOptions, Progress, Response};
pub use credential::{Credentials, Given, Part};
pub use error::CallError;
pub use forward::Forwarding;
pub use request::{Fixed, Request};
pub use sandbox::Sandbox;
pub use target::Base;
pub use upstream::{Upstream, UpstreamOptions};
pub use validate::Validator;
