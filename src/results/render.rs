//! Conversion of the reply to the result of the tool.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use http::header::CONTENT_DISPOSITION;
use serde_json::Value;

use super::compact_json::compact_json;
use super::failure::{self, KnownOfCall};
use super::media::{
    MAX_BLOB_BYTES, MAX_LINE_BYTES, ReplyPart, file_result, max_blob_bytes, media_kind, media_room,
    missing_destination, room_of,
};
use super::records::{self, Framing};
use super::reply_headers::ShownHeaders;
use super::result_notes::NoteKind;
use super::tool_result::{MediaBlock, MediaBlockKind, ResultForm, ToolResult};
use super::truncate::{self, Loss};
use super::{
    Reply, ReplyKind, content_type, decode_text, essence_or_bytes, media, operation_label,
    reply_kind, status_line, strip_bom,
};
use crate::call_error::CallError;
use crate::files::FileDelivery;
use crate::spec::operation::response::{reply_properties, successes};
use crate::spec::paging::page_size_argument;
use crate::spec::{Document, MediaKind, Operation, media_type};
use crate::{json as spec_json, observe, text};

/// Larger JSON is given as a text, if structured content would need a tree.
const MAX_TREE_BYTES: usize = 2 << 20;

/// Number of bytes of the name of a file that are shown.
const MAX_NAME_BYTES: usize = 200;

/// Contract of a tool for the structured content of its successes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OutputContract {
    /// None: it has no output schema.
    #[default]
    None,
    /// Some object: its output schema accepts any.
    AnyObject,
    /// The object that the document declares.
    AsDeclared,
}

/// Options for rendering a reply.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rendering<'a> {
    /// Contract of the tool.
    pub promise: OutputContract,
    /// Number of bytes that a result may have; 0 is no limit.
    pub max_bytes: usize,
    /// Settings for replies that become files.
    pub delivery: Option<&'a FileDelivery>,
    /// True if a rule makes the reply a file.
    pub is_file: bool,
    /// The client's name, if it shows no images to the model.
    pub hides_images: Option<&'static str>,
    pub(crate) known: KnownOfCall<'a>,
    /// The argument that filters the reply, if there is one.
    pub filter: Option<&'a str>,
    /// Key of the argument that collected the pages of this reply, if there are several.
    pub pages_key: Option<&'a str>,
    /// Headers that are shown.
    pub headers: ShownHeaders<'a>,
}

/// Makes the result of a call that was answered. If there is an output schema, clients refuse a
/// success without structured content. One that is not JSON, or too large to be taken apart, gets
/// its text as `result`; if that would break the contract it is not a success, because an error's
/// content is not checked, and reaches the model.
#[must_use]
pub fn render_reply(
    operation: &Operation,
    response: &Reply,
    rendering: Rendering<'_>,
) -> ToolResult {
    let mut result = render_body(operation, response, rendering);
    rendering
        .headers
        .add_to(&mut result, response, rendering.max_bytes);
    result
}

fn render_body(operation: &Operation, response: &Reply, rendering: Rendering<'_>) -> ToolResult {
    let status = response.status;
    if !status.is_success() {
        let (text, losses) =
            failure::describe_failure(operation, response, rendering.known, error_room(rendering));
        return error_result(text, operation, &losses);
    }
    let result = success(operation, response, rendering);
    if rendering.promise == OutputContract::AsDeclared
        && !result.is_error()
        && result.json().is_none()
    {
        return result.into_error(&format!(
            "{} answered {status}, but not with JSON that can be given as its output schema promises:",
            operation_label(operation)
        ));
    }
    result
}

/// Returns the number of bytes of an error's body that are shown.
fn error_room(rendering: Rendering<'_>) -> usize {
    failure::MAX_ERROR_BYTES.min(room_of(rendering.max_bytes))
}

fn error_result(text: String, operation: &Operation, losses: &[Loss]) -> ToolResult {
    let mut result = ToolResult::error(text);
    if !losses.is_empty() {
        result.note(NoteKind::Cut, lost(operation, losses, None, None));
    }
    result
}

