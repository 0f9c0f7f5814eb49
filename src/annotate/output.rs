//! Output schemas: what a reply contains, described without making a good reply fail.
//!
//! Clients validate results against the output schema and discard those that do not match. Real
//! APIs send nulls, extra members and types other than those that they declare. The usual form is
//! therefore a description, which asserts only that the root is an object. In this server it always
//! is.

use std::rc::Rc;

use foldhash::HashMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::json::{JsonObject, NOTES_KEY, RESULT_KEY};
use crate::spec::node::Node;
use crate::spec::operation::response::successes;
use crate::spec::schema::{SchemaOptions, Schemas};
use crate::spec::{Document, MediaKind, Operation, Span};
use crate::text::{clean, one_line, truncate};

/// Depth to which replies are described.
const MAX_DEPTH: usize = 4;
/// Number of bytes that one description of a reply may take.
const MAX_SCHEMA_BYTES: usize = 4 << 10;
const MAX_DESCRIPTION_BYTES: usize = 160;

/// The output schemas that are offered.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    clap::ValueEnum,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum OutputSchemas {
    /// Lenient ones while the whole list stays below 1 MiB, else none
    #[default]
    Auto,
    /// Schemas that describe replies and accept every reply
    Lenient,
    /// The document's own schemas; clients refuse replies that do not match. With
    /// `response_filter`, as lenient
    Strict,
    /// None
    Off,
}

/// Writes lenient schemas for the replies of one document. Operations share schemas of replies, so
/// that each is scanned once.
pub(crate) struct ReplyDescriber<'d> {
    document: &'d Document,
    scanned: HashMap<Span, Rc<ScannedSchema<'d>>>,
    /// Number of bytes that the current schema may still take.
    room: usize,
}

/// The parts of a schema that a description is made of.
struct ScannedSchema<'d> {
    /// The type and the author's words.
    text: String,
    properties: Vec<ScannedProperty<'d>>,
    items: Option<Node<'d>>,
    /// The branches of all compositions.
    branches: Vec<Node<'d>>,
}

/// A property of a reply.
struct ScannedProperty<'d> {
    name: String,
    schema: Node<'d>,
    is_write_only: bool,
}

impl<'d> ReplyDescriber<'d> {
    pub(crate) fn new(document: &'d Document) -> Self {
        Self {
            document,
            scanned: HashMap::default(),
            room: 0,
        }
    }

    /// A schema that describes the JSON of an operation's successes and accepts any object.
    pub(crate) fn lenient(&mut self, operation: &Operation) -> Option<JsonObject> {
        let responses = successes(self.document, operation);
        let schema = responses
            .iter()
            .flat_map(|response| &response.media)
            .find(|media| MediaKind::of(&media.name) == MediaKind::Json)?
            .schema?;
        self.room = MAX_SCHEMA_BYTES;
        let described = self.describe(schema, MAX_DEPTH);
        let mut root = JsonObject::from_iter([("type".to_owned(), Value::from("object"))]);
        match (
            type_name(self.document, schema, 0).as_str(),
            described.get("properties"),
        ) {
            ("object", Some(properties)) => {
                root.insert("properties".into(), properties.clone());
            }
            // A schema that describes nothing would only be a constraint.
            ("object" | "", _) => return None,
            // A value that is not an object is wrapped.
            _ => {
                root.insert("properties".into(), json!({ RESULT_KEY: described }));
            }
        }
        Some(root)
    }

    /// Describes a value without a single assertion, and what is in it down to `depth` levels.
    fn describe(&mut self, schema: Node<'d>, depth: usize) -> JsonObject {
        let mut out = JsonObject::new();
        let Some(scanned) = self.scan(schema) else {
            return out;
        };
        if !scanned.text.is_empty() {
            self.room = self.room.saturating_sub(scanned.text.len() + 18);
            out.insert("description".into(), Value::String(scanned.text.clone()));
        }
        let Some(depth) = depth.checked_sub(1).filter(|_| self.room > 0) else {
            return out;
        };
        let mut properties = JsonObject::new();
        self.add_properties(&scanned, depth, &mut properties, 0);
        if !properties.is_empty() {
            out.insert("properties".into(), Value::Object(properties));
        }
        if let Some(items) = scanned.items {
            out.insert("items".into(), Value::Object(self.describe(items, depth)));
        }
        out
    }

