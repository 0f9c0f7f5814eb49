//! XML bodies: a JSON value as the elements and attributes that the XML Objects of its schema name
//! (OAS "XML Object").

use std::borrow::Cow;
use std::rc::Rc;

use foldhash::HashMap;
use quick_xml::Writer;
use quick_xml::events::attributes::Attribute;
use quick_xml::events::{BytesCData, BytesDecl, BytesEnd, BytesStart, BytesText, Event};
use quick_xml::name::QName;
use serde::Deserialize;
use serde_json::Value;

use crate::call_error::CallError;
use crate::json::JsonObject;
use crate::proxy::request::style;
use crate::spec::node::{Node, Object};
use crate::spec::operation::request_body::{BODY, BodySchema};
use crate::spec::{Document, Span, pointer};

/// The root element if neither `xml.name` nor a component names it.
const ROOT: &str = "root";
/// More schemas than this are not searched for what describes one value.
const MAX_SCHEMAS: usize = 64;
/// Namespace that declares `nil` (XML Schema part 1 section 2.6.2; OAS 3.2 "XML Null").
const INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// Writes `value` as an XML document. A text is the document itself.
///
/// # Errors
/// [`CallError::InvalidRequest`] if a name, a character or a shape cannot be written as XML.
pub(crate) fn write_xml(
    document: &Document,
    schema: &BodySchema,
    value: &Value,
) -> Result<Vec<u8>, CallError> {
    if let Value::String(text) = value {
        if text.trim_start().starts_with(['{', '[']) {
            return Err(invalid_xml_body(
                "is JSON inside a string; give the object itself, or XML text",
            ));
        }
        return Ok(text.clone().into_bytes());
    }
    let declared = match schema {
        BodySchema::At(span) => Some(document.node(*span)),
        BodySchema::Absent
        | BodySchema::Items(..)
        | BodySchema::Fields(_)
        | BodySchema::JsonPatch(_)
        | BodySchema::FilesByName => None,
    };
    let mut body = XmlBody {
        document,
        known: HashMap::default(),
        out: Writer::new(Vec::new()),
    };
    body.emit(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)));
    let root = body.schema(declared);
    let name = root.component.as_deref().filter(|name| is_name(name));
    body.element(name.unwrap_or(ROOT), &root, value, true)?;
    Ok(body.out.into_inner())
}

fn invalid_xml_body(problem: impl Into<String>) -> CallError {
    CallError::invalid_request(BODY, problem)
}

/// Node that a value becomes (3.2 `nodeType`; `attribute` and `wrapped` before that).
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum NodeType {
    Element,
    Attribute,
    Text,
    Cdata,
    /// No node: its content takes its place.
    None,
}

/// An XML Object.
#[derive(Default)]
struct Xml {
    name: Option<String>,
    prefix: Option<String>,
    namespace: Option<String>,
    node_type: Option<NodeType>,
}

impl Xml {
    fn read(object: &Object<'_>) -> Self {
        let is = |key: &str| object.boolean(key) == Some(true);
        let named = object
            .get("nodeType")
            .and_then(|node| serde_json::from_str(node.text()).ok());
        let node_type = match named {
            None if is("attribute") => Some(NodeType::Attribute),
            None if is("wrapped") => Some(NodeType::Element),
            named => named,
        };
        let text = |key: &str| object.text(key).filter(|text| !text.is_empty());
        Self {
            name: text("name"),
            prefix: text("prefix"),
            namespace: text("namespace"),
            node_type,
        }
    }

    /// `prefix:name`.
    fn qualified(&self, name: &str) -> Result<String, CallError> {
        let full = match &self.prefix {
            Some(prefix) => format!("{prefix}:{name}"),
            None => name.to_owned(),
        };
        if is_name(&full) {
            Ok(full)
        } else {
            Err(invalid_xml_body(format!(
                "has a member `{name}`, which is not an XML name"
            )))
        }
    }

    /// The attribute that declares the namespace.
    fn declaration(&self) -> Option<(String, String)> {
        let namespace = self.namespace.clone()?;
        let key = match &self.prefix {
            Some(prefix) => format!("xmlns:{prefix}"),
            None => "xmlns".to_owned(),
        };
        Some((key, namespace))
    }
}

/// A schema, and its `properties`.
type SchemaPart<'a> = (Object<'a>, Option<Object<'a>>);

/// What an XML body needs to know of a schema.
#[derive(Default)]
struct XmlSchema<'a> {
    /// The schema as it is declared, then what it refers to.
    chain: Vec<SchemaPart<'a>>,
    /// Its XML Object, else that of the only schema it is composed of.
    xml: Xml,
    /// The name of the component that it refers to.
    component: Option<String>,
}

