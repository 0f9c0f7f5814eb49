//! Redacts secrets in replies that echo them: of the operator, of the client of a call, and of
//! token endpoints.
//!
//! Only secrets are redacted: credentials, headers whose values were given as secrets, and headers
//! whose names say that they carry credentials. The framing of a reply stays as it is, and JSON
//! stays valid JSON of the same structure.
//!
//! # Changing what is redacted
//!
//! - The values: `finish` in `proxy/binding.rs` collects them; `exposed` in
//!   `credentials/values.rs`; headers by their names, `ENDINGS` in `redact/mod.rs`.
//! - The forms in which a value is recognized: `SecretForms` in `redact/secrets.rs`.
//! - The parts of a reply: `redact` in `results/redaction.rs`.
//! - The promise in SECURITY.md.

pub(crate) mod escapes;
pub(crate) mod json;
pub(crate) mod secrets;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, COOKIE, HeaderName, HeaderValue};

use self::json::{NumberMark, redact_json};
pub(crate) use self::secrets::Redactor;
use self::secrets::TextPlace;
use crate::json::{JsonObject, is_json};

/// The minimum length of a word of a header's value that counts as a secret.
const MIN_WORD_LEN: usize = 8;

impl Redactor {
    /// Redacts a text, JSON or any other; `None` if it contains no secret.
    pub(super) fn clean(&self, text: &[u8], numbers: NumberMark) -> Option<Vec<u8>> {
        if self.is_empty() || !self.may_be_in(text) {
            return None;
        }
        if is_json(text) {
            return redact_json(self, text, numbers);
        }
        self.clean_text(text, TextPlace::Text)
    }

    /// Returns true if arguments hold a secret.
    pub(crate) fn is_in(&self, arguments: &JsonObject) -> bool {
        let json = serde_json::to_vec(arguments);
        json.map_or(true, |json| self.clean(&json, NumberMark::Text).is_some())
    }

    /// Redacts a log line.
    pub(crate) fn redact_line(&self, line: &mut String) {
        self.redact_text(line, NumberMark::Text);
    }

    /// Redacts a text; returns true if it contained a secret.
    pub(super) fn redact_text(&self, text: &mut String, numbers: NumberMark) -> bool {
        let clean = self.clean(text.as_bytes(), numbers);
        if let Some(clean) = &clean {
            *text = String::from_utf8_lossy(clean).into_owned();
        }
        clean.is_some()
    }
}

/// A secret header's value in each form that it is looked for in replies, and its longer words.
pub(crate) fn words_of_secret_header(name: &HeaderName, value: &HeaderValue) -> Vec<Vec<u8>> {
    let mut found = secrets_of_header(name, value);
    let words = value.as_bytes().split(u8::is_ascii_whitespace);
    found.extend(
        words
            .filter(|word| word.len() >= MIN_WORD_LEN)
            .map(<[u8]>::to_vec),
    );
    found
}

/// The secrets that a header may hold: all of it, what follows the scheme of `Authorization`,
/// `Basic` decoded, and the values of cookies.
pub(crate) fn secrets_of_header(name: &HeaderName, value: &HeaderValue) -> Vec<Vec<u8>> {
    let whole = value.as_bytes().trim_ascii();
    let mut found = vec![whole];
    if *name == COOKIE {
        let pairs = whole.split(|byte| *byte == b';');
        found.extend(pairs.filter_map(|pair| {
            Some(
                pair.get(pair.iter().position(|byte| *byte == b'=')? + 1..)?
                    .trim_ascii(),
            )
        }));
    }
    let mut found: Vec<Vec<u8>> = found.into_iter().map(<[u8]>::to_vec).collect();
    if let Some((scheme, rest)) = whole
        .iter()
        .position(u8::is_ascii_whitespace)
        .and_then(|at| whole.split_at_checked(at))
    {
        let rest = rest.trim_ascii();
        if *name == AUTHORIZATION
            || scheme.eq_ignore_ascii_case(b"bearer")
            || scheme.eq_ignore_ascii_case(b"basic")
        {
            found.push(rest.to_vec());
        }
        if scheme.eq_ignore_ascii_case(b"basic")
            && let Ok(pair) = STANDARD.decode(rest)
        {
            let password = pair
                .iter()
                .position(|byte| *byte == b':')
                .and_then(|at| pair.get(at + 1..));
            found.extend(password.map(<[u8]>::to_vec));
            found.push(pair);
        }
    }
    found
}

