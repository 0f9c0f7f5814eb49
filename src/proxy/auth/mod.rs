//! Outbound authentication: which of the operator's credentials each operation carries, and how they get into a request.

pub(crate) mod access_token;
pub(crate) mod authenticator;
pub(crate) mod digest;
pub(crate) mod forward;
pub(crate) mod grant;
pub(crate) mod refused_tokens;
pub(crate) mod resolve;
pub(crate) mod scheme;
pub(crate) mod stored_token;
pub(crate) mod token_keeper;
mod token_reply;
pub(crate) mod token_source;
pub(crate) mod token_store;
mod unsaved_tokens;
pub(crate) mod values;

use http::header::HeaderValue;

/// A header value that is not shown.
pub(crate) fn sensitive_header(bytes: &[u8]) -> Result<HeaderValue, http::header::InvalidHeaderValue> {
    let mut value = HeaderValue::from_bytes(bytes)?;
    value.set_sensitive(true);
    Ok(value)
}
