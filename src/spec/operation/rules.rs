//! The operator's settings for the arguments of an operation. A document never contains them.

use std::fmt;
use std::sync::Arc;

use http::HeaderName;
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde_json::Value;

use super::parameter::{Location, Parameter};
use super::response_rule::{ResponseRule, set_keys};

/// The argument of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgumentTarget {
    /// A parameter, by its place and its name on the wire.
    Parameter(Location, String),
    /// A property of the body: the steps of a JSON Pointer (RFC 6901), in which `*` matches every
    /// item of a list.
    Body(Vec<String>),
}

/// Source of the value of an argument that no call gives.
#[derive(Debug, Clone)]
pub enum ValueSource {
    /// A literal of the configuration. It is not secret.
    Literal(Value),
    /// An environment variable, as text. It is secret.
    Secret {
        /// The name of the variable.
        variable: String,
        /// Its value at start.
        value: SecretString,
    },
    /// A header of the client's HTTP request. It is secret.
    Forward(HeaderName),
    /// A claim of the client's verified access token. It is secret.
    Claim(String),
}

/// The operator's settings for one argument. Parts without a setting follow the document.
#[derive(Debug, Clone)]
pub struct ArgumentRule {
    /// The argument.
    pub target: ArgumentTarget,
    /// The rules that say so, by their names in messages, and whether each may match nothing.
    pub origins: Vec<(String, bool)>,
    /// True if calls may not give it.
    pub hide: Option<bool>,
    /// Value that is sent in every call.
    pub value: Option<ValueSource>,
    /// Value that is sent if a call does not give it.
    pub default: Option<Value>,
    /// Its name.
    pub name: Option<String>,
    /// Its description.
    pub description: Option<String>,
    /// The only values that it may have.
    pub values: Option<Vec<Value>>,
    /// True if calls must give it.
    pub required: Option<bool>,
    /// True if a property that does not fit its schema is sent nevertheless.
    pub lenient: Option<bool>,
}

/// A parameter that no call gives.
#[derive(Debug, Clone)]
pub struct FixedParameter {
    /// The parameter.
    pub parameter: Arc<Parameter>,
    /// Source of its value; `None` if it is left out of every request.
    pub source: Option<ValueSource>,
}

/// The most pages that an operator may let a call collect.
const MAX_COLLECTED_PAGES: usize = 100;

/// Treatment of a value that does not fit its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Validation {
    Strict,
    Lenient,
}

/// Keys of a rule of `overrides` that are about calls, as they are read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CallKeys {
    /// Path parameters whose values may hold slashes
    #[serde(deserialize_with = "read_slashes")]
    pub slashes: Vec<String>,
    /// Treatment of a body that does not fit its schema: refused (strict), or sent with a note
    /// (lenient)
    pub validate: Option<Validation>,
    /// Number of pages that a call may collect, at most 100; 0 offers no argument for it
    #[serde(deserialize_with = "read_pages")]
    pub collect_pages: Option<usize>,
}

fn read_slashes<'de, D: Deserializer<'de>>(reader: D) -> Result<Vec<String>, D::Error> {
    let names = Vec::<String>::deserialize(reader)?;
    if names.iter().any(String::is_empty) {
        let expected = "expected a list of names of path parameters, as in [name]";
        return Err(D::Error::custom(expected));
    }
    Ok(names)
}

fn read_pages<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<usize>, D::Error> {
    let pages = usize::deserialize(reader).ok();
    let pages = pages
        .filter(|pages| *pages <= MAX_COLLECTED_PAGES)
        .map(Some);
    pages.ok_or_else(|| {
        D::Error::custom(format!(
            "expected a whole number from 0 to {MAX_COLLECTED_PAGES}"
        ))
    })
}

impl CallKeys {
    /// Takes what a later rule sets.
    pub fn take(&mut self, later: Self) {
        self.slashes.extend(later.slashes);
        self.validate = later.validate.or(self.validate);
        self.collect_pages = later.collect_pages.or(self.collect_pages);
    }
}

/// The operator's settings for one operation.
#[derive(Debug, Clone, Default)]
pub struct OperationRules {
    /// The parameters that no call gives.
    pub fixed: Vec<FixedParameter>,
    /// Every rule for an argument that the operation has, at most one for each.
    pub arguments: Vec<ArgumentRule>,
    /// Settings for its replies.
    pub response: Option<ResponseRule>,
    /// Settings for an operation that is done after its first reply.
    pub wait: Option<WaitRule>,
    /// Treatment of a body that does not fit its schema.
    pub validate: Option<Validation>,
    /// Number of pages that a call may collect; 0 if there is no argument that says so.
    pub(crate) max_pages: usize,
}

/// The operator's settings for an operation that is done after its first reply.
#[derive(Debug, Clone)]
pub enum WaitRule {
    /// No call waits.
    Never,
    /// Calls wait as these settings say.
    Wait(Box<WaitSettings>),
}

/// Settings for a wait. Parts without a setting follow the document and the reply.
#[derive(Debug, Clone, Default)]
pub struct WaitSettings {
    /// Place of the status.
    pub status: Option<StatusPlace>,
    /// Member of the status and its values once the operation is done.
    pub done: Option<FieldValues>,
    /// Member of the status and its values once the operation has failed.
    pub failed: Option<FieldValues>,
    /// Place of the result.
    pub result: Option<ResultPlace>,
    /// Seconds between two requests for the status, if the API names none.
    pub interval: Option<u64>,
}

/// Place of the status of an operation.
#[derive(Debug, Clone)]
pub enum StatusPlace {
    /// The URL in a header of the first reply.
    Header(HeaderName),
    /// The URL in a member of the first reply: a JSON Pointer.
    Field(String),
    /// The reply of another operation.
    Operation(NamedRead),
}

