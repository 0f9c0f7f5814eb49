//! Reading of a reply to a request for a status: whether the operation still runs, is done, or has
//! failed.

use http::StatusCode;
use http::header::LOCATION;
use serde_json::Value;

use super::status_body::{PERCENTS, STATES, StatusBody};
use crate::results::Reply;
use crate::results::wait_remark::Progress;
use crate::spec::operation::rules::{FieldValues, WaitSettings};
use crate::text;

/// Words for an operation that is done, in the form of [`folded`].
const DONE: [&str; 7] = [
    "succeeded",
    "success",
    "completed",
    "complete",
    "done",
    "finished",
    "ready",
];
/// Words for an operation that has failed, in the form of [`folded`].
const FAILED: [&str; 9] = [
    "failed",
    "error",
    "errored",
    "canceled",
    "cancelled",
    "aborted",
    "expired",
    "rejected",
    "timedout",
];
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
                let location = response
                    .headers
                    .get(LOCATION)
                    .and_then(|value| value.to_str().ok());
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
pub(crate) fn unfinished_word(body: &StatusBody) -> Option<String> {
    match by_words(StatusCode::OK, body) {
        StatusVerdict::Running(progress) => progress.word,
        _ => None,
    }
}

/// Returns true if the body has words for the state, and all are final and agree.
pub(crate) fn has_final_state(body: &StatusBody) -> bool {
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
        word.filter(|word| settings.failed.is_none() && FAILED.contains(&folded(word).as_str()))
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
    let is_done = |word: &&&str| DONE.contains(&folded(word).as_str());
    let is_failed = |word: &&&str| FAILED.contains(&folded(word).as_str());
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

/// A word without case and punctuation.
fn folded(word: &str) -> String {
    let letters = word.chars().filter(|character| character.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

fn shown(word: &str) -> String {
    text::truncate(&text::one_line(word), MAX_WORD_BYTES)
}

#[cfg(test)]
mod tests {
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
}
