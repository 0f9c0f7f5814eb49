//! A request to an API.

use http::Method;
use http::header::HeaderMap;
use url::Url;

use super::payload::Payload;

/// A request that is ready to be sent.
#[derive(Debug)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The asserted URL.
    pub url: Url,
    /// All headers but those that the client itself writes (Host, Content-Length).
    pub headers: HeaderMap,
    /// The body, if there is one.
    pub body: Option<Payload>,
    /// True if the reply is a stream of values according to the document, in which there may be
    /// long pauses.
    pub may_stream: bool,
}
