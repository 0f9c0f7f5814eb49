//! Takes the operator's secrets out of replies that echo them, before anybody reads those.

pub(crate) mod escapes;

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, HeaderValue};
use memchr::memmem::Finder;
use rmcp::model::{CallToolResult, ContentBlock};
use secrecy::ExposeSecret as _;
use serde_json::Value;

use self::escapes::{Layer, unescape};
use super::auth::values::Credentials;
use super::request::style::{self, Keep};
use crate::proxy::response::Response;
use crate::proxy::response::{Kind, content_type, decode_text, reply_kind};
use crate::spec::media_type;

const MARK: &[u8] = b"[redacted]";
/// Shorter words of a header are words, not secrets.
const MIN_WORD_LEN: usize = 8;
/// A whole value that was given as a secret is one, unless it is so short that it stands everywhere.
const MIN_SECRET_LEN: usize = 6;
/// Digits alone are the identifiers of replies as well, and there they must not be torn apart.
const MIN_NUMBER_LEN: usize = 12;
/// An escaped text in an escaped text in one: more is nobody's mistake.
const MAX_ESCAPE_DEPTH: usize = 3;

/// Knows what must not come back.
#[derive(Debug, Default)]
pub(crate) struct Redactor {
    finders: Vec<Finder<'static>>,
}

impl Redactor {
    /// For the operator's headers and credentials, and for what is sent of them in another form.
    #[must_use]
    pub(crate) fn new(headers: &HeaderMap, credentials: &Credentials, sent: &[Vec<u8>]) -> Self {
        let mut secrets = BTreeSet::new();
        let of_headers = headers.iter().flat_map(|(name, value)| secrets_of_header(name, value));
        for secret in of_headers.chain(sent.iter().cloned()).filter(|secret| is_telling(secret)) {
            add_secret(&mut secrets, &secret);
        }
        for value in headers.values() {
            let words = value.as_bytes().split(u8::is_ascii_whitespace);
            words
                .filter(|word| word.len() >= MIN_WORD_LEN)
                .for_each(|word| add_secret(&mut secrets, word));
        }
        for secret in credentials.secrets() {
            let secret = secret.expose_secret();
            if is_telling(secret.as_bytes()) {
                add_secret(&mut secrets, secret.as_bytes());
            }
        }
        for part in credentials.pairs().iter().filter(|part| is_telling(part.as_bytes())) {
            add_secret(&mut secrets, part.as_bytes());
        }
        Self::of(secrets)
    }

