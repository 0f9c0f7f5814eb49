//! A look at the finished request: what no call gives is there once, with its value, or not at all;
//! else nothing is sent.
//!
//! An argument that is closed can have many names on the wire: an exploded object or a deep one
//! gives any key of a query, a query that is one text gives all of them. What counts is therefore
//! what was written.

use http::header::{COOKIE, HeaderName};
use serde_json::{Value, json};

use super::body::write_body;
use super::{Request, RequestTemplate, header, query_pairs};
use crate::call_error::CallError;
use crate::json::JsonObject;
use crate::outbound::request::{Payload, Piece};
use crate::spec::operation::request_body::BODY;
use crate::spec::operation::rules::{ArgumentTarget, FixedParameter};
use crate::spec::{Location, MediaKind, MediaType, Operation, Parameter};
use crate::text;

/// Checks that the request has the intended value of every closed argument.
///
/// # Errors
/// [`CallError::Setting`] if it has not.
pub(crate) fn check_fixed_arguments(
    template: &RequestTemplate<'_>,
    arguments: &JsonObject,
    request: &Request,
) -> Result<(), CallError> {
    let operation = template.operation;
    let holds = |FixedParameter { parameter, .. }: &FixedParameter| {
        let value = arguments.get(&parameter.key).or(parameter.default.as_ref());
        match parameter.location {
            Location::Path => true,
            Location::Query | Location::QueryString => {
                query_holds(operation, parameter, value, request)
            }
            Location::Header => header_holds(parameter, value, request),
            Location::Cookie => cookie_holds(parameter, value, request),
        }
    };
    let closes_body = operation
        .rules
        .arguments
        .iter()
        .any(|rule| rule.is_closed() && matches!(rule.target, ArgumentTarget::Body(_)));
    if operation.rules.fixed.iter().all(holds)
        && (!closes_body || body_holds(template, arguments, request))
    {
        return Ok(());
    }
    Err(CallError::Setting(
        "nothing was sent, because an argument would set what this server sets".into(),
    ))
}

/// Returns true if a pair of a query or a form holds the key after a semicolon, at which some
/// servers split as well.
fn holds_key_behind_semicolon(pair: &str, closed: &str) -> bool {
    let mut parts = pair.split(';').skip(1);
    parts.any(|part| {
        let key = part.split('=').next().unwrap_or_default();
        is_read_as(&decoded(key), closed)
    })
}

/// The pairs of a query or a form, each as it is written and decoded.
fn pairs_of(text: &str) -> impl Iterator<Item = (&str, (String, String))> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (pair, (decoded(key), decoded(value)))
    })
}

fn decoded(text: &str) -> String {
    let spaced = text.replace('+', " ");
    percent_encoding::percent_decode_str(&spaced)
        .decode_utf8_lossy()
        .into_owned()
}

/// Returns true if a server may read a name as the closed one: in any letter case, with white space
/// around it, or in a form with an index, a member or a zero byte after it: `filter[tenant][x]` is
/// about `filter[tenant]`.
pub(crate) fn is_read_as(name: &str, closed: &str) -> bool {
    let is_closed = |name: &str| text::without_case(name).eq(text::without_case(closed));
    let first = name.split(['[', ']', '\0']).next().unwrap_or_default();
    is_closed(name) || is_closed(first.trim())
}

fn query_holds(
    operation: &Operation,
    parameter: &Parameter,
    value: Option<&Value>,
    request: &Request,
) -> bool {
    let expected = value.map(|value| query_pairs(parameter, value));
    let expected = expected.into_iter().flatten();
    let mut expected: Vec<(String, String)> = expected
        .map(|(key, value)| (decoded(&key), decoded(&value)))
        .collect();
    let is_other = |key: &str| {
        let mut others = operation
            .parameters
            .iter()
            .chain(operation.rules.fixed.iter().map(|fixed| &fixed.parameter));
        others.any(|other| {
            other.location == Location::Query && other.name == key && other.name != parameter.name
        })
    };
    let query = request.url.query().unwrap_or_default();
    let pairs: Vec<(&str, (String, String))> = pairs_of(query).collect();
    let mut others = pairs.iter().filter(|(_, read)| !expected.contains(read));
    if others.any(|(pair, _)| holds_key_behind_semicolon(pair, &parameter.name)) {
        return false;
    }
    let mut found: Vec<(String, String)> = pairs
        .into_iter()
        .map(|(_, read)| read)
        .filter(|(key, _)| {
            (is_read_as(key, &parameter.name)
                || expected.iter().any(|(expected, _)| expected == key))
                && !is_other(key)
        })
        .collect();
    found.sort();
    expected.sort();
    found == expected
}

