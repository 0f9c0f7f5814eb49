//! The span of a request of a client, with the attributes of OpenTelemetry's conventions for MCP.
//! None of them holds a value of a call, a text of an error, or what lets its holder in, such as
//! the identifier of a session.

use std::borrow::Cow;

use super::metrics::TOOLS_CALL;
use super::observers;
use super::outcome::CallOutcome;
use super::record::CallRecord;
use super::traces::span::{AttributeValue, Attributes, OpenSpan};
use crate::text;

/// Characters of an identifier that the client gave.
const MAX_ID_CHARS: usize = 64;
/// Bytes of the name of an API, which may be the title of its document.
const MAX_TITLE_BYTES: usize = 256;

/// Ends the span of a request with that method of MCP.
pub(super) fn end_server_span(
    span: &OpenSpan,
    method: &'static str,
    record: &CallRecord,
    outcome: CallOutcome,
) {
    let Some(tracer) = observers::tracer() else {
        return;
    };
    let name = record
        .tool()
        .map_or_else(|| method.to_owned(), |tool| format!("{method} {tool}"));
    let attributes = attributes(method, record, outcome);
    tracer.finish(span.end(name, attributes, !outcome.error_type().is_empty()));
}

fn attributes(method: &'static str, record: &CallRecord, outcome: CallOutcome) -> Attributes {
    let mut attributes = Attributes::new();
    let mut add = |name: &'static str, value: Cow<'static, str>| {
        attributes.push((name, AttributeValue::Text(value)));
    };
    add("mcp.method.name", method.into());
    if method == TOOLS_CALL {
        add("gen_ai.operation.name", "execute_tool".into());
    }
    if let Some(tool) = record.tool() {
        add("gen_ai.tool.name", tool.to_owned().into());
    }
    if let Some(operation) = &record.operation {
        add(
            "openapi_mcp.api",
            text::truncate(&operation.api, MAX_TITLE_BYTES).into(),
        );
    }
    let arrival = &record.arrival;
    if let Some(id) = &arrival.request_id {
        let shown = id
            .chars()
            .filter(|character| !character.is_control())
            .take(MAX_ID_CHARS);
        add("jsonrpc.request.id", shown.collect::<String>().into());
    }
    let version = arrival.protocol_version;
    if !version.is_empty() {
        add("mcp.protocol.version", version.into());
    }
    add("network.transport", arrival.transport.into());
    if let Some(version) = arrival.http_version {
        add("network.protocol.name", "http".into());
        add("network.protocol.version", version.into());
    }
    let error = outcome.error_type();
    if !error.is_empty() {
        add("error.type", error.into());
    }
    if error.starts_with('-') {
        add("rpc.response.status_code", error.into());
    }
    attributes
}
