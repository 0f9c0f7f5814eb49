//! Redaction of a body that goes to a file while it is received. A secret is found across the borders of chunks.

use super::Redactor;
use super::secrets::TextPlace;

/// Number of bytes that are redacted at once.
const BLOCK_BYTES: usize = 64 << 10;
/// Number of bytes that one byte of a secret takes at most if it is escaped, as in `\u002b` or `&#x0002B;`.
const MAX_ESCAPE_BYTES: usize = 12;
/// Number of bytes before a cut that may belong to an escape or a number behind it.
const MAX_PREFIX_BYTES: usize = 64;

/// Redacts a body piece by piece.
pub(crate) struct StreamRedactor<'r> {
    redactors: Vec<&'r Redactor>,
    /// Received bytes that may contain the beginning of a secret.
    pending: Vec<u8>,
    /// Number of bytes that a secret may take.
    reach: usize,
}

impl<'r> StreamRedactor<'r> {
    pub(crate) fn new(redactors: impl Iterator<Item = &'r Redactor>) -> Self {
        let redactors: Vec<&Redactor> = redactors.filter(|redactor| !redactor.secrets.is_empty()).collect();
        let longest = redactors.iter().map(|redactor| redactor.secrets.longest()).max();
        Self {
            reach: longest.unwrap_or_default() * MAX_ESCAPE_BYTES,
            redactors,
            pending: Vec::new(),
        }
    }

    /// Appends to `out` as much of the body as contains no part of a secret any more.
    pub(crate) fn feed(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        if self.redactors.is_empty() {
            out.extend_from_slice(chunk);
            return;
        }
        for piece in chunk.chunks(BLOCK_BYTES) {
            self.pending.extend_from_slice(piece);
            if self.pending.len() >= self.reach + BLOCK_BYTES {
                self.release(self.cut(), out);
            }
        }
    }

    /// Appends the rest.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        self.release(self.pending.len(), out);
    }

    /// Returns the end of the part in which no secret begins that ends behind it.
    fn cut(&self) -> usize {
        let mut cut = self.pending.len().saturating_sub(self.reach);
        let ranges = self.redactors.iter().map(|redactor| &redactor.secrets);
        let mut ranges: Vec<(usize, usize)> = ranges
            .flat_map(|secrets| secrets.ranges_with_escapes(&self.pending, TextPlace::Text))
            .collect();
        // From the last to the first: a range that is before the cut may be cut by what an earlier one requires.
        ranges.sort_unstable_by(|one, other| other.cmp(one));
        let least = cut.saturating_sub(MAX_PREFIX_BYTES);
        let is_part = |at: usize| matches!(self.pending.get(at), Some(b'\\' | b'&' | b'%' | b'#' | b'0'..=b'9'));
        while cut > least && is_part(cut - 1) {
            cut -= 1;
        }
        loop {
            let cut_through = ranges.iter().find(|(start, end)| *start < cut && cut < *end);
            match cut_through {
                Some((start, _)) => cut = *start,
                None => return cut,
            }
        }
    }

    fn release(&mut self, cut: usize, out: &mut Vec<u8>) {
        let rest = self.pending.split_off(cut);
        let mut part = std::mem::replace(&mut self.pending, rest);
        for redactor in &self.redactors {
            if let Some(clean) = redactor.secrets.clean(&part, TextPlace::Text) {
                part = clean;
            }
        }
        out.append(&mut part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(secrets: &[&str], body: &[u8], chunk: usize) -> Vec<u8> {
        let redactors: Vec<Redactor> = secrets
            .iter()
            .map(|secret| Redactor::for_values(std::iter::once(secret.as_bytes())))
            .collect();
        let mut stream = StreamRedactor::new(redactors.iter());
        let mut out = Vec::new();
        body.chunks(chunk).for_each(|chunk| stream.feed(chunk, &mut out));
        stream.finish(&mut out);
        out
    }

    #[test]
    fn p41_a_secret_is_found_at_every_place_of_a_stream() {
        let secret = "k/e+y\"123";
        for form in [secret, r#"k\/e+y\"123"#, "k%2Fe%2By%22123", r"k\u002fe\u002by\u0022123"] {
            for before in (0..40).map(|more| 2 * BLOCK_BYTES - 20 + more) {
                let mut body = vec![b'x'; before];
                body.extend_from_slice(form.as_bytes());
                body.resize(4 * BLOCK_BYTES, b'y');
                let mut expected = vec![b'x'; before];
                expected.extend_from_slice(b"[redacted]");
                expected.resize(expected.len() + 4 * BLOCK_BYTES - before - form.len(), b'y');
                for chunk in [1_000, BLOCK_BYTES, usize::MAX] {
                    assert!(redacted(&[secret, "other-secret"], &body, chunk) == expected, "{form} at {before}");
                }
            }
        }
        for chunk in 1..5 {
            assert_eq!(redacted(&["abcdef"], b"1 abcdef 2", chunk), b"1 [redacted] 2");
        }
    }

    #[test]
    fn other_bytes_stay_as_they_are() {
        let body: Vec<u8> = (0..300_000_u32).map(|number| (number * 7919).to_le_bytes()[1]).collect();
        assert!(redacted(&["s3cret-key"], &body, 777) == body);
        assert!(redacted(&[], &body, 777) == body);
        let numbers = "123456789012345,".repeat(20_000).into_bytes();
        assert!(redacted(&["123456789012"], &numbers, 1_001) == numbers);
    }
}
