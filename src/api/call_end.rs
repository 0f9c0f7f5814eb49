//! A panic is a bug of ours; it must not take down the calls of others.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;

use crate::annotate::ToolSummary;
use crate::observe::call::note_outcome;
use crate::observe::outcome::CallOutcome;
use crate::proxy::ToolResult;

/// Makes an error of a panic in a call of that tool.
pub(super) async fn catch_panic(tool: &ToolSummary, call: impl Future<Output = ToolResult>) -> ToolResult {
    let outcome = AssertUnwindSafe(call).catch_unwind().await;
    outcome.unwrap_or_else(|_| {
        tracing::error!(tool = %tool.name, "a call ended in a panic; please report this");
        note_outcome(CallOutcome::Panic);
        ToolResult::error("The call failed because of an error inside this server.")
    })
}
