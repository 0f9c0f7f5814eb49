//! Makes the result that a model gets from the reply of the API.
//!
//! # Adding a media type of replies
//!
//! - `MediaKind` in `spec/media_type.rs` classifies the type, and `reply_kind` in
//!   `results/mod.rs` says what becomes of it.
//! - `results/render.rs` makes the content of the result. A stream of records is a `Framing`
//!   in `results/records.rs`.
//! - A case in `tests/cases/call/replies.yaml`.

pub(crate) mod compact_json;
pub(crate) mod failure;
pub(crate) mod filter;
pub(crate) mod media;
mod page_numbers;
pub(crate) mod pagination;
pub(crate) mod records;
pub(crate) mod remarks;
pub(crate) mod render;
pub(crate) mod reply_headers;
pub(crate) mod result_notes;
pub(crate) mod shape;
pub(crate) mod tool_result;
pub(crate) mod truncate;

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http::header::{
    CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HeaderMap,
    HeaderName, HeaderValue, TRAILER, TRANSFER_ENCODING,
};

use self::records::{Framing, ServerSentEvent, list_records};
use crate::files::ReceivedFile;
use crate::json::is_json;
use crate::redact::Redactor;
use crate::redact::json::NumberMark;
use crate::redact::secrets::TextPlace;
use crate::spec::media_type::{MediaKind, content_type, essence, is_textual};
use crate::spec::{Operation, media_type};
use crate::text;

/// A reply that was read to its end, or, of a stream of records, as far as the limits let.
#[derive(Debug, Default, Clone)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, decompressed.
    pub body: Bytes,
    /// The file that has the body instead.
    pub file: Option<Arc<ReceivedFile>>,
    /// Reason for which a stream of records was not read to its end.
    pub stopped: Option<Stopped>,
    /// True if it answers a request for the status or the result of an operation, and not the
    /// request of the call.
    pub is_of_wait: bool,
    /// Redactors of the credentials that were fetched for it, for the texts that are made of it
    /// after charsets and escapes were decoded. On the wire they are taken out at once.
    pub(crate) redactors: Vec<Arc<Redactor>>,
}

impl Reply {
    /// The same reply without these credentials.
    pub(crate) fn without_credentials(mut self, redactors: Vec<Arc<Redactor>>) -> Self {
        redactors
            .iter()
            .for_each(|redactor| redactor.redact(&mut self, NumberMark::Text));
        self.redactors = redactors;
        self
    }

    /// Adds the redactors of another reply that is a part of this one.
    pub(crate) fn keep_redactors(&mut self, others: &[Arc<Redactor>]) {
        for redactor in others {
            let is_known = |known: &Arc<Redactor>| {
                Arc::ptr_eq(known, redactor) || known.has_tokens_of(redactor)
            };
            if !self.redactors.iter().any(is_known) {
                self.redactors.push(Arc::clone(redactor));
            }
        }
    }

    /// Returns the number of bytes of the body.
    pub(crate) fn length(&self) -> usize {
        let of_file = self
            .file
            .as_ref()
            .map(|file| usize::try_from(file.length).unwrap_or(usize::MAX));
        of_file.unwrap_or(self.body.len())
    }

    /// Returns its text if it is one JSON value by its media type; whether it is valid is not checked.
    pub(crate) fn json(&self) -> Option<&str> {
        let content_type = content_type(&self.headers);
        let is_json = Framing::of(content_type).is_none()
            && matches!(reply_kind(content_type, &self.body), ReplyKind::Json);
        std::str::from_utf8(strip_bom(&self.body))
            .ok()
            .filter(|_| is_json)
    }

