//! Input schemas: parameters as flat properties of one plain root object, the request body as the
//! property `body`.

use foldhash::HashSet;
use serde_json::{Value, json};

use super::descriptions;
use super::files::{Files, body_mut};
use crate::json::JsonObject;
use crate::spec::operation::request_body::{BODY, BodySchema, FormField};
use crate::spec::schema::{Completed, SchemaOptions, Schemas, reference};
use crate::spec::{MediaKind, MediaType, Operation, Parameter, RequestBody, Span};
use crate::text::{MAX_DESCRIPTION_BYTES, clean, truncate};

/// The input schema of an operation: a self-contained 2020-12 object schema, closed at the root,
/// without combinators there, since several clients refuse those. Remarks on what had to be read
/// loosely go to `warnings`.
pub(crate) fn input_schema(
    operation: &Operation,
    schemas: &mut Schemas<'_>,
    options: &SchemaOptions,
    files: Files,
    warnings: &mut Vec<String>,
) -> Completed {
    let mut properties = JsonObject::new();
    let mut required = Vec::new();
    let fixed = operation.rules.fixed.iter().map(|fixed| &fixed.parameter);
    for parameter in operation.parameters.iter().chain(fixed) {
        properties.insert(
            parameter.key.clone(),
            Value::Object(parameter_schema(parameter, schemas, warnings)),
        );
        if parameter.required && parameter.default.is_none() {
            required.push(Value::String(parameter.key.clone()));
        }
    }
    if let Some(body) = &operation.body {
        properties.insert(
            BODY.into(),
            Value::Object(body_schema(body, files, schemas, warnings)),
        );
        if !body.choice.is_empty() {
            properties.insert(body.choice.clone(), choice_schema(body));
        }
        if body.required {
            required.push(BODY.into());
        }
    }
    let mut root = JsonObject::new();
    root.insert("type".into(), "object".into());
    root.insert("properties".into(), Value::Object(properties));
    if !required.is_empty() {
        root.insert("required".into(), Value::Array(required));
    }
    root.insert("additionalProperties".into(), Value::Bool(false));
    let mut completed = schemas.complete(root, options, warnings);
    if let Some(body) = &operation.body {
        accept_nulls(&mut completed.schema, body);
        files.describe(&mut completed.schema, completed.names.as_ref(), body);
    }
    completed
}

/// Adds the argument that filters the reply.
pub(crate) fn offer_filter(completed: &mut Completed, operation: &Operation) {
    let property = json!({
        "type": "string",
        "description": "A jq filter, such as `.items[] | {id, name}`, for the JSON of the reply: only its output is given",
    });
    add_property(completed, &operation.filter_key(), property);
}

/// Adds the argument that says how many pages a call collects.
pub(crate) fn offer_pages(completed: &mut Completed, operation: &Operation) {
    let property = json!({
        "type": "integer",
        "minimum": 1,
        "maximum": operation.rules.max_pages,
        "description": "How many pages are collected into one list, 1 unless given",
    });
    add_property(completed, &operation.pages_key(), property);
}

fn add_property(completed: &mut Completed, key: &str, property: Value) {
    if let Some(Value::Object(properties)) = completed.schema.get_mut("properties") {
        properties.insert(key.to_owned(), property);
    }
}

fn parameter_schema(
    parameter: &Parameter,
    schemas: &mut Schemas<'_>,
    warnings: &mut Vec<String>,
) -> JsonObject {
    let translated = parameter
        .schema
        .map(|span| schemas.translate_shared(span, warnings));
    let mut schema = match translated {
        Some(Value::Object(schema)) => schema,
        _ => JsonObject::from_iter([("type".to_owned(), Value::from("string"))]),
    };
    let kind = schema
        .get("type")
        .and_then(Value::as_str)
        .map(|kind| format!(", {kind}"))
        .unwrap_or_default();
    let schema_says = schema.get("description").and_then(Value::as_str);
    let mut text = descriptions::parameter_description(parameter, schema_says, &kind);
    if parameter.slashes {
        let said = text
            .as_deref()
            .or_else(|| schema.get("description").and_then(Value::as_str))
            .unwrap_or_default();
        text = Some(format!(
            "{}. May hold slashes between path segments",
            said.trim_end_matches('.')
        ));
    }
    if let Some(text) = text {
        schema.insert("description".into(), Value::String(text));
    }
    if parameter.deprecated {
        schema.insert("deprecated".into(), Value::Bool(true));
    }
    if parameter.allow_empty {
        accept_empty(&mut schema);
    }
    schema
}

