//! Kinds of signatures, as far as others must know them.

use http::header::HeaderName;
use http::{HeaderMap, StatusCode};

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
    pub(crate) parameters: &'static [&'static str],
    /// The end of a sentence if it cannot be what a security scheme of a document asks for.
    pub(crate) misfit: fn(&SecurityScheme) -> Option<&'static str>,
    /// A sentence about the probable cause if the API refuses a signature.
    pub(crate) describe_refusal: fn(StatusCode, &HeaderMap) -> Option<String>,
}

impl SignatureKind {
    /// Returns true if a signature sets the header or the query parameter of that name.
    pub(crate) fn sets(&self, location: Location, name: &str) -> bool {
        let headers = self.headers.iter().map(HeaderName::as_str);
        let mut known = headers.chain(self.parameters.iter().copied());
        matches!(location, Location::Header | Location::Query)
            && known.any(|known| name.eq_ignore_ascii_case(known))
    }
}
