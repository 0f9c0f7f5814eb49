//! Arguments in another place than the input schema has them: under a word for their kind
//! (`{"arguments": {…}}`, `{"path": {…}}`), or properties of the body beside it.
//!
//! An argument moves only if exactly one place fits. If one name is unknown or can be read in two
//! ways, all arguments stay as they are.

use serde_json::{Value, json};

use super::property_names::{declared_properties, letters, respell};
use super::repair::{EmptyArgument, RepairNotes, quote_name};
use super::validate::{compile_alone, schema_of};
use crate::json::{JsonObject, parse_text};
use crate::spec::operation::request_body::BODY;
use crate::spec::schema::gather_schemas;
use crate::spec::{Location, Operation, Parameter};

/// Depth to which arguments may be wrapped: `{"arguments": {"path": {…}}}`.
const MAX_WRAPPERS: usize = 3;

/// Meaning of a word that wraps arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ArgumentWrapper {
    /// All arguments.
    Arguments,
    /// The parameters of one place.
    Parameters(Location),
    /// The body.
    Body,
}

/// Place of an argument.
#[derive(PartialEq, Eq)]
enum ArgumentPlace<'s> {
    Argument(&'s str),
    BodyProperty(&'s str),
}

/// Finds the places of arguments by the input schema of an operation.
pub(super) struct Placer<'s> {
    operation: &'s Operation,
    root: &'s JsonObject,
    /// The names of all arguments.
    arguments: Vec<&'s str>,
    /// Judges a body by itself.
    body_validator: Option<jsonschema::Validator>,
    /// The properties that the body declares.
    body: Vec<&'s str>,
}

impl<'s> Placer<'s> {
    /// `root` is the input schema.
    pub(super) fn new(operation: &'s Operation, root: &'s JsonObject) -> Option<Self> {
        let properties = root.get("properties")?.as_object()?;
        let body_schema = properties.get(BODY);
        let body = body_schema.and_then(Value::as_object);
        let schemas = gather_schemas(body.filter(|_| operation.body.is_some()), root);
        Some(Self {
            operation,
            root,
            arguments: properties.keys().map(String::as_str).collect(),
            body_validator: body_schema.and_then(|schema| compile_alone(schema, root).ok()),
            body: declared_properties(&schemas),
        })
    }

    /// Moves the arguments to the places that the input schema has for them; `None` if none moves,
    /// or if more than one place fits. `empty` decides if a missing body may be an empty object. A
    /// body that is valid as given keeps its place.
    pub(super) fn place_arguments(
        &self,
        given: &JsonObject,
        empty: EmptyArgument,
        notes: &mut RepairNotes,
    ) -> Option<JsonObject> {
        let mut placed = JsonObject::new();
        for (name, value) in given {
            if name == BODY && self.is_member(value) {
                notes.push(BODY, "was read as the member of that name");
                put_member(BODY, value, &mut placed)?;
            } else {
                self.place(name, value, &mut placed, notes, 0)?;
            }
        }
        self.unwrap_body(&mut placed, notes);
        let body = self.operation.body.as_ref();
        let asks_for_body =
            body.is_some_and(|body| body.required) && self.arguments.contains(&BODY);
        // A body that may also be a list or null is not known to be meant as an object.
        if asks_for_body
            && empty == EmptyArgument::Dropped
            && !placed.contains_key(BODY)
            && self.takes(&json!({}))
            && !self.takes(&Value::Null)
            && !self.takes(&json!([]))
        {
            notes.push(BODY, "was sent as an empty object");
            placed.insert(BODY.to_owned(), json!({}));
        }
        if let (Some(body), Some(Value::Object(schema))) =
            (placed.get_mut(BODY), schema_of(self.root, BODY))
            && !self.takes(body)
        {
            respell(body, schema, self.root, notes);
        }
        (placed != *given).then_some(placed)
    }

