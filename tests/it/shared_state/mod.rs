//! `--shared-state`: the state that replicas share through a real Redis, also if Redis fails.

mod confirmation;
mod limits;
mod refresh;
mod settings;
mod tenants;
mod tls;

use crate::support::{HttpServer, Redis, Session};

/// The key that all replicas have.
const KEY: (&str, &str) = (
    "STATE_KEY",
    "a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebf",
);

/// The flags of a replica.
fn sharing<'a>(url: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["--shared-state", url, "--state-key-env", KEY.0], more].concat()
}

/// A replica over stdio.
fn stdio_replica(redis: &Redis, more: &[&str], variables: &[(&str, &str)]) -> Session {
    let url = redis.url();
    let args = [&["serve"], &sharing(&url, more)[..]].concat();
    Session::start_with(&args, &[&[KEY], variables].concat())
}

/// A replica over HTTP.
pub fn http_replica(redis: &Redis, more: &[&str], variables: &[(&str, &str)]) -> HttpServer {
    let url = redis.url();
    HttpServer::start_with(&sharing(&url, more), &[&[KEY], variables].concat())
}

/// Lets a call wait for Redis for as long as a busy machine takes: for what is to be shared in any
/// case.
const PATIENT: [&str; 1] = ["shared_state_timeout: 10"];

/// Asserts that secrets are not in Redis as plain text.
pub fn assert_hidden(redis: &Redis, secrets: &[&str]) {
    let everything = redis.everything();
    let shown = String::from_utf8_lossy(&everything);
    for secret in secrets {
        let found = everything
            .windows(secret.len())
            .any(|bytes| bytes == secret.as_bytes());
        assert!(!found, "{secret} can be read: {shown}");
    }
    for key in redis.keys() {
        assert!(key.starts_with("openapi-mcp:"), "{key}");
    }
}
