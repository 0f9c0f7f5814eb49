//! One request of a client, from its parameters to the answer. Nothing else in this program calls an
//! API.

use std::sync::Arc;

use rmcp::model::{ErrorData, ServerResult};
use serde_json::Value;

use super::approval::Asking;
use super::gate::Admitted;
use super::plan::{NotAdmitted, Plan};
use crate::caller::client_grant::ClientGrant;
use crate::json::JsonObject;
use crate::mcp::McpServer;
use crate::mcp::catalog::Catalog;
use crate::mcp::connections::request_origin::RequestOrigin;
use crate::mcp::protocol::answer::{McpAnswer, McpRefusal, invalid_parameters};
use crate::mcp::protocol::message::{Arguments, RequestParameters};
use crate::mcp::protocol::version::ProtocolVersion;
use crate::mcp::visible::Suggestion;
use crate::observe::metrics::TOOLS_CALL;
use crate::results::tool_result::ToolResult;
use crate::text;

impl McpServer {
    /// Calls a tool.
    pub(in crate::mcp) async fn call_tool(
        &self,
        mut parameters: RequestParameters,
        version: ProtocolVersion,
        origin: &mut RequestOrigin,
    ) -> Result<McpAnswer, McpRefusal> {
        let (name, arguments) = name_and_arguments(&mut parameters)?;
        let granted = origin.caller.granted();
        let catalog = self
            .state
            .catalog_for(&name, arguments.as_ref(), granted)
            .await?;
        // One call from here to the end: the API may be replaced meanwhile.
        let plan = catalog.plan(&name, arguments, Some(granted), &origin.caller);
        let call = match plan.ok_or_else(|| unknown_tool(&catalog, &name, granted))? {
            Plan::Call(call) => call,
            Plan::Answer(answer) => return Ok(McpAnswer::Tool(answer.await)),
        };
        let mut caller = std::mem::take(&mut origin.caller);
        caller.progress = origin.report_progress(&parameters);
        let ending = self.readiness.draining.clone();
        caller.waiting = call.wait_place(&caller, ending).map(Arc::new);
        let asking = Asking {
            parameters: &parameters,
            version,
            origin,
        };
        let admitted = self.gate.admit(call, caller, Some(asking)).await;
        // A question to the user has given it up.
        origin.in_flight.get_or_insert_with(|| self.calls.token());
        match admitted {
            Ok(admitted) => Ok(McpAnswer::Tool(Box::pin(admitted.run()).await)),
            Err(NotAdmitted::Refused(refused)) => Ok(McpAnswer::Tool(refused)),
            Err(NotAdmitted::Scopes(missing)) => Err(McpRefusal::MissingScopes(missing)),
            Err(NotAdmitted::Ask(question)) => {
                let question = ServerResult::InputRequiredResult(*question);
                Ok(McpAnswer::Result(Box::new(question)))
            }
        }
    }
}

impl Admitted {
    /// Makes the call. Dropping the future ends the request.
    pub(crate) async fn run(mut self: Box<Self>) -> Box<ToolResult> {
        let (api, tool) = (&self.call.seen.api.api, self.call.tool);
        let calling = api.call_at(tool, &mut self.start, &mut self.caller);
        let mut result = calling.await;
        self.call.add_notes(&mut result);
        result
    }
}

/// The name of the tool, and its arguments.
///
/// # Errors
/// They are not what `tools/call` takes.
fn name_and_arguments(
    parameters: &mut RequestParameters,
) -> Result<(String, Option<JsonObject>), McpRefusal> {
    let has = |name: &str, is: fn(&Value) -> bool| {
        parameters
            .rest
            .get(name)
            .is_none_or(|value| value.is_null() || is(value))
    };
    let is_valid = has("requestState", Value::is_string) && has("inputResponses", Value::is_object);
    let arguments = match std::mem::take(&mut parameters.arguments) {
        Arguments::None => Some(None),
        Arguments::Object(arguments) => Some(Some(arguments)),
        Arguments::Malformed => None,
    };
    match (parameters.name.take(), arguments) {
        (Some(Value::String(name)), Some(arguments)) if is_valid => Ok((name, arguments)),
        _ => Err(McpRefusal::InvalidCall(invalid_parameters(TOOLS_CALL))),
    }
}

/// The error of a call whose tool does not exist.
fn unknown_tool(catalog: &Catalog, name: &str, granted: &ClientGrant) -> ErrorData {
    let seen = catalog.visible(Some(granted));
    let hint = match seen.suggestion(name) {
        Some(Suggestion::Nearest(near)) => format!("; did you mean {near}?"),
        Some(Suggestion::LeftOut) => "; settings of this server leave it out".to_owned(),
        None => String::new(),
    };
    let name = text::truncate(&text::one_line(name), 128);
    ErrorData::invalid_params(format!("Unknown tool: {name}{hint}"), None)
}