    /// Returns the same, or the records of a stream as a list.
    pub(crate) fn json_or_records(&self) -> Option<Cow<'_, str>> {
        let content_type = content_type(&self.headers);
        let Some(framing) = Framing::of(content_type) else {
            return self.json().map(Cow::Borrowed);
        };
        let text = decode_text(content_type, &self.body);
        let (list, _) = list_records(framing, &text, self.stopped.is_none());
        Some(Cow::Owned(list))
    }

    /// Makes JSON of our own its body.
    pub(crate) fn put_json(&mut self, json: impl Into<Bytes>) {
        let json_type = HeaderValue::from_static("application/json");
        self.headers.insert(CONTENT_TYPE, json_type);
        (self.body, self.stopped) = (json.into(), None);
    }

    /// Makes a body of JSON, records or text UTF-8, if it is in another charset. JSON may be in
    /// UTF-16 without saying so; text may not.
    pub(crate) fn decode_charset(&mut self) {
        if self.file.is_some() {
            return;
        }
        let named = content_type(&self.headers);
        let is_json = match reply_kind(named, &self.body) {
            ReplyKind::Json => true,
            ReplyKind::Text => false,
            _ if Framing::of(named).is_some() => false,
            _ => return,
        };
        let encoding = match (
            encoding_rs::Encoding::for_bom(&self.body),
            self.body.get(..2),
        ) {
            (Some((encoding, _)), _) => encoding,
            // RFC 4627 section 3: JSON begins with two ASCII characters.
            (None, Some([0, _])) if is_json => encoding_rs::UTF_16BE,
            (None, Some([_, 0])) if is_json => encoding_rs::UTF_16LE,
            _ => encoding_of(named),
        };
        if encoding == encoding_rs::UTF_8 {
            return;
        }
        self.body = encoding.decode(&self.body).0.into_owned().into();
        let essence = Some(essence(named)).filter(|essence| !essence.is_empty());
        let utf8 = format!(
            "{}; charset=utf-8",
            essence.as_deref().unwrap_or("text/plain")
        );
        if let Ok(utf8) = HeaderValue::from_str(&utf8) {
            self.headers.insert(CONTENT_TYPE, utf8);
        }
    }
}

/// A limit that ended a stream of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// The call's time.
    Time,
    /// The number of records.
    Records,
    /// The bytes of a reply.
    Bytes,
}

/// Form in which a model gets a body, by its media type.
pub(crate) enum ReplyKind {
    /// JSON, which can also be structured content.
    Json,
    /// Other text, in the charset that the type names.
    Text,
    /// An image, as MCP's image content.
    Image,
    /// A sound, as MCP's audio content.
    Audio,
    /// `multipart/*`: each part by its own type.
    Multipart,
    /// Other bytes, as an embedded resource unless they are too many.
    Blob,
}

/// `GET /pets` in words that hide nothing.
pub(crate) fn operation_label(operation: &Operation) -> String {
    text::one_line(&operation.label())
}

pub(crate) fn status_line(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}

/// Returns the type of a body; without one it is bytes (RFC 9110 section 8.3).
pub(crate) fn essence_or_bytes(content_type: &str) -> String {
    let essence = essence(content_type);
    if essence.is_empty() {
        "application/octet-stream".into()
    } else {
        essence.into_owned()
    }
}

pub(crate) fn reply_kind(content_type: &str, body: &[u8]) -> ReplyKind {
    let essence = essence(content_type);
    match (MediaKind::of(&essence), &*essence) {
        (_, "") => match std::str::from_utf8(body) {
            Ok(text) if text.trim_start().starts_with(['{', '[']) && is_json(body) => {
                ReplyKind::Json
            }
            Ok(_) => ReplyKind::Text,
            Err(_) => ReplyKind::Blob,
        },
        (MediaKind::Json, other) if !other.contains('*') => ReplyKind::Json,
        (_, other) if other.starts_with("image/") => ReplyKind::Image,
        (_, other) if other.starts_with("audio/") => ReplyKind::Audio,
        (MediaKind::Multipart, _) => ReplyKind::Multipart,
        (_, other) if is_textual(other) && !is_bytes(content_type, body) => ReplyKind::Text,
        _ => ReplyKind::Blob,
    }
}