/// Accepts the empty text in addition (OAS `allowEmptyValue`).
fn accept_empty(schema: &mut JsonObject) {
    let anything = ["type", "enum", "const", "$ref", "allOf", "anyOf", "not"]
        .iter()
        .all(|key| !schema.contains_key(*key));
    let any_text = schema.get("type").and_then(Value::as_str) == Some("string")
        && [
            "enum",
            "const",
            "pattern",
            "minLength",
            "format",
            "$ref",
            "allOf",
            "anyOf",
            "not",
        ]
        .iter()
        .all(|key| !schema.contains_key(*key));
    if anything || any_text {
        return;
    }
    let mut outer = JsonObject::new();
    for annotation in ["description", "deprecated"] {
        if let Some(said) = schema.remove(annotation) {
            outer.insert(annotation.into(), said);
        }
    }
    outer.insert(
        "anyOf".into(),
        json!([std::mem::take(schema), { "type": "string", "maxLength": 0 }]),
    );
    *schema = outer;
}

/// The body as any of its media types takes it.
fn body_schema(
    body: &RequestBody,
    files: Files,
    schemas: &mut Schemas<'_>,
    warnings: &mut Vec<String>,
) -> JsonObject {
    let own = body
        .description
        .as_deref()
        .map(clean)
        .filter(|text| !text.is_empty());
    if body.alternatives.is_empty() {
        return media_type_schema(
            &body.media_type,
            (own, "The request body"),
            files,
            schemas,
            warnings,
        );
    }
    let branches: Vec<Value> = body
        .media_types()
        .map(|media_type| {
            Value::Object(media_type_schema(
                media_type,
                (None, "The body"),
                files,
                schemas,
                warnings,
            ))
        })
        .collect();
    let text = own.unwrap_or_else(|| "The request body".into());
    let text = format!("{}, by its `{}`", text.trim_end_matches('.'), body.choice);
    JsonObject::from_iter([
        ("anyOf".to_owned(), Value::Array(branches)),
        (
            "description".to_owned(),
            Value::String(truncate(&text, MAX_DESCRIPTION_BYTES)),
        ),
    ])
}

/// The argument that says which media type the body is.
fn choice_schema(body: &RequestBody) -> Value {
    let names: Vec<&str> = body
        .media_types()
        .map(|media_type| media_type.name.as_str())
        .collect();
    let list = body
        .for_lists
        .as_ref()
        .map(|name| format!(", or {name} for an array"))
        .unwrap_or_default();
    json!({
        "type": "string",
        "enum": names,
        "description": format!("Media type of `{BODY}`; {}{list} unless given", body.media_type.name),
    })
}

fn media_type_schema(
    media_type: &MediaType,
    (own, otherwise): (Option<String>, &str),
    files: Files,
    schemas: &mut Schemas<'_>,
    warnings: &mut Vec<String>,
) -> JsonObject {
    let translated = match &media_type.schema {
        BodySchema::Absent => None,
        BodySchema::At(span) => Some(schemas.translate(*span, warnings)),
        BodySchema::Items(item, whole) => Some(list_schema(*item, *whole, schemas, warnings)),
        BodySchema::Fields(fields) => Some(form_schema(fields, schemas, warnings)),
        BodySchema::FilesByName => Some(json!({
            "type": "object",
            "description": "Files, each under the name of its form field, such as `file`",
            "properties": {},
            "additionalProperties": files.schema_of_many(),
            "minProperties": 1,
        })),
        BodySchema::JsonPatch(None) => Some(json_patch_schema()),
        BodySchema::JsonPatch(Some(otherwise)) => {
            let otherwise = schemas.translate(*otherwise, warnings);
            Some(json!({ "anyOf": [json_patch_schema(), otherwise] }))
        }
    };
    let mut schema = match (media_type.kind, translated) {
        (MediaKind::Binary, _) => files.sent(media_type.base64).schema(),
        (MediaKind::Xml, Some(Value::Object(schema))) => xml_schema(schema),
        (MediaKind::Text | MediaKind::Xml, translated) => {
            let text = JsonObject::from_iter([("type".to_owned(), Value::from("string"))]);
            match translated {
                Some(Value::Object(schema))
                    if schema.get("type") == Some(&Value::from("string")) =>
                {
                    schema
                }
                _ => text,
            }
        }
        (_, Some(Value::Object(schema))) => schema,
        (MediaKind::Lines | MediaKind::Sequence, _) => JsonObject::from_iter([
            ("type".to_owned(), "array".into()),
            ("items".to_owned(), json!({})),
        ]),
        _ => JsonObject::new(),
    };
    let said = schema
        .get("description")
        .and_then(Value::as_str)
        .map(str::to_owned);
    let mut text = own.or(said).unwrap_or_else(|| otherwise.into());
    if media_type.kind != MediaKind::Json || otherwise != "The request body" {
        text = format!("{} ({})", text.trim_end_matches('.'), media_type.name);
    }
    schema.insert(
        "description".into(),
        Value::String(truncate(&text, MAX_DESCRIPTION_BYTES)),
    );
    schema
}

