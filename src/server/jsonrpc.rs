//! Messages as JSON-RPC 2.0 has them: which tool one calls, and the answers to texts that are not valid messages (section 5.1), which
//! rmcp does not answer, or with another error.

use std::borrow::Cow;

use foldhash::HashMap;
use rmcp::RoleServer;
use rmcp::service::RxJsonRpcMessage;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json;
use crate::observe::metrics::TOOLS_CALL;

/// The members that can still be read of an invalid message.
#[derive(Deserialize)]
struct Loose<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<IgnoredAny>,
    result: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

/// A message as rmcp reads it.
pub(crate) type Message = RxJsonRpcMessage<RoleServer>;

/// Reads a message, or returns the answer to a text that is not a message; `None` where no answer may be given.
pub(crate) fn read_message(text: &[u8]) -> Result<Message, Option<String>> {
    if !json::is_plain(text) {
        return Err(Some(error_answer(
            "null",
            -32600,
            "Invalid Request: a key is one that this server keeps for itself",
        )));
    }
    if let Some(answer) = answer_repeated_member(text) {
        return Err(Some(answer));
    }
    serde_json::from_slice(text).map_err(|error| refusal(text, &error))
}

/// The text of a message without white space around it, and without a byte order mark, which RFC 8259 section 8.1 lets a parser pass
/// over.
pub(crate) fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text).trim_ascii()
}

/// The members of a message that say which tool it calls. A repeated member is an error, because another parser might use the
/// other value.
#[derive(Deserialize)]
pub(crate) struct CalledMessage<'a> {
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// The parameters of a `tools/call`.
#[derive(Deserialize)]
pub(crate) struct CallParameters {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) arguments: Value,
}

/// Whether a text that may not be a valid message names the method of calls.
pub(crate) fn names_call(text: &[u8]) -> bool {
    let members = serde_json::from_slice::<HashMap<Cow<'_, str>, &RawValue>>(text).unwrap_or_default();
    let method = members
        .get("method")
        .map(|method| serde_json::from_str::<Cow<'_, str>>(method.get()));
    matches!(method, Some(Ok(method)) if method == TOOLS_CALL)
}

impl CalledMessage<'_> {
    pub(crate) fn is_call(&self) -> bool {
        self.method.as_deref() == Some(TOOLS_CALL)
    }

    /// `None` where they are missing, or cannot be read.
    pub(crate) fn parameters(&self) -> Option<CallParameters> {
        serde_json::from_str(self.params?.get()).ok()
    }
}

/// The members of a `tools/call` that say what is called. Each is there once, because another reader might take the other one.
#[derive(Deserialize)]
struct CallMembers<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow, rename = "method")]
    _method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct NamedCall<'a> {
    #[serde(rename = "name")]
    _name: Option<IgnoredAny>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct InnerMembers {
    #[serde(rename = "operation")]
    _operation: Option<IgnoredAny>,
    #[serde(rename = "arguments")]
    _arguments: Option<IgnoredAny>,
}

/// The answer to a call in which a member that says what is called is there twice: `params`, `name`, `arguments`, and, of the
/// arguments of a gate, `operation` and `arguments`. `None` where there is no such member.
pub(crate) fn answer_repeated_member(text: &[u8]) -> Option<String> {
    fn repeats<'de, T: Deserialize<'de>>(text: &'de str) -> Result<Option<T>, ()> {
        if !text.starts_with('{') {
            return Ok(None);
        }
        match serde_json::from_str::<T>(text) {
            Ok(members) => Ok(Some(members)),
            Err(error) if error.to_string().contains("duplicate field") => Err(()),
            Err(_) => Ok(None),
        }
    }
    let text = std::str::from_utf8(text).ok()?.trim_start();
    let answer = |id: Option<&RawValue>| {
        let id = id.map(RawValue::get).filter(|id| is_id(id)).unwrap_or("null");
        Some(error_answer(
            id,
            -32600,
            "Invalid Request: a member that says what is called is there twice",
        ))
    };
    let Ok(message) = repeats::<CallMembers<'_>>(text) else {
        return answer(None);
    };
    let message = message?;
    let Ok(call) = repeats::<NamedCall<'_>>(message.params?.get()) else {
        return answer(message.id);
    };
    match repeats::<InnerMembers>(call?.arguments?.get()) {
        Ok(_) => None,
        Err(()) => answer(message.id),
    }
}

/// The answer over HTTP to a text that is not a message; there, each request is answered.
pub(crate) fn answer_unreadable(text: &[u8]) -> String {
    let refusal = read_message(text.trim_ascii()).err().flatten();
    refusal.unwrap_or_else(|| error_answer("null", -32600, "Invalid Request: it is not a JSON-RPC 2.0 message of MCP"))
}

