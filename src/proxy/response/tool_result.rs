//! The result of a call, of which a tree is made only where somebody needs one.

use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::{Value, json};

use crate::json as spec_json;

/// A result. Its structured content is mostly the text of its first block over again, and then kept as that.
#[derive(Debug)]
pub(crate) struct ToolResult {
    result: CallToolResult,
    /// Whether the first block is compact JSON, as `serde_json` writes it, which is the structured content as well.
    is_structured: bool,
}

impl From<CallToolResult> for ToolResult {
    fn from(result: CallToolResult) -> Self {
        Self {
            result,
            is_structured: false,
        }
    }
}

impl From<ToolResult> for CallToolResult {
    fn from(mut result: ToolResult) -> Self {
        result.make_tree();
        result.result
    }
}

impl ToolResult {
    /// A success whose structured content is its text: an object as it is, and any other value as the member `result` of one.
    /// `json` must be what `serde_json` would write.
    pub(crate) fn of_compact_json(json: String) -> Self {
        Self {
            result: CallToolResult::success(vec![ContentBlock::text(json)]),
            is_structured: true,
        }
    }

    /// An error.
    pub(crate) fn error(text: impl Into<String>) -> Self {
        CallToolResult::error(vec![ContentBlock::text(text)]).into()
    }

    /// Whether there is structured content.
    pub(crate) fn is_structured(&self) -> bool {
        self.is_structured || self.result.structured_content.is_some()
    }

    /// The result without the structured content that is still text.
    pub(crate) fn parts(&self) -> &CallToolResult {
        &self.result
    }

    /// The text that is the structured content as well.
    pub(crate) fn structured_text(&self) -> Option<&str> {
        let text = self.result.content.first().and_then(ContentBlock::as_text);
        text.filter(|_| self.is_structured).map(|text| text.text.as_str())
    }

    /// Adds a block after those that are there.
    pub(crate) fn push_text(&mut self, text: String) {
        self.result.content.push(ContentBlock::text(text));
    }

    /// Adds an entry to `_meta`.
    pub(crate) fn insert_meta(&mut self, key: &str, value: Value) {
        self.result.meta.get_or_insert_default().insert(key.to_owned(), value);
    }

    /// Leaves it with its blocks alone.
    pub(crate) fn drop_structured(&mut self) {
        self.is_structured = false;
        self.result.structured_content = None;
    }

    /// Makes it an error without structured content, which clients do not check.
    pub(crate) fn make_error(&mut self) {
        self.drop_structured();
        self.result.is_error = Some(true);
    }

    /// Changes everything but the text that is the structured content: the blocks behind it, and `_meta`.
    pub(crate) fn change_all_but_structured(&mut self, change: impl FnOnce(&mut [ContentBlock], &mut Option<MetaObject>)) {
        let kept = usize::from(self.is_structured);
        change(self.result.content.get_mut(kept..).unwrap_or_default(), &mut self.result.meta);
    }

    /// The result with its structured content as a tree, to be changed.
    pub(crate) fn make_tree(&mut self) -> &mut CallToolResult {
        if let Some(text) = self.structured_text() {
            // It was judged to be JSON that a tree can hold.
            let value = spec_json::parse_text(text).unwrap_or(Value::Null);
            self.result.structured_content = Some(as_object(value));
        }
        self.is_structured = false;
        &mut self.result
    }

    /// About how many bytes it is as JSON.
    pub(crate) fn estimated_bytes(&self) -> usize {
        let texts = self.result.content.iter().filter_map(ContentBlock::as_text);
        let length: usize = texts.map(|text| text.text.len()).sum();
        // Structured text is written twice, and once of that with escapes.
        length * 5 / 2
    }

