//! `wait_operation`: a handle becomes the call that goes on, if its operation still exists for the caller.

use std::time::SystemTime;

use serde_json::Value;

use crate::annotate::meta_tool_names::MetaToolKind;
use crate::mcp::resolution::{OpenedWait, Resolution, WaitRequest};
use crate::proxy::ToolResult;
use crate::proxy::caller::Caller;
use crate::proxy::waiting::handle::{HandleError, HandleScope, WaitState};
use crate::text::one_line;

impl WaitRequest {
    /// Opens the handle for a caller: the call that goes on, or the reason for which there is none.
    pub(crate) fn open(self, caller: &Caller) -> Resolution {
        let Self { catalog, name, arguments } = self;
        let refused = |text: String| Resolution::Refused(Box::new(ToolResult::error(text)), None);
        let given = match catalog.check_meta_tool(MetaToolKind::Wait, arguments) {
            Ok(checked) => checked.arguments,
            Err(result) => return Resolution::Refused(result, None),
        };
        let handle = given.get("handle").and_then(Value::as_str).unwrap_or_default();
        let is_look = given.get("wait").and_then(Value::as_bool) == Some(false);
        let rights = catalog.rights(caller.granted());
        let seen = catalog.visible(&rights);
        let mut error = HandleError::Foreign;
        for api in &seen.apis {
            let scope = HandleScope {
                api: api.label(),
                tenant: api.api.tenant(caller),
                endpoint: &catalog.view.path,
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
                return refused(format!(
                    "The handle is of the operation `{}`, which is not served to you any more. Nothing was sent.",
                    one_line(&state.tool)
                ));
            };
            let call = catalog.resolved(api.of, rights.shared(api.place), tool, Some(given.clone()));
            return Resolution::Call(call.going_on(OpenedWait { state, is_look }, name));
        }
        refused(match error {
            HandleError::Expired => "The handle has expired: handles are good for 24 hours. Nothing was sent.".to_owned(),
            HandleError::Foreign => "The handle is not valid here: it was changed, or made for another client, another endpoint, or by a \
                 server that has ended or has another key. Give it exactly as the result had it. Nothing was sent."
                .to_owned(),
        })
    }
}