/// The result of a call that failed on this side, or got no answer.
#[must_use]
pub fn render_error(operation: &Operation, error: &CallError) -> Box<ToolResult> {
    let text = match error {
        CallError::Arguments(text) => text.clone(),
        other => format!("{} failed: {other}.", operation_label(operation)),
    };
    let mut result = ToolResult::error(text).ended_as(error.outcome());
    if let CallError::SignIn { challenge, .. } = error {
        result.challenge.clone_from(challenge);
    }
    Box::new(result)
}

impl OutputContract {
    /// Returns the form of a success that is not JSON.
    pub(crate) fn text_form(self) -> ResultForm {
        match self {
            Self::None => ResultForm::Plain,
            Self::AnyObject | Self::AsDeclared => ResultForm::Structured,
        }
    }
}

fn success(operation: &Operation, response: &Reply, rendering: Rendering<'_>) -> ToolResult {
    let form = rendering.promise.text_form();
    if let Some(file) = &response.file {
        let is_structured = rendering.promise != OutputContract::AsDeclared;
        let result = file_result(response, file, is_structured, form);
        return result.unwrap_or_else(|error| *render_error(operation, &error));
    }
    let content_type = content_type(&response.headers);
    if operation.method == Method::HEAD
        || (response.stopped.is_none() && is_blank(content_type, &response.body))
    {
        return ToolResult::of_text(headline(response, rendering.headers), form);
    }
    if rendering.is_file
        && let Some(setting) = undelivered(rendering)
    {
        return missing_destination(response, setting, form);
    }
    if let Some(framing) = Framing::of(content_type) {
        return stream_result(operation, response, framing, rendering);
    }
    let whole = |content_type: &str| ReplyPart {
        content_type: content_type.to_owned(),
        disposition: response
            .header(&CONTENT_DISPOSITION)
            .unwrap_or_default()
            .to_owned(),
        body: response.body.clone(),
    };
    let parts = match reply_kind(content_type, &response.body) {
        ReplyKind::Json => return json_result(operation, response, rendering),
        ReplyKind::Multipart => {
            media::parts(content_type, &response.body).unwrap_or_else(|| vec![whole("text/plain")])
        }
        _ => vec![whole(content_type)],
    };
    let mut room = room_of(rendering.max_bytes);
    // A part of a reply never becomes a file.
    let delivery = rendering.delivery.filter(|_| parts.len() == 1);
    let (text, media) = parts_in_room(
        &parts,
        &mut room,
        Rendering {
            delivery,
            ..rendering
        },
    );
    let (kept, loss) = truncate::truncate_text(&text, room);
    let mut result = ToolResult::of_text(kept, form).with_media(media);
    if is_unexpected_page(operation, content_type, rendering.known.document) {
        let note = "The reply is an HTML page, and the document declares JSON: it may be that of a login or of a proxy.";
        result.note(NoteKind::Form, note.to_owned());
    }
    if let Some(loss) = loss {
        note_cut();
        let mut note = format!(
            "The reply was cut, because it is longer than a result may be: {loss} are shown."
        );
        if rendering
            .delivery
            .is_some_and(|delivery| delivery.destination.is_some())
        {
            note.push_str(" The operator can have it saved as a file, by a rule with `response: { file: true }`.");
        }
        result.note(NoteKind::Cut, note);
    }
    result
}

/// Returns true if a body is empty or only white space, which some servers send.
fn is_blank(content_type: &str, body: &[u8]) -> bool {
    const MAX_WHITE_SPACE: usize = 16;
    body.is_empty()
        || (body.len() <= MAX_WHITE_SPACE
            && body.trim_ascii().is_empty()
            && matches!(
                reply_kind(content_type, body),
                ReplyKind::Json | ReplyKind::Text
            ))
}

