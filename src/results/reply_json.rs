//! The JSON of a reply, as text.

use bytes::Bytes;
use http::header::CONTENT_TYPE;

use super::records::{self, Framing};
use super::{Reply, ReplyKind, decode_text, reply_kind, strip_bom};
use crate::spec::media_type::content_type;

/// Returns the JSON of a reply as text, the records of a stream as a list; `None` if it is neither.
pub(crate) fn json_text(response: &Reply) -> Option<String> {
    let content_type = content_type(&response.headers);
    if let Some(framing) = Framing::of(content_type) {
        let text = decode_text(content_type, &response.body);
        let (list, _) = records::list_records(framing, &text, response.stopped.is_none());
        return Some(list);
    }
    if !matches!(reply_kind(content_type, &response.body), ReplyKind::Json) {
        return None;
    }
    let body = strip_bom(&response.body);
    serde_json::from_slice::<serde::de::IgnoredAny>(body).ok()?;
    String::from_utf8(body.to_vec()).ok()
}

/// Makes JSON of our own the body of a reply.
pub(crate) fn put_json(response: &mut Reply, json: Bytes) {
    response.headers.insert(
        CONTENT_TYPE,
        http::HeaderValue::from_static("application/json"),
    );
    (response.body, response.stopped) = (json, None);
}