/// The answer to a text that could not be read as a message because of `error`; `None` for notifications and responses, which
/// are not answered.
fn refusal(text: &[u8], error: &serde_json::Error) -> Option<String> {
    let is_json = std::str::from_utf8(text).is_ok() && serde_json::from_slice::<IgnoredAny>(text).is_ok();
    if !is_json {
        return Some(error_answer("null", -32700, "Parse error: this is not JSON"));
    }
    if text.first() != Some(&b'{') {
        return Some(error_answer(
            "null",
            -32600,
            "Invalid Request: a message is one JSON object (there are no batches since MCP 2025-06-18)",
        ));
    }
    let Ok(loose) = serde_json::from_slice::<Loose<'_>>(text) else {
        return Some(error_answer("null", -32600, "Invalid Request: a member is there twice"));
    };
    let is_answer = loose.method.is_none() && (loose.result.is_some() || loose.error.is_some());
    if is_answer || (loose.method.is_some() && loose.id.is_none()) {
        return None;
    }
    let id = loose.id.map(RawValue::get).filter(|id| is_id(id)).unwrap_or("null");
    let why = if error.to_string().contains("recursion limit") {
        "Invalid Request: it is nested deeper than 128 levels"
    } else {
        "Invalid Request: it is not a JSON-RPC 2.0 request with an id that is a text or an integer of 64 bits"
    };
    Some(error_answer(id, -32600, why))
}

/// The answer to a text that is too long: `head` and `tail` are its two ends, one of which usually contains the id.
pub(crate) fn too_long(head: &[u8], tail: &[u8], max_bytes: usize) -> String {
    let id = id_at_start(head).or_else(|| id_at_end(tail)).unwrap_or("null");
    error_answer(
        id,
        -32600,
        &format!("Invalid Request: it is longer than {} MiB, the most that is read", max_bytes >> 20),
    )
}

/// `{"jsonrpc":"2.0","id":7,…`.
fn id_at_start(head: &[u8]) -> Option<&str> {
    let rest = head.trim_ascii_start().strip_prefix(b"{")?;
    let rest = rest.strip_prefix(br#""jsonrpc":"2.0","#).unwrap_or(rest);
    let rest = rest.strip_prefix(br#""id":"#)?;
    let end = memchr::memchr(b',', rest)?;
    std::str::from_utf8(rest.get(..end)?).ok().map(str::trim).filter(|id| is_id(id))
}

/// `…,"jsonrpc":"2.0","id":7}`; an id of something nested has another brace behind it.
fn id_at_end(tail: &[u8]) -> Option<&str> {
    let rest = tail.trim_ascii_end().strip_suffix(b"}")?;
    let at = memchr::memmem::rfind(rest, br#""id":"#)?;
    let id = rest.get(at + br#""id":"#.len()..)?;
    std::str::from_utf8(id).ok().map(str::trim).filter(|id| is_id(id))
}

/// Whether the JSON is one text or one number.
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
    use super::*;
    use serde_json::json;

    fn refused(text: &str) -> Option<(Value, Value)> {
        let answer: Value = serde_json::from_str(&read_message(text.as_bytes()).unwrap_err()?).unwrap();
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
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, json!(null), -32600),
            ("{}", json!(null), -32600),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, json!(1), -32600),
            (r#"{"id":"a","method":"ping"}"#, json!("a"), -32600),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, json!(1.5), -32600),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, json!(null), -32600),
            (r#"{"jsonrpc":"2.0","id":4}"#, json!(4), -32600),
            (r#"{"jsonrpc":"2.0","id":4,"id":5,"method":"ping"}"#, json!(null), -32600),
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
            let text = format!(r#"{{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{params}}}"#);
            assert_eq!(refused(&text), Some((json!(4), json!(-32600))), "{text}");
        }
        let text = r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"a"},"params":{"name":"b"}}"#;
        assert!(answer_repeated_member(text.as_bytes()).is_some());
        let text =
            r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"a","arguments":{"x":{"operation":1,"operation":2}}}}"#;
        assert_eq!(
            answer_repeated_member(text.as_bytes()),
            None,
            "what is deeper says nothing of the call"
        );
    }

    #[test]
    fn a_message_that_is_too_long_is_answered_by_its_id() {
        for (head, tail, id) in [
            (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","par"#, r#"xxx"}}}"#, "7"),
            (r#"{"jsonrpc":"2.0","id":"a","method""#, r#"xxx"}}}"#, r#""a""#),
            (r#"{"method":"tools/call","params":{"na"#, r#"xxx"},"jsonrpc":"2.0","id":9}"#, "9"),
            (
                r#"{"method":"tools/call","params":{"na"#,
                r#"xxx"},"jsonrpc":"2.0","id":"b"}"#,
                r#""b""#,
            ),
            (r#"{"method":"tools/call","params":{"na"#, r#"xxx","id":3}}}"#, "null"),
            (r#"{"method":"tools/call","params":{"na"#, r#"xxx\"id\":3}"#, "null"),
            ("xxxxx", "xxxxx", "null"),
        ] {
            let text = too_long(head.as_bytes(), tail.as_bytes(), 16 << 20);
            assert!(text.contains(&format!(r#""id":{id},"#)), "{text}");
            assert!(serde_json::from_str::<Value>(&text).is_ok() && text.contains("16 MiB"), "{text}");
        }
    }
}