    /// Adds the properties of an object and of all branches of its compositions, each described
    /// down to `depth` levels.
    fn add_properties(
        &mut self,
        schema: &ScannedSchema<'d>,
        depth: usize,
        properties: &mut JsonObject,
        nesting: usize,
    ) {
        for property in &schema.properties {
            if property.is_write_only || properties.contains_key(&property.name) {
                continue;
            }
            let Some(room) = self.room.checked_sub(property.name.len() + 8) else {
                self.room = 0;
                return;
            };
            self.room = room;
            let described = self.describe(property.schema, depth);
            properties.insert(property.name.clone(), Value::Object(described));
        }
        if nesting >= MAX_DEPTH {
            return;
        }
        for branch in &schema.branches {
            if let Some(branch) = self.scan(*branch) {
                self.add_properties(&branch, depth, properties, nesting + 1);
            }
        }
    }

    /// Scans a schema; `None` if it is not an object.
    fn scan(&mut self, schema: Node<'d>) -> Option<Rc<ScannedSchema<'d>>> {
        let target = self.document.resolve(schema).ok()?;
        if let Some(known) = self.scanned.get(&target.span()) {
            return Some(Rc::clone(known));
        }
        let object = target.object()?;
        let kind = type_name(self.document, target, 0);
        let said = object
            .text("description")
            .or_else(|| object.text("title"))
            .map(|text| one_line(&clean(&text)))
            .unwrap_or_default();
        let said = truncate(&said, MAX_DESCRIPTION_BYTES);
        let text = match (kind.is_empty(), said.is_empty()) {
            (true, true) => String::new(),
            (true, false) => said,
            (false, true) => kind,
            (false, false) => format!("{kind}: {said}"),
        };
        let properties = object.object("properties").unwrap_or_default();
        let properties = properties.iter().map(|(name, schema)| ScannedProperty {
            name: name.to_owned(),
            schema,
            is_write_only: self.is_write_only(schema),
        });
        let combinators = ["allOf", "oneOf", "anyOf"].into_iter();
        let branches =
            combinators.flat_map(|combinator| object.array(combinator).unwrap_or_default());
        let scanned = Rc::new(ScannedSchema {
            text,
            properties: properties.collect(),
            items: object
                .get("items")
                .filter(|items| items.text().starts_with('{')),
            branches: branches.collect(),
        });
        self.scanned.insert(target.span(), Rc::clone(&scanned));
        Some(scanned)
    }

    fn is_write_only(&self, schema: Node<'d>) -> bool {
        let object = || self.document.resolve(schema).ok().and_then(Node::object);
        schema.text().contains("writeOnly")
            && object().is_some_and(|schema| schema.boolean("writeOnly") == Some(true))
    }
}

/// Returns the document's own schema as the member `result`, with notes beside it, if every success
/// is JSON. An object is wrapped too: no property can be put beside a root that is closed, composed
/// or a map.
pub(crate) fn strict(
    document: &Document,
    operation: &Operation,
    schemas: &mut Schemas<'_>,
    options: &SchemaOptions,
    warnings: &mut Vec<String>,
) -> Option<JsonObject> {
    let responses = successes(document, operation);
    let only_json = |media: &crate::spec::operation::response::Media<'_>| {
        MediaKind::of(&media.name) == MediaKind::Json && media.schema.is_some()
    };
    if responses.is_empty()
        || !responses
            .iter()
            .all(|response| !response.media.is_empty() && response.media.iter().all(only_json))
    {
        return None;
    }
    let mut found: Vec<Value> = Vec::new();
    for schema in responses
        .iter()
        .filter_map(|response| response.media.first()?.schema)
    {
        let translated = schemas.translate(schema.span(), warnings);
        if !found.contains(&translated) {
            found.push(translated);
        }
    }
    let one = if found.len() == 1 {
        found.pop()?
    } else {
        json!({ "anyOf": found })
    };
    let notes = json!({"type": "array", "items": {"type": "string"}, "description": "Notes of the server about this result"});
    match json!({ "type": "object", "properties": { RESULT_KEY: one, NOTES_KEY: notes }, "required": [RESULT_KEY] })
    {
        Value::Object(root) => {
            let completed = schemas.complete(root, options, warnings);
            warnings.extend(completed.fit.warning(options.budget));
            Some(completed.schema)
        }
        _ => None,
    }
}

