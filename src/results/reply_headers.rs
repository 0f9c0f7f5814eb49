//! Headers of a reply that a model may need for its next call: validators, links, limits, and what
//! the operation declares.
//!
//! # Adding a header of replies
//!
//! - `STANDARD`, `HIDDEN`, `PAGE_WORDS` and `IN_HEADLINE` in `results/reply_headers.rs`
//!   decide where a header is shown.
//! - `describe_failure` in `results/failure.rs` shows those of errors.
//! - A case in `tests/cases/call/reply_headers.yaml`.

use http::StatusCode;
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, ETAG,
    HeaderMap, HeaderName, LAST_MODIFIED, LINK, LOCATION, RETRY_AFTER, SET_COOKIE, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE, WARNING, WWW_AUTHENTICATE,
};
use serde_json::Value;
use url::{Position, Url};

use super::Reply;
use super::media::room_of;
use super::result_notes::NoteKind;
use super::tool_result::ToolResult;
use crate::caller::client_grant::{NamedTool, ShownTools};
use crate::json::JsonObject;
use crate::outbound::request::is_of_connection;
use crate::spec::operation::response::header_names;
use crate::spec::paging::normalized_name;
use crate::spec::{Document, Location, Operation};
use crate::text;

/// The key of a result's `_meta` that has the headers, as an object of texts by lower-case names.
const META_KEY: &str = "openapi-mcp/headers";
/// Number of headers that a result shows.
const MAX_HEADERS: usize = 20;
/// A longer header is left out: a part of a link or a cursor is of no use.
const MAX_HEADER_BYTES: usize = 4096;
/// Number of bytes of the headers in one note, which is shown whole or not at all.
const MAX_LINE_BYTES: usize = 250;
/// The part of a result's bytes that headers may take, as a divisor.
const MAX_SHARE: usize = 4;

/// Headers that are never shown, even when declared: credentials, challenges, and what belongs to
/// one connection (RFC 9110 section 7.6.1). The framing of the body is of no use to a model.
const HIDDEN: [HeaderName; 13] = [
    AUTHORIZATION,
    COOKIE,
    SET_COOKIE,
    WWW_AUTHENTICATE,
    CONNECTION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    CONTENT_TYPE,
    CONTENT_LENGTH,
    CONTENT_ENCODING,
    HeaderName::from_static("keep-alive"),
];
/// Shown whether declared or not.
const STANDARD: [HeaderName; 8] = [
    ETAG,
    LAST_MODIFIED,
    LOCATION,
    LINK,
    RETRY_AFTER,
    WARNING,
    HeaderName::from_static("deprecation"),
    HeaderName::from_static("sunset"),
];
/// Headers in the text of a reply that has no other text.
const IN_HEADLINE: [HeaderName; 7] = [
    LOCATION,
    LINK,
    ETAG,
    RETRY_AFTER,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    LAST_MODIFIED,
];
/// Declared headers whose names hold one of these words have the begin of the next page, or the
/// number of items.
const PAGE_WORDS: &str = "cursor nextpage nexttoken pagetoken continuation total count";

/// The tools of the same path to which an `ETag` may be given as `If-Match`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct EtagUse {
    /// The name of the argument.
    pub(crate) argument: Box<str>,
    /// The tools.
    pub(crate) tools: Vec<NamedTool>,
}

impl EtagUse {
    /// The advice that names those of the tools that the caller may list, as it calls them; `None`
    /// if there is none of them.
    pub(crate) fn advice(&self, shown: &ShownTools) -> Option<String> {
        let mut tools = self.tools.iter().filter_map(|tool| shown.call_of(tool));
        let begin = format!("pass it as {} to {}", self.argument, tools.next()?);
        Some(tools.fold(begin, |advice, tool| advice + ", " + &tool))
    }
}

/// A header that an operation declares for its replies.
#[derive(Debug)]
pub(crate) struct DeclaredHeader {
    name: HeaderName,
    /// The name as it is declared.
    shown: Box<str>,
}

