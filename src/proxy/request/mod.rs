//! Builds the HTTP request from an operation and its arguments. Files to send are opened here;
//! nothing is sent.
//!
//! # Adding a parameter style
//!
//! - A variant of `Style` in `spec/operation/parameter.rs`, where `read_style` also decides the
//!   default of `explode`.
//! - If Swagger 2.0 has it as a `collectionFormat`: `collection_style` in
//!   `spec/operation/swagger2.rs`.
//! - Its text in `proxy/request/style.rs`. Query pairs and cookies are made by
//!   `query_pairs` and `cookie` in `proxy/request/style.rs`.
//! - A row in `tests/cases/call/parameters.yaml`.

pub(crate) mod body;
pub(crate) mod closed_paths;
pub(crate) mod fixed;
pub(crate) mod path_readings;
#[cfg(test)]
mod proptests;
pub(crate) mod style;
pub(crate) mod target;

use http::header::{ACCEPT, CONTENT_TYPE, COOKIE, HeaderMap, HeaderValue};
use serde_json::Value;
use url::Url;

use self::body::file_argument::FileRoot;
use self::closed_paths::{AskedPath, PathGuard};
pub(crate) use self::style::header;
use self::style::{cookie, path_value, query_pairs, whole_query};
use self::target::{BaseUrl, PathValue};
use crate::call_error::CallError;
use crate::credentials::authenticator::{Injected, same_key};
use crate::json::JsonObject;
use crate::outbound::request::{Payload, Request};
use crate::spec::media_type::essence;
use crate::spec::operation::request_body::BODY;
use crate::spec::operation::response;
use crate::spec::operation::template::TemplatePart;
use crate::spec::{Document, Location, Operation, Parameter, Serialization, Style};

/// The parts of a request besides the arguments of the call.
#[derive(Clone, Copy)]
pub(crate) struct RequestTemplate<'a> {
    /// The document of the operation.
    pub(crate) document: &'a Document,
    /// The operation.
    pub(crate) operation: &'a Operation,
    /// The server that its path is appended to.
    pub(crate) base: &'a BaseUrl,
    /// Replies that the document declares.
    pub(crate) expected: &'a ExpectedReply,
    /// The operator's additions.
    pub(crate) injected: &'a Injected,
    /// Folder from which files may be sent.
    pub(crate) files: Option<&'a FileRoot>,
    /// The paths of all operations, if a value could make the path that of another one.
    pub(crate) guard: Option<PathGuard<'a>>,
}

