//! Messages on their way to a client, in their order.

use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::model::ProgressToken;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::caller::ReportProgress;
use crate::mcp::protocol::answer::write_message;

/// A message for a client.
pub(crate) enum OutMessage {
    Text(Vec<u8>),
    /// An answer; an end of the server waits until it is written.
    Answer(Vec<u8>, Option<TaskTrackerToken>),
    /// The newest progress of a call at the time when the client reads on.
    Progress(Arc<NewestProgress>),
}

/// Takes messages for a client. It never waits: what is not read yet is one notification for each
/// call that reports progress, one question for each call, and answers.
#[derive(Clone)]
pub(crate) struct Outbox(mpsc::UnboundedSender<OutMessage>);

/// The messages of an outbox.
pub(crate) type OutMessages = mpsc::UnboundedReceiver<OutMessage>;

impl Outbox {
    /// An outbox, and what it is read from.
    pub(crate) fn new() -> (Self, OutMessages) {
        let (sender, messages) = mpsc::unbounded_channel();
        (Self(sender), messages)
    }

    /// Sends a message, unless the client has left.
    pub(crate) fn send(&self, message: OutMessage) {
        let _ = self.0.send(message);
    }

    /// Returns a reporter for the progress of the call that carried this token.
    pub(crate) fn report_progress(&self, token: ProgressToken) -> ReportProgress {
        let newest = Arc::new(NewestProgress {
            token,
            value: Mutex::default(),
        });
        let outbox = self.clone();
        ReportProgress::new(move |done, total| {
            let is_first = newest.value.lock().replace((done, total)).is_none();
            if is_first {
                outbox.send(OutMessage::Progress(Arc::clone(&newest)));
            }
        })
    }
}

/// The progress of a call that its client does not know yet.
pub(crate) struct NewestProgress {
    token: ProgressToken,
    value: Mutex<Option<(u64, Option<u64>)>>,
}

impl NewestProgress {
    /// The token of the call, with how much is done, and of how much.
    pub(crate) fn take(&self) -> Option<(ProgressToken, u64, Option<u64>)> {
        let (done, total) = self.value.lock().take()?;
        Some((self.token.clone(), done, total))
    }
}

impl OutMessage {
    /// The text, and what an end of the server waits for until it is written.
    pub(crate) fn into_text(self) -> Option<(Vec<u8>, Option<TaskTrackerToken>)> {
        match self {
            Self::Text(text) => Some((text, None)),
            Self::Answer(text, in_flight) => Some((text, in_flight)),
            Self::Progress(newest) => {
                let (token, done, total) = newest.take()?;
                let mut parameters = json!({ "progressToken": token, "progress": done });
                if let (Some(total), Value::Object(members)) = (total, &mut parameters) {
                    members.insert("total".into(), total.into());
                }
                Some((
                    write_message(None, "notifications/progress", &parameters),
                    None,
                ))
            }
        }
    }
}
