//! The labels of metrics, each with the closed set of its values.
//!
//! # Adding a label of a metric
//!
//! - A field of a struct in `observe/metrics/labels.rs`, with a closed set of values.
//! - Its value: `end` in `observe/call.rs` fills `OperationLabels`, and `OriginLabels` is made by
//!   `origin_labels` in `observe/upstream.rs`.
//! - A label of a histogram multiplies its series, which `MAX_SERIES` in `observe/metrics/mod.rs`
//!   limits.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

use http::{Method, StatusCode};
use prometheus_client::encoding::{EncodeLabel as _, EncodeLabelSet, LabelSetEncoder};

/// Value that replaces one outside of the set of a label.
pub(crate) const OTHER: &str = "_other";

/// Reasons for which requests are refused before their message is read.
pub(super) const REFUSAL_REASONS: [&str; 8] = [
    "no_token",
    "invalid_token",
    "several_tokens",
    "insufficient_scope",
    "keys_unavailable",
    "rate_limit",
    "host_or_origin",
    "memory",
];
/// Outcomes of exchanges of users' tokens: a new token, a known one, a refusal for the user, a
/// failure.
pub(super) const EXCHANGE_OUTCOMES: [&str; 4] = ["ok", "cached", "refused", "failed"];
/// Outcomes of questions by a link.
pub(super) const APPROVAL_OUTCOMES: [&str; 3] = ["asked", "agreed", "declined"];
/// Purposes of the shared state.
pub(super) const SHARED_STATE_USES: [&str; 3] = ["limit", "refresh", "confirm"];
/// Outcomes of tries.
pub(super) const OUTCOMES: [&str; 2] = ["ok", "failed"];

/// The name of the API; no label if a server has only one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ApiLabel(Option<Arc<str>>);

impl ApiLabel {
    /// The label of an API of several by its name, and none of one that is alone.
    pub(crate) fn new(name: Option<&str>) -> Self {
        Self(name.map(Into::into))
    }
}

impl EncodeLabelSet for ApiLabel {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), fmt::Error> {
        match &self.0 {
            Some(api) => ("api", api.as_ref()).encode(encoder.encode_label()),
            None => Ok(()),
        }
    }
}

/// A label with one of its values.
pub(super) type Label = [(&'static str, &'static str); 1];

#[derive(Debug, Clone, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct OperationLabels {
    #[prometheus(flatten)]
    pub(crate) api: ApiLabel,
    pub(crate) mcp_method_name: &'static str,
    pub(crate) gen_ai_tool_name: Box<str>,
    pub(crate) error_type: &'static str,
    pub(crate) network_transport: &'static str,
    pub(crate) mcp_protocol_version: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct RequestLabels {
    #[prometheus(flatten)]
    pub(super) api: ApiLabel,
    pub(super) http_request_method: &'static str,
    pub(super) http_response_status_code: &'static str,
    pub(super) error_type: &'static str,
    pub(super) server_address: Arc<str>,
    pub(super) server_port: u16,
}

// The labels of each call are hashed by SipHash, byte by byte: only by those that differ from
// series to series.
impl Hash for OperationLabels {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.gen_ai_tool_name.as_bytes());
        state.write_usize(self.mcp_method_name.len() << 8 | self.error_type.len());
    }
}

impl Hash for RequestLabels {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.server_address.as_bytes());
        state.write(self.http_response_status_code.as_bytes());
        state.write_usize(self.http_request_method.len() << 16 | usize::from(self.server_port));
    }
}

/// The methods of RFC 9110, of RFC 5789 and QUERY.
pub(crate) fn known_method(method: &Method) -> &'static str {
    const KNOWN: [&str; 10] = [
        "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY",
    ];
    KNOWN
        .into_iter()
        .find(|known| *known == method.as_str())
        .unwrap_or(OTHER)
}

/// The status codes that are registered with IANA: 104 and 306 as well, which have no reason in `http`,
/// and not 510, which is obsolete.
pub(super) fn known_status(status: u16) -> &'static str {
    static TEXTS: LazyLock<Vec<String>> =
        LazyLock::new(|| (0..600).map(|code: u16| code.to_string()).collect());
    let has_reason =
        || StatusCode::from_u16(status).is_ok_and(|status| status.canonical_reason().is_some());
    let is_known = matches!(status, 104 | 306) || status != 510 && has_reason();
    let text = TEXTS.get(usize::from(status)).filter(|_| is_known);
    text.map_or(OTHER, String::as_str)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registered_status_codes_are_known_and_others_are_not() {
        for (status, expected) in [
            (100, "100"),
            (200, "200"),
            (404, "404"),
            (511, "511"),
            (299, OTHER),
            (999, OTHER),
            (1200, OTHER),
            (0, OTHER),
        ] {
            assert_eq!(known_status(status), expected, "{status}");
        }
        let known: Vec<u16> = (0..2000)
            .filter(|status| known_status(*status) != OTHER)
            .collect();
        assert_eq!(known.len(), 63);
        for status in known {
            assert_eq!(known_status(status), status.to_string());
        }
    }
}
