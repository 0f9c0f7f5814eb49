//! Edits JSON in place, with comments if the client takes them.

use jsonc_parser::ast::{Object, ObjectProp};
use jsonc_parser::common::Range;
use jsonc_parser::tokens::{Token, TokenAndRange};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde::Serialize as _;
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};

use super::place::FileFormat;
use super::splice::{Splice, line_before, splice, without_line_end};

/// Returns the value of the entry `name`; `None` if there is no such entry.
///
/// # Errors
/// A sentence about what cannot be read.
pub(super) fn find(
    text: &str,
    format: FileFormat,
    keys: &[&str],
    name: &str,
) -> Result<Option<Value>, String> {
    let parsed = JsonText::parse(text, format)?;
    let Some((object, [])) = parsed.descend(keys)? else {
        return Ok(None);
    };
    Ok(member(object, name)?.map(|found| found.value.clone().into()))
}

/// The text with the entry added or replaced.
///
/// # Errors
/// As [`find`].
pub(super) fn put(
    text: &str,
    format: FileFormat,
    keys: &[&str],
    name: &str,
    value: &Value,
) -> Result<String, String> {
    let parsed = JsonText::parse(text, format)?;
    let nested = |keys: &[&str]| {
        keys.iter().rev().fold(
            value.clone(),
            |inner, key| serde_json::json!({ *key: inner }),
        )
    };
    let Some((object, missing)) = parsed.descend(keys)? else {
        let object = nested(&[keys, &[name]].concat());
        return Ok(format!("{text}{}\n", indented(&object, "", "  ")));
    };
    let (key, value) = match missing {
        [first, rest @ ..] => (*first, nested(&[rest, &[name]].concat())),
        [] => (name, value.clone()),
    };
    let splices = match member(object, key)? {
        Some(found) => vec![parsed.replace(found, &value)],
        None => parsed.append(
            object.range,
            object.properties.last().map(|last| last.range),
            Some(key),
            &value,
        ),
    };
    Ok(splice(text, splices))
}

/// The text with another element at the end of an array.
///
/// # Errors
/// As [`find`]; the member is not an array.
pub(super) fn push(
    text: &str,
    format: FileFormat,
    key: &str,
    element: &Value,
) -> Result<String, String> {
    let parsed = JsonText::parse(text, format)?;
    let found = parsed.root.as_ref().and_then(|root| root.get_array(key));
    let array = found.ok_or_else(|| format!("`{key}` is not an array"))?;
    let last = array
        .elements
        .last()
        .map(jsonc_parser::common::Ranged::range);
    Ok(splice(
        text,
        parsed.append(array.range, last, None, element),
    ))
}

/// The text without the entry.
///
/// # Errors
/// As [`find`].
pub(super) fn take_out(
    text: &str,
    format: FileFormat,
    keys: &[&str],
    name: &str,
) -> Result<String, String> {
    let parsed = JsonText::parse(text, format)?;
    let found = match parsed.descend(keys)? {
        Some((object, [])) => member(object, name)?,
        _ => None,
    };
    Ok(found.map_or_else(
        || text.to_owned(),
        |found| splice(text, parsed.remove(found.range)),
    ))
}

/// A text with its syntax: the object at the root, unless there is only white space and comments,
/// and the tokens.
struct JsonText<'t> {
    text: &'t str,
    root: Option<Object<'t>>,
    tokens: Vec<TokenAndRange<'t>>,
}

