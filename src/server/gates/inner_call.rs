//! From the arguments of a gate to the operation and its own arguments: read once, here, and nowhere else.

use rmcp::model::{CallToolResult, JsonObject};
use serde_json::Value;

use super::gate_set::{Gates, refused, unknown_keys};
use crate::annotate::Effect;
use crate::annotate::gate_names::GateKind;
use crate::api::{Api, ToolIndex};
use crate::json;
use crate::text::{one_line, truncate};

/// How alike a name must be to be suggested.
const LEAST_LIKENESS: f64 = 0.8;
/// More of a name that is not served is not repeated.
const MAX_SHOWN_NAME_BYTES: usize = 100;

/// A call of an operation through a gate.
pub(crate) struct InnerCall {
    pub(crate) tool: ToolIndex,
    pub(crate) arguments: JsonObject,
    /// What was read otherwise than it was written, in sentences for the model.
    pub(crate) remarks: Vec<String>,
}

/// The call that the arguments of a gate ask for.
///
/// # Errors
/// The result of a call that is not made: an unknown operation, one of another class, or malformed arguments.
pub(crate) fn read_inner_call(
    gates: &Gates,
    effect: Effect,
    arguments: Option<JsonObject>,
    api: &Api,
) -> Result<InnerCall, Box<CallToolResult>> {
    let mut arguments = arguments.unwrap_or_default();
    let mut remarks = Vec::new();
    let name = match arguments.get("operation") {
        Some(Value::String(name)) => name.clone(),
        Some(_) => {
            return Err(refuse(
                "`operation` must be the name of an operation, as a string. Nothing was sent.".into(),
            ));
        }
        None => {
            let search = gates.name_of(GateKind::Search);
            return Err(refuse(format!(
                "`operation` is missing: the name of an operation, as {search} shows it. Nothing was sent."
            )));
        }
    };
    let tool = find_operation(gates, &name, api, &mut remarks)?;
    let offered = api.offered(tool);
    let served = &offered.tool.name;
    let actual = offered.enforcement.effect();
    if actual != effect {
        let right = gates.name_of(GateKind::of_effect(actual));
        return Err(refuse(format!(
            "{served} was not called: its effect is `{}`, and it is called through {right} with the same arguments. Nothing was sent.",
            actual.word()
        )));
    }
    let inner = take_arguments(&mut arguments, &mut remarks)?;
    arguments.remove("operation");
    if arguments.is_empty() {
        return Ok(InnerCall {
            tool,
            arguments: inner,
            remarks,
        });
    }
    let has_such_argument = |key: &str| offered.operation.parameters.iter().any(|parameter| parameter.key == key);
    if inner.is_empty() && !has_such_argument("operation") && !has_such_argument("arguments") {
        let moved: Vec<String> = arguments.keys().map(|key| format!("`{}`", shown(key))).collect();
        remarks.push(format!(
            "{} were taken as arguments of {served}; they belong into `arguments`.",
            moved.join(", ")
        ));
        return Ok(InnerCall { tool, arguments, remarks });
    }
    let unknown: Vec<String> = unknown_keys(&arguments, &[])
        .into_iter()
        .map(|key| format!("`{}`", shown(key)))
        .collect();
    Err(refuse(format!(
        "{served} was not called: {} stand beside `operation` and `arguments`; arguments of the operation belong into `arguments`. Nothing was sent.",
        unknown.join(", ")
    )))
}

/// `arguments`: missing, an object, or the JSON text of one.
fn take_arguments(arguments: &mut JsonObject, remarks: &mut Vec<String>) -> Result<JsonObject, Box<CallToolResult>> {
    let wrong = || refuse("`arguments` must be an object with the arguments of the operation. Nothing was sent.".into());
    match arguments.remove("arguments") {
        None | Some(Value::Null) => Ok(JsonObject::new()),
        Some(Value::Object(inner)) => Ok(inner),
        Some(Value::String(text)) => match json::parse_text(&text) {
            Ok(Value::Object(inner)) => {
                remarks.push("`arguments` was read as the JSON text of an object.".into());
                Ok(inner)
            }
            _ => Err(wrong()),
        },
        Some(_) => Err(wrong()),
    }
}

/// The operation of exactly that name; or the only one of that operationId, or of that method and path, which is told.
pub(super) fn find_operation(gates: &Gates, name: &str, api: &Api, remarks: &mut Vec<String>) -> Result<ToolIndex, Box<CallToolResult>> {
    if gates.kind_of(name).is_some() {
        return Err(refuse(format!(
            "`{}` is not an operation, but a tool of this server that is called by itself. Nothing was sent.",
            shown(name)
        )));
    }
    if let Some(tool) = api.find(name) {
        return Ok(tool);
    }
    let is_meant = |index: &ToolIndex| {
        let operation = api.offered(*index).operation;
        operation.id.as_deref() == Some(name) || operation.label() == name
    };
    let mut meant = api.indexes().filter(is_meant);
    if let (Some(only), None) = (meant.next(), meant.next()) {
        remarks.push(format!("`{}` is served as {}.", shown(name), api.offered(only).tool.name));
        return Ok(only);
    }
    Err(refuse(unknown_operation(gates, name, api)))
}

/// What is said of a name that is not served, whatever the reason.
pub(super) fn unknown_operation(gates: &Gates, name: &str, api: &Api) -> String {
    let names = api.tools().iter().map(|tool| tool.name.as_ref());
    let near = crate::text::nearest(name, names, LEAST_LIKENESS);
    let hint = near.map(|near| format!(" Did you mean {near}?")).unwrap_or_default();
    format!(
        "There is no operation `{}`.{hint} {} finds operations. Nothing was sent.",
        shown(name),
        gates.name_of(GateKind::Search)
    )
}

fn shown(name: &str) -> String {
    truncate(&one_line(name).replace('`', "'"), MAX_SHOWN_NAME_BYTES)
}

fn refuse(text: String) -> Box<CallToolResult> {
    Box::new(refused(text))
}
