//! Replies as Markdown: a list of objects becomes a table, which takes fewer tokens than JSON,
//! because it has each name once.
//!
//! # Adding a format of replies
//!
//! - A variant of `ReplyFormat` in `spec/operation/response_rule.rs`.
//! - Its word: `FORMATS` in `config/overrides/response.rs`, and `FormatSchema` there.
//! - `render_as_text` in `proxy/response/table.rs` writes it; `render_shaped` in
//!   `proxy/response/shaped_result.rs` decides what becomes of a reply that has no such form.
//! - `ruled_output` in `annotate/overrides/ruled_output.rs` makes the output schema.

use serde_json::{Map, Value};

use super::Response;
use super::render::json_text;
use super::result_notes::NoteKind;
use super::tool_result::{TextForm, ToolResult};
use super::truncate::Loss;
use crate::json;
use crate::spec::operation::response_rule::ReplyFormat;

/// A text, and how many rows of how many are in it.
struct Written {
    text: String,
    kept: usize,
    of: usize,
}

/// Makes the result of a successful reply in that form; `None` if the reply is not of a kind that
/// has it. A text of more than `max_bytes` is cut between rows; 0 is no limit.
pub(crate) fn render_as_text(
    format: ReplyFormat,
    response: &Response,
    max_bytes: usize,
) -> Option<ToolResult> {
    if !response.status.is_success() {
        return None;
    }
    let value = json::parse_text(&json_text(response)?).ok()?;
    let room = if max_bytes == 0 {
        usize::MAX
    } else {
        max_bytes
    };
    let written = match (format, &value) {
        (ReplyFormat::Table | ReplyFormat::Markdown, Value::Array(rows)) => table(rows, room)?,
        (ReplyFormat::Table, Value::Object(members)) => with_table(members, room)?,
        (ReplyFormat::Markdown, Value::Object(members)) => list(members, room),
        _ => return None,
    };
    let mut result = ToolResult::of_text(written.text, TextForm::Plain);
    if written.kept < written.of {
        let note = format!(
            "The reply was cut, because it is longer than a result may be: {} of {} rows are shown.",
            written.kept, written.of
        );
        result.note(NoteKind::Cut, note);
        result.set_losses(vec![Loss {
            pointer: String::new(),
            kept: written.kept,
            of: written.of,
            what: "rows",
        }]);
    }
    Some(result)
}

/// Writes the table of a list of objects; `None` if it is not one. The columns have the order of
/// the rows' members.
fn table(rows: &[Value], room: usize) -> Option<Written> {
    let rows: Vec<&Map<String, Value>> =
        rows.iter().map(Value::as_object).collect::<Option<_>>()?;
    let mut columns: Vec<&str> = Vec::new();
    let mut known: std::collections::HashSet<&str> = std::collections::HashSet::new();
    for name in rows.iter().flat_map(|row| row.keys()) {
        if known.insert(name) {
            columns.push(name);
        }
    }
    if columns.is_empty() {
        return None;
    }
    let line = |cells: Vec<String>| format!("|{}|\n", cells.join("|"));
    let mut text = line(columns.iter().map(|name| escaped(name)).collect());
    text.push_str(&line(columns.iter().map(|_| "-".to_owned()).collect()));
    let mut kept = 0;
    for row in &rows {
        let next = line(
            columns
                .iter()
                .map(|name| row.get(*name).map(cell).unwrap_or_default())
                .collect(),
        );
        if text.len() + next.len() > room {
            break;
        }
        text.push_str(&next);
        kept += 1;
    }
    text.truncate(text.trim_end().len());
    Some(Written {
        text,
        kept,
        of: rows.len(),
    })
}

/// Writes an object whose only list of objects is a table, with the other members before it.
fn with_table(members: &Map<String, Value>, room: usize) -> Option<Written> {
    let is_table = |value: &Value| {
        value
            .as_array()
            .is_some_and(|rows| !rows.is_empty() && rows.iter().all(Value::is_object))
    };
    let mut tables = members.iter().filter(|(_, value)| is_table(value));
    let ((name, rows), None) = (tables.next()?, tables.next()) else {
        return None;
    };
    let mut text = String::new();
    for (other, value) in members.iter().filter(|(other, _)| *other != name) {
        text.push_str(&format!("{}: {}\n", escaped(other), cell(value)));
    }
    text.push_str(&format!("{}:\n\n", escaped(name)));
    let table = table(rows.as_array()?, room.saturating_sub(text.len()))?;
    text.push_str(&table.text);
    Some(Written { text, ..table })
}

/// Writes the members of an object, each in a line or, if it is a list of objects, as a table.
fn list(members: &Map<String, Value>, room: usize) -> Written {
    let (mut text, mut kept) = (String::new(), 0);
    for (name, value) in members {
        let left = room.saturating_sub(text.len());
        let table = value
            .as_array()
            .filter(|rows| !rows.is_empty())
            .and_then(|rows| table(rows, left));
        let next = match table {
            Some(table) if table.kept < table.of => break,
            Some(table) => format!("\n{}:\n\n{}\n\n", escaped(name), table.text),
            None => format!("- {}: {}\n", escaped(name), cell(value)),
        };
        if next.len() > left {
            break;
        }
        text.push_str(&next);
        kept += 1;
    }
    text.truncate(text.trim_end().len());
    Written {
        text,
        kept,
        of: members.len(),
    }
}

/// A value in a cell: a text as it is, `null` as that word, and what is nested as JSON.
fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => escaped(text),
        other => escaped(&other.to_string()),
    }
}

/// A text in one line, without what would end a cell or begin code.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '|' => out.push_str("\\|"),
            '`' => out.push_str("\\`"),
            '\r' => {}
            '\n' | '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{b}' | '\u{c}' => out.push_str("<br>"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rows_of_different_objects_share_their_columns() {
        let rows = json!([{"a": 1, "b": "x|y"}, {"b": "two\nlines", "c": {"d": [1]}}, {"a": null, "c": "`code`"}]);
        let written = table(rows.as_array().unwrap(), usize::MAX).unwrap();
        assert_eq!(
            written.text,
            "|a|b|c|\n|-|-|-|\n|1|x\\|y||\n||two<br>lines|{\"d\":[1]}|\n|null||\\`code\\`|"
        );
        let cut = table(rows.as_array().unwrap(), 32).unwrap();
        assert_eq!((cut.kept, cut.of), (1, 3));
        assert!(table(json!([1, 2]).as_array().unwrap(), usize::MAX).is_none());
    }
}
