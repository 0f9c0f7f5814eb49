//! `wait_operation`: a handle becomes the call that goes on, if its operation still exists for the
//! caller.

use std::time::SystemTime;

use serde_json::Value;

use super::inner_call::{InnerCall, OpenedWait, RefusedCall, refuse};
use super::meta_tool_set::MetaTools;
use crate::annotate::names::MetaToolKind;
use crate::caller::Caller;
use crate::json::JsonObject;
use crate::mcp::visible::VisibleApis;
use crate::proxy::waiting::handle::{HandleError, HandleScope, WaitState};
use crate::text::one_line;

/// Opens the handle among the arguments for a caller at the endpoint of that path.
///
/// # Errors
/// The result of a call that is not made: the handle is not valid, or its operation is not served
/// any more.
pub(crate) fn read_handle<'c>(
    meta_tools: &MetaTools,
    arguments: Option<JsonObject>,
    seen: &VisibleApis<'c>,
    endpoint: &str,
    caller: &Caller,
) -> Result<InnerCall<'c>, Box<RefusedCall<'c>>> {
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
            ))
            .into());
        };
        return Ok(InnerCall {
            api: *api,
            tool,
            arguments,
            remarks: Vec::new(),
            wait: Some(Box::new(OpenedWait { state, is_look })),
        });
    }
    Err(refuse(match error {
        HandleError::Expired => "The handle has expired: handles are good for 24 hours. Nothing was sent.".to_owned(),
        HandleError::Foreign => "The handle is not valid here: it was changed, or made for another client, another endpoint, or by a \
             server that has ended or has another key. Give it exactly as the result had it. Nothing was sent."
            .to_owned(),
    })
    .into())
}
