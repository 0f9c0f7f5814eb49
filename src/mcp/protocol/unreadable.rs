//! The answers to texts that are not messages (JSON-RPC 2.0 section 5.1).

use std::borrow::Cow;

use foldhash::HashMap;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::observe::metrics::TOOLS_CALL;

/// Reason for which a message with a repeated member is refused: another reader might take the
/// other one.
pub(super) const REPEATED: &str = "a member is there twice";

/// A text that is not a message.
pub(crate) struct Unreadable {
    /// The answer; `None` if none may be given, as to a notification.
    pub(crate) answer: Option<String>,
    /// True if the message calls a tool, as far as it can be read.
    pub(crate) is_call: bool,
}

impl Unreadable {
    /// A text with a key that the JSON library keeps for itself.
    pub(super) fn of_reserved_key(text: &[u8]) -> Self {
        let answer = error_answer(
            "null",
            -32600,
            "Invalid Request: a key is one that this server keeps for itself",
        );
        Self {
            answer: Some(answer),
            is_call: names_call(text),
        }
    }

    /// A text that could not be read because of that error.
    pub(super) fn of_text(text: &[u8], error: &serde_json::Error) -> Self {
        Self {
            answer: answer_text(text, &error.to_string()),
            is_call: names_call(text),
        }
    }

    /// A request that is not valid, with its identifier; or, without one, what may not be answered.
    pub(super) fn of_request(text: &[u8], id: Option<&Value>) -> Self {
        let answer = id.map(|id| {
            let id = Some(id.to_string()).filter(|id| is_id(id));
            error_answer(id.as_deref().unwrap_or("null"), -32600, NOT_A_REQUEST)
        });
        Self {
            is_call: answer.is_some() && names_call(text),
            answer,
        }
    }

    /// Makes the answer for HTTP, which answers each request.
    pub(crate) fn into_http_answer(self) -> String {
        self.answer.unwrap_or_else(|| {
            error_answer(
                "null",
                -32600,
                "Invalid Request: it is not a JSON-RPC 2.0 message of MCP",
            )
        })
    }
}

const NOT_A_REQUEST: &str = "Invalid Request: it is not a JSON-RPC 2.0 request with an id that is a text or an integer of 64 bits";

/// The members that can still be read of an invalid message.
#[derive(Deserialize, Default)]
struct LooseMembers<'a> {
    #[serde(borrow, default, deserialize_with = "read_present")]
    id: Option<&'a RawValue>,
    method: Option<IgnoredAny>,
    result: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

/// A member that is there, even if it is `null`.
fn read_present<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Returns true if a text that may not be a valid message names the method of calls.
fn names_call(text: &[u8]) -> bool {
    let members =
        serde_json::from_slice::<HashMap<Cow<'_, str>, &RawValue>>(text).unwrap_or_default();
    let method = members
        .get("method")
        .map(|method| serde_json::from_str::<Cow<'_, str>>(method.get()));
    matches!(method, Some(Ok(method)) if method == TOOLS_CALL)
}

/// The text of a message without white space around it, and without a byte order mark, which RFC
/// 8259 section 8.1 lets a parser pass over.
pub(crate) fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(text)
        .trim_ascii()
}

/// The answer to a text that could not be read as a message; `None` for notifications and
/// responses, which are not answered.
fn answer_text(text: &[u8], error: &str) -> Option<String> {
    let is_json =
        std::str::from_utf8(text).is_ok() && serde_json::from_slice::<IgnoredAny>(text).is_ok();
    if !is_json {
        return Some(error_answer(
            "null",
            -32700,
            "Parse error: this is not JSON",
        ));
    }
    if text.trim_ascii_start().first() != Some(&b'{') {
        return Some(error_answer(
            "null",
            -32600,
            "Invalid Request: a message is one JSON object (there are no batches since MCP 2025-06-18)",
        ));
    }
    // It is unknown which of several identifiers is meant.
    let members: LooseMembers<'_> = serde_json::from_slice(text).unwrap_or_default();
    let is_answer =
        members.method.is_none() && (members.result.is_some() || members.error.is_some());
    if is_answer || (members.method.is_some() && members.id.is_none()) {
        return None;
    }
    let id = members
        .id
        .map(RawValue::get)
        .filter(|id| is_id(id))
        .unwrap_or("null");
    let why = if error.contains(REPEATED) {
        "Invalid Request: a member that says what is called is there twice"
    } else if error.contains("recursion limit") {
        "Invalid Request: it is nested deeper than 128 levels"
    } else {
        NOT_A_REQUEST
    };
    Some(error_answer(id, -32600, why))
}

