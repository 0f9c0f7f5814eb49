//! Notes about repairs of the arguments of a call, in a sentence for the model, so that its next
//! call is right at once.

use crate::text;

/// More repairs than this are only counted.
const MAX_SHOWN: usize = 5;
/// Longer names are cut.
const MAX_NAME_BYTES: usize = 64;

/// The repairs of one call.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct RepairNotes {
    clauses: Vec<String>,
    /// Number of further repairs.
    more: usize,
}

impl RepairNotes {
    /// Notes a repair of the argument `name`, as in "`limit` was read as a number". Never holds a
    /// value.
    pub(crate) fn push(&mut self, name: &str, what: &str) {
        if self.clauses.len() < MAX_SHOWN {
            self.clauses.push(format!("{} {what}", quote_name(name)));
        } else {
            self.more += 1;
        }
    }

    /// Returns the sentence; `None` if nothing was repaired.
    pub(crate) fn sentence(&self) -> Option<String> {
        let mut shown = self.clauses.clone();
        if self.more > 0 {
            shown.push(format!("and {} more", self.more));
        }
        (!shown.is_empty()).then(|| {
            format!(
                "The arguments were repaired before the call: {}.",
                shown.join("; ")
            )
        })
    }
}

/// A name that a client wrote, in backticks.
pub(crate) fn quote_name(name: &str) -> String {
    format!(
        "`{}`",
        text::truncate(&text::one_line(name), MAX_NAME_BYTES)
    )
}
