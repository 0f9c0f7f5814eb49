//! Redacts secrets in replies that echo them: of the operator, of the client of a call, and of token endpoints.
//!
//! Only secrets are redacted: credentials, headers whose values were given as secrets, and headers whose names say that they carry
//! credentials. The framing of a reply stays as it is, and JSON stays valid JSON of the same structure.
//!
//! # Changing what is redacted
//!
//! - The values: `secret_headers` in `proxy/binding.rs`, where `finish` collects them; `secrets` in `proxy/auth/values.rs`; headers
//!   by their names, `ENDINGS` in `proxy/redact/names.rs`.
//! - The forms in which a value is recognized: `SecretForms` in `proxy/redact/secrets.rs`.
//! - The parts of a reply: `Redactor` in `proxy/redact/mod.rs`.
//! - The promise in SECURITY.md.

pub(crate) mod escapes;
pub(crate) mod json;
pub(crate) mod names;
pub(crate) mod secrets;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, HeaderValue,
    TRAILER, TRANSFER_ENCODING,
};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use self::json::{NumberMark, is_json, redact_json, redact_value};
use self::secrets::{SecretForms, Secrets, TextPlace};
use super::auth::values::Credentials;
use crate::proxy::response::records::{self, Framing, ServerSentEvent};
use crate::proxy::response::tool_result::ToolResult;
use crate::proxy::response::{ReplyKind, Response, content_type, decode_text, reply_kind};

/// The minimum length of a word of a header's value that counts as a secret.
const MIN_WORD_LEN: usize = 8;

/// The headers that describe the body. They are not redacted, because the body cannot be read without them.
const FRAMING: [HeaderName; 7] = [
    CONTENT_TYPE,
    CONTENT_LENGTH,
    CONTENT_ENCODING,
    CONTENT_RANGE,
    TRANSFER_ENCODING,
    TRAILER,
    CONNECTION,
];

/// Redacts a set of secrets.
#[derive(Debug, Default)]
pub(crate) struct Redactor {
    secrets: Secrets,
    /// The tokens it was made of, if another replica has to make the same.
    tokens: Vec<SecretString>,
}

impl Redactor {
    /// Makes a redactor for secret headers, for credentials, and for the forms in which they are sent.
    #[must_use]
    pub(crate) fn new(headers: &HeaderMap, credentials: &Credentials, sent: &[Vec<u8>]) -> Self {
        let mut forms = SecretForms::default();
        for (name, value) in headers {
            words_of_secret_header(name, value).iter().for_each(|secret| forms.add(secret));
        }
        sent.iter().for_each(|secret| forms.add(secret));
        credentials
            .secrets()
            .for_each(|secret| forms.add(secret.expose_secret().as_bytes()));
        credentials.pairs().iter().for_each(|part| forms.add(part.as_bytes()));
        Self {
            secrets: forms.into(),
            tokens: Vec::new(),
        }
    }

