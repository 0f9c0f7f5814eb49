//! Messages of clients, JSON-RPC 2.0 objects, each read in one pass.

use std::fmt;

use foldhash::HashSet;
use rmcp::model::{ClientCapabilities, ErrorData, MetaObject, RequestId, RequestMetaObject};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::unreadable::{REPEATED, Unreadable};
use crate::json::{self, JsonObject};

const PROTOCOL_VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT_CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

/// A message of a client.
#[derive(Debug)]
pub(crate) enum Message {
    Request(McpRequest),
    Notification(McpNotification),
    Answer(ClientAnswer),
}

/// A request of a client.
#[derive(Debug)]
pub(crate) struct McpRequest {
    pub(crate) id: RequestId,
    pub(crate) method: Method,
    pub(crate) parameters: RequestParameters,
}

/// A notification of a client.
#[derive(Debug)]
pub(crate) struct McpNotification {
    pub(crate) method: String,
    pub(crate) parameters: RequestParameters,
}

/// The answer of a client to a question of this server.
#[derive(Debug)]
pub(crate) struct ClientAnswer {
    /// The identifier of the question.
    pub(crate) id: Value,
    /// The result, or the error.
    pub(crate) outcome: Result<Value, Value>,
}

/// A method of MCP that this server knows by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Method {
    Initialize,
    Discover,
    Ping,
    ListTools,
    CallTool,
    Listen,
    Other(Box<str>),
}

/// The parameters of a request or a notification.
#[derive(Debug, Default)]
pub(crate) struct RequestParameters {
    pub(crate) name: Option<Value>,
    pub(crate) arguments: Arguments,
    pub(crate) meta: RequestMetaObject,
    /// All other members.
    pub(crate) rest: JsonObject,
    /// True if the parameters or their metadata are not an object.
    pub(crate) is_malformed: bool,
}

/// The member `arguments` of parameters.
#[derive(Debug, Default, PartialEq)]
pub(crate) enum Arguments {
    /// Missing, or `null`.
    #[default]
    None,
    Object(JsonObject),
    /// Any other value.
    Malformed,
}

impl Message {
    /// Reads the text of a message.
    ///
    /// # Errors
    /// The answer to a text that is not a message (JSON-RPC 2.0 section 5.1).
    pub(crate) fn read(text: &[u8]) -> Result<Self, Unreadable> {
        if !json::is_plain(text) {
            return Err(Unreadable::of_reserved_key(text));
        }
        let read = || {
            let text = std::str::from_utf8(text)
                .map_err(|error| serde_json::Error::custom(error.to_string()))?;
            let mut deserializer = serde_json::Deserializer::from_str(text);
            let members = deserializer.deserialize_map(MembersVisitor)?;
            deserializer.end()?;
            Ok(members)
        };
        let members =
            read().map_err(|error: serde_json::Error| Unreadable::of_text(text, &error))?;
        members
            .into_message()
            .map_err(|id| Unreadable::of_request(text, id.as_ref()))
    }
}

impl Method {
    const KNOWN: [Self; 6] = [
        Self::Initialize,
        Self::Discover,
        Self::Ping,
        Self::ListTools,
        Self::CallTool,
        Self::Listen,
    ];

    /// The name in messages.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Other(name) => name,
            known => known.known_name().unwrap_or_default(),
        }
    }

    /// The name in messages of a method that this server knows by itself.
    pub(crate) fn known_name(&self) -> Option<&'static str> {
        Some(match self {
            Self::Initialize => "initialize",
            Self::Discover => "server/discover",
            Self::Ping => "ping",
            Self::ListTools => "tools/list",
            Self::CallTool => "tools/call",
            Self::Listen => "subscriptions/listen",
            Self::Other(_) => return None,
        })
    }

    fn of_name(name: &str) -> Self {
        let known = Self::KNOWN
            .into_iter()
            .find(|known| known.known_name() == Some(name));
        known.unwrap_or_else(|| Self::Other(name.into()))
    }
}

impl RequestParameters {
    /// The parameters without their metadata, as they came.
    pub(crate) fn into_value(self) -> Value {
        let mut members = self.rest;
        if let Some(name) = self.name {
            members.insert("name".into(), name);
        }
        match self.arguments {
            Arguments::None => {}
            Arguments::Object(arguments) => {
                drop(members.insert("arguments".into(), arguments.into()));
            }
            Arguments::Malformed => drop(members.insert("arguments".into(), false.into())),
        }
        Value::Object(members)
    }

