//! Headers of one connection, which are not passed on (RFC 9110 section 7.6.1).

use http::header::{CONNECTION, HeaderMap, HeaderName};

/// Returns true if `Connection` names this header: it then belongs to the connection that the
/// headers came by.
pub(crate) fn is_of_connection(headers: &HeaderMap, name: &HeaderName) -> bool {
    let values = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .any(|option| option.trim().eq_ignore_ascii_case(name.as_str()))
}
