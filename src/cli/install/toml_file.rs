//! Edits TOML. An entry is a table with a header of its own.

use serde::Serialize as _;
use serde_json::Value;
use toml_edit::ser::ValueSerializer;
use toml_edit::{DocumentMut, Item, Table};

/// Reads the whole file.
///
/// # Errors
/// A sentence about what cannot be read.
pub(super) fn read(text: &str) -> Result<Value, String> {
    toml_edit::de::from_str(text).map_err(|error| not_valid(error.message()))
}

/// The text with the entry set, or without it.
///
/// # Errors
/// As [`read`]; the entry has no header of its own.
pub(super) fn set(
    text: &str,
    keys: &[&str],
    name: &str,
    value: Option<&Value>,
) -> Result<String, String> {
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error: toml_edit::TomlError| not_valid(error.message()))?;
    let mut table = document.as_table_mut();
    let no_header = |key: &str| format!("`{key}` is not a table with a header of its own");
    for key in keys {
        let implicit = || {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        };
        let next = table.entry(key).or_insert_with(implicit).as_table_mut();
        table = next
            .filter(|table| !table.is_dotted())
            .ok_or_else(|| no_header(key))?;
    }
    let old = match table.get(name) {
        Some(Item::Table(old)) if !old.is_dotted() => Some(old.clone()),
        None => None,
        Some(_) => return Err(no_header(name)),
    };
    if let Some(value) = value {
        let mut entry = old.unwrap_or_default();
        entry.clear();
        for (key, value) in value.as_object().into_iter().flatten() {
            let value = value.serialize(ValueSerializer::new());
            entry.insert(key, Item::Value(value.map_err(|error| error.to_string())?));
        }
        table.insert(name, Item::Table(entry));
    } else {
        table.remove(name);
    }
    Ok(with_line_ends_of(text, &document.to_string()))
}

/// The entry alone.
pub(super) fn snippet(keys: &[&str], name: &str, value: &Value) -> String {
    set("", keys, name, Some(value)).unwrap_or_else(|why| why)
}

/// The new text with the line ends of the old one: `toml_edit` ends each line with LF.
fn with_line_ends_of(before: &str, after: &str) -> String {
    let line_end = if before.contains("\r\n") {
        "\r\n"
    } else {
        "\n"
    };
    let (old, new): (Vec<&str>, Vec<&str>) = (
        before.split_inclusive('\n').collect(),
        after.lines().collect(),
    );
    let is_same = |(old, new): &(&&str, &&str)| old.trim_end_matches(['\r', '\n']) == **new;
    let start = old.iter().zip(&new).take_while(is_same).count();
    let ends = old.iter().skip(start).rev();
    let end = ends.zip(new.iter().skip(start).rev()).take_while(is_same);
    let end = end.count();
    let changed = new.iter().take(new.len() - end).skip(start);
    let changed = changed.flat_map(|line| [*line, line_end]);
    let kept = old.iter().copied();
    kept.clone()
        .take(start)
        .chain(changed)
        .chain(kept.skip(old.len() - end))
        .collect()
}

fn not_valid(message: &str) -> String {
    format!(
        "it is not valid TOML: {}",
        message.lines().next().unwrap_or_default()
    )
}
