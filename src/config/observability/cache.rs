//! Settings of the cache.

use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::config::choices::read_seconds;
use crate::proxy::CacheOptions;

/// Longest time: a year, beyond which RFC 9111 section 5.3 sees no use.
const MAX_TTL_SECONDS: f64 = 31_536_000.0;
/// Less holds no reply.
const MIN_CACHE_BYTES: usize = 64 << 10;

/// Settings of the cache.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub(crate) struct CacheSettings {
    /// Keep replies to GET requests of read-only tools, as the API allows, in up to this many bytes
    /// of memory, for each API [default: 0, off]
    #[arg(
        long,
        env = "OPENAPI_MCP_CACHE",
        value_name = "BYTES",
        help_heading = "Operations"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<usize>,

    /// Time for which a reply without directives of its own may be kept, in seconds [default: 0]
    #[arg(long, env = "OPENAPI_MCP_CACHE_DEFAULT_TTL", value_parser = read_seconds, value_name = "SECONDS", help_heading = "Operations")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_default_ttl: Option<f64>,
}

/// The settings of the cache; what is wrong with them is pushed to `problems`.
pub(crate) fn resolve_cache(
    settings: &CacheSettings,
    problems: &mut Vec<String>,
) -> Option<CacheOptions> {
    let bytes = settings.cache.filter(|bytes| *bytes > 0);
    if bytes.is_some_and(|bytes| bytes < MIN_CACHE_BYTES) {
        problems.push(format!(
            "--cache must be 0 (no cache) or at least {MIN_CACHE_BYTES} bytes"
        ));
    }
    let ttl = settings.cache_default_ttl.unwrap_or(0.0);
    if !(0.0..=MAX_TTL_SECONDS).contains(&ttl) {
        problems.push(format!(
            "--cache-default-ttl must be between 0 and {MAX_TTL_SECONDS} seconds"
        ));
        return None;
    }
    if ttl > 0.0 && bytes.is_none() {
        problems.push("--cache-default-ttl needs --cache".into());
    }
    Some(CacheOptions {
        bytes: bytes?,
        default_ttl: (ttl > 0.0).then(|| Duration::from_secs_f64(ttl)),
    })
}
