//! Redaction of a body that goes to a file while it is received. A secret is found across the
//! borders of chunks.

use super::Redactor;
use super::secrets::{Secrets, TextPlace};

/// Number of bytes that are redacted at once.
const BLOCK_BYTES: usize = 64 << 10;
/// Number of bytes that one byte of a secret takes at most if it is escaped, as in `\u002b` or
/// `&#x0002B;`.
const MAX_ESCAPE_BYTES: usize = 12;
/// Number of bytes before a cut that may belong to an escape or a number behind it.
const MAX_PREFIX_BYTES: usize = 64;

/// Redacts a body piece by piece.
pub(crate) struct StreamRedactor<'r> {
    secrets: Vec<&'r Secrets>,
    /// The same in UTF-16, because a charset is not decoded on the way. They are made when the
    /// first byte shows the order.
    wide: Vec<Secrets>,
    /// Received bytes that may contain the beginning of a secret.
    pending: Vec<u8>,
    /// Number of bytes that a secret may take.
    reach: usize,
}

impl<'r> StreamRedactor<'r> {
    pub(crate) fn new(redactors: impl Iterator<Item = &'r Redactor>) -> Self {
        let secrets: Vec<&Secrets> = redactors
            .map(|redactor| &redactor.secrets)
            .filter(|secrets| !secrets.is_empty())
            .collect();
        let longest = secrets.iter().map(|secrets| secrets.longest()).max();
        Self {
            reach: longest.unwrap_or_default() * MAX_ESCAPE_BYTES,
            wide: Vec::new(),
            secrets,
            pending: Vec::new(),
        }
    }

    /// Appends to `out` as much of the body as contains no part of a secret any more.
    pub(crate) fn feed(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        if self.secrets.is_empty() {
            out.extend_from_slice(chunk);
            return;
        }
        if self.wide.is_empty()
            && let Some(first) = chunk.first()
        {
            // ASCII, or the mark U+FEFF.
            let to_bytes = if matches!(first, 0 | 0xfe) {
                u16::to_be_bytes
            } else {
                u16::to_le_bytes
            };
            self.wide = self
                .secrets
                .iter()
                .map(|secrets| secrets.in_utf16(to_bytes))
                .collect();
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

    fn all(&self) -> impl Iterator<Item = &Secrets> {
        self.secrets.iter().copied().chain(&self.wide)
    }

    /// Returns the end of the part in which no secret begins that ends behind it.
    fn cut(&self) -> usize {
        let mut cut = self.pending.len().saturating_sub(self.reach);
        let mut ranges: Vec<(usize, usize)> = self
            .all()
            .flat_map(|secrets| secrets.ranges_with_escapes(&self.pending, TextPlace::Text))
            .collect();
        // From the last to the first: a range that is before the cut may be cut by what an earlier
        // one requires.
        ranges.sort_unstable_by(|one, other| other.cmp(one));
        let least = cut.saturating_sub(MAX_PREFIX_BYTES);
        let is_part = |at: usize| {
            matches!(
                self.pending.get(at),
                Some(b'\\' | b'&' | b'%' | b'#' | b'0'..=b'9')
            )
        };
        while cut > least && is_part(cut - 1) {
            cut -= 1;
        }
        loop {
            let cut_through = ranges
                .iter()
                .find(|(start, end)| *start < cut && cut < *end);
            match cut_through {
                Some((start, _)) => cut = *start,
                None => return cut,
            }
        }
    }

    fn release(&mut self, cut: usize, out: &mut Vec<u8>) {
        let part = self.pending.get(..cut).unwrap_or(&self.pending);
        let mut clean: Option<Vec<u8>> = None;
        for secrets in self.all() {
            clean = secrets
                .clean(clean.as_deref().unwrap_or(part), TextPlace::Text)
                .or(clean);
        }
        out.extend_from_slice(clean.as_deref().unwrap_or(part));
        // The memory of what is left is used again: a file has thousands of blocks.
        self.pending.drain(..cut);
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
        body.chunks(chunk)
            .for_each(|chunk| stream.feed(chunk, &mut out));
        stream.finish(&mut out);
        out
    }

    #[test]
    fn p41_a_secret_is_found_at_every_place_of_a_stream() {
        let secret = "k/e+y\"123";
        for form in [
            secret,
            r#"k\/e+y\"123"#,
            "k%2Fe%2By%22123",
            r"k\u002fe\u002by\u0022123",
        ] {
            for before in (0..40).step_by(3).map(|more| 2 * BLOCK_BYTES - 20 + more) {
                let mut body = vec![b'x'; before];
                body.extend_from_slice(form.as_bytes());
                body.resize(3 * BLOCK_BYTES, b'y');
                let mut expected = vec![b'x'; before];
                expected.extend_from_slice(b"[redacted]");
                expected.resize(expected.len() + 3 * BLOCK_BYTES - before - form.len(), b'y');
                for chunk in [1_000, BLOCK_BYTES, usize::MAX] {
                    assert!(
                        redacted(&[secret, "other-secret"], &body, chunk) == expected,
                        "{form} at {before}"
                    );
                }
            }
        }
        for chunk in 1..5 {
            assert_eq!(
                redacted(&["abcdef"], b"1 abcdef 2", chunk),
                b"1 [redacted] 2"
            );
        }
    }

    #[test]
    fn p41_a_secret_is_found_in_utf16() {
        let text = "id,key\n1,s3cret-key\n".repeat(9_000);
        let le: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let be: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for body in [le, be] {
            let clean = redacted(&["s3cret-key"], &body, 1_001);
            assert_eq!(
                memchr::memmem::find_iter(&clean, "[redacted]").count(),
                9_000
            );
            assert_eq!(clean.len(), body.len() - 9_000 * (20 - 10));
        }
    }

    #[test]
    fn other_bytes_stay_as_they_are() {
        let body: Vec<u8> = (0..300_000_u32)
            .map(|number| (number * 7919).to_le_bytes()[1])
            .collect();
        assert!(redacted(&["s3cret-key"], &body, 777) == body);
        assert!(redacted(&[], &body, 777) == body);
        let numbers = "123456789012345,".repeat(20_000).into_bytes();
        assert!(redacted(&["123456789012"], &numbers, 1_001) == numbers);
    }
}
