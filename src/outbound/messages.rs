//! Requests as they leave, and replies as they come.

use std::future::poll_fn;
use std::pin::Pin;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use hyper::body::{Body, Incoming};
pub(crate) use reqwest::Body as OutgoingBody;
use tower_http::decompression::DecompressionBody;
use url::Url;

use super::failure::OutboundFailure;

/// A request as it is sent.
pub(crate) struct OutgoingRequest {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<OutgoingBody>,
}

/// A reply whose body is still on its way.
pub(crate) struct IncomingReply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// The length of the body, where it is known and the body is not compressed.
    pub(crate) length: Option<u64>,
    pub(super) body: ReplyBody,
}

/// The body of a reply, by what reads it.
pub(super) enum ReplyBody {
    Plain(Incoming),
    Compressed(Pin<Box<CompressedBody>>),
    OfReqwest(Box<reqwest::Response>),
}

impl IncomingReply {
    /// The next part of the body, decompressed.
    pub(crate) async fn chunk(&mut self) -> Option<Result<Bytes, OutboundFailure>> {
        match &mut self.body {
            ReplyBody::Plain(body) => Some(next_chunk(Pin::new(body)).await?.map_err(OutboundFailure::of_body)),
            ReplyBody::Compressed(body) => Some(next_chunk(body.as_mut()).await?.map_err(OutboundFailure::of_compressed_body)),
            ReplyBody::OfReqwest(reply) => reply.chunk().await.map_err(OutboundFailure::of_reqwest_body).transpose(),
        }
    }
}

/// The next part of a body that is data.
async fn next_chunk<B>(mut body: Pin<&mut B>) -> Option<Result<Bytes, B::Error>>
where
    B: Body<Data = Bytes>,
{
    loop {
        match poll_fn(|context| body.as_mut().poll_frame(context)).await? {
            // Trailers are not read.
            Ok(frame) => {
                if let Ok(data) = frame.into_data() {
                    return Some(Ok(data));
                }
            }
            Err(error) => return Some(Err(error)),
        }
    }
}

/// The body of a reply that was compressed.
type CompressedBody = DecompressionBody<Incoming>;
