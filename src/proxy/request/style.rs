//! The serialization of parameters by style; each value is encoded exactly once.
//!
//! Sources: OAS 3.0.4, 3.1.1 and 3.2.0 "Style Values" and "Style Examples"; RFC 6570; RFC 3986
//! section 2.
//!
//! The functions at the end write the values of parameters: in the path, the query, headers and cookies.

use std::borrow::Cow;

use http::Method;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::target::PathValue;
use crate::call_error::CallError;
use crate::json::plain_number;
use crate::outbound::request::{Keep, percent_encode, percent_encode_segments, push_encoded};
use crate::spec::operation::request_body::Encoding;
use crate::spec::operation::template::TemplatePart;
use crate::spec::{MediaKind, Operation, Parameter, Serialization, Style};

/// The text of a scalar: strings as they are, numbers with the digits they were given, `true` and
/// `false`. Arrays and objects inside arrays and objects have no defined form; their JSON is the
/// one that loses nothing. null is `None`.
pub(crate) fn scalar(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Bool(value) => Some(Cow::Borrowed(if *value { "true" } else { "false" })),
        Value::Number(number) => Some(plain_number(number.as_str())),
        Value::Array(_) | Value::Object(_) => Some(Cow::Owned(value.to_string())),
    }
}

/// The lists within a list as text, joined by `separators` from the outside in (2.0
/// `items.collectionFormat`).
pub(crate) fn joined<'v>(value: &'v Value, separators: &[char]) -> Cow<'v, Value> {
    let (Value::Array(items), Some((separator, rest))) = (value, separators.split_first()) else {
        return Cow::Borrowed(value);
    };
    let join = |item: &Value| match joined(item, rest).as_ref() {
        Value::Array(inner) => {
            let texts: Vec<_> = inner.iter().filter_map(scalar).collect();
            Value::String(texts.join(separator.encode_utf8(&mut [0; 4])))
        }
        other => other.clone(),
    };
    Cow::Owned(Value::Array(items.iter().map(join).collect()))
}

/// A path value (`simple`, `label`, `matrix`), or a header value when `keep` is [`Keep::All`].
pub(crate) fn path(name: &str, value: &Value, style: Style, explode: bool, keep: Keep) -> String {
    let mut out = String::new();
    match (style, value) {
        (_, Value::Null) => {}
        (Style::Label, _) => {
            out.push('.');
            let separator = if explode { "." } else { "," };
            write_value(&mut out, value, explode, separator, keep);
        }
        (Style::Matrix, Value::Array(items)) if explode => {
            for item in items {
                matrix(&mut out, name, keep, |out| push_scalar(out, item, keep));
            }
        }
        (Style::Matrix, Value::Object(_)) if explode => {
            out.push(';');
            write_value(&mut out, value, explode, ";", keep);
        }
        (Style::Matrix, _) => matrix(&mut out, name, keep, |out| {
            write_value(out, value, explode, ",", keep);
        }),
        (_, Value::Object(_)) => write_value(&mut out, value, explode, ",", keep),
        _ => write_value(&mut out, value, explode, separator(style, keep), keep),
    }
    out
}

/// `name=value` pairs of a query, already encoded; joined by `&` they are the query. An absent,
/// null or empty list or object sends nothing.
pub(crate) fn query(
    name: &str,
    value: &Value,
    style: Style,
    explode: bool,
    keep: Keep,
) -> Vec<(String, String)> {
    let key = percent_encode(name, Keep::Unreserved);
    match (style, value) {
        (_, Value::Array(items)) if items.is_empty() => Vec::new(),
        (_, Value::Object(object)) if object.is_empty() => Vec::new(),
        (Style::DeepObject, Value::Object(_) | Value::Array(_)) => {
            let mut found = Vec::new();
            deep(&key, value, keep, &mut found);
            found
        }
        (_, Value::Array(items)) if explode => items
            .iter()
            .filter_map(scalar)
            .map(|item| (key.clone(), percent_encode(&item, keep)))
            .collect(),
        (_, Value::Object(object)) if explode => {
            let member = |(name, value): (&String, &Value)| {
                let value = percent_encode(&scalar(value)?, keep);
                Some((percent_encode(name, Keep::Unreserved), value))
            };
            object.iter().filter_map(member).collect()
        }
        (_, Value::Array(_) | Value::Object(_)) => {
            let mut out = String::new();
            write_value(&mut out, value, false, separator(style, keep), keep);
            vec![(key, out)]
        }
        _ => scalar(value)
            .map(|text| (key, percent_encode(&text, keep)))
            .into_iter()
            .collect(),
    }
}

