//! Arguments in another place than the input schema has them: under a word for their kind
//! (`{"arguments": {…}}`, `{"path": {…}}`), or properties of the body beside it.
//!
//! An argument moves only if exactly one place fits. If one name is unknown or can be read in two
//! ways, all arguments stay as they are.
//!
//! Names of properties: as on the wire in place of those that model APIs accept, and names in other
//! letters, such as `pet_id` or `PetID` for `petId`. A name is read as another one only if exactly
//! one is meant.

use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};
use serde_json::{Map, Value, json};

use super::repair::{EmptyArgument, MAX_DEPTH, RepairNotes, is_required, quote_name, walk};
use super::validate::{SchemaValidator, compile_alone, schema_of};
use crate::call_error::CallError;
use crate::json::{JsonObject, parse_text};
use crate::spec::operation::request_body::BODY;
use crate::spec::schema::{NewNames, gather_schemas};
use crate::spec::{Location, Operation, Parameter};
use crate::text::letters;

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
    body_validator: Option<SchemaValidator>,
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
            ([ArgumentPlace::Argument(argument)], None) => {
                notes.push(name, &format!("was read as {}", quote_name(argument)));
                put(placed, argument, value.clone())
            }
            ([ArgumentPlace::BodyProperty(property)], None) => {
                notes.push(name, &format!("was put into `{BODY}`"));
                put_member(property, value, placed)
            }
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

/// Returns the arguments of a call with the names on the wire. `schema` is the input schema, which
/// has `names`.
pub(crate) fn with_wire_names(
    arguments: JsonObject,
    names: Option<&NewNames>,
    schema: &JsonObject,
) -> JsonObject {
    let Some(names) = names else { return arguments };
    let mut value = Value::Object(arguments);
    names.restore(&mut value, schema);
    object(value)
}

/// The arguments of a call with the names of the input schema for properties that were given under
/// their own, so that these are checked as well.
///
/// # Errors
/// A property that is given under both names.
pub(crate) fn with_schema_names(
    arguments: JsonObject,
    names: Option<&NewNames>,
    schema: &JsonObject,
) -> Result<JsonObject, CallError> {
    let Some(names) = names else {
        return Ok(arguments);
    };
    let mut value = Value::Object(arguments);
    names.give_keys(&mut value, schema).map_err(|(own, name)| {
        let (own, name) = (quote_name(&own), quote_name(&name));
        CallError::Arguments(format!(
            "{own} and {name} are the same property; give it once; nothing was sent"
        ))
    })?;
    Ok(object(value))
}

pub(super) fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(arguments) => arguments,
        _ => JsonObject::new(),
    }
}

/// The properties that the schemas of one value declare.
pub(crate) fn declared_properties<'s>(schemas: &[&'s JsonObject]) -> Vec<&'s str> {
    let properties = schemas
        .iter()
        .filter_map(|schema| schema.get("properties")?.as_object());
    let mut seen = HashSet::new();
    properties
        .flat_map(Map::keys)
        .map(String::as_str)
        .filter(|name| seen.insert(*name))
        .collect()
}

/// Gives the members of the objects in a body the names of declared properties, if only such a name
/// can be meant: the object declares no such member, takes no others or lacks the one that is meant,
/// and no two members or properties have the same letters. `schema` describes the body, and `root`
/// has its definitions.
pub(crate) fn respell(
    body: &mut Value,
    schema: &JsonObject,
    root: &JsonObject,
    notes: &mut RepairNotes,
) {
    let place = format!("/{BODY}");
    walk(
        body,
        &[schema],
        root,
        &place,
        MAX_DEPTH,
        &mut |value, schemas, place| {
            if let Value::Object(members) = value {
                rename_members(members, schemas, place, notes);
            }
            true
        },
    );
}

