//! Defaults of parameters that are sent when a call leaves the parameter out.

use serde_json::Value;

use super::parameter::{Location, Parameter};
use crate::spec::document::Document;

/// Returns the `default` of a parameter's schema if it is sent for a missing argument: that of
/// every header, and that of any other parameter only if the parameter is required. A server knows
/// the default of what it does not require; headers with a default are the exception, because they
/// name the version of an API that refuses requests without one.
pub(crate) fn read_sent_default(document: &Document, parameter: &Parameter) -> Option<Value> {
    if parameter.location != Location::Header && !parameter.required {
        return None;
    }
    let schema = document.node(parameter.schema?);
    let beside = schema.object().and_then(|schema| schema.get("default"));
    let default = beside
        .or_else(|| document.object(schema)?.get("default"))?
        .value()?;
    is_sendable(&default, parameter.location).then_some(default)
}

/// A default that cannot be sent is not a default: the caller has to give the value.
fn is_sendable(default: &Value, location: Location) -> bool {
    match (default, location) {
        (Value::Null, _) => false,
        (Value::String(text), Location::Path) => !text.is_empty(),
        // RFC 9110 section 5.5.
        (Value::String(text), Location::Header) => {
            !text.is_empty()
                && text
                    .bytes()
                    .all(|byte| byte == b' ' || byte.is_ascii_graphic())
        }
        (Value::Array(_) | Value::Object(_), Location::Path | Location::Header) => false,
        _ => true,
    }
}
