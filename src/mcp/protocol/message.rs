//! Messages of clients, JSON-RPC 2.0 objects. A message is read member by member, so that a member
//! that is there twice is seen.

use std::ops::RangeInclusive;

use foldhash::HashSet;
use rmcp::model::{ClientCapabilities, ErrorData, MetaObject, RequestId, RequestMetaObject};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::unreadable::{DEEP, NOT_A_REQUEST, REPEATED, RESERVED, Unreadable};
use crate::json::{self, JsonObject};
use crate::observe::metrics::TOOLS_CALL;
use crate::spec::jumps::jumps;
use crate::spec::node::Node;

const PROTOCOL_VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT_CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

/// Messages of this length are read with a table of the ends of their values. A shorter one is
/// scanned as fast without; a longer one could make the table large by its brackets.
const JUMPED_BYTES: RangeInclusive<usize> = 256..=64 << 10;

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

impl Arguments {
    fn read(node: Node<'_>) -> Result<Self, &'static str> {
        let Some(mut members) = node.members() else {
            let is_null = value_of(node)? == Value::Null;
            return Ok(if is_null { Self::None } else { Self::Malformed });
        };
        let mut arguments = JsonObject::new();
        for (key, node) in members.by_ref() {
            if arguments
                .insert(key.into_owned(), value_of(node)?)
                .is_some()
            {
                return Err(REPEATED);
            }
        }
        if !members.is_whole() {
            return Err(NOT_A_REQUEST);
        }
        Ok(Self::Object(arguments))
    }
}

impl Message {
    /// Reads the text of a message.
    ///
    /// # Errors
    /// The answer to a text that is not a message (JSON-RPC 2.0 section 5.1).
    pub(crate) fn read(text: &[u8]) -> Result<Self, Unreadable> {
        let text = std::str::from_utf8(text).unwrap_or_default();
        let jumps = if JUMPED_BYTES.contains(&text.len()) {
            jumps(text)
        } else {
            Vec::new()
        };
        let members = Members::read(Node::in_file(0, text, &jumps));
        let refuse = |why| {
            let is_json = serde_json::from_str::<IgnoredAny>(text).is_ok();
            match &members {
                _ if !is_json => Unreadable::not_json(),
                Some(members) => members.refusal(why),
                None => Unreadable::no_object(),
            }
        };
        let members = members.as_ref().ok_or_else(|| refuse(NOT_A_REQUEST))?;
        members.message(text).map_err(refuse)
    }