/// The answer to a text that is too long, and whose identifier is not looked for.
pub(crate) fn too_long(max_bytes: usize) -> String {
    error_answer(
        "null",
        -32600,
        &format!(
            "Invalid Request: it is longer than {} MiB, the most that is read",
            max_bytes >> 20
        ),
    )
}

/// Returns true if the JSON is one text or one number.
fn is_id(json: &str) -> bool {
    match json.as_bytes().first() {
        Some(b'"') => serde_json::from_str::<String>(json).is_ok(),
        Some(b'-' | b'0'..=b'9') => serde_json::from_str::<serde_json::Number>(json).is_ok(),
        _ => false,
    }
}

fn error_answer(id: &str, code: i32, message: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{message}"}}}}"#)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::message::Message;
    use super::*;

    fn refused(text: &str) -> Option<(Value, Value)> {
        let answer: Value =
            serde_json::from_str(&Message::read(text.as_bytes()).unwrap_err().answer?).unwrap();
        Some((answer["id"].clone(), answer["error"]["code"].clone()))
    }

    #[test]
    fn what_is_no_message_gets_the_answer_of_json_rpc() {
        let deep = format!(
            r#"{{"id":"d","method":"tools/call","params":{}1{}}}"#,
            "[".repeat(300),
            "]".repeat(300)
        );
        for (text, id, code) in [
            ("{", json!(null), -32700),
            ("not json", json!(null), -32700),
            ("{} {}", json!(null), -32700),
            ("[]", json!(null), -32600),
            ("null", json!(null), -32600),
            (
                r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
                json!(null),
                -32600,
            ),
            ("{}", json!(null), -32600),
            (
                r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
                json!(1),
                -32600,
            ),
            (r#"{"id":"a","method":"ping"}"#, json!("a"), -32600),
            (
                r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
                json!(1.5),
                -32600,
            ),
            (
                r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
                json!(null),
                -32600,
            ),
            (r#"{"jsonrpc":"2.0","id":4}"#, json!(4), -32600),
            (
                r#"{"jsonrpc":"2.0","id":4,"id":5,"method":"ping"}"#,
                json!(null),
                -32600,
            ),
            (deep.as_str(), json!("d"), -32600),
        ] {
            assert_eq!(refused(text), Some((id, json!(code))), "{text}");
        }
        for text in [
            r#"{"method":"notifications/cancelled"}"#,
            r#"{"id":1,"result":7}"#,
            r#"{"id":{},"error":{}}"#,
        ] {
            assert_eq!(refused(text), None, "{text}");
        }
    }

    #[test]
    fn a_member_that_says_what_is_called_is_there_once() {
        for params in [
            r#"{"name":"a","name":"b"}"#,
            r#"{"name":"a","\u006eame":"b"}"#,
            r#"{"name":"a","arguments":{},"arguments":{"x":1}}"#,
            r#"{"name":"a","arguments":{"operation":"r","operation":"d"}}"#,
            r#"{"name":"a","arguments":{"operation":"r","\u006fperation":"d"}}"#,
            r#"{"name":"a","arguments":{"arguments":{},"operation":"r","arguments":{}}}"#,
        ] {
            let text =
                format!(r#"{{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{params}}}"#);
            assert_eq!(refused(&text), Some((json!(4), json!(-32600))), "{text}");
        }
        let text = r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"a"},"params":{"name":"b"}}"#;
        assert_eq!(refused(text), Some((json!(4), json!(-32600))));
        let text = r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"a","arguments":{"x":{"operation":1,"operation":2}}}}"#;
        assert!(
            Message::read(text.as_bytes()).is_ok(),
            "what is deeper says nothing of the call"
        );
    }
}
