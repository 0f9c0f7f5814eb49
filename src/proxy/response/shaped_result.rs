//! The result of a reply that a rule of the operator has shaped.

use super::Response;
use super::render::{Rendering, render_reply};
use super::reply_headers::HeaderReport;
use super::result_notes::NoteKind;
use super::table::render_as_text;
use super::tool_result::ToolResult;
use crate::spec::Operation;
use crate::spec::operation::response_rule::ResponseRule;
use crate::text::MIN_BYTES_PER_TOKEN;
use http::StatusCode;

/// Returns the number of bytes that a result may have; 0 is no limit. A rule can only lower it.
pub(crate) fn max_result_bytes(rule: Option<&ResponseRule>, max_bytes: usize) -> usize {
    match rule.and_then(|rule| rule.max_tokens) {
        Some(tokens) if max_bytes == 0 => tokens.saturating_mul(MIN_BYTES_PER_TOKEN),
        Some(tokens) => tokens.saturating_mul(MIN_BYTES_PER_TOKEN).min(max_bytes),
        None => max_bytes,
    }
}

/// The result of a reply that was shaped by `rule`.
pub(crate) fn render_shaped(
    rule: &ResponseRule,
    operation: &Operation,
    response: &Response,
    mut rendering: Rendering<'_>,
) -> ToolResult {
    rendering.max_bytes = max_result_bytes(Some(rule), rendering.max_bytes);
    let as_text = rule
        .format
        .filter(|_| rule.is_text() && response.status != StatusCode::NO_CONTENT);
    let text = as_text.and_then(|format| {
        let mut result = render_as_text(format, response, rendering.max_bytes)?;
        HeaderReport::new(response, rendering.headers, rendering.max_bytes).add_to(&mut result);
        Some(result)
    });
    text.unwrap_or_else(|| {
        let mut result = render_reply(operation, response, rendering);
        if as_text.is_some() && result.json().is_some() {
            result.note(
                NoteKind::Form,
                "The reply is given as JSON, because it is not a list of objects.",
            );
        }
        result
    })
}
