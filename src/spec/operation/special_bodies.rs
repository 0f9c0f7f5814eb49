//! Bodies that need more than their schema. Of PATCH requests: which media type fits which body (RFC
//! 5789, RFC 6902, RFC 7396). Of multipart bodies: files that a document does not describe as
//! properties, namely a body whose schema is not an object, members of any name, and file fields
//! that are declared as plain strings.

use std::collections::BTreeMap;

use foldhash::HashSet;

use super::request_body::{
    BodySchema, Encoding, MediaType, RequestBody, is_base64, is_binary, properties,
};
use crate::spec::document::Document;
use crate::spec::media_type::{MediaKind, essence};
use crate::spec::node::{Node, Object};

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
        if is_yaml_patch(media_type) && !names_type(document, &media_type.schema, "string") {
            media_type.kind = MediaKind::Json;
        }
    }
    media_types.sort_by_key(|one| (one.kind, is_json_patch(one), is_yaml_patch(one)));
    let only = media_types.len() == 1;
    for media_type in media_types {
        if is_json_patch(media_type) && !may_describe_list(document, &media_type.schema) {
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
    let takes_lists = is_json_patch(default) || names_type(document, &default.schema, "array");
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
    object.has_any("items prefixItems allOf anyOf oneOf") || names_type(document, schema, "array")
}

/// Returns true if the schema names that type.
fn names_type(document: &Document, schema: &BodySchema, wanted: &str) -> bool {
    let kinds = schema_types(document, schema);
    kinds.iter().any(|kind| kind == wanted)
}

/// Returns the types that the schema of a body names itself; none if it names none.
fn schema_types(document: &Document, schema: &BodySchema) -> Vec<String> {
    let BodySchema::At(span) = schema else {
        return Vec::new();
    };
    let object = document.object(document.node(*span));
    object.unwrap_or_default().types()
}

/// Reads what the properties of a multipart body do not say. A form has named parts (RFC 7578
/// section 4.2), so that a schema of bytes, or of a list of bytes, can only mean files whose names
/// the document does not know.
pub(crate) fn read_multipart_files(document: &Document, media_type: &mut MediaType) {
    if media_type.kind != MediaKind::Multipart {
        return;
    }
    if !takes_type(document, media_type, "object")
        && essence(&media_type.name) == "multipart/form-data"
    {
        media_type.schema = BodySchema::FilesByName;
        media_type.other_parts.binary = true;
        return;
    }
    let BodySchema::At(span) = media_type.schema else {
        return;
    };
    let node = document.node(span);
    let declared = properties(document, Some(node), &mut HashSet::default());
    let schema = document.object(node).unwrap_or_default();
    let others = schema.get("additionalProperties");
    if let Some(others) = others.filter(|others| is_binary(document, *others)) {
        media_type.other_parts.binary = true;
        media_type.other_parts.base64 = is_base64(document, others);
        for (name, _) in &declared {
            media_type.encoding.entry(name.clone()).or_default();
        }
    }
    mark_file_fields(document, &declared, &mut media_type.encoding);
}

/// Describes a body that no call can send: a form is written from an object, and other multipart
/// bodies from an object or a list.
pub(crate) fn describe_unsendable(document: &Document, body: &RequestBody) -> Option<String> {
    let takes = |media_type: &MediaType, kind| takes_type(document, media_type, kind);
    let is_unsendable = |media_type: &&MediaType| match media_type.kind {
        MediaKind::Form => !takes(media_type, "object"),
        MediaKind::Multipart => !takes(media_type, "object") && !takes(media_type, "array"),
        _ => false,
    };
    let media_type = body.media_types().find(is_unsendable)?;
    Some(format!(
        "its request body of the type `{}` cannot be sent, because its schema is not an object but of the type `{}`",
        media_type.name,
        schema_types(document, &media_type.schema).join("`, `")
    ))
}

/// Returns true if the schema of the body takes that type; one that names no type takes all.
fn takes_type(document: &Document, media_type: &MediaType, wanted: &str) -> bool {
    let types = schema_types(document, &media_type.schema);
    types.is_empty() || types.iter().any(|name| name == wanted)
}

/// Marks fields that may be files. If no property holds bytes, a plain string whose name or
/// description mentions a file may be one: the document had no other way to say so, or its author
/// did not know `format: binary`. A text stays a text; only an object is a file.
fn mark_file_fields(
    document: &Document,
    declared: &[(String, Node<'_>)],
    encodings: &mut BTreeMap<String, Encoding>,
) {
    if encodings.values().any(|encoding| encoding.binary) {
        return;
    }
    for (name, schema) in declared {
        let schema = document.object(*schema).unwrap_or_default();
        if !schema.has_any("enum const pattern format")
            && schema.is("type", "string")
            && speaks_of_file(name, &schema)
        {
            encodings.entry(name.clone()).or_default().may_be_file = true;
        }
    }
}

fn speaks_of_file(name: &str, schema: &Object<'_>) -> bool {
    let name = name.to_ascii_lowercase();
    let description = schema.text("description").unwrap_or_default();
    ["file", "attachment", "upload", "image", "photo"]
        .iter()
        .any(|word| name.ends_with(word))
        || description.to_ascii_lowercase().contains("file to upload")
}
