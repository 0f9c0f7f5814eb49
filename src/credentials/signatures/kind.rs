//! Kinds of signatures, as far as others must know them.

use http::header::{AUTHORIZATION, HeaderName};

use crate::spec::{Location, SecurityScheme};

/// A kind of signatures.
pub(crate) struct SignatureKind {
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
