//! Texts for the model about a reply that is not a success.

use bytes::Bytes;
use http::StatusCode;
use http::header::{LOCATION, RETRY_AFTER};
use serde_json::Value;

use crate::credentials::resolve::Advice;
use crate::redact::escapes::unescape_html;
use crate::results::compact_json::compact_json;
use crate::results::truncate::{Loss, truncate_json, truncate_text};
use crate::results::{
    Reply, ReplyKind, content_type, decode_text, essence_or_bytes, operation_label, reply_kind,
    status_line, strip_bom,
};
use crate::spec::media_type::essence;
use crate::spec::operation::response::description_of;
use crate::spec::{Document, Location, Operation};
use crate::{json, text};

/// Number of bytes of an error's body that the model gets.
pub(crate) const MAX_ERROR_BYTES: usize = 16 << 10;

/// Larger JSON is shown as it is.
const MAX_TREE_BYTES: usize = 64 << 10;

/// Facts about a call besides its reply.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KnownOfCall<'a> {
    /// Advice if the API refuses the call.
    pub(crate) advice: Option<&'a Advice>,
    /// The document, which says which members of a reply matter most.
    pub(crate) document: Option<&'a Document>,
    /// The arguments, which are named if a 404 has no body.
    pub(crate) arguments: Option<&'a json::JsonObject>,
}

/// Describes a status that is not a success for the model, with at most so many bytes of the body,
/// and what was cut.
pub(crate) fn describe_failure(
    operation: &Operation,
    response: &Reply,
    known: KnownOfCall<'_>,
    max_bytes: usize,
) -> (String, Vec<Loss>) {
    let status = response.status;
    let label = operation_label(operation);
    let mut message = if response.is_of_wait {
        format!(
            "{} from a request for the status of {label}, which was accepted",
            status_line(status)
        )
    } else {
        format!("{} from {label}", status_line(status))
    };
    let header = |name| response.header(name).map(text::one_line);
    if status.is_redirection() {
        if let Some(location) = header(&LOCATION) {
            message.push_str(&format!(
                "\nThe API points to {location}; redirects are not followed."
            ));
        } else if response.is_of_wait {
            message.push_str("\nThe API points elsewhere; this redirect is not followed.");
        }
        return (message, Vec::new());
    }
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            message.push('\n');
            message.push_str(&refused(status, known.advice));
        }
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            if let Some(after) = header(&RETRY_AFTER) {
                let unit = if after.bytes().all(|byte| byte.is_ascii_digit()) {
                    " seconds"
                } else {
                    ""
                };
                message.push_str(&format!("\nRetry after {after}{unit}."));
            }
        }
        _ => {}
    }
    let body = error_body(content_type(&response.headers), &response.body);
    if body.trim().is_empty() {
        message.push_str(&describe_silent_failure(operation, status, known));
        return (message, Vec::new());
    }
    let is_json = body.starts_with(['{', '[']) && json::is_json(body.as_bytes());
    let (kept, losses) = if is_json {
        truncate_json(&body, max_bytes, &[])
    } else {
        let (kept, loss) = truncate_text(&body, max_bytes);
        (kept.to_owned(), Vec::from_iter(loss))
    };
    (format!("{message}\n{kept}"), losses)
}

/// Describes a status without a body: with the words of the document, and for a 404 with the
/// arguments.
fn describe_silent_failure(
    operation: &Operation,
    status: StatusCode,
    known: KnownOfCall<'_>,
) -> String {
    const MAX_VALUE_BYTES: usize = 200;
    let said = known
        .document
        .and_then(|document| description_of(document, operation, status));
    let said = said.map(|said| text::truncate(&text::one_line(&said), text::MAX_DESCRIPTION_BYTES));
    let mut message = said
        .map(|said| format!("\nThe document says of this status: {said}"))
        .unwrap_or_default();
    if status == StatusCode::NOT_FOUND {
        let in_path = operation
            .parameters
            .iter()
            .filter(|parameter| parameter.location == Location::Path);
        let asked = in_path.filter_map(|parameter| {
            let value = known.arguments?.get(&parameter.key)?;
            let value = text::truncate(&text::one_line(&value.to_string()), MAX_VALUE_BYTES);
            Some(format!("`{}`: {value}", parameter.key))
        });
        let asked: Vec<String> = asked.collect();
        if !asked.is_empty() {
            message.push_str(&format!("\nAsked for was {}.", asked.join(", ")));
        }
    }
    message
}