/// The headers of an operation's replies that are shown.
#[derive(Debug, Clone, Copy, Default)]
pub struct ShownHeaders<'a> {
    pub(crate) declared: &'a [DeclaredHeader],
    /// Advice on the use of an `ETag`.
    pub(crate) etag_advice: Option<&'a str>,
    /// Base URL of the API: of addresses below it, path and query are shown.
    pub(crate) base: Option<&'a Url>,
}

/// Place in which a result shows a header.
enum Told<'a> {
    /// `_meta` only.
    InMeta,
    /// The text as well, with its use.
    ForIfMatch(&'a str),
    /// The text as well, without the origin of the API.
    Location,
    /// The text as well, under the declared name.
    InText(&'a str),
}

impl<'a> ShownHeaders<'a> {
    /// Returns the place in which a header is shown; `None` if it is not.
    fn told(self, name: &HeaderName, response: &Reply) -> Option<Told<'a>> {
        // A reply without a body has them in its text.
        let has_body = response.status.is_success() && !response.body.is_empty();
        if let Some(advice) = self.etag_advice.filter(|_| *name == ETAG) {
            return Some(Told::ForIfMatch(advice));
        }
        if *name == LOCATION
            && has_body
            && matches!(response.status, StatusCode::CREATED | StatusCode::ACCEPTED)
        {
            return Some(Told::Location);
        }
        if STANDARD.contains(name) || is_rate_limit(name) {
            return Some(Told::InMeta);
        }
        let declared = self
            .declared
            .iter()
            .find(|declared| declared.name == *name)?;
        let word = normalized_name(name.as_str());
        let is_useful = !has_body || PAGE_WORDS.split(' ').any(|known| word.contains(known));
        Some(if is_useful {
            Told::InText(&declared.shown)
        } else {
            Told::InMeta
        })
    }

    /// Writes the headers for a reply that has no other text, one per line. The use of an `ETag`
    /// has a line of its own.
    pub(crate) fn headline(self, headers: &HeaderMap) -> Vec<String> {
        let has_own_line = |name: &HeaderName| *name == ETAG && self.etag_advice.is_some();
        let told = |name: &&HeaderName| {
            !has_own_line(name) && (IN_HEADLINE.contains(name) || is_rate_limit(name))
        };
        let line = |name: &HeaderName| match header_text(headers, name) {
            Some(value) => format!(
                "{name}: {}",
                with_addresses(name, &value, |url| without_origin(url, self.base))
            ),
            None => format!("{name}: left out, because it is longer than {MAX_HEADER_BYTES} bytes"),
        };
        headers.keys().filter(told).map(line).collect()
    }

    /// Adds the headers of a reply to its result, in at most a part of `max_bytes`; 0 is no limit.
    /// For a success with a body, notes hold only headers for the next call, else all declared
    /// ones.
    pub(crate) fn add_to(self, result: &mut ToolResult, response: &Reply, max_bytes: usize) {
        let headers = &response.headers;
        let mut found: Vec<(&HeaderName, Told)> = headers
            .keys()
            .filter(|name| !is_hidden(name, headers))
            .filter_map(|name| Some((name, self.told(name, response)?)))
            .collect();
        // If there is no room for all, the headers of the text come first.
        found.sort_by_key(|(_, told)| matches!(told, Told::InMeta));
        let mut values = JsonObject::new();
        let mut room = room_of(max_bytes) / MAX_SHARE;
        let (mut declared, mut left_out) = (Vec::new(), 0);
        for (name, told) in found {
            let value = header_text(headers, name);
            let is_long = value.is_none();
            let value = value.unwrap_or_default();
            let copies = if matches!(told, Told::InMeta) { 1 } else { 2 };
            let size = copies * (name.as_str().len() + value.len() + 8);
            if value.is_empty() && !is_long {
                continue;
            }
            if is_long || values.len() >= MAX_HEADERS || size > room {
                left_out += copies - 1;
                continue;
            }
            room -= size;
            match told {
                Told::InMeta => {}
                Told::ForIfMatch(advice) => {
                    result.note(NoteKind::Precondition, format!("ETag: {value} ({advice})"));
                }
                Told::Location => {
                    let note = format!("Location: {}", without_origin(&value, self.base));
                    result.note(NoteKind::Header, note);
                }
                Told::InText(shown) => declared.push(format!("{}: {value}", text::one_line(shown))),
            }
            values.insert(name.as_str().to_owned(), Value::String(value));
        }
        let mut lines: Vec<String> = Vec::new();
        for header in declared {
            match lines
                .last_mut()
                .filter(|line| line.len() + header.len() <= MAX_LINE_BYTES)
            {
                Some(line) => line.push_str(&format!("; {header}")),
                None => lines.push(header),
            }
        }
        lines
            .into_iter()
            .for_each(|line| result.note(NoteKind::Header, line));
        if left_out > 0 {
            let note = format!(
                "Declared headers of the reply that are left out, because they are too many or too long: {left_out}."
            );
            result.note(NoteKind::Header, note);
        }
        if !values.is_empty() {
            result.insert_meta(META_KEY, Value::Object(values));
        }
    }
}

