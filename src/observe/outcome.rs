//! Outcomes of calls.

/// Outcome of a call: `outcome` in the audit log and, for failures, `error_type` in metrics. A
/// closed set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum CallOutcome {
    /// A result without `isError`.
    Ok,
    /// A result with `isError`: the API answered with an error.
    ApiError,
    UnknownTool,
    /// A request with a method that is not served.
    UnknownMethod,
    /// The headers, the metadata or the parameters of the message are not those that MCP demands.
    InvalidMessage,
    InvalidArguments,
    /// The arguments fit the schema, but no request can be made of them.
    InvalidRequest,
    CredentialMissing,
    /// The user's token cannot be exchanged.
    SignInNeeded,
    ScopeMissing,
    /// No place for one more call.
    Busy,
    RateLimited,
    /// The upstream is left alone for now.
    CircuitOpen,
    Timeout,
    Unreachable,
    BrokenReply,
    TooLarge,
    /// The reply could not be written to a file.
    NotSaved,
    /// A person is asked; the call that carries the answer is another one.
    Asked,
    Declined,
    Unanswered,
    /// Cancelled by the client.
    Cancelled,
    /// The process ended before the call.
    CutOff,
    Panic,
    /// There is no API to call.
    Unavailable,
    /// `audit_log_required`, and the line could not be written.
    NotRecorded,
}

impl CallOutcome {
    /// Returns `error.type` of OpenTelemetry's conventions for MCP: `tool_error` for a result of
    /// the API with `isError`, the code of a JSON-RPC error, else a class of ours; empty if nothing
    /// failed.
    pub(crate) fn error_type(self) -> &'static str {
        match self {
            Self::Ok | Self::Asked => "",
            Self::ApiError => "tool_error",
            Self::UnknownTool => "-32602",
            Self::UnknownMethod => "-32601",
            Self::Unavailable => "-32603",
            _ => self.into(),
        }
    }
}
