//! Signatures of requests. Nothing outside of this folder depends on their kind but the settings of
//! each.
//!
//! # Adding a signature of requests
//!
//! - A `SignatureKind` in `proxy/auth/signatures/mod.rs`, beside `SIGV4`; `of_scheme` there returns
//!   it if documents can ask for it.
//! - A file or a folder beside that file, with a `Signature`, which holds what the operator sets,
//!   and a `RequestSigner`, which signs.
//! - Its key: a field of `SchemeSettings` in `config/auth/settings.rs`, which `signature` and
//!   `check_schemes` there read.
//! - The settings below that key, in `config/auth/signature.rs`, and in `form_in_signatures` there
//!   the forms of their values.

pub(crate) mod aws;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderName};
use url::Url;

use crate::outbound::Clients;
use crate::proxy::error::CallError;
use crate::proxy::redact::Redactor;
use crate::proxy::request::Request;
use crate::proxy::response::Reply;
use crate::spec::{Location, SecurityScheme};
use crate::text;

/// A kind of signatures.
#[derive(Debug)]
pub struct SignatureKind {
    /// Its key below that of a scheme in the configuration file.
    pub(crate) key: &'static str,
    /// Its name, for messages.
    pub(crate) name: &'static str,
    /// The headers that it sets, that of the signature first.
    pub(crate) headers: &'static [HeaderName],
    /// The names by which a query may carry it.
    parameters: &'static [&'static str],
}

static SIGV4_HEADERS: [HeaderName; 4] = [
    AUTHORIZATION,
    HeaderName::from_static("x-amz-date"),
    HeaderName::from_static("x-amz-security-token"),
    HeaderName::from_static("x-amz-content-sha256"),
];

/// Signatures for AWS.
pub(crate) static SIGV4: SignatureKind = SignatureKind {
    key: "sigv4",
    name: "AWS Signature Version 4",
    headers: &SIGV4_HEADERS,
    parameters: &[
        "x-amz-algorithm",
        "x-amz-credential",
        "x-amz-date",
        "x-amz-expires",
        "x-amz-security-token",
        "x-amz-signature",
        "x-amz-signedheaders",
    ],
};

impl SignatureKind {
    /// Returns the kind that a security scheme of a document asks for.
    pub(crate) fn of_scheme(scheme: &SecurityScheme) -> Option<&'static Self> {
        matches!(scheme, SecurityScheme::AwsSignature).then_some(&SIGV4)
    }

    /// Returns true if a signature sets the header or the query parameter of that name.
    pub(crate) fn sets(&self, location: Location, name: &str) -> bool {
        let is_same = |known: &str| name.eq_ignore_ascii_case(known);
        let is_known = || {
            self.parameters.iter().any(|known| is_same(known))
                || self.headers.iter().any(|known| is_same(known.as_str()))
        };
        matches!(location, Location::Header | Location::Query) && is_known()
    }
}

/// The operator's settings for the signatures of a security scheme.
pub trait Signature: Debug + Send + Sync {
    /// Returns the kind.
    fn kind(&self) -> &'static SignatureKind;

    /// Returns the secrets that never change.
    fn secrets(&self) -> Vec<&str>;

    /// Returns true if something is requested over TLS to sign.
    fn wants_tls(&self) -> bool;

    /// Returns the end of a sentence if it cannot be what a security scheme of a document asks for.
    fn misfit(&self, scheme: &SecurityScheme) -> Option<&'static str>;

    /// Returns the end of a sentence if it lacks something to sign requests to `base`.
    fn lacks(&self, base: Option<&Url>) -> Option<String>;

    /// Makes the signer of requests to `base`; without one, nothing is sent.
    ///
    /// # Errors
    /// The end of a sentence if requests cannot be signed.
    fn signer(
        &self,
        scheme: &str,
        base: Option<&Url>,
        clients: &Clients,
    ) -> Result<Arc<dyn RequestSigner>, String>;
}

/// Signs the requests of a security scheme.
pub trait RequestSigner: Debug + Send + Sync {
    /// Returns the kind of its signatures.
    fn kind(&self) -> &'static SignatureKind;

    /// Sets the headers of a signature of the request as it is now, body included: nothing of what
    /// is signed may change after that. Returns what redacts the signature and its keys.
    ///
    /// # Errors
    /// [`CallError::Credential`] if there are no keys; [`CallError::InvalidRequest`] if the request
    /// cannot be signed.
    fn sign<'r>(
        &'r self,
        request: &'r mut Request,
    ) -> BoxFuture<'r, Result<Arc<Redactor>, CallError>>;

    /// Returns a sentence about the probable cause if the API refuses a request.
    fn describe_refusal(&self, response: &Reply) -> Option<String>;
}

/// Signatures by the name of the security scheme.
pub(crate) type Signatures = BTreeMap<String, Arc<dyn Signature>>;

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
        let (shown, key) = (text::one_line(name), signature.kind().key);
        let mut say = |problem: &str| wrong.push(format!("`auth.{shown}.{key}`: {problem}"));
        match schemes.get(name) {
            None => say("the document has no security scheme of this name"),
            Some(scheme) => signature.misfit(scheme).into_iter().for_each(&mut say),
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
    let kinds: BTreeMap<&str, &SignatureKind> = signatures
        .values()
        .map(|own| (own.kind().key, own.kind()))
        .collect();
    let set = kinds
        .into_iter()
        .flat_map(|(key, kind)| kind.headers.iter().map(move |name| (key, name)));
    let twice = set.filter(|(_, name)| headers.contains_key(*name));
    twice
        .map(|(key, name)| {
            format!("the header `{name}` is set by the settings and by the signature of `{key}`; remove it from the settings")
        })
        .collect()
}
