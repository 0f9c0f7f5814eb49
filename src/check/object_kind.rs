//! The objects of a document that are looked through, by the keys that each of them may have.

use crate::spec::document::Version;
use crate::spec::node::{Node, Object};
use crate::spec::{Document, pointer};

/// An object whose keys are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectKind {
    Root,
    PathItem,
    Operation,
    Parameter,
    RequestBody,
    MediaType,
    Response,
    Components,
    Schema,
}

/// What stands under a key.
#[derive(Debug, Clone, Copy)]
enum Below {
    /// Something else.
    Other,
    /// Such an object, or a list of them.
    Object(ObjectKind),
    /// Such objects by names that the author chose.
    Named(ObjectKind),
    /// Such objects by names within objects by names: callbacks.
    NamedTwice(ObjectKind),
}

use Below::{Named, NamedTwice, Other};
use ObjectKind::{Components, MediaType, Operation, Parameter, PathItem, RequestBody, Response, Root, Schema};

type KnownKeys = &'static [(&'static str, Below)];

const ROOT: KnownKeys = &[
    ("openapi", Other),
    ("$self", Other),
    ("info", Other),
    ("jsonSchemaDialect", Other),
    ("servers", Other),
    ("paths", Named(PathItem)),
    ("webhooks", Named(PathItem)),
    ("components", Below::Object(Components)),
    ("security", Other),
    ("tags", Other),
    ("externalDocs", Other),
];
const SWAGGER_ROOT: KnownKeys = &[
    ("swagger", Other),
    ("info", Other),
    ("host", Other),
    ("basePath", Other),
    ("schemes", Other),
    ("consumes", Other),
    ("produces", Other),
    ("paths", Named(PathItem)),
    ("definitions", Named(Schema)),
    ("parameters", Named(Parameter)),
    ("responses", Named(Response)),
    ("securityDefinitions", Other),
    ("security", Other),
    ("tags", Other),
    ("externalDocs", Other),
];
const PATH_ITEM: KnownKeys = &[
    ("get", Below::Object(Operation)),
    ("put", Below::Object(Operation)),
    ("post", Below::Object(Operation)),
    ("delete", Below::Object(Operation)),
    ("options", Below::Object(Operation)),
    ("head", Below::Object(Operation)),
    ("patch", Below::Object(Operation)),
    ("trace", Below::Object(Operation)),
    ("servers", Other),
    ("parameters", Below::Object(Parameter)),
];
const PATH_ITEM_OF_3_2: KnownKeys = &[("query", Below::Object(Operation)), ("additionalOperations", Named(Operation))];
const OPERATION: KnownKeys = &[
    ("tags", Other),
    ("externalDocs", Other),
    ("operationId", Other),
    ("parameters", Below::Object(Parameter)),
    ("requestBody", Below::Object(RequestBody)),
    ("responses", Named(Response)),
    ("callbacks", NamedTwice(PathItem)),
    ("deprecated", Other),
    ("security", Other),
    ("servers", Other),
];
const SWAGGER_OPERATION: KnownKeys = &[
    ("tags", Other),
    ("externalDocs", Other),
    ("operationId", Other),
    ("consumes", Other),
    ("produces", Other),
    ("parameters", Below::Object(Parameter)),
    ("responses", Named(Response)),
    ("schemes", Other),
    ("deprecated", Other),
    ("security", Other),
];
const PARAMETER: KnownKeys = &[
    ("name", Other),
    ("in", Other),
    ("required", Other),
    ("deprecated", Other),
    ("allowEmptyValue", Other),
    ("style", Other),
    ("explode", Other),
    ("allowReserved", Other),
    ("schema", Below::Object(Schema)),
    ("example", Other),
    ("examples", Other),
    ("content", Named(MediaType)),
];
/// A parameter of 2.0 is its own schema.
const SWAGGER_PARAMETER: KnownKeys = &[
    ("name", Other),
    ("in", Other),
    ("collectionFormat", Other),
    ("allowEmptyValue", Other),
    ("schema", Below::Object(Schema)),
];
const REQUEST_BODY: KnownKeys = &[("content", Named(MediaType)), ("required", Other)];
const MEDIA_TYPE: KnownKeys = &[
    ("schema", Below::Object(Schema)),
    ("itemSchema", Below::Object(Schema)),
    ("example", Other),
    ("examples", Other),
    ("encoding", Other),
    ("prefixEncoding", Other),
    ("itemEncoding", Other),
];
const RESPONSE: KnownKeys = &[("headers", Other), ("content", Named(MediaType)), ("links", Other)];
const SWAGGER_RESPONSE: KnownKeys = &[
    ("headers", Other),
    ("schema", Below::Object(Schema)),
    ("example", Other),
    ("examples", Other),
];
const COMPONENTS: KnownKeys = &[
    ("schemas", Named(Schema)),
    ("responses", Named(Response)),
    ("parameters", Named(Parameter)),
    ("examples", Other),
    ("requestBodies", Named(RequestBody)),
    ("headers", Other),
    ("securitySchemes", Other),
    ("links", Other),
    ("callbacks", NamedTwice(PathItem)),
    ("pathItems", Named(PathItem)),
    ("mediaTypes", Named(MediaType)),
];
/// JSON Schema of all drafts, and what OpenAPI adds.
const SCHEMA: KnownKeys = &[
    ("title", Other),
    ("type", Other),
    ("format", Other),
    ("nullable", Other),
    ("enum", Other),
    ("const", Other),
    ("default", Other),
    ("example", Other),
    ("examples", Other),
    ("deprecated", Other),
    ("readOnly", Other),
    ("writeOnly", Other),
    ("discriminator", Other),
    ("xml", Other),
    ("externalDocs", Other),
    ("multipleOf", Other),
    ("maximum", Other),
    ("minimum", Other),
    ("exclusiveMaximum", Other),
    ("exclusiveMinimum", Other),
    ("maxLength", Other),
    ("minLength", Other),
    ("pattern", Other),
    ("maxItems", Other),
    ("minItems", Other),
    ("uniqueItems", Other),
    ("maxContains", Other),
    ("minContains", Other),
    ("maxProperties", Other),
    ("minProperties", Other),
    ("required", Other),
    ("dependentRequired", Other),
    ("contentMediaType", Other),
    ("contentEncoding", Other),
    ("contentSchema", Below::Object(Schema)),
    ("allOf", Below::Object(Schema)),
    ("anyOf", Below::Object(Schema)),
    ("oneOf", Below::Object(Schema)),
    ("not", Below::Object(Schema)),
    ("if", Below::Object(Schema)),
    ("then", Below::Object(Schema)),
    ("else", Below::Object(Schema)),
    ("items", Below::Object(Schema)),
    ("prefixItems", Below::Object(Schema)),
    ("additionalItems", Below::Object(Schema)),
    ("unevaluatedItems", Below::Object(Schema)),
    ("contains", Below::Object(Schema)),
    ("properties", Named(Schema)),
    ("patternProperties", Named(Schema)),
    ("additionalProperties", Below::Object(Schema)),
    ("unevaluatedProperties", Below::Object(Schema)),
    ("propertyNames", Below::Object(Schema)),
    ("dependentSchemas", Named(Schema)),
    ("dependencies", Other),
    ("definitions", Named(Schema)),
    ("$defs", Named(Schema)),
    ("$id", Other),
    ("id", Other),
    ("$schema", Other),
    ("$anchor", Other),
    ("$dynamicRef", Other),
    ("$dynamicAnchor", Other),
    ("$recursiveRef", Other),
    ("$recursiveAnchor", Other),
    ("$comment", Other),
    ("$vocabulary", Other),
];
/// These may stand in any of the objects, beside a reference at least.
const EVERYWHERE: KnownKeys = &[("$ref", Other), ("summary", Other), ("description", Other)];

