//! Asks the user for consent before a call, through the client: with an elicitation request in
//! protocol versions up to 2025-11-25, which have sessions, and with an `input_required` result in
//! 2026-07-28, which has none. A client that may not or cannot be asked gets a link
//! (`mcp/calls/by_link.rs`) if `--confirm-by` has `link`, and else a refusal. The questions that
//! were answered are kept, so that each answer is accepted once.
//!
//! # Changing which calls are confirmed, and how a person is asked
//!
//! - `Confirm` in `annotate/options.rs` decides which calls, and `AskedBy` in
//!   `mcp/calls/approval.rs` how a person is asked.
//! - `question_text` in `mcp/calls/approval.rs` writes the question, and `call_digest` there binds the
//!   answer to the call.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lru::LruCache;
use parking_lot::Mutex;
use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
    InputRequest, InputRequiredResult, RequestStateCodec, SealOptions,
};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use url::Position;

use super::by_link::Links;
use super::plan::{NotAdmitted, OperationCall, Verdict, note_question, refuse, refuse_as, visible};
use crate::caller::client_grant::Scopes;
use crate::caller::{Caller, ClientKey, may_take_place};
use crate::json::JsonObject;
use crate::mcp::connections::request_origin::RequestOrigin;
use crate::mcp::protocol::message::RequestParameters;
use crate::mcp::protocol::version::ProtocolVersion;
use crate::observe::call::note;
use crate::observe::metrics::labels::CallOutcome;
use crate::outbound::request::Request;
use crate::shared_state::keys::StateKeys;
use crate::shared_state::state::SharedState;
use crate::text;

/// Time within which a question can be answered.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(5);
/// The name of the question in `inputRequests`.
const QUESTION: &str = "confirm";
/// Number of bytes of an argument that the question shows; it reports how many are left out.
const MAX_SHOWN_ARGUMENT: usize = 400;
/// Number of bytes of the name of an API that the question shows.
const MAX_SHOWN_API: usize = 100;

/// Who is asked for consent.
#[derive(Debug, Clone, Default)]
pub(crate) struct AskedBy {
    /// The user of the client, by the client.
    pub(crate) client: bool,
    /// Who opens a link; beside `client`, for clients that cannot ask.
    pub(crate) link: bool,
    /// The scope of tokens whose users may agree. With such a token, nothing is called that needs
    /// consent.
    pub(crate) approver_scope: Option<String>,
}

impl AskedBy {
    /// Returns true if nothing is called with consent unless the client can ask its user.
    pub(crate) fn needs_client(&self) -> bool {
        self.client && !self.link
    }
}

/// The keys that seal questions, and the questions that were answered.
pub(crate) struct Approver {
    pub(crate) asked_by: AskedBy,
    /// The questions that links lead to.
    pub(super) links: Option<Arc<Links>>,
    /// Seal the `requestState` that a client returns: the first seals, and all open. Without shared
    /// state, each process has its own random key: after a restart, or at another replica, the
    /// person is asked again.
    seals: Vec<RequestStateCodec>,
    answered: Mutex<AnsweredQuestions>,
    /// State that lets an answer count once for all replicas.
    shared: Option<Arc<SharedState>>,
}

