//! Asks the user for consent before a call, through the client: with an elicitation request in
//! protocol versions up to 2025-11-25, which have sessions, and with an `input_required` result in
//! 2026-07-28, which has none.
//!
//! # Changing which calls are confirmed
//!
//! - `Confirm` in `annotate/options.rs` decides which.
//! - `question_text` in `mcp/calls/approval.rs` writes the question, and `call_digest` there binds the
//!   answer to the call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
    InputRequest, InputRequiredResult, RequestStateCodec, SealOptions,
};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::answered_questions::AnsweredQuestions;
use super::plan::OperationCall;
use crate::caller::Caller;
use crate::caller::client_key::ClientKey;
use crate::mcp::connections::request_origin::{Asked, RequestOrigin};
use crate::mcp::protocol::message::RequestParameters;
use crate::mcp::protocol::version::ProtocolVersion;
use crate::observe::call::note;
use crate::observe::outcome::CallOutcome;
use crate::outbound::request::Request;
use crate::results::tool_result::ToolResult;
use crate::shared_state::state::SharedState;
use crate::text;
use crate::text::hex;

/// Time within which a question can be answered.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(5);
/// The name of the question in `inputRequests`.
const QUESTION: &str = "confirm";
/// Number of bytes of an argument that the question shows; it reports how many are left out.
const MAX_SHOWN_ARGUMENT: usize = 400;
/// Number of bytes of the name of an API that the question shows.
const MAX_SHOWN_API: usize = 100;

/// The keys that seal questions, and the questions that were answered.
pub(crate) struct Approver {
    /// Seal the `requestState` that a client returns: the first seals, and all open. Without shared
    /// state, each process has its own random key: after a restart, or at another replica, the
    /// person is asked again.
    seals: Vec<RequestStateCodec>,
    answered: Mutex<AnsweredQuestions>,
    /// State that lets an answer count once for all replicas.
    shared: Option<Arc<SharedState>>,
}

impl Approver {
    pub(crate) fn new(shared: Option<Arc<SharedState>>) -> Self {
        let keys = shared
            .as_ref()
            .map_or_else(random_keys, |shared| shared.derived_keys("questions"));
        Self {
            seals: keys
                .into_iter()
                .filter_map(|key| RequestStateCodec::try_new(key).ok())
                .collect(),
            answered: Mutex::new(AnsweredQuestions::new(ANSWER_TIMEOUT)),
            shared,
        }
    }

    /// Returns the question that a client sends back, if it is about this call.
    fn question(&self, state: &str, digest: &[u8]) -> Option<Vec<u8>> {
        self.seals
            .iter()
            .find_map(|seal| seal.open_with(state, digest).ok())
    }

    /// Accepts a client's answer to a question, once. If it is unknown whether another replica has
    /// accepted it, it does not count, and the person is asked again.
    async fn first_answer(&self, question: &[u8], client: ClientKey) -> bool {
        let is_first_here = {
            let mut answered = self.answered.lock();
            answered.take_first_answer(question.to_vec(), client, Instant::now())
        };
        let Some(shared) = self.shared.as_ref().filter(|_| is_first_here) else {
            return is_first_here;
        };
        shared.accept_answer(question).await.unwrap_or(false)
    }

    /// Keeps a question for the replica that gets its answer. If it cannot be kept, no answer
    /// counts, and the user is asked again.
    async fn keep_question(&self, question: &[u8]) {
        if let Some(shared) = &self.shared {
            let _ = shared.keep_question(question, ANSWER_TIMEOUT).await;
        }
    }

    /// Asks about one call; `prepared` is the request that it would make, without credentials.
    pub(super) async fn ask(
        &self,
        call: &OperationCall,
        prepared: &Request,
        caller: &Caller,
        asking: Asking<'_>,
    ) -> Verdict {
        let Asking {
            parameters,
            version,
            origin,
        } = asking;
        let client = caller.key();
        let digest = call_digest(prepared, call.tenant(caller), call, client);
        let given = |name: &str| parameters.rest.get(name);
        if version.asks_by_result()
            && let (Some(Value::String(state)), Some(answers)) =
                (given("requestState"), given("inputResponses"))
        {
            let answer = answers
                .get(QUESTION)
                .and_then(|answer| serde_json::from_value::<ElicitResult>(answer.clone()).ok());
            // An answer to another question, an expired answer and a repeated answer do not count.
            if let (Some(question), Some(answer)) = (self.question(state, &digest), answer)
                && self.first_answer(&question, client).await
            {
                note_question(&question);
                return judge(call, &answer.action);
            }
        }
        let can_ask = origin
            .capabilities(parameters)
            .and_then(|capabilities| capabilities.elicitation)
            .is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none());
        if !can_ask {
            return refuse(format!(
                "{} was not called: a person has to agree first, and this client cannot ask one (it does not support elicitation). Nothing was sent. The operator can allow it with `--confirm none`, or use a client that supports elicitation.",
                tool_and_operation(call)
            ));
        }
        let question = ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: question_text(call, &request_line(prepared)),
            requested_schema: ElicitationSchema::new(BTreeMap::new()),
        };
        if version.asks_by_result() {
            let mut question_id = [0; 16];
            let (Some(seal), Ok(())) = (self.seals.first(), getrandom::fill(&mut question_id))
            else {
                return refuse(format!(
                    "{} was not called: the user cannot be asked. Nothing was sent.",
                    tool_and_operation(call)
                ));
            };
            note_question(&question_id);
            self.keep_question(&question_id).await;
            let state = seal.seal_with(
                &question_id,
                &SealOptions::new()
                    .associated_data(&digest)
                    .ttl(ANSWER_TIMEOUT),
            );
            let question = InputRequest::Elicitation(ElicitRequest::new(question));
            let questions = BTreeMap::from([(QUESTION.to_owned(), question)]);
            return Verdict::Ask(Box::new(InputRequiredResult::new(
                Some(questions),
                Some(state),
            )));
        }
        match origin.ask(question, ANSWER_TIMEOUT).await {
            Asked::Answered(answer) => judge(call, &answer.action),
            Asked::Unanswered(why) => {
                tracing::warn!(tool = %call.offered().name, "the client did not answer the confirmation request: {why}");
                refuse(format!(
                    "{} was not called: a person has to agree first, and none answered. Nothing was sent.",
                    tool_and_operation(call)
                ))
            }
        }
    }
}

