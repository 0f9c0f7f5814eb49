//! Headers of flags, written out or by the name of the variable that holds the value.

use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::variables::called;
use crate::proxy::redact::names::carries_credential;
use crate::spec::operation::parameter;

/// The headers of two flags, one that takes values and one that takes the names of variables. What comes from a variable is
/// marked as a secret; what is written out is one only under a name that carries credentials.
pub(crate) fn read_headers([flag, env_flag]: [&str; 2], given: &[String], from_env: &[String], problems: &mut Vec<String>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for text in given.iter().filter(|text| !text.trim().is_empty()) {
        match text.split_once(':') {
            Some((name, value)) => add_header(&mut headers, flag, (name, value), false, problems),
            // The text may be a secret that lost its name; it is not repeated.
            None => problems.push(format!("{flag} wants `Name: value`, with a colon between")),
        }
    }
    for text in from_env {
        let Some((name, variable)) = text.split_once('=') else {
            problems.push(format!("{env_flag} wants `Name=VARIABLE`"));
            continue;
        };
        match std::env::var(variable) {
            Ok(value) if value.trim().is_empty() => {
                problems.push(format!("{env_flag}: the variable `{variable}` for the header `{name}` is empty"));
            }
            Ok(value) => add_header(&mut headers, env_flag, (name, &value), true, problems),
            Err(_) => problems.push(format!(
                "{env_flag}: {} for the header `{name}` is not set, or is no text",
                called(variable)
            )),
        }
    }
    headers
}

fn add_header(headers: &mut HeaderMap, flag: &str, (name, value): (&str, &str), is_secret: bool, problems: &mut Vec<String>) {
    let name = name.trim();
    let Ok(parsed) = HeaderName::from_bytes(name.as_bytes()) else {
        problems.push(format!("{flag}: `{}` is no header name", name.escape_debug()));
        return;
    };
    let framing = parameter::is_reserved_header(parsed.as_str())
        && !matches!(parsed.as_str(), "accept" | "authorization" | "cookie")
        && !parsed.as_str().starts_with("x-forwarded-");
    if framing {
        problems.push(format!(
            "{flag}: `{parsed}` belongs to the connection or to the body and cannot be set"
        ));
        return;
    }
    match HeaderValue::from_str(value.trim()) {
        Ok(mut value) => {
            value.set_sensitive(is_secret || carries_credential(&parsed));
            headers.append(parsed, value);
        }
        Err(_) => problems.push(format!("{flag}: the value of `{parsed}` holds characters that no header can")),
    }
}
