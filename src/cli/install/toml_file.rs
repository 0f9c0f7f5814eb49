//! Edits TOML in place: comments, order and layout of everything else stay.

use std::ops::Range;

use serde_json::Value;
use toml_edit::{Array, Document, DocumentMut, InlineTable, Item, Table};

use super::line_ends::with_line_ends_of;

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

/// The text with the entry added or replaced. A new one goes to the end, so that every other byte stays where it is.
///
/// # Errors
/// As [`find`].
pub(crate) fn put(text: &str, keys: &[&str], name: &str, value: &Value) -> Result<String, String> {
    if text.is_empty() || find(text, keys, name)?.is_some() {
        return insert(text, keys, name, value);
    }
    let line_end = if text.ends_with('\n') { "" } else { "\n" };
    let appended = format!("{text}{line_end}\n{}", snippet(keys, name, value));
    if parse(&appended).is_ok() {
        return Ok(appended);
    }
    // Where the servers are written with dotted keys, a table cannot follow.
    let inserted = insert(text, keys, name, value)?;
    parse(&inserted)
        .map(|_| inserted)
        .map_err(|_| "its servers are not tables with a header each".to_owned())
}

fn insert(text: &str, keys: &[&str], name: &str, value: &Value) -> Result<String, String> {
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
    Ok(with_line_ends_of(text, &document.to_string()))
}

/// The text without the entry and the blank line before it. Comments around it stay.
///
/// # Errors
/// As [`find`].
pub(crate) fn take_out(text: &str, keys: &[&str], name: &str) -> Result<String, String> {
    if let Some(without) = cut_tables(text, keys, name) {
        return Ok(without);
    }
    let mut document = parse(text)?;
    let mut table = document.as_table_mut();
    for key in keys {
        table = match table.get_mut(key) {
            None => return Ok(text.to_owned()),
            Some(item) => item.as_table_mut().ok_or_else(|| not_a_table(key))?,
        };
    }
    table.remove(name);
    Ok(with_line_ends_of(text, &document.to_string()))
}

/// The text without the lines of an entry that has a header of its own; nothing where it is written otherwise.
fn cut_tables(text: &str, keys: &[&str], name: &str) -> Option<String> {
    let document = Document::parse(text).ok()?;
    let mut table = document.as_table();
    for key in keys {
        table = table.get(key)?.as_table()?;
    }
    let mut ranges = Vec::new();
    collect_tables(table.get(name)?.as_table()?, &mut ranges)?;
    ranges.sort_by_key(|range| range.start);
    let mut left = String::with_capacity(text.len());
    let mut done = 0;
    for range in ranges {
        let start = text.get(..range.start)?.rfind('\n').map_or(0, |at| at + 1);
        let end = text.get(range.end..)?.find('\n').map_or(text.len(), |at| range.end + at + 1);
        // A table that has no header of its own has the place of the one inside it.
        if end > done {
            left.push_str(without_blank_line(text.get(done..start.max(done))?));
            done = end;
        }
    }
    left.push_str(text.get(done..)?);
    Some(left)
}

/// Where a table and those below it are written: each from its header to its last value. Nothing where a value stands below no
/// header of its own.
fn collect_tables(table: &Table, ranges: &mut Vec<Range<usize>>) -> Option<()> {
    let mut own = table.span();
    for (_, item) in table {
        match item {
            Item::Value(value) => {
                let own = own.as_mut()?;
                own.end = own.end.max(value.span()?.end);
            }
            Item::Table(inner) if inner.is_dotted() => return None,
            Item::Table(inner) => collect_tables(inner, ranges)?,
            Item::ArrayOfTables(tables) => tables.iter().try_for_each(|inner| collect_tables(inner, ranges))?,
            Item::None => {}
        }
    }
    ranges.extend(own);
    Some(())
}

/// A text without its last line, where that is blank.
fn without_blank_line(text: &str) -> &str {
    let Some(before) = text.strip_suffix('\n') else { return text };
    let before = before.strip_suffix('\r').unwrap_or(before);
    if before.is_empty() || before.ends_with('\n') {
        before
    } else {
        text
    }
}

/// The entry alone.
pub(crate) fn snippet(keys: &[&str], name: &str, value: &Value) -> String {
    insert("", keys, name, value).unwrap_or_default()
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
