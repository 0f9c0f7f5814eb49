//! Sentences for the model beside a reply: what was cut, how the next page is asked for, what was
//! repaired.

use std::collections::BTreeSet;

use serde_json::Value;

use super::pagination::NextPage;
use crate::json::JsonObject;
use crate::redact::secrets::MARK;
use crate::text::{counted, has_hidden_characters, one_line};

/// The most notes of a result; the last one counts those that are left out.
const MAX_NOTES: usize = 10;
/// The most characters of all notes together, but the one about the next page.
const MAX_CHARACTERS: usize = 1000;
/// The most characters of the note about the next page: half a cursor would be another one.
const MAX_NEXT_PAGE_CHARACTERS: usize = 4000;

/// Subject of a note, in the order in which notes are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NoteKind {
    /// The end of a wait for an operation, or how to go on with it.
    Wait,
    /// Parts that are not shown, and how to get them.
    Cut,
    /// The pages that were collected.
    Pages,
    /// The arguments of the next page.
    NextPage,
    /// Reason of an unexpected form of the reply.
    Form,
    /// Values that were read differently from how they were written.
    Repair,
    /// Use of a header of the reply in a later call.
    Precondition,
    /// Other headers.
    Header,
}

/// The notes of a result.
#[derive(Debug, Default)]
pub(crate) struct ResultNotes {
    /// A note about the next page is the arguments alone, as JSON; empty if none get it.
    pub(super) notes: Vec<(NoteKind, String)>,
    /// Tool for another call, if it is not the operation's own.
    call_again: Option<String>,
    /// An error that says by itself what was cut has no note about it.
    pub(super) body_says_cut: bool,
    /// Number of the collected page on which the cut is, if the arguments are those of that page.
    cut_page: Option<usize>,
}

impl ResultNotes {
    /// Adds a sentence.
    pub(crate) fn add(&mut self, kind: NoteKind, text: String) {
        self.notes.push((kind, text));
    }

    /// Notes that there is a next page, and its arguments.
    pub(crate) fn add_next_page(&mut self, next: NextPage) {
        let arguments = match next {
            NextPage::Arguments(arguments) => Value::Object(arguments).to_string(),
            NextPage::Unreachable => String::new(),
        };
        self.add(NoteKind::NextPage, arguments);
    }

    /// Takes away the notes about the next page and about validators.
    pub(crate) fn forget_next_call(&mut self) {
        self.notes
            .retain(|(kind, _)| !matches!(kind, NoteKind::NextPage | NoteKind::Precondition));
    }

    /// Notes the collected page on which the cut is, and the arguments that get it.
    pub(crate) fn add_cut_page(&mut self, number: usize, arguments: JsonObject) {
        self.cut_page = Some(number);
        self.add_next_page(NextPage::Arguments(arguments));
    }

    /// Notes that the operation was called through another tool.
    pub(crate) fn call_through(&mut self, tool: &str, operation: &str) {
        self.call_again = Some(format!(
            "call `{tool}` with operation `{operation}`, the same arguments and"
        ));
    }

    /// The notes as they are shown: each whole or left out, in the order of their kinds.
    pub(crate) fn shown(&self) -> Vec<String> {
        let mut sorted: Vec<&(NoteKind, String)> = self.notes.iter().collect();
        sorted.sort_by_key(|(kind, _)| *kind);
        let mut shown: Vec<String> = Vec::new();
        let mut lengths = Vec::new();
        for (kind, text) in sorted {
            let note = match kind {
                NoteKind::NextPage => self.next_page(text),
                _ => one_line(text),
            };
            if !note.is_empty() && !shown.contains(&note) {
                // A part of a cursor or a handle is of no use, and the model needs the whole.
                let is_whole = matches!(kind, NoteKind::NextPage | NoteKind::Wait);
                let length = if is_whole { 0 } else { note.chars().count() };
                lengths.push((*kind != NoteKind::Cut, length, shown.len()));
                shown.push(note);
            }
        }
        // The longest are left out: one of them does not take the place of all others. What was cut
        // comes first.
        lengths.sort_unstable();
        let mut room = MAX_CHARACTERS;
        let mut fitting = BTreeSet::new();
        for (_, length, index) in lengths {
            if let Some(rest) = room.checked_sub(length) {
                room = rest;
                fitting.insert(index);
            }
        }
        let mut left_out = shown.len() - fitting.len();
        let mut index = 0..;
        shown.retain(|_| index.next().is_some_and(|index| fitting.contains(&index)));
        if shown.len() + usize::from(left_out > 0) > MAX_NOTES {
            left_out += shown.len() - (MAX_NOTES - 1);
            shown.truncate(MAX_NOTES - 1);
        }
        if left_out > 0 {
            shown.push(format!(
                "{} left out.",
                if left_out == 1 {
                    "1 note is".into()
                } else {
                    format!("{} are", counted(left_out, "note"))
                }
            ));
        }
        shown
    }

