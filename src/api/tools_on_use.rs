//! Tools whose input schemas are made when they are described or called.

use std::sync::{Arc, OnceLock};

use super::bound_tool::BoundTool;
use super::finished_tools::FinishedTool;
use super::{Api, ToolIndex};
use crate::annotate::input_time::{FinishedParts, UnfinishedTool};

impl Api {
    /// Returns the tool at that index, made now if it does not exist; `None` if it was made at the
    /// start.
    pub(super) fn finished(&self, index: ToolIndex) -> Option<Arc<FinishedTool>> {
        let (_, bound) = self.at(index);
        bound.unfinished.as_ref()?;
        // Two callers may make the same tool at once; neither waits for the other.
        Some(self.finished_tools.find(index.0).unwrap_or_else(|| {
            let made = Arc::new(self.finish(index, bound));
            self.finished_tools.keep(index.0, &made);
            made
        }))
    }

    /// Returns true if some tools are made on first use.
    #[must_use]
    pub(crate) fn is_finished_on_use(&self) -> bool {
        self.bound.iter().any(|bound| bound.unfinished.is_some())
    }

    /// The whole tool at that place as JSON.
    #[must_use]
    pub(crate) fn tool_json(&self, index: ToolIndex) -> String {
        let (_, bound) = self.at(index);
        self.finished(index).map_or_else(
            || bound.json.as_str().to_owned(),
            |finished| finished.json.clone(),
        )
    }

    fn finish(&self, index: ToolIndex, bound: &BoundTool) -> FinishedTool {
        let (tool, _) = self.at(index);
        let operation = &bound.target.operation;
        let category = bound.category.as_deref();
        let finish = |unfinished: &UnfinishedTool| {
            unfinished.finish(tool, operation, category, self.document(), &self.inputs)
        };
        let FinishedParts {
            json,
            names,
            warnings,
        } = bound.unfinished.as_deref().map(finish).unwrap_or_default();
        for warning in warnings {
            tracing::warn!(tool = %tool.name, "{}: {warning}", operation.pointer);
        }
        FinishedTool {
            json,
            names,
            checks: OnceLock::new(),
        }
    }
}