/// The argument of an operation that is sent as `If-Match`.
pub(crate) fn if_match_argument(operation: &Operation) -> Option<&str> {
    let mut parameters = operation.parameters.iter();
    parameters
        .find(|parameter| parameter.is(Location::Header, "If-Match"))
        .map(|parameter| parameter.key.as_str())
}

/// The headers that an operation declares for any of its replies.
pub(crate) fn declared_headers(document: &Document, operation: &Operation) -> Vec<DeclaredHeader> {
    let mut declared: Vec<DeclaredHeader> = Vec::new();
    for shown in header_names(document, operation) {
        let Ok(name) = HeaderName::from_bytes(shown.as_bytes()) else {
            continue;
        };
        if !declared.iter().any(|known| known.name == name) {
            declared.push(DeclaredHeader {
                name,
                shown: shown.into(),
            });
        }
    }
    declared
}

fn is_rate_limit(name: &HeaderName) -> bool {
    name.as_str().starts_with("ratelimit") || name.as_str().starts_with("x-ratelimit")
}

fn is_hidden(name: &HeaderName, headers: &HeaderMap) -> bool {
    HIDDEN.contains(name) || name.as_str().starts_with("proxy-") || is_of_connection(headers, name)
}

/// All values of a header as one clean line, without user and password in addresses; `None` if that
/// is long.
fn header_text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let values = headers.get_all(name).iter();
    let joined: Vec<_> = values
        .map(|value| String::from_utf8_lossy(value.as_bytes()))
        .collect();
    let line = text::one_line(&joined.join(", "));
    (line.len() <= MAX_HEADER_BYTES).then(|| with_addresses(name, &line, without_user))
}

/// A header whose addresses are shown in another way.
fn with_addresses(name: &HeaderName, value: &str, show: impl Fn(&str) -> String) -> String {
    match *name {
        LOCATION => show(value),
        LINK => {
            let mut links = value.split('<');
            let first = links.next().unwrap_or_default().to_owned();
            links.fold(first, |shown, link| match link.split_once('>') {
                Some((address, rest)) => format!("{shown}<{}>{rest}", show(address)),
                None => format!("{shown}<{link}"),
            })
        }
        _ => value.to_owned(),
    }
}

/// An address without user and password.
fn without_user(address: &str) -> String {
    match Url::parse(address) {
        Ok(mut url) if !url.username().is_empty() || url.password().is_some() => {
            // An address with a host takes both.
            let _ = (url.set_username(""), url.set_password(None));
            url.into()
        }
        _ => address.to_owned(),
    }
}

