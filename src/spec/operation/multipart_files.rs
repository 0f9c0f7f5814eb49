//! Files in multipart bodies that a document does not describe as properties: bodies whose schema
//! is not an object, members of any name, and file fields that are declared as plain strings.

use std::collections::BTreeMap;

use foldhash::HashSet;

use super::body_properties::{is_base64, is_binary, properties};
use super::patch_body::schema_types;
use super::request_body::{BodySchema, Encoding, MediaType, RequestBody};
use crate::spec::document::Document;
use crate::spec::media_type::{MediaKind, essence};
use crate::spec::node::Node;

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
    let schema = document.object(node);
    let others = schema.and_then(|schema| schema.get("additionalProperties"));
    if others.is_some_and(|others| is_binary(document, others)) {
        media_type.other_parts.binary = true;
        media_type.other_parts.base64 = others.is_some_and(|others| is_base64(document, others));
        for (name, _) in &declared {
            media_type.encoding.entry(name.clone()).or_default();
        }
    }
    mark_file_fields(document, &declared, &mut media_type.encoding);
}

/// Describes a body that no call can send: a form is written from an object, and other multipart
/// bodies from an object or a list.
pub(crate) fn describe_unsendable(document: &Document, body: &RequestBody) -> Option<String> {
    let is_unsendable = |media_type: &&MediaType| match media_type.kind {
        MediaKind::Form => !takes_type(document, media_type, "object"),
        MediaKind::Multipart => {
            !takes_type(document, media_type, "object")
                && !takes_type(document, media_type, "array")
        }
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
    let kinds = schema_types(document, &media_type.schema);
    kinds.is_empty() || kinds.iter().any(|kind| kind == wanted)
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
        let Some(schema) = document.object(*schema) else {
            continue;
        };
        let asserts = ["enum", "const", "pattern", "format"]
            .iter()
            .any(|key| schema.get(key).is_some());
        let is_plain_text = schema.text("type").as_deref() == Some("string") && !asserts;
        if is_plain_text
            && speaks_of_file(
                name,
                schema.text("description").as_deref().unwrap_or_default(),
            )
        {
            encodings.entry(name.clone()).or_default().may_be_file = true;
        }
    }
}

fn speaks_of_file(name: &str, description: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_named = ["file", "attachment", "upload", "image", "photo"]
        .iter()
        .any(|word| name.ends_with(word));
    is_named || description.to_ascii_lowercase().contains("file to upload")
}
