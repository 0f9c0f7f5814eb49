//! The record of a client's request: its arrival, its content, and its outcome so far.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use super::metrics::labels::ApiLabel;
use super::observers;
use super::traces::ArrivedContexts;

/// Arrival of a request.
#[derive(Default)]
pub(crate) struct Arrival {
    /// `network.transport`: `pipe` or `tcp`.
    pub(crate) transport: &'static str,
    /// Version of HTTP, if the request came by it.
    pub(crate) http_version: Option<&'static str>,
    /// Version of MCP: a known one, `_other`, or empty if none is known yet.
    pub(crate) protocol_version: &'static str,
    /// Identifier of the JSON-RPC request, if spans are recorded.
    pub(crate) request_id: Option<String>,
    /// Authenticated client, else the address from which the call came.
    pub(crate) client: Option<String>,
    /// Name and version that the client gives.
    pub(crate) claimed: Option<String>,
    /// The traces that the request belongs to.
    pub(crate) contexts: ArrivedContexts,
}

/// The operation that a call is of.
pub(crate) struct CalledOperation {
    /// The name of the API, or the title of its document.
    pub(crate) api: String,
    /// The same in metrics.
    pub(crate) label: ApiLabel,
    pub(crate) tool: String,
    pub(crate) method: String,
    /// The path with its parameters in braces, as the document has it.
    pub(crate) path_template: String,
    /// `read`, `write` or `destructive`.
    pub(crate) effect: &'static str,
}

/// The exchange of a user's token for one of the API.
#[derive(Serialize)]
pub(crate) struct ExchangeRecord {
    /// The security scheme.
    pub(crate) scheme: String,
    pub(crate) scope: Option<String>,
    /// True if the token had been exchanged before.
    #[serde(rename = "cached")]
    pub(crate) is_cached: bool,
}

/// Facts about a call that are known so far.
#[derive(Default)]
pub(crate) struct CallRecord {
    pub(crate) arrival: Arrival,
    pub(crate) operation: Option<Arc<CalledOperation>>,
    /// Meta-tool that calls the operation, in search mode.
    pub(crate) meta_tool: Option<&'static str>,
    /// Meta-tool that was called, if no operation was.
    pub(crate) lookup: Option<&'static str>,
    /// A keyed hash of what was asked for.
    pub(crate) arguments_hash: Option<String>,
    /// True if a person confirmed the call.
    pub(crate) confirmed: bool,
    /// Joins the line of a question with that of its answer.
    pub(crate) question: Option<String>,
    /// Status of the API's last reply.
    pub(crate) status: Option<u16>,
    /// Bytes of its body after decompression.
    pub(crate) bytes: Option<usize>,
    /// Requests that were sent.
    pub(crate) attempts: u32,
    /// Requests for the status or the result of an operation that takes long.
    pub(crate) polls: u32,
    /// Pages that were collected, if the call asked for several.
    pub(crate) pages: Option<u32>,
    /// True once the line about its beginning was written.
    pub(crate) has_begun: bool,
    /// The token of the user that was exchanged.
    pub(crate) exchange: Option<ExchangeRecord>,
}

impl CallRecord {
    /// The tool, if there is one of the name that the client gave.
    pub(super) fn tool(&self) -> Option<&str> {
        let of_operation = self
            .operation
            .as_ref()
            .map(|operation| operation.tool.as_str());
        of_operation.or(self.lookup)
    }

    /// Notes which operation is called; `arguments` are those of the message.
    pub(crate) fn resolve(
        &mut self,
        operation: Arc<CalledOperation>,
        arguments: Option<&Map<String, Value>>,
    ) {
        if let Some(audit) = observers::audit() {
            self.arguments_hash =
                Some(audit.hash_arguments(&operation.api, &operation.tool, arguments));
        }
        self.operation = Some(operation);
    }
}
