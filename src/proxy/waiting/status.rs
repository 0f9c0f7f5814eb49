//! The status of an operation that takes long: recognition of a reply that gives one, and whether the
//! operation still runs, is done, or has failed.
//!
//! A body may be as long as a reply may be, and is asked for again and again: only its beginning is
//! read, and no tree is made of it.

use std::borrow::Cow;

use http::header::{HeaderName, LOCATION};
use http::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::strings;
use crate::results::remarks::Progress;
use crate::results::{Reply, strip_bom};
use crate::spec::node::Node;
use crate::spec::operation::rules::{
    FieldValues, NamedRead, ResultPlace, StatusPlace, WaitRule, WaitSettings,
};
use crate::spec::{Operation, pointer};
use crate::text::{self, is_word_of, letters};

/// Headers whose URL is a resource of its own for the status, before `Location` (Azure REST API
/// guidelines, long-running operations).
const STATUS_HEADERS: [HeaderName; 2] = [
    HeaderName::from_static("azure-asyncoperation"),
    HeaderName::from_static("operation-location"),
];

/// Kind of the place that the URL of a status comes from. Replies to requests for the status may
/// name a newer URL there.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum StatusKind {
    /// `Azure-AsyncOperation` or `Operation-Location`: the status is not the result.
    Monitor,
    /// `Location`: the last status is the result.
    Location,
    /// The URL of the request: the last status is the result.
    Own,
    /// A header or a member of the first reply that a rule names.
    Named,
    /// An operation that a rule names for the status: the operator allows requests at its paths.
    Operation,
    /// An operation that a rule names for the result, likewise.
    Result,
}

/// Place of the status of an operation.
pub(crate) enum FoundStatus<'o> {
    /// A URL of the reply.
    Url(StatusKind, String),
    /// The URL of the request.
    Own,
    /// Another operation.
    Operation(&'o NamedRead),
}

/// The settings of an operation for waiting, if there are some.
pub(crate) fn settings(operation: &Operation) -> Option<&WaitSettings> {
    match &operation.rules.wait {
        Some(WaitRule::Wait(settings)) => Some(settings),
        _ => None,
    }
}

/// Returns the URL of a header of that kind.
pub(crate) fn header_url(kind: StatusKind, response: &Reply) -> Option<String> {
    match kind {
        StatusKind::Monitor => STATUS_HEADERS.iter().find_map(|name| text(response, name)),
        StatusKind::Location => text(response, &LOCATION),
        StatusKind::Own | StatusKind::Named | StatusKind::Operation | StatusKind::Result => None,
    }
}

/// Finds the status of an operation in its reply; `None` if the reply is final, or names none.
pub(crate) fn recognize<'o>(
    operation: &'o Operation,
    response: &Reply,
    body: &StatusBody,
) -> Option<FoundStatus<'o>> {
    if !is_possible(operation, response) {
        return None;
    }
    let settings = settings(operation);
    if let Some(settings) = settings {
        if settings.done.is_some()
            && matches!(
                StatusVerdict::of(response, body, Some(settings)),
                StatusVerdict::Done | StatusVerdict::Failed(_)
            )
        {
            return None;
        }
        let found = match &settings.status {
            Some(StatusPlace::Header(name)) => {
                text(response, name).map(|url| FoundStatus::Url(StatusKind::Named, url))
            }
            Some(StatusPlace::Field(place)) => {
                let url = body.pointer(place).and_then(Value::as_str);
                url.map(|url| FoundStatus::Url(StatusKind::Named, url.to_owned()))
            }
            Some(StatusPlace::Operation(named)) => Some(FoundStatus::Operation(named)),
            None => None,
        };
        if found.is_some() {
            return found;
        }
    }
    let is_accepted = response.status == StatusCode::ACCEPTED;
    let is_long = operation.long_running.extension.is_some();
    // A first reply that is not 202 may be the last one as well.
    if !is_accepted && has_final_state(body) {
        return None;
    }
    let in_header = |kind| {
        let url = header_url(kind, response);
        url.map(|url| FoundStatus::Url(kind, url))
    };
    let monitor = || in_header(StatusKind::Monitor);
    let location = || in_header(StatusKind::Location);
    let is_write_of_resource = matches!(operation.method, Method::PUT | Method::PATCH);
    let own = || {
        let is_unfinished = unfinished_word(body).is_some();
        (is_long && is_write_of_resource && is_unfinished).then_some(FoundStatus::Own)
    };
    match response.status {
        StatusCode::ACCEPTED
            if is_long || settings.is_some() || operation.long_running.is_accepted =>
        {
            monitor().or_else(location).or_else(own)
        }
        // The `Location` of a 201 is the new resource (RFC 9110 section 15.3.2).
        StatusCode::CREATED if is_long && !is_write_of_resource => monitor().or_else(location),
        StatusCode::CREATED => monitor().or_else(own),
        _ if is_long => monitor().or_else(own),
        _ => None,
    }
}