/// Returns the advice for a 401 or a 403.
fn refused(status: StatusCode, advice: Option<&Advice>) -> String {
    match (status, advice) {
        (_, Some(Advice { sent: false, schemes, .. })) if schemes.is_empty() => {
            "This call carried no credential; the document declares none for it. `--header-env` adds one.".into()
        }
        (StatusCode::UNAUTHORIZED, None) => "The API wants credentials that were not sent or not accepted; whoever runs this server sets them with --header-env or --header.".into(),
        (StatusCode::UNAUTHORIZED, Some(Advice { sent: false, schemes, .. })) => {
            format!("The API wants a credential, and this server has none for this call; {schemes}.")
        }
        (StatusCode::UNAUTHORIZED, Some(Advice { schemes, .. })) => {
            format!("The API did not accept the credential that whoever runs this server has set for {schemes}.")
        }
        (_, Some(Advice { sent: true, schemes, scopes })) => {
            let scopes = if scopes.is_empty() {
                String::new()
            } else {
                format!(" It asks for the scopes {}.", scopes.join(", "))
            };
            format!("The credential of this server for {schemes} may not allow this call.{scopes}")
        }
        _ => "The credentials of this server may not allow this call.".into(),
    }
}

fn error_body(content_type: &str, body: &Bytes) -> String {
    match reply_kind(content_type, body) {
        // A tree takes many times the memory of its text.
        ReplyKind::Json if body.len() > MAX_TREE_BYTES => match compact_json(strip_bom(body)) {
            Some(json) => json.into_owned(),
            None => decode_text("", body),
        },
        ReplyKind::Json => match json::parse_value(strip_bom(body)) {
            Ok(value) if essence(content_type) == "application/problem+json" => problem_text(value),
            Ok(value) => value.to_string(),
            Err(_) => decode_text("", body),
        },
        ReplyKind::Text if essence(content_type) == "text/html" => {
            without_tags(&decode_text(content_type, body))
        }
        ReplyKind::Text => decode_text(content_type, body),
        _ if body.is_empty() => String::new(),
        _ => format!(
            "({} bytes of {})",
            body.len(),
            essence_or_bytes(content_type)
        ),
    }
}

/// Writes a problem (RFC 9457): title and detail first, then its other members.
fn problem_text(value: Value) -> String {
    let field = |name: &str| value.get(name).and_then(Value::as_str);
    let lead: Vec<&str> = [field("title"), field("detail")]
        .into_iter()
        .flatten()
        .collect();
    let mut text = lead.join(": ");
    if let Value::Object(mut rest) = value {
        rest.retain(|key, _| !matches!(key.as_str(), "title" | "detail" | "status"));
        if !rest.is_empty() {
            text.push('\n');
            text.push_str(&Value::Object(rest).to_string());
        }
    }
    text.trim().to_owned()
}

/// Returns the words of an HTML error page: the text between tags, without scripts and styles. It
/// reads as much as could be shown, in one pass.
fn without_tags(html: &str) -> String {
    const MAX_HTML_BYTES: usize = 256 << 10;
    let html = html
        .get(..html.floor_char_boundary(MAX_HTML_BYTES))
        .unwrap_or_default();
    let mut text = String::new();
    let mut skipping: Option<&str> = None;
    for (index, piece) in html.split('<').enumerate() {
        let starts = |name: &str| {
            piece
                .get(..name.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(name))
        };
        if skipping.is_some_and(|name| !starts(name)) {
            continue;
        }
        skipping = [("script", "/script"), ("style", "/style")]
            .into_iter()
            .find(|(open, _)| starts(open))
            .map(|(_, close)| close);
        if skipping.is_none() {
            let words = if index == 0 {
                piece
            } else {
                piece.split_once('>').map_or("", |(_, after)| after)
            };
            text.push_str(words);
            text.push(' ');
        }
    }
    text::one_line(&unescape_html(&text))
}
