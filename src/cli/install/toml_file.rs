//! Edits TOML in place. An entry is a table with a header of its own.

use std::ops::Range;

use serde_json::Value;
use toml_edit::{Array, Document, InlineTable, Item, Table};

use super::splice::{Splice, line_before, splice, without_line_end};

/// Returns the value of the entry `name`, as JSON; `None` if there is no such entry.
///
/// # Errors
/// A sentence about what cannot be read.
pub(super) fn find(text: &str, keys: &[&str], name: &str) -> Result<Option<Value>, String> {
    let document: Value =
        toml_edit::de::from_str(text).map_err(|error| not_valid(error.message()))?;
    let mut servers = &document;
    for key in keys {
        servers = match servers.get(key) {
            None => return Ok(None),
            Some(table) if table.is_object() => table,
            Some(_) => return Err(format!("`{key}` is not a table")),
        };
    }
    Ok(servers.get(name).cloned())
}

/// The text with the entry replaced, or added at the end.
///
/// # Errors
/// As [`find`]; the entry has no header of its own.
pub(super) fn put(text: &str, keys: &[&str], name: &str, value: &Value) -> Result<String, String> {
    let entry = snippet(keys, name, value);
    let mut lines = lines_of(text, keys, name)?;
    if let Some((_, new)) = lines.first_mut() {
        *new = entry;
        return Ok(splice(text, lines));
    }
    let gap = match text {
        "" => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    Ok(splice(
        text,
        vec![(text.len()..text.len(), format!("{gap}{entry}"))],
    ))
}

/// The text without the entry and the blank line before it. Comments around it stay.
///
/// # Errors
/// As [`put`].
pub(super) fn take_out(text: &str, keys: &[&str], name: &str) -> Result<String, String> {
    let mut lines = lines_of(text, keys, name)?;
    for (range, _) in &mut lines {
        let before = without_line_end(text.get(..range.start).unwrap_or_default());
        if before.is_empty() || before.ends_with('\n') {
            range.start = before.len();
        }
    }
    Ok(splice(text, lines))
}

/// The entry alone.
pub(super) fn snippet(keys: &[&str], name: &str, value: &Value) -> String {
    let mut text = format!("[{}.{name}]\n", keys.join("."));
    for (key, value) in value.as_object().into_iter().flatten() {
        text.push_str(&format!("{key} = {}\n", toml_value(value)));
    }
    text
}

/// The lines of an entry, to be removed: those of its table, and of the tables below it.
fn lines_of(text: &str, keys: &[&str], name: &str) -> Result<Vec<Splice>, String> {
    let document = Document::parse(text).map_err(|error| not_valid(error.message()))?;
    let mut item = document.as_item();
    for key in [keys, &[name]].concat() {
        match item.get(key) {
            None => return Ok(Vec::new()),
            Some(next) => item = next,
        }
    }
    let mut ranges = Vec::new();
    let found = item
        .as_table()
        .and_then(|table| collect_tables(table, &mut ranges));
    found.ok_or_else(|| format!("`{name}` is not a table with a header of its own"))?;
    ranges.sort_by_key(|range| range.start);
    let whole_lines = |range: Range<usize>| {
        let rest = text.get(range.end..).unwrap_or_default();
        let end = range.end + rest.find('\n').map_or(rest.len(), |at| at + 1);
        (
            range.start - line_before(text, range.start).len()..end,
            String::new(),
        )
    };
    Ok(ranges.into_iter().map(whole_lines).collect())
}

/// Collects the ranges of a table and those below it: each from its header to its last value.
/// `None` if a value has no header of its own.
fn collect_tables(table: &Table, ranges: &mut Vec<Range<usize>>) -> Option<()> {
    if table.is_dotted() {
        return None;
    }
    let mut own = table.span();
    for (_, item) in table {
        match item {
            Item::Value(value) => {
                let own = own.as_mut()?;
                own.end = own.end.max(value.span()?.end);
            }
            Item::Table(inner) => collect_tables(inner, ranges)?,
            Item::ArrayOfTables(tables) => tables
                .iter()
                .try_for_each(|inner| collect_tables(inner, ranges))?,
            Item::None => {}
        }
    }
    ranges.extend(own);
    Some(())
}

fn not_valid(message: &str) -> String {
    format!(
        "it is not valid TOML: {}",
        message.lines().next().unwrap_or_default()
    )
}

fn toml_value(value: &Value) -> toml_edit::Value {
    match value {
        Value::Bool(value) => (*value).into(),
        Value::Array(items) => items.iter().map(toml_value).collect::<Array>().into(),
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(key, value)| (key.as_str(), toml_value(value)));
            members.collect::<InlineTable>().into()
        }
        Value::String(text) => text.as_str().into(),
        other => other.to_string().into(),
    }
}