    /// For single secrets, such as a token that was fetched.
    pub(crate) fn for_values<'v>(values: impl Iterator<Item = &'v [u8]>) -> Self {
        let mut secrets = BTreeSet::new();
        values
            .filter(|value| is_telling(value))
            .for_each(|value| add_secret(&mut secrets, value));
        Self::of(secrets)
    }

    fn of(secrets: BTreeSet<Vec<u8>>) -> Self {
        // The longest first: a short one may be a part of it.
        let mut secrets: Vec<Vec<u8>> = secrets.into_iter().collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self {
            finders: secrets.iter().map(|secret| Finder::new(secret).into_owned()).collect(),
        }
    }

    /// Takes the secrets out of body and headers.
    pub(crate) fn redact(&self, response: &mut Response) {
        if self.finders.is_empty() {
            return;
        }
        if let Some(body) = self.clean(&response.body) {
            response.body = body.into();
        }
        for value in response.headers.values_mut() {
            if let Some(clean) = self.clean(value.as_bytes())
                && let Ok(clean) = HeaderValue::from_bytes(&clean)
            {
                *value = clean;
            }
        }
        self.redact_charset(response);
    }

    /// Takes the secrets out of everything that a model reads: what was put together of decoded parts.
    pub(crate) fn redact_result(&self, result: &mut CallToolResult) {
        if self.finders.is_empty() {
            return;
        }
        for block in &mut result.content {
            if let ContentBlock::Text(text) = block {
                self.redact_text(&mut text.text);
            }
        }
        if let Some(value) = &mut result.structured_content {
            self.redact_value(value);
        }
    }

    /// A text in a charset that does not hold ASCII as it is: if a secret is in it, it goes on as UTF-8.
    fn redact_charset(&self, response: &mut Response) {
        let named = content_type(&response.headers);
        let guessed = match response.body.get(..2) {
            Some([0, _]) => Some("text/plain; charset=utf-16be"),
            Some([_, 0]) => Some("text/plain; charset=utf-16le"),
            _ => None,
        };
        let is_other = named.to_ascii_lowercase().contains("charset")
            || response.body.starts_with(b"\xff\xfe")
            || response.body.starts_with(b"\xfe\xff");
        if (!is_other && guessed.is_none()) || !matches!(reply_kind(&named, &response.body), Kind::Json | Kind::Text) {
            return;
        }
        for label in [Some(named.as_str()).filter(|_| is_other), guessed].into_iter().flatten() {
            if let Some(clean) = self.clean(decode_text(label, &response.body).as_bytes()) {
                response.body = clean.into();
                let essence = media_type::pieces(&named).next().filter(|essence| !essence.is_empty());
                let utf8 = format!("{}; charset=utf-8", essence.unwrap_or("text/plain"));
                if let Ok(utf8) = HeaderValue::from_str(&utf8) {
                    response.headers.insert(CONTENT_TYPE, utf8);
                }
            }
        }
    }

    fn redact_text(&self, text: &mut String) {
        if let Some(clean) = self.clean(text.as_bytes()) {
            *text = String::from_utf8_lossy(&clean).into_owned();
        }
    }

    fn redact_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.redact_text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_value(item)),
            Value::Object(object) => {
                object.values_mut().for_each(|value| self.redact_value(value));
                if object.keys().any(|key| self.clean(key.as_bytes()).is_some()) {
                    let members = std::mem::take(object).into_iter();
                    *object = members
                        .map(|(mut key, value)| {
                            self.redact_text(&mut key);
                            (key, value)
                        })
                        .collect();
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The text without secrets, plain ones and escaped ones; `None` where it has none.
    fn clean(&self, text: &[u8]) -> Option<Vec<u8>> {
        let mut clean = None;
        for finder in &self.finders {
            if let Some(without) = without(finder, clean.as_deref().unwrap_or(text)) {
                clean = Some(without);
            }
        }
        let escaped = self.without_escaped(clean.as_deref().unwrap_or(text));
        escaped.or(clean)
    }

    fn without_escaped(&self, text: &[u8]) -> Option<Vec<u8>> {
        let mut layers: Vec<Layer> = Vec::new();
        let mut ranges = Vec::new();
        while layers.len() < MAX_ESCAPE_DEPTH
            && let Some(layer) = unescape(layers.last().map_or(text, |layer| &layer.text))
        {
            layers.push(layer);
            let found = self.finders.iter().flat_map(|finder| {
                let text = layers.last().map_or(&[][..], |layer| &layer.text);
                finder.find_iter(text).map(|at| (at, at + finder.needle().len()))
            });
            let source = |at: usize| layers.iter().rev().fold(at, |at, layer| layer.source(at));
            ranges.extend(found.map(|(start, end)| (source(start), source(end))));
        }
        if ranges.is_empty() {
            return None;
        }
        ranges.sort_unstable();
        let mut clean = Vec::with_capacity(text.len());
        let mut from = 0;
        for (start, end) in ranges {
            if start >= from {
                clean.extend_from_slice(text.get(from..start).unwrap_or_default());
                clean.extend_from_slice(MARK);
            }
            from = from.max(end);
        }
        clean.extend_from_slice(text.get(from..).unwrap_or_default());
        Some(clean)
    }
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

fn is_telling(secret: &[u8]) -> bool {
    let least = if secret.iter().all(u8::is_ascii_digit) {
        MIN_NUMBER_LEN
    } else {
        MIN_SECRET_LEN
    };
    secret.len() >= least
}

/// A secret as it is, and as it looks in a URL and in JSON.
fn add_secret(secrets: &mut BTreeSet<Vec<u8>>, secret: &[u8]) {
    if let Ok(text) = std::str::from_utf8(secret) {
        secrets.insert(style::percent_encode(text, Keep::Unreserved).into_bytes());
        let json = serde_json::Value::from(text).to_string();
        let inner = json.trim_start_matches('"').trim_end_matches('"');
        secrets.insert(inner.as_bytes().to_vec());
        secrets.insert(inner.replace('/', "\\/").into_bytes());
    }
    // Where a secret looks escaped itself, taking escapes off a reply takes them off the secret as well.
    if let Some(layer) = unescape(secret).filter(|layer| layer.text.len() >= MIN_SECRET_LEN) {
        secrets.insert(layer.text);
    }
    // What reads headers as Latin-1, as RFC 9110 section 5.5 once had it, writes other characters twice.
    if !secret.is_ascii() {
        secrets.insert(secret.iter().map(|byte| char::from(*byte)).collect::<String>().into_bytes());
    }
    secrets.insert(secret.to_vec());
}

fn without(finder: &Finder<'_>, text: &[u8]) -> Option<Vec<u8>> {
    let mut found = finder.find_iter(text).peekable();
    found.peek()?;
    let mut clean = Vec::with_capacity(text.len());
    let mut from = 0;
    for at in found {
        clean.extend_from_slice(text.get(from..at).unwrap_or_default());
        clean.extend_from_slice(MARK);
        from = at + finder.needle().len();
    }
    clean.extend_from_slice(text.get(from..).unwrap_or_default());
    Some(clean)
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
            Redactor::new(&HeaderMap::new(), &given(value), &[]).redact(&mut response);
            String::from_utf8(response.body.to_vec()).unwrap()
        };
        for (value, body, expected) in [
            ("k/e+y\"1", r#"k/e+y"1 k\/e+y\"1 k%2Fe%2By%221"#, "[redacted] [redacted] [redacted]"),
            ("ann:pass-word", "YW5uOnBhc3Mtd29yZA== pass-word ann", "[redacted] [redacted] ann"),
            ("abcde", "abcde", "abcde"),
            ("12345678", r#"{"id":12345678}"#, r#"{"id":12345678}"#),
            ("123456789012", "123456789012", "[redacted]"),
            (
                "QWxh+ZGRpb/jp==",
                r#"{"a":"x\u0051Wxh\u002bZGRpb\u002Fjp\u003d\u003d","b":"\n1"}"#,
                r#"{"a":"x[redacted]","b":"\n1"}"#,
            ),
            ("QWxh+ZGRpb/jp==", "<p>QWxh&#43;ZGRpb&#x2F;jp&equals;=&amp;", "<p>[redacted]&amp;"),
            ("QWxh+ZGRpb/jp==", "QWxh%2bZGRpb%2fjp=%3d%", "[redacted]%"),
            (
                "QWxh+ZGRpb/jp==",
                r"QWxh\\u002bZGRpb\\/jp== QWxh\u0026#43;ZGRpb/jp==",
                "[redacted] [redacted]",
            ),
            ("a%41+b/c", r"a%41\u002bb/c", "[redacted]"),
        ] {
            assert_eq!(said(value, body), expected, "{value}");
        }
    }
}
