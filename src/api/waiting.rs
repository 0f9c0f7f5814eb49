//! Calls that go on waiting for an operation, and the URLs of replies that they may request.

use std::sync::Arc;

use super::call_end::end_call;
use super::{Api, ToolIndex};
use crate::observe::call::record_begin;
use crate::proxy::waiting::handle::WaitState;
use crate::proxy::{CallError, Caller, ToolResult};

impl Api {
    /// Returns true if it is said of one of its operations how a call waits.
    pub(crate) fn says_how_to_wait(&self) -> bool {
        self.bound
            .iter()
            .any(|bound| bound.target.operation.says_how_to_wait())
    }

    /// Goes on waiting for the operation of a call of the tool at that place. With `is_look`, asks
    /// for its status once.
    pub(crate) async fn resume_at(
        self: &Arc<Self>,
        index: ToolIndex,
        state: WaitState,
        is_look: bool,
        caller: Caller,
    ) -> ToolResult {
        end_call(self.at(index), self.resume(index, state, is_look, caller)).await
    }

    async fn resume(
        self: &Arc<Self>,
        index: ToolIndex,
        state: WaitState,
        is_look: bool,
        caller: Caller,
    ) -> Result<ToolResult, CallError> {
        let (_, bound) = self.at(index);
        let route = self.proxy.route(&bound.target, &caller)?;
        let paths = Some(self.closed_paths());
        let call = self.proxy.prepare(
            route,
            &bound.target,
            state.arguments.clone(),
            false,
            &caller,
            paths,
        )?;
        record_begin().await.map_err(|_| CallError::NotRecorded)?;
        let awaited = Box::pin(self.proxy.resume(&call, state, is_look)).await;
        Ok(Box::pin(self.proxy.finish_awaited(&call, awaited)).await)
    }
}
