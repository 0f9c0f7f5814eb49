//! A person's word before a call is made, through the client: by an elicitation where there is a connection that can carry
//! one (protocol versions up to 2025-11-25), by an answer that asks for input where every request stands alone (2026-07-28).

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ContentBlock, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, InputRequest, InputRequiredResult, RequestStateCodec, SealOptions,
};
use rmcp::service::RequestContext;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::api::Offered;
use crate::spec::text;

/// How long a person may think.
const PATIENCE: Duration = Duration::from_mins(5);
/// The question's name among the inputs that are asked for.
const QUESTION: &str = "confirm";
/// More of the arguments than this is not shown.
const LONGEST_ARGUMENTS: usize = 1000;

/// Seals what a client carries back to us. The key is made anew in every process: after a restart, or by another replica,
/// the person is asked again.
static SEAL: LazyLock<Option<RequestStateCodec>> = LazyLock::new(|| {
    let mut key = [0; 32];
    getrandom::fill(&mut key).ok()?;
    RequestStateCodec::try_new(key).ok()
});

/// What became of the question.
pub(super) enum Verdict {
    /// The call may be made.
    Yes,
    /// It may not: the answer to it.
    No(Box<CallToolResult>),
    /// The client has to ask, and to call again.
    Ask(Box<InputRequiredResult>),
}

/// Asks about one call.
pub(super) async fn ask(offered: Offered<'_>, request: &CallToolRequestParams, context: &RequestContext<RoleServer>) -> Verdict {
    let modern = context.meta.protocol_version().is_some();
    let about = about(request);
    if modern && let (Some(seal), Some(state), Some(answers)) = (SEAL.as_ref(), &request.request_state, &request.input_responses) {
        let answer = answers
            .get(QUESTION)
            .and_then(|answer| serde_json::from_value::<ElicitResult>(answer.clone()).ok());
        // An answer to another question, or one that is too old, is none.
        if seal.open_with(state, &about).is_ok()
            && let Some(answer) = answer
        {
            return judge(offered, &answer.action);
        }
    }
    let can_ask = context
        .client_capabilities()
        .and_then(|capabilities| capabilities.elicitation)
        .is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none());
    if !can_ask {
        return refuse(format!(
            "{} was not called: a person has to agree first, and this client cannot ask one (it does not support elicitation). Nothing was sent. The operator can allow it with `--confirm none`, or use a client that supports elicitation.",
            what(offered)
        ));
    }
    let question = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message(offered, request),
        requested_schema: ElicitationSchema::new(BTreeMap::new()),
    };
    if modern && let Some(seal) = SEAL.as_ref() {
        let state = seal.seal_with(QUESTION.as_bytes(), &SealOptions::new().associated_data(&about).ttl(PATIENCE));
        let question = InputRequest::Elicitation(ElicitRequest::new(question));
        let questions = BTreeMap::from([(QUESTION.to_owned(), question)]);
        return Verdict::Ask(Box::new(InputRequiredResult::new(Some(questions), Some(state))));
    }
    match context.peer.create_elicitation_with_timeout(question, Some(PATIENCE)).await {
        Ok(answer) => judge(offered, &answer.action),
        Err(error) => {
            tracing::warn!(tool = %offered.tool.name, "a confirmation could not be had: {error}");
            refuse(format!(
                "{} was not called: a person has to agree first, and none answered. Nothing was sent.",
                what(offered)
            ))
        }
    }
}

/// What the answer is bound to: this tool with these arguments.
fn about(request: &CallToolRequestParams) -> Vec<u8> {
    let mut digest = Sha256::new();
    digest.update(request.name.as_bytes());
    digest.update([0]);
    digest.update(Value::Object(request.arguments.clone().unwrap_or_default()).to_string());
    digest.finalize().to_vec()
}

fn judge(offered: Offered<'_>, action: &ElicitationAction) -> Verdict {
    match action {
        ElicitationAction::Accept => Verdict::Yes,
        ElicitationAction::Decline => refuse(format!("{} was not called: the user declined. Nothing was sent.", what(offered))),
        _ => refuse(format!(
            "{} was not called: the user gave no answer. Nothing was sent.",
            what(offered)
        )),
    }
}

fn refuse(text: String) -> Verdict {
    Verdict::No(Box::new(CallToolResult::error(vec![ContentBlock::text(text)])))
}

fn what(offered: Offered<'_>) -> String {
    format!("{} ({})", offered.tool.name, text::one_line(&offered.operation.label()))
}

/// The question, in words of ours but for the arguments.
fn message(offered: Offered<'_>, request: &CallToolRequestParams) -> String {
    let weight = if offered.hints.is_destructive() {
        "It may change or remove what exists."
    } else {
        "It writes."
    };
    let arguments = Value::Object(request.arguments.clone().unwrap_or_default()).to_string();
    format!(
        "Allow this call?\n\n{}: {}\n{weight}\n\nArguments: {}",
        offered.tool.title.as_deref().unwrap_or(&offered.tool.name),
        text::one_line(&offered.operation.label()),
        text::cut(&text::one_line(&arguments), LONGEST_ARGUMENTS)
    )
}
