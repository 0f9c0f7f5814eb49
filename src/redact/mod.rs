//! Redacts secrets in replies that echo them: of the operator, of the client of a call, and of
//! token endpoints.
//!
//! Only secrets are redacted: credentials, headers whose values were given as secrets, and headers
//! whose names say that they carry credentials. The framing of a reply stays as it is, and JSON
//! stays valid JSON of the same structure.
//!
//! # Changing what is redacted
//!
//! - The values: `secret_headers` in `proxy/binding.rs`, where `finish` collects them; `secrets` in
//!   `credentials/values.rs`; headers by their names, `ENDINGS` in `redact/names.rs`.
//! - The forms in which a value is recognized: `SecretForms` in `redact/secrets.rs`.
//! - The parts of a reply: `redact` in `results/redaction.rs`.
//! - The promise in SECURITY.md.

pub(crate) mod escapes;
pub(crate) mod json;
pub(crate) mod names;
pub(crate) mod secrets;
pub(crate) mod stream;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use self::json::{NumberMark, is_json, redact_json, redact_value};
use self::secrets::{SecretForms, Secrets, TextPlace};
use crate::json::JsonObject;
use crate::spec::mask::Mask;

/// The minimum length of a word of a header's value that counts as a secret.
const MIN_WORD_LEN: usize = 8;

/// Redacts a set of secrets.
#[derive(Debug, Default)]
pub(crate) struct Redactor {
    pub(super) secrets: Secrets,
    /// The tokens it was made of, if another replica has to make the same.
    tokens: Vec<SecretString>,
}

impl Redactor {
    /// Makes a redactor for secret headers, and for other secrets in each form in which they are
    /// sent.
    pub(crate) fn new(headers: &HeaderMap, secrets: &[Vec<u8>]) -> Self {
        let mut forms = SecretForms::default();
        for (name, value) in headers {
            words_of_secret_header(name, value)
                .iter()
                .for_each(|secret| forms.add(secret));
        }
        secrets.iter().for_each(|secret| forms.add(secret));
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

    /// Makes a redactor for the values of masks.
    pub(crate) fn for_masks(masks: &[Mask]) -> Self {
        Self {
            secrets: masks.into(),
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
        other
            .tokens()
            .all(|token| self.tokens().any(|own| own == token))
    }

    /// Redacts a text, JSON or any other; `None` if it contains no secret.
    pub(super) fn clean(&self, text: &[u8], numbers: NumberMark) -> Option<Vec<u8>> {
        if !self.secrets.may_be_in(text) {
            return None;
        }
        if is_json(text) {
            return redact_json(&self.secrets, text, numbers);
        }
        self.secrets.clean(text, TextPlace::Text)
    }

    /// Returns true if arguments hold a secret.
    pub(crate) fn is_in(&self, arguments: &JsonObject) -> bool {
        redact_value(
            &self.secrets,
            &mut Value::Object(arguments.clone()),
            NumberMark::Text,
        )
    }

    /// Redacts a log line.
    pub(crate) fn redact_line(&self, line: &mut String) {
        self.redact_text(line, NumberMark::Text);
    }

    /// Returns true if a name holds a secret, also if only the characters that are kept form it.
    pub(super) fn finds_in_name(&self, name: &str, is_kept: fn(char) -> bool) -> bool {
        self.secrets.are_in_name(name, is_kept)
    }

    pub(super) fn redact_text(&self, text: &mut String, numbers: NumberMark) {
        if let Some(clean) = self.clean(text.as_bytes(), numbers) {
            *text = String::from_utf8_lossy(&clean).into_owned();
        }
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
