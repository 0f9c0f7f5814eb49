//! Reading of a meta-tool's arguments into the operation and its own arguments, and of a handle of
//! `wait_operation` into the call that goes on, if its operation still exists for the caller. No other
//! module does it.
//!
//! `describe_operations` describes the arguments of operations, in a compact form or as JSON Schema.

use std::time::SystemTime;

use serde::Deserialize;
use serde_json::{Value, json};

use super::meta_tool_set::{MetaTools, read_request, show_keys};
use crate::annotate::names::MetaToolKind;
use crate::api::ToolIndex;
use crate::caller::Caller;
use crate::json::JsonObject;
use crate::mcp::visible::{Suggestion, VisibleApi, VisibleApis};
use crate::proxy::waiting::handle::{HandleError, HandleScope, OpenedWait, WaitState};
use crate::results::render::OutputContract;
use crate::results::tool_result::ToolResult;
use crate::search::{as_path, write_signature};
use crate::text::{clean, one_line, truncate};

/// More of a name that is not served is not repeated.
const MAX_SHOWN_NAME_BYTES: usize = 100;

/// A call of an operation through a meta-tool.
pub(crate) struct InnerCall {
    /// Its API as the caller sees it.
    pub(crate) api: VisibleApi,
    pub(crate) tool: ToolIndex,
    /// The arguments, or the reason for which the operation is not called.
    pub(crate) arguments: Result<JsonObject, Box<ToolResult>>,
    /// Remarks about values that were read differently from how they were written, in sentences for
    /// the model.
    pub(crate) remarks: Vec<String>,
    /// State of the call, if it goes on.
    pub(crate) wait: Option<Box<OpenedWait>>,
}

/// Reads the call from the arguments of a meta-tool that calls operations of one class.
///
/// # Errors
/// The result of a call that is not made: malformed arguments, or an unknown operation.
pub(crate) fn read_inner_call(
    meta_tools: &MetaTools,
    kind: MetaToolKind,
    arguments: Option<JsonObject>,
    seen: &VisibleApis,
) -> Result<InnerCall, Box<ToolResult>> {
    let checked = meta_tools.check(kind, arguments)?;
    let (mut arguments, mut remarks) = (checked.arguments, Vec::from_iter(checked.repairs));
    let name = arguments.remove("operation");
    let name = name.as_ref().and_then(Value::as_str).unwrap_or_default();
    let (api, tool) = find_operation(meta_tools, name, seen, &mut remarks)?;
    let arguments = read_named_call(meta_tools, kind, (api, tool), &mut arguments, &mut remarks);
    Ok(InnerCall {
        api: api.clone(),
        tool,
        arguments,
        remarks,
        wait: None,
    })
}

/// Reads the arguments of the operation, if this is its meta-tool.
fn read_named_call(
    meta_tools: &MetaTools,
    kind: MetaToolKind,
    (of, tool): (&VisibleApi, ToolIndex),
    arguments: &mut JsonObject,
    remarks: &mut Vec<String>,
) -> Result<JsonObject, Box<ToolResult>> {
    let (offered, served) = (of.api.tool(tool), of.name_of(tool));
    let actual = offered.hints.effect();
    let right = MetaToolKind::of_effect(actual);
    if right != kind {
        let right = meta_tools.name_of(right);
        return Err(refuse(format!(
            "{served} was not called: its effect is `{}`, and it is called through {right} with the same arguments. Nothing was sent.",
            actual.word()
        )));
    }
    let inner = match arguments.remove("arguments") {
        Some(Value::Object(inner)) => inner,
        _ => JsonObject::new(),
    };
    if arguments.is_empty() {
        return Ok(inner);
    }
    let has_such_argument = |key: &str| {
        offered
            .operation
            .parameters
            .iter()
            .any(|parameter| parameter.key == key)
    };
    if inner.is_empty() && !has_such_argument("operation") && !has_such_argument("arguments") {
        remarks.push(format!(
            "{} {} of {served}; arguments of the operation belong in `arguments`.",
            show_keys(arguments),
            if arguments.len() == 1 {
                "was taken as an argument"
            } else {
                "were taken as arguments"
            }
        ));
        return Ok(std::mem::take(arguments));
    }
    Err(refuse(format!(
        "{served} was not called: {} {} beside `operation` and `arguments`; arguments of the operation belong in `arguments`. Nothing was sent.",
        show_keys(arguments),
        if arguments.len() == 1 {
            "stands"
        } else {
            "stand"
        }
    )))
}

