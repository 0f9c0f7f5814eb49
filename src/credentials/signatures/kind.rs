//! Kinds of signatures, as far as others must know them.

use http::header::{AUTHORIZATION, HeaderName};

use crate::spec::Location;

/// The key of signatures for AWS below that of a scheme in the configuration file.
pub(crate) const SIGV4: &str = "sigv4";
/// Their name, for messages.
pub(crate) const SIGV4_NAME: &str = "AWS Signature Version 4";

/// The headers that they set, that of the signature first.
pub(crate) static SIGV4_HEADERS: [HeaderName; 4] = [
    AUTHORIZATION,
    HeaderName::from_static("x-amz-date"),
    HeaderName::from_static("x-amz-security-token"),
    HeaderName::from_static("x-amz-content-sha256"),
];

/// The names by which a query may carry them.
const SIGV4_PARAMETERS: [&str; 7] = [
    "x-amz-algorithm",
    "x-amz-credential",
    "x-amz-date",
    "x-amz-expires",
    "x-amz-security-token",
    "x-amz-signature",
    "x-amz-signedheaders",
];

/// Returns true if a signature sets the header or the query parameter of that name.
pub(crate) fn sigv4_sets(location: Location, name: &str) -> bool {
    let headers = SIGV4_HEADERS.iter().map(HeaderName::as_str);
    let mut known = headers.chain(SIGV4_PARAMETERS);
    matches!(location, Location::Header | Location::Query)
        && known.any(|known| name.eq_ignore_ascii_case(known))
}