impl<'a> XmlSchema<'a> {
    fn read(document: &'a Document, declared: Node<'a>) -> Self {
        let chain = |declared: Node<'a>| -> Vec<SchemaPart<'a>> {
            let own = declared.object();
            let refers = own.as_ref().is_some_and(|own| own.get("$ref").is_some());
            let target = refers
                .then(|| document.resolve(declared).ok()?.object())
                .flatten();
            let with_properties = |object: Object<'a>| {
                let properties = object.get("properties").and_then(Node::object);
                (object, properties)
            };
            own.into_iter().chain(target).map(with_properties).collect()
        };
        let xml = |chain: &[SchemaPart<'a>]| {
            let mut objects = chain.iter().map(|(object, _)| object);
            objects.find_map(|object| Some(Xml::read(&object.get("xml")?.object()?)))
        };
        let component = |node: Node<'a>| {
            let reference = node.object()?.get("$ref")?.string()?.into_owned();
            pointer::tokens(reference.split_once('#')?.1)?.pop()
        };
        let own = chain(declared);
        let only_part = || {
            let mut objects = own.iter().map(|(object, _)| object);
            let parts = objects.find_map(|object| object.get("allOf"))?.array()?;
            parts.first().copied().filter(|_| parts.len() == 1)
        };
        Self {
            xml: xml(&own)
                .or_else(|| xml(&chain(only_part()?)))
                .unwrap_or_default(),
            component: component(declared).or_else(|| component(only_part()?)),
            chain: own,
        }
    }
}

/// An XML body that is being written.
struct XmlBody<'a> {
    document: &'a Document,
    /// The schemas that were read: a long list has many items and one schema.
    known: HashMap<Span, Rc<XmlSchema<'a>>>,
    out: Writer<Vec<u8>>,
}