    /// Moves the members of the body to it, so that what is wrong with them is said of the same
    /// value as if they were given there. What has no place, or more than one, stays as it is;
    /// `None` if all stays.
    pub(super) fn gather_members(&self, given: &JsonObject) -> Option<JsonObject> {
        let mut gathered = JsonObject::new();
        let mut is_moved = false;
        for (name, value) in given {
            let is_argument = self.arguments.contains(&name.as_str());
            let property = match self.readings(name).as_slice() {
                _ if name == BODY => self.is_member(value).then_some(BODY),
                [ArgumentPlace::BodyProperty(property)]
                    if !is_argument && wrapper(name).is_none() =>
                {
                    Some(*property)
                }
                _ => None,
            };
            match property.and_then(|property| put_member(property, value, &mut gathered)) {
                Some(()) => is_moved = true,
                None => put(&mut gathered, name, value.clone())?,
            }
        }
        is_moved.then_some(gathered)
    }

    /// Returns true if a body is valid by itself.
    fn takes(&self, body: &Value) -> bool {
        let validator = self.body_validator.as_ref();
        validator.is_some_and(|validator| validator.is_valid(body))
    }

    /// Returns true if the value that is given as the body is that of its member of the same name.
    fn is_member(&self, value: &Value) -> bool {
        self.body.contains(&BODY) && object_of(value).is_none() && !self.takes(value)
    }

    /// Puts one member of the arguments into its place. `None` if it has none, or more than one.
    fn place(
        &self,
        name: &str,
        value: &Value,
        placed: &mut JsonObject,
        notes: &mut RepairNotes,
        depth: usize,
    ) -> Option<()> {
        if let Some(argument) = self.arguments.iter().find(|argument| **argument == name) {
            return put(placed, argument, value.clone());
        }
        let readings = self.readings(name);
        match (readings.as_slice(), wrapper(name)) {
            ([place], None) => put_into(place, name, value, placed, notes),
            ([], Some(wrapper)) if depth < MAX_WRAPPERS => {
                let members = object_of(value).filter(|members| !members.is_empty())?;
                if wrapper == ArgumentWrapper::Body {
                    notes.push(name, &format!("was read as `{BODY}`"));
                    return self
                        .arguments
                        .contains(&BODY)
                        .then(|| put(placed, BODY, Value::Object(members)))?;
                }
                notes.push(name, "was unwrapped");
                for (inner, value) in &members {
                    match wrapper {
                        ArgumentWrapper::Parameters(location) => {
                            put(placed, self.parameter(location, inner)?, value.clone())?;
                        }
                        _ => self.place(inner, value, placed, notes, depth + 1)?,
                    }
                }
                Some(())
            }
            _ => None,
        }
    }

