//! The plain form of a `tools/call` message. Almost all calls have it; it is read in one pass, and everything else is left to rmcp.

use std::fmt;

use rmcp::model::{ClientCapabilities, JsonObject};
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json;

/// The protocol version since which a request carries everything about its client.
pub(crate) const MODERN_VERSION: &str = "2026-07-28";
/// The protocol versions before, in which a client says that in a handshake.
pub(crate) const LEGACY_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// How the keys of `_meta` begin that MCP defines.
const MCP_PREFIX: &str = "io.modelcontextprotocol/";
const PROTOCOL_VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT_INFO_KEY: &str = "io.modelcontextprotocol/clientInfo";
const CLIENT_CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
/// Keys of `_meta` that ask for something besides the answer.
const SPECIAL_KEYS: [&str; 4] = ["progressToken", "traceparent", "tracestate", "baggage"];

/// A call in plain form: each member once, nothing beside them, and no escapes in what names things.
#[derive(Debug)]
pub(crate) struct CallMessage<'m> {
    /// The id as it is written: an integer of 64 bits, or a string without escapes.
    pub(crate) id: &'m str,
    /// The tool.
    pub(crate) name: &'m str,
    pub(crate) arguments: JsonObject,
    /// Whether the message carries the metadata of 2026-07-28.
    pub(crate) is_modern: bool,
}

impl<'m> CallMessage<'m> {
    /// Reads a message. `None` where it is anything else than a call in plain form.
    pub(crate) fn read(message: &'m [u8]) -> Option<Self> {
        if !json::is_plain(message) {
            return None;
        }
        let Envelope {
            jsonrpc,
            id,
            method,
            params,
        } = serde_json::from_str(std::str::from_utf8(message).ok()?).ok()?;
        let id = id.get();
        let is_plain_call = jsonrpc == "2.0" && method == "tools/call" && is_plain_id(id);
        is_plain_call.then_some(Self {
            id,
            name: params.name,
            arguments: params.arguments,
            is_modern: params.meta.is_modern,
        })
    }
}

/// Whether the id of a message is written in the one way in which it is answered.
pub(crate) fn is_plain_id(id: &str) -> bool {
    if let Some(text) = id.strip_prefix('"').and_then(|id| id.strip_suffix('"')) {
        return !text.contains('\\');
    }
    let digits = id.strip_prefix('-').unwrap_or(id);
    let has_one_form = (digits == "0" && digits.len() == id.len()) || !digits.starts_with('0');
    has_one_form && digits.bytes().all(|byte| byte.is_ascii_digit()) && id.parse::<i64>().is_ok()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<'m> {
    jsonrpc: &'m str,
    #[serde(borrow)]
    id: &'m RawValue,
    method: &'m str,
    #[serde(borrow)]
    params: PlainParameters<'m>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainParameters<'m> {
    name: &'m str,
    #[serde(default, deserialize_with = "read_arguments")]
    arguments: JsonObject,
    #[serde(rename = "_meta", default)]
    meta: Metadata,
}

/// Reads arguments, each of which is there once: of those of a gate, another reader might take the other one.
fn read_arguments<'de, D: Deserializer<'de>>(deserializer: D) -> Result<JsonObject, D::Error> {
    deserializer.deserialize_map(ArgumentsVisitor)
}

struct ArgumentsVisitor;

impl<'de> Visitor<'de> for ArgumentsVisitor {
    type Value = JsonObject;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("arguments")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonObject, A::Error> {
        let mut arguments = JsonObject::new();
        while let Some((name, value)) = map.next_entry()? {
            if arguments.insert(name, value).is_some() {
                return Err(A::Error::custom("an argument is there twice"));
            }
        }
        Ok(arguments)
    }
}

/// What a plain call says in `_meta`: nothing that asks for more than the answer.
#[derive(Default)]
struct Metadata {
    is_modern: bool,
}

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MetadataVisitor)
    }
}

struct MetadataVisitor;

impl<'de> Visitor<'de> for MetadataVisitor {
    type Value = Metadata;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the metadata of a plain call")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Metadata, A::Error> {
        let (mut version, mut capabilities, mut has_info) = (None, false, false);
        while let Some(key) = map.next_key::<&str>()? {
            match key {
                PROTOCOL_VERSION_KEY if version.is_none() => version = Some(map.next_value::<&str>()?),
                CLIENT_CAPABILITIES_KEY if !capabilities => {
                    let object: JsonObject = map.next_value()?;
                    // As rmcp reads it, which takes what cannot be read for missing.
                    if !object.is_empty() {
                        ClientCapabilities::deserialize(&Value::Object(object)).map_err(A::Error::custom)?;
                    }
                    capabilities = true;
                }
                CLIENT_INFO_KEY if !has_info => {
                    map.next_value_seed(Skipped { is_object: true })?;
                    has_info = true;
                }
                _ if key.starts_with(MCP_PREFIX) || SPECIAL_KEYS.contains(&key) => {
                    return Err(A::Error::custom("this call asks for more than an answer"));
                }
                _ => map.next_value_seed(Skipped { is_object: false })?,
            }
        }
        match (version, capabilities, has_info) {
            (None, false, false) => Ok(Metadata { is_modern: false }),
            (Some(MODERN_VERSION), true, _) => Ok(Metadata { is_modern: true }),
            _ => Err(A::Error::custom("the metadata of this call is incomplete, or of another version")),
        }
    }
}

