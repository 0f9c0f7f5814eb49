//! Signatures of requests. Outside of this folder, nothing but the settings names a kind of them.
//!
//! # Adding a signature of requests
//!
//! - A file or a folder beside `credentials/signatures/aws/mod.rs`, with its `SignatureKind`, with
//!   what the operator sets, as `AwsSignature`, and with what signs, as `AwsSigner`. The second kind
//!   makes `Signature` and `Signer`, in this file, enums with the methods of these.
//! - A signed request has no other credential (`wrong_signatures` in this file). A signature beside a
//!   token changes `Authenticator` in `credentials/authenticator.rs`.
//! - Its key: a field of `SchemeSettings` in `config/auth/settings.rs`, which `signature` there
//!   reads. The settings below that key are in a file beside.

pub(crate) mod aws;
pub(crate) mod kind;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use http::HeaderMap;
use url::Url;

use self::aws::{AwsSignature, AwsSigner, SIGV4};
use self::kind::SignatureKind;
use crate::spec::SecurityScheme;
use crate::text;

/// What the operator sets for signatures.
pub(crate) type Signature = AwsSignature;
/// What signs requests.
pub(crate) type Signer = AwsSigner;
/// Signatures by the name of the security scheme.
pub(crate) type Signatures = BTreeMap<String, Arc<Signature>>;

/// The kind that a security scheme of a document asks for.
pub(crate) fn kind_of(scheme: &SecurityScheme) -> Option<&'static SignatureKind> {
    matches!(scheme, SecurityScheme::AwsSignature).then_some(&SIGV4)
}

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
        let (shown, kind) = (text::one_line(name), signature.kind());
        let mut say = |problem: &str| wrong.push(format!("`auth.{shown}.{}`: {problem}", kind.key));
        match schemes.get(name) {
            None => say("the document has no security scheme of this name"),
            Some(scheme) => (kind.misfit)(scheme).into_iter().for_each(&mut say),
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
    let kinds = signatures.values().map(|signature| signature.kind());
    let twice = kinds.flat_map(|kind| {
        let own = kind.headers.iter().filter(|name| headers.contains_key(*name));
        own.map(|name| {
            format!("the header `{name}` is set by the settings and by the signature of `{}`; remove it from the settings", kind.key)
        })
    });
    // Several schemes may have one kind.
    let twice: BTreeSet<String> = twice.collect();
    twice.into_iter().collect()
}
