//! Which media types of a request body are worth a choice: those that differ in what a caller gives, or in what the API makes
//! of it.

use super::request_body::{BodySchema, MediaType};
use crate::spec::document::Document;
use crate::spec::media_type::{MediaKind, essence};
use crate::spec::node::Node;
use crate::spec::span::Span;

/// More media types than this are not worth a choice.
const MAX_ALTERNATIVES: usize = 8;

/// Those of `others` that differ from `chosen` and from each other in what the caller gives or in what the API makes of it.
pub(crate) fn alternatives(document: &Document, chosen: &MediaType, others: Vec<MediaType>) -> Vec<MediaType> {
    let mut kept: Vec<MediaType> = Vec::new();
    for other in others {
        let is_other = std::iter::once(chosen).chain(&kept).all(|known| differs(document, &other, known));
        if is_other && is_usable(document, &other) && kept.len() < MAX_ALTERNATIVES {
            kept.push(other);
        }
    }
    kept
}

/// What is written as the caller gives it must be a text.
fn is_usable(document: &Document, media_type: &MediaType) -> bool {
    let (MediaKind::Text, BodySchema::At(span)) = (media_type.kind, &media_type.schema) else {
        return true;
    };
    let schema = document.resolve(document.node(*span)).ok().and_then(Node::object);
    schema.is_none_or(|schema| schema.get("type").is_none() || schema.text("type").as_deref() == Some("string"))
}

fn differs(document: &Document, candidate: &MediaType, known: &MediaType) -> bool {
    let is_raw = |media_type: &MediaType| matches!(media_type.kind, MediaKind::Text | MediaKind::Binary);
    if is_raw(candidate) && is_raw(known) {
        return essence(&candidate.name) != essence(&known.name);
    }
    let is_patch = |media_type: &MediaType| essence(&media_type.name).contains("patch");
    let has_files = |media_type: &MediaType| media_type.encoding.values().any(|encoding| encoding.binary);
    let is_same = match (&candidate.schema, &known.schema) {
        (BodySchema::At(one), BodySchema::At(other)) => is_same_schema(document, *one, *other),
        (BodySchema::Items(one, _), BodySchema::Items(other, _)) => is_same_schema(document, *one, *other),
        // Nothing is known of what it takes, so that there is nothing to choose it for.
        (BodySchema::Absent, _) => !is_raw(candidate),
        _ => false,
    };
    let is_known = candidate.name == known.name;
    let makes_a_difference = !is_same
        || (is_patch(candidate) && essence(&candidate.name) != essence(&known.name))
        || (candidate.kind == MediaKind::Multipart && known.kind != MediaKind::Multipart && has_files(candidate));
    makes_a_difference && !is_known
}

fn is_same_schema(document: &Document, one: Span, other: Span) -> bool {
    let resolved = |span| {
        let node = document.node(span);
        document.resolve(node).unwrap_or(node)
    };
    let (one, other) = (resolved(one), resolved(other));
    one.span() == other.span() || one.text() == other.text()
}