/// Returns true if a reply may name a status. Most may not, and their bodies are not read for it.
pub(crate) fn is_possible(operation: &Operation, response: &Reply) -> bool {
    let is_named = match &operation.rules.wait {
        Some(WaitRule::Never) => return false,
        Some(WaitRule::Wait(_)) => true,
        None => operation.long_running.extension.is_some(),
    };
    match response.status {
        StatusCode::ACCEPTED => is_named || operation.long_running.is_accepted,
        StatusCode::CREATED => is_named || header_url(StatusKind::Monitor, response).is_some(),
        status => is_named && status.is_success(),
    }
}

fn text(response: &Reply, name: &HeaderName) -> Option<String> {
    let value = response.header(name)?.trim();
    (!value.is_empty()).then(|| value.to_owned())
}

/// Words for an operation that is done, in the form of [`letters`].
const DONE: &str = "succeeded success completed complete done finished ready";
/// Words for an operation that has failed, in the form of [`letters`].
const FAILED: &str = "failed error errored canceled cancelled aborted expired rejected timedout";
/// The longest word for a state that is shown, in bytes.
const MAX_WORD_BYTES: usize = 60;

/// Meaning of a reply to a request for a status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StatusVerdict {
    /// The operation still runs.
    Running(Progress),
    /// It is done.
    Done,
    /// It has failed, with the word for it, if there is one.
    Failed(Option<String>),
    /// It is done, and the result is at this URL.
    Moved(String),
    /// The reply says nothing of the operation; another request may.
    Unknown,
    /// The API refuses to answer.
    Refused,
}

impl StatusVerdict {
    /// Reads a reply to a request for a status.
    pub(crate) fn of(response: &Reply, body: &StatusBody, settings: Option<&WaitSettings>) -> Self {
        let status = response.status;
        match status {
            StatusCode::SEE_OTHER | StatusCode::FOUND | StatusCode::TEMPORARY_REDIRECT => {
                let location = response.header(&LOCATION);
                return location.map_or(Self::Refused, |location| Self::Moved(location.to_owned()));
            }
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => return Self::Unknown,
            _ if status.is_server_error() => return Self::Unknown,
            _ if !status.is_success() => return Self::Refused,
            _ => {}
        }
        let settings =
            settings.filter(|settings| settings.done.is_some() || settings.failed.is_some());
        match settings {
            Some(settings) => by_rule(settings, status, body),
            None => by_words(status, body),
        }
    }
}

/// Returns the word for the state if the body has one that is not final, or two that disagree.
fn unfinished_word(body: &StatusBody) -> Option<String> {
    match by_words(StatusCode::OK, body) {
        StatusVerdict::Running(progress) => progress.word,
        _ => None,
    }
}

/// Returns true if the body has words for the state, and all are final and agree.
fn has_final_state(body: &StatusBody) -> bool {
    let has_word = STATES.iter().any(|place| {
        body.pointer(place)
            .is_some_and(|word| word.as_str().is_some_and(|word| !word.is_empty()))
    });
    has_word && unfinished_word(body).is_none()
}

fn by_rule(settings: &WaitSettings, status: StatusCode, body: &StatusBody) -> StatusVerdict {
    let is_one_of = |values: &Option<FieldValues>| {
        let values = values.as_ref()?;
        let found = body.pointer(&values.field)?;
        values
            .values
            .contains(found)
            .then(|| found.as_str().map(shown))
    };
    if let Some(word) = is_one_of(&settings.failed) {
        return StatusVerdict::Failed(word);
    }
    let Some(done) = &settings.done else {
        return by_words(status, body);
    };
    if is_one_of(&settings.done).is_some() {
        return StatusVerdict::Done;
    }
    let word = body.pointer(&done.field).and_then(Value::as_str);
    // Without values for it, an operation that fails would run forever.
    if let Some(word) =
        word.filter(|word| settings.failed.is_none() && is_word_of(FAILED, &letters(word)))
    {
        return StatusVerdict::Failed(Some(shown(word)));
    }
    StatusVerdict::Running(Progress {
        word: word.map(shown),
        percent: percent(body),
    })
}

