//! A tool as `tools/list` has it: one JSON text, written once at the start.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::annotate::annotations::ToolAnnotations;

/// A tool without what is long: its description and its schemas.
#[derive(Debug, Clone, Default)]
pub struct ToolSummary {
    /// The name.
    pub name: Box<str>,
    /// The title.
    pub title: Option<Box<str>>,
    /// The hints, if there are any.
    pub annotations: Option<ToolAnnotations>,
    /// Number of characters a result may have, for clients that take so many only if a tool says
    /// so.
    pub max_result_chars: Option<usize>,
}

/// The long parts of a tool, each as JSON, until the tool is written.
#[derive(Debug, Default)]
pub(crate) struct ToolParts {
    /// `description`.
    pub(crate) description: String,
    /// `inputSchema`.
    pub(crate) input: Box<RawValue>,
    /// `outputSchema`.
    pub(crate) output: Option<Box<RawValue>>,
}

/// The members of a tool, in the order in which clients show them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolJson<'t> {
    name: &'t str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'t str>,
    description: &'t str,
    input_schema: &'t RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<&'t RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<&'t ToolAnnotations>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Meta<'t>>,
}

/// Members that MCP does not define, under a key of this server.
#[derive(Serialize)]
struct Meta<'t> {
    #[serde(rename = "openapi-mcp", skip_serializing_if = "Option::is_none")]
    own: Option<Grouping<'t>>,
    #[serde(
        rename = "anthropic/maxResultSizeChars",
        skip_serializing_if = "Option::is_none"
    )]
    max_result_chars: Option<usize>,
}

/// Groups of a tool.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Grouping<'t> {
    /// The category.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) category: Option<&'t str>,
    /// The tags, if they say more than the category.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub(crate) tags: &'t [String],
}

impl ToolParts {
    /// Returns the number of bytes they take.
    #[must_use]
    pub(crate) fn bytes(&self) -> usize {
        self.description.len()
            + self.input.get().len()
            + self.output.as_ref().map_or(0, |schema| schema.get().len())
    }
}

/// A value as JSON. The values of this crate can always be written, because their keys are strings.
#[must_use]
pub(crate) fn to_json(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_default()
}

/// The JSON of a tool.
#[must_use]
pub(crate) fn write_tool(tool: &ToolSummary, parts: &ToolParts, grouping: Grouping<'_>) -> String {
    // Most operations have one tag, which is their category: it is not said twice.
    let tags = match grouping.tags {
        [only] if Some(only.as_str()) == grouping.category => &[],
        tags => tags,
    };
    let own =
        (grouping.category.is_some() || !tags.is_empty()).then_some(Grouping { tags, ..grouping });
    let json = ToolJson {
        name: &tool.name,
        title: tool.title.as_deref(),
        description: &parts.description,
        input_schema: &parts.input,
        output_schema: parts.output.as_deref(),
        annotations: tool.annotations.as_ref(),
        meta: (own.is_some() || tool.max_result_chars.is_some()).then_some(Meta {
            own,
            max_result_chars: tool.max_result_chars,
        }),
    };
    serde_json::to_string(&json).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use rmcp::model::{MetaObject, Tool};
    use serde_json::{Map, Value, json};

    use super::*;

    fn schema(title: &str, default: i64) -> Map<String, Value> {
        let schema =
            json!({"type": "object", "title": title, "properties": {title: {"default": default}}});
        schema.as_object().cloned().unwrap()
    }

    proptest! {
        #[test]
        fn the_text_says_what_rmcp_would_say_of_the_tool(
            name in "[a-z_]{1,20}",
            title in proptest::option::of(".{0,30}"),
            description in ".{0,80}",
            (input, output) in (".{0,30}", proptest::option::of(".{0,30}")),
            hint in proptest::option::of(any::<bool>()),
            category in proptest::option::of(".{1,10}"),
            tags in proptest::collection::vec(".{1,10}", 0..3),
            number in any::<i64>(),
        ) {
            let summary = ToolSummary {
                name: name.as_str().into(),
                title: title.as_deref().map(Into::into),
                annotations: hint.map(|hint| ToolAnnotations {
                    title: None,
                    read_only_hint: Some(hint),
                    destructive_hint: Some(!hint),
                    idempotent_hint: Some(hint),
                    open_world_hint: Some(true),
                }),
                max_result_chars: None,
            };
            let mut tool = Tool::new_with_raw(name, None, Arc::default());
            tool.title = title;
            tool.annotations = hint.map(|hint| rmcp::model::ToolAnnotations::from_raw(None, Some(hint), Some(!hint), Some(hint), Some(true)));
            let parts = ToolParts {
                description: description.clone(),
                input: to_json(&schema(&input, number)),
                output: output.as_deref().map(|title| to_json(&schema(title, number))),
            };
            let text = write_tool(&summary, &parts, Grouping { category: category.as_deref(), tags: &tags });
            tool.description = Some(description.into());
            tool.input_schema = Arc::new(schema(&input, number));
            tool.output_schema = output.as_deref().map(|title| Arc::new(schema(title, number)));
            let mut own = Map::new();
            if let Some(category) = &category {
                own.insert("category".into(), category.as_str().into());
            }
            if !tags.is_empty() && Some(&tags) != category.map(|category| vec![category]).as_ref() {
                own.insert("tags".into(), json!(tags));
            }
            if !own.is_empty() {
                let mut meta = MetaObject::new();
                meta.insert("openapi-mcp".into(), own.into());
                tool.meta = Some(meta);
            }
            let written: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(written, serde_json::to_value(&tool).unwrap());
        }
    }
}
