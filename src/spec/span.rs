//! Position of a value in the text of a document, by which it can be opened again without a borrow.

/// A range of bytes in the JSON text of one of a document's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    /// The number of the file; the document itself is 0.
    pub(crate) file: u32,
    /// The offset of the first byte.
    pub(crate) start: u32,
    /// The offset behind the last byte.
    pub(crate) end: u32,
}

impl Span {
    /// Returns true if the other span is inside of this one, or equals it.
    pub(crate) fn holds(self, other: Self) -> bool {
        self.file == other.file && self.start <= other.start && other.end <= self.end
    }

    /// The offsets as a range of the file's text.
    pub(crate) fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}
