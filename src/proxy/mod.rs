//! What a call does: from arguments to an HTTP request, and from the reply to a result. Knows the document's operations,
//! and nothing of how tools look.

pub(crate) mod access;
pub(crate) mod body;
pub(crate) mod breaker;
pub(crate) mod client;
pub(crate) mod content;
pub(crate) mod credential;
pub(crate) mod cut;
pub(crate) mod destination;
pub(crate) mod digest;
pub(crate) mod error;
pub(crate) mod events;
mod failure;
pub(crate) mod file;
pub(crate) mod filter;
pub(crate) mod folder;
pub(crate) mod forward;
pub(crate) mod limit;
pub(crate) mod media;
pub(crate) mod multipart;
pub(crate) mod oauth;
pub(crate) mod paging;
pub(crate) mod parts;
pub(crate) mod proof;
#[cfg(test)]
mod properties;
pub(crate) mod redact;
pub(crate) mod render;
pub(crate) mod repair;
pub(crate) mod request;
pub(crate) mod restore;
pub(crate) mod retry;
pub(crate) mod sandbox;
pub(crate) mod style;
pub(crate) mod target;
pub(crate) mod unescape;
pub(crate) mod upstream;
pub(crate) mod validate;
pub(crate) mod xml;

pub(crate) use access::{Access, Credential};
pub use client::Response;
pub(crate) use client::{CallOptions, Progress};
pub(crate) use credential::{Credentials, Given, Part};
pub(crate) use error::CallError;
pub(crate) use forward::Forwarding;
pub(crate) use request::Fixed;
pub use request::Request;
pub(crate) use sandbox::Sandbox;
pub(crate) use target::Base;
pub(crate) use upstream::{Upstream, UpstreamOptions};
pub(crate) use validate::Validator;
