//! The tools as clients get them: one text for all of them, of which each tool's is a slice. The list is sent to every client without
//! a copy.

use bytes::Bytes;

/// One tool as JSON.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolText(Bytes);

impl ToolText {
    /// The JSON.
    pub(crate) fn as_str(&self) -> &str {
        // A slice of a `String`, cut where one of its parts begins and ends.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// Joins texts with commas, as the items of a list without its brackets.
pub(crate) fn join_texts(texts: Vec<Box<str>>) -> (Bytes, Vec<ToolText>) {
    let length = texts.iter().map(|text| text.len() + 1).sum::<usize>().saturating_sub(1);
    let mut list = String::with_capacity(length);
    let mut ends = Vec::with_capacity(texts.len());
    // Each part is freed when it is in the list: a large list is not held twice.
    for text in texts {
        if !list.is_empty() {
            list.push(',');
        }
        let start = list.len();
        list.push_str(&text);
        ends.push(start..list.len());
    }
    let list = Bytes::from(list);
    let parts = ends.into_iter().map(|range| ToolText(list.slice(range))).collect();
    (list, parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_is_a_slice_of_the_list() {
        let (list, parts) = join_texts(vec!["{\"a\":1}".into(), "{\"b\":\"é\"}".into()]);
        assert_eq!(list, "{\"a\":1},{\"b\":\"é\"}");
        let texts: Vec<&str> = parts.iter().map(ToolText::as_str).collect();
        assert_eq!(texts, ["{\"a\":1}", "{\"b\":\"é\"}"]);
        assert_eq!(join_texts(Vec::new()).0, "");
    }
}
