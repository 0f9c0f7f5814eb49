//! A whole OpenAPI document: its JSON text, which version it speaks, and where its reusable parts lie.

use std::collections::HashMap;

use thiserror::Error;
use url::Url;

use super::node::{self, Node, Object, two_levels};
use super::{pointer, yaml};

/// The OpenAPI versions that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// 3.0.x: schemas are a dialect of their own (`nullable`, boolean `exclusiveMinimum`).
    V3_0,
    /// 3.1.x: schemas are JSON Schema 2020-12.
    V3_1,
    /// 3.2.x: as 3.1, with QUERY and more.
    V3_2,
}

/// Why a document cannot be read as a whole.
#[derive(Debug, Error)]
pub enum LoadError {
    /// Bytes that are no text.
    #[error("the document is not UTF-8 text (first bad byte at offset {0})")]
    NotText(usize),
    /// Nothing there.
    #[error("the document is empty")]
    Empty,
    /// Looks like JSON and is not.
    #[error("the document is not valid JSON")]
    NotJson(#[source] serde_json::Error),
    /// Neither JSON nor YAML.
    #[error("the document is neither JSON nor YAML")]
    NotYaml(#[source] serde_yaml::Error),
    /// JSON or YAML, but something else.
    #[error("this is not an OpenAPI document: {0}")]
    NotOpenApi(String),
    /// Swagger 2.0.
    #[error(
        "this is a Swagger {0} document, which is not supported yet; convert it to OpenAPI 3 first (for instance with swagger2openapi)"
    )]
    Swagger(String),
    /// A version from the future or from nowhere.
    #[error("OpenAPI {0} is not supported; 3.0, 3.1 and 3.2 are")]
    Version(String),
}

/// Where a value lies in the document's text, so that it can be opened again without borrowing from anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    start: u32,
    end: u32,
}

/// An OpenAPI document.
#[derive(Debug)]
pub struct Document {
    text: String,
    /// Where the text came from, to resolve relative server URLs against.
    pub url: Option<Url>,
    index: Index,
}

/// What the root object says, and where its parts lie.
#[derive(Debug)]
struct Index {
    version: Version,
    title: String,
    api_version: Option<String>,
    description: Option<String>,
    members: HashMap<String, Span>,
    components: HashMap<String, HashMap<String, Span>>,
}

impl Index {
    fn new(text: &str) -> Result<Self, LoadError> {
        let root = node::open(text)
            .map_err(LoadError::NotJson)?
            .ok_or_else(|| LoadError::NotOpenApi("it is no object with an `openapi` member".into()))?;
        let version = version(&root)?;
        let has = |member| root.get(member).is_some_and(|node| node.text().starts_with('{'));
        if !has("paths") && !has("webhooks") && !has("components") {
            return Err(LoadError::NotOpenApi("it has no `paths`".into()));
        }
        let info = root.get("info").and_then(Node::object).unwrap_or_default();
        let members = root.iter().map(|(key, node)| (key.to_owned(), span_in(text, node))).collect();
        let mut components = HashMap::new();
        for (kind, entries) in root.get("components").and_then(|node| two_levels(node).ok()).unwrap_or_default() {
            let entries = entries.unwrap_or_default();
            components.insert(
                kind.into_owned(),
                entries.iter().map(|(name, node)| (name.to_owned(), span_in(text, node))).collect(),
            );
        }
        Ok(Self {
            version,
            title: info
                .text("title")
                .filter(|title| !title.trim().is_empty())
                .unwrap_or_else(|| "API".into()),
            api_version: info.text("version"),
            description: info.text("description"),
            members,
            components,
        })
    }
}