fn random_keys() -> Vec<[u8; 32]> {
    let mut key = [0; 32];
    getrandom::fill(&mut key)
        .map(|()| key)
        .into_iter()
        .collect()
}

/// The request of a client, as far as it decides how its user is asked.
pub(crate) struct Asking<'v> {
    pub(crate) parameters: &'v RequestParameters,
    pub(crate) version: ProtocolVersion,
    pub(crate) origin: &'v mut RequestOrigin,
}

/// The outcome of a question.
pub(super) enum Verdict {
    /// The call may be made.
    Yes,
    /// The call is refused, with this result.
    No(Box<ToolResult>),
    /// The client must ask the person and call again.
    Ask(Box<InputRequiredResult>),
}

/// Returns the hash of all values that an answer is bound to: the client and its tenant, the
/// meta-tool and the tool, its arguments, and the method and URL of the request.
fn call_digest(
    prepared: &Request,
    tenant: Option<&str>,
    call: &OperationCall,
    client: ClientKey,
) -> Vec<u8> {
    let mut digest = Sha256::new();
    digest.update(format!("{client:?}\n{tenant:?}\n{:?}\n", call.meta_tool()));
    digest.update(format!("{} {}\n", prepared.method, prepared.url));
    digest.update(call.endpoint().as_bytes());
    digest.update([0]);
    digest.update(call.offered().name.as_bytes());
    digest.update([0]);
    digest.update(Value::Object(call.arguments().cloned().unwrap_or_default()).to_string());
    digest.finalize().to_vec()
}

fn judge(call: &OperationCall, action: &ElicitationAction) -> Verdict {
    match action {
        ElicitationAction::Accept => {
            note(|record| record.confirmed = true);
            Verdict::Yes
        }
        ElicitationAction::Decline => refuse_as(
            CallOutcome::Declined,
            format!(
                "{} was not called: the user declined. Nothing was sent.",
                tool_and_operation(call)
            ),
        ),
        _ => refuse_as(
            CallOutcome::Unanswered,
            format!(
                "{} was not called: the user gave no answer. Nothing was sent.",
                tool_and_operation(call)
            ),
        ),
    }
}

/// Joins the lines of the question and of its answer in the audit log.
fn note_question(id: &[u8]) {
    note(|record| record.question = Some(hex(id)));
}

fn refuse_as(outcome: CallOutcome, text: String) -> Verdict {
    Verdict::No(Box::new(ToolResult::error(text).ended_as(outcome)))
}

fn refuse(text: String) -> Verdict {
    refuse_as(CallOutcome::Unanswered, text)
}

/// The first line of the request, without host.
fn request_line(prepared: &Request) -> String {
    let query = prepared
        .url
        .query()
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    format!("{} {}{query}", prepared.method, prepared.url.path())
}

fn tool_and_operation(call: &OperationCall) -> String {
    format!(
        "{} ({})",
        call.tool_name(),
        text::one_line(&call.offered().operation.label())
    )
}

/// Returns the question: the operation, its API, the request line and every argument as it will be
/// sent, and then the title from the document, marked as such. It does not contain the name of a
/// meta-tool, which says nothing about the operation.
fn question_text(call: &OperationCall, request_line: &str) -> String {
    let offered = call.offered();
    let api = text::truncate(&text::one_line(call.api_label()), MAX_SHOWN_API);
    let weight = if offered.hints.is_destructive() {
        "It may change or remove what exists."
    } else if offered.hints.is_read_only() {
        "It only reads."
    } else {
        "It writes."
    };
    let arguments = call.repaired_arguments().into_iter().map(|(name, value)| {
        let whole = visible(&value.to_string());
        let shown = whole
            .get(..whole.floor_char_boundary(MAX_SHOWN_ARGUMENT))
            .unwrap_or_default();
        let more = match whole.len() - shown.len() {
            0 => String::new(),
            more => format!("… and {more} bytes more, which are not shown"),
        };
        format!("\n- {}: {shown}{more}", visible(&name))
    });
    format!(
        "Allow {} of \u{201c}{}\u{201d}: {}? {weight}{}\n\nThe API calls it \u{201c}{}\u{201d}.",
        visible(call.tool_label()),
        visible(&api),
        visible(request_line),
        arguments.collect::<String>(),
        visible(&offered.title)
    )
}

/// The text with invisible characters written as escapes.
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if text::has_hidden_characters(character.encode_utf8(&mut [0; 4])) {
            out.extend(character.escape_unicode());
        } else {
            out.push(character);
        }
    }
    out
}
