//! Outbound authentication: selects the operator's credentials for each operation, and adds them to
//! requests.
//!
//! # Adding a security scheme
//!
//! - A variant of `SecurityScheme` in `spec/operation/security_scheme.rs`, which
//!   `read_security_scheme` in `spec/operation/security.rs` returns.
//! - `SchemeResolver` in `credentials/scheme.rs` returns what the scheme adds to a request, as an
//!   `Applied`. An HTTP scheme of the form `Name value` needs no code; any other HTTP scheme is a
//!   case of `authorization` there.
//! - `uses` in `credentials/values.rs` lists the parts of a credential that the operator gives for
//!   the scheme.
//! - If the headers change from request to request, a variant of `Authenticator` in
//!   `credentials/authenticator.rs`, which gets the whole request.

pub(crate) mod authenticator;
pub(crate) mod credential_part;
pub(crate) mod forward;
pub(crate) mod login;
pub(crate) mod resolve;
pub(crate) mod scheme;
pub(crate) mod signatures;
pub(crate) mod tokens;
pub(crate) mod values;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use http::header::HeaderValue;

/// Work of a task of its own, for whose outcome many wait: one of them that leaves does not end it.
pub(crate) type Flight<T> = Shared<BoxFuture<'static, T>>;

/// Begins the work; `lost` is its outcome if it ends in a panic.
pub(crate) fn begin_flight<T: Clone + Send + Sync + 'static>(
    work: impl Future<Output = T> + Send + 'static,
    lost: impl FnOnce() -> T + Send + 'static,
) -> Flight<T> {
    let task = tokio::spawn(work);
    async { task.await.unwrap_or_else(|_| lost()) }
        .boxed()
        .shared()
}

/// A header value that is not shown.
fn sensitive_header(bytes: &[u8]) -> Result<HeaderValue, http::header::InvalidHeaderValue> {
    let mut value = HeaderValue::from_bytes(bytes)?;
    value.set_sensitive(true);
    Ok(value)
}
