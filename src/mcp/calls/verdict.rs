//! The outcome of the gate, and the texts that all ways of asking a person share.

use std::sync::Arc;

use rmcp::model::InputRequiredResult;

use super::plan::OperationCall;
use crate::observe::call::note;
use crate::observe::metrics::labels::CallOutcome;
use crate::results::tool_result::ToolResult;
use crate::shared_state::cells::Agreement;
use crate::text;
use crate::text::hex;

/// Reason for which a call is not made.
pub(crate) enum NotAdmitted {
    /// The caller lacks a scope; with all scopes to ask for.
    Scopes(Vec<String>),
    /// The call is refused, with this result.
    Refused(Box<ToolResult>),
    /// The client must ask its user and call again.
    Ask(Box<InputRequiredResult>),
}

impl From<Box<ToolResult>> for NotAdmitted {
    fn from(refused: Box<ToolResult>) -> Self {
        Self::Refused(refused)
    }
}

/// The outcome of a question: the call may be made, once if the agreement is kept.
pub(super) type Verdict = Result<Option<Arc<Agreement>>, NotAdmitted>;

/// Joins the lines of the question and of its answer in the audit log.
pub(super) fn note_question(id: &[u8]) {
    note(|record| record.question = Some(hex(id)));
}

/// Refuses a call: `why` follows its name.
pub(super) fn refuse_as(outcome: CallOutcome, call: &OperationCall, why: &str) -> Verdict {
    let offered = call.offered();
    let operation = text::one_line(&offered.operation.label());
    let text = format!("{} ({operation}) was not called{why}", offered.name);
    Err(Box::new(ToolResult::error(text).ended_as(outcome)).into())
}

/// Refuses a call about which nobody was asked.
pub(super) fn refuse(call: &OperationCall, why: &str) -> Verdict {
    refuse_as(CallOutcome::Unanswered, call, why)
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
