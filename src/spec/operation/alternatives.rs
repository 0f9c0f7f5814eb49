//! The media types of a request body between which a call may choose: those that differ in the
//! caller's value, or in its meaning for the API.

use http::Method;

use super::request_body::{BodySchema, MediaType, RequestBody, is_text};
use super::special_bodies::{arrange_patch_types, is_patch, read_multipart_files, type_for_lists};
use crate::spec::document::Document;
use crate::spec::media_type::{MediaKind, essence};
use crate::spec::node::Span;

/// More media types than this are not worth a choice.
const MAX_ALTERNATIVES: usize = 8;

/// Arranges the media types of a body: the first in the order of preference is sent unless a call
/// chooses another. Of equals the first declared is preferred. `None` if there is no media type.
pub(crate) fn arrange_body(
    document: &Document,
    mut media_types: Vec<MediaType>,
    method: &Method,
) -> Option<RequestBody> {
    for media_type in &mut media_types {
        read_multipart_files(document, media_type);
    }
    // Stable: of equals the first declared stays first.
    media_types.sort_by_key(|media_type| media_type.kind);
    let is_text_of = |kinds: fn(&MediaType) -> bool| {
        media_types
            .iter()
            .any(|media_type| kinds(media_type) && takes_text(document, media_type))
    };
    if is_text_of(is_json) && is_text_of(is_raw) {
        // A text that the API takes as it is would be stored with the quotes of JSON.
        media_types.sort_by_key(|media_type| match takes_text(document, media_type) {
            true if is_raw(media_type) => 0,
            true if is_json(media_type) => 2,
            _ => 1,
        });
    }
    let is_patch = method == Method::PATCH;
    if is_patch {
        arrange_patch_types(document, &mut media_types);
    }
    let mut media_types = media_types.into_iter();
    let media_type = media_types.next()?;
    let alternatives = alternatives(document, &media_type, media_types, method);
    let for_lists = type_for_lists(document, &media_type, &alternatives).filter(|_| is_patch);
    Some(RequestBody {
        media_type,
        for_lists,
        alternatives,
        ..RequestBody::default()
    })
}

/// Describes that a text or bytes can be sent as a JSON string or unquoted, if a call can choose
/// between the two.
pub(crate) fn describe_quotes(document: &Document, body: &RequestBody) -> Option<String> {
    let of = |kinds: fn(&MediaType) -> bool| {
        let mut media_types = body.media_types();
        media_types.find(|media_type| kinds(media_type) && takes_text(document, media_type))
    };
    let (quoted, raw) = (of(is_json)?, of(is_raw)?);
    Some(format!(
        "the body can be sent as it is (`{}`) and in the quotes of JSON (`{}`); it is sent as `{}` unless a call chooses another one",
        raw.name, quoted.name, body.media_type.name
    ))
}

/// Returns those of `others` that differ from `chosen` and from each other in the caller's value or
/// in its meaning for the API.
fn alternatives(
    document: &Document,
    chosen: &MediaType,
    others: impl Iterator<Item = MediaType>,
    method: &Method,
) -> Vec<MediaType> {
    let mut kept: Vec<MediaType> = Vec::new();
    for other in others {
        if kept.len() < MAX_ALTERNATIVES
            && kept
                .iter()
                .chain([chosen])
                .all(|known| differs(document, &other, known, method))
            && is_usable(document, &other)
        {
            kept.push(other);
        }
    }
    kept
}

/// Returns true if the body can be sent as that type: a type that is written as the caller gives it
/// takes text only.
fn is_usable(document: &Document, media_type: &MediaType) -> bool {
    let (MediaKind::Text, BodySchema::At(span)) = (media_type.kind, &media_type.schema) else {
        return true;
    };
    let schema = document.object(document.node(*span));
    schema.is_none_or(|schema| schema.get("type").is_none() || schema.is("type", "string"))
}

fn is_json(media_type: &MediaType) -> bool {
    media_type.kind == MediaKind::Json
}

fn is_raw(media_type: &MediaType) -> bool {
    matches!(media_type.kind, MediaKind::Text | MediaKind::Binary)
}

/// Returns true for types whose content no JSON value can be, such as that of a picture: a schema
/// that JSON shares with it describes JSON alone.
fn is_media(name: &str) -> bool {
    let essence = essence(name);
    ["image/", "audio/", "video/"]
        .into_iter()
        .any(|kind| essence.starts_with(kind) && !essence.ends_with("+xml"))
        || essence == "application/pdf"
}

/// Returns true if the schema is that of one text, which JSON writes in quotes.
fn takes_text(document: &Document, media_type: &MediaType) -> bool {
    matches!(&media_type.schema, BodySchema::At(span) if is_text(document, document.node(*span)))
}

fn differs(document: &Document, candidate: &MediaType, known: &MediaType, method: &Method) -> bool {
    if is_raw(candidate) && is_raw(known) {
        return essence(&candidate.name) != essence(&known.name);
    }
    // For other methods the name of a patch type beside other JSON types means nothing: some
    // frameworks list it for every body.
    let is_other_patch = is_patch(candidate) || (method == Method::PATCH && is_patch(known));
    let has_files =
        |media_type: &MediaType| media_type.encoding.values().any(|encoding| encoding.binary);
    let is_same = match (&candidate.schema, &known.schema) {
        (BodySchema::At(one), BodySchema::At(other)) => is_same_schema(document, *one, *other),
        (BodySchema::Items(one, _), BodySchema::Items(other, _)) => {
            is_same_schema(document, *one, *other)
        }
        (BodySchema::JsonPatch(_), BodySchema::JsonPatch(_)) => true,
        // Nothing is known of what it takes, so that there is nothing to choose it for.
        (BodySchema::Absent, _) => !is_raw(candidate),
        _ => false,
    };
    let is_text_in_quotes =
        is_json(candidate) && is_raw(known) || is_raw(candidate) && is_json(known);
    candidate.name != known.name
        && (!is_same
            || (is_text_in_quotes && takes_text(document, candidate))
            || (is_json(known) && is_media(&candidate.name))
            || (is_other_patch && essence(&candidate.name) != essence(&known.name))
            || (candidate.kind == MediaKind::Multipart
                && known.kind != MediaKind::Multipart
                && has_files(candidate)))
}

fn is_same_schema(document: &Document, one: Span, other: Span) -> bool {
    let [one, other] = [one, other].map(|span| {
        let node = document.node(span);
        document.resolve(node).unwrap_or(node)
    });
    one.span() == other.span() || one.text() == other.text()
}