/// Returns the schema of an XML body: the value that is written as XML, or the text itself.
fn xml_schema(mut schema: JsonObject) -> JsonObject {
    if schema.is_empty() || schema.get("type") == Some(&Value::from("string")) {
        return schema;
    }
    let said = schema
        .remove("description")
        .map(|said| ("description".to_owned(), said));
    let text = json!({ "type": "string", "description": "The XML itself" });
    let either = (
        "anyOf".to_owned(),
        Value::Array(vec![Value::Object(schema), text]),
    );
    said.into_iter().chain([either]).collect()
}

/// Returns the schema of a JSON Patch (RFC 6902): a list of operations, in spite of the document.
fn json_patch_schema() -> Value {
    json!({
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "op": { "type": "string", "enum": ["add", "remove", "replace", "move", "copy", "test"] },
                "path": { "type": "string", "description": "JSON Pointer" },
                "value": { "description": "For add, replace and test" },
                "from": { "type": "string", "description": "JSON Pointer, for move and copy" }
            },
            "required": ["op", "path"]
        }
    })
}

/// A list of which each item is described (3.2 `itemSchema`), and perhaps the whole as well.
fn list_schema(
    item: Span,
    whole: Option<Span>,
    schemas: &mut Schemas<'_>,
    warnings: &mut Vec<String>,
) -> Value {
    let item = schemas.translate(item, warnings);
    let mut schema = match whole.map(|whole| schemas.translate(whole, warnings)) {
        Some(Value::Object(schema)) => schema,
        _ => JsonObject::new(),
    };
    let described = schema
        .get("items")
        .and_then(Value::as_object)
        .is_some_and(|items| !items.is_empty());
    if !described && !schema.contains_key("$ref") {
        schema.insert("type".into(), "array".into());
        schema.insert("items".into(), item);
    }
    Value::Object(schema)
}

/// The `formData` parameters of 2.0 as one object.
fn form_schema(
    fields: &[FormField],
    schemas: &mut Schemas<'_>,
    warnings: &mut Vec<String>,
) -> Value {
    let fields = fields
        .iter()
        .map(|field| {
            let mut schema = schemas.translate(field.schema, warnings);
            if let (true, Value::Object(schema)) = (field.allow_empty, &mut schema) {
                accept_empty(schema);
            }
            (field.name.clone(), field.required, schema)
        })
        .collect();
    schemas.form(fields)
}

/// Lets every member of a body that is sent as a merge patch (RFC 7396) be null, at every level:
/// null for a member removes it. Lists are replaced as a whole, so that nothing changes in their
/// items.
fn accept_nulls(root: &mut JsonObject, body: &RequestBody) {
    let mut referred = Vec::new();
    for (index, media_type) in body.media_types().enumerate() {
        if media_type.name.contains("merge-patch") {
            let branch = (!body.alternatives.is_empty()).then_some(index);
            if let Some(schema) = body_mut(root, branch) {
                accept_in(schema, &mut referred);
            }
        }
    }
    let mut seen = HashSet::default();
    while let Some(name) = referred.pop() {
        let definition = root
            .get_mut("$defs")
            .and_then(|definitions| definitions.get_mut(&name));
        if let Some(Value::Object(definition)) = definition.filter(|_| seen.insert(name)) {
            accept_in(definition, &mut referred);
        }
    }
}

/// Accepts null for the members that this schema describes. Definitions that describe the same
/// value are added to `referred`.
fn accept_in(schema: &mut JsonObject, referred: &mut Vec<String>) {
    referred.extend(reference(schema).map(str::to_owned));
    for (key, value) in schema.iter_mut() {
        match (key.as_str(), value) {
            ("properties" | "patternProperties", Value::Object(members)) => {
                members
                    .values_mut()
                    .for_each(|member| accept_null(member, referred));
            }
            ("additionalProperties", member) => accept_null(member, referred),
            ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => {
                for branch in branches.iter_mut().filter_map(Value::as_object_mut) {
                    accept_in(branch, referred);
                }
            }
            _ => {}
        }
    }
}

/// Lets the value of a member be null.
fn accept_null(member: &mut Value, referred: &mut Vec<String>) {
    let Value::Object(schema) = member else {
        return;
    };
    accept_in(schema, referred);
    if takes_null(schema) {
        return;
    }
    let said = schema.get("description").cloned();
    let mut either = JsonObject::from_iter([(
        "anyOf".to_owned(),
        json!([std::mem::take(schema), { "type": "null" }]),
    )]);
    either.extend(said.map(|said| ("description".to_owned(), said)));
    *schema = either;
}

