//! Arguments in another place than the input schema has them: under a word for their kind
//! (`{"arguments": {…}}`, `{"path": {…}}`), or properties of the body beside it.
//!
//! An argument moves only if exactly one place fits. If one name is unknown or can be read in two
//! ways, all arguments stay as they are.

use serde_json::Value;

use super::property_names::{declared_properties, letters, respell};
use super::repair::{EmptyArgument, RepairNotes, quote_name};
use crate::json;
use crate::json::JsonObject;
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
struct Placer<'s> {
    operation: &'s Operation,
    /// The names of all arguments.
    arguments: Vec<&'s str>,
    /// The properties that the body declares.
    body: Vec<&'s str>,
}

/// Moves the arguments to the places that `root`, the input schema, has for them; `None` if none
/// moves, or if more than one place fits. `empty` decides if a missing body may be an empty object.
/// `is_valid` checks one argument by itself: an argument that is valid as given keeps its place.
pub(crate) fn place_arguments(
    given: &JsonObject,
    operation: &Operation,
    root: &JsonObject,
    empty: EmptyArgument,
    is_valid: &dyn Fn(&str, &Value) -> bool,
    notes: &mut RepairNotes,
) -> Option<JsonObject> {
    let placer = Placer::new(operation, root)?;
    let mut placed = JsonObject::new();
    for (name, value) in given {
        if name == BODY && placer.is_member(value, is_valid) {
            notes.push(BODY, "was read as the member of that name");
            put_member(BODY, value, &mut placed)?;
        } else {
            placer.place(name, value, &mut placed, notes, 0)?;
        }
    }
    placer.unwrap_body(&mut placed, is_valid, notes);
    let asks_for_body = operation.body.as_ref().is_some_and(|body| body.required)
        && placer.arguments.contains(&BODY);
    let nothing = Value::Object(JsonObject::new());
    // A body that may also be a list or null is not known to be meant as an object.
    let takes_objects_only = || {
        is_valid(BODY, &nothing)
            && !is_valid(BODY, &Value::Null)
            && !is_valid(BODY, &Value::Array(Vec::new()))
    };
    if asks_for_body
        && empty == EmptyArgument::Dropped
        && !placed.contains_key(BODY)
        && takes_objects_only()
    {
        notes.push(BODY, "was sent as an empty object");
        placed.insert(BODY.to_owned(), nothing);
    }
    if placed.get(BODY).is_some_and(|body| !is_valid(BODY, body))
        && let (Some(body), Some(schema)) = (
            placed.get_mut(BODY),
            root.get("properties")
                .and_then(|all| all.get(BODY)?.as_object()),
        )
    {
        respell(body, &[schema], root, &format!("/{BODY}"), notes);
    }
    (placed != *given).then_some(placed)
}

/// Moves the members of the body to it, so that what is wrong with them is said of the same value
/// as if they were given there. What has no place, or more than one, stays as it is; `None` if all
/// stays.
pub(crate) fn gather_members(
    given: &JsonObject,
    operation: &Operation,
    root: &JsonObject,
    is_valid: &dyn Fn(&str, &Value) -> bool,
) -> Option<JsonObject> {
    let placer = Placer::new(operation, root)?;
    let mut gathered = JsonObject::new();
    let mut is_moved = false;
    for (name, value) in given {
        let is_argument = placer.arguments.contains(&name.as_str());
        let property = match placer.readings(name).as_slice() {
            _ if name == BODY => placer.is_member(value, is_valid).then_some(BODY),
            [ArgumentPlace::BodyProperty(property)] if !is_argument && wrapper(name).is_none() => {
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

impl<'s> Placer<'s> {
    /// Returns true if the value that is given as the body is that of its member of the same name.
    fn is_member(&self, value: &Value, is_valid: &dyn Fn(&str, &Value) -> bool) -> bool {
        self.body.contains(&BODY) && object_of(value).is_none() && !is_valid(BODY, value)
    }

    fn new(operation: &'s Operation, root: &'s JsonObject) -> Option<Self> {
        let properties = root.get("properties")?.as_object()?;
        let body = properties.get(BODY).and_then(Value::as_object);
        let schemas = gather_schemas(body.filter(|_| operation.body.is_some()), root);
        Some(Self {
            operation,
            arguments: properties.keys().map(String::as_str).collect(),
            body: declared_properties(&schemas),
        })
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
        let arguments = self
            .arguments
            .iter()
            .filter(|argument| letters(argument) == spelling);
        let body = self
            .body
            .iter()
            .filter(|property| letters(property) == spelling);
        let mut places: Vec<ArgumentPlace<'s>> = arguments
            .map(|argument| ArgumentPlace::Argument(argument))
            .collect();
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
            None => places.extend(body.map(|property| ArgumentPlace::BodyProperty(property))),
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
    fn unwrap_body(
        &self,
        placed: &mut JsonObject,
        is_valid: &dyn Fn(&str, &Value) -> bool,
        notes: &mut RepairNotes,
    ) {
        let Some(Value::Object(body)) = placed.get(BODY) else {
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
        if is_word
            && !is_property
            && fits
            && !inner.is_empty()
            && !placed.get(BODY).is_some_and(|body| is_valid(BODY, body))
        {
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
        Value::String(text) => match json::parse_text(text.trim()).ok()? {
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
