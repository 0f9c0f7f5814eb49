//! Agreement by a link: the result of a call has the address of a page of this server, where a
//! person agrees. The same call is then made once.
//!
//! What was asked and answered is one value under the hash of the call. A second value leads from
//! the random identifier of a link to that hash.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use aws_lc_rs::hmac;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::OnceCell;
use url::Url;

use super::plan::{OperationCall, Verdict, note_question, refuse, refuse_as, visible};
use crate::annotate::Hint;
use crate::caller::{Caller, may_take_place};
use crate::observe;
use crate::observe::call::note;
use crate::observe::metrics::CountedEvent;
use crate::observe::metrics::labels::CallOutcome;
use crate::outbound::request::{Payload, Piece, Request};
use crate::shared_state::cells::{Agreement, CellValue, Cells};
use crate::shared_state::connection::StateUnavailable;
use crate::shared_state::keys::StateKeys;
use crate::shared_state::state::SharedState;
use crate::text::{hex, one_line};

/// The path that links have beside the endpoint, before their identifier.
pub(crate) const APPROVE_PATH: &str = "/approve/";
/// Time within which a question can be answered, and for which an answer is valid.
const LIFETIME: Duration = Duration::from_mins(10);
/// Open questions of all callers, and of one.
const MAX_PENDING: (usize, usize) = (1000, 20);
/// Number of bytes that a person can read.
const MAX_SHOWN_BYTES: usize = 256 << 10;
/// Number of bytes of the files of one call.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Opens a listener with the page, and returns the address that links are beside.
type OpenListener = fn(Arc<Links>) -> BoxFuture<'static, io::Result<Url>>;

/// The questions that links lead to, with their answers.
pub(crate) struct Links {
    cells: Arc<Cells>,
    /// Hashes calls: their arguments may hold secrets.
    key: hmac::Key,
    /// The URL of the endpoint that links are beside.
    endpoint: OnceCell<Url>,
    open_listener: OnceLock<OpenListener>,
    /// Open questions of this process by their identifiers: who asked them, and their end.
    pending: Mutex<HashMap<String, (String, Instant)>>,
}

/// A call that a person is asked about.
#[derive(Serialize, Deserialize)]
struct LinkedQuestion {
    /// The identifier of the link.
    id: String,
    /// What the page shows.
    shown: Value,
    /// The answer, once it is given.
    agreed: Option<bool>,
    /// The end of the question, or of the answer, in seconds since 1970.
    until: u64,
}

impl LinkedQuestion {
    fn read(found: &CellValue) -> Option<Self> {
        let question: Self = serde_json::from_slice(&found.value).ok()?;
        (question.seconds_left() > 0).then_some(question)
    }

    fn seconds_left(&self) -> u64 {
        self.until.saturating_sub(now())
    }

    fn minutes_left(&self) -> u64 {
        self.seconds_left().div_ceil(60)
    }