fn rename_members(
    members: &mut JsonObject,
    schemas: &[&JsonObject],
    place: &str,
    notes: &mut RepairNotes,
) {
    let declared = declared_properties(schemas);
    if members.keys().all(|name| declared.contains(&name.as_str())) {
        return;
    }
    let has = |is: &dyn Fn(&JsonObject) -> bool| schemas.iter().any(|schema| is(schema));
    if has(&|schema| schema.contains_key("patternProperties")) {
        return;
    }
    let is_closed = has(&|schema| schema.get("additionalProperties") == Some(&false.into()));
    let is_needed = |name| has(&|schema| is_required(schema, name));
    // The only property, and the only member, of these letters.
    let mut properties: HashMap<String, Option<&str>> = HashMap::new();
    for property in declared {
        let same = properties.entry(letters(property));
        same.and_modify(|only| *only = None)
            .or_insert(Some(property));
    }
    let mut given: HashMap<String, usize> = HashMap::new();
    for name in members.keys() {
        *given.entry(letters(name)).or_default() += 1;
    }
    // Parts of a body are sent in the order of its members.
    let renamed = std::mem::take(members).into_iter().map(|(name, member)| {
        let spelling = letters(&name);
        match properties.get(&spelling).copied().flatten() {
            Some(property)
                if !spelling.is_empty()
                    && name != property
                    && (is_closed || is_needed(property))
                    && given.get(&spelling) == Some(&1) =>
            {
                notes.push(
                    &format!("{place}/{name}"),
                    &format!("was read as {}", quote_name(&format!("{place}/{property}"))),
                );
                (property.to_owned(), member)
            }
            _ => (name, member),
        }
    });
    *members = renamed.collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Document;
    use crate::spec::schema::{SchemaOptions, Schemas};
    use proptest::prelude::*;
    use serde_json::json;

    proptest! {
        #[test]
        fn every_name_comes_back_at_every_depth(names in proptest::collection::hash_set(".{1,80}", 1..12), depth in 0..4_usize) {
            let mut schema = json!({ "type": "string" });
            let mut value = json!("x");
            for _ in 0..=depth {
                let properties: JsonObject = names.iter().map(|name| (name.clone(), schema.clone())).collect();
                let members: JsonObject = names.iter().map(|name| (name.clone(), value.clone())).collect();
                schema = json!({ "type": "object", "properties": properties });
                value = Value::Object(members);
                if depth > 1 && names.len() > 3 {
                    break;
                }
            }
            let text = json!({ "openapi": "3.1.0", "paths": {}, "x": schema }).to_string();
            let document = Document::parse(text.into_bytes(), None).unwrap();
            let mut schemas = Schemas::new(&document);
            let span = document.member("x").unwrap().span();
            let root = JsonObject::from_iter([("properties".to_owned(), json!({ "body": schemas.translate(span) }))]);
            let completed = schemas.complete(root, &SchemaOptions { budget: 1 << 30, inline_all: false });
            // The value as a model would give it: under the advertised names.
            let names = completed.names.unwrap_or_default();
            let (mut given, _) = given(&json!({ "body": value }), &names, &completed.schema);
            names.restore(&mut given, &completed.schema);
            prop_assert_eq!(&given["body"], &value);
        }
    }

    /// Names that would like to be called the same, and some that may keep theirs.
    const NAMES: [&str; 9] = [
        "@type",
        "type",
        "$type",
        "type_property",
        "a b",
        "a_b",
        "a-b",
        "[]",
        "x",
    ];

    fn name() -> impl Strategy<Value = String> + Clone {
        proptest::sample::select(NAMES.to_vec()).prop_map(str::to_owned)
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(json!("s")), Just(json!(1))];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                3 => proptest::collection::btree_map(name(), inner.clone(), 0..4).prop_map(|members| Value::Object(members.into_iter().collect())),
                1 => proptest::collection::vec(inner, 0..3).prop_map(Value::Array),
            ]
        })
    }

    fn any_schema() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!({})),
            Just(json!({"type": "string"})),
            Just(json!({"type": "integer"}))
        ];
        leaf.prop_recursive(4, 48, 4, |inner| {
            let named = proptest::collection::btree_map(name(), inner.clone(), 1..4).boxed();
            let names = proptest::collection::btree_set(name(), 1..3).boxed();
            let branches = proptest::collection::vec(inner.clone(), 1..3).boxed();
            let keyword = prop_oneof![
                8 => named.prop_map(|map| ("properties", json!(map))),
                3 => names.clone().prop_map(|names| ("required", json!(names))),
                2 => (name(), names.clone()).prop_map(|(name, names)| ("dependentRequired", json!({ name: names }))),
                2 => (name(), inner.clone()).prop_map(|(name, schema)| ("dependentSchemas", json!({ name: schema }))),
                1 => names.prop_map(|names| ("propertyNames", json!({"enum": names}))),
                1 => Just(("propertyNames", json!({"pattern": "^[@a-z]"}))),
                1 => inner.clone().prop_map(|schema| ("patternProperties", json!({"^[@t]": schema}))),
                1 => inner.clone().prop_map(|schema| ("additionalProperties", schema)),
                1 => Just(("additionalProperties", json!(false))),
                1 => any_value().prop_map(|value| ("const", value)),
                1 => proptest::collection::vec(any_value(), 1..3).prop_map(|values| ("enum", json!(values))),
                2 => branches.clone().prop_map(|schemas| ("allOf", json!(schemas))),
                2 => branches.clone().prop_map(|schemas| ("anyOf", json!(schemas))),
                1 => branches.prop_map(|schemas| ("prefixItems", json!(schemas))),
                1 => inner.clone().prop_map(|schema| ("items", schema)),
                1 => Just(("$ref", json!("#/components/schemas/A"))),
                1 => Just(("$ref", json!("#/components/schemas/B"))),
            ];
            proptest::collection::vec(keyword, 1..4).prop_map(|keywords| {
                let mut schema: JsonObject = keywords.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
                schema.shift_remove("type");
                Value::Object(schema)
            })
        })
    }

    /// Returns a value under the names that a model gives, and the part of it that can be given
    /// under them: not a member that has the key of another one.
    fn given(value: &Value, names: &NewNames, root: &JsonObject) -> (Value, Value) {
        let (mut given, mut kept) = (value.clone(), value.clone());
        drop_members(&mut kept, &|name| names.is_key(name));
        given.clone_from(&kept);
        names.give_keys(&mut given, root).unwrap();
        (given, kept)
    }

    fn drop_members(value: &mut Value, is_dropped: &dyn Fn(&str) -> bool) {
        match value {
            Value::Object(members) => {
                members.retain(|name, _| !is_dropped(name));
                members
                    .values_mut()
                    .for_each(|member| drop_members(member, is_dropped));
            }
            Value::Array(items) => items
                .iter_mut()
                .for_each(|item| drop_members(item, is_dropped)),
            _ => {}
        }
    }

    /// All property names of a schema, at every depth.
    fn all_legal(schema: &Value) -> bool {
        match schema {
            Value::Object(object) => {
                let own = object
                    .get("properties")
                    .and_then(Value::as_object)
                    .into_iter()
                    .flatten();
                own.into_iter().all(|(name, _)| {
                    crate::spec::argument_names::sanitize_argument_name(name) == *name
                }) && object.values().all(all_legal)
            }
            Value::Array(items) => items.iter().all(all_legal),
            _ => true,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

        #[test]
        fn a_member_has_one_name_in_all_that_describes_it(
            schema in any_schema(), a in any_schema(), b in any_schema(), values in proptest::collection::vec(any_value(), 6), inlines: bool
        ) {
            let (mut a, b) = (a, b);
            if !inlines && let Value::Object(a) = &mut a {
                // What recurses stays a reference.
                a.insert("dependentSchemas".into(), json!({"none": {"properties": {"none": {"$ref": "#/components/schemas/A"}}}}));
            }
            let text = json!({"openapi": "3.1.0", "paths": {}, "x": schema, "components": {"schemas": {"A": a, "B": b}}}).to_string();
            let document = Document::parse(text.clone().into_bytes(), None).unwrap();
            let span = document.member("x").unwrap().span();
            let completed = |mut schemas: Schemas<'_>| {
                let root = JsonObject::from_iter([("properties".to_owned(), json!({ "body": schemas.translate(span) }))]);
                schemas.complete(root, &SchemaOptions { budget: 1 << 30, inline_all: false })
            };
            let (plain, advertised) = (completed(Schemas::for_output(&document)), completed(Schemas::new(&document)));
            let names = advertised.names.unwrap_or_default();
            let root = advertised.schema;
            let (plain, schema) = (Value::Object(plain.schema), Value::Object(root.clone()));
            // A name that is never declared as a property may stay what it is.
            prop_assert!(all_legal(&schema["properties"]), "{schema}");
            for value in values {
                let (given, kept) = given(&json!({ "body": value }), &names, &root);
                let mut restored = given.clone();
                names.restore(&mut restored, &root);
                prop_assert_eq!(&restored, &kept, "{}", schema);
                let (before, after) = (jsonschema::is_valid(&plain, &kept), jsonschema::is_valid(&schema, &given));
                let exact = !["pattern", "const", "enum"].iter().any(|word| text.contains(word));
                prop_assert!(if exact { before == after } else { after || !before }, "{} {}\n{}\n{}", kept, given, plain, schema);
            }
        }
    }
}
