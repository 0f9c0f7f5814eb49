//! Notes that the steps of a translation leave in a schema for the steps after them.
//!
//! A note is kept among the keywords of its schema, so it moves with the schema when that is copied
//! or inlined. Its key begins with NUL, which no keyword does, and only this file knows it.

use serde_json::Value;

use super::keywords::remove_keyword;
use crate::json::JsonObject;

/// Kind of note.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Note {
    /// The schema lost one of its patterns; `true`.
    PatternLost,
    /// The names of properties that belong to the other direction; a list of strings.
    HiddenNames,
}

impl Note {
    fn key(self) -> &'static str {
        match self {
            Self::PatternLost => "\u{0}loose",
            Self::HiddenNames => "\u{0}hidden",
        }
    }

    /// Notes something, in place of what was noted before.
    pub(crate) fn write(self, schema: &mut JsonObject, value: impl Into<Value>) {
        schema.insert(self.key().into(), value.into());
    }

    /// Takes the note out of the schema.
    pub(crate) fn take(self, schema: &mut JsonObject) -> Option<Value> {
        remove_keyword(schema, self.key())
    }
}
