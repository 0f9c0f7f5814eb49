//! Input schemas: parameters as flat properties of one plain root object, the request body as the
//! property `body`.

use foldhash::HashSet;
use serde_json::{Value, json};

use super::descriptions;
use super::files::{Files, body_mut};
use crate::json::JsonObject;
use crate::spec::operation::request_body::{BODY, BodySchema, FormField};
use crate::spec::schema::{Completed, SchemaOptions, Schemas, has_any, reference};
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
) -> Completed {
    let mut properties = JsonObject::new();
    let mut required: Vec<Value> = Vec::new();
    for parameter in operation.all_parameters() {
        let schema = parameter_schema(parameter, schemas);
        properties.insert(parameter.key.clone(), schema.into());
        if parameter.required && parameter.default.is_none() {
            required.push(parameter.key.as_str().into());
        }
    }
    if let Some(body) = &operation.body {
        properties.insert(BODY.into(), body_schema(body, files, schemas).into());
        if !body.choice.is_empty() {
            properties.insert(body.choice.clone(), choice_schema(body));
        }
        if body.required {
            required.push(BODY.into());
        }
    }
    let mut root = JsonObject::new();
    root.insert("type".into(), "object".into());
    root.insert("properties".into(), properties.into());
    if !required.is_empty() {
        root.insert("required".into(), required.into());
    }
    root.insert("additionalProperties".into(), false.into());
    let mut completed = schemas.complete(root, options);
    if let Some(body) = &operation.body {
        accept_nulls(&mut completed.schema, body);
        files.put_schemas(&mut completed.schema, completed.names.as_ref(), body);
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

fn parameter_schema(parameter: &Parameter, schemas: &mut Schemas<'_>) -> JsonObject {
    let mut schema = match parameter.schema.map(|span| schemas.translate_shared(span)) {
        Some(Value::Object(schema)) => schema,
        _ => text_schema(),
    };
    let said = description_of(&schema);
    let mut text = descriptions::parameter_description(parameter, &schema);
    if parameter.slashes {
        let said = text.as_deref().or(said).unwrap_or_default();
        text = Some(format!(
            "{}. May hold slashes between path segments",
            said.trim_end_matches('.')
        ));
    }
    if let Some(text) = text {
        schema.insert("description".into(), text.into());
    }
    if parameter.deprecated {
        schema.insert("deprecated".into(), true.into());
    }
    if parameter.allow_empty {
        accept_empty(&mut schema);
    }
    schema
}

/// Accepts the empty text in addition (OAS `allowEmptyValue`).
fn accept_empty(schema: &mut JsonObject) {
    let takes_it = match schema.get("type") {
        None => true,
        Some(kind) => kind == "string" && !has_any(schema, "pattern minLength format"),
    };
    if takes_it && !has_any(schema, "enum const $ref allOf anyOf not") {
        return;
    }
    let mut outer = JsonObject::new();
    for annotation in ["description", "deprecated"] {
        outer.extend(schema.remove_entry(annotation));
    }
    let either = json!([std::mem::take(schema), { "type": "string", "maxLength": 0 }]);
    outer.insert("anyOf".into(), either);
    *schema = outer;
}

/// The schema of any text.
fn text_schema() -> JsonObject {
    JsonObject::from_iter([("type".to_owned(), Value::from("string"))])
}

fn description_of(schema: &JsonObject) -> Option<&str> {
    schema.get("description")?.as_str()
}

/// The body as any of its media types takes it.
fn body_schema(body: &RequestBody, files: Files, schemas: &mut Schemas<'_>) -> JsonObject {
    let own = body.description.as_deref().map(clean);
    let own = own.filter(|text| !text.is_empty());
    if body.alternatives.is_empty() {
        return media_type_schema(&body.media_type, (own, "The request body"), files, schemas);
    }
    let branches = body
        .media_types()
        .map(|media_type| {
            Value::from(media_type_schema(
                media_type,
                (None, "The body"),
                files,
                schemas,
            ))
        })
        .collect();
    let text = own.as_deref().unwrap_or("The request body");
    let text = format!("{}, by its `{}`", text.trim_end_matches('.'), body.choice);
    let text = truncate(&text, MAX_DESCRIPTION_BYTES);
    JsonObject::from_iter([
        ("anyOf".to_owned(), branches),
        ("description".to_owned(), text.into()),
    ])
}

/// The argument that says which media type the body is.
fn choice_schema(body: &RequestBody) -> Value {
    let names: Vec<&String> = body
        .media_types()
        .map(|media_type| &media_type.name)
        .collect();
    let list = match &body.for_lists {
        Some(name) => format!(", or {name} for an array"),
        None => String::new(),
    };
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
) -> JsonObject {
    let translated = match &media_type.schema {
        BodySchema::Absent => None,
        BodySchema::At(span) => Some(schemas.translate(*span)),
        BodySchema::Items(item, whole) => Some(list_schema(*item, *whole, schemas)),
        BodySchema::Fields(fields) => Some(form_schema(fields, schemas)),
        BodySchema::FilesByName => Some(json!({
            "type": "object",
            "description": "Files, each under the name of its form field, such as `file`",
            "properties": {},
            "additionalProperties": files.schema_of_many(),
            "minProperties": 1,
        })),
        BodySchema::JsonPatch(None) => Some(json_patch_schema()),
        BodySchema::JsonPatch(Some(otherwise)) => {
            let otherwise = schemas.translate(*otherwise);
            Some(json!({ "anyOf": [json_patch_schema(), otherwise] }))
        }
    };
    let mut schema = match (media_type.kind, translated) {
        (MediaKind::Binary, _) => files.sent(media_type.base64).schema(),
        (MediaKind::Xml, Some(Value::Object(schema))) => xml_schema(schema),
        (MediaKind::Text, Some(Value::Object(schema))) if is_of_text(&schema) => schema,
        (MediaKind::Text | MediaKind::Xml, _) => text_schema(),
        (_, Some(Value::Object(schema))) => schema,
        (MediaKind::Lines | MediaKind::Sequence, _) => JsonObject::from_iter([
            ("type".to_owned(), "array".into()),
            ("items".to_owned(), json!({})),
        ]),
        _ => JsonObject::new(),
    };
    let said = own
        .as_deref()
        .or(description_of(&schema))
        .unwrap_or(otherwise);
    let mut text = said.to_owned();
    if media_type.kind != MediaKind::Json || otherwise != "The request body" {
        text = format!("{} ({})", said.trim_end_matches('.'), media_type.name);
    }
    schema.insert(
        "description".into(),
        truncate(&text, MAX_DESCRIPTION_BYTES).into(),
    );
    schema
}

/// Returns the schema of an XML body: the value that is written as XML, or the text itself.
fn xml_schema(mut schema: JsonObject) -> JsonObject {
    if schema.is_empty() || is_of_text(&schema) {
        return schema;
    }
    let said = schema.remove_entry("description");
    let either = json!([schema, { "type": "string", "description": "The XML itself" }]);
    said.into_iter()
        .chain([("anyOf".to_owned(), either)])
        .collect()
}

fn is_of_text(schema: &JsonObject) -> bool {
    schema.get("type").is_some_and(|kind| kind == "string")
}

/// Returns the schema of a JSON Patch (RFC 6902): a list of operations, in spite of the document.
fn json_patch_schema() -> Value {
    let schema = r#"{
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
    }"#;
    serde_json::from_str(schema).unwrap_or_default()
}

/// A list of which each item is described (3.2 `itemSchema`), and perhaps the whole as well.
fn list_schema(item: Span, whole: Option<Span>, schemas: &mut Schemas<'_>) -> Value {
    let item = schemas.translate(item);
    let mut schema = match whole.map(|whole| schemas.translate(whole)) {
        Some(Value::Object(schema)) => schema,
        _ => JsonObject::new(),
    };
    let items = schema.get("items").and_then(Value::as_object);
    if items.is_none_or(JsonObject::is_empty) && !schema.contains_key("$ref") {
        schema.insert("type".into(), "array".into());
        schema.insert("items".into(), item);
    }
    Value::Object(schema)
}

/// The `formData` parameters of 2.0 as one object.
fn form_schema(fields: &[FormField], schemas: &mut Schemas<'_>) -> Value {
    let field = |field: &FormField| {
        let mut schema = schemas.translate(field.schema);
        if let (true, Value::Object(schema)) = (field.allow_empty, &mut schema) {
            accept_empty(schema);
        }
        (field.name.clone(), field.required, schema)
    };
    let fields = fields.iter().map(field).collect();
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
    let either = json!([std::mem::take(schema), { "type": "null" }]);
    schema.insert("anyOf".into(), either);
    schema.extend(said.map(|said| ("description".to_owned(), said)));
}

/// Returns true if the schema itself already takes null.
fn takes_null(schema: &JsonObject) -> bool {
    let is_null = |kind: &Value| kind == "null";
    let branches = schema.get("anyOf").and_then(Value::as_array);
    let type_takes_it = match schema.get("type") {
        None => true,
        Some(Value::Array(kinds)) => kinds.iter().any(is_null),
        Some(kind) => is_null(kind),
    };
    type_takes_it
        && branches.is_none_or(|branches| {
            branches
                .iter()
                .any(|branch| branch.get("type").is_some_and(is_null))
        })
        && !has_any(schema, "$ref enum const allOf oneOf not")
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
                &SchemaOptions::default(),
                Files::Inline,
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