fn header_holds(parameter: &Parameter, value: Option<&Value>, request: &Request) -> bool {
    let Ok(name) = HeaderName::from_bytes(parameter.name.as_bytes()) else {
        return false;
    };
    let mut expected = http::HeaderMap::new();
    if let Some(value) = value
        && header(parameter, value, &mut expected).is_err()
    {
        return false;
    }
    request
        .headers
        .get_all(&name)
        .iter()
        .eq(expected.get_all(&name).iter())
}

fn cookie_holds(parameter: &Parameter, value: Option<&Value>, request: &Request) -> bool {
    let cookies = request
        .headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let names = cookies
        .flat_map(|cookies| cookies.split([';', '&']))
        .filter_map(|pair| pair.trim().split('=').next());
    let count = names
        .filter(|name| is_read_as(&decoded(name), &parameter.name))
        .count();
    count == usize::from(value.is_some_and(|value| !value.is_null()))
}

/// Returns true if the body has the values of the arguments. In a form, or among the parts of a
/// multipart body, a closed property is written as if it were sent alone: no other one repeats its
/// key, or one that an object spreads into.
fn body_holds(template: &RequestTemplate<'_>, arguments: &JsonObject, request: &Request) -> bool {
    let Some(value) = arguments.get(BODY) else {
        return request.body.is_none();
    };
    let (Some(payload), Some(declared)) = (&request.body, &template.operation.body) else {
        return false;
    };
    let chosen = arguments.get(&declared.choice).and_then(Value::as_str);
    let Some(media_type) = declared.chosen(chosen, value) else {
        return false;
    };
    if media_type.kind == MediaKind::Json {
        return payload
            .bytes()
            .is_some_and(|bytes| crate::json::parse_value(bytes).is_ok_and(|sent| sent == *value));
    }
    let Some(fields) = fields_of(media_type, payload) else {
        return false;
    };
    let rules = template
        .operation
        .rules
        .arguments
        .iter()
        .filter(|rule| rule.is_closed());
    let mut names = rules.filter_map(|rule| match &rule.target {
        ArgumentTarget::Body(steps) => steps.first(),
        ArgumentTarget::Parameter(..) => None,
    });
    let form = payload
        .bytes()
        .filter(|_| media_type.kind == MediaKind::Form);
    let form = form
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
        .unwrap_or_default();
    let is_hidden = |name: &str| {
        let mut others = pairs_of(form).filter(|(_, (key, _))| !is_read_as(key, name));
        others.any(|(pair, _)| holds_key_behind_semicolon(pair, name))
    };
    names.all(|name| {
        if is_hidden(name) {
            return false;
        }
        let alone = value.get(name).map(|value| {
            let alone = json!({ name: value });
            write_body(template.document, media_type, &alone, template.files)
        });
        let own = match alone {
            None => Some(Vec::new()),
            Some(Ok(body)) => fields_of(media_type, &body.content),
            Some(Err(_)) => None,
        };
        own.is_some_and(|mut own| {
            let is_own = |key: &str| {
                is_read_as(key, name) || own.iter().any(|(own, _)| is_read_as(key, own))
            };
            let mut found: Vec<_> = fields
                .iter()
                .filter(|(key, _)| is_own(key))
                .cloned()
                .collect();
            found.sort();
            own.sort();
            found == own
        })
    })
}

/// Returns the keys and values of a form, or the names of parts; `None` if a body is neither.
fn fields_of(media_type: &MediaType, payload: &Payload) -> Option<Vec<(String, String)>> {
    match media_type.kind {
        MediaKind::Form => {
            let text = std::str::from_utf8(payload.bytes()?).ok()?;
            Some(pairs_of(text).map(|(_, read)| read).collect())
        }
        MediaKind::Multipart => {
            let names = part_names(payload).into_iter();
            Some(names.map(|name| (name, String::new())).collect())
        }
        _ => None,
    }
}

/// The names of the parts of a multipart body (RFC 7578 section 4.2).
fn part_names(payload: &Payload) -> Vec<String> {
    let texts = payload.pieces().iter().filter_map(|piece| match piece {
        Piece::Bytes(bytes) => Some(String::from_utf8_lossy(bytes)),
        Piece::File(..) => None,
    });
    let mut names = Vec::new();
    for text in texts {
        for line in text.lines().filter(|line| {
            line.to_ascii_lowercase()
                .starts_with("content-disposition:")
        }) {
            let name = line
                .split_once("; name=\"")
                .and_then(|(_, rest)| rest.split('"').next());
            names.extend(name.map(str::to_owned));
        }
    }
    names
}