impl<'t> JsonText<'t> {
    fn parse(text: &'t str, format: FileFormat) -> Result<Self, String> {
        let options = ParseOptions {
            allow_comments: format != FileFormat::Json,
            allow_trailing_commas: format == FileFormat::Jsonc,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let collected = CollectOptions {
            tokens: true,
            ..CollectOptions::default()
        };
        let parsed = parse_to_ast(text, &collected, &options)
            .map_err(|error| format!("it is not valid JSON: {error}"))?;
        let root = match parsed.value {
            None => None,
            Some(jsonc_parser::ast::Value::Object(object)) => Some(object),
            Some(_) => return Err("it does not hold an object".into()),
        };
        let tokens = parsed.tokens.unwrap_or_default();
        Ok(Self { text, root, tokens })
    }

    /// The innermost object that the keys lead to, and the keys that it lacks.
    fn descend<'k>(
        &self,
        mut keys: &'k [&'k str],
    ) -> Result<Option<(&Object<'t>, &'k [&'k str])>, String> {
        let Some(mut object) = self.root.as_ref() else {
            return Ok(None);
        };
        while let [key, rest @ ..] = keys {
            let Some(found) = member(object, key)? else {
                break;
            };
            let value = found.value.as_object();
            object = value.ok_or_else(|| format!("the value of `{key}` is not an object"))?;
            keys = rest;
        }
        Ok(Some((object, keys)))
    }

    fn replace(&self, found: &ObjectProp<'_>, value: &Value) -> Splice {
        let indent = line_before(self.text, found.range.start);
        let new = if indent.trim().is_empty() {
            indented(value, indent, self.indent_unit())
        } else {
            value.to_string()
        };
        let old = jsonc_parser::common::Ranged::range(&found.value);
        (old.start..old.end, new)
    }

    /// Adds a member or an element behind the last one: in the same line if all are in one, else in
    /// lines of its own.
    fn append(
        &self,
        container: Range,
        last: Option<Range>,
        key: Option<&str>,
        value: &Value,
    ) -> Vec<Splice> {
        let (start, close) = (container.start + 1, container.end - 1);
        let inside = self.text.get(start..close).unwrap_or_default();
        let end = start + inside.trim_end().len();
        let key = key
            .map(|key| format!("{}: ", Value::from(key)))
            .unwrap_or_default();
        let has_comma = last.is_some_and(|last| self.comma_after(last.end).is_some());
        let mut splices: Vec<Splice> = Vec::new();
        if let Some(last) = last.filter(|_| !has_comma) {
            splices.push((last.end..last.end, ",".into()));
        }
        let comma = if has_comma { "," } else { "" };
        if last.is_some() && !inside.contains('\n') {
            splices.push((end..end, format!(" {key}{value}{comma}")));
            return splices;
        }
        let line = line_before(self.text, container.start);
        let outer = line
            .get(..line.len() - line.trim_start().len())
            .unwrap_or_default();
        let beside = last
            .map(|last| line_before(self.text, last.start))
            .filter(|line| line.trim().is_empty());
        let unit = self.indent_unit();
        let indent = beside.map_or_else(|| format!("{outer}{unit}"), str::to_owned);
        let member = format!("\n{indent}{key}{}{comma}", indented(value, &indent, unit));
        splices.push(
            if self.text.get(end..close).unwrap_or_default().contains('\n') {
                (end..end, member)
            } else {
                (end..close, format!("{member}\n{outer}"))
            },
        );
        splices
    }

    /// Removes a member with one comma, and the line or the object that is empty then. Comments
    /// stay.
    fn remove(&self, found: Range) -> Vec<Splice> {
        let comma = self.comma_after(found.end);
        let end = comma.map_or(found.end, |comma| comma.end);
        let previous = self
            .tokens
            .iter()
            .take_while(|token| token.range.end <= found.start)
            .last();
        let previous = previous.map(|token| (&token.token, token.range));
        let before = self
            .text
            .get(..found.start)
            .unwrap_or_default()
            .trim_end_matches([' ', '\t']);
        let after = self.text.get(end..).unwrap_or_default();
        let range = match previous {
            Some((Token::OpenBrace, open))
                if after.trim_start().starts_with('}') && before.trim_end().len() == open.end =>
            {
                open.end..self.text.len() - after.trim_start().len()
            }
            _ if after
                .lines()
                .next()
                .is_none_or(|line| line.trim().is_empty()) =>
            {
                without_line_end(before).len()..end
            }
            _ => before.len()..end,
        };
        let mut splices = vec![(range, String::new())];
        if let (None, Some((Token::Comma, comma))) = (comma, previous) {
            splices.push((comma.start..comma.end, String::new()));
        }
        splices
    }

    fn comma_after(&self, end: usize) -> Option<Range> {
        let next = self.tokens.iter().find(|token| token.range.start >= end)?;
        (next.token == Token::Comma).then_some(next.range)
    }

    /// The indentation of one level: that of the first member, else two spaces.
    fn indent_unit(&self) -> &'t str {
        let first = self.root.as_ref().and_then(|root| root.properties.first());
        let line = first.map(|first| line_before(self.text, first.range.start));
        line.filter(|line| !line.is_empty() && line.trim().is_empty())
            .unwrap_or("  ")
    }
}

/// The member of that name. Of two with one name, clients read one, and it is unknown which.
fn member<'o, 't>(object: &'o Object<'t>, key: &str) -> Result<Option<&'o ObjectProp<'t>>, String> {
    let mut named = object
        .properties
        .iter()
        .filter(|property| property.name.as_str() == key);
    let found = named.next();
    match named.next() {
        Some(_) => Err(format!("the key `{key}` is there twice")),
        None => Ok(found),
    }
}

/// A value in lines, of which all but the first begin with `indent`.
fn indented(value: &Value, indent: &str, unit: &str) -> String {
    let mut bytes = Vec::new();
    let mut serializer =
        Serializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(unit.as_bytes()));
    if value.serialize(&mut serializer).is_err() {
        return value.to_string();
    }
    String::from_utf8_lossy(&bytes).replace('\n', &format!("\n{indent}"))
}
