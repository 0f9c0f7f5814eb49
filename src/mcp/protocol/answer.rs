//! The answers to requests, as JSON-RPC 2.0 messages.

use std::time::Duration;

use bytes::Bytes;
use rmcp::model::{ErrorData, RequestId, ServerResult};
use serde::Serialize;

use super::version::ProtocolVersion;
use crate::mcp::catalog::ListPieces;
use crate::results::tool_result::ToolResult;

/// Answer to a request.
pub(crate) enum McpAnswer {
    /// The result of a call.
    Tool(Box<ToolResult>),
    /// The list of tools.
    Tools(ToolList),
    /// Any other result.
    Result(Box<ServerResult>),
}

/// The list of tools.
pub(crate) struct ToolList {
    pub(crate) tools: ListPieces,
    /// Time for which a client may cache it.
    pub(crate) ttl: Duration,
    /// True if the list depends on the client.
    pub(crate) is_private: bool,
}

/// Reason for which a request gets no result.
pub(crate) enum McpRefusal {
    Error(ErrorData),
    /// The message of a call is not what MCP demands.
    InvalidCall(ErrorData),
    /// The client's token needs these scopes.
    MissingScopes(Vec<String>),
}

impl From<McpRefusal> for ErrorData {
    /// The error in place of what only HTTP can say otherwise.
    fn from(refusal: McpRefusal) -> Self {
        match refusal {
            McpRefusal::Error(error) | McpRefusal::InvalidCall(error) => error,
            McpRefusal::MissingScopes(scopes) => {
                let why = format!(
                    "the token lacks a scope that this needs: {}",
                    scopes.join(" ")
                );
                Self::invalid_request(why, None)
            }
        }
    }
}

impl From<ErrorData> for McpRefusal {
    fn from(error: ErrorData) -> Self {
        Self::Error(error)
    }
}

/// The error of parameters that the method does not take.
pub(crate) fn invalid_parameters(method: &str) -> ErrorData {
    ErrorData::invalid_params(format!("the parameters of {method} are not valid"), None)
}

/// A message that is ready to be sent. A list has megabytes, which are only made while they are
/// sent.
pub(crate) struct Frame {
    /// The whole message, or what is before its list.
    head: Vec<u8>,
    list: Option<ListPieces>,
}

/// The end of a message that has a list.
const LIST_END: &[u8] = b"]}}";

/// The envelope of an answer, and the names of its members.
const FRAMING_BYTES: usize = 256;

impl Frame {
    /// The answer to the request with that identifier. `server_meta` names the server in versions
    /// whose results have it.
    pub(crate) fn of_answer(
        id: &RequestId,
        version: ProtocolVersion,
        server_meta: Option<&str>,
        answer: McpAnswer,
    ) -> Self {
        let is_modern = version.has_result_type();
        let mut frame = Self::begin(Some(id), "result");
        let written = match answer {
            McpAnswer::Tool(mut result) => {
                if !version.has_resource_links() {
                    result.remove_links();
                }
                frame.head.reserve(result.estimated_bytes());
                result.write_json(is_modern, server_meta, &mut frame.head);
                Ok(())
            }
            McpAnswer::Tools(list) => {
                frame.write_list(list, server_meta);
                Ok(())
            }
            McpAnswer::Result(result) => serde_json::to_writer(&mut frame.head, &result),
        };
        if let Err(error) = written {
            tracing::error!("an answer cannot be written: {error}");
            let why = "the answer cannot be written; the server's log says why";
            return Self::of_error(Some(id), &ErrorData::internal_error(why, None));
        }
        if frame.list.is_none() {
            frame.head.push(b'}');
        }
        frame
    }

    /// The answer to a message that failed. What is not a request has no identifier.
    pub(crate) fn of_error(id: Option<&RequestId>, error: &ErrorData) -> Self {
        let mut frame = Self::begin(id, "error");
        // What an error consists of has only keys that are texts.
        let _ = serde_json::to_writer(&mut frame.head, error);
        frame.head.push(b'}');
        frame
    }

    fn begin(id: Option<&RequestId>, member: &str) -> Self {
        let mut head = Vec::with_capacity(FRAMING_BYTES);
        head.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        let _ = serde_json::to_writer(&mut head, &id);
        head.extend_from_slice(b",\"");
        head.extend_from_slice(member.as_bytes());
        head.extend_from_slice(b"\":");
        Self { head, list: None }
    }

    fn write_list(&mut self, list: ToolList, server_meta: Option<&str>) {
        let ToolList {
            tools,
            ttl,
            is_private,
        } = list;
        self.head.push(b'{');
        if let Some(server_meta) = server_meta {
            self.head
                .extend_from_slice(b"\"resultType\":\"complete\",\"_meta\":{");
            self.head.extend_from_slice(server_meta.as_bytes());
            self.head.extend_from_slice(b"},");
        }
        let scope = if is_private { "private" } else { "public" };
        let caching = format!(
            "\"ttlMs\":{},\"cacheScope\":\"{scope}\",\"tools\":[",
            ttl.as_millis()
        );
        self.head.extend_from_slice(caching.as_bytes());
        self.list = Some(tools);
    }

    /// The length in bytes.
    pub(crate) fn length(&self) -> usize {
        let list = self.list.as_ref();
        self.head.len() + list.map_or(0, |list| list.length + LIST_END.len())
    }

    /// Returns true if the answer is a long list, which is made while it is sent.
    pub(crate) fn is_list(&self) -> bool {
        self.list.is_some()
    }

    /// The whole message.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        let Some(list) = self.list else {
            return self.head;
        };
        let mut bytes = self.head;
        bytes.reserve_exact(list.length + LIST_END.len());
        list.for_each(|piece| bytes.extend_from_slice(&piece));
        bytes.extend_from_slice(LIST_END);
        bytes
    }

    /// The message in pieces.
    pub(crate) fn into_pieces(self) -> impl Iterator<Item = Bytes> + Send {
        let end = self.list.as_ref().map(|_| Bytes::from_static(LIST_END));
        let head = std::iter::once(Bytes::from(self.head));
        head.chain(self.list.into_iter().flatten()).chain(end)
    }
}

/// A message without an answer, as text: a notification, or with an identifier a request of this
/// server.
pub(crate) fn write_message(id: Option<i64>, method: &str, parameters: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Envelope<'e, P> {
        jsonrpc: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<i64>,
        method: &'e str,
        params: &'e P,
    }
    let envelope = Envelope {
        jsonrpc: "2.0",
        id,
        method,
        params: parameters,
    };
    // Our own parameters have only keys that are texts.
    serde_json::to_vec(&envelope).unwrap_or_default()
}