    /// The name of the protocol version that the request names for itself.
    pub(crate) fn version_name(&self) -> Option<&str> {
        self.meta.get(PROTOCOL_VERSION_KEY)?.as_str()
    }

    /// The keys of `_meta` that a request needs since 2026-07-28, and that are missing or
    /// malformed.
    pub(crate) fn missing_keys(&self) -> Vec<&'static str> {
        let mut missing = Vec::new();
        if self.version_name().is_none() {
            missing.push(PROTOCOL_VERSION_KEY);
        }
        if !self.has_capabilities() {
            missing.push(CLIENT_CAPABILITIES_KEY);
        }
        missing
    }

    /// Requires what a request must say of its client since 2026-07-28 (basic, "Requests").
    ///
    /// # Errors
    /// The keys that are missing or malformed.
    pub(crate) fn require_keys(&self) -> Result<(), ErrorData> {
        let missing = self.missing_keys();
        if missing.is_empty() {
            return Ok(());
        }
        let why = format!(
            "request _meta is missing or has malformed required fields: {}",
            missing.join(", ")
        );
        Err(ErrorData::invalid_params(why, None))
    }

    fn has_capabilities(&self) -> bool {
        match self.meta.get(CLIENT_CAPABILITIES_KEY) {
            Some(Value::Object(members)) if members.is_empty() => true,
            Some(given) => ClientCapabilities::deserialize(given).is_ok(),
            None => false,
        }
    }
}

/// The members of a message that JSON-RPC and MCP define.
#[derive(Default)]
struct Members {
    jsonrpc: Option<Value>,
    id: Option<Value>,
    method: Option<Value>,
    params: Option<RequestParameters>,
    result: Option<Value>,
    error: Option<Value>,
}

impl Members {
    /// The message; else the identifier of a request that is not valid, or nothing if no answer may
    /// be given.
    fn into_message(self) -> Result<Message, Option<Value>> {
        let is_valid = self.jsonrpc.as_ref().and_then(Value::as_str) == Some("2.0");
        let is_answer = self.result.is_some() || self.error.is_some();
        match (self.method, self.id) {
            (None, id) if is_answer => match (id.filter(|_| is_valid), self.result, self.error) {
                (Some(id), Some(result), None) => Ok(Message::Answer(ClientAnswer {
                    id,
                    outcome: Ok(result),
                })),
                (Some(id), _, Some(error)) => Ok(Message::Answer(ClientAnswer {
                    id,
                    outcome: Err(error),
                })),
                _ => Err(None),
            },
            (Some(Value::String(method)), None) if is_valid => {
                Ok(Message::Notification(McpNotification {
                    method,
                    parameters: self.params.unwrap_or_default(),
                }))
            }
            (Some(_), None) => Err(None),
            (Some(Value::String(method)), Some(id)) => match request_id(&id).filter(|_| is_valid) {
                Some(id) => Ok(Message::Request(McpRequest {
                    id,
                    method: Method::of_name(&method),
                    parameters: self.params.unwrap_or_default(),
                })),
                None => Err(Some(id)),
            },
            (_, id) => Err(Some(id.unwrap_or_default())),
        }
    }
}

/// An identifier: a text, or an integer of 64 bits, which some clients write with a fraction of
/// zero.
pub(crate) fn request_id(id: &Value) -> Option<RequestId> {
    match id {
        Value::String(text) => Some(RequestId::String(text.as_str().into())),
        Value::Number(number) => number
            .as_i64()
            .or_else(|| whole_number(&number.to_string()))
            .map(RequestId::Number),
        _ => None,
    }
}

/// A number whose fraction is zero: `7.0`.
fn whole_number(number: &str) -> Option<i64> {
    let (whole, fraction) = number.split_once('.')?;
    let is_whole = fraction.bytes().all(|digit| digit == b'0');
    is_whole.then(|| whole.parse().ok()).flatten()
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let mut members = Members::default();
        let mut unknown = HashSet::default();
        while let Some(key) = map.next_key_seed(KeySeed([
            "jsonrpc", "id", "method", "params", "result", "error",
        ]))? {
            match key {
                Ok(0) => set_once(&mut members.jsonrpc, map.next_value()?)?,
                Ok(1) => set_once(&mut members.id, map.next_value()?)?,
                Ok(2) => set_once(&mut members.method, map.next_value()?)?,
                Ok(3) => set_once(&mut members.params, map.next_value_seed(ParametersVisitor)?)?,
                Ok(4) => set_once(&mut members.result, map.next_value()?)?,
                Ok(5) => set_once(&mut members.error, map.next_value()?)?,
                Ok(_) => drop(map.next_value::<Value>()?),
                Err(key) => {
                    drop(map.next_value::<Value>()?);
                    if !unknown.insert(key) {
                        return Err(A::Error::custom(REPEATED));
                    }
                }
            }
        }
        Ok(members)
    }
}

