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

use super::overrides::ruled_schema::ruled_output;
use crate::json::{JsonObject, NOTES_KEY, RESULT_KEY};
use crate::spec::node::Node;
use crate::spec::operation::response::{Media, successes};
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
    /// The properties of replies.
    properties: Vec<(String, Node<'d>)>,
    items: Option<Node<'d>>,
    /// The branches of all compositions.
    branches: Vec<Node<'d>>,
}

impl<'d> ReplyDescriber<'d> {
    pub(crate) fn new(document: &'d Document) -> Self {
        Self {
            document,
            scanned: HashMap::default(),
            room: 0,
        }
    }

    /// A schema that describes the JSON of an operation's successes, as far as its rule for replies
    /// lets it through, and accepts any object.
    pub(crate) fn lenient(&mut self, operation: &Operation) -> Option<JsonObject> {
        let schema = successes(self.document, operation)
            .iter()
            .flat_map(|response| &response.media)
            .find(|media| MediaKind::of(&media.name) == MediaKind::Json)?
            .schema?;
        self.room = MAX_SCHEMA_BYTES;
        let described = self.describe(schema, MAX_DEPTH);
        let kind = type_name(self.document, schema, 0);
        let properties = match (kind.as_str(), described.get("properties")) {
            ("object", Some(properties)) => properties.clone(),
            // A schema that describes nothing would only be a constraint.
            ("object" | "", _) => return None,
            // A value that is not an object is wrapped.
            _ => json!({ RESULT_KEY: described }),
        };
        let schema = JsonObject::from_iter([
            ("type".to_owned(), "object".into()),
            ("properties".to_owned(), properties),
        ]);
        match &operation.rules.response {
            Some(rule) => ruled_output(rule, schema),
            None => Some(schema),
        }
    }

    /// Describes a value without a single assertion, and what is in it down to `depth` levels.
    fn describe(&mut self, schema: Node<'d>, depth: usize) -> JsonObject {
        let mut out = JsonObject::new();
        let Some(scanned) = self.scan(schema) else {
            return out;
        };
        if !scanned.text.is_empty() {
            self.room = self.room.saturating_sub(scanned.text.len() + 18);
            out.insert("description".into(), scanned.text.as_str().into());
        }
        let Some(depth) = depth.checked_sub(1).filter(|_| self.room > 0) else {
            return out;
        };
        let mut properties = JsonObject::new();
        self.add_properties(&scanned, depth, &mut properties, 0);
        if !properties.is_empty() {
            out.insert("properties".into(), properties.into());
        }
        if let Some(items) = scanned.items {
            out.insert("items".into(), self.describe(items, depth).into());
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
        for (name, property) in &schema.properties {
            if properties.contains_key(name) {
                continue;
            }
            let Some(room) = self.room.checked_sub(name.len() + 8) else {
                self.room = 0;
                return;
            };
            self.room = room;
            properties.insert(name.clone(), self.describe(*property, depth).into());
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
        let said = object.text("description").or_else(|| object.text("title"));
        let said = one_line(&clean(&said.unwrap_or_default()));
        let said = truncate(&said, MAX_DESCRIPTION_BYTES);
        let between = if kind.is_empty() || said.is_empty() {
            ""
        } else {
            ": "
        };
        let properties = object.object("properties");
        let properties = properties
            .iter()
            .filter(|(_, schema)| !self.is_write_only(*schema));
        let combinators = ["allOf", "oneOf", "anyOf"].into_iter();
        let scanned = Rc::new(ScannedSchema {
            text: kind + between + &said,
            properties: properties
                .map(|(name, schema)| (name.to_owned(), schema))
                .collect(),
            items: object
                .get("items")
                .filter(|items| items.text().starts_with('{')),
            branches: combinators.flat_map(|key| object.array(key)).collect(),
        });
        self.scanned.insert(target.span(), Rc::clone(&scanned));
        Some(scanned)
    }

    fn is_write_only(&self, schema: Node<'d>) -> bool {
        let object = || self.document.object(schema);
        schema.text().contains("writeOnly")
            && object().is_some_and(|schema| schema.is_true("writeOnly"))
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
) -> Option<JsonObject> {
    let mut whole = Vec::new();
    for response in successes(document, operation) {
        let is_json = |media: &Media<'_>| MediaKind::of(&media.name) == MediaKind::Json;
        if !response
            .media
            .iter()
            .all(|media| is_json(media) && media.schema.is_some())
        {
            return None;
        }
        whole.push(response.media.first()?.schema?.span());
    }
    let mut found: Vec<Value> = Vec::new();
    for span in whole {
        let translated = schemas.translate(span);
        if !found.contains(&translated) {
            found.push(translated);
        }
    }
    let one = match found.len() {
        0 | 1 => found.pop()?,
        _ => json!({ "anyOf": found }),
    };
    let notes = json!({"type": "array", "items": {"type": "string"}, "description": "Notes of the server about this result"});
    match json!({ "type": "object", "properties": { RESULT_KEY: one, NOTES_KEY: notes }, "required": [RESULT_KEY] })
    {
        Value::Object(root) => Some(schemas.complete(root, options).schema),
        _ => None,
    }
}

/// The one type that a schema allows; empty if there is none or more than one.
fn type_name(document: &Document, schema: Node<'_>, nesting: usize) -> String {
    let object = document.object(schema).unwrap_or_default();
    let declared = object.get("type");
    if let Some(mut kinds) = declared.and_then(Node::array).map(|_| object.types()) {
        kinds.retain(|kind| kind != "null");
        return kinds.join(" or ");
    }
    if let Some(kind) = declared.and_then(Node::string) {
        return kind.into_owned();
    }
    if object.has_any("properties additionalProperties") {
        return "object".into();
    }
    if object.has_any("items") {
        return "array".into();
    }
    if nesting < MAX_DEPTH {
        for combinator in ["allOf", "oneOf", "anyOf"] {
            let branches = object.array(combinator);
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
            )
            .is_none()
        );
    }
}
