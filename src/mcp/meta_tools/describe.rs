//! `describe_operations`: the arguments of operations, in a compact form or as JSON Schema.

use serde::Deserialize;
use serde_json::{Value, json};

use super::inner_call::{find_operation, unknown_operation};
use super::meta_tool_set::{MetaTools, read_request};
use crate::annotate::names::MetaToolKind;
use crate::api::ToolIndex;
use crate::json::JsonObject;
use crate::mcp::visible::{VisibleApi, VisibleApis};
use crate::results::render::OutputContract;
use crate::results::tool_result::ToolResult;
use crate::search::{as_path, write_signature};
use crate::text::{clean, one_line, truncate};

/// The longest description of an operation in the compact form, in bytes.
const MAX_SHORT_DESCRIPTION_BYTES: usize = 700;

/// The operations that are described, and how.
#[derive(Deserialize)]
struct DescribeRequest {
    names: Vec<String>,
    #[serde(default)]
    detail: Detail,
}

/// Detail of the description of operations.
#[derive(Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Detail {
    /// A compact form.
    #[default]
    Signature,
    /// JSON Schema.
    Schema,
}

/// Describes the arguments of operations, and names the meta-tool that calls each.
pub(crate) fn describe_operations(
    meta_tools: &MetaTools,
    seen: &VisibleApis<'_>,
    arguments: JsonObject,
) -> ToolResult {
    let request: DescribeRequest = match read_request(arguments) {
        Ok(request) => request,
        Err(invalid) => return *invalid,
    };
    let max_bytes = seen
        .apis
        .iter()
        .map(|api| api.api.max_result_bytes())
        .min()
        .unwrap_or_default();
    let (mut blocks, mut unknown, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    let mut taken = 0;
    for name in &request.names {
        let mut remarks = Vec::new();
        let found = find_operation(meta_tools, name, seen, &mut remarks).ok();
        let Some((api, index)) = found.filter(|(api, index)| api.shows(*index)) else {
            unknown.push(unknown_operation(meta_tools, name, seen));
            continue;
        };
        let mut block = if request.detail == Detail::Schema {
            exact(meta_tools, &api, index)
        } else {
            compact(meta_tools, &api, index)
        };
        for remark in remarks {
            block = format!("{remark}\n{block}");
        }
        if taken + block.len() > max_bytes {
            left_out.push(api.name_of(index).to_owned());
            continue;
        }
        taken += block.len();
        blocks.push(block);
    }
    if blocks.is_empty() && left_out.is_empty() {
        return ToolResult::error(unknown.join("\n"));
    }
    if !left_out.is_empty() {
        blocks.push(format!(
            "Left out, because the answer would be too long: {}. Ask for fewer at a time, or for detail \"signature\".",
            left_out.join(", ")
        ));
    }
    blocks.extend(unknown);
    ToolResult::of_text(blocks.join("\n\n"), OutputContract::None.text_form())
}

/// Writes name, request, meta-tool and class of an operation, in one line.
fn heading(meta_tools: &MetaTools, api: &VisibleApi<'_>, index: ToolIndex) -> String {
    let offered = api.api.tool(index);
    let effect = offered.hints.effect();
    format!(
        "{} · {} {} · {} · called through {}",
        api.name_of(index),
        offered.operation.method,
        as_path(&offered.operation.path),
        effect.word(),
        meta_tools.name_of(MetaToolKind::of_effect(effect))
    )
}

/// The operation as a tool.
fn listed_tool(api: &VisibleApi<'_>, index: ToolIndex) -> Value {
    serde_json::from_str(&api.api.tool_json(index)).unwrap_or_default()
}

fn compact(meta_tools: &MetaTools, api: &VisibleApi<'_>, index: ToolIndex) -> String {
    let tool = listed_tool(api, index);
    let description = tool
        .get("description")
        .and_then(Value::as_str)
        .map(clean)
        .unwrap_or_default();
    let description = truncate(&one_line(&description), MAX_SHORT_DESCRIPTION_BYTES);
    let signature = tool
        .get("inputSchema")
        .map(write_signature)
        .unwrap_or_default();
    format!(
        "{}\nThe API says: {description}\narguments: {signature}",
        heading(meta_tools, api, index)
    )
}

fn exact(meta_tools: &MetaTools, api: &VisibleApi<'_>, index: ToolIndex) -> String {
    let tool = listed_tool(api, index);
    let mut described = json!({ "inputSchema": tool.get("inputSchema") });
    if let (Some(output), Some(members)) = (tool.get("outputSchema"), described.as_object_mut()) {
        members.insert("outputSchema".into(), output.clone());
    }
    let description = tool
        .get("description")
        .and_then(Value::as_str)
        .map(clean)
        .unwrap_or_default();
    format!(
        "{}\nThe API says: {description}\n{described}",
        heading(meta_tools, api, index)
    )
}
