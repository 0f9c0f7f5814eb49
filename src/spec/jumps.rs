//! The ends of the values in a JSON text, and a table of the long ones. The text was checked to be
//! JSON before, so that a value is passed over by its quotes and brackets alone.

use std::borrow::Cow;

use crate::json::string_length;

/// Objects and arrays of fewer bytes have no jump: passing over them takes no longer than a jump.
pub(super) const MIN_JUMP_BYTES: usize = 64;

/// The beginning and the end of a long object or array in a file, so that it is passed over without
/// being read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Jump {
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// Number of the jumps inside of it, which come next.
    pub(crate) inner: u32,
}

/// Returns the jumps of a text in the order of their beginnings.
pub(crate) fn jumps(text: &str) -> Vec<Jump> {
    let bytes = text.as_bytes();
    let (mut jumps, mut open): (Vec<Jump>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(found) = bytes.get(at..).and_then(next_bracket_or_quote) {
        at += found;
        match bytes.get(at) {
            Some(b'"') => match string_end(bytes, at) {
                Some(end) => at = end,
                None => break,
            },
            Some(b'{' | b'[') => {
                open.push(jumps.len());
                let start = offset_in_file(at);
                jumps.push(Jump {
                    start,
                    end: start,
                    inner: 0,
                });
                at += 1;
            }
            _ => {
                at += 1;
                let (end, count) = (offset_in_file(at), jumps.len());
                let Some(index) = open.pop() else { break };
                let Some(jump) = jumps.get_mut(index) else {
                    break;
                };
                jump.end = end;
                jump.inner = offset_in_file(count - index - 1);
                if (end - jump.start) < offset_in_file(MIN_JUMP_BYTES) {
                    jumps.truncate(index);
                }
            }
        }
    }
    jumps
}

/// Returns what a quoted JSON string stands for; `None` if an escape in it stands for no character.
pub(super) fn unquoted(quoted: &str) -> Option<Cow<'_, str>> {
    let text = quoted.get(1..quoted.len().checked_sub(1)?)?;
    if text.contains('\\') {
        return Some(Cow::Owned(serde_json::from_str(quoted).ok()?));
    }
    Some(Cow::Borrowed(text))
}

/// Returns the index after the string that begins at `start`.
pub(crate) fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    Some(start + string_length(bytes.get(start..)?)?)
}

/// Returns the index after the object or the array that begins at `start`.
pub(super) fn bracket_end(bytes: &[u8], start: usize) -> Option<usize> {
    let (mut at, mut depth) = (start, 0_usize);
    loop {
        at += next_bracket_or_quote(bytes.get(at..)?)?;
        match bytes.get(at)? {
            b'"' => at = string_end(bytes, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            _ => {
                depth -= 1;
                at += 1;
                if depth == 0 {
                    return Some(at);
                }
            }
        }
    }
}

/// Returns the index after the number, or the word, that begins at `start`.
pub(crate) fn scalar_end(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    start
        + rest
            .iter()
            .position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t'))
            .unwrap_or(rest.len())
}

/// Returns the index of the next of `"{}[]`. Looks at eight bytes at once by the arithmetic that
/// finds a zero byte in a word (Anderson, "Bit Twiddling Hacks"), whose lowest hit is exact.
fn next_bracket_or_quote(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
    let (chunks, rest) = bytes.as_chunks::<8>();
    for (index, chunk) in chunks.iter().enumerate() {
        let word = u64::from_le_bytes(*chunk);
        // Brackets and braces differ in one bit.
        let folded = word | (ONES * 0x20);
        let found = zeros(word ^ (ONES * u64::from(b'"')))
            | zeros(folded ^ (ONES * u64::from(b'{')))
            | zeros(folded ^ (ONES * u64::from(b'}')));
        if found != 0 {
            return Some(index * 8 + (found.trailing_zeros() / 8) as usize);
        }
    }
    rest.iter()
        .position(|byte| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']'))
        .map(|at| chunks.len() * 8 + at)
}

/// A file is at most 1 GiB, and twice that if YAML became JSON: below 4 GiB.
pub(super) fn offset_in_file(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}