/// Returns true if the reply is a web page although the document declares JSON.
fn is_unexpected_page(
    operation: &Operation,
    content_type: &str,
    document: Option<&Document>,
) -> bool {
    let Some(document) = document.filter(|_| media_type::essence(content_type) == "text/html")
    else {
        return false;
    };
    let successes = successes(document, operation);
    let declared = || successes.iter().flat_map(|response| &response.media);
    let is = |kind: MediaKind| declared().any(|media| MediaKind::of(&media.name) == kind);
    is(MediaKind::Json) && !is(MediaKind::Text)
}

fn note_cut() {
    if let Some(metrics) = observe::metrics() {
        metrics.results_cut.inc();
    }
}

/// Makes a list of the records of a stream, and the reason of its end.
fn stream_result(
    operation: &Operation,
    response: &Reply,
    framing: Framing,
    rendering: Rendering<'_>,
) -> ToolResult {
    let text = decode_text(content_type(&response.headers), &response.body);
    let (list, count) = records::list_records(framing, &text, response.stopped.is_none());
    let remark = response
        .stopped
        .map(|why| format!("The stream may go on: {count} records were collected until {why}."));
    let mut result = structured(operation, Cow::Owned(list), false, rendering);
    remark
        .into_iter()
        .for_each(|remark| result.note(NoteKind::Cut, remark));
    result
}

/// JSON as `structuredContent`, an object as it is and anything else under `result`, because
/// clients up to 2025-11-25 accept only objects there; and the same as compact text.
fn json_result(operation: &Operation, response: &Reply, rendering: Rendering<'_>) -> ToolResult {
    let body = strip_bom(&response.body);
    if let Some(json) = compact_json(body) {
        return structured(operation, json, true, rendering);
    }
    let is_cut = body.len() > room_of(rendering.max_bytes);
    let parsed: Result<Value, _> =
        if (is_cut || body.len() > MAX_TREE_BYTES) && spec_json::is_plain(body) {
            Err(None)
        } else {
            spec_json::parse_value(body).map_err(Some)
        };
    match parsed {
        // What a tree is written as has everything that `compact_json` asks for.
        Ok(value) => structured(operation, Cow::Owned(value.to_string()), true, rendering),
        // Such JSON has more than one reading.
        Err(Some(error)) if !spec_json::is_plain(body) => ToolResult::error(format!(
            "{} answered {} with JSON that is not read: {error}.",
            operation_label(operation),
            response.status
        )),
        // A tree takes many times the memory of its text: what is long is cut first.
        Err(_) => match serde_json::from_slice::<serde::de::IgnoredAny>(body) {
            Ok(_) => structured(operation, String::from_utf8_lossy(body), false, rendering),
            Err(error) => {
                let text = decode_text("", body);
                let (kept, loss) = truncate::truncate_text(&text, error_room(rendering));
                let sentence = format!(
                    "{} answered {} with a body that is not valid JSON ({error}):",
                    operation_label(operation),
                    response.status
                );
                error_result(format!("{sentence}\n\n{kept}"), operation, loss.as_slice())
            }
        },
    }
}

/// Makes a result of JSON text, cut if it is too long. With `is_compact`, the text is known to be
/// as a tree would be written.
fn structured(
    operation: &Operation,
    json: Cow<'_, str>,
    is_compact: bool,
    rendering: Rendering<'_>,
) -> ToolResult {
    let length = json.len();
    let is_cut = length > room_of(rendering.max_bytes);
    let is_wrapped = rendering.promise == OutputContract::AsDeclared;
    let (text, losses) = if is_cut {
        let first = rendering
            .known
            .document
            .map(|document| reply_properties(document, operation))
            .unwrap_or_default();
        truncate::truncate_json(&json, rendering.max_bytes, &first)
    } else {
        (json.into_owned(), Vec::new())
    };
    let mut result = match as_compact_json(text, is_compact && !is_cut, length) {
        Ok(json) => ToolResult::of_compact_json(json, is_wrapped),
        Err((text, reason)) => {
            let mut result = ToolResult::of_text(text, ResultForm::Quoted);
            result.note(
                NoteKind::Form,
                format!("The reply is given as text, because {reason}."),
            );
            result
        }
    };
    if !losses.is_empty() {
        note_cut();
        let lost = lost(operation, &losses, rendering.filter, rendering.pages_key);
        result.losses = losses;
        if rendering.promise == OutputContract::AsDeclared {
            // A client that checks would throw all of it away: an error is not checked.
            result.notes.body_says_cut = true;
            return result.into_error(&lost);
        }
        result.note(NoteKind::Cut, lost);
    }
    result
}