impl ObjectKind {
    /// What people call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Root => "the document",
            PathItem => "a path item",
            Operation => "an operation",
            Parameter => "a parameter",
            RequestBody => "a request body",
            MediaType => "a media type",
            Response => "a response",
            Components => "the components",
            Schema => "a schema",
        }
    }

    /// What stands under a key; `None` where the object has no such key in that version.
    fn below(self, key: &str, version: Version) -> Option<Below> {
        let mut all = self.keys(version).into_iter().flatten();
        all.find(|(known, _)| *known == key).map(|(_, below)| *below)
    }

    /// Whether the object may have that key in that version.
    pub(super) fn has_key(self, key: &str, version: Version) -> bool {
        self.below(key, version).is_some()
    }

    /// The keys that the object may have in that version.
    pub(super) fn known_keys(self, version: Version) -> impl Iterator<Item = &'static str> {
        self.keys(version).into_iter().flatten().map(|(key, _)| *key)
    }

    /// The lists of its keys.
    fn keys(self, version: Version) -> [KnownKeys; 3] {
        let swagger = version == Version::V2_0;
        let own = match self {
            Root if swagger => SWAGGER_ROOT,
            Root => ROOT,
            PathItem => PATH_ITEM,
            Operation if swagger => SWAGGER_OPERATION,
            Operation => OPERATION,
            Parameter if swagger => SWAGGER_PARAMETER,
            Parameter => PARAMETER,
            RequestBody => REQUEST_BODY,
            MediaType => MEDIA_TYPE,
            Response if swagger => SWAGGER_RESPONSE,
            Response => RESPONSE,
            Components => COMPONENTS,
            Schema => SCHEMA,
        };
        let more = match self {
            Parameter if swagger => SCHEMA,
            PathItem if version >= Version::V3_2 => PATH_ITEM_OF_3_2,
            _ => &[],
        };
        [own, more, EVERYWHERE]
    }
}