/// Returns the operation of exactly that name, with its API; or the only one of that operationId,
/// or of that method and path, with a remark.
pub(super) fn find_operation<'s>(
    meta_tools: &MetaTools,
    name: &str,
    seen: &'s VisibleApis,
    remarks: &mut Vec<String>,
) -> Result<(&'s VisibleApi, ToolIndex), Box<ToolResult>> {
    if meta_tools
        .kind_of(name)
        .is_some_and(|kind| meta_tools.exists(kind, seen))
    {
        return Err(refuse(format!(
            "`{}` is not an operation, but a tool of this server that is called by itself. Nothing was sent.",
            shown(name)
        )));
    }
    if let Some(found) = seen.find(name) {
        return Ok(found);
    }
    if let Some(missing) = &meta_tools.missing_apis {
        let why = "Until it is there, an operation is found by its name alone.";
        return Err(refuse(format!(
            "{} {missing} {why}",
            unknown_operation(meta_tools, name, seen)
        )));
    }
    // What a caller may not list is counted too: a narrower token must not choose among operations.
    let mut meant = Vec::new();
    for api in &seen.apis {
        let is_meant = |index: &ToolIndex| {
            let operation = &api.api.tool(*index).operation;
            api.has(*index) && (operation.id.as_deref() == Some(name) || operation.label() == name)
        };
        let found = api.api.indexes().filter(is_meant);
        meant.extend(found.map(|index| (api, index)));
    }
    if let [(api, only)] = meant.as_slice()
        && api.shows(*only)
    {
        remarks.push(format!(
            "`{}` is served as {}.",
            shown(name),
            api.name_of(*only)
        ));
        return Ok((api, *only));
    }
    Err(refuse(unknown_operation(meta_tools, name, seen)))
}

/// Describes a name that is not served, for any reason. Only operations that the caller may list
/// are suggested.
pub(super) fn unknown_operation(meta_tools: &MetaTools, name: &str, seen: &VisibleApis) -> String {
    let hint = match seen.suggestion(name) {
        Some(Suggestion::Nearest(near)) => format!(". Did you mean {near}?"),
        Some(Suggestion::LeftOut) => ": settings of this server leave it out.".to_owned(),
        None => ".".to_owned(),
    };
    format!(
        "There is no operation `{}`{hint} {} finds operations. Nothing was sent.",
        shown(name),
        meta_tools.name_of(MetaToolKind::Search)
    )
}

fn shown(name: &str) -> String {
    truncate(&one_line(name).replace('`', "'"), MAX_SHOWN_NAME_BYTES)
}

pub(super) fn refuse(text: String) -> Box<ToolResult> {
    Box::new(ToolResult::error(text))
}

/// Opens the handle among the arguments for a caller at the endpoint of that path.
///
/// # Errors
/// The result of a call that is not made: the handle is not valid, or its operation is not served
/// any more.
pub(crate) fn read_handle(
    meta_tools: &MetaTools,
    arguments: Option<JsonObject>,
    seen: &VisibleApis,
    endpoint: &str,
    caller: &Caller,
) -> Result<InnerCall, Box<ToolResult>> {
    let arguments = meta_tools.check(MetaToolKind::Wait, arguments)?.arguments;
    let handle = arguments
        .get("handle")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let is_look = arguments.get("wait").and_then(Value::as_bool) == Some(false);
    let mut error = HandleError::Foreign;
    for api in &seen.apis {
        let scope = HandleScope {
            api: api.label(),
            tenant: api.api.tenant(caller),
            endpoint,
            caller,
        };
        let state = match WaitState::open(handle, scope, SystemTime::now()) {
            Ok(state) => state,
            Err(HandleError::Expired) => {
                error = HandleError::Expired;
                continue;
            }
            Err(HandleError::Foreign) => continue,
        };
        let Some(tool) = api.find(&state.tool) else {
            return Err(refuse(format!(
                "The handle is of the operation `{}`, which is not served to you any more. Nothing was sent.",
                one_line(&state.tool)
            )));
        };
        return Ok(InnerCall {
            api: api.clone(),
            tool,
            arguments: Ok(arguments),
            remarks: Vec::new(),
            wait: Some(Box::new(OpenedWait { state, is_look })),
        });
    }
    Err(refuse(match error {
        HandleError::Expired => "The handle has expired: handles are good for 24 hours. Nothing was sent.".to_owned(),
        HandleError::Foreign => "The handle is not valid here: it was changed, or made for another client, another endpoint, or by a \
             server that has ended or has another key. Give it exactly as the result had it. Nothing was sent."
            .to_owned(),
    }))
}

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
    seen: &VisibleApis,
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
        let mut block = describe(meta_tools, api, index, &request.detail);
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

/// Describes an operation: name, request, class and meta-tool in one line, what its document says,
/// and its arguments.
fn describe(meta_tools: &MetaTools, api: &VisibleApi, index: ToolIndex, detail: &Detail) -> String {
    let offered = api.api.tool(index);
    let effect = offered.hints.effect();
    let tool: Value = serde_json::from_str(&api.api.tool_json(index)).unwrap_or_default();
    let description = tool.get("description").and_then(Value::as_str);
    let mut description = description.map(clean).unwrap_or_default();
    let input = tool.get("inputSchema");
    let arguments = match detail {
        Detail::Signature => {
            description = truncate(&one_line(&description), MAX_SHORT_DESCRIPTION_BYTES);
            let signature = input.map(write_signature).unwrap_or_default();
            format!("arguments: {signature}")
        }
        Detail::Schema => {
            let mut schemas = json!({ "inputSchema": input });
            if let (Some(output), Some(members)) =
                (tool.get("outputSchema"), schemas.as_object_mut())
            {
                members.insert("outputSchema".into(), output.clone());
            }
            schemas.to_string()
        }
    };
    format!(
        "{} · {} {} · {} · called through {}\nThe API says: {description}\n{arguments}",
        api.name_of(index),
        offered.operation.method,
        as_path(&offered.operation.path),
        effect.word(),
        meta_tools.name_of(MetaToolKind::of_effect(effect))
    )
}
