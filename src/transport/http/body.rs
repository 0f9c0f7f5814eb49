//! The body of a request, read within limits of size and time.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use axum::http::{HeaderMap, StatusCode, header};
use bytes::BytesMut;

/// How long a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(15);
/// The largest request: 4 MiB.
pub(super) const MAX_REQUEST_BYTES: usize = 4 << 20;

/// The whole body, or the status of the refusal.
pub(super) async fn receive_body<B>(headers: &HeaderMap, body: B) -> Result<Bytes, StatusCode>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let declared = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|length| length > MAX_REQUEST_BYTES) {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    let mut collecting = pin!(collect(body));
    // Most bodies are there already, and need no clock.
    let collected = match poll_fn(|context| Poll::Ready(collecting.as_mut().poll(context))).await {
        Poll::Ready(collected) => collected,
        Poll::Pending => {
            let collected = tokio::time::timeout(BODY_TIMEOUT, collecting).await;
            collected.map_err(|_| StatusCode::REQUEST_TIMEOUT)?
        }
    };
    collected.ok_or(StatusCode::PAYLOAD_TOO_LARGE)
}

/// `None` where the body is too large, or breaks off. A body of one piece is not copied.
async fn collect<B>(mut body: B) -> Option<Bytes>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let Ok(data) = frame.ok()?.into_data() else { continue };
        let length = first.len().max(rest.len()) + data.len();
        if length > MAX_REQUEST_BYTES {
            return None;
        }
        if first.is_empty() {
            first = data;
            continue;
        }
        if rest.is_empty() {
            rest.extend_from_slice(&first);
        }
        rest.extend_from_slice(&data);
    }
    Some(if rest.is_empty() { first } else { rest.freeze() })
}
