//! Bodies of the coding `x-gzip`, which is another name of `gzip` (RFC 9110 section 8.4.1.3) that the HTTP client does not know.

use std::io::Read as _;

use flate2::read::MultiGzDecoder;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};

use super::Response;
use crate::proxy::CallError;

/// Decompresses a body that is coded as `x-gzip` and nothing else, to at most `max_bytes`.
///
/// # Errors
/// [`CallError::Network`] where the body is damaged, and [`CallError::TooLarge`] where it is larger.
pub(crate) fn decompress_x_gzip(response: &mut Response, max_bytes: usize) -> Result<(), CallError> {
    let coding = response.headers.get(CONTENT_ENCODING).and_then(|value| value.to_str().ok());
    if !coding.is_some_and(|coding| coding.trim().eq_ignore_ascii_case("x-gzip")) || response.body.is_empty() {
        return Ok(());
    }
    let limit = u64::try_from(max_bytes).unwrap_or(u64::MAX);
    let mut body = Vec::new();
    MultiGzDecoder::new(response.body.as_ref())
        .take(limit.saturating_add(1))
        .read_to_end(&mut body)
        .map_err(|error| CallError::Network {
            sentence: "the reply of the API cannot be decompressed",
            cause: error.to_string(),
        })?;
    if body.len() > max_bytes {
        return Err(CallError::TooLarge { limit: max_bytes });
    }
    response.body = body.into();
    response.headers.remove(CONTENT_ENCODING);
    response.headers.remove(CONTENT_LENGTH);
    Ok(())
}
