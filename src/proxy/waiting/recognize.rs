//! Recognition of a reply to an operation that is done later.

use http::header::{HeaderName, LOCATION};
use http::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::status_body::StatusBody;
use super::verdict::{StatusVerdict, has_final_state, unfinished_word};
use crate::results::Reply;
use crate::spec::Operation;
use crate::spec::operation::rules::{NamedRead, StatusPlace, WaitRule, WaitSettings};

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
        let has_values = settings.done.is_some() || settings.failed.is_some();
        if has_values
            && matches!(
                StatusVerdict::of(response, body, Some(settings)),
                StatusVerdict::Done | StatusVerdict::Failed(_)
            )
            && settings.done.is_some()
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
    let monitor = || {
        header_url(StatusKind::Monitor, response)
            .map(|url| FoundStatus::Url(StatusKind::Monitor, url))
    };
    let location = || {
        header_url(StatusKind::Location, response)
            .map(|url| FoundStatus::Url(StatusKind::Location, url))
    };
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
    let value = response.headers.get(name)?.to_str().ok()?.trim();
    (!value.is_empty()).then(|| value.to_owned())
}