    fn write(&self) -> Result<Vec<u8>, StateUnavailable> {
        serde_json::to_vec(self).map_err(|_| StateUnavailable)
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

/// The part of a link's identifier that logs may hold.
fn question_of(id: &str) -> Vec<u8> {
    Sha256::digest(id).iter().take(16).copied().collect()
}

impl Links {
    /// Links of this process, or of all replicas; `None` if the key cannot be made.
    pub(crate) fn new(keys: &StateKeys, shared: Option<Arc<SharedState>>) -> Option<Arc<Self>> {
        Some(Arc::new(Self {
            key: keys.hash_key("links")?,
            cells: Arc::new(Cells::new(shared)),
            endpoint: OnceCell::new(),
            open_listener: OnceLock::new(),
            pending: Mutex::default(),
        }))
    }

    /// Makes links lead to a page beside the endpoint with that URL.
    pub(crate) fn serve_beside(&self, endpoint: Url) {
        let _ = self.endpoint.set(endpoint);
    }

    /// Makes the first question open a listener.
    pub(crate) fn serve_on_demand(&self, open_listener: OpenListener) {
        let _ = self.open_listener.set(open_listener);
    }

    /// Returns the origin of the page.
    pub(crate) fn origin(&self) -> Option<String> {
        Some(self.endpoint.get()?.origin().ascii_serialization())
    }

    async fn address(self: &Arc<Self>, id: &str) -> io::Result<Url> {
        let open = || async {
            let open = self.open_listener.get();
            let open = open.ok_or_else(|| io::Error::other("nothing serves the page"))?;
            open(Arc::clone(self)).await
        };
        let mut url = self.endpoint.get_or_try_init(open).await?.clone();
        let path = url.path().trim_end_matches('/');
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        url.set_path(&format!("{folder}{APPROVE_PATH}{id}"));
        Ok(url)
    }

    /// Decides about a call by what was answered about it, or asks. `digest` is that of the call
    /// besides its caller and its files.
    pub(super) async fn ask(
        self: &Arc<Self>,
        call: &OperationCall,
        prepared: &Request,
        digest: &[u8],
        caller: &Caller,
    ) -> Verdict {
        let not_called = |why: &str| {
            let why = format!(": a person has to approve it first, and {why}. Nothing was sent.");
            refuse(call, &why)
        };
        let owner = caller.identity();
        let mut parts = hmac::Context::with_key(&self.key);
        parts.update(digest);
        match digest_files(prepared).await {
            Ok(files) => parts.update(&files),
            Err(why) => return not_called(&why.to_string()),
        }
        parts.update(owner.as_bytes());
        let name = hex(parts.sign().as_ref());
        // A second time, if the same call was asked about meanwhile.
        for _ in 0..2 {
            let found = match self.cells.read(&name).await {
                Ok(found) => found,
                Err(why) => return not_called(&why.to_string()),
            };
            let question = found.as_ref().and_then(LinkedQuestion::read);
            let ended = match (question, found) {
                (Some(question), Some(found)) => {
                    return self.judge(call, question, name, found).await;
                }
                (_, found) => found,
            };
            let offered = call.offered();
            let shown = json!({
                "api": visible(&one_line(call.seen.api.label())),
                "tool": visible(&offered.name),
                "title": visible(&offered.title),
                "operation": visible(&one_line(&offered.operation.label())),
                "effect": offered.hints.effect().word(),
                "hints": Hint::ALL.map(|hint| json!([hint.word(), offered.hints.effective(hint)])),
                "arguments": visible(&format!("{:#}", Value::Object(call.repaired_arguments()))),
                "request": visible(&prepared.http_text()),
                "caller": visible(&one_line(&owner)),
            });
            if shown.to_string().len() > MAX_SHOWN_BYTES {
                return not_called("the request is too long for a person to read");
            }
            let mut id = [0; 16];
            let Ok(id) = getrandom::fill(&mut id).map(|()| hex(&id)) else {
                return not_called("no link can be made");
            };
            if !self.take_place(&id, &owner) {
                return not_called("too many calls wait for that already; try again later");
            }
            let question = LinkedQuestion {
                id,
                shown,
                agreed: None,
                until: now() + LIFETIME.as_secs(),
            };
            let kept = self.keep(&name, ended.as_ref(), &question).await;
            if matches!(kept, Ok(true)) {
                observe::count(CountedEvent::Approval, "asked");
                return self.asked(call, &question).await;
            }
            self.free_place(&question.id);
            if let Err(why) = kept {
                return not_called(&why.to_string());
            }
        }
        not_called("another call was asked about at the same time; call again")
    }

    /// Decides by a question that was asked before.
    async fn judge(
        self: &Arc<Self>,
        call: &OperationCall,
        question: LinkedQuestion,
        name: String,
        value: CellValue,
    ) -> Verdict {
        note_question(&question_of(&question.id));
        match question.agreed {
            None => self.asked(call, &question).await,
            Some(true) => {
                self.free_place(&question.id);
                note(|record| record.confirmed = true);
                let agreement = Agreement::new(Arc::clone(&self.cells), name, value);
                Ok(Some(Arc::new(agreement)))
            }
            Some(false) => {
                self.free_place(&question.id);
                let minutes = question.minutes_left();
                let why = format!(
                    ": the user declined, and the same call is refused for {minutes} minutes more. Nothing was sent."
                );
                refuse_as(CallOutcome::Declined, call, &why)
            }
        }
    }

    /// The result with the link.
    async fn asked(self: &Arc<Self>, call: &OperationCall, question: &LinkedQuestion) -> Verdict {
        note_question(&question_of(&question.id));
        let address = match self.address(&question.id).await {
            Ok(address) => address,
            Err(error) => {
                tracing::warn!("--confirm-by link: the page cannot be served: {error}");
                return refuse(
                    call,
                    ": a person has to approve it first, and the page for that cannot be served. Nothing was sent.",
                );
            }
        };
        let minutes = question.minutes_left();
        let why = format!(
            " yet: a person has to approve it first. Show this link to the user: {address}\nCall again with the same arguments once it was approved. The link is valid for {minutes} minutes. Nothing was sent."
        );
        refuse_as(CallOutcome::Asked, call, &why)
    }

    /// Keeps a new question and its link, in place of one that has ended. Returns false if the call
    /// was asked about meanwhile.
    async fn keep(
        &self,
        name: &str,
        ended: Option<&CellValue>,
        question: &LinkedQuestion,
    ) -> Result<bool, StateUnavailable> {
        let link = link_name(&question.id);
        let linked = self
            .cells
            .swap(&link, None, Some(name.as_bytes()), LIFETIME);
        let text = question.write()?;
        linked.await?;
        self.cells.swap(name, ended, Some(&text), LIFETIME).await
    }

    /// The open question that a link leads to, and the name of its value.
    async fn find(
        &self,
        id: &str,
    ) -> Result<Option<(String, CellValue, LinkedQuestion)>, StateUnavailable> {
        let Some(name) = self.cells.read(&link_name(id)).await? else {
            return Ok(None);
        };
        let name = String::from_utf8(name.value).map_err(|_| StateUnavailable)?;
        let Some(found) = self.cells.read(&name).await? else {
            return Ok(None);
        };
        let question = LinkedQuestion::read(&found);
        let question = question.filter(|asked| asked.id == id && asked.agreed.is_none());
        if question.is_none() {
            // Another replica may have taken the answer.
            self.free_place(id);
        }
        Ok(question.map(|question| (name, found, question)))
    }

    /// What the page shows of an open question; `None` if the link leads to none.
    ///
    /// # Errors
    /// [`StateUnavailable`]
    pub(crate) async fn shown(&self, id: &str) -> Result<Option<Value>, StateUnavailable> {
        Ok(self.find(id).await?.map(|(name, _, question)| {
            let seconds = question.seconds_left();
            json!({ "question": question.shown, "hash": name, "seconds": seconds })
        }))
    }

    /// Takes the answer to an open question, if the page has shown the call with that hash.
    /// Returns false if it was too late. `approver` is the name of who answers.
    ///
    /// # Errors
    /// [`StateUnavailable`]: the answer is not valid.
    pub(crate) async fn answer(
        &self,
        id: &str,
        hash: &str,
        agrees: bool,
        approver: &str,
    ) -> Result<bool, StateUnavailable> {
        let found = self.find(id).await?;
        let Some((name, found, mut question)) = found.filter(|(name, ..)| name == hash) else {
            return Ok(false);
        };
        question.agreed = Some(agrees);
        question.until = now() + LIFETIME.as_secs();
        let text = question.write()?;
        let is_first = self
            .cells
            .swap(&name, Some(&found), Some(&text), LIFETIME)
            .await?;
        if is_first {
            self.free_place(id);
            observe::record_approval(&hex(&question_of(id)), approver, agrees);
        }
        Ok(is_first)
    }

    /// Takes a place for an open question; false if its owner has too many, or all have.
    fn take_place(&self, id: &str, owner: &str) -> bool {
        let now = Instant::now();
        let mut pending = self.pending.lock();
        pending.retain(|_, (_, until)| *until > now);
        let own = pending.values().filter(|(other, _)| other == owner).count();
        let (all, of_one) = MAX_PENDING;
        let may = own < of_one && may_take_place(own, pending.len(), all);
        if may {
            pending.insert(id.to_owned(), (owner.to_owned(), now + LIFETIME));
        }
        may
    }

    fn free_place(&self, id: &str) {
        let mut pending = self.pending.lock();
        pending.remove(id);
    }
}

fn link_name(id: &str) -> String {
    format!("link {id}")
}

/// The hash of the files that a request would send.
///
/// # Errors
/// A file cannot be read, or they are too large.
async fn digest_files(prepared: &Request) -> io::Result<Vec<u8>> {
    let pieces = prepared.body.iter().flat_map(Payload::pieces);
    let files: io::Result<Vec<Piece>> = pieces
        .filter_map(|piece| match piece {
            Piece::Bytes(_) => None,
            Piece::File(file, length) => {
                Some(file.try_clone().map(|file| Piece::File(file, *length)))
            }
        })
        .collect();
    let files = Payload::of(files?);
    if files.length() > MAX_FILE_BYTES {
        return Err(io::Error::other("its files are larger than 64 MiB"));
    }
    let mut digest = Sha256::new();
    for piece in files.pieces() {
        if let Piece::File(_, length) = piece {
            digest.update(length.to_be_bytes());
        }
    }
    files.read_ahead(|bytes| digest.update(bytes)).await?;
    Ok(digest.finalize().to_vec())
}
