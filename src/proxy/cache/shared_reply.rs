//! Replies as replicas keep them for each other: a head in JSON, and the body. They are encrypted
//! before they leave the process.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

use super::store::StoredReply;
use crate::proxy::redact::Redactor;
use crate::proxy::response::Response;

#[derive(Serialize, Deserialize)]
struct ReplyHead {
    status: u16,
    /// Names and values; a character of a value is a byte.
    headers: Vec<(String, String)>,
    /// Milliseconds since 1970 when it was written, and for how many milliseconds.
    written: u64,
    lifetime: u64,
    /// Tokens that were fetched for the request, and must not come back in what is made of the
    /// reply.
    tokens: Vec<String>,
}

/// A reply of another replica.
pub(crate) struct ForeignReply {
    pub(crate) response: Response,
    pub(crate) redactors: Vec<Arc<Redactor>>,
    /// Time since it was kept.
    pub(crate) kept_for: Duration,
}

/// A reply that is kept for `lifetime` from now on.
pub(crate) fn write_reply(reply: &StoredReply, lifetime: Duration) -> Option<Vec<u8>> {
    let headers = reply.response.headers.iter();
    let tokens = reply
        .redactors
        .iter()
        .flat_map(|redactor| redactor.tokens());
    let head = ReplyHead {
        status: reply.response.status.as_u16(),
        headers: headers
            .map(|(name, value)| {
                (
                    name.as_str().to_owned(),
                    value.as_bytes().iter().copied().map(char::from).collect(),
                )
            })
            .collect(),
        written: milliseconds(SystemTime::now().duration_since(UNIX_EPOCH).ok()?),
        lifetime: milliseconds(lifetime),
        tokens: tokens.map(str::to_owned).collect(),
    };
    let head = serde_json::to_vec(&head).ok()?;
    let mut text = Vec::with_capacity(4 + head.len() + reply.response.body.len());
    text.extend(u32::try_from(head.len()).ok()?.to_be_bytes());
    text.extend(head);
    text.extend_from_slice(&reply.response.body);
    Some(text)
}

/// Reads a reply that is still kept for `left`; `None` if its age is unknown.
pub(crate) fn read_reply(text: Vec<u8>, left: Duration) -> Option<ForeignReply> {
    let text = Bytes::from(text);
    let (length, rest) = text.split_first_chunk::<4>()?;
    let (head, body) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    let head: ReplyHead = serde_json::from_slice(head).ok()?;
    // By the server's clock and by ours: a clock that is set back makes no reply younger.
    let by_server = Duration::from_millis(head.lifetime).checked_sub(left)?;
    let written = UNIX_EPOCH + Duration::from_millis(head.written);
    let by_clock = SystemTime::now()
        .duration_since(written)
        .unwrap_or_default();
    let mut headers = HeaderMap::new();
    for (name, value) in head.headers {
        let value: Option<Vec<u8>> = value
            .chars()
            .map(|character| u8::try_from(character).ok())
            .collect();
        headers.append(
            name.parse::<HeaderName>().ok()?,
            HeaderValue::from_bytes(&value?).ok()?,
        );
    }
    let tokens = head.tokens.iter().map(String::as_str);
    let redactors = if head.tokens.is_empty() {
        Vec::new()
    } else {
        vec![Arc::new(Redactor::for_tokens(tokens))]
    };
    Some(ForeignReply {
        response: Response {
            is_of_wait: false,
            status: StatusCode::from_u16(head.status).ok()?,
            headers,
            body: text.slice_ref(body),
            file: None,
            stopped: None,
        },
        redactors,
        kept_for: by_server.max(by_clock),
    })
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
