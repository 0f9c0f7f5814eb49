//! Line ends of an edited file: those that were there stay, and new lines end as most of the others do.

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// The text `after` an edit with the line ends of the text `before` it.
pub(super) fn with_line_ends_of(before: &str, after: &str) -> String {
    if !before.contains('\r') {
        return after.to_owned();
    }
    let (old, old_ends): (Vec<&str>, Vec<&str>) = before.split_inclusive('\n').map(split_line).unzip();
    let (new, new_ends): (Vec<&str>, Vec<&str>) = after.split_inclusive('\n').map(split_line).unzip();
    let count = |wanted: &str| old_ends.iter().filter(|end| **end == wanted).count();
    let usual = if count("\r\n") > count("\n") { "\r\n" } else { "\n" };
    let mut ends = vec![usual; new.len()];
    for operation in capture_diff_slices(Algorithm::Myers, &old, &new) {
        let (old_range, new_range) = match operation {
            DiffOp::Equal { .. } | DiffOp::Replace { .. } => (operation.old_range(), operation.new_range()),
            DiffOp::Insert { .. } | DiffOp::Delete { .. } => continue,
        };
        let kept = old_ends.get(old_range).unwrap_or_default();
        for (end, kept) in ends.get_mut(new_range).unwrap_or_default().iter_mut().zip(kept.iter().copied()) {
            if !kept.is_empty() {
                *end = kept;
            }
        }
    }
    let lines = new.into_iter().zip(new_ends).zip(ends);
    lines
        .flat_map(|((line, had), end)| [line, if had.is_empty() { "" } else { end }])
        .collect()
}

/// A line and its end.
fn split_line(line: &str) -> (&str, &str) {
    let text = line.strip_suffix('\n').map_or(line, |text| text.strip_suffix('\r').unwrap_or(text));
    line.split_at(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_ends_and_new_ones_end_as_most_do() {
        for (before, after, expected) in [
            ("a\nb\n", "a\nx\nb\n", "a\nx\nb\n"),
            ("a\r\nb\r\n", "a\nx\nb\n", "a\r\nx\r\nb\r\n"),
            ("a\r\nb\nc\r\n", "a\nb\nx\nc\n", "a\r\nb\nx\r\nc\r\n"),
            ("a\nb\r\nc\n", "a\nb\r\nx\nc\n", "a\nb\r\nx\nc\n"),
            ("a\r\nb\nc\r\n", "a,\nb,\nc,\n", "a,\r\nb,\nc,\r\n"),
            ("a\r\nb", "a\nx\nb", "a\r\nx\r\nb"),
            ("a\r\nb", "a\nb", "a\r\nb"),
            ("", "a\n", "a\n"),
        ] {
            assert_eq!(with_line_ends_of(before, after), expected, "{before:?} {after:?}");
        }
    }
}
