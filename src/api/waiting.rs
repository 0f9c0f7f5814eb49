//! Calls that go on waiting for an operation, and the URLs of replies that they may request.

use std::sync::Arc;

use super::call_end::end_call;
use super::reserved_paths::{ReadPath, path_readings, read_paths};
use super::{Api, ToolIndex};
use crate::observe::call::record_begin;
use crate::proxy::waiting::handle::WaitState;
use crate::proxy::waiting::status_url::AskedPath;
use crate::proxy::{CallError, Caller, ShownTool, ToolResult};

impl Api {
    /// Returns true if a call of one of its operations may be done only after the first reply.
    pub(crate) fn may_wait(&self) -> bool {
        self.bound.iter().any(|bound| bound.target.operation.may_wait())
    }

    /// Goes on waiting for the operation of a call of the tool at that place. With `is_look`, asks for its status once.
    pub(crate) async fn resume_at(
        self: &Arc<Self>,
        index: ToolIndex,
        state: WaitState,
        is_look: bool,
        caller: Caller,
        shown_tool: ShownTool<'_>,
    ) -> ToolResult {
        end_call(self.at(index), self.resume(index, state, is_look, caller, shown_tool)).await
    }

    async fn resume(
        self: &Arc<Self>,
        index: ToolIndex,
        state: WaitState,
        is_look: bool,
        caller: Caller,
        shown_tool: ShownTool<'_>,
    ) -> Result<ToolResult, CallError> {
        let (_, bound) = self.at(index);
        let route = self.proxy.route(&bound.target, &caller)?;
        let call = self.proxy.prepare(route, &bound.target, state.arguments.clone(), false, &caller)?;
        record_begin().await.map_err(|_| CallError::NotRecorded)?;
        let is_open = |path: &AskedPath<'_>| self.may_read(path, shown_tool);
        let awaited = Box::pin(self.proxy.resume(&call, state, is_look, &is_open)).await;
        Ok(Box::pin(self.proxy.finish_awaited(&call, awaited, shown_tool)).await)
    }

    /// Returns true if no GET operation of the document has this path, in any reading, that the caller may not list. The operation that
    /// a rule names counts as listed, and so does one that answers all its paths.
    pub(super) fn may_read(&self, asked: &AskedPath<'_>, shown_tool: ShownTool<'_>) -> bool {
        let paths = self.read_paths.get_or_init(|| read_paths(&self.proxy.document, &self.bound));
        let is_listed = |path: &ReadPath| {
            let tool = path.tool.and_then(|place| self.tools.get(place));
            tool.is_some_and(|tool| shown_tool(&tool.name).is_some()) || asked.named.is_some_and(|named| path.pattern.covers(named))
        };
        let readings = path_readings(asked.full).into_iter().zip(path_readings(asked.below));
        let readings: Vec<(String, String)> = readings.collect();
        let is_reached = |path: &&ReadPath| readings.iter().any(|(full, below)| path.pattern.is_reached_by(full, below));
        paths.iter().filter(is_reached).all(is_listed)
    }
}
