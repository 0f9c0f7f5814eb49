//! The end of a call: a result, whatever happened.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;

use super::bound_tool::BoundTool;
use crate::annotate::ToolSummary;
use crate::observe::call::note_outcome;
use crate::observe::outcome::CallOutcome;
use crate::proxy::{CallError, ToolResult, render_error};

/// Makes a result of the end of a call of that tool. A panic is a bug of ours; it must not take
/// down the calls of others.
pub(super) async fn end_call(
    (tool, bound): (&ToolSummary, &BoundTool),
    call: impl Future<Output = Result<ToolResult, CallError>>,
) -> ToolResult {
    match AssertUnwindSafe(call).catch_unwind().await {
        Ok(Ok(result)) => result,
        Ok(Err(error)) => {
            note_outcome(error.outcome());
            render_error(&bound.target.operation, &error)
        }
        Err(_) => {
            tracing::error!(tool = %tool.name, "a call ended in a panic; please report this");
            note_outcome(CallOutcome::Panic);
            ToolResult::error("The call failed because of an error inside this server.")
        }
    }
}