fn by_words(status: StatusCode, body: &StatusBody) -> StatusVerdict {
    let texts = STATES
        .iter()
        .filter_map(|place| body.pointer(place)?.as_str());
    let words: Vec<&str> = texts.filter(|word| !word.is_empty()).collect();
    let is_done = |word: &&&str| is_word_of(DONE, &letters(word));
    let is_failed = |word: &&&str| is_word_of(FAILED, &letters(word));
    let first_unfinished = words.iter().find(|word| !is_done(word) && !is_failed(word));
    let (done, failed) = (words.iter().find(is_done), words.iter().find(is_failed));
    let is_running = status == StatusCode::ACCEPTED
        || first_unfinished.is_some()
        || done.is_some() && failed.is_some();
    if is_running {
        return StatusVerdict::Running(Progress {
            word: first_unfinished.or(words.first()).map(|word| shown(word)),
            percent: percent(body),
        });
    }
    match failed {
        Some(word) => StatusVerdict::Failed(Some(shown(word))),
        None => StatusVerdict::Done,
    }
}

/// Returns how much is done, in whole percent.
fn percent(body: &StatusBody) -> Option<u64> {
    let found = PERCENTS
        .iter()
        .find_map(|place| body.pointer(place)?.as_f64())?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is between 0 and 100"
    )]
    (0.0..=100.0).contains(&found).then(|| found.round() as u64)
}

fn shown(word: &str) -> String {
    text::truncate(&text::one_line(word), MAX_WORD_BYTES)
}

/// Number of bytes of a body that are read.
const MAX_STATUS_BYTES: usize = 1 << 20;
/// A longer value is not read: a status has words, numbers and URLs.
const MAX_VALUE_BYTES: usize = 16 << 10;

/// Members that hold a word for the state.
const STATES: [&str; 4] = [
    "/status",
    "/state",
    "/provisioningState",
    "/properties/provisioningState",
];
/// Members that say how much is done, in percent.
const PERCENTS: [&str; 2] = ["/percentComplete", "/progress"];
/// Member with the URL of the result (Azure REST API guidelines, long-running operations).
pub(super) const RESOURCE_LOCATION: &str = "/resourceLocation";

/// The members of a status that decide about a wait, by their JSON Pointers. A body that is not a
/// JSON object has none.
#[derive(Default)]
pub(crate) struct StatusBody(Vec<(String, Value)>);

impl StatusBody {
    /// Reads the beginning of a body in any charset: the members that an operation's rule names,
    /// and the usual ones.
    pub(super) fn read(response: &Reply, settings: Option<&WaitSettings>) -> Self {
        let is_cut = response.body.len() > MAX_STATUS_BYTES;
        let beginning = response
            .body
            .slice(..response.body.len().min(MAX_STATUS_BYTES));
        let members = members(&beginning, is_cut, settings).or_else(|| {
            let mut response = Reply {
                body: beginning,
                ..response.clone()
            };
            response.decode_charset();
            members(&response.body, is_cut, settings)
        });
        Self(members.unwrap_or_default())
    }

    /// Returns the member at a JSON Pointer.
    pub(super) fn pointer(&self, place: &str) -> Option<&Value> {
        let found = self.0.iter().find(|(known, _)| known == place);
        found.map(|(_, value)| value)
    }
}

fn members(
    body: &[u8],
    is_cut: bool,
    settings: Option<&WaitSettings>,
) -> Option<Vec<(String, Value)>> {
    let body = strip_bom(body);
    let text = match std::str::from_utf8(body) {
        Err(error) if is_cut && error.error_len().is_none() => {
            std::str::from_utf8(body.get(..error.valid_up_to())?).ok()
        }
        text => text.ok(),
    }?;
    let text = if is_cut {
        closed(text).into()
    } else {
        Cow::Borrowed(text)
    };
    let root = Node::new(&text).object()?;
    let value_at = |place: &str| {
        let steps = place.split('/').skip(1);
        let steps: Vec<String> = steps.map(pointer::unescaped_token).collect();
        let (first, rest) = steps.split_first()?;
        let found = pointer::target(root.get(first)?, rest)?;
        (found.text().len() <= MAX_VALUE_BYTES).then(|| found.value())?
    };
    Some(
        places(settings)
            .filter_map(|place| Some((place.to_owned(), value_at(place)?)))
            .collect(),
    )
}

