//! A request to an API: its headers, its payload in memory and in files that are read while they
//! are sent, the percent-encoding of its pieces (RFC 3986 section
//! 2.1), and the whole as text for people.

use std::io;
use std::io::Seek as _;
use std::pin::pin;

use bytes::{Bytes, BytesMut};
use futures_util::future::Either;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _, stream};
use http::Method;
use http::header::{CONNECTION, HeaderMap, HeaderName};
use tokio::io::AsyncReadExt as _;
use tokio::sync::watch;
use url::Url;

use crate::text::{counted, shell_word};

/// A request that is ready to be sent.
#[derive(Debug)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The asserted URL.
    pub url: Url,
    /// All headers but those that the client itself writes (Host, Content-Length).
    pub headers: HeaderMap,
    /// The body, if there is one.
    pub body: Option<Payload>,
    /// True if the reply is a stream of values according to the document, in which there may be
    /// long pauses.
    pub may_stream: bool,
}

/// Number of bytes of a file that are in memory at a time.
const CHUNK: usize = 64 << 10;

/// A part of a body.
#[derive(Debug)]
pub enum Piece {
    /// Bytes in memory.
    Bytes(Bytes),
    /// An open file, and how many bytes of it are sent.
    File(std::fs::File, u64),
}

impl Piece {
    /// The same bytes once more. Of a file, both have one position.
    fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Bytes(bytes) => Self::Bytes(bytes.clone()),
            Self::File(file, length) => Self::File(file.try_clone()?, *length),
        })
    }

    /// Returns the number of bytes that are sent.
    fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(_, length) => *length,
        }
    }
}

/// A body.
#[derive(Debug, Default)]
pub struct Payload {
    pieces: Vec<Piece>,
}

impl<T: Into<Bytes>> From<T> for Payload {
    fn from(bytes: T) -> Self {
        let bytes = bytes.into();
        Self {
            pieces: vec![Piece::Bytes(bytes)],
        }
    }
}

impl Payload {
    /// One after the other.
    #[must_use]
    pub fn of(pieces: Vec<Piece>) -> Self {
        Self { pieces }
    }

    /// Returns the payload, if it is in memory as one part.
    #[must_use]
    pub fn bytes(&self) -> Option<&Bytes> {
        match self.pieces.as_slice() {
            [Piece::Bytes(bytes)] => Some(bytes),
            _ => None,
        }
    }

    /// The pieces, in their order.
    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Returns its length in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.pieces
            .iter()
            .map(Piece::length)
            .fold(0, u64::saturating_add)
    }

    /// Reads the bytes before they are sent, piece by piece; files are read again then.
    ///
    /// # Errors
    /// A file cannot be read, or has become shorter.
    pub(crate) async fn read_ahead(&self, mut each: impl FnMut(&[u8])) -> io::Result<()> {
        let pieces: io::Result<Vec<Piece>> = self.pieces.iter().map(Piece::try_clone).collect();
        let (sent, _) = watch::channel(0);
        let mut chunks = pin!(Self::of(pieces?).stream(sent));
        while let Some(chunk) = chunks.try_next().await? {
            each(&chunk);
        }
        for piece in &self.pieces {
            if let Piece::File(file, _) = piece {
                let mut file = file;
                file.rewind()?;
            }
        }
        Ok(())
    }

    /// Streams the bytes on demand, and reports in `sent` how many were given out. A file that has
    /// become shorter is an error.
    pub fn stream(
        self,
        sent: watch::Sender<u64>,
    ) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
        let pieces = stream::iter(self.pieces).flat_map(|piece| match piece {
            Piece::Bytes(mut bytes) => {
                let chunks = std::iter::from_fn(move || {
                    let chunk = bytes.split_to(bytes.len().min(CHUNK));
                    (!chunk.is_empty()).then_some(Ok(chunk))
                });
                Either::Left(stream::iter(chunks))
            }
            Piece::File(file, length) => {
                let file = tokio::fs::File::from_std(file);
                Either::Right(stream::try_unfold((file, length), next_chunk))
            }
        });
        pieces.inspect_ok(move |chunk| {
            sent.send_modify(|sent| *sent = sent.saturating_add(chunk.len() as u64));
        })
    }
}

/// Reads on in a file of which so many bytes are to be sent still.
async fn next_chunk(
    (mut file, left): (tokio::fs::File, u64),
) -> io::Result<Option<(Bytes, (tokio::fs::File, u64))>> {
    if left == 0 {
        return Ok(None);
    }
    let mut chunk = BytesMut::with_capacity(CHUNK);
    let read = (&mut file).take(left).read_buf(&mut chunk).await?;
    if read == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some((
        chunk.freeze(),
        (file, left.saturating_sub(read as u64)),
    )))
}

