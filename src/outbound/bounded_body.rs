//! Bodies of replies that are read up to a number of bytes.

/// Reason for which a body was not read to its end.
pub(crate) enum BodyError {
    /// The body is longer than the limit.
    TooLarge,
    /// The connection failed.
    Broken(reqwest::Error),
}

/// Reads the body of a response, of at most `max_bytes` once it is decoded.
///
/// # Errors
/// [`BodyError`], as soon as it is certain.
pub(crate) async fn read_bounded(
    mut response: reqwest::Response,
    max_bytes: usize,
) -> Result<Vec<u8>, BodyError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(BodyError::Broken)? {
        if bytes.len() + chunk.len() > max_bytes {
            return Err(BodyError::TooLarge);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}