/// Sets a member that is there once: another reader might take the other one.
fn set_once<T, E: Error>(member: &mut Option<T>, value: T) -> Result<(), E> {
    match member.replace(value) {
        None => Ok(()),
        Some(_) => Err(E::custom(REPEATED)),
    }
}

/// Reads a key: its index among these names, or the key itself.
struct KeySeed<const N: usize>([&'static str; N]);

impl<'de, const N: usize> DeserializeSeed<'de> for KeySeed<N> {
    type Value = Result<usize, String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl<const N: usize> Visitor<'_> for KeySeed<N> {
    type Value = Result<usize, String>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self
            .0
            .iter()
            .position(|name| *name == key)
            .ok_or_else(|| key.to_owned()))
    }
}

/// The key of a number whose digits are kept. [`json::is_plain`] refuses texts with such a key.
const NUMBER_KEY: &str = "$serde_json::private::Number";

/// The methods of a visitor for values that are not objects, which are read to their end.
macro_rules! visit_no_object {
    ($null:expr, $other:expr) => {
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok($other)
        }

        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok($other)
        }

        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok($other)
        }

        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok($other)
        }

        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok($other)
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok($null)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
            while items.next_element::<Value>()?.is_some() {}
            Ok($other)
        }
    };
}

struct ParametersVisitor;

impl<'de> DeserializeSeed<'de> for ParametersVisitor {
    type Value = RequestParameters;

    fn deserialize<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<RequestParameters, D::Error> {
        deserializer.deserialize_any(self)
    }
}

fn malformed_parameters() -> RequestParameters {
    RequestParameters {
        is_malformed: true,
        ..RequestParameters::default()
    }
}

impl<'de> Visitor<'de> for ParametersVisitor {
    type Value = RequestParameters;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("parameters")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RequestParameters, A::Error> {
        let mut parameters = RequestParameters::default();
        let (mut arguments, mut meta) = (None, None);
        while let Some(key) =
            map.next_key_seed(KeySeed(["name", "arguments", "_meta", NUMBER_KEY]))?
        {
            match key {
                Ok(0) => set_once(&mut parameters.name, map.next_value()?)?,
                Ok(1) => set_once(&mut arguments, map.next_value_seed(ArgumentsVisitor)?)?,
                Ok(2) => set_once(&mut meta, map.next_value_seed(ArgumentsVisitor)?)?,
                Ok(_) => {
                    map.next_value::<IgnoredAny>()?;
                    parameters.is_malformed = true;
                }
                Err(key) => match parameters.rest.insert(key, map.next_value()?) {
                    None => {}
                    Some(_) => return Err(A::Error::custom(REPEATED)),
                },
            }
        }
        parameters.arguments = arguments.unwrap_or_default();
        match meta.unwrap_or_default() {
            Arguments::None => {}
            Arguments::Object(members) => parameters.meta = RequestMetaObject(MetaObject(members)),
            Arguments::Malformed => parameters.is_malformed = true,
        }
        Ok(parameters)
    }

    visit_no_object!(RequestParameters::default(), malformed_parameters());
}

struct ArgumentsVisitor;

impl<'de> DeserializeSeed<'de> for ArgumentsVisitor {
    type Value = Arguments;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Arguments, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ArgumentsVisitor {
    type Value = Arguments;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("arguments")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Arguments, A::Error> {
        let mut members = JsonObject::new();
        while let Some(key) = map.next_key::<String>()? {
            if key == NUMBER_KEY {
                map.next_value::<IgnoredAny>()?;
                return Ok(Arguments::Malformed);
            }
            if members.insert(key, map.next_value()?).is_some() {
                return Err(A::Error::custom(REPEATED));
            }
        }
        Ok(Arguments::Object(members))
    }

    visit_no_object!(Arguments::None, Arguments::Malformed);
}