impl<'a> XmlBody<'a> {
    fn schema(&mut self, declared: Option<Node<'a>>) -> Rc<XmlSchema<'a>> {
        let Some(declared) = declared else {
            return Rc::default();
        };
        let document = self.document;
        let known = self.known.entry(declared.span());
        Rc::clone(known.or_insert_with(|| XmlSchema::read(document, declared).into()))
    }

    /// Finds something in a schema or in any branch of its compositions.
    fn find(
        &mut self,
        schema: &Rc<XmlSchema<'a>>,
        looked_for: impl Fn(&SchemaPart<'a>) -> Option<Node<'a>>,
    ) -> Option<Node<'a>> {
        let (mut schema, mut left) = (Rc::clone(schema), Vec::new());
        for _ in 0..MAX_SCHEMAS {
            if let Some(found) = schema.chain.iter().find_map(&looked_for) {
                return Some(found);
            }
            for (object, _) in &schema.chain {
                for combinator in ["oneOf", "anyOf", "allOf"] {
                    left.extend(object.array(combinator).into_iter().rev());
                }
            }
            schema = self.schema(Some(left.pop()?));
        }
        None
    }

    fn member(&mut self, schema: &Rc<XmlSchema<'a>>, name: &str) -> Rc<XmlSchema<'a>> {
        let declared = self.find(schema, |(_, properties)| properties.as_ref()?.get(name));
        let declared = declared.or_else(|| {
            self.find(schema, |(object, _)| {
                object
                    .get("additionalProperties")
                    .filter(|node| node.text().starts_with('{'))
            })
        });
        self.schema(declared)
    }

    /// Returns the schema of the item at that index.
    fn item(&mut self, schema: &Rc<XmlSchema<'a>>, index: usize) -> Rc<XmlSchema<'a>> {
        let listed = self.find(schema, |(object, _)| {
            object.get("prefixItems")?.array()?.get(index).copied()
        });
        let declared = listed.or_else(|| self.find(schema, |(object, _)| object.get("items")));
        self.schema(declared)
    }

    fn emit(&mut self, event: Event<'_>) {
        // Writing to a `Vec` cannot fail.
        let _ = self.out.write_event(event);
    }

    /// Writes `value` as an element, or as several, if it is a list without an element of its own.
    /// `inferred` is its name unless the schema has another; with `encloses`, a list gets an element
    /// in any case.
    fn element(
        &mut self,
        inferred: &str,
        schema: &Rc<XmlSchema<'a>>,
        value: &Value,
        encloses: bool,
    ) -> Result<(), CallError> {
        let xml = &schema.xml;
        if let Value::Array(items) = value {
            let is_wrapped = encloses || xml.node_type == Some(NodeType::Element);
            // The name beside `type: array` is the wrapper's, and the items' too if they have none
            // (OAS "XML Arrays").
            let name = xml
                .name
                .as_deref()
                .filter(|_| is_wrapped)
                .unwrap_or(inferred);
            let tag = xml.qualified(name)?;
            if is_wrapped {
                let start = start_tag(&tag, xml.declaration().into_iter().collect())?;
                self.emit(Event::Start(start));
            }
            for (index, item) in items.iter().enumerate() {
                let of_item = self.item(schema, index);
                let component = of_item.component.as_deref();
                let item_name =
                    component.filter(|name| encloses && xml.name.is_none() && is_name(name));
                match of_item.xml.node_type {
                    Some(NodeType::Text | NodeType::Cdata) if item.is_null() => {}
                    Some(kind @ (NodeType::Text | NodeType::Cdata)) => {
                        self.write_text(kind, item)?;
                    }
                    _ => {
                        self.element(item_name.unwrap_or(name), &of_item, item, item.is_array())?;
                    }
                }
            }
            if is_wrapped {
                self.emit(Event::End(BytesEnd::new(tag)));
            }
            return Ok(());
        }
        let tag = xml.qualified(xml.name.as_deref().unwrap_or(inferred))?;
        let mut attributes: Vec<(String, String)> = xml.declaration().into_iter().collect();
        let mut content = Vec::new();
        match value {
            Value::Object(members) => {
                self.split_attributes(schema, members, &mut attributes, &mut content)?;
            }
            Value::Null => {
                attributes.push(("xmlns:xsi".into(), INSTANCE.into()));
                attributes.push(("xsi:nil".into(), "true".into()));
            }
            scalar => content.push(("", Rc::clone(schema), NodeType::Text, scalar)),
        }
        let start = start_tag(&tag, attributes)?;
        if content.is_empty() {
            self.emit(Event::Empty(start));
            return Ok(());
        }
        self.emit(Event::Start(start));
        for (name, schema, node_type, value) in content {
            match node_type {
                NodeType::Text | NodeType::Cdata => self.write_text(node_type, value)?,
                NodeType::Element | NodeType::Attribute | NodeType::None => {
                    self.element(name, &schema, value, false)?;
                }
            }
        }
        self.emit(Event::End(BytesEnd::new(tag)));
        Ok(())
    }

    /// Writes a value as text, in a CDATA section if its node is one.
    fn write_text(&mut self, node_type: NodeType, value: &Value) -> Result<(), CallError> {
        let text = scalar_text(value)?;
        // A parser would change a carriage return in such a section.
        if node_type == NodeType::Cdata && !text.contains('\r') {
            check_characters(&text)?;
            BytesCData::escaped(&text).for_each(|part| self.emit(Event::CData(part)));
        } else {
            let text = BytesText::from_escaped(escaped(&text, false)?);
            self.emit(Event::Text(text));
        }
        Ok(())
    }

    /// Takes the members of an object apart into attributes and content of its element.
    fn split_attributes<'v>(
        &mut self,
        schema: &Rc<XmlSchema<'a>>,
        members: &'v JsonObject,
        attributes: &mut Vec<(String, String)>,
        content: &mut Vec<(&'v str, Rc<XmlSchema<'a>>, NodeType, &'v Value)>,
    ) -> Result<(), CallError> {
        for (name, value) in members {
            let of_member = self.member(schema, name);
            let xml = &of_member.xml;
            match (xml.node_type.unwrap_or(NodeType::Element), value) {
                // OAS 3.2: what is null is neither an attribute nor text.
                (NodeType::Attribute | NodeType::Text | NodeType::Cdata, Value::Null) => {}
                (NodeType::Attribute, value) => {
                    attributes.extend(xml.declaration());
                    let key = xml.qualified(xml.name.as_deref().unwrap_or(name))?;
                    attributes.push((key, scalar_text(value)?.into_owned()));
                }
                (NodeType::None, Value::Object(inner)) => {
                    self.split_attributes(&of_member, inner, attributes, content)?;
                }
                (NodeType::None, value) if !value.is_array() => {
                    content.push((name, of_member, NodeType::Text, value));
                }
                (node_type, value) => content.push((name, of_member, node_type, value)),
            }
        }
        Ok(())
    }
}

/// The text of a scalar, or of a list of scalars with spaces between them (XML Schema part 2
/// section 4.2.1.2).
fn scalar_text(value: &Value) -> Result<Cow<'_, str>, CallError> {
    let of_scalar = |value| match value {
        &Value::Object(_) | &Value::Array(_) => Err(invalid_xml_body(
            "has an object or a list where XML takes a text only",
        )),
        value => Ok(style::scalar(value).unwrap_or_default()),
    };
    match value {
        Value::Array(items) => {
            let texts: Result<Vec<_>, _> = items.iter().map(of_scalar).collect();
            Ok(texts?.join(" ").into())
        }
        value => of_scalar(value),
    }
}

fn start_tag(
    tag: &str,
    attributes: Vec<(String, String)>,
) -> Result<BytesStart<'static>, CallError> {
    let mut start = BytesStart::new(tag.to_owned());
    let mut seen: Vec<String> = Vec::new();
    for (key, value) in attributes {
        if seen.contains(&key) {
            // Two attributes of one name are not XML (XML 1.0 section 3.1); a namespace may well be
            // declared twice.
            if key.starts_with("xmlns") {
                continue;
            }
            return Err(invalid_xml_body(format!(
                "has two attributes `{key}` in one element"
            )));
        }
        let value = escaped(&value, true)?;
        start.push_attribute(Attribute {
            key: QName(&key),
            value: value.into(),
        });
        seen.push(key);
    }
    Ok(start)
}

/// Escapes a text so that any parser reads it back unchanged: line ends become character
/// references, because parsers change them (XML 1.0 sections 2.11 and 3.3.3).
fn escaped(text: &str, in_attribute: bool) -> Result<String, CallError> {
    check_characters(text)?;
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\r' => out.push_str("&#13;"),
            '\n' if in_attribute => out.push_str("&#10;"),
            '\t' if in_attribute => out.push_str("&#9;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' if in_attribute => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    Ok(out)
}

/// XML 1.0 section 2.2.
fn check_characters(text: &str) -> Result<(), CallError> {
    let is_legal = |character: char| matches!(character, '\t' | '\n' | '\r' | '\u{20}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..='\u{10FFFF}');
    if text.chars().all(is_legal) {
        Ok(())
    } else {
        Err(invalid_xml_body(
            "holds a control character, which XML cannot",
        ))
    }
}

/// Returns true if a name is a `QName` (XML Namespaces section 4), in the characters that names are
/// made of in practice.
fn is_name(name: &str) -> bool {
    let starts = |character: char| character.is_alphabetic() || character == '_';
    let goes_on =
        |character: char| character.is_alphanumeric() || matches!(character, '_' | '-' | '.');
    let is_part = |part: &str| part.starts_with(starts) && part.chars().all(goes_on);
    match name.split_once(':') {
        Some((prefix, local)) => is_part(prefix) && is_part(local),
        None => is_part(name),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(schema: &Value, value: &Value) -> Result<String, CallError> {
        let text = json!({"openapi": "3.2.0", "paths": {}, "x": schema, "components": {"schemas": {
            "Node": {"type": "object", "properties": {"id": {"xml": {"attribute": true}}, "child": {"$ref": "#/components/schemas/Node"}}}
        }}});
        let document = Document::parse(text.to_string().into_bytes(), None).unwrap();
        let span = document.member("x").unwrap().span();
        let bytes = write_xml(&document, &BodySchema::At(span), value)?;
        let text = String::from_utf8(bytes).unwrap();
        Ok(text
            .strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>")
            .unwrap_or(&text)
            .to_owned())
    }

    #[test]
    fn schemas_that_recurse_are_followed_as_deep_as_the_value() {
        let value = json!({"id": 1, "child": {"id": 2, "child": {"id": 3}}});
        assert_eq!(
            written(&json!({"$ref": "#/components/schemas/Node"}), &value).unwrap(),
            r#"<Node id="1"><child id="2"><child id="3"/></child></Node>"#
        );
    }

    #[test]
    fn what_xml_cannot_say_is_told() {
        for value in [
            json!({"a b": 1}),
            json!({"": 1}),
            json!({"a><b": 1}),
            json!({"a:b:c": 1}),
            json!({"a": "\u{0}"}),
            json!({"id": {"k": 1}}),
            json!("{\"id\":1}"),
        ] {
            assert!(
                written(&json!({"$ref": "#/components/schemas/Node"}), &value).is_err(),
                "{value}"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_back_as_it_was(text in "[\\t\\n\\r -\u{D7FF}\u{E000}-\u{FFFD}]*") {
            let schema = json!({"properties": {"attribute": {"xml": {"attribute": true}}, "cdata": {"xml": {"nodeType": "cdata"}}}});
            let attribute = written(&schema, &json!({"attribute": text})).unwrap();
            let inner = attribute.strip_prefix("<root attribute=\"").unwrap().strip_suffix("\"/>").unwrap();
            proptest::prop_assert!(!inner.contains(['"', '<', '\n', '\r', '\t']));
            proptest::prop_assert_eq!(quick_xml::escape::unescape(inner).unwrap(), text.as_str());
            let element = written(&schema, &json!({"e": text})).unwrap();
            let inner = element.strip_prefix("<root><e>").unwrap().strip_suffix("</e></root>").unwrap();
            proptest::prop_assert!(!inner.contains(['<', '>', '\r']));
            proptest::prop_assert_eq!(quick_xml::escape::unescape(inner).unwrap(), text.as_str());
        }
    }
}