impl Approver {
    pub(crate) fn new(asked_by: AskedBy, shared: Option<Arc<SharedState>>) -> Self {
        let random = shared.is_none().then(StateKeys::random).flatten();
        let keys = shared.as_ref().map(|shared| &shared.keys);
        let keys = keys.or(random.as_ref());
        let links = keys.filter(|_| asked_by.link);
        let links = links.and_then(|keys| Links::new(keys, shared.clone()));
        let seals = keys.map(|keys| keys.derived_keys("questions"));
        Self {
            asked_by,
            links,
            seals: seals
                .into_iter()
                .flatten()
                .filter_map(|key| RequestStateCodec::try_new(key).ok())
                .collect(),
            answered: Mutex::new(AnsweredQuestions::new()),
            shared,
        }
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

    /// Asks about one call; `prepared` is the request that it would make, without credentials, and
    /// `arguments` are those that it would send.
    pub(super) async fn ask(
        &self,
        call: &OperationCall,
        prepared: &Request,
        arguments: &JsonObject,
        caller: &Caller,
        asking: Asking<'_>,
    ) -> Verdict {
        let Asking {
            parameters,
            version,
            origin,
        } = asking;
        if let Some(scope) = &self.asked_by.approver_scope
            && let Scopes::Granted(granted) = &caller.granted().scopes
            && granted.contains(scope)
        {
            let why = format!(
                ": a person has to agree first, and the token of this client is one of those with which people agree. Nothing was sent. Call with a token that lacks the scope `{scope}`."
            );
            return refuse(call, &why);
        }
        let client = caller.key();
        let tenant = call.seen.api.tenant(caller);
        let call_digest = call_digest(prepared, arguments, tenant, call);
        let digest = [call_digest.as_slice(), &client.0.to_be_bytes()].concat();
        let given = |name: &str| parameters.rest.get(name);
        if self.asked_by.client
            && version.asks_by_result()
            && let (Some(Value::String(state)), Some(answers)) =
                (given("requestState"), given("inputResponses"))
        {
            let answer = answers
                .get(QUESTION)
                .and_then(|answer| serde_json::from_value::<ElicitResult>(answer.clone()).ok());
            let mut seals = self.seals.iter();
            let question = seals.find_map(|seal| seal.open_with(state, &digest).ok());
            // An answer to another question, an expired answer and a repeated answer do not count.
            if let (Some(question), Some(answer)) = (question, answer)
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
        if !(self.asked_by.client && can_ask) {
            if let Some(links) = &self.links {
                return Box::pin(links.ask(call, prepared, &call_digest, caller)).await;
            }
            return refuse(
                call,
                ": a person has to agree first, and this client cannot ask one (it does not support elicitation). Nothing was sent. The operator can allow it with `--confirm none`, or `--confirm-by client,link`, or use a client that supports elicitation.",
            );
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
                return refuse(call, ": the user cannot be asked. Nothing was sent.");
            };
            note_question(&question_id);
            if let Some(shared) = &self.shared {
                // If it cannot be kept for the replica that gets its answer, no answer counts, and
                // the user is asked again.
                let _ = shared.keep_question(&question_id, ANSWER_TIMEOUT).await;
            }
            let options = SealOptions::new().associated_data(&digest);
            let state = seal.seal_with(&question_id, &options.ttl(ANSWER_TIMEOUT));
            let question = InputRequest::Elicitation(ElicitRequest::new(question));
            let questions = BTreeMap::from([(QUESTION.to_owned(), question)]);
            let asking = InputRequiredResult::new(Some(questions), Some(state));
            return Err(NotAdmitted::Ask(Box::new(asking)));
        }
        match origin.ask(question, ANSWER_TIMEOUT).await {
            Ok(answer) => judge(call, &answer.action),
            Err(why) => {
                tracing::warn!(tool = %call.offered().name, "the client did not answer the confirmation request: {why}");
                refuse(
                    call,
                    ": a person has to agree first, and none answered. Nothing was sent.",
                )
            }
        }
    }
}

/// The request of a client, as far as it decides how its user is asked.
pub(crate) struct Asking<'v> {
    pub(crate) parameters: &'v RequestParameters,
    pub(crate) version: ProtocolVersion,
    pub(crate) origin: &'v mut RequestOrigin,
}

/// Returns the hash of all values that an answer is bound to, besides the client: its tenant, the
/// document, the meta-tool and the tool, its arguments with the values of rules, and the method and
/// URL of the request.
fn call_digest(
    prepared: &Request,
    arguments: &JsonObject,
    tenant: Option<&str>,
    call: &OperationCall,
) -> Vec<u8> {
    let api = &call.seen.api;
    let mut digest = Sha256::new();
    digest.update(api.document_digest());
    digest.update(format!("{tenant:?}\n{:?}\n", call.through));
    digest.update(format!("{} {}\n", prepared.method, prepared.url));
    for text in [&*call.endpoint, api.label(), &call.offered().name] {
        digest.update(text);
        digest.update([0]);
    }
    digest.update(Value::Object(arguments.clone()).to_string());
    digest.finalize().to_vec()
}