/// The one type that a schema allows; empty if there is none or more than one.
fn type_name(document: &Document, schema: Node<'_>, nesting: usize) -> String {
    let Some(object) = document.resolve(schema).ok().and_then(Node::object) else {
        return String::new();
    };
    let declared = object.get("type");
    if let Some(kinds) = declared.and_then(Node::array) {
        let kinds: Vec<String> = kinds
            .into_iter()
            .filter_map(|kind| Some(kind.string()?.into_owned()))
            .filter(|kind| kind != "null")
            .collect();
        return kinds.join(" or ");
    }
    if let Some(kind) = declared.and_then(Node::string) {
        return kind.into_owned();
    }
    if object.get("properties").is_some() || object.get("additionalProperties").is_some() {
        return "object".into();
    }
    if object.get("items").is_some() {
        return "array".into();
    }
    if nesting < MAX_DEPTH {
        for combinator in ["allOf", "oneOf", "anyOf"] {
            let branches = object.array(combinator).unwrap_or_default();
            let mut kinds: Vec<String> = branches
                .into_iter()
                .map(|branch| type_name(document, branch, nesting + 1))
                .filter(|kind| !kind.is_empty() && kind != "null")
                .collect();
            kinds.dedup();
            if let ([one], _) | ([one, ..], "allOf") = (kinds.as_slice(), combinator) {
                return one.clone();
            }
        }
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::operations;

    fn read(responses: &str) -> (Document, Box<Operation>) {
        let text = format!(
            r##"{{"openapi":"3.0.3","paths":{{"/a":{{"get":{{"responses":{responses}}}}}}},"components":{{"schemas":{{
            "Pet":{{"type":"object","required":["id"],"properties":{{"id":{{"type":"integer","description":"Its number"}},"secret":{{"type":"string","writeOnly":true}},"parent":{{"$ref":"#/components/schemas/Pet"}}}}}}}}}}}}"##
        );
        let document = Document::parse(text.into_bytes(), None).unwrap();
        let operation = operations(&document).0.remove(0);
        (document, operation)
    }

    const PET: &str = r##"{"200":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Pet"}}}}}"##;
    const PETS: &str = r##"{"200":{"content":{"application/json":{"schema":{"type":"array","items":{"$ref":"#/components/schemas/Pet"}}}}}}"##;

    #[test]
    fn a_lenient_schema_describes_and_refuses_no_object() {
        for (responses, replies) in [
            (
                PET,
                vec![
                    json!({"id": null, "more": 1}),
                    json!({}),
                    json!({"result": null}),
                    json!({"parent": "x"}),
                ],
            ),
            (
                PETS,
                vec![
                    json!({"result": [{"id": "x"}]}),
                    json!({"result": null}),
                    json!({"error": 1}),
                ],
            ),
        ] {
            let (document, operation) = read(responses);
            let schema = Value::Object(ReplyDescriber::new(&document).lenient(&operation).unwrap());
            assert!(
                schema.to_string().contains("integer: Its number")
                    && !schema.to_string().contains("secret"),
                "{schema}"
            );
            for reply in replies {
                assert!(
                    jsonschema::is_valid(&schema, &reply),
                    "{schema} refuses {reply}"
                );
            }
        }
    }

    #[test]
    fn a_strict_schema_is_the_documents() {
        let (document, operation) = read(PETS);
        let options = SchemaOptions {
            budget: 10_000,
            inline_all: false,
        };
        let schema = Value::Object(
            strict(
                &document,
                &operation,
                &mut Schemas::for_output(&document),
                &options,
                &mut Vec::new(),
            )
            .unwrap(),
        );
        assert!(jsonschema::is_valid(
            &schema,
            &json!({"result": [{"id": 1}]})
        ));
        assert!(!jsonschema::is_valid(
            &schema,
            &json!({"result": [{"id": "x"}]})
        ));
        let (document, operation) = read(r#"{"204":{}}"#);
        assert!(
            strict(
                &document,
                &operation,
                &mut Schemas::for_output(&document),
                &options,
                &mut Vec::new()
            )
            .is_none()
        );
    }
}
