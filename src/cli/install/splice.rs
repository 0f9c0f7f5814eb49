//! Replaces parts of a text, and keeps every other byte.

use std::ops::Range;

/// A part of a text, and what replaces it.
pub(super) type Splice = (Range<usize>, String);

/// The text with these parts replaced. New lines end as the lines of the text do. A part inside
/// another one goes with it.
pub(super) fn splice(text: &str, mut splices: Vec<Splice>) -> String {
    let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    splices.sort_by_key(|(range, _)| range.start);
    let mut edited = String::with_capacity(text.len());
    let mut done = 0;
    for (range, new) in splices {
        edited.push_str(text.get(done..range.start).unwrap_or_default());
        edited.push_str(&new.replace('\n', line_end));
        done = done.max(range.end);
    }
    edited.push_str(text.get(done..).unwrap_or_default());
    edited
}

/// The part of a line before a position.
pub(super) fn line_before(text: &str, position: usize) -> &str {
    let before = text.get(..position).unwrap_or_default();
    before.rsplit('\n').next().unwrap_or_default()
}

/// A text without the end of its last line.
pub(super) fn without_line_end(text: &str) -> &str {
    let line = text.strip_suffix('\n').unwrap_or(text);
    line.strip_suffix('\r').unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_replaced_in_any_order_and_new_lines_end_as_the_others() {
        for (text, splices, expected) in [
            (
                "abc",
                vec![(2..3, "z".to_owned()), (0..1, String::new())],
                "bz",
            ),
            (
                "abc",
                vec![(1..1, "1".to_owned()), (1..1, "2".to_owned())],
                "a12bc",
            ),
            (
                "abcd",
                vec![(0..3, "x".to_owned()), (1..2, String::new())],
                "xd",
            ),
            (
                "a\r\nb\nc",
                vec![(1..1, "\nx".to_owned())],
                "a\r\nx\r\nb\nc",
            ),
        ] {
            assert_eq!(splice(text, splices), expected, "{text:?}");
        }
    }
}
