//! Sentences of a result about the way to it: the wait for an operation, and the pages that the call
//! has collected.

use std::time::Duration;

use super::pagination::NextPage;
use super::result_notes::NoteKind;
use super::tool_result::ToolResult;
use super::truncate::Loss;
use crate::json::JsonObject;
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
    Unfinished {
        /// The last status.
        progress: Progress,
        /// Reason for the end of the wait, if it was not the time.
        why: Option<String>,
        /// The time that the API wants to pass before the next request for its status.
        wanted: Option<Duration>,
        /// The end of a sentence that says how the caller goes on, with the handle, or a sentence
        /// that says why nothing can go on.
        handle: Result<String, String>,
    },
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

impl WaitRemark {
    /// Adds the remark to a result.
    pub(crate) fn apply(self, mut result: ToolResult) -> ToolResult {
        // What was asked for is a status: its next page or its validator are not those of the call.
        result.notes.forget_next_call();
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
            Self::Unfinished {
                progress,
                why,
                wanted,
                handle,
            } => result.note(NoteKind::Wait, unfinished(progress, why, wanted, handle)),
        }
        result
    }
}

/// The sentences on an operation that was not done in time.
fn unfinished(
    progress: Progress,
    why: Option<String>,
    wanted: Option<Duration>,
    handle: Result<String, String>,
) -> String {
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
        Ok(how) => text + " Do not start it again: " + &how,
        Err(why) => text + " " + &why,
    }
}

fn seconds(time: Duration) -> String {
    let seconds = usize::try_from(time.as_secs()).unwrap_or(usize::MAX);
    counted(seconds.max(1), "second")
}

/// The pages of a result.
pub(crate) struct PageReport {
    pub(crate) pages: Vec<CollectedPage>,
    /// The JSON Pointer of the list of all items.
    pub(crate) list: String,
    /// How many pages there are, and why no more.
    pub(crate) summary: String,
    /// The page after the last one.
    pub(crate) next: Option<NextPage>,
}

/// One of them.
pub(crate) struct CollectedPage {
    /// Number of its items.
    pub(crate) items: usize,
    /// The arguments that get it and differ from those of the call.
    pub(crate) arguments: JsonObject,
}

impl PageReport {
    /// Adds the report to the result. If the operator or the model has the reply made anew, the
    /// page of a cut is not known.
    pub(crate) fn add_to(self, result: &mut ToolResult, is_made_anew: bool) {
        let cut = self.cut_page(&result.losses).filter(|_| !is_made_anew);
        result.note(NoteKind::Pages, self.summary);
        let arguments = cut
            .and_then(|index| self.pages.get(index))
            .map(|page| page.arguments.clone());
        match (cut, arguments) {
            (Some(index), Some(arguments)) if !arguments.is_empty() => {
                result.notes.add_cut_page(index + 1, arguments);
            }
            (cut, _) => {
                if cut.is_some() {
                    result.note(NoteKind::Pages, "The cut is on page 1.");
                }
                self.next
                    .into_iter()
                    .for_each(|next| result.notes.add_next_page(next));
            }
        }
    }

    /// Returns the index of the page with the first item that the result does not show whole.
    fn cut_page(&self, losses: &[Loss]) -> Option<usize> {
        let all: usize = self.pages.iter().map(|page| page.items).sum();
        let of_list =
            |loss: &&Loss| loss.of == all && loss.what == "items" && loss.pointer == self.list;
        let kept = losses.iter().find(of_list)?.kept;
        let inside = format!("{}/", self.list);
        let is_last_broken = losses.iter().any(|loss| loss.pointer.starts_with(&inside));
        let mut whole = kept.saturating_sub(usize::from(is_last_broken));
        self.pages.iter().position(|page| {
            let is_cut = whole < page.items;
            whole = whole.saturating_sub(page.items);
            is_cut
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_is_on_the_page_of_the_first_item_that_is_missing() {
        let page = |items| CollectedPage {
            items,
            arguments: JsonObject::new(),
        };
        let report = PageReport {
            pages: vec![page(3), page(2), page(4)],
            list: "/items".into(),
            summary: String::new(),
            next: None,
        };
        let loss = |pointer: &str, kept, of, what| Loss {
            pointer: pointer.into(),
            kept,
            of,
            what,
        };
        for (losses, expected) in [
            (vec![loss("/items", 2, 9, "items")], Some(0)),
            (vec![loss("/items", 3, 9, "items")], Some(1)),
            (vec![loss("/items", 5, 9, "items")], Some(2)),
            (
                vec![
                    loss("/items", 1, 9, "items"),
                    loss("/items/0/text", 1, 9, "characters"),
                ],
                Some(0),
            ),
            (vec![loss("/items", 3, 7, "items")], None),
            (vec![loss("/other", 3, 9, "items")], None),
            (vec![], None),
        ] {
            assert_eq!(report.cut_page(&losses), expected, "{losses:?}");
        }
    }
}
