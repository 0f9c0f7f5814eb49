//! Redaction of replies and of the results that are made of them.

use bytes::Bytes;
use http::header::{
    CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HeaderName,
    HeaderValue, TRAILER, TRANSFER_ENCODING,
};

use super::records::{self, Framing, ServerSentEvent};
use super::{Reply, ReplyKind, decode_text, reply_kind};
use crate::redact::Redactor;
use crate::redact::json::NumberMark;
use crate::redact::secrets::TextPlace;
use crate::spec::media_type::content_type;

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
        if self.is_empty() {
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
        if !self.may_be_in(&response.body) {
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

    /// Writes the records as lines of JSON; `None` if they contain no secret.
    fn clean_lines(&self, mut records: Vec<String>, numbers: NumberMark) -> Option<String> {
        let mut found = false;
        for record in &mut records {
            found |= self.redact_text(record, numbers);
        }
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
            found |= self.redact_text(&mut event.data, numbers);
            for text in [&mut event.name, &mut event.id] {
                if let Some(clean) = self.clean_text(text.as_bytes(), TextPlace::Text) {
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
        if let Some(clean) = self.clean_text(
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
