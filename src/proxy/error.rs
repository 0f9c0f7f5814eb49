//! Why a call failed before or after the upstream answered, in words for the model.

use std::time::Duration;

use thiserror::Error;

use super::target::TargetError;

/// A failed call. Every variant becomes a result with `isError`, never a protocol error (MCP 2025-11-25, SEP-1303).
#[derive(Debug, Clone, Error)]
pub enum CallError {
    /// The arguments do not fit the input schema; the text lists every problem.
    #[error("{0}")]
    Arguments(String),
    /// The URL was not made.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// An argument cannot be sent as it is.
    #[error("`{argument}` {problem}")]
    Unsendable {
        /// The argument's name.
        argument: String,
        /// What is wrong with it.
        problem: String,
    },
    /// What the operator has to set first.
    #[error("{0}")]
    Credential(std::sync::Arc<str>),
    /// The whole call took too long.
    #[error("the API did not answer within {} s", .0.as_secs_f32())]
    Timeout(Duration),
    /// No connection, or it broke.
    #[error("{0}")]
    Network(String),
    /// The reply was not read to its end.
    #[error("the reply is larger than {limit} bytes, which is this server's limit; ask for less, for instance by paging or filtering")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
}
