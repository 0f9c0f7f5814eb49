//! Words of a result about the wait for it.

use std::time::Duration;

use super::result_notes::NoteKind;
use super::tool_result::ToolResult;
use crate::text::counted;

/// Words of a result about the wait for it.
pub(crate) enum WaitRemark {
    /// The operation is done after this time; with a sentence that says why its result is missing,
    /// if it is.
    Done(Duration, Option<String>),
    /// It has failed after this time, with the API's word for it.
    Failed(Duration, Option<String>),
    /// The API refuses to answer what became of it.
    Refused,
    /// It still runs, or the result did not come yet.
    Unfinished(Unfinished),
    /// Its reply names a status that is not asked for, with the reason.
    NotAsked(&'static str),
}

/// The words of a reply about an operation that runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The word for the state.
    pub(crate) word: Option<String>,
    /// How much is done.
    pub(crate) percent: Option<u64>,
}

/// An operation that was not done in time.
pub(crate) struct Unfinished {
    /// The last status.
    pub(crate) progress: Progress,
    /// Reason for the end of the wait, if it was not the time.
    pub(crate) why: Option<String>,
    /// The time that the API wants to pass before the next request for its status.
    pub(crate) wanted: Option<Duration>,
    /// The end of a sentence that says how the caller goes on, with the handle.
    ///
    /// # Errors
    /// A sentence that says why nothing can go on.
    pub(crate) handle: Result<String, String>,
}

impl WaitRemark {
    /// Adds the remark to a result.
    pub(crate) fn apply(self, mut result: ToolResult) -> ToolResult {
        // What was asked for is a status: its next page or its validator are not those of the call.
        result.forget_next_call();
        match self {
            Self::Done(took, None) => result.note(NoteKind::Wait, format!("The operation took {}; this is its result.", seconds(took))),
            Self::Done(took, Some(why)) => {
                let took = seconds(took);
                result.note(NoteKind::Wait, format!("The operation took {took}; this is its last status. {why}"));
            }
            Self::Failed(took, word) => {
                let word = word.map(|word| format!(" ({word})")).unwrap_or_default();
                let sentence = format!("The operation was accepted and failed at the API{word}, after {}:", seconds(took));
                return result.into_error(&sentence);
            }
            Self::Refused => result.note(
                NoteKind::Wait,
                "The operation was accepted; this is what the API answers when it is asked for its status.",
            ),
            Self::NotAsked(why) => result.note(
                NoteKind::Wait,
                format!("The reply names a URL for the status of the operation, which this server does not ask for: {why}."),
            ),
            Self::Unfinished(unfinished) => unfinished.add_to(&mut result),
        }
        result
    }
}

impl Unfinished {
    fn add_to(self, result: &mut ToolResult) {
        let Self {
            progress,
            why,
            wanted,
            handle,
        } = self;
        let percent = progress.percent.map(|percent| format!("{percent} %"));
        let last: Vec<String> = progress.word.into_iter().chain(percent).collect();
        let mut text = "The operation goes on at the API".to_owned();
        if !last.is_empty() {
            text.push_str(&format!(" (last status: {})", last.join(", ")));
        }
        text.push('.');
        text.extend(why.map(|why| format!(" {why}")));
        if let Some(wanted) = wanted.filter(|wanted| wanted.as_secs() > 5) {
            text.push_str(&format!(
                " The API wants to be asked for it in {}.",
                seconds(wanted)
            ));
        }
        match handle {
            Ok(how) => text.push_str(&format!(" Do not start it again: {how}")),
            Err(why) => text.push_str(&format!(" {why}")),
        }
        result.note(NoteKind::Wait, text);
    }
}

fn seconds(time: Duration) -> String {
    let seconds = usize::try_from(time.as_secs()).unwrap_or(usize::MAX);
    counted(seconds.max(1), "second")
}