/// Between the items of a list that is not exploded; delimiters that a URL cannot hold are encoded
/// (3.1.1), in a header they are not.
fn separator(style: Style, keep: Keep) -> &'static str {
    match (style, keep) {
        (Style::SpaceDelimited, Keep::All) => " ",
        (Style::SpaceDelimited, _) => "%20",
        (Style::PipeDelimited, Keep::All) => "|",
        (Style::PipeDelimited, _) => "%7C",
        (Style::TabDelimited, Keep::All) => "\t",
        (Style::TabDelimited, _) => "%09",
        _ => ",",
    }
}

/// `filter[a][b]=1`: OAS defines one level; deeper ones and `[0]` are what servers that read this
/// style expect.
fn deep(key: &str, value: &Value, keep: Keep, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(object) => {
            for (member, inner) in object {
                let member = percent_encode(member, Keep::Unreserved);
                deep(&format!("{key}%5B{member}%5D"), inner, keep, found);
            }
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                deep(&format!("{key}%5B{index}%5D"), inner, keep, found);
            }
        }
        _ => found.extend(scalar(value).map(|text| (key.to_owned(), percent_encode(&text, keep)))),
    }
}

/// Writes a scalar, or the parts of a list or an object with a separator between them; an exploded
/// object as `key=value`.
fn write_value(out: &mut String, value: &Value, explode: bool, separator: &str, keep: Keep) {
    let mut before = "";
    match value {
        Value::Array(items) => {
            for item in items.iter().filter_map(scalar) {
                out.push_str(before);
                push_encoded(out, &item, keep);
                before = separator;
            }
        }
        Value::Object(object) => {
            for (member, value) in object {
                let Some(value) = scalar(value) else { continue };
                out.push_str(before);
                push_encoded(out, member, keep);
                out.push_str(if explode { "=" } else { separator });
                push_encoded(out, &value, keep);
                before = separator;
            }
        }
        _ => push_scalar(out, value, keep),
    }
}

fn push_scalar(out: &mut String, value: &Value, keep: Keep) {
    if let Some(text) = scalar(value) {
        push_encoded(out, &text, keep);
    }
}

/// Writes `;name=value`, or `;name` if the text of the value is empty (RFC 6570 section 3.2.1).
fn matrix(out: &mut String, name: &str, keep: Keep, write: impl FnOnce(&mut String)) {
    out.push(';');
    push_encoded(out, name, keep);
    let end_of_name = out.len();
    out.push('=');
    write(out);
    if out.len() == end_of_name + 1 {
        out.truncate(end_of_name);
    }
}

pub(crate) fn form_style(encoding: Option<&Encoding>) -> (Style, bool) {
    let style = encoding.and_then(|encoding| encoding.style);
    let style = style.unwrap_or(Style::Form);
    let explode = encoding.and_then(|encoding| encoding.explode);
    (style, explode.unwrap_or(style == Style::Form))
}

/// The value as the text of its `content` media type: JSON, or the plain scalar for anything else.
fn content_text(media_type: &str, value: &Value) -> String {
    match MediaKind::of(media_type) {
        MediaKind::Json => value.to_string(),
        _ => scalar(value).unwrap_or_default().into_owned(),
    }
}

/// The value of a parameter with its style, its `explode`, and the characters that are kept,
/// `reserved` if reserved ones may be. What has a media type is one text.
fn serialized<'v>(
    parameter: &Parameter,
    value: &'v Value,
    reserved: Keep,
) -> (Cow<'v, Value>, Style, bool, Keep) {
    match &parameter.serialization {
        Serialization::Content { media_type } => {
            let text = Cow::Owned(content_text(media_type, value).into());
            (text, Style::Form, false, Keep::Unreserved)
        }
        Serialization::Style {
            style,
            explode,
            allow_reserved,
        } => {
            let keep = kept(*allow_reserved, reserved);
            (Cow::Borrowed(value), *style, *explode, keep)
        }
    }
}

