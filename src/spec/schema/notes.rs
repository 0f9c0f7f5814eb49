//! Notes that the steps of a translation leave in a schema for the steps after them.
//!
//! A note stands among the keywords of the schema that it is about, so that it moves with the schema wherever that is copied
//! or inlined to. Its key begins with NUL, which no keyword does, and only this file knows it.

use serde_json::{Map, Value};

use super::keywords::{has_keyword, keyword, remove_keyword};

/// What is noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Note {
    /// The schema lost something that described members or items; `true`.
    Lost,
    /// The schema lost one of its patterns; `true`.
    PatternLost,
    /// The names of properties that belong to the other direction; a list of strings.
    HiddenNames,
    /// The number of the schema in its tree.
    Number,
    /// Which of the root's [`Note::WireNames`] are the schema's own; an index.
    WireNamesIndex,
    /// In the root: for each group of schemas, the names on the wire by the new names; a list of objects.
    WireNames,
}

impl Note {
    fn key(self) -> &'static str {
        match self {
            Self::Lost => "\u{0}lost",
            Self::PatternLost => "\u{0}loose",
            Self::HiddenNames => "\u{0}hidden",
            Self::Number => "\u{0}number",
            Self::WireNamesIndex => "\u{0}naming",
            Self::WireNames => "\u{0}namings",
        }
    }

    /// Whether the schema has the note.
    #[must_use]
    pub(crate) fn is_on(self, schema: &Map<String, Value>) -> bool {
        has_keyword(schema, self.key())
    }

    /// What the schema has noted.
    #[must_use]
    pub(crate) fn read(self, schema: &Map<String, Value>) -> Option<&Value> {
        keyword(schema, self.key())
    }

    /// What the schema has noted, where that is a number.
    #[must_use]
    pub(crate) fn read_index(self, schema: &Map<String, Value>) -> Option<usize> {
        usize::try_from(self.read(schema)?.as_u64()?).ok()
    }

    /// Notes something, in place of what was noted before.
    pub(crate) fn write(self, schema: &mut Map<String, Value>, value: impl Into<Value>) {
        schema.insert(self.key().into(), value.into());
    }

    /// Takes the note out of the schema.
    pub(crate) fn take(self, schema: &mut Map<String, Value>) -> Option<Value> {
        remove_keyword(schema, self.key())
    }
}
