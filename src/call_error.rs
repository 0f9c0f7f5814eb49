//! Errors of calls before or after the upstream answered, in words for the model.
//!
//! # Adding a limit of calls, or of what their results take
//!
//! - The room that holds what is limited applies it: `proxy/upstream.rs` for requests,
//!   `proxy/waiting/` for waiting calls; a budget of a client is in `caller/`, like
//!   `caller/memory_budget.rs`. `call_tool` in `mcp/calls/session.rs` has every result, also of
//!   tools that call nothing.
//! - A variant of `CallError` in `call_error.rs`, whose text the result has; the gate refuses by a
//!   `ToolResult` of its own.
//! - A variant of `CallOutcome` in `observe/metrics/labels.rs`, which metrics and the audit log report.

use std::time::Duration;

use thiserror::Error;

use crate::caller::ClientKey;
use crate::observe::metrics::labels::CallOutcome;
use crate::outbound::breaker::CircuitOpen;

/// A failed call. Every variant becomes a result with `isError`, never a protocol error (MCP
/// 2025-11-25, SEP-1303).
#[derive(Debug, Clone, Error)]
pub enum CallError {
    /// The arguments do not fit the input schema; the text lists every problem.
    #[error("{0}")]
    Arguments(String),
    /// The URL was not made.
    #[error("{0}")]
    Target(String),
    /// An argument cannot be sent as it is.
    #[error("`{argument}` {problem}")]
    InvalidRequest {
        /// The argument's name.
        argument: String,
        /// Problem of the argument.
        problem: String,
    },
    /// The setting that the operator must make first.
    #[error("{0}")]
    Credential(std::sync::Arc<str>),
    /// The action that the user must take first.
    #[error("{sentence}")]
    SignIn {
        /// Sentence for the model.
        sentence: std::sync::Arc<str>,
        /// Challenge for the client.
        challenge: Option<SignInChallenge>,
    },
    /// The call contradicts the operator's settings; the log has the details.
    #[error("{0}")]
    Setting(String),
    /// The whole call took too long.
    #[error("the API did not answer within {} s", .0.as_secs_f32())]
    Timeout(Duration),
    /// No reply came: no connection was made, or it ended before the reply began.
    #[error("{sentence}")]
    NoResponse {
        /// Description, without the host.
        sentence: &'static str,
        /// Cause, for the log.
        cause: String,
        /// True if there was a connection.
        connected: bool,
    },
    /// The reply broke off, or is not valid HTTP.
    #[error("{sentence}")]
    Network {
        /// Description, without the host.
        sentence: &'static str,
        /// Cause, for the log.
        cause: String,
    },
    /// No place for one more call.
    #[error("{0}; nothing was sent; try again in a moment, with fewer calls at a time")]
    Busy(&'static str),
    /// The next turn of this server's pace comes too late.
    #[error("this server sends no more requests to the API for now; nothing was sent; try again in {} s", .0.as_secs().saturating_add(1))]
    RateLimited(Duration),
    /// The API failed too often.
    #[error("the API failed {failures} times in a row and is left alone for now; nothing was sent; {}", again(.left))]
    CircuitOpen {
        /// Number of failures.
        failures: u32,
        /// Remaining pause.
        left: Duration,
    },
    /// `audit_log_required`.
    #[error(
        "the call was not made, because it could not be written to the audit log of this server; nothing was sent; whoever runs the server has to look after the log"
    )]
    NotRecorded,
    /// The agreement of a person cannot be used.
    #[error(
        "a person has agreed to this call, but the agreement was used by another call or has ended, or it cannot be known whether it was; nothing was sent; call again to ask"
    )]
    NotAgreed,
    /// No memory is left for the reply.
    #[error(
        "this server holds as many replies for you as its memory allows, and dropped the rest of this one; the request was sent; try again in a moment, with fewer calls at a time, or ask for less"
    )]
    NoMemory,
    /// The reply was not read to its end.
    #[error("{}", describe_too_large(*.limit, .file.as_ref()))]
    TooLarge {
        /// The limit.
        limit: usize,
        /// The reply, if a setting would make it a file.
        file: Option<UndeliveredFile>,
    },
    /// The reply is larger than a file may be.
    #[error(
        "the reply is larger than {limit} bytes, the limit of this server for files, and was not saved; ask for less, or its operator can raise `max_file_bytes`"
    )]
    FileTooLarge {
        /// The limit.
        limit: u64,
    },
    /// The reply could not be written to a file.
    #[error(
        "the reply could not be saved: {sentence}; nothing of it was kept, and the request was sent"
    )]
    NotSaved {
        /// Description, without the path.
        sentence: &'static str,
        /// Cause, for the log.
        cause: String,
    },
}