    /// Makes a redactor for single secrets.
    pub(crate) fn for_values<'v>(values: impl Iterator<Item = &'v [u8]>) -> Self {
        let mut forms = SecretForms::default();
        values.for_each(|value| forms.add(value));
        Self {
            secrets: forms.into(),
            tokens: Vec::new(),
        }
    }

    /// Makes a redactor for tokens that were fetched.
    pub(crate) fn for_tokens<'t>(tokens: impl Iterator<Item = &'t str>) -> Self {
        let tokens: Vec<SecretString> = tokens.map(SecretString::from).collect();
        Self {
            tokens: tokens.clone(),
            ..Self::for_values(tokens.iter().map(|token| token.expose_secret().as_bytes()))
        }
    }

    /// The tokens of [`Redactor::for_tokens`].
    pub(crate) fn tokens(&self) -> impl Iterator<Item = &str> {
        self.tokens.iter().map(SecretString::expose_secret)
    }

    /// Returns true if it redacts the tokens of another one.
    pub(crate) fn has_tokens_of(&self, other: &Self) -> bool {
        other.tokens().all(|token| self.tokens().any(|own| own == token))
    }

    /// Redacts the body and the headers of a reply.
    pub(crate) fn redact(&self, response: &mut Response, numbers: NumberMark) {
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

    /// Redacts a result, which may contain decoded parts of a reply.
    pub(crate) fn redact_result(&self, result: &mut ToolResult, numbers: NumberMark) {
        if self.secrets.is_empty() {
            return;
        }
        if let Some(json) = result.json_mut() {
            self.redact_text(json, numbers);
        }
        let (texts, meta) = result.texts_mut();
        texts.for_each(|text| self.redact_text(text, numbers));
        for value in meta.values_mut() {
            redact_value(&self.secrets, value, numbers);
        }
    }

    /// Redacts the records of a stream one by one; if one contains a secret, all are written again, events as events and others as
    /// lines of JSON.
    fn redact_records(&self, response: &mut Response, framing: Framing, numbers: NumberMark) {
        if !self.secrets.may_be_in(&response.body) {
            return;
        }
        let text = decode_text(content_type(&response.headers), &response.body);
        let is_whole = response.stopped.is_none();
        let (clean, media_type) = if framing == Framing::Events {
            (self.clean_events(records::events(&text, is_whole), numbers), "text/event-stream")
        } else {
            (
                self.clean_lines(records::records(framing, &text, is_whole), numbers),
                "application/x-ndjson",
            )
        };
        if let Some(clean) = clean {
            response.body = Bytes::from(clean);
            response.headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        }
    }

    /// Writes the records as lines of JSON; `None` if they contain no secret.
    fn clean_lines(&self, mut records: Vec<Value>, numbers: NumberMark) -> Option<String> {
        let found = records
            .iter_mut()
            .fold(false, |found, record| redact_value(&self.secrets, record, numbers) | found);
        found.then(|| records.iter().map(|record| format!("{record}\n")).collect())
    }

    /// Writes the events as they are sent; `None` if they contain no secret.
    fn clean_events(&self, mut events: Vec<ServerSentEvent>, numbers: NumberMark) -> Option<String> {
        let mut found = false;
        for event in &mut events {
            found |= redact_value(&self.secrets, &mut event.data, numbers);
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
    fn redact_wide_text(&self, response: &mut Response) {
        let guessed = match response.body.get(..2) {
            Some([0, _]) => "text/plain; charset=utf-16be",
            Some([_, 0]) => "text/plain; charset=utf-16le",
            _ => return,
        };
        if !matches!(reply_kind(content_type(&response.headers), &response.body), ReplyKind::Text) {
            return;
        }
        if let Some(clean) = self.secrets.clean(decode_text(guessed, &response.body).as_bytes(), TextPlace::Text) {
            response.body = clean.into();
        }
    }

    /// Redacts a text, JSON or any other; `None` if it contains no secret.
    fn clean(&self, text: &[u8], numbers: NumberMark) -> Option<Vec<u8>> {
        if !self.secrets.may_be_in(text) {
            return None;
        }
        if is_json(text) {
            return redact_json(&self.secrets, text, numbers);
        }
        self.secrets.clean(text, TextPlace::Text)
    }

    /// Redacts a log line.
    pub(crate) fn redact_line(&self, line: &mut String) {
        self.redact_text(line, NumberMark::Text);
    }

    fn redact_text(&self, text: &mut String, numbers: NumberMark) {
        if let Some(clean) = self.clean(text.as_bytes(), numbers) {
            *text = String::from_utf8_lossy(&clean).into_owned();
        }
    }
}

/// A secret header's value in each form that it is looked for in replies, and its longer words.
#[must_use]
pub(crate) fn words_of_secret_header(name: &HeaderName, value: &HeaderValue) -> Vec<Vec<u8>> {
    let mut found = secrets_of_header(name, value);
    let words = value.as_bytes().split(u8::is_ascii_whitespace);
    found.extend(words.filter(|word| word.len() >= MIN_WORD_LEN).map(<[u8]>::to_vec));
    found
}

/// The secrets that a header may hold: all of it, what follows the scheme of `Authorization`, `Basic` decoded, and the values
/// of cookies.
pub(crate) fn secrets_of_header(name: &HeaderName, value: &HeaderValue) -> Vec<Vec<u8>> {
    let whole = value.as_bytes().trim_ascii();
    let mut found = vec![whole];
    if *name == COOKIE {
        let pairs = whole.split(|byte| *byte == b';');
        found.extend(pairs.filter_map(|pair| Some(pair.get(pair.iter().position(|byte| *byte == b'=')? + 1..)?.trim_ascii())));
    }
    let mut found: Vec<Vec<u8>> = found.into_iter().map(<[u8]>::to_vec).collect();
    if let Some((scheme, rest)) = whole
        .iter()
        .position(u8::is_ascii_whitespace)
        .and_then(|at| whole.split_at_checked(at))
    {
        let rest = rest.trim_ascii();
        if *name == AUTHORIZATION || scheme.eq_ignore_ascii_case(b"bearer") || scheme.eq_ignore_ascii_case(b"basic") {
            found.push(rest.to_vec());
        }
        if scheme.eq_ignore_ascii_case(b"basic")
            && let Ok(pair) = STANDARD.decode(rest)
        {
            let password = pair.iter().position(|byte| *byte == b':').and_then(|at| pair.get(at + 1..));
            found.extend(password.map(<[u8]>::to_vec));
            found.push(pair);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn secrets_go_and_data_stays() {
        let given = |value: &str| Credentials {
            variables: [("KEY".to_owned(), value.to_owned().into())].into(),
            ..Credentials::default()
        };
        let said = |value: &str, body: &str| {
            let mut response = Response {
                body: Bytes::copy_from_slice(body.as_bytes()),
                ..Response::default()
            };
            Redactor::new(&HeaderMap::new(), &given(value), &[]).redact(&mut response, NumberMark::Text);
            String::from_utf8(response.body.to_vec()).unwrap()
        };
        for (value, body, expected) in [
            ("k/e+y\"1", r#"k/e+y"1 k\/e+y\"1 k%2Fe%2By%221"#, "[redacted] [redacted] [redacted]"),
            ("ann:pass-word", "YW5uOnBhc3Mtd29yZA== pass-word ann", "[redacted] [redacted] ann"),
            ("abcde", "abcde", "abcde"),
            ("12345678", r#"{"id":12345678}"#, r#"{"id":12345678}"#),
            ("123456789012", "123456789012 ", "\"[redacted]\" "),
            ("123456789012", "acct 123456789012.", "acct [redacted]."),
            (
                "QWxh+ZGRpb/jp==",
                r#"{"a":"x\u0051Wxh\u002bZGRpb\u002Fjp\u003d\u003d","b":"\n1"}"#,
                r#"{"a":"x[redacted]","b":"\n1"}"#,
            ),
            ("QWxh+ZGRpb/jp==", "<p>QWxh&#43;ZGRpb&#x2F;jp&equals;=&amp;", "<p>[redacted]&amp;"),
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
            // Digits of a number are not torn apart, and a number that is a secret becomes a string.
            ("123456789012", r#"{"id":123456789012}"#, r#"{"id":"[redacted]"}"#),
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
            (r#"","b":""#, r#"{"a":"\",\"b\":\""}"#, r#"{"a":"[redacted]"}"#),
            (
                "s3cret-key",
                r#"{ "s3cret-key" : 1.50, "s3cret-key":2, "[redacted] 2": 3}"#,
                r#"{ "[redacted]" : 1.50, "[redacted] 3":2, "[redacted] 2": 3}"#,
            ),
            // The mark and the text behind it spell a secret again.
            ("d]abcde", "d]abcdeabcde", "[redacte[redacted]"),
            ("redacted", "redacted", "redacted"),
            ("tab\tin it", r#"["tab\tin it","tab\u0009in it"]"#, r#"["[redacted]","[redacted]"]"#),
            // Lengths at the limits.
            ("abcdef", "abcdef", "[redacted]"),
            ("12345678901", "12345678901", "12345678901"),
        ] {
            assert_eq!(said(value, body), expected, "{value}");
        }
    }

    #[test]
    fn the_shortest_word_of_a_secret_header_has_eight_bytes() {
        let headers: HeaderMap = [("x-a".parse().unwrap(), "1234567 abcdefg abcdefgh".parse().unwrap())]
            .into_iter()
            .collect();
        let redactor = Redactor::new(&headers, &Credentials::default(), &[]);
        let said = redactor.clean(b"abcdefg- abcdefgh", NumberMark::Text).unwrap();
        assert_eq!(said, b"abcdefg- [redacted]");
    }

    #[test]
    fn the_framing_of_a_reply_stays() {
        let redactor = Redactor::for_values([&b"application/json"[..]].into_iter());
        let mut response = Response::default();
        for (name, value) in [("content-type", "application/json"), ("x-type", "application/json")] {
            response.headers.insert(name, value.parse().unwrap());
        }
        redactor.redact(&mut response, NumberMark::Text);
        assert_eq!(response.headers["content-type"], "application/json");
        assert_eq!(response.headers["x-type"], "[redacted]");
    }

    #[test]
    fn records_are_redacted_one_by_one() {
        let redactor = Redactor::for_values([&b"s3cret-key"[..], b"123456789012"].into_iter());
        let mut response = Response {
            body: Bytes::from_static(b"event: a\ndata: {\"k\":\"s3cret-key\",\"n\":123456789012}\n\ndata: plain s3cret-key\n\n"),
            ..Response::default()
        };
        response.headers.insert(CONTENT_TYPE, "text/event-stream".parse().unwrap());
        redactor.redact(&mut response, NumberMark::Zero);
        assert_eq!(
            response.body,
            "event: a\ndata: {\"k\":\"[redacted]\",\"n\":0}\n\ndata: \"plain [redacted]\"\n\n"
        );
    }
}
