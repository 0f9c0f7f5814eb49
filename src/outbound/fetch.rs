//! Requests of this server's own, which belong to no call: for tokens, metadata and keys. Bodies of
//! replies are read up to a number of bytes.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use url::Url;

use super::{HttpClient, HttpError};
use crate::text;

/// A request for JSON, or for what `headers` accepts instead.
pub(crate) struct Fetch {
    url: Url,
    pub(crate) headers: HeaderMap,
    /// Form that a POST sends (`application/x-www-form-urlencoded`); `None` for a GET.
    form: Option<String>,
    /// The largest body of the reply, after decompression.
    max_bytes: usize,
    /// Time from connecting to the last byte of the reply.
    timeout: Duration,
}

/// A complete reply, of any status.
pub(crate) struct Fetched {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
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
    /// No complete reply came; in words.
    pub(crate) async fn send(self, client: &HttpClient) -> Result<Fetched, String> {
        let mut request = reqwest::Request::new(Method::GET, self.url);
        *request.headers_mut() = self.headers;
        if let Some(form) = self.form {
            const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");
            *request.method_mut() = Method::POST;
            request.headers_mut().insert(CONTENT_TYPE, FORM);
            *request.body_mut() = Some(form.into());
        }
        let exchange = async {
            let reply = client.send(request).await;
            let mut reply = reply.map_err(|error| text::error_in_a_line(&error))?;
            let (status, headers) = (reply.status(), std::mem::take(reply.headers_mut()));
            let broken = |error: HttpError| text::error_in_a_line(&error.without_url());
            let mut body = Vec::new();
            while let Some(chunk) = reply.chunk().await.map_err(broken)? {
                if body.len() + chunk.len() > self.max_bytes {
                    return Err(format!("the answer has more than {} bytes", self.max_bytes));
                }
                body.extend_from_slice(&chunk);
            }
            Ok(Fetched {
                status,
                headers,
                body: body.into(),
            })
        };
        let fetched = tokio::time::timeout(self.timeout, exchange).await;
        fetched.unwrap_or_else(|_| Err(format!("no answer within {} s", self.timeout.as_secs())))
    }
}