impl Request {
    /// The headers in the order in which they are sent, but for those that the client itself
    /// writes.
    fn header_texts(&self) -> impl Iterator<Item = (&str, String)> {
        let value_text =
            |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        self.headers
            .iter()
            .map(move |(name, value)| (name.as_str(), value_text(value)))
    }

    /// The body, if it is text and in memory.
    fn body_text(&self) -> Option<&str> {
        std::str::from_utf8(self.body.as_ref()?.bytes()?).ok()
    }

    /// The request as an HTTP/1.1 message. It holds no credential if the request was made without
    /// one; see [`crate::api::Api::preview`].
    pub(crate) fn http_text(&self) -> String {
        let url = &self.url;
        let query = url
            .query()
            .map(|query| format!("?{query}"))
            .unwrap_or_default();
        let host = url.authority();
        let mut out = format!(
            "{} {}{query} HTTP/1.1\nhost: {host}\n",
            self.method,
            url.path()
        );
        for (name, value) in self.header_texts() {
            out.push_str(&format!("{name}: {value}\n"));
        }
        if let Some(body) = &self.body {
            out.push_str(&format!("content-length: {}\n\n", body.length()));
            match self.body_text() {
                Some(text) => out.push_str(text),
                None => out.push_str(&format!(
                    "({} that are not text)",
                    counted(usize::try_from(body.length()).unwrap_or(usize::MAX), "byte")
                )),
            }
        }
        out.trim_end().to_owned()
    }

    /// The request as a command for a shell. It holds no credential if the request was made
    /// without one; see [`crate::api::Api::preview`].
    pub(crate) fn curl_text(&self) -> String {
        let method = match self.method.as_str() {
            // `-X HEAD` would wait for a body that never comes.
            "HEAD" => "--head".to_owned(),
            method => format!("--request {}", shell_word(method)),
        };
        let mut out = format!("curl {method} {}", shell_word(self.url.as_str()));
        for (name, value) in self.header_texts() {
            out.push_str(&format!(
                " \\\n  --header {}",
                shell_word(&format!("{name}: {value}"))
            ));
        }
        if self.body.is_some() {
            match self.body_text() {
                Some(text) => out.push_str(&format!(" \\\n  --data-raw {}", shell_word(text))),
                None => out.push_str(" \\\n  --data-binary @FILE"),
            }
        }
        out
    }
}

/// Returns true if `Connection` names this header: it then belongs to the connection that the
/// headers came by.
pub(crate) fn is_of_connection(headers: &HeaderMap, name: &HeaderName) -> bool {
    let values = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .any(|option| option.trim().eq_ignore_ascii_case(name.as_str()))
}

/// The characters that are not percent-encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Only unreserved characters (RFC 3986 section 2.3).
    Unreserved,
    /// Reserved ones and percent-encoded triples too, as `allowReserved` asks for in the value of a
    /// query. Encoded are `#`, which ends the query, `&`, which ends the pair, `+`, which forms
    /// read as a space, `'`, which URL parsers encode in a query, and `[` and `]`, which RFC 3986
    /// section 3.4 does not allow there. `?` and `=` are legal in a value: a pair is split at its
    /// first `=`.
    Reserved,
    /// In a path with `allowReserved` of 3.2: the characters that RFC 3986 section 3.3 allows in a
    /// segment, but `;` and `=`, which would start a parameter of the segment.
    Segment,
    /// In a cookie of the style `form` with `allowReserved` of 3.2: the characters that a cookie
    /// may hold (RFC 6265 section 4.1.1), but `&`, which ends a pair of that style, and `+`.
    FormCookie,
    /// In a cookie of the style `cookie` of 3.2, which encodes nothing: all that cannot end a
    /// cookie, and commas.
    Cookie,
    /// In the path of a template: percent-encoded triples too, and all characters that RFC 3986
    /// section 3.3 allows in a segment.
    TemplatePath,
    /// In the query that the path of a template has: percent-encoded triples too, and the
    /// characters that give it the structure that its author wrote.
    TemplateQuery,
    /// Everything: header values are not percent-encoded.
    All,
}