    /// The request, if it calls a tool.
    pub(crate) fn call(&self) -> Option<&McpRequest> {
        match self {
            Self::Request(request) if request.method == Method::CallTool => Some(request),
            Self::Request(_) | Self::Notification(_) | Self::Answer(_) => None,
        }
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
    fn read(node: Node<'_>) -> Result<Self, &'static str> {
        let mut parameters = Self::default();
        let Some(mut members) = node.members() else {
            parameters.is_malformed = value_of(node)? != Value::Null;
            return Ok(parameters);
        };
        let (mut arguments, mut meta) = (None, None);
        for (key, node) in members.by_ref() {
            let is_first = match &*key {
                "name" => parameters.name.replace(value_of(node)?).is_none(),
                "arguments" => arguments.replace(Arguments::read(node)?).is_none(),
                "_meta" => meta.replace(Arguments::read(node)?).is_none(),
                _ => {
                    let rest = &mut parameters.rest;
                    rest.insert(key.into_owned(), value_of(node)?).is_none()
                }
            };
            if !is_first {
                return Err(REPEATED);
            }
        }
        if !members.is_whole() {
            return Err(NOT_A_REQUEST);
        }
        parameters.arguments = arguments.unwrap_or_default();
        match meta.unwrap_or_default() {
            Arguments::None => {}
            Arguments::Object(members) => parameters.meta = RequestMetaObject(MetaObject(members)),
            Arguments::Malformed => parameters.is_malformed = true,
        }
        Ok(parameters)
    }

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
struct Members<'t> {
    jsonrpc: Option<Node<'t>>,
    id: Option<Node<'t>>,
    method: Option<Node<'t>>,
    params: Option<Node<'t>>,
    result: Option<Node<'t>>,
    error: Option<Node<'t>>,
    /// True if any member is there twice: another reader might take the other one.
    is_repeated: bool,
    /// False if an unknown member or the end is not JSON.
    is_json: bool,
}

impl<'t> Members<'t> {
    /// The members of a message; `None` if it is not an object.
    fn read(message: Node<'t>) -> Option<Self> {
        let mut members = Self {
            is_json: true,
            ..Self::default()
        };
        let mut unknown = HashSet::default();
        let mut contents = message.members()?;
        for (key, node) in contents.by_ref() {
            let known = match &*key {
                "jsonrpc" => &mut members.jsonrpc,
                "id" => &mut members.id,
                "method" => &mut members.method,
                "params" => &mut members.params,
                "result" => &mut members.result,
                "error" => &mut members.error,
                _ => {
                    members.is_json &= serde_json::from_str::<IgnoredAny>(node.text()).is_ok();
                    members.is_repeated |= !unknown.insert(key);
                    continue;
                }
            };
            if known.replace(node).is_some() {
                members.is_repeated = true;
                if key == "id" {
                    // It is unknown which one is meant.
                    members.id = Some(Node::new("null"));
                }
            }
        }
        members.is_json &= contents.is_whole();
        Some(members)
    }

    /// The message.
    ///
    /// # Errors
    /// Why it is not valid.
    fn message(&self, text: &str) -> Result<Message, &'static str> {
        if !json::is_plain(text.as_bytes()) {
            return Err(RESERVED);
        }
        // An escape may stand for no character, in a key as well.
        if text.contains("\\u") {
            value_of(Node::new(text))?;
        }
        let is_valid = self.jsonrpc.and_then(Node::string).as_deref() == Some("2.0");
        if self.is_repeated {
            return Err(REPEATED);
        }
        if !is_valid || !self.is_json {
            return Err(NOT_A_REQUEST);
        }
        let Some(method) = self.method else {
            let outcome = match (self.result, self.error) {
                (_, Some(error)) => Err(value_of(error)?),
                (Some(result), None) => Ok(value_of(result)?),
                (None, None) => return Err(NOT_A_REQUEST),
            };
            let id = value_of(self.id.ok_or(NOT_A_REQUEST)?)?;
            return Ok(Message::Answer(ClientAnswer { id, outcome }));
        };
        let method = method.string().ok_or(NOT_A_REQUEST)?;
        let parameters = match self.params {
            Some(params) => RequestParameters::read(params)?,
            None => RequestParameters::default(),
        };
        let Some(id) = self.id else {
            return Ok(Message::Notification(McpNotification {
                method: method.into_owned(),
                parameters,
            }));
        };
        let number = id.text().parse().map(RequestId::Number).ok();
        let id = match number {
            Some(id) => id,
            None => request_id(&value_of(id)?).ok_or(NOT_A_REQUEST)?,
        };
        Ok(Message::Request(McpRequest {
            id,
            method: Method::of_name(&method),
            parameters,
        }))
    }

    /// The refusal of a message. Notifications and answers are not answered.
    fn refusal(&self, why: &str) -> Unreadable {
        let is_request = match self.method {
            Some(_) => self.id.is_some(),
            None => self.result.is_none() && self.error.is_none(),
        };
        let method = self.method.and_then(Node::string);
        Unreadable {
            answer: is_request.then(|| Unreadable::answer(self.id, why)),
            is_call: is_request && method.as_deref() == Some(TOOLS_CALL),
        }
    }
}

/// The value of a member.
///
/// # Errors
/// Why there is none.
fn value_of(node: Node<'_>) -> Result<Value, &'static str> {
    serde_json::from_str(node.text()).map_err(|error| {
        let is_deep = error.to_string().contains("recursion limit");
        if is_deep { DEEP } else { NOT_A_REQUEST }
    })
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