fn judge(call: &OperationCall, action: &ElicitationAction) -> Verdict {
    match action {
        ElicitationAction::Accept => {
            note(|record| record.confirmed = true);
            Ok(None)
        }
        ElicitationAction::Decline => {
            let why = ": the user declined. Nothing was sent.";
            refuse_as(CallOutcome::Declined, call, why)
        }
        _ => refuse(call, ": the user gave no answer. Nothing was sent."),
    }
}

/// The first line of the request, without host.
fn request_line(prepared: &Request) -> String {
    let target = &prepared.url[Position::BeforePath..Position::AfterQuery];
    format!("{} {target}", prepared.method)
}

/// Returns the question: the operation, its API, the request line and every argument as it will be
/// sent, and then the title from the document, marked as such. It does not contain the name of a
/// meta-tool, which says nothing about the operation.
fn question_text(call: &OperationCall, request_line: &str) -> String {
    let offered = call.offered();
    let api = &call.seen.api;
    let label = text::truncate(&text::one_line(api.label()), MAX_SHOWN_API);
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
        visible(api.tool_label(call.tool)),
        visible(&label),
        visible(request_line),
        arguments.collect::<String>(),
        visible(&offered.title)
    )
}

/// Answers that are remembered at the same time.
const MAX_ANSWERS: usize = 10_000;

/// The answered questions, each kept until it expires.
pub(crate) struct AnsweredQuestions {
    /// In the order of the answers.
    questions: LruCache<Vec<u8>, (Instant, ClientKey)>,
    /// Number of questions that each client has answered.
    held: HashMap<ClientKey, usize>,
}

impl AnsweredQuestions {
    /// Makes an empty set.
    pub(crate) fn new() -> Self {
        Self {
            questions: LruCache::unbounded(),
            held: HashMap::new(),
        }
    }

    /// Returns true if this is the first answer to the question and there is room to remember it.
    /// An answer that cannot be remembered does not count, because it could be repeated.
    pub(crate) fn take_first_answer(
        &mut self,
        question: Vec<u8>,
        client: ClientKey,
        now: Instant,
    ) -> bool {
        self.forget_old(now);
        let own = self.held.get(&client).copied().unwrap_or_default();
        if self.questions.contains(&question)
            || !may_take_place(own, self.questions.len(), MAX_ANSWERS)
        {
            return false;
        }
        self.held.insert(client, own + 1);
        self.questions.put(question, (now, client)).is_none()
    }

    fn forget_old(&mut self, now: Instant) {
        while let Some((_, (at, client))) = self.questions.peek_lru()
            && now.saturating_duration_since(*at) >= ANSWER_TIMEOUT
        {
            let client = *client;
            self.questions.pop_lru();
            if let Some(own) = self.held.get_mut(&client) {
                *own -= 1;
                if *own == 0 {
                    self.held.remove(&client);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p45_an_answer_counts_once_and_a_client_cannot_fill_the_table() {
        let mut answered = AnsweredQuestions::new();
        let (one, other) = (ClientKey::named("t", b"1"), ClientKey::named("t", b"2"));
        let now = Instant::now();
        let taken = (0..20_000_u32)
            .filter(|number| answered.take_first_answer(number.to_be_bytes().to_vec(), one, now));
        assert_eq!(taken.count(), MAX_ANSWERS / 2);
        assert!(answered.take_first_answer(b"other".to_vec(), other, now));
        assert!(
            !answered.take_first_answer(b"other".to_vec(), other, now),
            "it counts once"
        );
        let later = now + Duration::from_mins(6);
        assert!(
            answered.take_first_answer(b"again".to_vec(), one, later),
            "what is old is forgotten"
        );
        assert_eq!((answered.questions.len(), answered.held.len()), (1, 1));
    }
}