impl Document {
    /// Reads bytes that hold JSON or YAML; which of the two is told by the content, never by a file name.
    ///
    /// # Errors
    /// [`LoadError`] where the document cannot be read as a whole. Faults of single operations come later, one by one.
    pub fn parse(bytes: Vec<u8>, url: Option<Url>) -> Result<Self, LoadError> {
        let mut text = String::from_utf8(bytes).map_err(|error| LoadError::NotText(error.utf8_error().valid_up_to()))?;
        if text.starts_with('\u{feff}') {
            text.drain(..'\u{feff}'.len_utf8());
        }
        match text.trim_start().as_bytes().first() {
            None => Err(LoadError::Empty),
            // JSON goes past the YAML parser: that one refuses legal escapes of surrogate pairs, and is slower.
            Some(b'{' | b'[') => match Self::index(text, url.clone()) {
                // A YAML flow mapping may open with a brace as well.
                Err((text, LoadError::NotJson(error))) => {
                    let json = yaml::to_json(&text).map_err(|_| LoadError::NotJson(error))?;
                    Self::index(json, url).map_err(|(_, error)| error)
                }
                other => other.map_err(|(_, error)| error),
            },
            Some(_) => Self::index(yaml::to_json(&text).map_err(LoadError::NotYaml)?, url).map_err(|(_, error)| error),
        }
    }

    /// One scan over JSON text that notes where the root's members lie, and one over its components.
    fn index(text: String, url: Option<Url>) -> Result<Self, (String, LoadError)> {
        match Index::new(&text) {
            Ok(index) => Ok(Self { text, url, index }),
            Err(error) => Err((text, error)),
        }
    }

    /// The OpenAPI version.
    #[must_use]
    pub fn version(&self) -> Version {
        self.index.version
    }

    /// `info.title`, or `API` where there is none.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.index.title
    }

    /// `info.version`.
    #[must_use]
    pub fn api_version(&self) -> Option<&str> {
        self.index.api_version.as_deref()
    }

    /// `info.description`.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        self.index.description.as_deref()
    }

    /// The value at `span`.
    #[must_use]
    pub fn node(&self, span: Span) -> Node<'_> {
        Node::new(self.text.get(span.start as usize..span.end as usize).unwrap_or("null"))
    }

    /// Where `node`, a value of this document, lies.
    #[must_use]
    pub fn span(&self, node: Node<'_>) -> Span {
        span_in(&self.text, node)
    }

    /// A member of the root object.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<Node<'_>> {
        self.index.members.get(name).map(|span| self.node(*span))
    }

    /// The value that a `$ref` names.
    ///
    /// # Errors
    /// A sentence on why there is none: dangling, another file, or an anchor.
    pub fn target(&self, reference: &str) -> Result<Node<'_>, String> {
        let Some(fragment) = reference.strip_prefix('#') else {
            return Err(format!("`{reference}` lies outside this document, which is not read"));
        };
        let tokens = pointer::tokens(fragment).ok_or_else(|| format!("`{reference}` is no JSON Pointer"))?;
        let dangling = || format!("`{reference}` points to nothing");
        if let [components, kind, name] = tokens.as_slice()
            && components == "components"
        {
            let span = self
                .index
                .components
                .get(kind)
                .and_then(|entries| entries.get(name))
                .ok_or_else(dangling)?;
            return Ok(self.node(*span));
        }
        let (first, rest) = tokens.split_first().ok_or_else(dangling)?;
        let mut node = self.member(first).ok_or_else(dangling)?;
        for token in rest {
            node = match node.object() {
                Some(object) => object.get(token),
                None => token.parse::<usize>().ok().and_then(|index| node.array()?.get(index).copied()),
            }
            .ok_or_else(dangling)?;
        }
        Ok(node)
    }

    /// Follows `$ref`s until there is none (path items, parameters, bodies, responses, headers, examples; schemas are
    /// resolved where they are translated, because they may recurse).
    ///
    /// # Errors
    /// As [`Document::target`], or a chain of references that never ends.
    pub fn resolve<'a>(&'a self, mut node: Node<'a>) -> Result<Node<'a>, String> {
        const LONGEST_CHAIN: usize = 32;
        for _ in 0..LONGEST_CHAIN {
            // Most objects are no references; looking for the word is cheaper than opening them.
            if !node.text().contains("\"$ref\"") {
                return Ok(node);
            }
            match node.object().as_ref().and_then(|object| object.get("$ref")).and_then(Node::string) {
                None => return Ok(node),
                Some(reference) => node = self.target(&reference)?,
            }
        }
        Err("a chain of references that never ends".into())
    }

    /// Line and column of a value, both from 1, counted in the JSON text.
    #[must_use]
    pub fn position(&self, node: Node<'_>) -> (usize, usize) {
        let start = self.span(node).start as usize;
        let before = self.text.get(..start).unwrap_or_default();
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |tail| tail.chars().count()) + 1;
        (line, column)
    }

    /// The bytes that the text holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether the text is empty, which no readable document is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}

