//! A tool's other half: the operation, and everything about a call that is decided at start.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::header::HeaderValue;
use rmcp::model::{JsonObject, Tool};
use serde::de::IgnoredAny;
use serde_json::Value;
use tokio::time::timeout;

use super::OfferedTool;
use crate::annotate::Hints;
use crate::proxy::response::render::{self, OutputContract};
use crate::proxy::{self, BaseUrl, CallError, OperationAccess, Response, Sandbox, Upstream, Validator};
use crate::spec::operation::body::essence;
use crate::spec::operation::response;
use crate::spec::{Document, Operation};

/// A tool's other half.
pub(crate) struct BoundTool {
    // Boxed: it is large, and moves from list to list.
    pub(crate) operation: Box<Operation>,
    pub(crate) base: Option<Arc<BaseUrl>>,
    pub(crate) hints: Hints,
    pub(crate) category: Option<Box<str>>,
    pub(crate) access: OperationAccess,
    pub(crate) upstream: Option<Arc<Upstream>>,
    /// Whether its hints allow to send a request again.
    pub(crate) repeats: bool,
    /// The input schema with the names on the wire, where some had to be changed.
    pub(crate) wire: Option<Arc<JsonObject>>,
    /// The tool as clients get it.
    pub(crate) json: Box<str>,
    /// What is promised of a reply.
    pub(crate) promise: render::OutputContract,
    /// Compiled on first use: most tools of a large API are never called.
    pub(crate) checks: OnceLock<Option<Checks>>,
    pub(crate) accept: OnceLock<HeaderValue>,
}

/// What the arguments of a tool are checked against.
pub(crate) struct Checks {
    pub(crate) schema: Arc<JsonObject>,
    pub(crate) validator: Validator,
}

impl BoundTool {
    pub(crate) fn offered<'a>(&'a self, tool: &'a Tool) -> OfferedTool<'a> {
        OfferedTool {
            tool,
            operation: &self.operation,
            hints: &self.hints,
            category: self.category.as_deref(),
            text: &self.json,
        }
    }

    /// Where the call goes, and its arguments as they are sent.
    pub(crate) fn ready(&self, tool: &Tool, arguments: JsonObject) -> Result<(&BaseUrl, &Upstream, JsonObject), CallError> {
        let Value::Object(arguments) = self.checked(tool, Value::Object(arguments))? else {
            return Err(CallError::Arguments("The arguments are no object.".into()));
        };
        let (base, upstream) = self
            .base
            .as_ref()
            .zip(self.upstream.as_ref())
            .ok_or_else(|| CallError::Network("no server is set".into()))?;
        Ok((base, upstream, arguments))
    }

    /// The arguments, repaired where that makes them valid; else all that is wrong with them.
    fn checked(&self, tool: &Tool, mut arguments: Value) -> Result<Value, CallError> {
        let checks = self.checks.get_or_init(|| {
            let compiled = serde_json::from_str::<Tool>(&self.json)
                .map_err(|error| error.to_string())
                .and_then(|tool| {
                    let validator = Validator::compile(&Value::Object(tool.input_schema.as_ref().clone()))?;
                    Ok(Checks {
                        schema: tool.input_schema,
                        validator,
                    })
                });
            compiled
                .map_err(|error| tracing::warn!(tool = %tool.name, "the input schema cannot be checked: {error}"))
                .ok()
        });
        if let Some(Checks { schema, validator }) = checks
            && !validator.accepts(&arguments)
        {
            proxy::arguments::repair::repair_arguments(&mut arguments, schema);
            if !validator.accepts(&arguments) {
                return Err(CallError::Arguments(validator.explain(&tool.name, schema, &arguments)));
            }
        }
        if let Some(wire) = &self.wire {
            proxy::arguments::property_names::restore_property_names(&mut arguments, wire);
        }
        Ok(arguments)
    }
}

/// Puts what a filter makes of a reply in its place; a reply that is no JSON, and a failure, stay as they are.
/// `left` is what is left of the call's time.
pub(crate) async fn filtered(sandbox: &Sandbox, filter: &str, response: &mut Response, left: Duration) -> Result<(), String> {
    if !response.status.is_success() {
        return Ok(());
    }
    let Some(json) = render::json_text(response) else {
        return Err("The filter was not applied, because the reply is no JSON.".into());
    };
    let late = || Err("it was not done when the time for the call was over".into());
    match timeout(left, sandbox.run(filter, json.as_bytes())).await.unwrap_or_else(|_| late()) {
        // jq knows values that JSON does not, such as NaN.
        Ok(output) if serde_json::from_slice::<IgnoredAny>(output.as_ref()).is_err() => {
            Err("The filter was not applied, and this is the whole reply: what it gives is no JSON.".into())
        }
        Ok(output) => {
            render::put_json(response, output.into());
            Ok(())
        }
        Err(why) => Err(format!("The filter was not applied, and this is the whole reply: {why}.")),
    }
}

/// What a tool promises of its results.
pub(crate) fn promise(has_output: bool, is_strict: bool) -> OutputContract {
    match (has_output, is_strict) {
        (false, _) => OutputContract::None,
        (true, true) => OutputContract::AsDeclared,
        (true, false) => OutputContract::AnyObject,
    }
}

/// `Accept`: what the document says a success looks like, JSON first, and anything else after that.
pub(crate) fn accept(document: &Document, operation: &Operation) -> HeaderValue {
    const ANYTHING: HeaderValue = HeaderValue::from_static("application/json, */*;q=0.8");
    let mut types: Vec<String> = Vec::new();
    for media in response::successes(document, operation).iter().flat_map(|response| &response.media) {
        let name = essence(&media.name);
        if !types.contains(&name) && !name.contains('*') {
            types.push(name);
        }
    }
    types.sort_by_key(|name| !(name == "application/json" || name.ends_with("+json")));
    types.truncate(6);
    if types.is_empty() {
        return ANYTHING;
    }
    HeaderValue::from_str(&format!("{}, */*;q=0.5", types.join(", "))).unwrap_or(ANYTHING)
}
