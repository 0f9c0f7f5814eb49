//! The parts of a credential that are sent as they are.

use http::header::{HeaderMap, HeaderValue};

use crate::spec::Location;

/// The operator's additions to a request, which are always sent as they are; no argument can
/// replace them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Injected {
    /// Headers.
    pub headers: HeaderMap,
    /// Query pairs, encoded.
    pub query: Vec<(String, String)>,
    /// Cookie pairs, encoded.
    pub cookies: Vec<String>,
}

impl Injected {
    /// The same to be shown: with `***` for headers that are marked as sensitive, and for all keys
    /// and cookies.
    pub(crate) fn masked(&self) -> Self {
        const MASK: HeaderValue = HeaderValue::from_static("***");
        let masked = |pair: &String| format!("{}=***", pair.split('=').next().unwrap_or_default());
        Self {
            headers: self
                .headers
                .iter()
                .map(|(name, value)| {
                    (
                        name.clone(),
                        if value.is_sensitive() {
                            MASK
                        } else {
                            value.clone()
                        },
                    )
                })
                .collect(),
            query: self
                .query
                .iter()
                .map(|(name, _)| (name.clone(), "***".to_owned()))
                .collect(),
            cookies: self.cookies.iter().map(masked).collect(),
        }
    }

    /// Returns true if it sets the query key or the cookie of that name.
    pub(crate) fn claims(&self, location: Location, name: &str) -> bool {
        match location {
            Location::Query | Location::QueryString => {
                self.query.iter().any(|(key, _)| same_key(key, name))
            }
            Location::Cookie => self
                .cookies
                .iter()
                .any(|pair| pair.split_once('=').is_some_and(|(key, _)| key == name)),
            _ => false,
        }
    }
}

/// Returns true if an encoded key is `name`.
pub(crate) fn same_key(encoded: &str, name: &str) -> bool {
    encoded == name || percent_encoding::percent_decode_str(encoded).eq(name.bytes())
}
