//! The pages that a call has collected, in sentences for the model.

use super::pagination::NextPage;
use super::result_notes::NoteKind;
use super::tool_result::ToolResult;
use super::truncate::Loss;
use crate::json::JsonObject;

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
                result.note_cut_page(index + 1, arguments);
            }
            (cut, _) => {
                if cut.is_some() {
                    result.note(NoteKind::Pages, "The cut is on page 1.");
                }
                self.next
                    .into_iter()
                    .for_each(|next| result.note_next_page(next));
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