pub(super) fn path_value(operation: &Operation, parameter: &Parameter, value: &Value) -> PathValue {
    let mut segments = 1;
    let (written, style, explode, keep) = serialized(parameter, value, Keep::Segment);
    let encoded = match &*written {
        Value::String(text) if parameter.slashes && style == Style::Simple => {
            let (encoded, count) = percent_encode_segments(text, keep);
            segments = count;
            encoded
        }
        written => path(&parameter.name, written, style, explode, keep),
    };
    let plain = match value {
        Value::Array(items) => items.iter().filter_map(scalar).map(Into::into).collect(),
        Value::Object(object) => object
            .iter()
            .flat_map(|(key, value)| [Some(key.as_str().into()), scalar(value)])
            .flatten()
            .map(Into::into)
            .collect(),
        _ => Vec::from_iter(scalar(value).map(Into::into)),
    };
    let is_read = [Method::GET, Method::HEAD].contains(&operation.method);
    let ends_path = matches!(operation.template.segments.last().map(Vec::as_slice), Some([TemplatePart::Variable(name)]) if *name == parameter.name);
    PathValue {
        name: parameter.name.clone(),
        encoded,
        plain,
        segments,
        may_be_empty: parameter.slashes && is_read && ends_path,
    }
}

/// The characters that are kept, by whether reserved ones may be.
pub(super) fn kept(allow_reserved: bool, reserved: Keep) -> Keep {
    if allow_reserved {
        reserved
    } else {
        Keep::Unreserved
    }
}

pub(super) fn query_pairs(parameter: &Parameter, value: &Value) -> Vec<(String, String)> {
    let (value, style, explode, keep) = serialized(parameter, value, Keep::Reserved);
    query(&parameter.name, &value, style, explode, keep)
}

/// OAS 3.2 `in: querystring`: a form is written as one, anything else as one encoded text without a
/// key.
pub(super) fn whole_query(parameter: &Parameter, value: &Value) -> Vec<(String, String)> {
    match (value, &parameter.serialization) {
        (Value::Object(object), Serialization::Content { media_type })
            if MediaKind::of(media_type) == MediaKind::Form =>
        {
            object
                .iter()
                .flat_map(|(name, value)| query(name, value, Style::Form, true, Keep::Unreserved))
                .collect()
        }
        // A pair without a key is the whole query.
        (_, Serialization::Content { media_type }) => {
            vec![(
                String::new(),
                percent_encode(&content_text(media_type, value), Keep::Unreserved),
            )]
        }
        _ => query_pairs(parameter, value),
    }
}

/// Header values are not percent-encoded; what cannot be in one is refused (RFC 9110 section 5.5).
pub(crate) fn header(
    parameter: &Parameter,
    value: &Value,
    headers: &mut HeaderMap,
) -> Result<(), CallError> {
    if value.is_null() {
        return Ok(());
    }
    let (written, style, explode, _) = serialized(parameter, value, Keep::All);
    let text = path(&parameter.name, &written, style, explode, Keep::All);
    let invalid = |problem| CallError::invalid_request(&parameter.key, problem);
    let name = HeaderName::from_bytes(parameter.name.as_bytes())
        .map_err(|_| invalid("has a name that no header can have"))?;
    let is_control = |byte| byte != b'\t' && (byte < 0x20 || byte == 0x7f);
    if text.bytes().any(is_control) {
        return Err(invalid(
            "holds a line break or another control character, which a header cannot",
        ));
    }
    if !text.is_ascii() {
        return Err(invalid(
            "holds characters outside ASCII, which a header cannot",
        ));
    }
    let value = HeaderValue::from_str(&text).map_err(|_| invalid("cannot be sent in a header"))?;
    headers.insert(name, value);
    Ok(())
}

