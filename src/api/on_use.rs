//! Tools whose input schemas are made when they are described or called, and the most recent of these.

use std::sync::Arc;

use lru::LruCache;
use parking_lot::Mutex;

use super::bound_tool::{ToolInput, ToolText};
use super::{Api, ToolIndex};
use crate::annotate::overrides::arguments::RuleFindings;
use crate::annotate::{Tool, ToolParts, make_input};
use crate::spec::schema::Schemas;

/// Number of tools that are kept, and of bytes that their JSON may take. Compiled validators take a
/// multiple.
const MAX_TOOLS: usize = 256;
const MAX_BYTES: usize = 4 << 20;

/// The texts of the tools that were used last, by their places in the API.
pub(super) struct RecentTexts(Mutex<LruCache<usize, Arc<ToolText>>>);

impl Default for RecentTexts {
    fn default() -> Self {
        Self(Mutex::new(LruCache::unbounded()))
    }
}

impl RecentTexts {
    pub(super) fn find(&self, place: usize) -> Option<Arc<ToolText>> {
        self.0.lock().get(&place).cloned()
    }

    pub(super) fn keep(&self, place: usize, text: &Arc<ToolText>) {
        let mut recent = self.0.lock();
        recent.put(place, Arc::clone(text));
        let mut bytes: usize = recent.iter().map(|(_, text)| text.json.len()).sum();
        while recent.len() > MAX_TOOLS || (recent.len() > 1 && bytes > MAX_BYTES) {
            let oldest = recent.pop_lru();
            bytes -= oldest.map_or(0, |(_, text)| text.json.len());
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: usize) -> Arc<ToolText> {
        Arc::new(ToolText {
            json: vec![b' '; bytes].into(),
            ..ToolText::default()
        })
    }

    #[test]
    fn the_tools_used_last_stay() {
        let texts = RecentTexts::default();
        for place in 0..MAX_TOOLS {
            texts.keep(place, &text(1));
        }
        assert!(texts.find(0).is_some());
        texts.keep(MAX_TOOLS, &text(1));
        assert!(
            texts.find(0).is_some() && texts.find(1).is_none() && texts.find(MAX_TOOLS).is_some()
        );
        // One that is larger than all may be stays alone.
        texts.keep(7, &text(MAX_BYTES + 1));
        assert!(texts.find(7).is_some() && texts.find(0).is_none());
    }
}