    /// All that a name can mean which is not the name of an argument.
    fn readings(&self, name: &str) -> Vec<ArgumentPlace<'s>> {
        let own = self.parameters().filter(|parameter| parameter.name == name);
        let own: Vec<ArgumentPlace<'s>> = own
            .map(|parameter| ArgumentPlace::Argument(&parameter.key))
            .collect();
        if !own.is_empty() && !self.body.contains(&name) {
            return own;
        }
        let spelling = letters(name);
        if spelling.is_empty() {
            return Vec::new();
        }
        let is_spelled = |name: &&&str| letters(name) == spelling;
        let arguments = self.arguments.iter().filter(is_spelled);
        let mut places: Vec<_> = arguments
            .map(|name| ArgumentPlace::Argument(name))
            .collect();
        let body = self.body.iter().filter(is_spelled);
        let own_name = self
            .operation
            .body
            .as_ref()
            .and_then(|body| body.own_name.as_deref());
        let is_own_name =
            own_name.is_some_and(|own| letters(own) == spelling) && wrapper(name).is_none();
        if is_own_name && self.arguments.contains(&BODY) && spelling != BODY {
            places.push(ArgumentPlace::Argument(BODY));
        }
        // The name itself among properties of the same letters: `type` beside `@type`.
        match body.clone().find(|property| **property == name) {
            Some(property) => places.push(ArgumentPlace::BodyProperty(property)),
            None => places.extend(body.map(|name| ArgumentPlace::BodyProperty(name))),
        }
        places
    }

    /// The parameters that are arguments.
    fn parameters(&self) -> impl Iterator<Item = &'s Parameter> {
        let parameters = self.operation.parameters.iter().map(AsRef::as_ref);
        parameters.filter(|parameter| self.arguments.contains(&parameter.key.as_str()))
    }

    /// The argument of the only parameter there with the letters of that name.
    fn parameter(&self, location: Location, name: &str) -> Option<&'s str> {
        let spelling = letters(name);
        let offered = self
            .parameters()
            .filter(|parameter| parameter.location == location && !spelling.is_empty());
        let mut meant = offered.filter(|parameter| {
            letters(&parameter.name) == spelling || letters(&parameter.key) == spelling
        });
        meant
            .next()
            .filter(|_| meant.next().is_none())
            .map(|parameter| parameter.key.as_str())
    }

    /// Takes a body out of a word that holds nothing but it: `{"body": {"body": {…}}}`.
    fn unwrap_body(&self, placed: &mut JsonObject, notes: &mut RepairNotes) {
        let Some(given @ Value::Object(body)) = placed.get(BODY) else {
            return;
        };
        let mut members = body.iter();
        let (Some((name, Value::Object(inner))), None) = (members.next(), members.next()) else {
            return;
        };
        let is_word = matches!(
            wrapper(name),
            Some(ArgumentWrapper::Arguments | ArgumentWrapper::Body)
        ) || name == BODY;
        let is_property = self
            .body
            .iter()
            .any(|property| letters(property) == letters(name));
        let fits = inner.keys().all(|key| self.body.contains(&key.as_str()));
        if is_word && !is_property && fits && !inner.is_empty() && !self.takes(given) {
            notes.push(&format!("/{BODY}/{name}"), "was unwrapped");
            let inner = Value::Object(inner.clone());
            placed.insert(BODY.to_owned(), inner);
        }
    }
}

fn put_into(
    place: &ArgumentPlace<'_>,
    name: &str,
    value: &Value,
    placed: &mut JsonObject,
    notes: &mut RepairNotes,
) -> Option<()> {
    match place {
        ArgumentPlace::Argument(argument) => {
            notes.push(name, &format!("was read as {}", quote_name(argument)));
            put(placed, argument, value.clone())
        }
        ArgumentPlace::BodyProperty(property) => {
            notes.push(name, &format!("was put into `{BODY}`"));
            put_member(property, value, placed)
        }
    }
}

/// Inserts a member of the body; `None` if it is given already, or if the body is no object.
fn put_member(property: &str, value: &Value, placed: &mut JsonObject) -> Option<()> {
    let body = placed
        .entry(BODY)
        .or_insert_with(|| Value::Object(JsonObject::new()));
    put(body.as_object_mut()?, property, value.clone())
}

/// Inserts an argument; `None` if it is given already.
fn put(into: &mut JsonObject, name: &str, value: Value) -> Option<()> {
    if into.contains_key(name) {
        return None;
    }
    into.insert(name.to_owned(), value);
    Some(())
}

/// Returns an object, also if it was given as JSON text.
fn object_of(value: &Value) -> Option<JsonObject> {
    match value {
        Value::Object(members) => Some(members.clone()),
        Value::String(text) => match parse_text(text.trim()).ok()? {
            Value::Object(members) => Some(members),
            _ => None,
        },
        _ => None,
    }
}

/// The words that models wrap arguments in.
fn wrapper(name: &str) -> Option<ArgumentWrapper> {
    Some(match letters(name).as_str() {
        "arguments" | "args" | "params" | "parameters" | "input" | "toolinput"
        | "toolarguments" => ArgumentWrapper::Arguments,
        "path" | "pathparams" | "pathparameters" => ArgumentWrapper::Parameters(Location::Path),
        "query" | "queryparams" | "queryparameters" => ArgumentWrapper::Parameters(Location::Query),
        "header" | "headers" | "headerparams" | "headerparameters" => {
            ArgumentWrapper::Parameters(Location::Header)
        }
        "cookie" | "cookies" => ArgumentWrapper::Parameters(Location::Cookie),
        "requestbody" => ArgumentWrapper::Body,
        _ => return None,
    })
}
