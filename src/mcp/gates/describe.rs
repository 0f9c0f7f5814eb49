//! `describe_operations`: the arguments of operations, in a compact form or as JSON Schema.

use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use serde_json::{Value, json};

use super::gate_set::{Gates, describe_unknown_keys, read_strings, refused};
use super::inner_call::{find_operation, unknown_operation};
use crate::annotate::gate_names::GateKind;
use crate::api::ToolIndex;
use crate::mcp::visible::{VisibleApi, VisibleApis};
use crate::search::{as_path, write_signature};
use crate::text::{clean, one_line, truncate};

const MAX_NAMES: usize = 10;
/// The longest description of an operation in the compact form, in bytes.
const MAX_SHORT_DESCRIPTION_BYTES: usize = 700;

/// Tells the arguments of operations, and through which gate each is called.
#[must_use]
pub(crate) fn describe_operations(gates: &Gates, seen: &VisibleApis<'_>, arguments: Option<JsonObject>) -> CallToolResult {
    let (names, is_exact) = match read_names(&arguments.unwrap_or_default()) {
        Ok(read) => read,
        Err(problems) => return refused(format!("Nothing is described: {}.", problems.join("; "))),
    };
    let max_bytes = seen.apis.iter().map(|api| api.api.max_result_bytes()).min().unwrap_or_default();
    let (mut blocks, mut unknown, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    let mut taken = 0;
    for name in &names {
        let mut remarks = Vec::new();
        let found = find_operation(gates, name, seen, &mut remarks).ok();
        let Some((api, index)) = found.filter(|(api, index)| api.shows(&api.api.offered(*index))) else {
            unknown.push(unknown_operation(gates, name, seen));
            continue;
        };
        let mut block = if is_exact {
            exact(gates, &api, index)
        } else {
            compact(gates, &api, index)
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
        return refused(unknown.join("\n"));
    }
    if !left_out.is_empty() {
        blocks.push(format!(
            "Left out, because the answer would be too long: {}. Ask for fewer at a time, or for detail \"signature\".",
            left_out.join(", ")
        ));
    }
    blocks.extend(unknown);
    CallToolResult::success(vec![ContentBlock::text(blocks.join("\n\n"))])
}

/// Name, request, gate and class of an operation, in one line.
fn heading(gates: &Gates, api: &VisibleApi<'_>, index: ToolIndex) -> String {
    let offered = api.api.offered(index);
    let effect = offered.enforcement.effect();
    format!(
        "{} · {} {} · {} · called through {}",
        api.name_of(index),
        offered.operation.method,
        as_path(&offered.operation.path),
        effect.word(),
        gates.name_of(GateKind::of_effect(effect))
    )
}

/// The operation as a tool.
fn listed_tool(api: &VisibleApi<'_>, index: ToolIndex) -> Value {
    serde_json::from_str(&api.api.tool_json(index)).unwrap_or_default()
}

fn compact(gates: &Gates, api: &VisibleApi<'_>, index: ToolIndex) -> String {
    let tool = listed_tool(api, index);
    let description = tool.get("description").and_then(Value::as_str).map(clean).unwrap_or_default();
    let description = truncate(&one_line(&description), MAX_SHORT_DESCRIPTION_BYTES);
    let signature = tool.get("inputSchema").map(write_signature).unwrap_or_default();
    format!(
        "{}\nThe API says: {description}\narguments: {signature}",
        heading(gates, api, index)
    )
}

fn exact(gates: &Gates, api: &VisibleApi<'_>, index: ToolIndex) -> String {
    let tool = listed_tool(api, index);
    let mut described = json!({ "inputSchema": tool.get("inputSchema") });
    if let (Some(output), Some(members)) = (tool.get("outputSchema"), described.as_object_mut()) {
        members.insert("outputSchema".into(), output.clone());
    }
    let description = tool.get("description").and_then(Value::as_str).map(clean).unwrap_or_default();
    format!("{}\nThe API says: {description}\n{described}", heading(gates, api, index))
}

/// The names, and whether the exact schemas are wanted; or all that is wrong.
fn read_names(arguments: &JsonObject) -> Result<(Vec<String>, bool), Vec<String>> {
    const KNOWN: [&str; 2] = ["names", "detail"];
    let mut problems = Vec::new();
    problems.extend(describe_unknown_keys(arguments, &KNOWN));
    let names = arguments.get("names").and_then(read_strings).unwrap_or_else(|| {
        problems.push("`names` must be a list of names of operations".into());
        Vec::new()
    });
    if problems.is_empty() && !(1..=MAX_NAMES).contains(&names.len()) {
        problems.push(format!("`names` must be 1 to {MAX_NAMES} names"));
    }
    let is_exact = match arguments.get("detail").map(Value::as_str) {
        None | Some(Some("signature")) => false,
        Some(Some("schema")) => true,
        Some(_) => {
            problems.push("`detail` must be signature or schema".into());
            false
        }
    };
    if problems.is_empty() {
        Ok((names, is_exact))
    } else {
        Err(problems)
    }
}