    /// Writes it as JSON as `serde_json` writes a [`CallToolResult`]; with `resultType` for clients of 2026-07-28 alone. `more_meta` is
    /// further members of `_meta`, as JSON, under keys that it does not have yet.
    pub(crate) fn write_json(&self, is_modern: bool, more_meta: Option<&str>, out: &mut Vec<u8>) -> serde_json::Result<()> {
        let result = &self.result;
        out.push(b'{');
        if is_modern && let Some(kind) = &result.result_type {
            out.extend_from_slice(b"\"resultType\":");
            serde_json::to_writer(&mut *out, kind)?;
            out.push(b',');
        }
        out.extend_from_slice(b"\"content\":[");
        for (index, block) in result.content.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write_block(block, out)?;
        }
        out.push(b']');
        if let Some(text) = self.structured_text() {
            let (before, after) = if text.starts_with('{') { ("", "") } else { ("{\"result\":", "}") };
            out.extend_from_slice(b",\"structuredContent\":");
            out.extend_from_slice(before.as_bytes());
            out.extend_from_slice(text.as_bytes());
            out.extend_from_slice(after.as_bytes());
        } else if let Some(value) = &result.structured_content {
            out.extend_from_slice(b",\"structuredContent\":");
            serde_json::to_writer(&mut *out, value)?;
        }
        if let Some(is_error) = result.is_error {
            out.extend_from_slice(if is_error { b",\"isError\":true" } else { b",\"isError\":false" });
        }
        if result.meta.is_some() || more_meta.is_some() {
            out.extend_from_slice(b",\"_meta\":{");
            if let Some(meta) = &result.meta {
                out.pop();
                serde_json::to_writer(&mut *out, meta)?;
                out.pop();
            }
            if let Some(more) = more_meta {
                if result.meta.as_ref().is_some_and(|meta| !meta.is_empty()) {
                    out.push(b',');
                }
                out.extend_from_slice(more.as_bytes());
            }
            out.push(b'}');
        }
        out.push(b'}');
        Ok(())
    }
}

fn write_block(block: &ContentBlock, out: &mut Vec<u8>) -> serde_json::Result<()> {
    match block.as_text() {
        Some(content) if content.meta.is_none() && content.annotations.is_none() => {
            out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
            spec_json::write_string(&content.text, out);
            out.push(b'}');
            Ok(())
        }
        _ => serde_json::to_writer(out, block),
    }
}

/// Clients up to 2025-11-25 accept only objects as structured content.
pub(crate) fn as_object(value: Value) -> Value {
    if value.is_object() { value } else { json!({ "result": value }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_as_rmcp_writes_it() {
        let remark = |mut result: ToolResult| {
            result.push_text("a \"remark\"\n\u{1}".into());
            result.insert_meta("key", json!({"a": [1, "é"]}));
            result
        };
        let of_text = |text: &str| ToolResult::of_compact_json(text.to_owned());
        let mut broken = of_text(r#"{"a":1}"#);
        broken.make_error();
        for result in [
            of_text(r#"{"a":[1.50,"\n\"",12345678901234567890123]}"#),
            of_text("[1,2]"),
            of_text("null"),
            remark(of_text("{}")),
            remark(ToolResult::error("no")),
            CallToolResult::structured(json!({"x": 1e30})).into(),
            CallToolResult::success(vec![ContentBlock::image("aGk=", "image/png")]).into(),
            broken,
        ] {
            let (mut modern, mut legacy) = (Vec::new(), Vec::new());
            result.write_json(true, Some(r#""more":{"b":[]}"#), &mut modern).unwrap();
            result.write_json(false, None, &mut legacy).unwrap();
            let mut whole = CallToolResult::from(result);
            let result_type = whole.result_type.take();
            assert_eq!(String::from_utf8(legacy).unwrap(), serde_json::to_string(&whole).unwrap());
            whole.result_type = result_type;
            whole.meta.get_or_insert_default().insert("more".into(), json!({"b": []}));
            assert_eq!(String::from_utf8(modern).unwrap(), serde_json::to_string(&whole).unwrap());
        }
    }
}