/// Place of the result of an operation.
#[derive(Debug, Clone)]
pub enum ResultPlace {
    /// The status itself.
    Status,
    /// The URL in `Location`.
    Location,
    /// The URL of the request.
    Original,
    /// The URL in a member of the status: a JSON Pointer.
    Field(String),
    /// The reply of another operation.
    Operation(NamedRead),
}

/// A GET operation of the document that a rule names.
#[derive(Debug, Clone)]
pub struct NamedRead {
    /// Its operationId, or method and path.
    pub name: String,
    /// Its arguments, each with the place of its value in a reply: a JSON Pointer.
    pub arguments: Vec<(Location, String, String)>,
}

/// A member of a reply, and some of its values.
#[derive(Debug, Clone)]
pub struct FieldValues {
    /// A JSON Pointer.
    pub field: String,
    /// The values, which are compared to the letter.
    pub values: Vec<Value>,
}

impl OperationRules {
    /// Returns true if a body that does not fit the document's schema is sent nevertheless.
    #[must_use]
    pub fn takes_any_body(&self) -> bool {
        self.validate == Some(Validation::Lenient)
    }
}

impl WaitRule {
    /// The keys that are set.
    pub(crate) fn keys_in_words(&self) -> String {
        let Self::Wait(settings) = self else {
            return "false".to_owned();
        };
        set_keys(&[
            ("status", settings.status.is_some()),
            ("done", settings.done.is_some()),
            ("failed", settings.failed.is_some()),
            ("result", settings.result.is_some()),
            ("interval", settings.interval.is_some()),
        ])
    }
}

impl WaitSettings {
    /// The operations that they name.
    pub(crate) fn named_reads(&self) -> impl Iterator<Item = &NamedRead> {
        let status = self.status.iter().filter_map(|place| match place {
            StatusPlace::Operation(named) => Some(named),
            _ => None,
        });
        status.chain(self.result.iter().filter_map(|place| match place {
            ResultPlace::Operation(named) => Some(named),
            _ => None,
        }))
    }
}

/// A step on the way to a property of the body.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum PropertyStep {
    /// The member of an object with that name.
    Member(String),
    /// Each item of a list.
    EachItem,
}

/// A property of the body that a rule is about, as the input schema has it.
#[derive(Clone)]
pub(crate) struct RuledProperty {
    /// The rule.
    pub(crate) rule: ArgumentRule,
    /// The steps that lead to it, by the names in the input schema; never empty, and the last is to
    /// a member.
    pub(crate) path: Vec<PropertyStep>,
    /// The schema of its value, which may refer to definitions of the input schema.
    pub(crate) schema: Value,
}

/// Demand of an operation on the token of its caller.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct AccessDemand {
    /// Scopes of which one is needed; if there are none, none is.
    pub(crate) scopes: Vec<String>,
    /// Claims by name or JSON Pointer, each with the values of which one is needed.
    pub(crate) claims: Vec<(String, Vec<Value>)>,
}

impl ArgumentRule {
    /// A rule that sets nothing yet.
    pub fn new(target: ArgumentTarget) -> Self {
        Self {
            target,
            origins: Vec::new(),
            hide: None,
            value: None,
            default: None,
            name: None,
            description: None,
            values: None,
            required: None,
            lenient: None,
        }
    }

    /// Takes what a later rule for the same argument sets.
    pub fn take(&mut self, later: Self) {
        self.origins.extend(later.origins);
        self.hide = later.hide.or(self.hide);
        self.value = later.value.or(self.value.take());
        self.default = later.default.or(self.default.take());
        self.name = later.name.or(self.name.take());
        self.description = later.description.or(self.description.take());
        self.values = later.values.or(self.values.take());
        self.required = later.required.or(self.required);
        self.lenient = later.lenient.or(self.lenient);
    }

    /// A sentence that says why the rule cannot be applied to an operation, by method and path.
    pub(crate) fn refusal(&self, operation: &str, why: &str) -> String {
        format!("{}: `{}` of {operation} {why}", self.origin(), self.target)
    }

    /// The name of the last rule that says so.
    pub(crate) fn origin(&self) -> &str {
        self.origins.last().map_or("", |(origin, _)| origin)
    }

    /// Returns true if calls cannot give the argument.
    pub fn is_closed(&self) -> bool {
        self.value.is_some() || self.hide == Some(true)
    }

    /// Returns the source of the value that is sent in every call, if the argument is closed: the
    /// value, or else the default.
    pub fn closed_source(&self) -> Option<ValueSource> {
        self.value
            .clone()
            .or_else(|| self.default.clone().map(ValueSource::Literal))
            .filter(|_| self.is_closed())
    }
}

impl ValueSource {
    /// Returns true if the value comes from the calling client.
    pub fn is_of_client(&self) -> bool {
        matches!(self, Self::Forward(_) | Self::Claim(_))
    }

    /// Describes the source of the value for the operator, never the value.
    pub fn describe(&self) -> String {
        match self {
            Self::Literal(_) => "from the configuration".to_owned(),
            Self::Secret { .. } => "from the environment".to_owned(),
            Self::Forward(name) => format!("from the client's header `{name}`"),
            Self::Claim(name) => format!("from the claim `{name}` of the client's token"),
        }
    }
}

impl fmt::Display for ArgumentTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameter(location, name) => write!(f, "{}:{name}", location.as_str()),
            Self::Body(steps) => steps
                .iter()
                .try_for_each(|step| write!(f, "/{}", step.replace('~', "~0").replace('/', "~1"))),
        }
    }
}
