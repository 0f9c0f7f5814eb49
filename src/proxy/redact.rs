//! Takes the operator's secrets out of replies that echo them, before anybody reads those.

use std::collections::BTreeSet;

use http::header::{HeaderMap, HeaderValue};
use memchr::memmem::Finder;
use secrecy::ExposeSecret as _;

use super::client::Response;
use super::credential::Credentials;
use super::style::{self, Keep};

const MARK: &[u8] = b"[redacted]";
/// Shorter words of a header are words, not secrets.
const SHORTEST_WORD: usize = 8;
/// A whole value that was given as a secret is one, unless it is so short that it stands everywhere.
const SHORTEST_VALUE: usize = 6;
/// Digits alone are the identifiers of replies as well, and there they must not be torn apart.
const SHORTEST_NUMBER: usize = 12;

/// Knows what must not come back.
#[derive(Debug, Default)]
pub struct Redactor {
    finders: Vec<Finder<'static>>,
}

impl Redactor {
    /// For the operator's headers and credentials.
    #[must_use]
    pub fn new(headers: &HeaderMap, credentials: &Credentials) -> Self {
        let mut secrets = BTreeSet::new();
        for value in headers.values() {
            let words = value.as_bytes().split(u8::is_ascii_whitespace);
            words
                .filter(|word| word.len() >= SHORTEST_WORD)
                .for_each(|word| add(&mut secrets, word));
        }
        for secret in credentials.secrets() {
            let secret = secret.expose_secret();
            if is_telling(secret) {
                add(&mut secrets, secret.as_bytes());
            }
        }
        for part in credentials.pairs().iter().filter(|part| is_telling(part)) {
            add(&mut secrets, part.as_bytes());
        }
        Self::of(secrets)
    }

    /// For single secrets, such as a token that was fetched.
    pub fn for_values<'v>(values: impl Iterator<Item = &'v [u8]>) -> Self {
        let mut secrets = BTreeSet::new();
        values
            .filter(|value| value.len() >= SHORTEST_WORD)
            .for_each(|value| add(&mut secrets, value));
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
    pub fn redact(&self, response: &mut Response) {
        for finder in &self.finders {
            if let Some(body) = without(finder, &response.body) {
                response.body = body.into();
            }
            for value in response.headers.values_mut() {
                if let Some(clean) = without(finder, value.as_bytes())
                    && let Ok(clean) = HeaderValue::from_bytes(&clean)
                {
                    *value = clean;
                }
            }
        }
    }
}

fn is_telling(secret: &str) -> bool {
    let least = if secret.bytes().all(|byte| byte.is_ascii_digit()) {
        SHORTEST_NUMBER
    } else {
        SHORTEST_VALUE
    };
    secret.len() >= least
}

/// A secret as it is, and as it looks in a URL and in JSON.
fn add(secrets: &mut BTreeSet<Vec<u8>>, secret: &[u8]) {
    if let Ok(text) = std::str::from_utf8(secret) {
        secrets.insert(style::encode(text, Keep::Unreserved).into_bytes());
        let json = serde_json::Value::from(text).to_string();
        let inner = json.trim_start_matches('"').trim_end_matches('"');
        secrets.insert(inner.as_bytes().to_vec());
        secrets.insert(inner.replace('/', "\\/").into_bytes());
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
            Redactor::new(&HeaderMap::new(), &given(value)).redact(&mut response);
            String::from_utf8(response.body.to_vec()).unwrap()
        };
        for (value, body, expected) in [
            ("k/e+y\"1", r#"k/e+y"1 k\/e+y\"1 k%2Fe%2By%221"#, "[redacted] [redacted] [redacted]"),
            ("ann:pass-word", "YW5uOnBhc3Mtd29yZA== pass-word ann", "[redacted] [redacted] ann"),
            ("abcde", "abcde", "abcde"),
            ("12345678", r#"{"id":12345678}"#, r#"{"id":12345678}"#),
            ("123456789012", "123456789012", "[redacted]"),
        ] {
            assert_eq!(said(value, body), expected, "{value}");
        }
    }
}
