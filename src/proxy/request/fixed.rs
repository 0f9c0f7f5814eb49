//! A look at the finished request: what no call gives is there once, with its value, or not at all; else nothing is sent.
//!
//! An argument that is closed can have many names on the wire: an exploded object or a deep one gives any key of a query, a
//! query that is one text gives all of them. What counts is therefore what was written.

use http::header::{COOKIE, HeaderName};
use serde_json::{Map, Value};

use super::{Request, header, query_pairs};
use crate::proxy::error::CallError;
use crate::spec::operation::request_body::BODY;
use crate::spec::operation::rules::{ArgumentTarget, FixedParameter};
use crate::spec::{Location, Operation, Parameter};

/// Whether the request says of every closed argument what it is meant to say.
///
/// # Errors
/// [`CallError::Setting`] where it does not.
pub(crate) fn check_fixed_arguments(operation: &Operation, arguments: &Map<String, Value>, request: &Request) -> Result<(), CallError> {
    for FixedParameter { parameter, .. } in &operation.rules.fixed {
        let value = arguments.get(&parameter.key).or(parameter.default.as_ref());
        let holds = match parameter.location {
            Location::Path => true,
            Location::Query | Location::QueryString => query_holds(operation, parameter, value, request),
            Location::Header => header_holds(parameter, value, request),
            Location::Cookie => cookie_holds(parameter, value, request),
        };
        if !holds {
            return Err(refusal());
        }
    }
    let closes_body = operation
        .rules
        .arguments
        .iter()
        .any(|rule| rule.is_closed() && matches!(rule.target, ArgumentTarget::Body(_)));
    if closes_body && !body_holds(operation, arguments, request) {
        return Err(refusal());
    }
    Ok(())
}

fn refusal() -> CallError {
    CallError::Setting("nothing was sent, because an argument would set what this server sets".into())
}

fn decoded(text: &str) -> String {
    let spaced = text.replace('+', " ");
    percent_encoding::percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}

/// Whether a key of a query or a form is the closed one to a server: in any case, with white space around it, or with an index, a
/// member or a zero byte behind it.
fn is_key(key: &str, closed: &str) -> bool {
    let plain = key.split(['[', '\0']).next().unwrap_or_default().trim();
    key.eq_ignore_ascii_case(closed) || plain.eq_ignore_ascii_case(closed)
}

fn query_holds(operation: &Operation, parameter: &Parameter, value: Option<&Value>, request: &Request) -> bool {
    let mut expected: Vec<(String, String)> = value.map(|value| query_pairs(parameter, value)).unwrap_or_default();
    for (key, value) in &mut expected {
        (*key, *value) = (decoded(key), decoded(value));
    }
    let is_other = |key: &str| {
        let mut others = operation
            .parameters
            .iter()
            .chain(operation.rules.fixed.iter().map(|fixed| &fixed.parameter));
        others.any(|other| other.location == Location::Query && other.name == key && other.name != parameter.name)
    };
    let pairs = request.url.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let mut found: Vec<(String, String)> = pairs
        .map(|(key, value)| (decoded(key), decoded(value)))
        .filter(|(key, _)| (is_key(key, &parameter.name) || expected.iter().any(|(expected, _)| expected == key)) && !is_other(key))
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
    request.headers.get_all(&name).iter().eq(expected.get_all(&name).iter())
}

fn cookie_holds(parameter: &Parameter, value: Option<&Value>, request: &Request) -> bool {
    let cookies = request.headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let names = cookies
        .flat_map(|cookies| cookies.split([';', '&']))
        .filter_map(|pair| pair.trim().split('=').next());
    let count = names.filter(|name| is_key(&decoded(name), &parameter.name)).count();
    count == usize::from(value.is_some_and(|value| !value.is_null()))
}

/// The body is what the arguments say, and no key of a form or name of a part is there a second time.
fn body_holds(operation: &Operation, arguments: &Map<String, Value>, request: &Request) -> bool {
    let Some(value) = arguments.get(BODY) else {
        return request.body.is_none();
    };
    let Some(payload) = &request.body else { return false };
    let content_type = request
        .headers
        .get(http::header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let closed = operation.rules.arguments.iter().filter_map(|rule| match &rule.target {
        ArgumentTarget::Body(steps) if rule.is_closed() => Some((steps.first()?, rule.closed_source().is_some())),
        _ => None,
    });
    let mut names = match content_type.unwrap_or_default() {
        json if json.contains("json") => {
            return payload
                .bytes()
                .is_some_and(|bytes| crate::json::parse_value(bytes).is_ok_and(|sent| sent == *value));
        }
        form if form.starts_with("application/x-www-form-urlencoded") => {
            let Some(text) = payload.bytes().and_then(|bytes| std::str::from_utf8(bytes).ok()) else {
                return false;
            };
            text.split('&')
                .filter_map(|pair| pair.split('=').next())
                .map(decoded)
                .collect::<Vec<_>>()
        }
        _ => part_names(payload),
    };
    names.sort();
    let object = value.as_object();
    closed.into_iter().all(|(name, _)| {
        let of_name = names.iter().filter(|other| is_key(other, name)).count();
        let is_scalar = object
            .and_then(|object| object.get(name))
            .map(|value| !value.is_array() && !value.is_object());
        match is_scalar {
            None => of_name == 0,
            Some(true) => of_name == 1 && names.contains(name),
            Some(false) => names
                .iter()
                .filter(|other| is_key(other, name))
                .all(|other| other.starts_with(name.as_str())),
        }
    })
}

/// The names of the parts of a multipart body (RFC 7578 section 4.2).
fn part_names(payload: &super::body::payload::Payload) -> Vec<String> {
    use super::body::payload::Piece;
    let texts = payload.pieces().iter().filter_map(|piece| match piece {
        Piece::Bytes(bytes) => Some(String::from_utf8_lossy(bytes)),
        Piece::File(..) => None,
    });
    let mut names = Vec::new();
    for text in texts {
        for line in text
            .lines()
            .filter(|line| line.to_ascii_lowercase().starts_with("content-disposition:"))
        {
            let name = line.split_once("; name=\"").and_then(|(_, rest)| rest.split('"').next());
            names.extend(name.map(str::to_owned));
        }
    }
    names
}
