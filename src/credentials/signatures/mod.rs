//! Signatures of requests. Outside of this folder, `authenticator.rs`, `scheme.rs` and `resolve.rs`
//! name the one kind that there is.
//!
//! # Adding a signature of requests
//!
//! - A `SignatureKind` in `credentials/signatures/kind.rs`, beside `SIGV4`; `of_scheme` there returns
//!   it if documents can ask for it.
//! - A file or a folder beside `credentials/signatures/aws/mod.rs`. `AwsSignature` holds what the
//!   operator sets, and `AwsSigner` signs: the second kind makes both an enum.
//! - A signed request has no other credential (`wrong_signatures` in `credentials/resolve.rs`). A
//!   signature beside a token changes `Authenticator` in `credentials/authenticator.rs`.
//! - Its key: a field of `SchemeSettings` in `config/auth/settings.rs`, which `signature` there
//!   reads.
//! - The settings below that key, in `config/auth/signature.rs`.

pub(crate) mod aws;
pub(crate) mod kind;

use std::collections::BTreeMap;
use std::sync::Arc;

use http::HeaderMap;
use url::Url;

use self::aws::AwsSignature;
use self::kind::SIGV4;
use crate::spec::SecurityScheme;
use crate::text;

/// Signatures by the name of the security scheme.
pub(crate) type Signatures = BTreeMap<String, Arc<AwsSignature>>;

/// A sentence for each signature that cannot take effect with a document: no other credential must
/// take its place, which `has_other` reports for a scheme. `base` is where calls go if all go to
/// one place, and `is_sent` is false if there are none.
pub(crate) fn wrong_signatures(
    signatures: &Signatures,
    has_other: impl Fn(&str) -> bool,
    schemes: &BTreeMap<String, SecurityScheme>,
    base: Option<&Url>,
    is_sent: bool,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, signature) in signatures {
        let (shown, key) = (text::one_line(name), SIGV4.key);
        let mut say = |problem: &str| wrong.push(format!("`auth.{shown}.{key}`: {problem}"));
        match schemes.get(name) {
            None => say("the document has no security scheme of this name"),
            Some(scheme) => AwsSignature::misfit(scheme).into_iter().for_each(&mut say),
        }
        if has_other(name) {
            say("another credential is set for this scheme; a signed request has no other");
        }
        if is_sent && let Some(problem) = signature.lacks(base) {
            say(&problem);
        }
    }
    wrong
}

/// A sentence for each of these headers that a signature sets as well.
pub(crate) fn headers_set_twice(signatures: &Signatures, headers: &HeaderMap) -> Vec<String> {
    if signatures.is_empty() {
        return Vec::new();
    }
    let twice = SIGV4
        .headers
        .iter()
        .filter(|name| headers.contains_key(*name));
    twice
        .map(|name| {
            format!("the header `{name}` is set by the settings and by the signature of `{}`; remove it from the settings", SIGV4.key)
        })
        .collect()
}
