//! The values of parameters as they are sent: in the path, the query, headers and cookies.

use http::Method;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::style;
use super::target::PathValue;
use crate::call_error::CallError;
use crate::outbound::request::{Keep, percent_encode, percent_encode_segments};
use crate::spec::operation::template::TemplatePart;
use crate::spec::{MediaKind, Operation, Parameter, Serialization, Style};

/// The value as the text of its `content` media type: JSON, or the plain scalar for anything else.
fn content_text(media_type: &str, value: &Value) -> String {
    match MediaKind::of(media_type) {
        MediaKind::Json => value.to_string(),
        _ => style::scalar(value).unwrap_or_default().into_owned(),
    }
}

pub(super) fn path_value(operation: &Operation, parameter: &Parameter, value: &Value) -> PathValue {
    let mut segments = 1;
    let encoded = match &parameter.serialization {
        Serialization::Content { media_type } => {
            percent_encode(&content_text(media_type, value), Keep::Unreserved)
        }
        Serialization::Style {
            style: Style::Simple,
            allow_reserved,
            ..
        } if let (true, Value::String(text)) = (parameter.slashes, value) => {
            let keep = if *allow_reserved {
                Keep::Segment
            } else {
                Keep::Unreserved
            };
            let (encoded, count) = percent_encode_segments(text, keep);
            segments = count;
            encoded
        }
        Serialization::Style {
            style,
            explode,
            allow_reserved,
        } => {
            let keep = if *allow_reserved {
                Keep::Segment
            } else {
                Keep::Unreserved
            };
            style::path(&parameter.name, value, *style, *explode, keep)
        }
    };
    let plain = match value {
        Value::Array(items) => items
            .iter()
            .filter_map(style::scalar)
            .map(Into::into)
            .collect(),
        Value::Object(object) => object
            .iter()
            .flat_map(|(key, value)| [Some(key.as_str().into()), style::scalar(value)])
            .flatten()
            .map(Into::into)
            .collect(),
        _ => style::scalar(value).map(Into::into).into_iter().collect(),
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

pub(super) fn query_pairs(parameter: &Parameter, value: &Value) -> Vec<(String, String)> {
    match &parameter.serialization {
        Serialization::Content { media_type } => vec![(
            percent_encode(&parameter.name, Keep::Unreserved),
            percent_encode(&content_text(media_type, value), Keep::Unreserved),
        )],
        Serialization::Style {
            style,
            explode,
            allow_reserved,
        } => {
            let keep = if *allow_reserved {
                Keep::Reserved
            } else {
                Keep::Unreserved
            };
            style::query(&parameter.name, value, *style, *explode, keep)
        }
    }
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
                .flat_map(|(name, value)| {
                    style::query(name, value, Style::Form, true, Keep::Unreserved)
                })
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
    let text = match &parameter.serialization {
        Serialization::Content { media_type } => content_text(media_type, value),
        Serialization::Style { style, explode, .. } => {
            style::path(&parameter.name, value, *style, *explode, Keep::All)
        }
    };
    let name = HeaderName::from_bytes(parameter.name.as_bytes())
        .map_err(|_| invalid_argument(&parameter.key, "has a name that no header can have"))?;
    if text
        .bytes()
        .any(|byte| byte != b'\t' && (byte < 0x20 || byte == 0x7f))
    {
        return Err(invalid_argument(
            &parameter.key,
            "holds a line break or another control character, which a header cannot",
        ));
    }
    if !text.is_ascii() {
        return Err(invalid_argument(
            &parameter.key,
            "holds characters outside ASCII, which a header cannot",
        ));
    }
    let value = HeaderValue::from_str(&text)
        .map_err(|_| invalid_argument(&parameter.key, "cannot be sent in a header"))?;
    headers.insert(name, value);
    Ok(())
}

/// Cookie pairs. What could end a cookie (RFC 6265 section 4.1.1) is percent-encoded in every
/// style, so that a value can add none.
pub(super) fn cookie(parameter: &Parameter, value: &Value) -> Result<Vec<String>, CallError> {
    let legal = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
    };
    if !legal(&parameter.name) {
        return Err(invalid_argument(
            &parameter.key,
            "has a name that no cookie can have",
        ));
    }
    let (pairs, separator) = match &parameter.serialization {
        Serialization::Content { media_type } => (
            vec![(
                parameter.name.clone(),
                percent_encode(&content_text(media_type, value), Keep::Unreserved),
            )],
            "; ",
        ),
        // The form style writes its pairs with `&` in a cookie as well (OAS "Style Examples");
        // `cookie` of 3.2 does not.
        Serialization::Style {
            style: Style::Cookie,
            explode,
            ..
        } => (
            style::query(&parameter.name, value, Style::Form, *explode, Keep::Cookie),
            "; ",
        ),
        Serialization::Style {
            style,
            explode,
            allow_reserved,
        } => {
            let keep = if *allow_reserved {
                Keep::FormCookie
            } else {
                Keep::Unreserved
            };
            (
                style::query(&parameter.name, value, *style, *explode, keep),
                "&",
            )
        }
    };
    let pairs: Vec<String> = pairs
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    Ok(Some(pairs.join(separator))
        .filter(|text| !text.is_empty())
        .into_iter()
        .collect())
}

pub(super) fn invalid_argument(argument: &str, problem: &str) -> CallError {
    CallError::InvalidRequest {
        argument: argument.to_owned(),
        problem: problem.to_owned(),
    }
}