/// A value that is parsed with the same checks as one that is kept, and then discarded.
#[derive(Clone, Copy)]
struct Skipped {
    is_object: bool,
}

impl<'de> DeserializeSeed<'de> for Skipped {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.is_object {
            deserializer.deserialize_map(self)
        } else {
            deserializer.deserialize_any(self)
        }
    }
}

impl<'de> Visitor<'de> for Skipped {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_object { "an object" } else { "any value" })
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(Self { is_object: false })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        // A number of arbitrary precision comes as a map as well.
        while map.next_key::<IgnoredAny>()?.is_some() {
            map.next_value_seed(Self { is_object: false })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(message: &str) -> Option<(String, String, Value, bool)> {
        let CallMessage {
            id,
            name,
            arguments,
            is_modern,
        } = CallMessage::read(message.as_bytes())?;
        Some((id.to_owned(), name.to_owned(), Value::Object(arguments), is_modern))
    }

    #[test]
    fn plain_calls_are_read_in_both_eras() {
        let modern = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"é","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"roots":{"listChanged":true}},"host/trace":[1.5e3,{"a":null}]}"#;
        for (id, params, name, is_modern) in [
            ("1", r#"{"name":"a","arguments":{}}"#.to_owned(), "a", false),
            ("-7", r#"{"arguments":{"x":1},"name":"a_b"}"#.to_owned(), "a_b", false),
            ("\"x é\"", r#"{"name":"a"}"#.to_owned(), "a", false),
            ("9223372036854775807", r#"{"name":"a","_meta":{}}"#.to_owned(), "a", false),
            ("0", r#"{"name":"a","_meta":{"host":{"k":"v\n"}}}"#.to_owned(), "a", false),
            ("0", format!(r#"{{"_meta":{modern},"name":"a"}}"#), "a", true),
        ] {
            let message = format!(r#" {{"method":"tools/call","params":{params},"id":{id},"jsonrpc":"2.0"}} "#);
            let (read_id, read_name, _, modern) = read(&message).unwrap_or_else(|| panic!("{message}"));
            assert_eq!((read_id.as_str(), read_name.as_str(), modern), (id, name, is_modern), "{message}");
        }
    }

    #[test]
    fn everything_else_is_left_to_rmcp() {
        let call = |id: &str, params: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#);
        let with_meta = |meta: &str| call("1", &format!(r#"{{"name":"a","arguments":{{}},"_meta":{meta}}}"#));
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        let mut messages: Vec<String> = [
            "",
            "{}",
            "[]",
            "null",
            "{\"jsonrpc\":\"2.0\"}",
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"tools/call","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools\/call","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"},"x":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}{}"#,
            "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"a\"}}",
        ]
        .map(str::to_owned)
        .into();
        for id in [
            "null",
            "01",
            "-0",
            "-",
            "1.0",
            "1e2",
            "9223372036854775808",
            r#""\u0041""#,
            "[1]",
            "true",
            "--1",
            "+1",
        ] {
            messages.push(call(id, r#"{"name":"a"}"#));
        }
        for params in [
            "null",
            "[]",
            "{}",
            r#"{"name":1}"#,
            r#"{"name":"a","name":"a"}"#,
            r#"{"name":"\u0061"}"#,
            r#"{"name":"a","arguments":null}"#,
            r#"{"name":"a","arguments":[]}"#,
            r#"{"name":"a","arguments":{},"arguments":{}}"#,
            r#"{"name":"a","arguments":{"operation":"b","operation":"c"}}"#,
            r#"{"name":"a","arguments":{"x":1,"\u0078":2}}"#,
            r#"{"name":"a","arguments":{"x":"\ud800"}}"#,
            r#"{"name":"a","task":{}}"#,
            r#"{"name":"a","requestState":"x"}"#,
            r#"{"name":"a","inputResponses":{}}"#,
            r#"{"name":"a","_meta":null}"#,
            r#"{"name":"a","arguments":{"$serde_json::private::Number":"1"}}"#,
            &format!(r#"{{"name":"a","arguments":{{"x":{deep}}}}}"#),
        ] {
            messages.push(call("1", params));
        }
        for meta in [
            r#"{"progressToken":1}"#,
            r#"{"traceparent":"00"}"#,
            r#"{"x":"\ud800"}"#,
            r#"{"\u0078":1}"#,
            r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#,
            r#"{"io.modelcontextprotocol/clientCapabilities":{}}"#,
            r#"{"io.modelcontextprotocol/clientInfo":{}}"#,
            r#"{"io.modelcontextprotocol/protocolVersion":"2025-11-25","io.modelcontextprotocol/clientCapabilities":{}}"#,
            r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":[]}"#,
            r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":1}}"#,
            r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"info"}"#,
            r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":"x"}"#,
            r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#,
            &format!(r#"{{"x":{deep}}}"#),
        ] {
            messages.push(with_meta(meta));
        }
        for message in messages {
            assert!(read(&message).is_none(), "{message}");
        }
    }
}
