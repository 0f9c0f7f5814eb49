//! The body of a request, received in bounded memory and time.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use axum::http::{StatusCode, header};
use axum::response::Response;
use bytes::BytesMut;
use futures_util::FutureExt as _;
use serde_json::Value;

use super::host_and_origin::refused;
use crate::caller::Caller;
use crate::caller::memory_budget::{HeldMemory, MemoryBudget, OutOfMemory};
use crate::observe;

/// Time within which a client must send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(15);
/// The largest request: 4 MiB.
const MAX_REQUEST_BYTES: usize = 4 << 20;
/// Seconds after which a client may try again if there was no memory: most bodies and replies take
/// less.
const RETRY_SECONDS: &str = "5";

/// Memory for bodies.
pub(super) struct BodyMemory {
    /// That of all messages and replies in flight.
    all: MemoryBudget,
    /// The half of it that bodies may take which are not whole yet: nobody knows if they ever will
    /// be.
    arriving: MemoryBudget,
}

impl BodyMemory {
    pub(super) fn new(all: MemoryBudget) -> Self {
        Self {
            arriving: MemoryBudget::new(all.share()),
            all,
        }
    }
}

/// Refuses a body for which no memory is left.
fn busy<T>(OutOfMemory: OutOfMemory) -> Result<T, Box<Response>> {
    observe::refused_request("memory");
    refused((
        StatusCode::SERVICE_UNAVAILABLE,
        [(header::RETRY_AFTER, RETRY_SECONDS)],
        "this server is busy: it holds as many bytes of your requests and replies as its memory allows; try again in a moment, with fewer calls at a time\n",
    ))
}

/// The whole body, and the memory that its message takes.
pub(super) async fn receive_body<B>(
    caller: &Caller,
    body: B,
    budget: &BodyMemory,
) -> Result<(Bytes, HeldMemory), Box<Response>>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let declared = caller
        .headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse().ok());
    if declared.is_some_and(|length| length > MAX_REQUEST_BYTES) {
        return refused(StatusCode::PAYLOAD_TOO_LARGE);
    }
    let mut collecting = pin!(collect(body, declared, budget, caller));
    // Most bodies are there already, and need no clock.
    let collected = if let Some(collected) = collecting.as_mut().now_or_never() {
        collected
    } else {
        let collected = tokio::time::timeout(BODY_TIMEOUT, collecting).await;
        collected.or_else(|_| refused(StatusCode::REQUEST_TIMEOUT))?
    };
    let (bytes, mut memory) = collected?;
    if memory.is_held() {
        let tree = tree_bytes(&bytes).min(budget.all.quarter());
        memory.grow_to(tree, caller).or_else(busy)?;
    }
    Ok((bytes, memory))
}

/// Returns the memory that a message takes, with its values as a tree: short values take more there
/// than as text.
fn tree_bytes(json: &[u8]) -> usize {
    let values = memchr::memchr3_iter(b',', b'[', b'{', json).count();
    json.len()
        .saturating_add(values.saturating_mul(size_of::<Value>()))
}

/// Reads a body to its end. A body of one piece is not copied, and one whose length is `declared`
/// is copied once.
async fn collect<B>(
    mut body: B,
    declared: Option<usize>,
    budget: &BodyMemory,
    caller: &Caller,
) -> Result<(Bytes, HeldMemory), Box<Response>>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let (mut memory, mut arriving) = (budget.all.begin(), None);
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let Ok(data) = frame
            .or_else(|_| refused(StatusCode::PAYLOAD_TOO_LARGE))?
            .into_data()
        else {
            continue;
        };
        let length = first.len().max(rest.len()) + data.len();
        if length > MAX_REQUEST_BYTES {
            return refused(StatusCode::PAYLOAD_TOO_LARGE);
        }
        let is_first = first.is_empty() && rest.is_empty();
        // Without a declared length, what holds the body doubles when it is full.
        let held = if is_first || declared.is_some() {
            length
        } else {
            length * 2
        };
        memory.grow_to(held, caller).or_else(busy)?;
        if memory.is_held() {
            let arriving = arriving.get_or_insert_with(|| budget.arriving.begin());
            arriving.grow_to(held, caller).or_else(busy)?;
        }
        if is_first {
            first = data;
            continue;
        }
        if rest.is_empty() {
            rest.reserve(declared.unwrap_or_default());
            // What it was a slice of is free again.
            rest.extend_from_slice(&std::mem::take(&mut first));
        }
        rest.extend_from_slice(&data);
    }
    let bytes = if rest.is_empty() {
        first
    } else {
        rest.freeze()
    };
    Ok((bytes, memory))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::body::Body;
    use axum::response::IntoResponse as _;
    use futures_util::{FutureExt as _, StreamExt as _, stream};

    use super::*;

    async fn receive(text: &str, budget: &BodyMemory) -> Result<HeldMemory, StatusCode> {
        let received = receive_body(&Caller::default(), Body::from(text.to_owned()), budget).await;
        received
            .map(|(_, memory)| memory)
            .map_err(|refused| refused.into_response().status())
    }

    #[tokio::test]
    async fn p45_a_body_counts_as_what_its_message_takes() {
        let budget = BodyMemory::new(MemoryBudget::new(32 << 20));
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
            assert_eq!(
                (held.len(), refused),
                (held_at_once, StatusCode::SERVICE_UNAVAILABLE)
            );
            assert!(
                receive("{}", &budget).await.is_ok(),
                "a short message is not counted"
            );
        }
    }

    #[tokio::test]
    async fn p45_bodies_that_are_not_whole_take_half_of_the_memory_and_those_of_one_client_a_quarter()
     {
        let budget = BodyMemory::new(MemoryBudget::new(32 << 20));
        let begin = |last: u8| {
            let caller = Caller {
                address: Some([192, 0, 2, last].into()),
                ..Caller::default()
            };
            let frames = [1, 2].map(|_| Ok::<_, Infallible>(Bytes::from(vec![b' '; 512 << 10])));
            let body = Body::from_stream(stream::iter(frames).chain(stream::pending()));
            let budget = &budget;
            // Boxed, so that it can be kept as it is.
            let mut receiving = Box::pin(async move {
                receive_body(&caller, body, budget)
                    .await
                    .map_err(|refused| refused.into_response().status())
            });
            match receiving.as_mut().now_or_never() {
                None => Some(receiving),
                Some(Err(StatusCode::SERVICE_UNAVAILABLE)) => None,
                Some(other) => panic!("{:?}", other.map(|_| ())),
            }
        };
        // Each counts twice, because its length is not declared.
        let mut held: Vec<_> = (0..8).filter_map(|_| begin(1)).collect();
        assert_eq!(held.len(), 4, "a quarter is 8 MiB");
        for last in 2..50 {
            held.extend(begin(last));
        }
        assert_eq!(
            held.len(),
            7,
            "half is 16 MiB, and the last of it is for who holds nothing"
        );
        let reply = &mut budget.all.begin();
        assert!(
            reply.grow_to(8 << 20, &Caller::default()).is_ok(),
            "replies have the rest"
        );
        drop(held);
        assert!(begin(1).is_some());
    }
}
