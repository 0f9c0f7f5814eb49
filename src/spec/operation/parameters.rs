//! The parameters of one operation: the path item's and its own, each with the argument that feeds
//! it.

use std::cell::RefCell;
use std::collections::BTreeMap;
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
    known: RefCell<HashMap<(u32, &'a str), Arc<Parameter>>>,
    /// Targets of references, by the text of the parameter and the file that contains it.
    referred: RefCell<HashMap<(u32, &'a str), Referred<'a>>>,
}

impl<'a> Parameters<'a> {
    pub(crate) fn new(document: &'a Document) -> Self {
        Self {
            document,
            known: RefCell::default(),
            referred: RefCell::default(),
        }
    }

    /// Reads a parameter; one that many operations share, or repeat word for word, is read once.
    fn parameter(
        &self,
        node: Node<'a>,
        warnings: &mut Vec<String>,
    ) -> Result<Arc<Parameter>, String> {
        let key = (node.span().file, node.text());
        if let Some(known) = self.known.borrow().get(&key) {
            return Ok(Arc::clone(known));
        }
        let before = warnings.len();
        let mut read = if self.document.version() == Version::V2_0 {
            swagger2::read_parameter(node)?
        } else {
            parameter::read_parameter(self.document, node, warnings)?
        };
        read.default = read_sent_default(self.document, &read);
        let read = Arc::new(read);
        if warnings.len() == before {
            self.known.borrow_mut().insert(key, Arc::clone(&read));
        }
        Ok(read)
    }

    /// The parameters, references followed, each with what is said of it beside the reference; one
    /// that leads nowhere is left out with a warning.
    pub(crate) fn resolved(
        &self,
        parameters: &[Node<'a>],
        warnings: &mut Vec<String>,
    ) -> Vec<Referred<'a>> {
        let mut found = Vec::with_capacity(parameters.len());
        for node in parameters {
            match self.follow(*node) {
                Ok(referred) => found.push(referred),
                Err(why) => {
                    warnings.push(format!("{why}; the tool is served without that parameter"));
                }
            }
        }
        found
    }

    /// Operations of one document refer to the same few parameters, in the same words.
    fn follow(&self, node: Node<'a>) -> Result<Referred<'a>, String> {
        const MAX_REMEMBERED_BYTES: usize = 160;
        if node.text().len() > MAX_REMEMBERED_BYTES || !node.text().contains("\"$ref\"") {
            return Ok((
                self.document.resolve(node)?,
                self.document.said_beside(node),
            ));
        }
        let key = (node.span().file, node.text());
        if let Some(known) = self.referred.borrow().get(&key) {
            return Ok(known.clone());
        }
        let referred = (
            self.document.resolve(node)?,
            self.document.said_beside(node),
        );
        self.referred.borrow_mut().insert(key, referred.clone());
        Ok(referred)
    }

    /// The parameters of path item and operation; the operation's replaces the path item's of the
    /// same name and location.
    pub(crate) fn of(
        &self,
        shared: &[Referred<'a>],
        own: &[Referred<'a>],
        template: &PathTemplate,
        body: Option<&mut RequestBody>,
        warnings: &mut Vec<String>,
    ) -> Vec<Arc<Parameter>> {
        let mut parameters: Vec<Arc<Parameter>> = Vec::with_capacity(shared.len() + own.len());
        let mut indexes: HashMap<(Location, String), usize> = HashMap::default();
        let swagger = self.document.version() == Version::V2_0;
        for (node, said) in shared.iter().chain(own) {
            let place = || node.object().and_then(|object| object.text("in"));
            if swagger && place().is_some_and(|place| swagger2::is_in_body(&place)) {
                continue;
            }
            let read = self.parameter(*node, warnings);
            match read {
                Ok(parameter)
                    if parameter.location == Location::Header
                        && parameter::is_withheld_header(&parameter.name) =>
                {
                    warnings.extend(self.describe_withheld(&parameter.name, body.is_some()));
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
                Err(why) => {
                    warnings.push(format!("{why}; the tool is served without that parameter"));
                }
            }
        }
        self.place_in_query(&mut parameters, template, warnings);
        let variables: HashSet<&str> = template.variables().collect();
        parameters.retain(|parameter| {
            let stray = parameter.location == Location::Path
                && !variables.contains(parameter.name.as_str());
            let is_moved = || {
                template
                    .query_variables
                    .iter()
                    .any(|(_, name)| *name == parameter.name)
            };
            if stray && !is_moved() {
                warnings.push(format!(
                    "the path has no `{{{}}}`; that path parameter is left out",
                    parameter.name
                ));
            }
            !stray
        });
        for variable in template.variables() {
            if !parameters
                .iter()
                .any(|parameter| parameter.location == Location::Path && parameter.name == variable)
            {
                warnings.push(describe_undeclared(variable));
                parameters.push(Arc::new(undeclared(variable)));
            }
        }
        claim_keys(&mut parameters, body);
        parameters
    }
}

impl Parameters<'_> {
    /// Makes parameters of the variables in the template's query, independent of where they are
    /// declared, and leaves out those whose value is a constant of the template.
    fn place_in_query(
        &self,
        parameters: &mut Vec<Arc<Parameter>>,
        template: &PathTemplate,
        warnings: &mut Vec<String>,
    ) {
        parameters.retain(|parameter| {
            let is_fixed = parameter.location == Location::Query && template.fixes(&parameter.name);
            if is_fixed && !self.has_one_value(parameter) {
                warnings.push(format!(
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
                if of_path.is_none() {
                    warnings.push(describe_undeclared(variable));
                }
                Arc::new(of_path.map_or_else(
                    || moved_to_query(&undeclared(variable)),
                    |of_path| moved_to_query(of_path),
                ))
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
            let values = schema.array("enum");
            schema.get("const").is_some() || values.is_some_and(|values| values.len() <= 1)
        })
    }

    /// Describes for the operator a header parameter that no call gives. OpenAPI 3 ignores
    /// `Accept`, `Content-Type` and `Authorization`; the first two follow from the operation's
    /// media types.
    fn describe_withheld(&self, name: &str, has_body: bool) -> Option<String> {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if !parameter::is_ignored_header(name) {
            Some(format!(
                "the header parameter `{name}` belongs to the connection, to a coding or to gateways; it is left out"
            ))
        } else if is("authorization") && !security::declares_schemes(self.document) {
            Some(format!(
                "the header parameter `{name}` is a credential, which no call gives; --header-env {name}=VARIABLE sends it"
            ))
        } else if is("content-type") && !has_body && self.document.version() == Version::V2_0 {
            Some(format!(
                "the header parameter `{name}` is left out, because the request has no body"
            ))
        } else {
            None
        }
    }
}

fn describe_undeclared(variable: &str) -> String {
    format!("`{{{variable}}}` of the path is not declared; it is served as a required string")
}

/// A parameter of the path in the query, written as it would be there: a list stays one text.
fn moved_to_query(parameter: &Parameter) -> Parameter {
    let mut moved = parameter.clone();
    moved.location = Location::Query;
    if let Serialization::Style { style, explode, .. } = &mut moved.serialization {
        (*style, *explode) = (Style::Form, false);
    }
    moved
}

fn undeclared(variable: &str) -> Parameter {
    Parameter {
        key: argument_names::sanitize_argument_name(variable),
        name: variable.to_owned(),
        location: Location::Path,
        required: true,
        description: None,
        deprecated: false,
        serialization: Serialization::Style {
            style: Style::Simple,
            explode: false,
            allow_reserved: false,
        },
        schema: None,
        default: None,
        allow_empty: false,
        slashes: false,
        inner_separators: Vec::new(),
    }
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
    let is_ambiguous = |parameter: &&mut Arc<Parameter>| {
        parameter.key != parameter.name && count.get(&parameter.key).is_some_and(|count| *count > 1)
    };
    for parameter in parameters.iter_mut().filter(is_ambiguous) {
        let key = argument_names::spell_argument_name(&parameter.name);
        Arc::make_mut(parameter).key = key;
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
    let mut order: BTreeMap<(u8, usize), &mut Arc<Parameter>> = BTreeMap::new();
    for (index, parameter) in parameters.iter_mut().enumerate() {
        let rank = match parameter.location {
            Location::Path => 0,
            Location::Query | Location::QueryString => 1,
            Location::Header => 2,
            Location::Cookie => 3,
        };
        order.insert((rank, index), parameter);
    }
    for parameter in order.into_values() {
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