/// Returns true if a body with a text type is not text: it holds a zero byte, is not UTF-8, names
/// no other charset, and does not begin as UTF-16 does.
fn is_bytes(content_type: &str, body: &[u8]) -> bool {
    memchr::memchr(0, body).is_some()
        && !matches!(body.get(..2), Some([0, _] | [_, 0]))
        && encoding_rs::Encoding::for_bom(body).is_none()
        && media_type::parameter(content_type, "charset").is_none()
        && std::str::from_utf8(body).is_err()
}

pub(crate) fn strip_bom(body: &[u8]) -> &[u8] {
    body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body)
}

/// Text by the charset it names, else UTF-8; bytes that do not fit become replacement characters,
/// never an error.
pub(crate) fn decode_text(content_type: &str, body: &[u8]) -> String {
    encoding_of(content_type).decode(body).0.into_owned()
}

fn encoding_of(content_type: &str) -> &'static encoding_rs::Encoding {
    media_type::parameter(content_type, "charset")
        .and_then(|label| encoding_rs::Encoding::for_label(label.as_bytes()))
        .unwrap_or(encoding_rs::UTF_8)
}

/// The headers that describe the body. They are not redacted, because the body cannot be read
/// without them.
const FRAMING: [HeaderName; 7] = [
    CONTENT_TYPE,
    CONTENT_LENGTH,
    CONTENT_ENCODING,
    CONTENT_RANGE,
    TRANSFER_ENCODING,
    TRAILER,
    CONNECTION,
];

impl Redactor {
    /// Redacts the body and the headers of a reply.
    pub(crate) fn redact(&self, response: &mut Reply, numbers: NumberMark) {
        if self.secrets.is_empty() {
            return;
        }
        response.decode_charset();
        if let Some(framing) = Framing::of(content_type(&response.headers)) {
            self.redact_records(response, framing, numbers);
        } else if let Some(clean) = self.clean(&response.body, numbers) {
            response.body = clean.into();
        }
        for (name, value) in &mut response.headers {
            if !FRAMING.contains(name)
                && let Some(clean) = self.clean(value.as_bytes(), numbers)
                && let Ok(clean) = HeaderValue::from_bytes(&clean)
            {
                *value = clean;
            }
        }
        self.redact_wide_text(response);
    }

    /// Redacts the records of a stream one by one; if one contains a secret, all are written again,
    /// events as events and others as lines of JSON.
    fn redact_records(&self, response: &mut Reply, framing: Framing, numbers: NumberMark) {
        if !self.secrets.may_be_in(&response.body) {
            return;
        }
        let text = decode_text(content_type(&response.headers), &response.body);
        let is_whole = response.stopped.is_none();
        let (clean, media_type) = if framing == Framing::Events {
            (
                self.clean_events(records::events(&text, is_whole), numbers),
                "text/event-stream",
            )
        } else {
            (
                self.clean_lines(records::records(framing, &text, is_whole), numbers),
                "application/x-ndjson",
            )
        };
        if let Some(clean) = clean {
            response.body = Bytes::from(clean);
            response
                .headers
                .insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        }
    }

    /// Redacts a record, which is JSON; returns true if it contained a secret.
    fn clean_record(&self, record: &mut String, numbers: NumberMark) -> bool {
        let clean = self.clean(record.as_bytes(), numbers);
        let found = clean.is_some();
        clean
            .into_iter()
            .for_each(|clean| *record = String::from_utf8_lossy(&clean).into_owned());
        found
    }

    /// Writes the records as lines of JSON; `None` if they contain no secret.
    fn clean_lines(&self, mut records: Vec<String>, numbers: NumberMark) -> Option<String> {
        let found = records.iter_mut().fold(false, |found, record| {
            self.clean_record(record, numbers) | found
        });
        found.then(|| records.iter().map(|record| format!("{record}\n")).collect())
    }