/// Cookie pairs. What could end a cookie (RFC 6265 section 4.1.1) is percent-encoded in every
/// style, so that a value can add none.
pub(super) fn cookie(parameter: &Parameter, value: &Value) -> Result<Option<String>, CallError> {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let (key, name) = (&parameter.key, &parameter.name);
    if name.is_empty() || !name.bytes().all(is_legal) {
        return Err(CallError::invalid_request(
            key,
            "has a name that no cookie can have",
        ));
    }
    let (pairs, separator) = match &parameter.serialization {
        Serialization::Content { media_type } => {
            let text = percent_encode(&content_text(media_type, value), Keep::Unreserved);
            (vec![(name.clone(), text)], "; ")
        }
        // The form style writes its pairs with `&` in a cookie as well (OAS "Style Examples");
        // `cookie` of 3.2 does not.
        Serialization::Style {
            style: Style::Cookie,
            explode,
            ..
        } => (
            query(&parameter.name, value, Style::Form, *explode, Keep::Cookie),
            "; ",
        ),
        Serialization::Style {
            style,
            explode,
            allow_reserved,
        } => {
            let keep = kept(*allow_reserved, Keep::FormCookie);
            (query(&parameter.name, value, *style, *explode, keep), "&")
        }
    };
    let pairs: Vec<String> = pairs
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    Ok(Some(pairs.join(separator)).filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn in_query(style: Style, explode: bool, value: &Value) -> String {
        query("color", value, style, explode, Keep::Unreserved)
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect::<Vec<_>>()
            .join("&")
    }

    #[test]
    fn the_style_table_row_by_row() {
        let (empty, string, array, object) = (
            json!(""),
            json!("blue"),
            json!(["blue", "black", "brown"]),
            json!({"R": 100, "G": 200, "B": 150}),
        );
        let in_path = |style, explode| {
            [&empty, &string, &array, &object]
                .map(|value| path("color", value, style, explode, Keep::Unreserved))
        };
        let queries = |style, explode| {
            [&empty, &string, &array, &object].map(|value| in_query(style, explode, value))
        };
        for (style, explode, expected) in [
            (
                Style::Matrix,
                false,
                [
                    ";color",
                    ";color=blue",
                    ";color=blue,black,brown",
                    ";color=R,100,G,200,B,150",
                ],
            ),
            (
                Style::Matrix,
                true,
                [
                    ";color",
                    ";color=blue",
                    ";color=blue;color=black;color=brown",
                    ";R=100;G=200;B=150",
                ],
            ),
            (
                Style::Label,
                false,
                [".", ".blue", ".blue,black,brown", ".R,100,G,200,B,150"],
            ),
            (
                Style::Label,
                true,
                [".", ".blue", ".blue.black.brown", ".R=100.G=200.B=150"],
            ),
            (
                Style::Simple,
                false,
                ["", "blue", "blue,black,brown", "R,100,G,200,B,150"],
            ),
            (
                Style::Simple,
                true,
                ["", "blue", "blue,black,brown", "R=100,G=200,B=150"],
            ),
        ] {
            assert_eq!(in_path(style, explode), expected, "{style:?} {explode}");
        }
        for (style, explode, expected) in [
            (
                Style::Form,
                false,
                [
                    "color=",
                    "color=blue",
                    "color=blue,black,brown",
                    "color=R,100,G,200,B,150",
                ],
            ),
            (
                Style::Form,
                true,
                [
                    "color=",
                    "color=blue",
                    "color=blue&color=black&color=brown",
                    "R=100&G=200&B=150",
                ],
            ),
        ] {
            assert_eq!(queries(style, explode), expected, "{style:?} {explode}");
        }
        assert_eq!(
            in_query(Style::SpaceDelimited, false, &array),
            "color=blue%20black%20brown"
        );
        assert_eq!(
            in_query(Style::SpaceDelimited, false, &object),
            "color=R%20100%20G%20200%20B%20150"
        );
        assert_eq!(
            in_query(Style::PipeDelimited, false, &array),
            "color=blue%7Cblack%7Cbrown"
        );
        assert_eq!(
            in_query(Style::PipeDelimited, false, &object),
            "color=R%7C100%7CG%7C200%7CB%7C150"
        );
        assert_eq!(
            in_query(Style::DeepObject, true, &object),
            "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"
        );
        assert_eq!(
            in_query(Style::DeepObject, true, &json!({"a": {"b": [1, 2]}})),
            "color%5Ba%5D%5Bb%5D%5B0%5D=1&color%5Ba%5D%5Bb%5D%5B1%5D=2"
        );
    }

    #[test]
    fn nothing_is_sent_for_null_and_for_empty_containers() {
        for value in [json!(null), json!([]), json!({})] {
            assert_eq!(in_query(Style::Form, true, &value), "");
            assert_eq!(in_query(Style::DeepObject, true, &value), "");
        }
    }

    #[test]
    fn numbers_keep_every_digit_and_never_have_an_exponent() {
        for (number, expected) in [
            ("9007199254740993", "9007199254740993"),
            (
                "123456789012345678901234567890",
                "123456789012345678901234567890",
            ),
            ("0.1000", "0.1000"),
            ("1e6", "1000000"),
            ("1.5e-3", "0.0015"),
            ("-12.5E+1", "-125"),
            ("0e5", "0"),
            ("12.345e1", "123.45"),
        ] {
            let value: Value = serde_json::from_str(number).unwrap();
            assert_eq!(scalar(&value).unwrap(), expected, "{number}");
        }
    }
}