/// Returns true if the schema itself already takes null.
fn takes_null(schema: &JsonObject) -> bool {
    let is_null = |kind: &Value| kind == "null";
    let is_limited = ["$ref", "enum", "const", "allOf", "oneOf", "not"]
        .iter()
        .any(|key| schema.contains_key(*key));
    let type_takes_it = match schema.get("type") {
        None => true,
        Some(Value::Array(kinds)) => kinds.iter().any(is_null),
        Some(kind) => is_null(kind),
    };
    let branches = schema.get("anyOf").and_then(Value::as_array);
    let branches_take_it = branches.is_none_or(|branches| {
        branches
            .iter()
            .any(|branch| branch.get("type").is_some_and(is_null))
    });
    !is_limited && type_takes_it && branches_take_it
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Document, operations};

    fn schema(operation: &str) -> Value {
        let text =
            format!(r#"{{"openapi":"3.1.0","paths":{{"/a/{{id}}":{{"post":{operation}}}}}}}"#);
        let document = Document::parse(text.into_bytes(), None).unwrap();
        let (operations, _) = operations(&document);
        Value::Object(
            input_schema(
                &operations[0],
                &mut Schemas::new(&document),
                &SchemaOptions {
                    budget: 64 << 10,
                    inline_all: false,
                },
                Files::Inline,
                &mut Vec::new(),
            )
            .schema,
        )
    }

    #[test]
    fn parameters_are_flat_and_the_body_is_one_property() {
        let schema = schema(
            r#"{"parameters":[{"name":"id","in":"path","schema":{"type":"integer"}},{"name":"$top","in":"query","description":"How many","schema":{"type":"integer"}}],
                "requestBody":{"required":true,"content":{"application/json":{"schema":{"type":"object","properties":{"name":{"type":"string"}}}}}}}"#,
        );
        assert_eq!(
            schema,
            json!({
                "type": "object",
                "properties": {
                    "id": { "type": "integer", "description": "Id (path parameter, integer)" },
                    "top": { "type": "integer", "description": "How many" },
                    "body": { "type": "object", "properties": { "name": { "type": "string", "description": "Name" } }, "description": "The request body" }
                },
                "required": ["id", "body"],
                "additionalProperties": false
            })
        );
    }

    #[test]
    fn files_of_a_form_say_how_they_are_given() {
        let schema = schema(
            r#"{"requestBody":{"content":{"multipart/form-data":{"schema":{"type":"object","properties":{
                "photo":{"type":"string","format":"binary","description":"A picture."},"more[]":{"type":"array","items":{"type":"string","format":"binary"}}}}}}}}"#,
        );
        let body = &schema["properties"]["body"]["properties"];
        assert!(
            body["photo"]["description"]
                .as_str()
                .unwrap()
                .starts_with("A picture. File content"),
            "{schema:#}"
        );
        assert_eq!(body["more"]["items"]["type"], json!(["string", "object"]));
    }

    #[test]
    fn media_types_that_differ_are_a_choice_and_others_are_not() {
        let body = |content: &str| {
            schema(&format!(
                r#"{{"requestBody":{{"description":"What to draw","content":{{{content}}}}}}}"#
            ))
        };
        let object = r#"{"schema":{"type":"object","properties":{"n":{"type":"integer"}}}}"#;
        let choice = body(&format!(
            r#""text/csv":{{"schema":{{"type":"string"}}}},"application/json":{object}"#
        ));
        let properties = &choice["properties"];
        assert_eq!(
            properties["contentType"]["enum"],
            json!(["application/json", "text/csv"])
        );
        assert_eq!(
            properties["body"]["description"],
            "What to draw, by its `contentType`"
        );
        let described: Vec<_> = properties["body"]["anyOf"]
            .as_array()
            .unwrap()
            .iter()
            .map(|branch| &branch["description"])
            .collect();
        assert_eq!(
            described,
            ["The body (application/json)", "The body (text/csv)"]
        );
        for same in [
            format!(
                r#""application/json":{object},"application/xml":{object},"application/x-www-form-urlencoded":{object},"text/plain":{object}"#
            ),
            format!(
                r#""application/json":{object},"application/xml":{{}},"application/*+json":{object}"#
            ),
        ] {
            let properties = &body(&same)["properties"];
            assert_eq!(properties.get("contentType"), None, "{same}");
            assert_eq!(properties["body"]["type"], "object", "{same}");
        }
    }
}
