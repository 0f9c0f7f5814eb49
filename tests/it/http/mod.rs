//! Streamable HTTP: who may connect, what a client may send, and what it costs the others.

mod access;
mod acting_as_user;
pub mod audit;
mod audit_outcomes;
pub mod auth_oauth;
mod auth_static;
mod auth_tokens;
mod health;
mod host_and_origin;
mod hostile_clients;
mod introspection;
pub mod metrics;
mod page;
mod sessions;
mod streams;
mod tenants;
mod tls;
#[cfg(target_os = "linux")]
mod unconfigured;