/// A reply that would be a file if the operator allowed it.
#[derive(Debug, Clone)]
pub struct UndeliveredFile {
    /// Its media type.
    pub(crate) media_type: Box<str>,
    /// Its number of bytes, if the API says so.
    pub(crate) length: Option<u64>,
    /// The setting that would deliver it.
    pub(crate) setting: &'static str,
}

/// A user's token is not good enough for the API, and another one may be (RFC 6750 section 3.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInChallenge {
    /// The user.
    pub(crate) user: ClientKey,
    /// Claims that it must have, as Entra writes them.
    pub(crate) claims: Option<String>,
    /// True if it has only expired.
    pub(crate) is_expired: bool,
}

impl CallError {
    /// Makes a [`Self::InvalidRequest`].
    pub(crate) fn invalid_request(argument: &str, problem: impl Into<String>) -> Self {
        Self::InvalidRequest {
            argument: argument.to_owned(),
            problem: problem.into(),
        }
    }

    /// Returns true if only the caller can resolve it, so it is not reported to the operator.
    #[must_use]
    pub fn is_the_callers(&self) -> bool {
        matches!(
            self,
            Self::Arguments(_)
                | Self::Target(_)
                | Self::InvalidRequest { .. }
                | Self::SignIn { .. }
                | Self::NotAgreed
        )
    }

    /// Returns true if the API does not answer, or not correctly; false for a refusal by this
    /// server.
    pub(crate) fn is_of_the_api(&self) -> bool {
        matches!(
            self,
            Self::Timeout(_)
                | Self::NoResponse { .. }
                | Self::Network { .. }
                | Self::CircuitOpen { .. }
        )
    }

    /// Returns its name in metrics and the audit log.
    pub(crate) fn outcome(&self) -> CallOutcome {
        match self {
            Self::Arguments(_) => CallOutcome::InvalidArguments,
            Self::Target(_) | Self::InvalidRequest { .. } | Self::Setting(_) => {
                CallOutcome::InvalidRequest
            }
            Self::Credential(_) => CallOutcome::CredentialMissing,
            Self::SignIn { .. } => CallOutcome::SignInNeeded,
            Self::Timeout(_) => CallOutcome::Timeout,
            Self::NoResponse { .. } => CallOutcome::Unreachable,
            Self::Network { .. } => CallOutcome::BrokenReply,
            Self::Busy(_) | Self::NoMemory => CallOutcome::Busy,
            Self::RateLimited(_) => CallOutcome::RateLimited,
            Self::CircuitOpen { .. } => CallOutcome::CircuitOpen,
            Self::TooLarge { .. } | Self::FileTooLarge { .. } => CallOutcome::TooLarge,
            Self::NotSaved { .. } => CallOutcome::NotSaved,
            Self::NotRecorded => CallOutcome::NotRecorded,
            Self::NotAgreed => CallOutcome::Unanswered,
        }
    }

    /// The chain of errors below a connection or reply that failed. It may name hosts and
    /// addresses: it is for the log alone.
    pub(crate) fn cause(&self) -> Option<&str> {
        match self {
            Self::NoResponse { cause, .. }
            | Self::Network { cause, .. }
            | Self::NotSaved { cause, .. } => Some(cause)
                .filter(|cause| !cause.is_empty())
                .map(String::as_str),
            _ => None,
        }
    }
}

impl From<CircuitOpen> for CallError {
    fn from(CircuitOpen { failures, left }: CircuitOpen) -> Self {
        Self::CircuitOpen { failures, left }
    }
}

fn describe_too_large(limit: usize, file: Option<&UndeliveredFile>) -> String {
    let Some(file) = file else {
        return format!(
            "the reply is larger than {limit} bytes, which is this server's limit; ask for less, for instance by paging or filtering"
        );
    };
    let length = file
        .length
        .map_or_else(String::new, |length| format!(", {length} bytes"));
    format!(
        "the reply ({}{length}) is larger than {limit} bytes, which is this server's limit; {}, which its operator can set, would deliver it as a file",
        file.media_type, file.setting
    )
}

fn again(left: &Duration) -> String {
    if left.is_zero() {
        "another call is trying it right now".into()
    } else {
        format!(
            "it is tried again in {} s",
            left.as_secs().saturating_add(1)
        )
    }
}
