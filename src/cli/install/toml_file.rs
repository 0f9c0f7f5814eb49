//! Edits TOML in place: comments, order and layout of everything else stay.

use serde_json::Value;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table};

/// The value of the entry `name`, as JSON; nothing where there is none.
///
/// # Errors
/// A sentence about what cannot be read.
pub(crate) fn find(text: &str, keys: &[&str], name: &str) -> Result<Option<Value>, String> {
    let document = parse(text)?;
    let mut table = document.as_table();
    for key in keys {
        table = match table.get(key) {
            None => return Ok(None),
            Some(item) => item.as_table().ok_or_else(|| not_a_table(key))?,
        };
    }
    Ok(table.get(name).map(item_as_json))
}

/// The text with the entry added or replaced.
///
/// # Errors
/// As [`find`].
pub(crate) fn put(text: &str, keys: &[&str], name: &str, value: &Value) -> Result<String, String> {
    let mut document = parse(text)?;
    let mut table = document.as_table_mut();
    for key in keys {
        let item = table.entry(key).or_insert_with(|| {
            let mut implied = Table::new();
            implied.set_implicit(true);
            Item::Table(implied)
        });
        table = item.as_table_mut().ok_or_else(|| not_a_table(key))?;
    }
    let mut entry = table_of(value);
    if let Some(Item::Table(before)) = table.get(name) {
        *entry.decor_mut() = before.decor().clone();
    } else if !text.is_empty() {
        entry.decor_mut().set_prefix("\n");
    }
    table.insert(name, Item::Table(entry));
    Ok(document.to_string())
}

/// The text without the entry, and without tables that this leaves empty and that only stood for it.
///
/// # Errors
/// As [`find`].
pub(crate) fn take_out(text: &str, keys: &[&str], name: &str) -> Result<String, String> {
    let mut document = parse(text)?;
    let mut table = document.as_table_mut();
    for key in keys {
        table = match table.get_mut(key) {
            None => return Ok(text.to_owned()),
            Some(item) => item.as_table_mut().ok_or_else(|| not_a_table(key))?,
        };
    }
    table.remove(name);
    Ok(document.to_string())
}

/// The entry alone.
pub(crate) fn snippet(keys: &[&str], name: &str, value: &Value) -> String {
    put("", keys, name, value).unwrap_or_default()
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse::<DocumentMut>().map_err(|error| {
        let message = error.message().to_owned();
        format!("it is not valid TOML: {}", message.lines().next().unwrap_or_default())
    })
}

fn not_a_table(key: &str) -> String {
    format!("`{key}` is not a table")
}

fn table_of(value: &Value) -> Table {
    let members = value.as_object().into_iter().flatten();
    members.map(|(key, value)| (key.as_str(), Item::Value(toml_value(value)))).collect()
}

fn toml_value(value: &Value) -> toml_edit::Value {
    match value {
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => number.as_i64().unwrap_or_default().into(),
        Value::Array(items) => toml_edit::Value::Array(items.iter().map(toml_value).collect::<Array>()),
        Value::Object(members) => {
            let table: InlineTable = members.iter().map(|(key, value)| (key.as_str(), toml_value(value))).collect();
            toml_edit::Value::InlineTable(table)
        }
        Value::String(text) => text.as_str().into(),
        Value::Null => "".into(),
    }
}

fn item_as_json(item: &Item) -> Value {
    match item {
        Item::Value(value) => value_as_json(value),
        Item::Table(table) => table.iter().map(|(key, item)| (key.to_owned(), item_as_json(item))).collect(),
        Item::ArrayOfTables(tables) => tables
            .iter()
            .map(|table| {
                table
                    .iter()
                    .map(|(key, item)| (key.to_owned(), item_as_json(item)))
                    .collect::<Value>()
            })
            .collect(),
        Item::None => Value::Null,
    }
}

fn value_as_json(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => text.value().as_str().into(),
        toml_edit::Value::Integer(number) => (*number.value()).into(),
        toml_edit::Value::Float(number) => (*number.value()).into(),
        toml_edit::Value::Boolean(value) => (*value.value()).into(),
        toml_edit::Value::Datetime(time) => time.value().to_string().into(),
        toml_edit::Value::Array(items) => items.iter().map(value_as_json).collect(),
        toml_edit::Value::InlineTable(table) => table.iter().map(|(key, value)| (key.to_owned(), value_as_json(value))).collect(),
    }
}
