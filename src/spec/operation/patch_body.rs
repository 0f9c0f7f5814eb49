//! Bodies of PATCH requests: which media type fits which body (RFC 5789, RFC 6902, RFC 7396).

use super::request_body::{BodySchema, MediaType};
use crate::spec::document::Document;
use crate::spec::media_type::{MediaKind, essence};
use crate::spec::node::Node;

/// Puts the media types of a PATCH body in the order of preference, and reads a JSON Patch as the
/// list that it is:
///
/// - JSON Patch is sent for a list only, so that every other JSON type is preferred to it;
/// - a YAML patch that is not text is written as JSON, which is valid YAML 1.2, and is preferred to
///   nothing;
/// - documents describe a JSON Patch as an object, with the schema of the other types; RFC 6902
///   says that it is a list.
pub(crate) fn arrange_patch_types(document: &Document, media_types: &mut [MediaType]) {
    for media_type in media_types.iter_mut() {
        let is_text = || {
            schema_types(document, &media_type.schema)
                .iter()
                .any(|kind| kind == "string")
        };
        if is_yaml_patch(media_type) && !is_text() {
            media_type.kind = MediaKind::Json;
        }
    }
    media_types.sort_by_key(|media_type| {
        (
            media_type.kind,
            is_json_patch(media_type),
            is_yaml_patch(media_type),
        )
    });
    let only = media_types.len() == 1;
    for media_type in media_types
        .iter_mut()
        .filter(|media_type| is_json_patch(media_type))
    {
        if !may_describe_list(document, &media_type.schema) {
            // Some servers take an object under the name of JSON Patch, and no other type.
            let declared = match media_type.schema {
                BodySchema::At(span) if only => Some(span),
                _ => None,
            };
            media_type.schema = BodySchema::JsonPatch(declared);
        }
    }
}

/// Returns the media type that a list is sent as, if it is not `default`.
pub(crate) fn type_for_lists(
    document: &Document,
    default: &MediaType,
    alternatives: &[MediaType],
) -> Option<String> {
    let patch = alternatives
        .iter()
        .find(|media_type| is_json_patch(media_type))?;
    let takes_lists = is_json_patch(default)
        || schema_types(document, &default.schema)
            .iter()
            .any(|kind| kind == "array");
    (!takes_lists).then(|| patch.name.clone())
}

/// Returns true if a media type is a patch of any kind.
pub(crate) fn is_patch(media_type: &MediaType) -> bool {
    essence(&media_type.name).contains("patch")
}

fn is_json_patch(media_type: &MediaType) -> bool {
    essence(&media_type.name) == "application/json-patch+json"
}

fn is_yaml_patch(media_type: &MediaType) -> bool {
    essence(&media_type.name).ends_with("patch+yaml")
}

/// Returns true if the schema may describe a list; one that is composed of other schemas may.
fn may_describe_list(document: &Document, schema: &BodySchema) -> bool {
    let span = match schema {
        BodySchema::At(span) => *span,
        BodySchema::Absent => return false,
        _ => return true,
    };
    let Some(object) = document.object(document.node(span)) else {
        return true;
    };
    let keys = ["items", "prefixItems", "allOf", "anyOf", "oneOf"];
    keys.iter().any(|key| object.get(key).is_some())
        || schema_types(document, schema)
            .iter()
            .any(|kind| kind == "array")
}

/// Returns the types that the schema of a body names itself; none if it names none.
pub(crate) fn schema_types(document: &Document, schema: &BodySchema) -> Vec<String> {
    let BodySchema::At(span) = schema else {
        return Vec::new();
    };
    let object = document.object(document.node(*span));
    let Some(kind) = object.and_then(|object| object.get("type")) else {
        return Vec::new();
    };
    match kind.string() {
        Some(one) => vec![one.into_owned()],
        None => Node::strings(kind),
    }
}