    fn next_page(&self, arguments: &str) -> String {
        if arguments.is_empty() || arguments.contains(MARK) {
            return "There is a next page, but this tool cannot ask for it with what the reply says about it.".into();
        }
        let again = self
            .call_again
            .as_deref()
            .unwrap_or("call again with the same arguments and");
        let arguments = escape_hidden(arguments);
        let is_cut =
            self.body_says_cut || self.notes.iter().any(|(kind, _)| *kind == NoteKind::Cut);
        let skipped = if is_cut {
            ", which does not hold what was cut from this one"
        } else {
            ""
        };
        let note = match self.cut_page {
            Some(number) => {
                format!("The cut is on page {number}: {again} {arguments} to go on from there.")
            }
            None => format!("There is more: {again} {arguments} for the next page{skipped}."),
        };
        if note.chars().count() > MAX_NEXT_PAGE_CHARACTERS {
            return "There is more, but the arguments of the next page are too long to be shown."
                .into();
        }
        note
    }
}

/// JSON with the characters that a reader does not see as escapes: a cursor must not change.
fn escape_hidden(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        let mut bytes = [0; 4];
        let text = character.encode_utf8(&mut bytes);
        if text.is_ascii() || (!has_hidden_characters(text) && !text.contains(char::is_whitespace))
        {
            out.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            out.push_str(&format!("\\u{unit:04x}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argument(name: &str, value: impl Into<Value>) -> NextPage {
        NextPage::Arguments([(name.to_owned(), value.into())].into_iter().collect())
    }

    #[test]
    fn notes_are_shown_once_and_by_kind_and_the_next_page_says_how_to_call() {
        let mut notes = ResultNotes::default();
        notes.add(NoteKind::Header, "X-Total: 5".into());
        notes.add(NoteKind::Repair, "`a` was read\nas a number.".into());
        notes.add(NoteKind::Repair, "`a` was read as a number.".into());
        notes.add_next_page(argument("page", 2));
        assert_eq!(
            notes.shown(),
            [
                r#"There is more: call again with the same arguments and {"page":2} for the next page."#,
                "`a` was read as a number.",
                "X-Total: 5"
            ]
        );
        notes.call_through("call_read", "list_pets");
        let through = r#"There is more: call `call_read` with operation `list_pets`, the same arguments and {"page":2} for the next page."#;
        assert_eq!(notes.shown()[0], through);
    }

    #[test]
    fn a_next_page_says_what_it_lacks_and_a_secret_is_no_argument() {
        let shown = |kind: Option<NoteKind>, next: NextPage| {
            let mut notes = ResultNotes::default();
            notes.add_next_page(next);
            kind.into_iter()
                .for_each(|kind| notes.add(kind, "1 of 2 items.".into()));
            notes.shown().join(" ")
        };
        let cut = shown(Some(NoteKind::Cut), argument("page", 2));
        assert_eq!(
            cut,
            r#"1 of 2 items. There is more: call again with the same arguments and {"page":2} for the next page, which does not hold what was cut from this one."#
        );
        for next in [NextPage::Unreachable, argument("cursor", "a[redacted]")] {
            let note = shown(None, next);
            assert!(
                note.starts_with("There is a next page, but") && !note.contains('{'),
                "{note}"
            );
        }
    }

    #[test]
    fn a_note_is_whole_or_left_out_and_what_is_left_out_is_counted() {
        let mut notes = ResultNotes::default();
        (0..30).for_each(|number| notes.add(NoteKind::Repair, format!("Note {number}.")));
        let shown = notes.shown();
        assert_eq!(
            (shown.len(), shown[9].as_str()),
            (10, "21 notes are left out.")
        );
        let mut notes = ResultNotes::default();
        notes.add(NoteKind::Cut, "1 of 2 items.".into());
        notes.add(NoteKind::Form, "x".repeat(900));
        notes.add(NoteKind::Header, "y".repeat(200));
        notes.add_next_page(argument("cursor", "c".repeat(3800)));
        let shown = notes.shown();
        assert!(
            shown[1].ends_with("cut from this one.")
                && shown[2].starts_with('y')
                && shown[3] == "1 note is left out.",
            "{shown:?}"
        );
        let mut notes = ResultNotes::default();
        notes.add_next_page(argument("cursor", "a  b\u{200b}\u{2028}\u{e0041}é"));
        assert!(
            notes.shown()[0].contains(r#"{"cursor":"a  b\u200b\u2028\udb40\udc41é"}"#),
            "{:?}",
            notes.shown()
        );
        let mut notes = ResultNotes::default();
        notes.add_next_page(argument("cursor", "c".repeat(4000)));
        assert!(notes.shown()[0].ends_with("too long to be shown."));
    }
}