/// Where `node` lies in `text`. Nodes are slices of the text, so that the difference of the addresses is the offset;
/// a node of another text gives an empty span.
fn span_in(text: &str, node: Node<'_>) -> Span {
    let start = (node.text().as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
    let end = start.wrapping_add(node.text().len());
    if start <= text.len() && end <= text.len() {
        // A document is at most 32 MiB, or what its YAML may expand to: far below 4 GiB.
        Span {
            start: u32::try_from(start).unwrap_or(0),
            end: u32::try_from(end).unwrap_or(0),
        }
    } else {
        Span { start: 0, end: 0 }
    }
}

fn version(root: &Object<'_>) -> Result<Version, LoadError> {
    if let Some(swagger) = root.text("swagger") {
        return Err(LoadError::Swagger(swagger));
    }
    let Some(version) = root.text("openapi") else {
        return Err(LoadError::NotOpenApi("it has no `openapi` member that names the version".into()));
    };
    let mut numbers = version.split(['.', '-']);
    match (numbers.next(), numbers.next()) {
        (Some("3"), Some("0")) => Ok(Version::V3_0),
        (Some("3"), Some("1")) => Ok(Version::V3_1),
        (Some("3"), Some("2")) => Ok(Version::V3_2),
        _ => Err(LoadError::Version(version)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Document, LoadError> {
        Document::parse(text.as_bytes().to_vec(), None)
    }

    #[test]
    fn json_and_yaml_are_told_apart_by_content() {
        for text in [
            r#"{"openapi":"3.0.3","info":{"title":"T"},"paths":{}}"#,
            "\u{feff}{\"openapi\":\"3.0.3\",\"info\":{\"title\":\"T\"},\"paths\":{}}",
            "openapi: 3.0.3\ninfo: {title: T}\npaths: {}\n",
            "\u{feff}# comment\nopenapi: '3.0.3'\ninfo:\n  title: T\npaths: {}\n",
            "{openapi: 3.0.3, info: {title: T}, paths: {}}",
        ] {
            let document = parse(text).unwrap();
            assert_eq!((document.version(), document.title()), (Version::V3_0, "T"), "{text}");
        }
    }

    #[test]
    fn what_is_no_openapi_document_is_told_so() {
        for (text, expected) in [
            ("", "empty"),
            ("  \n", "empty"),
            ("{\"openapi\": ", "not valid JSON"),
            ("a: [", "neither JSON nor YAML"),
            ("hello", "not an OpenAPI document"),
            ("{}", "no `openapi` member"),
            ("[1]", "not an OpenAPI document"),
            ("<html></html>", "not an OpenAPI document"),
            ("openapi: 3.0.0", "no `paths`"),
            ("openapi: 4.0.0\npaths: {}", "OpenAPI 4.0.0 is not supported"),
            ("swagger: '2.0'\npaths: {}", "Swagger 2.0"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }

    #[test]
    fn references_are_followed_by_pointer_and_dangling_ones_say_so() {
        let document = parse(
            r##"{"openapi":"3.1.0","paths":{"/a b/{c}":{"get":{"parameters":[{"name":"x"}]}}},
                "components":{"schemas":{"A":{"type":"string"}},"parameters":{"P":{"$ref":"#/components/parameters/Q"},"Q":{"$ref":"#/components/parameters/P"}}}}"##,
        )
        .unwrap();
        assert_eq!(document.target("#/components/schemas/A").unwrap().text(), r#"{"type":"string"}"#);
        assert_eq!(
            document
                .target("#/paths/~1a%20b~1%7Bc%7D/get/parameters/0")
                .unwrap()
                .object()
                .unwrap()
                .text("name")
                .unwrap(),
            "x"
        );
        assert!(document.target("#/components/schemas/B").unwrap_err().contains("points to nothing"));
        assert!(document.target("other.yaml#/x").unwrap_err().contains("outside"));
        assert!(
            document
                .resolve(document.target("#/components/parameters/P").unwrap())
                .unwrap_err()
                .contains("never ends")
        );
    }
}