/// The text as compact JSON, or as it is with the reason why it cannot be. `length` is that of the
/// whole reply.
fn as_compact_json(
    text: String,
    is_compact: bool,
    length: usize,
) -> Result<String, (String, String)> {
    if is_compact {
        return Ok(text);
    }
    match compact_json(text.as_bytes()) {
        Some(Cow::Borrowed(_)) => Ok(text),
        Some(Cow::Owned(compact)) => Ok(compact),
        None if text.len() > MAX_TREE_BYTES => Err((
            text,
            format!("it has {length} bytes, and only {MAX_TREE_BYTES} are structured"),
        )),
        None => match spec_json::parse_text(&text) {
            Ok(value) => Ok(value.to_string()),
            Err(error) => Err((text, unstructured_reason(&error))),
        },
    }
}

/// Returns the reason for which valid JSON has no structured form.
fn unstructured_reason(error: &serde_json::Error) -> String {
    let error = error.to_string();
    if error.contains("recursion limit") {
        "it nests too deeply to be structured".into()
    } else if error.contains("surrogate") || error.contains("hex escape") {
        "it holds half of a surrogate pair, which no text can hold".into()
    } else {
        format!("it cannot be structured ({error})")
    }
}

/// Describes what was cut, and how to get the rest.
fn lost(
    operation: &Operation,
    losses: &[Loss],
    filter: Option<&str>,
    pages_key: Option<&str>,
) -> String {
    let mut how = match (pages_key, page_size_argument(operation)) {
        (Some(pages_key), _) => format!("; a smaller `{pages_key}` takes less at a time"),
        (None, Some(size)) => {
            let of_list = losses
                .first()
                .filter(|loss| loss.what == "items" && loss.kept > 1);
            let fitting =
                of_list.map_or_else(String::new, |loss| format!(", of which {} fit", loss.kept));
            format!("; `{size}` asks for fewer at a time{fitting}")
        }
        (None, None) => String::new(),
    };
    if let Some(filter) = filter {
        how.push_str(&format!("; `{filter}` selects parts of the reply"));
    }
    format!(
        "The reply was cut, because it is longer than a result may be: {} are shown{how}.",
        truncate::describe_losses(losses)
    )
}

/// The text of all parts, and those that are not text; these are taken off `room`, of which half is
/// for texts that need it. If the text does not fit, the lines about other parts come first.
fn parts_in_room(
    parts: &[ReplyPart],
    room: &mut usize,
    rendering: Rendering<'_>,
) -> (String, Vec<MediaBlock>) {
    let mut texts: Vec<(bool, String)> = Vec::new();
    let mut media = Vec::new();
    let text_bytes =
        |part: &ReplyPart| media_kind(part).map_or(part.body.len(), |_| MAX_LINE_BYTES);
    let text_bytes: usize = parts.iter().map(text_bytes).sum();
    let mut media_room = media_room(*room, text_bytes);
    let setting = undelivered(rendering).map_or_else(String::new, |setting| {
        format!("; {setting} would deliver it as a file")
    });
    // A model takes an image by its pixels, independent of the length of its base64.
    let mut image_room = MAX_BLOB_BYTES;
    for part in parts {
        let Some(kind) = media_kind(part) else {
            texts.push((true, decode_text(&part.content_type, &part.body)));
            continue;
        };
        let media_type = essence_or_bytes(&part.content_type);
        let name = media_type::parameter(&part.disposition, "filename");
        let name = name.map(|name| {
            format!(
                "{}: ",
                text::truncate(&text::one_line(&name), MAX_NAME_BYTES)
            )
        });
        let mut line = format!(
            "{}{media_type}, {} bytes",
            name.unwrap_or_default(),
            part.body.len()
        );
        let is_image = matches!(kind, MediaBlockKind::Image);
        let most = if is_image {
            image_room
        } else {
            max_blob_bytes(media_room)
        };
        if let Some(client) = rendering.hides_images.filter(|_| is_image) {
            line.push_str(&format!(
                "; left out, because {client} does not show images to the model"
            ));
        } else if part.body.len() > most {
            line.push_str(if is_image {
                "; left out, because a result holds at most 4 MiB of images"
            } else {
                "; left out, because it does not fit into --max-result-tokens, which the operator of this server sets"
            });
            line.push_str(&setting);
        } else {
            let data = STANDARD.encode(&part.body);
            if is_image {
                image_room -= part.body.len();
            } else {
                media_room -= data.len();
                *room -= data.len();
            }
            media.push(MediaBlock {
                kind,
                media_type,
                data,
            });
        }
        texts.push((false, line));
    }
    if texts.iter().map(|(_, text)| text.len() + 2).sum::<usize>() > *room {
        texts.sort_by_key(|(is_text, _)| *is_text);
    }
    let texts: Vec<String> = texts.into_iter().map(|(_, text)| text).collect();
    (texts.join("\n\n"), media)
}

