//! The tools as clients get them: one text for all of them, of which each tool's is a slice. The
//! list is sent to every client without a copy.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

/// One tool as JSON.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolText {
    list: Arc<String>,
    place: Range<usize>,
}

impl ToolText {
    /// The JSON.
    pub(crate) fn as_str(&self) -> &str {
        self.list.get(self.place.clone()).unwrap_or_default()
    }
}

/// Owner of the bytes that are sent to clients.
struct ListText(Arc<String>);

impl AsRef<[u8]> for ListText {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// The texts of tools, one after the other.
pub(crate) struct ToolTexts {
    list: String,
    places: Vec<Range<usize>>,
}

impl ToolTexts {
    /// Makes room for so many tools, of together about so many bytes.
    pub(crate) fn with_capacity(tools: usize, bytes: usize) -> Self {
        Self {
            list: String::with_capacity(bytes),
            places: Vec::with_capacity(tools),
        }
    }

    /// Adds one; texts are separated by commas. A tool without a text is not in the list.
    pub(crate) fn push(&mut self, text: Option<&str>) {
        if text.is_some() && !self.list.is_empty() {
            self.list.push(',');
        }
        let start = self.list.len();
        self.list.push_str(text.unwrap_or_default());
        self.places.push(start..self.list.len());
    }

    /// The items of a list without its brackets, and each of them.
    pub(crate) fn finish(mut self) -> (Bytes, Vec<ToolText>) {
        self.list.shrink_to_fit();
        let list = Arc::new(self.list);
        let part = |place| ToolText {
            list: Arc::clone(&list),
            place,
        };
        let parts = self.places.into_iter().map(part).collect();
        (Bytes::from_owner(ListText(list)), parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_is_a_slice_of_the_list() {
        let mut texts = ToolTexts::with_capacity(2, 0);
        texts.push(Some("{\"a\":1}"));
        texts.push(None);
        texts.push(Some("{\"b\":\"é\"}"));
        let (list, parts) = texts.finish();
        assert_eq!(list, "{\"a\":1},{\"b\":\"é\"}");
        let texts: Vec<&str> = parts.iter().map(ToolText::as_str).collect();
        assert_eq!(texts, ["{\"a\":1}", "", "{\"b\":\"é\"}"]);
        assert_eq!(ToolTexts::with_capacity(0, 0).finish().0, "");
    }
}
