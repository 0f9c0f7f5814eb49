//! The body of a request, read within limits of size, time and memory.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Response, StatusCode, header};
use axum::response::IntoResponse;
use bytes::BytesMut;
use serde_json::Value;

use crate::api::Caller;
use crate::observe;
use crate::proxy::MemoryBudget;
use crate::proxy::memory_budget::{HeldMemory, OutOfMemory};

/// Time within which a client must send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(15);
/// The largest request: 4 MiB.
pub(super) const MAX_REQUEST_BYTES: usize = 4 << 20;
/// Seconds after which a client may try again if there was no memory: bodies are read within [`BODY_TIMEOUT`].
const RETRY_SECONDS: &str = "5";

/// Reason for which a body is refused.
pub(super) enum RefusedBody {
    Status(StatusCode),
    /// No memory is left for the client.
    Busy,
}

impl From<OutOfMemory> for RefusedBody {
    fn from(OutOfMemory: OutOfMemory) -> Self {
        observe::refused_request("memory");
        Self::Busy
    }
}

impl IntoResponse for RefusedBody {
    fn into_response(self) -> Response<Body> {
        match self {
            Self::Status(status) => status.into_response(),
            Self::Busy => {
                let why = "this server is busy: it holds as many bytes of your requests and replies as its memory allows; try again in a moment, with fewer calls at a time\n";
                (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, RETRY_SECONDS)], why).into_response()
            }
        }
    }
}

/// The whole body, and the memory that its message takes.
pub(super) async fn receive_body<B>(caller: &Caller, body: B, budget: &MemoryBudget) -> Result<(Bytes, HeldMemory), RefusedBody>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let declared = caller
        .headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|length| length > MAX_REQUEST_BYTES) {
        return Err(RefusedBody::Status(StatusCode::PAYLOAD_TOO_LARGE));
    }
    let mut collecting = pin!(collect(body, budget.begin(), caller));
    // Most bodies are there already, and need no clock.
    let collected = match poll_fn(|context| Poll::Ready(collecting.as_mut().poll(context))).await {
        Poll::Ready(collected) => collected,
        Poll::Pending => {
            let collected = tokio::time::timeout(BODY_TIMEOUT, collecting).await;
            collected.map_err(|_| RefusedBody::Status(StatusCode::REQUEST_TIMEOUT))?
        }
    };
    let (bytes, mut memory) = collected?;
    if memory.is_held() {
        memory.grow_to(tree_bytes(&bytes).min(budget.quarter()), caller)?;
    }
    Ok((bytes, memory))
}

/// Returns the memory that a message takes, with its values as a tree: short values take more there than as text.
fn tree_bytes(json: &[u8]) -> usize {
    let values = memchr::memchr3_iter(b',', b'[', b'{', json).count();
    json.len().saturating_add(values.saturating_mul(size_of::<Value>()))
}

/// Reads a body to its end. A body of one piece is not copied.
async fn collect<B>(mut body: B, mut memory: HeldMemory, caller: &Caller) -> Result<(Bytes, HeldMemory), RefusedBody>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let too_large = || RefusedBody::Status(StatusCode::PAYLOAD_TOO_LARGE);
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let Ok(data) = frame.map_err(|_| too_large())?.into_data() else {
            continue;
        };
        let length = first.len().max(rest.len()) + data.len();
        if length > MAX_REQUEST_BYTES {
            return Err(too_large());
        }
        memory.grow_to(length, caller)?;
        if first.is_empty() {
            first = data;
            continue;
        }
        if rest.is_empty() {
            rest.extend_from_slice(&first);
        }
        rest.extend_from_slice(&data);
    }
    let bytes = if rest.is_empty() { first } else { rest.freeze() };
    Ok((bytes, memory))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn receive(text: &str, budget: &MemoryBudget) -> Result<HeldMemory, StatusCode> {
        let received = receive_body(&Caller::default(), Body::from(text.to_owned()), budget).await;
        received
            .map(|(_, memory)| memory)
            .map_err(|refused| refused.into_response().status())
    }

    #[tokio::test]
    async fn p45_a_body_counts_as_what_its_message_takes() {
        let budget = MemoryBudget::new(32 << 20);
        let one_text = format!("[\"{}\"]", "a".repeat(1 << 20));
        let many_values = format!("[{}1]", "1,".repeat(1 << 19));
        for (text, held_at_once) in [(&one_text, 16), (&many_values, 2)] {
            let mut held = Vec::new();
            let refused = loop {
                match receive(text, &budget).await {
                    Ok(memory) => held.push(memory),
                    Err(status) => break status,
                }
            };
            assert_eq!((held.len(), refused), (held_at_once, StatusCode::SERVICE_UNAVAILABLE));
            assert!(receive("{}", &budget).await.is_ok(), "a short message is not counted");
        }
    }
}
