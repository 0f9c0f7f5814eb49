//! The arguments on the command line of a call. Plain values stay text here; what the schema wants
//! as a number, a list or an object is read as that on the way, exactly as for a client that gives
//! text.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::json::JsonObject;
use crate::spec::operation::request_body::BODY;
use crate::spec::schema::{gather_schemas, resolve_reference};

/// Arguments as they are given, before the tool is known.
#[derive(Default)]
pub(super) struct GivenArguments {
    /// All of them, as one JSON object.
    whole: JsonObject,
    /// The keys in their order, each with all its values.
    single: Vec<(String, Vec<GivenValue>)>,
}

/// Value of a key.
enum GivenValue {
    Value(Value),
    /// The bytes of a file, and its name.
    File(Vec<u8>, String),
}

impl GivenArguments {
    /// Reads `--args` and the arguments with keys, which are put over it.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub(super) fn read(whole: Option<&str>, single: &[String]) -> Result<Self, String> {
        let mut given = Self::default();
        if let Some(text) = whole {
            given.whole = serde_json::from_str(text)
                .map_err(|error| format!("--args is not a JSON object: {error}"))?;
        }
        for argument in single {
            let (key, value) = read_argument(argument)?;
            match given.single.iter_mut().find(|(known, _)| known == key) {
                Some((_, values)) => values.push(value),
                None => given.single.push((key.to_owned(), vec![value])),
            }
        }
        Ok(given)
    }

    /// The arguments of a tool with that input schema. `body.a.b=1` goes into the argument `body`,
    /// unless the tool has an argument of that name; a key that is given several times is a list.
    ///
    /// # Errors
    /// A sentence that says which key is given twice, although it is not that of a list.
    pub(super) fn of_tool(self, schema: &JsonObject) -> Result<JsonObject, String> {
        let properties = schema.get("properties").and_then(Value::as_object);
        let is_member = |key: &str| {
            let is_argument = properties.is_some_and(|properties| properties.contains_key(key));
            let rest = key.strip_prefix(BODY).filter(|_| !is_argument);
            rest.is_some_and(|rest| rest.starts_with('.'))
        };
        let mut arguments = self.whole;
        let (members, plain): (Vec<_>, Vec<_>) =
            self.single.into_iter().partition(|(key, _)| is_member(key));
        for (key, values) in plain {
            let value = one_value(schema, &key, &[&key], values)?;
            arguments.insert(key, value);
        }
        for (key, values) in members {
            // No schema nests deeper.
            let path: Vec<&str> = key.splitn(64, '.').collect();
            let value = one_value(schema, &key, &path, values)?;
            put(&mut arguments, &key, &path, value);
        }
        Ok(arguments)
    }
}

impl GivenValue {
    /// The value as a client would give it: of a file for an argument that takes one, also its name;
    /// else its text, or base64 of what is not text.
    fn into_json(self, takes_file: bool) -> Value {
        match self {
            Self::Value(value) => value,
            Self::File(bytes, name) if takes_file => {
                json!({ "data": STANDARD.encode(bytes), "filename": name })
            }
            Self::File(bytes, _) => String::from_utf8(bytes)
                .unwrap_or_else(|error| STANDARD.encode(error.as_bytes()))
                .into(),
        }
    }
}

/// The value of a key: its only one, or a list of all if the property at that path takes one.
fn one_value(
    schema: &JsonObject,
    key: &str,
    path: &[&str],
    values: Vec<GivenValue>,
) -> Result<Value, String> {
    let own = property_at(schema, path);
    let is_file = own.is_some_and(takes_file);
    let mut values: Vec<Value> = values
        .into_iter()
        .map(|value| value.into_json(is_file))
        .collect();
    match values.pop() {
        Some(value) if values.is_empty() => Ok(value),
        Some(last) if own.is_some_and(|own| takes_list(own, schema)) => {
            values.push(last);
            Ok(Value::Array(values))
        }
        _ => Err(format!("`{key}` is given twice, and takes one value")),
    }
}

fn read_argument(argument: &str) -> Result<(&str, GivenValue), String> {
    let (key, value) = argument.split_once('=').ok_or_else(|| {
        let whole = if argument.starts_with('{') {
            ", or --args JSON for all arguments"
        } else {
            ""
        };
        format!("`{argument}` is not an argument; write key=value{whole}")
    })?;
    Ok(match (key.strip_suffix(':'), value.strip_prefix('@')) {
        (Some(key), Some(path)) => {
            return Err(format!(
                "the value of `{key}` is not JSON; for the text of a file, write {key}=@{path}"
            ));
        }
        (Some(key), None) => {
            let json = serde_json::from_str(value).map_err(|error| {
                format!(
                    "the value of `{key}` is not JSON: {error}; for plain text, write {key}={value}"
                )
            })?;
            (key, GivenValue::Value(json))
        }
        (None, Some(path)) => {
            let bytes =
                std::fs::read(path).map_err(|error| format!("`{path}` cannot be read: {error}"))?;
            let name = Path::new(path).file_name().unwrap_or_default();
            (
                key,
                GivenValue::File(bytes, name.to_string_lossy().into_owned()),
            )
        }
        (None, None) => (key, GivenValue::Value(value.into())),
    })
}

/// Puts a value into the body. A body that is given as another value than an object stays, and so
/// does the key, which is reported then.
fn put(arguments: &mut JsonObject, key: &str, path: &[&str], value: Value) {
    if arguments.get(BODY).is_some_and(|body| !body.is_object()) {
        arguments.insert(key.to_owned(), value);
        return;
    }
    let body = arguments
        .entry(BODY)
        .or_insert_with(|| Value::Object(JsonObject::new()));
    put_member(body, path.iter().skip(1).copied(), value);
}

/// Puts a value at the end of a path of names, through objects that are made on the way.
fn put_member<'n>(place: &mut Value, mut path: impl Iterator<Item = &'n str>, value: Value) {
    let Some(name) = path.next() else {
        *place = value;
        return;
    };
    if !place.is_object() {
        *place = Value::Object(JsonObject::new());
    }
    if let Some(object) = place.as_object_mut() {
        put_member(object.entry(name).or_insert(Value::Null), path, value);
    }
}

/// The schema of the property at a path of names.
fn property_at<'s>(schema: &'s JsonObject, path: &[&str]) -> Option<&'s JsonObject> {
    path.iter().try_fold(schema, |place, name| {
        resolve_reference(place.get("properties")?.get(*name)?, schema)
    })
}

/// Returns true if a schema is that of a file, which may have a name.
fn takes_file(schema: &JsonObject) -> bool {
    let has = |name| {
        schema
            .get("properties")
            .is_some_and(|properties| properties.get(name).is_some())
    };
    has("data") && has("filename") && has("mediaType")
}

/// Returns true if a list may fit a schema: it, or one that describes the same value, declares one.
fn takes_list(schema: &JsonObject, root: &JsonObject) -> bool {
    let is_list = |schema: &&JsonObject| match schema.get("type") {
        Some(Value::String(kind)) => kind == "array",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "array"),
        _ => false,
    };
    gather_schemas([schema], root).iter().any(is_list)
}