/// Percent-encodes what `keep` does not keep.
#[must_use]
pub fn percent_encode(text: &str, keep: Keep) -> String {
    let mut encoded = String::with_capacity(text.len());
    push_encoded(&mut encoded, text, keep);
    encoded
}

/// Percent-encodes each segment between slashes by itself, and says how many there are.
pub(crate) fn percent_encode_segments(text: &str, keep: Keep) -> (String, usize) {
    let segments: Vec<String> = text
        .split('/')
        .map(|segment| percent_encode(segment, keep))
        .collect();
    (segments.join("/"), segments.len())
}

/// Appends the text to `out`, encoded like [`percent_encode`].
pub(crate) fn push_encoded(out: &mut String, text: &str, keep: Keep) {
    let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    if keep == Keep::All || text.bytes().all(is_unreserved) {
        out.push_str(text);
        return;
    }
    let bytes = text.as_bytes();
    let reserved: &[u8] = match keep {
        Keep::Reserved => b":/?@!$()*,;=",
        Keep::Segment => b":@!$&'()*+,",
        Keep::FormCookie => b":/?@!$'()*=#[]",
        Keep::Cookie => b":/?@!$&'()*+,=#[]%^`{|}<>",
        Keep::TemplatePath => b"!$&'()*+,;=:@",
        Keep::TemplateQuery => b"=+,/?:@!$()*;",
        Keep::Unreserved | Keep::All => b"",
    };
    let is_triple = |index: usize| {
        let digits = bytes.get(index + 1..index + 3);
        keep != Keep::Unreserved
            && digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    for (index, byte) in bytes.iter().copied().enumerate() {
        let stays =
            is_unreserved(byte) || reserved.contains(&byte) || (byte == b'%' && is_triple(index));
        if stays {
            out.push(char::from(byte));
        } else {
            out.push_str(percent_encoding::percent_encode_byte(byte));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;

    use super::*;

    async fn read(content: Payload) -> (io::Result<Vec<u8>>, u64) {
        let (sent, told) = watch::channel(0);
        let chunks = content.stream(sent).try_collect::<Vec<Bytes>>().await;
        let told = *told.borrow();
        (chunks.map(|chunks| chunks.concat()), told)
    }

    #[tokio::test]
    async fn pieces_are_sent_one_after_the_other() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let inside = vec![7_u8; CHUNK + 5];
        std::fs::File::create(&path)
            .unwrap()
            .write_all(&inside)
            .unwrap();
        let file = |length| Piece::File(std::fs::File::open(&path).unwrap(), length);
        let length = u64::try_from(inside.len()).unwrap();
        let content = Payload::of(vec![
            Piece::Bytes("a".into()),
            file(length),
            Piece::Bytes(Bytes::new()),
            file(2),
            Piece::Bytes("z".into()),
        ]);
        assert_eq!(content.length(), length + 4);
        let mut ahead = Vec::new();
        content
            .read_ahead(|chunk| ahead.extend_from_slice(chunk))
            .await
            .unwrap();
        let expected = [b"a".as_slice(), &inside, &[7, 7], b"z"].concat();
        let (bytes, told) = read(content).await;
        assert_eq!((bytes.as_ref().unwrap(), told), (&expected, length + 4));
        assert!(ahead == expected, "files are read twice");
        let content = Payload::of(vec![file(length + 1)]);
        assert_eq!(
            content.read_ahead(|_| {}).await.unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
        let (shorter, _) = read(content).await;
        assert_eq!(shorter.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn allow_reserved_never_changes_the_structure_of_a_query() {
        assert_eq!(percent_encode("a/b:c,d", Keep::Reserved), "a/b:c,d");
        assert_eq!(
            percent_encode("a&b=c#d?e+f[g] %", Keep::Reserved),
            "a%26b=c%23d?e%2Bf%5Bg%5D%20%25"
        );
    }

    proptest! {
        #[test]
        fn encoding_decodes_to_what_it_was(text in ".*") {
            for keep in [Keep::Unreserved, Keep::Reserved] {
                let encoded = percent_encode(&text, keep);
                let decoded = |text: &str| percent_encoding::percent_decode_str(text).collect::<Vec<u8>>();
                // Text that is encoded already stays if reserved characters do.
                let meant = if keep == Keep::Reserved { decoded(&text) } else { text.as_bytes().to_vec() };
                prop_assert_eq!(decoded(&encoded), meant);
                prop_assert!(!encoded.contains(['#', '&', '+', ' ']));
                prop_assert!(keep == Keep::Reserved || !encoded.contains(['=', '?']));
            }
        }
    }
}
