//! Requests of this server's own, which belong to no call: for tokens, metadata and keys. Bodies of
//! replies are read up to a number of bytes.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use thiserror::Error;
use url::Url;

use super::HttpClient;
use crate::text;

/// A request for JSON, or for what `headers` accepts instead.
pub(crate) struct Fetch {
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    /// Form that a POST sends (`application/x-www-form-urlencoded`); `None` for a GET.
    pub(crate) form: Option<String>,
    /// The largest body of the reply, after decompression.
    pub(crate) max_bytes: usize,
    /// Time from connecting to the last byte of the reply.
    pub(crate) timeout: Duration,
}

/// A complete reply, of any status.
pub(crate) struct Fetched {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Reason for which no complete reply came.
#[derive(Debug, Error)]
pub(crate) enum FetchError {
    /// The connection failed, with the causes.
    #[error("{0}")]
    Failed(String),
    #[error("the answer has more than {0} bytes")]
    TooLarge(usize),
    #[error("no answer within {} s", .0.as_secs())]
    Timeout(Duration),
}

impl Fetch {
    pub(crate) fn get(url: Url, max_bytes: usize, timeout: Duration) -> Self {
        Self {
            url,
            headers: HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]),
            form: None,
            max_bytes,
            timeout,
        }
    }

    pub(crate) fn post(url: Url, form: String, max_bytes: usize, timeout: Duration) -> Self {
        Self {
            form: Some(form),
            ..Self::get(url, max_bytes, timeout)
        }
    }

    /// Sends the request and reads the whole reply. No redirect is followed.
    ///
    /// # Errors
    /// [`FetchError`]
    pub(crate) async fn send(self, client: &HttpClient) -> Result<Fetched, FetchError> {
        let method = if self.form.is_some() {
            Method::POST
        } else {
            Method::GET
        };
        let mut request = reqwest::Request::new(method, self.url);
        *request.headers_mut() = self.headers;
        if let Some(form) = self.form {
            const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");
            request.headers_mut().insert(CONTENT_TYPE, FORM);
            *request.body_mut() = Some(form.into());
        }
        let exchange = async {
            let reply = client.send(request).await;
            let mut reply = reply
                .map_err(|failure| FetchError::Failed(text::error_in_a_line(&failure.cause)))?;
            let (status, headers) = (reply.status(), std::mem::take(reply.headers_mut()));
            let body = read_bounded(reply, self.max_bytes).await;
            let body = body.map_err(|error| match error {
                BodyError::TooLarge => FetchError::TooLarge(self.max_bytes),
                BodyError::Broken(error) => {
                    FetchError::Failed(text::error_in_a_line(&error.without_url()))
                }
            })?;
            Ok(Fetched {
                status,
                headers,
                body: body.into(),
            })
        };
        tokio::time::timeout(self.timeout, exchange)
            .await
            .unwrap_or(Err(FetchError::Timeout(self.timeout)))
    }
}

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
async fn read_bounded(
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