/// The places of members that decide about a wait.
fn places(settings: Option<&WaitSettings>) -> impl Iterator<Item = &str> {
    let usual = STATES
        .into_iter()
        .chain(PERCENTS)
        .chain([RESOURCE_LOCATION]);
    let of_rule = settings.into_iter().flat_map(|settings| {
        let values = settings
            .done
            .iter()
            .chain(&settings.failed)
            .map(|FieldValues { field, .. }| field);
        let status = match &settings.status {
            Some(StatusPlace::Field(field)) => Some(field),
            _ => None,
        };
        let result = match &settings.result {
            Some(ResultPlace::Field(field)) => Some(field),
            _ => None,
        };
        let of_named = settings.named_reads().flat_map(|named| &named.arguments);
        values
            .chain(status)
            .chain(result)
            .chain(of_named.map(|(.., place)| place))
    });
    usual.chain(of_rule.map(String::as_str))
}

/// JSON whose end is missing, cut after the last value that is whole and closed there.
fn closed(text: &str) -> String {
    let (mut open, mut whole) = (Vec::new(), (0, 0));
    for string in strings(text.as_bytes()) {
        for (at, byte) in (string.at..).zip(string.before) {
            match byte {
                b'{' => open.push('}'),
                b'[' => open.push(']'),
                b'}' | b']' => {
                    open.pop();
                    whole = (at + 1, open.len());
                }
                b',' => whole = (at, open.len()),
                _ => {}
            }
        }
    }
    let (end, depth) = whole;
    let mut closed = text.get(..end).unwrap_or_default().to_owned();
    closed.extend(open.iter().take(depth).rev());
    closed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn reply(status: u16, body: &Value) -> Reply {
        Reply {
            status: StatusCode::from_u16(status).unwrap(),
            body: if body.is_null() {
                Vec::new()
            } else {
                body.to_string().into_bytes()
            }
            .into(),
            ..Reply::default()
        }
    }

    fn verdict(response: &Reply, settings: Option<&WaitSettings>) -> StatusVerdict {
        StatusVerdict::of(response, &StatusBody::read(response, settings), settings)
    }

    fn word(verdict: &StatusVerdict) -> String {
        match verdict {
            StatusVerdict::Running(progress) => {
                let percent = progress
                    .percent
                    .map(|percent| format!(" {percent}%"))
                    .unwrap_or_default();
                format!(
                    "running {}{percent}",
                    progress.word.as_deref().unwrap_or("-")
                )
            }
            StatusVerdict::Failed(word) => format!("failed {}", word.as_deref().unwrap_or("-")),
            StatusVerdict::Moved(url) => format!("moved {url}"),
            other => format!("{other:?}").to_lowercase(),
        }
    }

    #[test]
    fn a_status_and_the_usual_words_say_what_became_of_an_operation() {
        for (status, body, expected) in [
            (202, json!(null), "running -"),
            (202, json!({"status": "Succeeded"}), "running Succeeded"),
            (200, json!(null), "done"),
            (204, json!(null), "done"),
            (201, json!({"id": 1}), "done"),
            (
                200,
                json!({"status": "InProgress", "percentComplete": 30}),
                "running InProgress 30%",
            ),
            (
                200,
                json!({"state": "queued", "progress": 12.4}),
                "running queued 12%",
            ),
            (
                200,
                json!({"state": "queued", "progress": 900}),
                "running queued",
            ),
            (200, json!({"status": "SUCCEEDED"}), "done"),
            (200, json!({"status": "timed_out"}), "failed timed_out"),
            (
                200,
                json!({"properties": {"provisioningState": "Canceled"}}),
                "failed Canceled",
            ),
            (
                200,
                json!({"properties": {"provisioningState": "Creating"}}),
                "running Creating",
            ),
            (
                200,
                json!({"status": "Succeeded", "provisioningState": "Creating"}),
                "running Creating",
            ),
            (
                200,
                json!({"status": "Succeeded", "state": "failed"}),
                "running Succeeded",
            ),
            (200, json!({"status": 1, "state": ""}), "done"),
            (200, json!({"status": {"state": "x"}}), "done"),
            (200, json!([{"status": "running"}]), "done"),
            (408, json!(null), "unknown"),
            (429, json!(null), "unknown"),
            (500, json!({"status": "failed"}), "unknown"),
            (503, json!(null), "unknown"),
            (400, json!(null), "refused"),
            (404, json!(null), "refused"),
            (410, json!(null), "refused"),
            (301, json!(null), "refused"),
            (303, json!(null), "refused"),
        ] {
            assert_eq!(
                word(&verdict(&reply(status, &body), None)),
                expected,
                "{status} {body}"
            );
        }
        for status in [302, 303, 307] {
            let mut moved = reply(status, &json!(null));
            moved.headers.insert(LOCATION, "/result".parse().unwrap());
            assert_eq!(word(&verdict(&moved, None)), "moved /result");
        }
    }

    #[test]
    fn a_status_is_read_in_any_charset_and_of_any_size() {
        let with_type = |content_type: &str, body: Vec<u8>| {
            let mut response = reply(200, &json!(null));
            response.body = body.into();
            response
                .headers
                .insert(http::header::CONTENT_TYPE, content_type.parse().unwrap());
            word(&verdict(&response, None))
        };
        let text = r#"{"status":"Running"}"#;
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(
            with_type("application/json; charset=utf-16be", big.clone()),
            "running Running"
        );
        assert_eq!(
            with_type("application/json; charset=utf-16", little),
            "running Running"
        );
        assert_eq!(with_type("application/json", big), "running Running");
        let latin = b"{\"status\":\"Running\",\"who\":\"J\xf6rg\"}".to_vec();
        assert_eq!(
            with_type("application/json; charset=iso-8859-1", latin),
            "running Running"
        );
        let long = json!({"status": "Running", "rows": "a".repeat(2 << 20)}).to_string();
        assert_eq!(
            with_type("application/json", long.into_bytes()),
            "running Running"
        );
    }

    #[test]
    fn the_values_of_a_rule_count_to_the_letter() {
        let values = |field: &str, values: Value| {
            Some(FieldValues {
                field: field.into(),
                values: values.as_array().cloned().unwrap(),
            })
        };
        let settings = WaitSettings {
            done: values("/job/phase", json!(["Done", true, 3])),
            failed: values("/job/phase", json!(["bad"])),
            ..WaitSettings::default()
        };
        for (status, body, expected) in [
            (200, json!({"job": {"phase": "Done"}}), "done"),
            (202, json!({"job": {"phase": "Done"}}), "done"),
            (200, json!({"job": {"phase": "done"}}), "running done"),
            (200, json!({"job": {"phase": true}}), "done"),
            (200, json!({"job": {"phase": 3}}), "done"),
            (200, json!({"job": {"phase": "3"}}), "running 3"),
            (
                200,
                json!({"job": {"phase": "bad"}, "progress": 1}),
                "failed bad",
            ),
            (200, json!({"job": {"phase": "failed"}}), "running failed"),
            (200, json!({"status": "done"}), "running -"),
            (200, json!(null), "running -"),
            (404, json!(null), "refused"),
        ] {
            assert_eq!(
                word(&verdict(&reply(status, &body), Some(&settings))),
                expected,
                "{body}"
            );
        }
        let without_failed = WaitSettings {
            failed: None,
            ..settings
        };
        let failed = verdict(
            &reply(200, &json!({"job": {"phase": "FAILED"}})),
            Some(&without_failed),
        );
        assert_eq!(word(&failed), "failed FAILED");
    }

    #[test]
    fn json_without_its_end_is_closed_after_the_last_whole_value() {
        for (text, expected) in [
            (
                r#"{"status":"Running","rows":[1,2"#,
                r#"{"status":"Running","rows":[1]}"#,
            ),
            (r#"{"a":{"b":[1,2],"c":"x"#, r#"{"a":{"b":[1,2]}}"#),
            (r#"{"a":[{"b":1},{"c":"x, {"#, r#"{"a":[{"b":1}]}"#),
            (r#"{"a":[1,2]"#, r#"{"a":[1,2]}"#),
            (r#"{"a":"b"#, ""),
        ] {
            assert_eq!(closed(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn json_that_is_cut_anywhere_is_json_again(at in 0_usize..80) {
            let text = r#"{"a":[1,{"b":"x\",]}é"},[],{}],"c":{"d":{"e":null,"f":[[2]]}},"g":true}"#;
            let cut = closed(text.get(..text.floor_char_boundary(at)).unwrap());
            prop_assert!(cut.is_empty() || serde_json::from_str::<Value>(&cut).is_ok(), "{}", cut);
        }
    }
}
