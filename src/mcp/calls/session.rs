//! `tools/call`: from the parameters to the result.

use std::sync::Arc;

use rmcp::model::{ErrorData, ServerResult};
use serde_json::Value;

use super::approval::{self, Confirmation, Verdict};
use super::plan::{Resolution, ResolvedCall};
use crate::api::OnMissingCredential;
use crate::mcp::McpServer;
use crate::mcp::catalog::Catalog;
use crate::mcp::connections::request_origin::RequestOrigin;
use crate::mcp::dispatch::note_invalid;
use crate::mcp::protocol::answer::{McpAnswer, McpRefusal, invalid_parameters};
use crate::mcp::protocol::message::{Arguments, RequestParameters};
use crate::mcp::protocol::version::ProtocolVersion;
use crate::mcp::visible::Suggestion;
use crate::observe::metrics::TOOLS_CALL;
use crate::proxy::caller::client_grant::ClientGrant;
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
        let resolution = catalog.resolve(&name, arguments, Some(granted), &origin.caller);
        let call = match resolution.ok_or_else(|| unknown_tool(&catalog, &name, granted))? {
            Resolution::Call(call) => call,
            Resolution::Answer(answer) => return Ok(McpAnswer::Tool(answer.await)),
        };
        call.note();
        let lacking = call.lacking_scopes(&origin.caller);
        let missing = match &self.scope_check {
            Some(check) => check(&origin.caller, &call, &lacking),
            None => lacking.into_iter().map(str::to_owned).collect(),
        };
        if !missing.is_empty() {
            return Err(McpRefusal::MissingScopes(missing));
        }
        if let Some(confirmation) = self.confirmation.as_deref().filter(|_| call.must_confirm()) {
            let refused =
                Box::pin(confirmed(confirmation, &call, &parameters, version, origin)).await;
            origin.in_flight.get_or_insert_with(|| self.calls.token());
            if let Some(answer) = refused {
                return Ok(answer);
            }
        }
        let mut caller = std::mem::take(&mut origin.caller);
        caller.progress = origin.report_progress(&parameters);
        let ending = self.readiness.draining.clone();
        caller.waiting = call.wait_place(&caller, ending).map(Arc::new);
        Ok(McpAnswer::Tool(Box::new(call.call(caller).await)))
    }
}

/// The name of the tool, and its arguments.
///
/// # Errors
/// They are not what `tools/call` takes.
fn name_and_arguments(
    parameters: &mut RequestParameters,
) -> Result<(String, Option<crate::json::JsonObject>), ErrorData> {
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
        _ => {
            note_invalid(true);
            Err(invalid_parameters(TOOLS_CALL))
        }
    }
}

/// Asks the user about a call; `None` means that the user agreed, anything else is the answer to
/// the call.
async fn confirmed(
    confirmation: &Confirmation,
    call: &ResolvedCall,
    parameters: &RequestParameters,
    version: ProtocolVersion,
    origin: &mut RequestOrigin,
) -> Option<McpAnswer> {
    // A call that would be refused is refused without a question.
    let prepared = match call.preview(OnMissingCredential::Refuse, &origin.caller) {
        Ok(prepared) => prepared,
        Err(wrong) => return Some(McpAnswer::Tool(wrong)),
    };
    match approval::ask(confirmation, call, &prepared, parameters, version, origin).await {
        Verdict::Yes => None,
        Verdict::Ask(question) => Some(McpAnswer::Result(Box::new(
            ServerResult::InputRequiredResult(*question),
        ))),
        Verdict::No(refusal) => Some(McpAnswer::Tool(refusal)),
    }
}

/// The error of a call whose tool does not exist.
fn unknown_tool(catalog: &Catalog, name: &str, granted: &ClientGrant) -> ErrorData {
    let hint = match catalog.suggestion(name, &catalog.rights(granted)) {
        Some(Suggestion::Nearest(near)) => format!("; did you mean {near}?"),
        Some(Suggestion::LeftOut) => "; settings of this server leave it out".to_owned(),
        None => String::new(),
    };
    let name = text::truncate(&text::one_line(name), 128);
    ErrorData::invalid_params(format!("Unknown tool: {name}{hint}"), None)
}
