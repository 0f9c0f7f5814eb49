//! Client headers that are forwarded to the API: those that the operator lists, under the names
//! that the operator gives.

use http::header::{HeaderMap, HeaderName};

use crate::outbound::request::is_of_connection;
use crate::redact::{Redactor, carries_credential, secrets_of_header};

/// The headers that are forwarded; by default none.
#[derive(Debug, Clone, Default)]
pub struct Forwarding {
    /// The client's name for each, and the API's.
    pub headers: Vec<(HeaderName, HeaderName)>,
}

impl Forwarding {
    /// Returns true if the API gets a header of that name from the client.
    #[must_use]
    pub fn sets(&self, name: &str) -> bool {
        self.headers
            .iter()
            .any(|(_, theirs)| theirs.as_str().eq_ignore_ascii_case(name))
    }

    /// The client's name for a header that the API gets from it.
    #[must_use]
    pub fn source(&self, name: &HeaderName) -> Option<&HeaderName> {
        self.headers
            .iter()
            .find(|(_, theirs)| theirs == name)
            .map(|(ours, _)| ours)
    }

    /// Selects the headers of a client that are forwarded.
    #[must_use]
    pub fn pick(&self, client: &HeaderMap) -> HeaderMap {
        let mut picked = HeaderMap::new();
        for (ours, theirs) in self
            .headers
            .iter()
            .filter(|(ours, _)| !is_of_connection(client, ours))
        {
            for value in client.get_all(ours) {
                let mut value = value.clone();
                value.set_sensitive(true);
                picked.append(theirs.clone(), value);
            }
        }
        picked
    }
}

/// Redacts the credentials among forwarded headers in replies: headers whose names say that they
/// carry one, and headers that a security scheme requires.
pub(crate) fn redactor(picked: &HeaderMap, credentials: &[(HeaderName, HeaderName)]) -> Redactor {
    let is_credential = |name: &HeaderName| {
        carries_credential(name) || credentials.iter().any(|(_, theirs)| theirs == name)
    };
    let secrets: Vec<Vec<u8>> = picked
        .iter()
        .filter(|(name, _)| is_credential(name))
        .flat_map(|(name, value)| secrets_of_header(name, value))
        .collect();
    Redactor::for_values(secrets)
}
