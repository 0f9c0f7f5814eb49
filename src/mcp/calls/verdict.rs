//! Outcome of a question about a call, and the texts that all ways of asking share.

use std::sync::Arc;

use rmcp::model::InputRequiredResult;

use super::plan::OperationCall;
use crate::observe::call::note;
use crate::observe::metrics::labels::CallOutcome;
use crate::results::tool_result::ToolResult;
use crate::shared_state::cells::Agreement;
use crate::text;
use crate::text::hex;

/// The outcome of a question.
pub(super) enum Verdict {
    /// The call may be made; once, if the agreement is kept.
    Yes(Option<Arc<Agreement>>),
    /// The call is refused, with this result.
    No(Box<ToolResult>),
    /// The client must ask the person and call again.
    Ask(Box<InputRequiredResult>),
}

/// Joins the lines of the question and of its answer in the audit log.
pub(super) fn note_question(id: &[u8]) {
    note(|record| record.question = Some(hex(id)));
}

pub(super) fn refuse_as(outcome: CallOutcome, text: String) -> Verdict {
    Verdict::No(Box::new(ToolResult::error(text).ended_as(outcome)))
}

pub(super) fn refuse(text: String) -> Verdict {
    refuse_as(CallOutcome::Unanswered, text)
}

pub(super) fn tool_and_operation(call: &OperationCall) -> String {
    format!(
        "{} ({})",
        call.tool_name(),
        text::one_line(&call.offered().operation.label())
    )
}

/// The text with invisible characters written as escapes.
pub(super) fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if text::has_hidden_characters(character.encode_utf8(&mut [0; 4])) {
            out.extend(character.escape_unicode());
        } else {
            out.push(character);
        }
    }
    out
}
