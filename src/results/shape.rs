//! Application of the operator's rules to a reply before other code reads it: fields kept or left
//! out, a jq program, a number of items.
//!
//! A rule that cannot be applied withholds the reply: its status, its size and the reason are
//! given, never what it holds.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName};
use serde_json::Value;

use super::filter::{FilterFailure, Sandbox, apply_filter};
use super::records::{self, Framing};
use super::render::OutputContract;
use super::tool_result::ToolResult;
use super::{Reply, ReplyKind, decode_text, media, operation_label, reply_kind, status_line};
use crate::json::parse_text;
use crate::redact::Redactor;
use crate::redact::json::NumberMark;
use crate::spec::Operation;
use crate::spec::media_type::content_type;
use crate::spec::operation::response_rule::{FieldPosition, ResponseRule};
use crate::spec::paging::page_size_argument;

/// A larger reply is not shaped: as a tree it takes many times its size.
const MAX_SHAPED_BYTES: usize = 8 << 20;
/// Placeholder of a record that cannot be parsed.
const WITHHELD_RECORD: &str = "[withheld: not JSON]";

/// Returns the number of bytes that a success may have for a rule to be applied, if the rule has
/// such a limit.
pub(crate) fn max_shaped_bytes(rule: &ResponseRule) -> Option<usize> {
    let is_tree_needed =
        !rule.drop.is_empty() || !rule.fields.is_empty() || rule.max_items.is_some();
    is_tree_needed.then_some(MAX_SHAPED_BYTES)
}

/// Shapes a reply by a rule; `left` is what is left of the call's time. Returns what of a page is
/// not shown, in a sentence.
///
/// # Errors
/// The reason for which the reply is withheld, in words for a model.
pub(crate) async fn shape_reply(
    rule: &ResponseRule,
    operation: &Operation,
    sandbox: Option<&Sandbox>,
    response: &mut Reply,
    left: Duration,
) -> Result<Option<String>, String> {
    let mut remark = None;
    let is_success = response.status.is_success();
    shape_headers(rule, response);
    if response.body.is_empty() || (!is_success && rule.drop.is_empty()) {
        return Ok(None);
    }
    let changes = is_success && (!rule.fields.is_empty() || rule.max_items.is_some());
    if !rule.drop.is_empty() || changes {
        remark = shape_fields(rule, operation, response)?;
    }
    if let (Some(program), true) = (&rule.jq, is_success) {
        run_program(program, sandbox, response, left).await?;
        if let (Some(limit), Some(mut value)) = (rule.max_items, parsed(response))
            && let Some(cut) = cut_lists(operation, &mut value, limit)
        {
            remark = Some(cut);
            response.put_json(value.to_string());
        }
    }
    Ok(remark)
}

/// Masks a reply.
///
/// # Errors
/// The reason for which the reply is withheld, in words for a model.
pub(crate) fn mask_reply(masks: &Redactor, response: &mut Reply) -> Result<(), String> {
    let content_type = content_type(&response.headers);
    let is_text = |content_type: &str, body: &[u8]| {
        matches!(
            reply_kind(content_type, body),
            ReplyKind::Json | ReplyKind::Text
        )
    };
    let is_readable = match reply_kind(content_type, &response.body) {
        ReplyKind::Multipart => media::parts(content_type, &response.body).is_none_or(|parts| {
            let mut parts = parts.iter();
            parts.all(|part| is_text(&part.content_type, &part.body))
        }),
        _ => Framing::of(content_type).is_some() || is_text(content_type, &response.body),
    };
    // Of an error that is not text, the type and the size are shown.
    if !is_readable && response.status.is_success() && !response.body.is_empty() {
        return Err("it cannot be read as text".into());
    }
    masks.redact(response, NumberMark::Text);
    Ok(())
}

