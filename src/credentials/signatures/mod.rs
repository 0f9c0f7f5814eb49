//! Signatures of requests. Outside of this folder, `authenticator.rs`, `scheme.rs` and `resolve.rs`
//! name the one kind that there is.
//!
//! # Adding a signature of requests
//!
//! - Its key, its name, and the headers and parameters that it sets, in
//!   `credentials/signatures/kind.rs` beside those of `SIGV4`.
//! - A file or a folder beside `credentials/signatures/aws/mod.rs`. `AwsSignature` holds what the
//!   operator sets, and `AwsSigner` signs: the second kind makes both an enum.
//! - A signed request has no other credential (`wrong_signatures` in this file). A signature beside
//!   a token changes `Authenticator` in `credentials/authenticator.rs`.
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
use self::kind::{SIGV4, SIGV4_HEADERS};
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
        let shown = text::one_line(name);
        let mut say = |problem: &str| wrong.push(format!("`auth.{shown}.{SIGV4}`: {problem}"));
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
    let twice = SIGV4_HEADERS
        .iter()
        .filter(|name| !signatures.is_empty() && headers.contains_key(*name));
    twice
        .map(|name| {
            format!("the header `{name}` is set by the settings and by the signature of `{SIGV4}`; remove it from the settings")
        })
        .collect()
}
