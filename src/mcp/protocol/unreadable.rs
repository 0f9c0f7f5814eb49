//! The answers to texts that are not messages (JSON-RPC 2.0 section 5.1).

use crate::spec::node::Node;

/// Reason for which a message with a repeated member is refused: another reader might take the
/// other one.
pub(super) const REPEATED: &str = "a member that says what is called is there twice";
/// Reason for which a message with a key that the JSON library keeps for itself is refused.
pub(super) const RESERVED: &str = "a key is one that this server keeps for itself";
/// Reason for which a message is refused whose values cannot be read.
pub(super) const DEEP: &str = "it is nested deeper than 128 levels";
pub(super) const NOT_A_REQUEST: &str =
    "it is not a JSON-RPC 2.0 request with an id that is a text or an integer of 64 bits";

/// A text that is not a message.
pub(crate) struct Unreadable {
    /// The answer; `None` if none may be given, as to a notification.
    pub(crate) answer: Option<String>,
    /// True if the message calls a tool.
    pub(crate) is_call: bool,
}

impl Unreadable {
    pub(super) fn not_json() -> Self {
        Self {
            answer: Some(error_answer(
                "null",
                -32700,
                "Parse error: this is not JSON",
            )),
            is_call: false,
        }
    }

    pub(super) fn no_object() -> Self {
        let why = "a message is one JSON object (there are no batches since MCP 2025-06-18)";
        Self {
            answer: Some(Self::answer(None, why)),
            is_call: false,
        }
    }

    /// The answer to a request with that identifier, which is `null` unless it is a text or a
    /// number.
    pub(super) fn answer(id: Option<Node<'_>>, why: &str) -> String {
        let id = id.map(Node::text).map(str::trim_end).filter(|id| is_id(id));
        error_answer(
            id.unwrap_or("null"),
            -32600,
            &format!("Invalid Request: {why}"),
        )
    }

    /// Makes the answer for HTTP, which answers each request.
    pub(crate) fn into_http_answer(self) -> String {
        let why = "it is not a JSON-RPC 2.0 message of MCP";
        self.answer.unwrap_or_else(|| Self::answer(None, why))
    }
}

/// The text of a message without white space around it, and without a byte order mark, which RFC
/// 8259 section 8.1 lets a parser pass over.
pub(crate) fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(text)
        .trim_ascii()
}

/// The answer to a text that is too long, and whose identifier is not looked for.
pub(crate) fn too_long(max_bytes: usize) -> String {
    let mib = max_bytes >> 20;
    Unreadable::answer(
        None,
        &format!("it is longer than {mib} MiB, the most that is read"),
    )
}

/// Returns true if the JSON is one text or one number.
fn is_id(json: &str) -> bool {
    match json.as_bytes().first() {
        Some(b'"') => serde_json::from_str::<String>(json).is_ok(),
        first => first.is_some_and(|byte| *byte == b'-' || byte.is_ascii_digit()),
    }
}

fn error_answer(id: &str, code: i32, message: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{message}"}}}}"#)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::message::Message;

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
            (
                r#"{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"arguments":{"\ud800":1}}}"#,
                json!(6),
                -32600,
            ),
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