/// An address of the API without its origin, which is not the client's business; of another origin
/// as it is.
fn without_origin(address: &str, base: Option<&Url>) -> String {
    let is_own = |url: &Url| base.is_some_and(|base| base.origin() == url.origin());
    match Url::parse(address).ok().filter(is_own) {
        Some(url) => url[Position::BeforePath..].to_owned(),
        None => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The headers in `_meta`, and the notes.
    fn report(headers: &[(&str, &str)], max_bytes: usize) -> (JsonObject, Vec<String>) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        report_on(map, ShownHeaders::default(), max_bytes)
    }

    fn report_on(
        headers: HeaderMap,
        shown: ShownHeaders<'_>,
        max_bytes: usize,
    ) -> (JsonObject, Vec<String>) {
        let response = Reply {
            headers,
            body: "{}".into(),
            ..Reply::default()
        };
        let mut result = ToolResult::default();
        shown.add_to(&mut result, &response, max_bytes);
        let meta = result.to_json()["_meta"][META_KEY].take();
        (
            meta.as_object().cloned().unwrap_or_default(),
            result.notes(),
        )
    }

    #[test]
    fn headers_are_few_and_short() {
        let names: Vec<String> = (0..30)
            .map(|number| format!("ratelimit-{number}"))
            .collect();
        let long = "x".repeat(1024);
        let headers: Vec<(&str, &str)> = names
            .iter()
            .map(|name| (name.as_str(), long.as_str()))
            .collect();
        let all = report(&headers, 0);
        assert_eq!(all.0.len(), MAX_HEADERS);
        let few = report(&headers, 10_000);
        assert_eq!(few.0.len(), 2);
        let link = format!(
            "<https://api.example/a?cursor={}>; rel=next",
            "c".repeat(2000)
        );
        let too_long = "x".repeat(5000);
        let said = report(&[("link", &link), ("warning", &too_long)], 0);
        assert_eq!(Value::Object(said.0), serde_json::json!({"link": link}));
    }

    #[test]
    fn what_the_text_holds_comes_first_and_is_missed_aloud() {
        let declared: Vec<DeclaredHeader> = ["X-Total-Count", "X-Cursor"]
            .map(|shown| DeclaredHeader {
                name: shown.parse().unwrap(),
                shown: shown.into(),
            })
            .into();
        let shown = ShownHeaders {
            declared: &declared,
            ..ShownHeaders::default()
        };
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("link", "<a>"),
            ("x-total-count", "250"),
            ("x-cursor", &"c".repeat(300)),
        ] {
            headers.insert(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        let notes = report_on(headers.clone(), shown, 0).1;
        assert!(
            notes.len() == 2 && notes.iter().any(|note| note == "X-Total-Count: 250"),
            "{notes:?}"
        );
        let report = report_on(headers, shown, 400);
        assert_eq!(
            report.0.keys().collect::<Vec<_>>(),
            ["x-total-count", "link"]
        );
        assert_eq!(
            report.1,
            [
                "X-Total-Count: 250",
                "Declared headers of the reply that are left out, because they are too many or too long: 1."
            ]
        );
    }

    #[test]
    fn an_address_of_the_api_has_neither_origin_nor_user() {
        let base = Url::parse("http://api.example:8080/v1").unwrap();
        let shown = ShownHeaders {
            base: Some(&base),
            ..ShownHeaders::default()
        };
        let mut headers = HeaderMap::new();
        let link = "<http://u:p@api.example:8080/v1/a?b=1>; rel=x, <https://u:p@other.example/c>; rel=next";
        headers.insert(LINK, link.parse().unwrap());
        headers.insert(
            LOCATION,
            "http://u:p@api.example:8080/jobs/1?x=1".parse().unwrap(),
        );
        let lines = shown.headline(&headers);
        assert_eq!(
            lines,
            [
                "link: </v1/a?b=1>; rel=x, <https://other.example/c>; rel=next",
                "location: /jobs/1?x=1"
            ]
        );
        let said = report_on(headers, shown, 0).0;
        assert_eq!(said["location"], "http://api.example:8080/jobs/1?x=1");
        assert!(!said["link"].to_string().contains("u:p"), "{said:?}");
    }

    #[test]
    fn a_header_is_one_clean_line_and_what_belongs_to_the_connection_is_none() {
        let said = report(
            &[
                ("link", "<a>"),
                ("link", "<b>;\tx"),
                ("warning", "w"),
                ("connection", "close, Warning"),
            ],
            0,
        );
        assert_eq!(
            Value::Object(said.0).to_string(),
            r#"{"link":"<a>, <b>; x"}"#
        );
    }
}