/// Takes out the headers of a reply of which only parts are given, and those that have the name of
/// a dropped field.
fn shape_headers(rule: &ResponseRule, response: &mut Reply) {
    let gives_parts =
        response.status.is_success() && (!rule.fields.is_empty() || rule.jq.is_some());
    let is_kept =
        |name: &HeaderName| *name == CONTENT_TYPE || !(gives_parts || drops(rule, name.as_str()));
    let names: Vec<HeaderName> = response
        .headers
        .keys()
        .filter(|name| !is_kept(name))
        .cloned()
        .collect();
    for name in names {
        response.headers.remove(name);
    }
}

/// Returns true if a rule drops a field of that name at the root of a reply.
fn drops(rule: &ResponseRule, name: &str) -> bool {
    FieldPosition::root(&rule.drop).step(name).1
}

fn shape_fields(
    rule: &ResponseRule,
    operation: &Operation,
    response: &mut Reply,
) -> Result<Option<String>, String> {
    if response.body.len() > MAX_SHAPED_BYTES {
        return unshaped(rule, &format!("it has more than {MAX_SHAPED_BYTES} bytes"));
    }
    let content_type = content_type(&response.headers);
    if let Some(framing) = Framing::of(content_type) {
        let text = decode_text(content_type, &response.body);
        let records = shaped_records(rule, framing, &text, response);
        let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
        response.body = Bytes::from(lines);
        response.headers.insert(
            CONTENT_TYPE,
            http::HeaderValue::from_static("application/x-ndjson"),
        );
        return Ok(None);
    }
    let Some(mut value) = parsed(response) else {
        return unshaped(rule, "it is not JSON");
    };
    let is_success = response.status.is_success();
    let is_scalar = !value.is_object() && !value.is_array();
    if is_scalar && is_success && !rule.fields.is_empty() {
        return Err("it has no fields".into());
    }
    shape_value(rule, &mut value, is_success);
    let limit = rule.max_items.filter(|_| is_success && rule.jq.is_none());
    let remark = limit.and_then(|limit| cut_lists(operation, &mut value, limit));
    let problem = response.headers.get(CONTENT_TYPE).cloned();
    let problem = problem.filter(|_| !is_success);
    response.put_json(value.to_string());
    if let Some(problem) = problem {
        response.headers.insert(CONTENT_TYPE, problem);
    }
    Ok(remark)
}

/// Decides about a reply that cannot be parsed: a rule that removes parts withholds it.
fn unshaped(rule: &ResponseRule, why: &str) -> Result<Option<String>, String> {
    if rule.withholds() {
        return Err(why.to_owned());
    }
    Ok(None)
}

fn parsed(response: &Reply) -> Option<Value> {
    parse_text(&response.json_or_records()?).ok()
}

fn shape_value(rule: &ResponseRule, value: &mut Value, is_success: bool) {
    if !rule.drop.is_empty() {
        drop_fields(value, &FieldPosition::root(&rule.drop));
    }
    if is_success && !rule.fields.is_empty() {
        keep_fields(value, &FieldPosition::root(&rule.fields));
    }
}

/// The records of a stream, each shaped; of an event its data. What `fields` names is in the data
/// alone; `drop` takes out the name and the id of an event as well.
fn shaped_records(
    rule: &ResponseRule,
    framing: Framing,
    text: &str,
    response: &Reply,
) -> Vec<String> {
    let (is_whole, is_success) = (response.stopped.is_none(), response.status.is_success());
    if framing != Framing::Events {
        let mut records = records::records(framing, text, is_whole);
        records
            .iter_mut()
            .for_each(|record| shape_record(rule, record, is_success));
        return records;
    }
    let shaped = records::events(text, is_whole)
        .into_iter()
        .map(|mut event| {
            shape_record(rule, &mut event.data, is_success);
            for (name, text) in [("event", &mut event.name), ("id", &mut event.id)] {
                if (is_success && !rule.fields.is_empty()) || drops(rule, name) {
                    text.clear();
                }
            }
            event.into_record()
        });
    shaped.collect()
}

fn shape_record(rule: &ResponseRule, record: &mut String, is_success: bool) {
    match parse_text(record) {
        Ok(mut value) if !value.is_string() => {
            shape_value(rule, &mut value, is_success);
            *record = value.to_string();
        }
        _ if rule.withholds() => *record = Value::from(WITHHELD_RECORD).to_string(),
        _ => {}
    }
}