    /// Writes the events as they are sent; `None` if they contain no secret.
    fn clean_events(
        &self,
        mut events: Vec<ServerSentEvent>,
        numbers: NumberMark,
    ) -> Option<String> {
        let mut found = false;
        for event in &mut events {
            found |= self.clean_record(&mut event.data, numbers);
            for text in [&mut event.name, &mut event.id] {
                if let Some(clean) = self.secrets.clean(text.as_bytes(), TextPlace::Text) {
                    *text = String::from_utf8_lossy(&clean).into_owned();
                    found = true;
                }
            }
        }
        found.then(|| events.iter().map(ServerSentEvent::to_text).collect())
    }

    /// Redacts UTF-16 text without a declared charset; if it contains a secret, it becomes UTF-8.
    fn redact_wide_text(&self, response: &mut Reply) {
        let guessed = match response.body.get(..2) {
            Some([0, _]) => "text/plain; charset=utf-16be",
            Some([_, 0]) => "text/plain; charset=utf-16le",
            _ => return,
        };
        if !matches!(
            reply_kind(content_type(&response.headers), &response.body),
            ReplyKind::Text
        ) {
            return;
        }
        if let Some(clean) = self.secrets.clean(
            decode_text(guessed, &response.body).as_bytes(),
            TextPlace::Text,
        ) {
            response.body = clean.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credentials::values::Credentials;
    use crate::redact::words_of_secret_header;

    #[test]
    fn bytes_that_are_called_text_are_bytes() {
        for (content_type, body, is_text) in [
            ("text/csv", &b"PK\x03\x04\x00\xff\xfe"[..], false),
            ("text/csv", b"a,b\n1,2\n", true),
            ("text/csv", b"a\x00b", true),
            ("text/csv", b"caf\xe9", true),
            ("text/csv; charset=utf-16le", b"PK\x00\xd8\x00\xd8", true),
            ("text/plain", b"a\x00\xff\x00", true),
        ] {
            assert_eq!(
                matches!(reply_kind(content_type, body), ReplyKind::Text),
                is_text,
                "{content_type} {body:?}"
            );
        }
    }

    #[test]
    fn secrets_go_and_data_stays() {
        let given = |value: &str| Credentials {
            variables: [("KEY".to_owned(), value.to_owned().into())].into(),
            ..Credentials::default()
        };
        let said = |value: &str, body: &str| {
            let mut response = Reply {
                body: Bytes::copy_from_slice(body.as_bytes()),
                ..Reply::default()
            };
            Redactor::for_values(given(value).exposed()).redact(&mut response, NumberMark::Text);
            String::from_utf8(response.body.to_vec()).unwrap()
        };
        for (value, body, expected) in [
            (
                "k/e+y\"1",
                r#"k/e+y"1 k\/e+y\"1 k%2Fe%2By%221"#,
                "[redacted] [redacted] [redacted]",
            ),
            (
                "ann:pass-word",
                "YW5uOnBhc3Mtd29yZA== pass-word ann",
                "[redacted] [redacted] ann",
            ),
            ("abcde", "abcde", "abcde"),
            ("12345678", r#"{"id":12345678}"#, r#"{"id":12345678}"#),
            ("123456789012", "123456789012 ", "\"[redacted]\" "),
            ("123456789012", "acct 123456789012.", "acct [redacted]."),
            (
                "QWxh+ZGRpb/jp==",
                r#"{"a":"x\u0051Wxh\u002bZGRpb\u002Fjp\u003d\u003d","b":"\n1"}"#,
                r#"{"a":"x[redacted]","b":"\n1"}"#,
            ),
            (
                "QWxh+ZGRpb/jp==",
                "<p>QWxh&#43;ZGRpb&#x2F;jp&equals;=&amp;",
                "<p>[redacted]&amp;",
            ),
            ("QWxh+ZGRpb/jp==", "QWxh%2bZGRpb%2fjp=%3d%", "[redacted]%"),
            (
                "correct horse/battery",
                "a=correct+horse%2Fbattery&b=correct+horse/battery",
                "a=[redacted]&b=[redacted]",
            ),
            (
                "QWxh+ZGRpb/jp==",
                r"QWxh\\u002bZGRpb\\/jp== QWxh\u0026#43;ZGRpb/jp==",
                "[redacted] [redacted]",
            ),
            ("a%41+b/c", r"a%41\u002bb/c", "[redacted]"),
            // Digits of a number are not torn apart, and a number that is a secret becomes a
            // string.
            (
                "123456789012",
                r#"{"id":123456789012}"#,
                r#"{"id":"[redacted]"}"#,
            ),
            (
                "123456789012",
                r#"{"id":123456789012345,"b":-1.50}"#,
                r#"{"id":123456789012345,"b":-1.50}"#,
            ),
            ("123456789012", "id=123456789012345", "id=123456789012345"),
            (
                "123456789012",
                r#"{"a":-123456789012,"b":1.23456789012e11}"#,
                r#"{"a":"[redacted]","b":1.23456789012e11}"#,
            ),
            ("123456789012", r#"["x123456789012"]"#, r#"["x[redacted]"]"#),
            // The syntax of JSON is never redacted.
            (r#"","b":""#, r#"{"a":"","b":""}"#, r#"{"a":"","b":""}"#),
            (
                r#"","b":""#,
                r#"{"a":"\",\"b\":\""}"#,
                r#"{"a":"[redacted]"}"#,
            ),
            (
                "s3cret-key",
                r#"{ "s3cret-key" : 1.50, "s3cret-key":2, "[redacted]-2": 3}"#,
                r#"{ "[redacted]" : 1.50, "[redacted]-3":2, "[redacted]-2": 3}"#,
            ),
            // The mark and the text behind it spell a secret again.
            ("d]abcde", "d]abcdeabcde", "[redacte[redacted]"),
            ("redacted", "redacted", "redacted"),
            (
                "tab\tin it",
                r#"["tab\tin it","tab\u0009in it"]"#,
                r#"["[redacted]","[redacted]"]"#,
            ),
            // Lengths at the limits.
            ("abcdef", "abcdef", "[redacted]"),
            ("12345678901", "12345678901", "12345678901"),
        ] {
            assert_eq!(said(value, body), expected, "{value}");
        }
    }

    #[test]
    fn the_shortest_word_of_a_secret_header_has_eight_bytes() {
        let value = "1234567 abcdefg abcdefgh".parse().unwrap();
        let words = words_of_secret_header(&"x-a".parse().unwrap(), &value);
        let redactor = Redactor::for_values(words);
        let said = redactor
            .clean(b"abcdefg- abcdefgh", NumberMark::Text)
            .unwrap();
        assert_eq!(said, b"abcdefg- [redacted]");
    }

    #[test]
    fn the_framing_of_a_reply_stays() {
        let redactor = Redactor::for_values(["application/json"]);
        let mut response = Reply::default();
        for (name, value) in [
            ("content-type", "application/json"),
            ("x-type", "application/json"),
        ] {
            response.headers.insert(name, value.parse().unwrap());
        }
        redactor.redact(&mut response, NumberMark::Text);
        assert_eq!(response.headers["content-type"], "application/json");
        assert_eq!(response.headers["x-type"], "[redacted]");
    }

    #[test]
    fn records_are_redacted_one_by_one() {
        let redactor = Redactor::for_values(["s3cret-key", "123456789012"]);
        let mut response = Reply {
            body: Bytes::from_static(b"event: a\ndata: {\"k\":\"s3cret-key\",\"n\":123456789012}\n\ndata: plain s3cret-key\n\n"),
            ..Reply::default()
        };
        response
            .headers
            .insert(CONTENT_TYPE, "text/event-stream".parse().unwrap());
        redactor.redact(&mut response, NumberMark::Zero);
        assert_eq!(
            response.body,
            "event: a\ndata: {\"k\":\"[redacted]\",\"n\":0}\n\ndata: \"plain [redacted]\"\n\n"
        );
    }
}
