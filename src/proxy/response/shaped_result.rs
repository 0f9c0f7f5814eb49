//! The result of a reply that a rule of the operator has shaped.

use super::Response;
use super::render::{NextPage, Rendering, json_text, render_result};
use super::reply_headers::HeaderReport;
use super::shape::ShapedReply;
use super::table::render_as_text;
use super::tool_result::ToolResult;
use crate::spec::Operation;
use crate::spec::operation::response_rule::ResponseRule;
use crate::text::MIN_BYTES_PER_TOKEN;
use http::StatusCode;

/// The result of a reply that was shaped by `rule`.
pub(crate) fn render_shaped<'r>(
    rule: &ResponseRule,
    shaped: &'r ShapedReply,
    operation: &Operation,
    response: &Response,
    mut rendering: Rendering<'r>,
) -> ToolResult {
    // Of a page that is shown in part, the next page would leave out the rest.
    rendering.next = NextPage::Known(shaped.next.as_ref().filter(|_| shaped.remark.is_none()));
    if let Some(tokens) = rule.max_tokens {
        let bytes = tokens.saturating_mul(MIN_BYTES_PER_TOKEN);
        rendering.max_bytes = if rendering.max_bytes == 0 {
            bytes
        } else {
            bytes.min(rendering.max_bytes)
        };
    }
    let as_text = rule.format.filter(|_| rule.is_text() && response.status != StatusCode::NO_CONTENT);
    let text = as_text.and_then(|format| {
        let report = HeaderReport::new(&response.headers, rendering.headers, true, rendering.max_bytes);
        let room = match rendering.max_bytes {
            0 => 0,
            bytes => bytes.saturating_sub(report.size()).max(1),
        };
        let mut result = ToolResult::from(render_as_text(format, response, shaped, room)?);
        report.add_to(&mut result);
        Some(result)
    });
    let mut result = text.unwrap_or_else(|| {
        let mut result = render_result(operation, response, rendering);
        if as_text.is_some() && response.status.is_success() {
            result.drop_structured();
            if json_text(response).is_some() {
                result.push_text("The reply is given as JSON, because it is not a list of objects.".into());
            }
        }
        result
    });
    shaped.remark.iter().for_each(|remark| result.push_text(remark.clone()));
    result
}
