//! Settings of who may call over HTTP, and how much.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::server::http::{Access, Limits, Token};

/// Settings of who may call over HTTP, and how much.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AccessSettings {
    /// A bearer token that HTTP clients must send is in this environment variable (repeatable)
    #[arg(long, env = "OPENAPI_MCP_AUTH_TOKEN_ENV", value_delimiter = ',', value_name = "VARIABLE")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub auth_token_env: Vec<String>,

    /// A file of such tokens, one a line; it is read again when it changes (repeatable)
    #[arg(long, env = "OPENAPI_MCP_AUTH_TOKEN_FILE", value_delimiter = ',', value_name = "FILE")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub auth_token_file: Vec<String>,

    /// The most connections at the same time; more wait to be accepted [default: 1024]
    #[arg(long, env = "OPENAPI_MCP_MAX_CONNECTIONS", value_name = "NUMBER")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<usize>,

    /// The most requests of one client in a second, by its token, else by its address [default: no limit]
    #[arg(long, env = "OPENAPI_MCP_CLIENT_RATE_LIMIT", value_name = "NUMBER")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_rate_limit: Option<f64>,
}

impl AccessSettings {
    /// Whether nobody is asked who they are.
    pub(super) fn is_open(&self) -> bool {
        self.auth_token_env.is_empty() && self.auth_token_file.is_empty()
    }

    /// The flags that are given, all of which need HTTP.
    pub(super) fn given(&self) -> impl Iterator<Item = &'static str> {
        let flags = [
            ("--auth-token-env", !self.auth_token_env.is_empty()),
            ("--auth-token-file", !self.auth_token_file.is_empty()),
            ("--max-connections", self.max_connections.is_some()),
            ("--client-rate-limit", self.client_rate_limit.is_some()),
        ];
        flags.into_iter().filter(|(_, given)| *given).map(|(flag, _)| flag)
    }
}

/// How clients prove who they are.
pub(super) fn access(settings: &AccessSettings, problems: &mut Vec<String>) -> Access {
    let mut access = Access::default();
    for variable in &settings.auth_token_env {
        match std::env::var(variable) {
            Ok(value) => match Token::in_text(&value) {
                Ok(tokens) => access.tokens.extend(tokens),
                Err(wrong) => problems.extend(
                    wrong
                        .iter()
                        .map(|problem| format!("--auth-token-env: the variable `{variable}`: {problem}")),
                ),
            },
            Err(_) => problems.push(format!("--auth-token-env: the variable `{variable}` is not set, or is no text")),
        }
    }
    for path in &settings.auth_token_file {
        match Token::in_file(Path::new(path)) {
            Ok(tokens) => access.token_files.push((PathBuf::from(path), tokens)),
            Err(wrong) => problems.extend(wrong.iter().map(|problem| format!("--auth-token-file: {problem}"))),
        }
    }
    access
}

/// How much clients may ask for.
pub(super) fn limits(settings: &AccessSettings, problems: &mut Vec<String>) -> Limits {
    let mut limits = Limits::default();
    match settings.max_connections {
        Some(0) => problems.push("--max-connections must be more than 0".into()),
        Some(connections) => limits.connections = connections.min(tokio::sync::Semaphore::MAX_PERMITS),
        None => {}
    }
    match settings.client_rate_limit {
        Some(rate) if !(0.001..=1e6).contains(&rate) => {
            problems.push("--client-rate-limit must be between 0.001 and 1000000 requests a second".into());
        }
        rate => limits.rate = rate,
    }
    limits
}
