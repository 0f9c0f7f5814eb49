//! Forms in which a model gives a file. A document only marks a value as binary.

use serde_json::{Value, json};

use crate::json::JsonObject;
use crate::spec::operation::request_body::BODY;
use crate::spec::schema::{NewNames, reference};
use crate::spec::{MediaKind, MediaType, RequestBody};

/// The ways in which files may be given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Files {
    /// Base64 or a data URI.
    #[default]
    Inline,
    /// Paths in the operator's folder as well.
    Paths,
}

impl Files {
    /// The ways for bytes that may be sent as base64: no file is.
    pub(crate) fn sent(self, as_base64: bool) -> Self {
        if as_base64 { Self::Inline } else { self }
    }

    /// The schema of a file.
    pub(crate) fn schema(self) -> JsonObject {
        let schema = match self {
            Self::Inline => {
                r#"{
                    "type": ["string", "object"],
                    "description": "File content: base64, a data: URI, or an object with `data`, `filename` and `mediaType`",
                    "properties": {
                        "data": { "type": "string", "description": "The bytes as base64" },
                        "filename": { "type": "string", "description": "The file's name" },
                        "mediaType": { "type": "string", "description": "The file's media type" }
                    },
                    "required": ["data"]
                }"#
            }
            Self::Paths => {
                r#"{
                    "type": ["string", "object"],
                    "description": "File content: base64, a data: URI, or an object with `path` or `data`, `filename` and `mediaType`",
                    "properties": {
                        "path": { "type": "string", "description": "The path of a file in the folder that the server sends files from" },
                        "data": { "type": "string", "description": "Or the bytes as base64" },
                        "filename": { "type": "string", "description": "The file's name" },
                        "mediaType": { "type": "string", "description": "The file's media type" }
                    }
                }"#
            }
        };
        serde_json::from_str(schema).unwrap_or_default()
    }

    /// The schema of a file, or of several under one name.
    pub(crate) fn schema_of_many(self) -> JsonObject {
        let mut many = self.schema();
        let mut items = self.schema();
        items.remove("description");
        many.insert("type".into(), json!(["string", "object", "array"]));
        many.insert("items".into(), items.into());
        many
    }

    /// The schema of a text that may be a file.
    fn schema_of_text_or_file(self) -> JsonObject {
        let mut schema = self.schema();
        let members = if self == Self::Paths {
            "`path` or `data`"
        } else {
            "`data`"
        };
        let description = format!(
            "A text as it is, or a file: an object with {members} (base64), `filename` and `mediaType`"
        );
        schema.insert("description".into(), description.into());
        schema
    }

    /// Puts the schemas of files in place of those that a form has for them.
    pub(crate) fn put_schemas(
        self,
        root: &mut JsonObject,
        names: Option<&NewNames>,
        body: &RequestBody,
    ) {
        for (index, media_type) in body.media_types().enumerate() {
            if media_type.kind == MediaKind::Multipart {
                let branch = (!body.alternatives.is_empty()).then_some(index);
                put_schemas_of(self, root, names, media_type, branch);
            }
        }
    }
}

/// The schema of the body, or of one of its media types.
pub(super) fn body_mut(root: &mut JsonObject, branch: Option<usize>) -> Option<&mut JsonObject> {
    let body = root.get_mut("properties")?.get_mut(BODY)?;
    match branch {
        None => body.as_object_mut(),
        Some(index) => body.get_mut("anyOf")?.get_mut(index)?.as_object_mut(),
    }
}

fn put_schemas_of(
    files: Files,
    root: &mut JsonObject,
    names: Option<&NewNames>,
    media_type: &MediaType,
    branch: Option<usize>,
) {
    let definition = body_mut(root, branch).and_then(|body| Some(reference(body)?.to_owned()));
    let schema = match definition {
        Some(name) => root
            .get_mut("$defs")
            .and_then(|defs| defs.get_mut(&name)?.as_object_mut()),
        None => body_mut(root, branch),
    };
    let Some(schema) = schema else { return };
    if media_type.other_parts.binary
        && let Some(others @ Value::Object(_)) = schema.get_mut("additionalProperties")
    {
        *others = files
            .sent(media_type.other_parts.base64)
            .schema_of_many()
            .into();
    }
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return;
    };
    for (name, encoding) in &media_type.encoding {
        let key = names.and_then(|names| names.key_of(name)).unwrap_or(name);
        let is_file = encoding.binary || encoding.may_be_file;
        let Some(property) = properties.get_mut(key).filter(|_| is_file) else {
            continue;
        };
        let files = files.sent(encoding.base64);
        let is_list = |schema: &Value| schema.get("type").is_some_and(|kind| kind == "array");
        let may_be_list = ["anyOf", "oneOf", "allOf"]
            .into_iter()
            .filter_map(|key| property.get(key)?.as_array())
            .any(|branches| branches.iter().any(is_list));
        // What is not binary may be given as a text too.
        let mut file = if encoding.binary && may_be_list {
            files.schema_of_many()
        } else if encoding.binary {
            files.schema()
        } else {
            files.schema_of_text_or_file()
        };
        if let (Some(said), Some(Value::String(text))) = (
            property.get("description").and_then(Value::as_str),
            file.get_mut("description"),
        ) {
            *text = format!("{}. {text}", said.trim_end_matches('.'));
        }
        let is_list = is_list(property);
        match property {
            Value::Object(list) if is_list => drop(list.insert("items".into(), file.into())),
            Value::Object(property) => *property = file,
            _ => {}
        }
    }
}