/// An object of a document whose kind is known.
pub(super) struct KnownObject<'d> {
    /// Where it is, as a JSON Pointer fragment.
    pub place: String,
    pub kind: ObjectKind,
    pub node: Node<'d>,
    pub members: Object<'d>,
}

/// Calls `visit` with each of them. Files that the document refers to are not looked into.
pub(super) fn each_known_object<'d>(document: &'d Document, mut visit: impl FnMut(&KnownObject<'d>)) {
    let version = document.version();
    let root = document.files().first().map(|file| (String::from("#"), file.root(), Root));
    let mut open: Vec<(String, Node<'d>, ObjectKind)> = root.into_iter().collect();
    while let Some((place, node, kind)) = open.pop() {
        for (index, item) in node.array().into_iter().flatten().enumerate() {
            let mut place = place.clone();
            pointer::push_index(&mut place, index);
            open.push((place, item, kind));
        }
        let Some(members) = node.object() else { continue };
        for (key, value) in members.iter() {
            if let Some(below) = kind.below(key, version) {
                push_below(&mut open, &place, key, value, below);
            }
        }
        visit(&KnownObject {
            place,
            kind,
            node,
            members,
        });
    }
}

/// Opens what stands under a key, where it holds objects.
fn push_below<'a>(open: &mut Vec<(String, Node<'a>, ObjectKind)>, place: &str, key: &str, value: Node<'a>, below: Below) {
    let within = |place: &str, key: &str| {
        let mut place = place.to_owned();
        pointer::push(&mut place, key);
        place
    };
    let members = |node: Node<'a>| node.object().unwrap_or_default();
    match below {
        Other => {}
        Below::Object(kind) => open.push((within(place, key), value, kind)),
        Named(kind) => {
            let place = within(place, key);
            for (name, value) in members(value).iter().filter(|(name, _)| !is_extension(name)) {
                open.push((within(&place, name), value, kind));
            }
        }
        NamedTwice(kind) => {
            let place = within(place, key);
            for (name, value) in members(value).iter() {
                push_below(open, &place, name, value, Named(kind));
            }
        }
    }
}

/// Whether a key is one of the author's own (OpenAPI, "Specification Extensions").
pub(super) fn is_extension(key: &str) -> bool {
    key.starts_with("x-") || key.starts_with("X-")
}