/// Makes the request of a call with these arguments, under the keys of the input schema.
///
/// # Errors
/// [`CallError`] if an argument cannot be sent; then no request may be sent.
pub(crate) fn build(
    template: &RequestTemplate<'_>,
    arguments: &JsonObject,
) -> Result<Request, CallError> {
    let &RequestTemplate {
        operation,
        base,
        expected,
        injected,
        ..
    } = template;
    let mut path = Vec::new();
    let mut query = Vec::new();
    let mut headers = HeaderMap::with_capacity(4 + injected.headers.len());
    let mut cookies = Vec::new();
    headers.insert(ACCEPT, expected.accept.clone());
    let closed = operation.rules.fixed.iter().map(|fixed| &fixed.parameter);
    for parameter in operation.parameters.iter().chain(closed) {
        let Some(value) = arguments.get(&parameter.key).or(parameter.default.as_ref()) else {
            continue;
        };
        spread_names(operation, parameter, value, injected)?;
        let value = &*style::joined(value, &parameter.inner_separators);
        match parameter.location {
            Location::Path => path.push(path_value(operation, parameter, value)),
            Location::Query => query.extend(query_pairs(parameter, value)),
            Location::QueryString => query.extend(whole_query(parameter, value)),
            Location::Header => header(parameter, value, &mut headers)?,
            Location::Cookie => cookies.extend(cookie(parameter, value)?),
        }
    }
    refuse_injected_names(operation, &query, injected)?;
    query.extend(injected.query.iter().cloned());
    cookies.extend(injected.cookies.iter().cloned());
    // A cookie name or value cannot hold what ends a cookie; see `cookie`.
    if !cookies.is_empty() {
        let text = cookies.join("; ");
        headers.insert(
            COOKIE,
            HeaderValue::from_str(&text)
                .map_err(|_| CallError::invalid_request("cookie", "cannot be sent in a header"))?,
        );
    }
    let url = base.target(&operation.template, &path, &query)?;
    refuse_other_operations(template, &path, &url)?;
    let content = write_content(template, arguments, &mut headers)?;
    for name in injected.headers.keys() {
        headers.remove(name);
    }
    headers.extend(
        injected
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    Ok(Request {
        method: operation.method.clone(),
        url,
        headers,
        body: content,
        may_stream: expected.may_stream,
    })
}

/// Refuses an argument with the name of a query pair that the operator sets.
fn refuse_injected_names(
    operation: &Operation,
    query: &[(String, String)],
    injected: &Injected,
) -> Result<(), CallError> {
    for (key, _) in &injected.query {
        // A query that is one whole text, or the template's own, may hold any key.
        let taken = |name: &str| {
            same_key(
                key,
                &percent_encoding::percent_decode_str(name).decode_utf8_lossy(),
            )
        };
        let own = operation
            .template
            .query
            .iter()
            .flat_map(|query| query.split('&'));
        let mut names = own
            .map(|pair| pair.split('=').next().unwrap_or_default())
            .chain(query.iter().map(|(name, value)| {
                if name.is_empty() {
                    value.as_str()
                } else {
                    name.as_str()
                }
            }));
        if names.any(taken) {
            return Err(CallError::invalid_request(
                key,
                "is set by this server, and by no argument",
            ));
        }
    }
    Ok(())
}

/// Refuses values with which a server could read the path as that of another operation.
fn refuse_other_operations(
    template: &RequestTemplate<'_>,
    path: &[PathValue],
    url: &Url,
) -> Result<(), CallError> {
    let (Some(guard), Some(last)) = (&template.guard, path.last()) else {
        return Ok(());
    };
    let spanning = path
        .iter()
        .find(|value| value.segments > 1 || value.encoded.is_empty());
    let asked = AskedPath {
        full: url.path(),
        base: template.base.url().path().trim_end_matches('/').len(),
        has_own_base: !template.operation.servers.is_empty(),
        in_value: spanning.map(|_| slashes_in_values(template, path)),
    };
    if guard.refuses(template.operation, &asked) {
        let odd = path.iter().find(|value| value.encoded.contains('%'));
        let name = &spanning.or(odd).unwrap_or(last).name;
        return Err(CallError::Target(format!(
            "`{name}` must not have this value: the path would be that of another operation, which this tool does not make"
        )));
    }
    Ok(())
}

/// For each slash of the path below the base path, true if it is in a value.
fn slashes_in_values(template: &RequestTemplate<'_>, path: &[PathValue]) -> Vec<bool> {
    let mut slashes = Vec::new();
    for segment in &template.operation.template.segments {
        slashes.push(false);
        for part in segment {
            let value = path
                .iter()
                .find(|value| matches!(part, TemplatePart::Variable(name) if *name == value.name));
            slashes.extend((1..value.map_or(1, |value| value.segments)).map(|_| true));
        }
    }
    slashes
}

/// The content of the body, whose media type is added to the headers.
fn write_content(
    template: &RequestTemplate<'_>,
    arguments: &JsonObject,
    headers: &mut HeaderMap,
) -> Result<Option<Payload>, CallError> {
    let (Some(declared), Some(value)) = (&template.operation.body, arguments.get(BODY)) else {
        return Ok(None);
    };
    let chosen = arguments.get(&declared.choice).and_then(Value::as_str);
    let media_type = declared.chosen(chosen, value).ok_or_else(|| {
        CallError::invalid_request(
            &declared.choice,
            "is not one of the media types that this operation takes",
        )
    })?;
    let body = body::write_body(template.document, media_type, value, template.files)?;
    let content_type = HeaderValue::from_str(&body.content_type);
    let content_type = content_type.map_err(|_| {
        CallError::invalid_request(BODY, "has a media type that cannot be sent in a header")
    })?;
    headers.insert(CONTENT_TYPE, content_type);
    Ok(Some(body.content))
}

/// An exploded object writes its members as names of their own (OAS `form` with `explode`). They
/// may not be names that the operation has for something else.
fn spread_names(
    operation: &Operation,
    parameter: &Parameter,
    value: &Value,
    injected: &Injected,
) -> Result<(), CallError> {
    let (
        Value::Object(members),
        Serialization::Style {
            style: Style::Form | Style::Cookie,
            explode: true,
            ..
        },
    ) = (value, &parameter.serialization)
    else {
        return Ok(());
    };
    let other = |name: &String| {
        injected.claims(parameter.location, name)
            || operation
                .parameters
                .iter()
                .chain(operation.rules.fixed.iter().map(|fixed| &fixed.parameter))
                .any(|other| {
                    other.location == parameter.location
                        && other.name == *name
                        && other.key != parameter.key
                })
    };
    match members.keys().find(|name| other(name)) {
        Some(name) => Err(CallError::invalid_request(
            &parameter.key,
            format!(
                "has a member `{name}`, which would be sent as the {} parameter of that name",
                parameter.location.as_str()
            ),
        )),
        None => Ok(()),
    }
}

/// Replies of an operation by the document, as far as requests need them.
pub(crate) struct ExpectedReply {
    /// The `Accept` header.
    pub(crate) accept: HeaderValue,
    /// True if the reply is a stream of values.
    may_stream: bool,
}

impl ExpectedReply {
    pub(crate) fn new(document: &Document, operation: &Operation) -> Self {
        Self {
            accept: accept(document, operation),
            may_stream: response::may_stream(document, operation),
        }
    }
}

/// `Accept`: what the document says a success looks like, JSON first, then the others in its order,
/// and anything else after that. The weights (RFC 9110 section 12.4.2) say so too: of types of one
/// weight the API would choose.
fn accept(document: &Document, operation: &Operation) -> HeaderValue {
    const ANYTHING: HeaderValue = HeaderValue::from_static("application/json, */*;q=0.8");
    /// The first has the weight 1, each other one a tenth less, and anything else the least.
    const MAX_TYPES: usize = 5;
    let mut types: Vec<String> = Vec::new();
    for media in response::successes(document, operation)
        .iter()
        .flat_map(|response| &response.media)
    {
        let name = essence(&media.name).into_owned();
        if !types.contains(&name) && !name.contains('*') {
            types.push(name);
        }
    }
    types.sort_by_key(|name| match name.as_str() {
        "application/json" => 0,
        name if name.ends_with("+json") => 1,
        _ => 2,
    });
    types.truncate(MAX_TYPES);
    if types.is_empty() {
        return ANYTHING;
    }
    let weighted = types.iter().enumerate().map(|(index, name)| match index {
        0 => name.clone(),
        index => format!("{name};q=0.{}", 10 - index),
    });
    let weighted: Vec<String> = weighted.collect();
    HeaderValue::from_str(&format!(
        "{}, */*;q=0.{}",
        weighted.join(", "),
        10 - MAX_TYPES
    ))
    .unwrap_or(ANYTHING)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::spec::operations;

    fn request(
        parameters: &str,
        arguments: &Value,
        headers: &[(&str, &str)],
    ) -> Result<Request, CallError> {
        let header = |(name, value): &(&str, &str)| {
            (
                name.parse::<http::HeaderName>().unwrap(),
                value.parse().unwrap(),
            )
        };
        let headers = headers.iter().map(header).collect();
        request_with(
            parameters,
            arguments,
            &Injected {
                headers,
                ..Injected::default()
            },
        )
    }

    fn request_with(
        parameters: &str,
        arguments: &Value,
        fixed: &Injected,
    ) -> Result<Request, CallError> {
        let text = format!(
            r#"{{"openapi":"3.2.0","paths":{{"/a":{{"get":{{"parameters":{parameters}}}}}}}}}"#
        );
        let document = Document::parse(text.into_bytes(), None).unwrap();
        let (operations, _) = operations(&document);
        let base = BaseUrl::new(Url::parse("https://h.example/v1").unwrap());
        let template = RequestTemplate {
            document: &document,
            operation: &operations[0],
            base: &base,
            expected: &ExpectedReply::new(&document, &operations[0]),
            injected: fixed,
            files: None,
            guard: None,
        };
        build(&template, arguments.as_object().unwrap())
    }

    #[test]
    fn no_argument_takes_the_place_of_a_credential() {
        let fixed = Injected {
            headers: HeaderMap::new(),
            query: vec![("api%5Fkey".into(), "s3cret".into())],
            cookies: vec!["sid=s3cret".into()],
        };
        let form =
            r#"{"name":"q","in":"querystring","content":{"application/x-www-form-urlencoded":{}}}"#;
        let text = r#"{"name":"q","in":"querystring","content":{"text/plain":{}}}"#;
        for (parameter, value) in [
            (
                r#"{"name":"q","in":"query","schema":{"type":"object"}}"#,
                json!({"api_key": "x"}),
            ),
            (
                r#"{"name":"q","in":"cookie","schema":{"type":"object"}}"#,
                json!({"sid": "x"}),
            ),
            (form, json!({"api_key": "x"})),
            (text, json!("api_key")),
        ] {
            let refused = request_with(&format!("[{parameter}]"), &json!({"q": value}), &fixed);
            assert!(refused.is_err(), "{parameter}");
        }
        let request =
            request_with(&format!("[{text}]"), &json!({"q": "api_key=x"}), &fixed).unwrap();
        assert_eq!(request.url.query(), Some("api_key%3Dx&api%5Fkey=s3cret"));
        assert_eq!(request.headers["cookie"], "sid=s3cret");
    }

    #[test]
    fn header_values_cannot_start_another_header() {
        let parameters = r#"[{"name":"X-A","in":"header"}]"#;
        for value in ["a\r\nX-B: c", "a\nb", "a\0b", "é"] {
            assert!(
                request(parameters, &json!({"X-A": value}), &[]).is_err(),
                "{value:?}"
            );
        }
        assert_eq!(
            request(parameters, &json!({"X-A": ["a", 5]}), &[])
                .unwrap()
                .headers["x-a"],
            "a,5"
        );
    }

    #[test]
    fn the_operators_headers_win() {
        let request = request(
            r#"[{"name":"X-Key","in":"header"}]"#,
            &json!({"X-Key": "model"}),
            &[("x-key", "operator")],
        )
        .unwrap();
        assert_eq!(
            request.headers.get_all("x-key").iter().collect::<Vec<_>>(),
            ["operator"]
        );
    }

    #[test]
    fn a_cookie_value_adds_no_cookie() {
        let request = request(
            r#"[{"name":"s","in":"cookie"},{"name":"t","in":"cookie","explode":false}]"#,
            &json!({"s": "a; b=c, d", "t": [1, 2]}),
            &[],
        )
        .unwrap();
        assert_eq!(request.headers["cookie"], "s=a%3B%20b%3Dc%2C%20d; t=1,2");
    }

    #[test]
    fn a_spread_object_cannot_take_another_parameters_name() {
        let parameters = r#"[{"name":"filter","in":"query","schema":{"type":"object"}},{"name":"admin","in":"query"}]"#;
        assert!(request(parameters, &json!({"filter": {"admin": "true"}}), &[]).is_err());
        assert_eq!(
            request(parameters, &json!({"filter": {"a": 1}, "admin": "x"}), &[])
                .unwrap()
                .url
                .query(),
            Some("a=1&admin=x")
        );
    }

    #[test]
    fn content_parameters_are_one_text() {
        let request = request(
            r#"[{"name":"f","in":"query","content":{"application/json":{}}}]"#,
            &json!({"f": {"a": [1]}}),
            &[],
        )
        .unwrap();
        assert_eq!(request.url.query(), Some("f=%7B%22a%22%3A%5B1%5D%7D"));
    }
}
