//! The parameters of one operation: the path item's and its own, each with the argument that feeds
//! it.

use std::sync::Arc;

use foldhash::{HashMap, HashSet};
use serde_json::Value;

use super::parameter::{self, Location, Parameter, Serialization, Style};
use super::request_body::{BODY, CHOICE, RequestBody};
use super::template::PathTemplate;
use super::{security, swagger2};
use crate::spec::argument_names;
use crate::spec::document::{Document, Version};
use crate::spec::node::Node;

/// Target of a reference, and the description beside it.
pub(crate) type Referred<'a> = (Node<'a>, Option<String>);

/// Reads them.
pub(crate) struct Parameters<'a> {
    document: &'a Document,
    /// Parameters that were read, by their text and the file that contains it.
    known: HashMap<(u32, &'a str), Arc<Parameter>>,
    /// Targets of references, by the text of the parameter and the file that contains it.
    referred: HashMap<(u32, &'a str), Referred<'a>>,
    /// A sentence for each part of the operation that was read differently from how it is written.
    pub(crate) warnings: Vec<String>,
}

impl<'a> Parameters<'a> {
    pub(crate) fn new(document: &'a Document) -> Self {
        Self {
            document,
            known: HashMap::default(),
            referred: HashMap::default(),
            warnings: Vec::new(),
        }
    }

    /// Reads a parameter; one that many operations share, or repeat word for word, is read once.
    fn parameter(&mut self, node: Node<'a>) -> Result<Arc<Parameter>, String> {
        let key = (node.span().file, node.text());
        if let Some(known) = self.known.get(&key) {
            return Ok(Arc::clone(known));
        }
        let before = self.warnings.len();
        let mut read = if self.document.version() == Version::V2_0 {
            swagger2::read_parameter(node)?
        } else {
            parameter::read_parameter(self.document, node, &mut self.warnings)?
        };
        read.default = read_sent_default(self.document, &read);
        let read = Arc::new(read);
        if self.warnings.len() == before {
            self.known.insert(key, Arc::clone(&read));
        }
        Ok(read)
    }

    /// The parameters, references followed, each with what is said of it beside the reference; one
    /// that leads nowhere is left out with a warning.
    pub(crate) fn resolved(&mut self, parameters: &[Node<'a>]) -> Vec<Referred<'a>> {
        let mut found = Vec::with_capacity(parameters.len());
        for node in parameters {
            match self.follow(*node) {
                Ok(referred) => found.push(referred),
                Err(why) => self.warn_of_lost(&why),
            }
        }
        found
    }

    fn warn_of_lost(&mut self, why: &str) {
        self.warnings
            .push(format!("{why}; the tool is served without that parameter"));
    }

    /// Operations of one document refer to the same few parameters, in the same words.
    fn follow(&mut self, node: Node<'a>) -> Result<Referred<'a>, String> {
        const MAX_REMEMBERED_BYTES: usize = 160;
        let key = (node.span().file, node.text());
        let is_short =
            node.text().len() <= MAX_REMEMBERED_BYTES && node.text().contains("\"$ref\"");
        if is_short && let Some(known) = self.referred.get(&key) {
            return Ok(known.clone());
        }
        let referred = (
            self.document.resolve(node)?,
            self.document.said_beside(node),
        );
        if is_short {
            self.referred.insert(key, referred.clone());
        }
        Ok(referred)
    }

    /// The parameters of path item and operation; the operation's replaces the path item's of the
    /// same name and location.
    pub(crate) fn of(
        &mut self,
        shared: &[Referred<'a>],
        own: &[Referred<'a>],
        template: &PathTemplate,
        body: Option<&mut RequestBody>,
    ) -> Vec<Arc<Parameter>> {
        let mut parameters: Vec<Arc<Parameter>> = Vec::with_capacity(shared.len() + own.len());
        let mut indexes: HashMap<(Location, String), usize> = HashMap::default();
        let swagger = self.document.version() == Version::V2_0;
        for (node, said) in shared.iter().chain(own) {
            if swagger && swagger2::is_in_body(*node) {
                continue;
            }
            match self.parameter(*node) {
                Ok(parameter)
                    if parameter.location == Location::Header
                        && parameter::is_withheld_header(&parameter.name) =>
                {
                    let withheld = self.describe_withheld(&parameter.name, body.is_some());
                    self.warnings.extend(withheld);
                }
                Ok(mut parameter) => {
                    if said.is_some() && parameter.description != *said {
                        Arc::make_mut(&mut parameter).description.clone_from(said);
                    }
                    let index = *indexes
                        .entry(parameter.identity())
                        .or_insert(parameters.len());
                    match parameters.get_mut(index) {
                        Some(twin) => *twin = parameter,
                        None => parameters.push(parameter),
                    }
                }
                Err(why) => self.warn_of_lost(&why),
            }
        }
        self.place_in_query(&mut parameters, template);
        let variables: HashSet<&str> = template.variables().collect();
        parameters.retain(|parameter| {
            let name = parameter.name.as_str();
            let stray = parameter.location == Location::Path && !variables.contains(name);
            let mut moved = template.query_variables.iter();
            if stray && !moved.any(|(_, variable)| variable == name) {
                self.warnings.push(format!(
                    "the path has no `{{{name}}}`; that path parameter is left out"
                ));
            }
            !stray
        });
        for variable in template.variables() {
            if !parameters
                .iter()
                .any(|parameter| parameter.is(Location::Path, variable))
            {
                parameters.push(Arc::new(self.undeclared(variable)));
            }
        }
        claim_keys(&mut parameters, body);
        parameters
    }

    /// A variable of the path that no parameter declares.
    fn undeclared(&mut self, variable: &str) -> Parameter {
        self.warnings.push(format!(
            "`{{{variable}}}` of the path is not declared; it is served as a required string"
        ));
        Parameter {
            key: argument_names::sanitize_argument_name(variable),
            name: variable.to_owned(),
            required: true,
            ..Parameter::default()
        }
    }

    /// Makes parameters of the variables in the template's query, independent of where they are
    /// declared, and leaves out those whose value is a constant of the template.
    fn place_in_query(&mut self, parameters: &mut Vec<Arc<Parameter>>, template: &PathTemplate) {
        parameters.retain(|parameter| {
            let is_fixed = parameter.location == Location::Query && template.fixes(&parameter.name);
            if is_fixed && !self.has_one_value(parameter) {
                self.warnings.push(format!(
                    "the path sets `{}` in its query; the query parameter of that name is left out",
                    parameter.name
                ));
            }
            !is_fixed
        });
        for (key, variable) in &template.query_variables {
            let declared = |location| {
                parameters
                    .iter()
                    .position(|parameter| parameter.is(location, variable))
            };
            let mut placed = if let Some(index) = declared(Location::Query) {
                parameters.remove(index)
            } else {
                let of_path = declared(Location::Path).and_then(|index| parameters.get(index));
                Arc::new(moved_to_query(match of_path {
                    Some(of_path) => Parameter::clone(of_path),
                    None => self.undeclared(variable),
                }))
            };
            if placed.name != *key {
                Arc::make_mut(&mut placed).name.clone_from(key);
            }
            parameters.retain(|other| !other.is(Location::Query, key));
            parameters.push(placed);
        }
    }

    /// Returns true if the schema of a parameter allows at most one value.
    fn has_one_value(&self, parameter: &Parameter) -> bool {
        let schema = parameter.schema.map(|schema| self.document.node(schema));
        let schema = schema.and_then(|schema| self.document.object(schema));
        schema.is_some_and(|schema| {
            let values = schema.get("enum").and_then(Node::array);
            schema.get("const").is_some() || values.is_some_and(|values| values.len() <= 1)
        })
    }

    /// Describes for the operator a header parameter that no call gives. OpenAPI 3 ignores
    /// `Accept`, `Content-Type` and `Authorization`; the first two follow from the operation's
    /// media types.
    fn describe_withheld(&self, name: &str, has_body: bool) -> Option<String> {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        let why = if !parameter::is_ignored_header(name) {
            "belongs to the connection, to a coding or to gateways; it is left out".to_owned()
        } else if is("authorization") && !security::declares_schemes(self.document) {
            format!("is a credential, which no call gives; --header-env {name}=VARIABLE sends it")
        } else if is("content-type") && !has_body && self.document.version() == Version::V2_0 {
            "is left out, because the request has no body".to_owned()
        } else {
            return None;
        };
        Some(format!("the header parameter `{name}` {why}"))
    }
}

/// A parameter of the path in the query, written as it would be there: a list stays one text.
fn moved_to_query(mut moved: Parameter) -> Parameter {
    moved.location = Location::Query;
    if let Serialization::Style { style, explode, .. } = &mut moved.serialization {
        (*style, *explode) = (Style::Form, false);
    }
    moved
}

/// Gives a key of its own to each parameter whose name differs from another one's only in
/// punctuation.
fn spell_ambiguous_keys(parameters: &mut [Arc<Parameter>]) {
    if parameters
        .iter()
        .all(|parameter| parameter.key == parameter.name)
    {
        return;
    }
    let mut count: HashMap<String, usize> = HashMap::default();
    for parameter in &*parameters {
        *count.entry(parameter.key.clone()).or_default() += 1;
    }
    for parameter in parameters {
        if parameter.key != parameter.name && count.get(&parameter.key) > Some(&1) {
            let key = argument_names::spell_argument_name(&parameter.name);
            Arc::make_mut(parameter).key = key;
        }
    }
}

/// Makes the keys unique: names that differ only in punctuation get words for it, path parameters
/// keep the bare name, the rest give way by location; `body` is the body's.
fn claim_keys(parameters: &mut [Arc<Parameter>], body: Option<&mut RequestBody>) {
    spell_ambiguous_keys(parameters);
    let mut taken = HashSet::default();
    if body.is_some() {
        taken.insert(BODY.to_owned());
    }
    let mut order: Vec<&mut Arc<Parameter>> = parameters.iter_mut().collect();
    order.sort_by_key(|parameter| match parameter.location {
        Location::Path => 0,
        Location::Query | Location::QueryString => 1,
        Location::Header => 2,
        Location::Cookie => 3,
    });
    for parameter in order {
        let key = argument_names::claim(&mut taken, &parameter.key, parameter.location.as_str());
        if key != parameter.key {
            Arc::make_mut(parameter).key = key;
        }
    }
    if let Some(body) = body.filter(|body| !body.alternatives.is_empty()) {
        body.choice = argument_names::claim(&mut taken, CHOICE, BODY);
    }
}

/// Returns the `default` of a parameter's schema if it is sent for a missing argument: that of
/// every header, and that of any other parameter only if the parameter is required. A server knows
/// the default of what it does not require; headers with a default are the exception, because they
/// name the version of an API that refuses requests without one.
fn read_sent_default(document: &Document, parameter: &Parameter) -> Option<Value> {
    if parameter.location != Location::Header && !parameter.required {
        return None;
    }
    let schema = document.node(parameter.schema?);
    let beside = schema.object().and_then(|schema| schema.get("default"));
    let default = beside
        .or_else(|| document.object(schema)?.get("default"))?
        .value()?;
    is_sendable(&default, parameter.location).then_some(default)
}

/// A default that cannot be sent is not a default: the caller has to give the value.
fn is_sendable(default: &Value, location: Location) -> bool {
    match (default, location) {
        (Value::Null, _) => false,
        (Value::String(text), Location::Path) => !text.is_empty(),
        // RFC 9110 section 5.5.
        (Value::String(text), Location::Header) => {
            !text.is_empty()
                && text
                    .bytes()
                    .all(|byte| byte == b' ' || byte.is_ascii_graphic())
        }
        (Value::Array(_) | Value::Object(_), Location::Path | Location::Header) => false,
        _ => true,
    }
}