/// Number of bytes that are redacted at once.
const BLOCK_BYTES: usize = 64 << 10;
/// Number of bytes that one byte of a secret takes at most if it is escaped, as in `\u002b` or
/// `&#x0002B;`.
const MAX_ESCAPE_BYTES: usize = 12;
/// Number of bytes before a cut that may belong to an escape or a number behind it.
const MAX_PREFIX_BYTES: usize = 64;

/// Redacts a body piece by piece.
pub(crate) struct StreamRedactor<'r> {
    redactors: Vec<&'r Redactor>,
    /// The same in UTF-16, because a charset is not decoded on the way. They are made when the
    /// first byte shows the order.
    wide: Vec<Redactor>,
    /// Received bytes that may contain the beginning of a secret.
    pending: Vec<u8>,
    /// Number of bytes that a secret may take.
    reach: usize,
}

impl<'r> StreamRedactor<'r> {
    pub(crate) fn new(redactors: impl Iterator<Item = &'r Redactor>) -> Self {
        let redactors: Vec<&Redactor> = redactors.filter(|redactor| !redactor.is_empty()).collect();
        let longest = redactors.iter().map(|redactor| redactor.longest()).max();
        Self {
            reach: longest.unwrap_or_default() * MAX_ESCAPE_BYTES,
            wide: Vec::new(),
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
                .redactors
                .iter()
                .map(|redactor| redactor.in_utf16(to_bytes))
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

    fn all(&self) -> impl Iterator<Item = &Redactor> {
        self.redactors.iter().copied().chain(&self.wide)
    }

    /// Returns the end of the part in which no secret begins that ends behind it.
    fn cut(&self) -> usize {
        let mut cut = self.pending.len().saturating_sub(self.reach);
        let mut ranges: Vec<(usize, usize)> = self
            .all()
            .flat_map(|redactor| redactor.ranges_with_escapes(&self.pending, TextPlace::Text))
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
        for redactor in self.all() {
            clean = redactor
                .clean_text(clean.as_deref().unwrap_or(part), TextPlace::Text)
                .or(clean);
        }
        out.extend_from_slice(clean.as_deref().unwrap_or(part));
        // The memory of what is left is used again: a file has thousands of blocks.
        self.pending.drain(..cut);
    }
}

/// The last words of names that credentials are sent under: `Authorization`, `Proxy-Authorization`,
/// `Cookie`, `X-Api-Key`, `PRIVATE-TOKEN`, `X-Auth`, `X-Client-Secret` and the like.
const ENDINGS: &str = "authorization auth cookie credential credentials key password secret token";

/// Returns true if a header of that name carries a credential: its name ends with one of a few
/// words, in any case.
pub(crate) fn carries_credential(name: &HeaderName) -> bool {
    // A `HeaderName` is in lower case.
    let mut endings = ENDINGS.split(' ');
    endings.any(|ending| name.as_str().ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(secrets: &[&str], body: &[u8], chunk: usize) -> Vec<u8> {
        let redactors: Vec<Redactor> = secrets
            .iter()
            .map(|secret| Redactor::for_values([secret]))
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

    #[test]
    fn credentials_are_known_by_the_ends_of_header_names() {
        let carries = |name: &str| carries_credential(&name.parse().unwrap());
        for name in [
            "Authorization",
            "Proxy-Authorization",
            "Cookie",
            "X-Api-Key",
            "apikey",
            "DD-API-KEY",
            "Ocp-Apim-Subscription-Key",
            "PRIVATE-TOKEN",
            "X-Amz-Security-Token",
            "X-Auth",
            "CF-Access-Client-Secret",
        ] {
            assert!(carries(name), "{name}");
        }
        for name in [
            "Accept",
            "User-Agent",
            "Notion-Version",
            "X-GitHub-Api-Version",
            "X-Tenant",
            "X-Account-Id",
        ] {
            assert!(!carries(name), "{name}");
        }
    }
}