/// Returns the setting that would make a reply a file, if the operator has not made it.
fn undelivered(rendering: Rendering<'_>) -> Option<&'static str> {
    let delivery = rendering
        .delivery
        .filter(|delivery| delivery.destination.is_none());
    delivery.map(|delivery| delivery.setting)
}

/// Writes `204 No Content`, and the headers that matter without a body.
fn headline(response: &Reply, shown: ShownHeaders<'_>) -> String {
    let lines = shown.headline(&response.headers).into_iter();
    lines.fold(status_line(response.status), |text, line| {
        text + "\n" + &line
    })
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use serde_json::json;

    use super::*;
    use crate::spec::operations;

    fn result(method: &str, status: u16, headers: &[(&str, &str)], body: &[u8]) -> Value {
        let text = format!(r#"{{"openapi":"3.1.0","paths":{{"/a":{{"{method}":{{}}}}}}}}"#);
        let (operations, _) = operations(&Document::parse(text.into_bytes(), None).unwrap());
        let headers = headers
            .iter()
            .map(|(name, value)| {
                (
                    name.parse::<http::HeaderName>().unwrap(),
                    value.parse().unwrap(),
                )
            })
            .collect();
        let response = Reply {
            status: StatusCode::from_u16(status).unwrap(),
            headers,
            body: bytes::Bytes::copy_from_slice(body),
            ..Reply::default()
        };
        render_reply(&operations[0], &response, Rendering::default()).to_json()
    }

    fn ok(content_type: &str, body: &[u8]) -> Value {
        result("get", 200, &[("content-type", content_type)], body)
    }

    #[test]
    fn json_of_any_shape_is_structured() {
        for (body, structured) in [
            (r#"{ "a" : 1.50 }"#, r#"{"a":1.50}"#),
            ("[1, 2]", r#"{"result":[1,2]}"#),
            ("42", r#"{"result":42}"#),
            ("null", r#"{"result":null}"#),
            (
                "12345678901234567890123",
                r#"{"result":12345678901234567890123}"#,
            ),
        ] {
            let result = ok("application/vnd.api+json; charset=utf-8", body.as_bytes());
            assert_eq!(result["structuredContent"].to_string(), structured);
            assert_eq!(
                result["content"],
                json!([{"type": "text", "text": structured}])
            );
            assert_eq!(result["isError"], false);
        }
    }

    #[test]
    fn other_bodies_become_the_block_that_fits() {
        assert_eq!(
            ok("text/plain; charset=iso-8859-1", b"caf\xe9")["content"][0]["text"],
            "café"
        );
        assert_eq!(
            ok("image/png; x=y", b"\x89PNG")["content"],
            json!([
                {"type": "text", "text": "image/png, 4 bytes"},
                {"type": "image", "data": "iVBORw==", "mimeType": "image/png"}
            ])
        );
        assert_eq!(
            ok("text/csv", b"ab\0\xff")["content"][0]["text"],
            "text/csv, 4 bytes"
        );
        assert_eq!(
            ok("text/csv", b"a,\xff")["content"][0]["text"],
            "a,\u{fffd}"
        );
        assert_eq!(ok("audio/wav", b"RIFF")["content"][1]["type"], "audio");
        let headers = [
            ("content-type", "application/pdf"),
            ("content-disposition", "attachment; filename=\"a.pdf\""),
        ];
        let blob = result("get", 200, &headers, b"%PDF");
        assert_eq!(
            blob["content"][0]["text"],
            "a.pdf: application/pdf, 4 bytes"
        );
        assert_eq!(
            blob["content"][1]["resource"]["mimeType"],
            "application/pdf"
        );
        assert_eq!(blob["content"][1]["resource"]["blob"], "JVBERg==");
        assert_eq!(
            result("get", 200, &[], br#"{"a":1}"#)["structuredContent"],
            json!({"a": 1})
        );
    }

    /// A result of at most `max_bytes`.
    fn cut_to(
        max_bytes: usize,
        hides_images: Option<&'static str>,
        status: u16,
        content_type: &str,
        body: &[u8],
    ) -> Value {
        let text = r#"{"openapi":"3.1.0","paths":{"/a":{"get":{}}}}"#;
        let (operations, _) = operations(&Document::parse(text.into(), None).unwrap());
        let response = Reply {
            status: StatusCode::from_u16(status).unwrap(),
            headers: [(http::header::CONTENT_TYPE, content_type.parse().unwrap())]
                .into_iter()
                .collect(),
            body: bytes::Bytes::copy_from_slice(body),
            ..Reply::default()
        };
        let rendering = Rendering {
            max_bytes,
            hides_images,
            ..Rendering::default()
        };
        render_reply(&operations[0], &response, rendering).to_json()
    }

    #[test]
    fn files_and_texts_share_the_room_of_a_result() {
        let left_out = cut_to(900, None, 200, "audio/wav", &[0; 2000]);
        assert_eq!(
            left_out["content"].as_array().unwrap().len(),
            1,
            "{left_out}"
        );
        let text = left_out["content"][0]["text"].as_str().unwrap();
        assert!(
            text.contains("left out") && text.contains("--max-result-tokens"),
            "{text}"
        );
        // A model takes an image by its pixels.
        let shown = cut_to(900, None, 200, "image/png", &[0; 2000]);
        assert_eq!(shown["content"][1]["type"], "image");
        let hidden = cut_to(900, Some("A client"), 200, "image/png", &[0; 500]);
        assert_eq!(hidden["content"].as_array().unwrap().len(), 1, "{hidden}");
        assert_eq!(
            hidden["content"][0]["text"],
            "image/png, 500 bytes; left out, because A client does not show images to the model"
        );
        let part =
            |kind: &str, body: &str| format!("--B\r\ncontent-type: {kind}\r\n\r\n{body}\r\n");
        let blob = part("application/octet-stream", &"x".repeat(200));
        let many = format!(
            "{}{}--B--\r\n",
            part("text/plain", &"line\n".repeat(1000)),
            blob.repeat(8)
        );
        let result = cut_to(
            3000,
            None,
            200,
            "multipart/mixed; boundary=B",
            many.as_bytes(),
        );
        assert!(result.to_string().len() < 5000, "{result}");
        let blobs = result["content"].as_array().unwrap().len() - 1;
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!((2..=6).contains(&blobs), "{blobs}");
        assert_eq!(
            (
                text.matches("octet-stream").count(),
                text.matches("left out").count()
            ),
            (8, 8 - blobs),
            "{text}"
        );
        assert!(
            text.find("octet-stream") < text.find("line") && text.contains("The reply was cut"),
            "{text}"
        );
    }

    #[test]
    fn an_error_is_cut_between_lines_and_items_and_says_so() {
        let errors: Vec<Value> = (0..500)
            .map(|id| json!({"field": id, "message": "not valid"}))
            .collect();
        let json = json!({"errors": errors}).to_string();
        let lines = "at main\n".repeat(1000);
        for (status, content_type, body, end) in [
            (422, "application/json", json.as_str(), "}]}"),
            (500, "text/plain", lines.as_str(), "at main"),
            (200, "application/json", lines.as_str(), "at main"),
        ] {
            let result = cut_to(900, None, status, content_type, body.as_bytes());
            let text = result["content"][0]["text"].as_str().unwrap();
            let (shown, note) = text.rsplit_once("\n\n").unwrap();
            assert_eq!(result["isError"], true);
            assert!(shown.ends_with(end) && shown.len() < 1100, "{text}");
            assert!(note.starts_with("The reply was cut"), "{text}");
        }
    }

    #[test]
    fn an_empty_reply_says_its_status() {
        assert_eq!(
            result("delete", 204, &[], b"")["content"][0]["text"],
            "204 No Content"
        );
        assert_eq!(
            result(
                "head",
                200,
                &[("etag", "\"x\""), ("set-cookie", "secret")],
                b""
            )["content"][0]["text"],
            "200 OK\netag: \"x\""
        );
    }

    #[test]
    fn failures_are_errors_with_words_for_the_model() {
        for (status, headers, body, expected) in [
            (
                404,
                vec![("content-type", "application/json")],
                r#"{"m":"no"}"#,
                "404 Not Found from GET /a\n{\"m\":\"no\"}",
            ),
            (
                422,
                vec![("content-type", "application/problem+json")],
                r#"{"title":"Bad","detail":"x","status":422}"#,
                "422 Unprocessable Entity from GET /a\nBad: x",
            ),
            (
                500,
                vec![("content-type", "text/html")],
                "<html><script>x()</script><h1>Oh &amp; no</h1>",
                "500 Internal Server Error from GET /a\nOh & no",
            ),
            (
                429,
                vec![("retry-after", "7")],
                "",
                "429 Too Many Requests from GET /a\nRetry after 7 seconds.",
            ),
            (
                302,
                vec![("location", "https://evil.example/")],
                "",
                "302 Found from GET /a\nThe API points to https://evil.example/; redirects are not followed.",
            ),
        ] {
            let result = result("get", status, &headers, body.as_bytes());
            assert_eq!(
                (
                    result["isError"].as_bool(),
                    result["content"][0]["text"].as_str()
                ),
                (Some(true), Some(expected))
            );
        }
    }

    #[test]
    fn json_that_is_not_structured_says_why() {
        let long = format!(
            "[{}{{\"a\":1,\"a\":2}}]",
            "0,".repeat(MAX_TREE_BYTES / 2 + 1)
        );
        let deep = "[".repeat(200) + &"]".repeat(200);
        for (body, reason) in [
            (
                r#"{"a":"\ud800"}"#,
                "because it holds half of a surrogate pair, which no text can hold",
            ),
            (
                r#"{"a":"\udc00"}"#,
                "because it holds half of a surrogate pair, which no text can hold",
            ),
            (&deep, "because it nests too deeply"),
            (&long, "because it has 2097169 bytes"),
        ] {
            let result = ok("application/json", body.as_bytes());
            let structured = &result["structuredContent"];
            let note = structured["_notes"][0].as_str().unwrap();
            assert!(note.contains(reason), "{note}");
            assert_eq!(structured["result"], body);
            assert_eq!(
                result["content"],
                json!([{"type": "text", "text": structured.to_string()}])
            );
        }
    }

    #[test]
    fn broken_json_is_an_error_that_shows_the_body() {
        let result = ok("application/json", b"{\"a\":");
        assert_eq!(result["isError"], true);
        assert!(
            result["content"][0]["text"]
                .as_str()
                .unwrap()
                .ends_with(":\n\n{\"a\":"),
            "{result}"
        );
    }
}
