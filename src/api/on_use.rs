//! Tools whose input schemas are made when they are described or called.

use std::sync::Arc;

use super::bound_tool::{ToolInput, ToolText};
use super::{Api, ToolIndex};
use crate::annotate::overrides::arguments::RuleFindings;
use crate::annotate::{Tool, ToolParts, make_input};
use crate::spec::schema::Schemas;

impl Api {
    /// Reads the text of a tool, which is made now if it does not exist.
    pub(super) fn with_text<R>(&self, index: ToolIndex, read: impl FnOnce(&ToolText) -> R) -> R {
        let bound = self.tool(index);
        match &bound.input {
            ToolInput::Ready(text) => read(text),
            ToolInput::OnUse(parts) => read(&self.text_on_use(index, bound, parts)),
        }
    }

    /// Returns true if some tools are made on first use.
    pub(crate) fn is_finished_on_use(&self) -> bool {
        self.tools
            .iter()
            .any(|bound| matches!(bound.input, ToolInput::OnUse(_)))
    }

    /// The whole tool at that place as JSON.
    pub(crate) fn tool_json(&self, index: ToolIndex) -> String {
        self.with_text(index, |text| text.as_str().to_owned())
    }

    fn text_on_use(&self, index: ToolIndex, tool: &Tool, parts: &ToolParts) -> Arc<ToolText> {
        // Two callers may make the same tool at once; neither waits for the other.
        if let Some(text) = self.recent_texts.find(index.0) {
            return text;
        }
        let mut schemas = Schemas::new(self.document());
        let options = &self.options;
        let (input, warnings) = make_input(
            &tool.operation,
            options,
            &mut schemas,
            &mut RuleFindings::default(),
        );
        for warning in warnings {
            tracing::warn!(tool = %tool.name, "{}: {warning}", tool.operation.pointer);
        }
        let text = Arc::new(ToolText {
            json: tool
                .write(parts, &input.json, options.max_result_chars)
                .into(),
            names: input.names,
            ..ToolText::default()
        });
        self.recent_texts.keep(index.0, &text);
        text
    }
}