/// Takes out what a pattern names.
fn drop_fields(value: &mut Value, position: &FieldPosition<'_>) {
    if !position.is_over() {
        retain_fields(value, position, |part, inner, is_named| {
            if !is_named {
                drop_fields(part, inner);
            }
            !is_named
        });
    }
}

/// Keeps only what a pattern names, and what leads to it; says whether anything is left. Items of
/// lists stay, so that their number does.
fn keep_fields(value: &mut Value, position: &FieldPosition<'_>) -> bool {
    let is_list = value.is_array();
    retain_fields(value, position, |part, inner, is_named| {
        is_named
            || ((is_list || !inner.is_over()) && keep_fields(part, inner))
            || (is_list && part.is_object())
    })
}

/// Keeps the members of an object, or the items of a list, that `keeps` is true for, which gets
/// each with the position in it, and with whether a pattern names it. Returns whether any is left.
fn retain_fields(
    value: &mut Value,
    position: &FieldPosition<'_>,
    keeps: impl Fn(&mut Value, &FieldPosition<'_>, bool) -> bool,
) -> bool {
    match value {
        Value::Object(members) => {
            members.retain(|name, member| {
                let (inner, is_named) = position.step(name);
                keeps(member, &inner, is_named)
            });
            !members.is_empty()
        }
        Value::Array(items) => {
            let mut index = 0;
            items.retain_mut(|item| {
                let (inner, is_named) = position.item(index);
                index += 1;
                keeps(item, &inner, is_named)
            });
            !items.is_empty()
        }
        _ => false,
    }
}

/// Cuts the list that a reply is, or those that are its members. Returns a sentence on what is left
/// of which.
fn cut_lists(operation: &Operation, value: &mut Value, limit: usize) -> Option<String> {
    let mut cut = Vec::new();
    let mut shorten = |place: &str, items: &mut Vec<Value>| {
        if items.len() > limit {
            cut.push(format!("{place}{limit} of {}", items.len()));
            items.truncate(limit);
        }
    };
    match value {
        Value::Array(items) => shorten("", items),
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                if let Value::Array(items) = member {
                    shorten(&format!("`/{name}`: "), items);
                }
            }
        }
        _ => {}
    }
    let how = page_size_argument(operation).map(|size| {
        format!(
            " To read on, ask for pages of that size with `{size}`: the next page would leave out the others."
        )
    });
    (!cut.is_empty()).then(|| {
        format!(
            "Only some of the items on this page are shown, as this server is set: {}.{}",
            cut.join("; "),
            how.unwrap_or_default()
        )
    })
}

async fn run_program(
    program: &str,
    sandbox: Option<&Sandbox>,
    response: &mut Reply,
    left: Duration,
) -> Result<(), String> {
    let sandbox = sandbox.ok_or("filters cannot be run here")?;
    match apply_filter(sandbox, program, response, left, left).await {
        Ok(()) => Ok(()),
        Err(FilterFailure::NotJson) => Err("it is not JSON".into()),
        Err(FilterFailure::OutputNotJson) => Err("the output of its jq program is not JSON".into()),
        // What the program complains of may hold what it was to keep back, and no log holds replies.
        Err(failure) => {
            let why = match &failure {
                FilterFailure::OfSandbox(why) => why,
                _ => "it failed on this reply",
            };
            tracing::warn!("the jq program of a rule was not applied: {why}");
            Err("its jq program could not be applied".into())
        }
    }
}

/// Makes the result in place of a reply that is withheld. A success stays one, so that the call is
/// not repeated.
pub(crate) fn withheld_result(
    operation: &Operation,
    response: &Reply,
    why: &str,
    contract: OutputContract,
) -> ToolResult {
    let text = format!(
        "{} from {}. The reply of {} bytes is withheld, because this server is set to give only a part of it, and {why}.",
        status_line(response.status),
        operation_label(operation),
        response.body.len()
    );
    if response.status.is_success() {
        ToolResult::of_text(text, contract.text_form())
    } else {
        ToolResult::error(text)
    }
}
