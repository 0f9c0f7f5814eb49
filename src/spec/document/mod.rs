//! An OpenAPI document: its JSON text, its version, and the positions of its components.
//!
//! YAML is converted to JSON once, by a visitor of this crate, so that `on`, `0200:` and merge keys
//! mean what the author meant.
//!
//! # Adding a version of OpenAPI
//!
//! - A variant of `Version` in `spec/document/mod.rs`, which `version` there reads. Comparisons
//!   with `>=` hold for a later version.
//! - The message of `LoadError` in `spec/document/error.rs`.
//! - The keys of each version in `check/object_keys.txt`, whose names of versions `has_version` in
//!   `check/walk.rs` reads, and the name in `version_of_key` in `check/document_faults.rs`.
//! - New keywords are read in `spec/operation/`. Schemas of all versions are translated in the same
//!   way.

pub(crate) mod anchors;
pub(crate) mod discovery;
pub(crate) mod error;
pub(crate) mod external;
pub(crate) mod file;
mod missing_file;
pub(crate) mod overlay;
pub(crate) mod positions;
pub(crate) mod reference;
pub(crate) mod revision;
pub(crate) mod source;
pub(crate) mod web_page;
mod yaml;

use std::sync::OnceLock;

use foldhash::HashMap;
use parking_lot::Mutex;
use url::Url;

use self::anchors::NamedSchemas;
use self::error::LoadError;
use self::file::DocumentFile;
use self::revision::Revision;
use super::diagnostic::Diagnostic;
use super::node::{Node, Object, Span};
use super::pointer;

/// The supported OpenAPI versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// Swagger 2.0: bodies and forms are parameters, schemas are a dialect of draft 4.
    V2_0,
    /// 3.0.x: schemas are a dialect of their own (`nullable`, boolean `exclusiveMinimum`).
    V3_0,
    /// 3.1.x: schemas are JSON Schema 2020-12.
    V3_1,
    /// 3.2.x: as 3.1, with QUERY and more.
    V3_2,
}

/// An OpenAPI document: one file, and those that it refers to.
#[derive(Debug)]
pub struct Document {
    /// The document itself comes first.
    pub(crate) files: Vec<DocumentFile>,
    /// Target of each reference to another file, by the file that contains the reference: a file,
    /// or why there is none.
    pub(crate) links: HashMap<(u32, String), Result<u32, String>>,
    /// URL of the document, to resolve relative server URLs against.
    pub url: Option<Url>,
    pub(crate) index: Index,
    /// Long objects that references lead through, opened.
    opened: Mutex<HashMap<Span, HashMap<String, Span>>>,
    /// Read when a reference first needs it.
    named: OnceLock<NamedSchemas>,
    seen: Vec<Revision>,
}

/// The longest address of a document that people or clients may open, in bytes.
const MAX_URL_BYTES: usize = 2048;

/// What the root object says of the document.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) version: Version,
    title: String,
    api_version: Option<String>,
    description: Option<String>,
    summary: Option<String>,
    /// Addresses that the document gives people, if they are `https`.
    website: Option<Url>,
    logo: Option<Url>,
    /// 3.2 `$self`: the document's own name in references.
    pub(crate) own_name: Option<String>,
}

impl Index {
    fn new(root: Node<'_>) -> Result<Self, LoadError> {
        let no_object =
            || LoadError::NotOpenApi("it is not an object with an `openapi` member".into());
        let root = root.object().ok_or_else(no_object)?;
        let version = version(&root)?;
        let has = |member| {
            root.get(member)
                .is_some_and(|node| node.text().starts_with('{'))
        };
        if !has("paths") && !has("webhooks") && !has("components") {
            return Err(LoadError::NotOpenApi("it has no `paths`".into()));
        }
        let info = root.object("info").unwrap_or_default();
        let https_url = |object: Option<Object<'_>>| {
            let text = object?.text("url")?;
            let url = Url::parse(text.trim()).ok()?;
            let is_plain = url.username().is_empty() && url.password().is_none();
            (url.scheme() == "https" && is_plain && text.len() <= MAX_URL_BYTES).then_some(url)
        };
        Ok(Self {
            version,
            title: info
                .text("title")
                .filter(|title| !title.trim().is_empty())
                .unwrap_or_else(|| "API".into()),
            api_version: info.text("version"),
            description: info.text("description"),
            summary: info.text("summary"),
            website: https_url(root.object("externalDocs")),
            logo: https_url(info.object("x-logo")),
            own_name: root.text("$self"),
        })
    }
}

impl Document {
    /// Reads bytes that contain JSON or YAML; the content determines the format, not the file name.
    ///
    /// # Errors
    /// [`LoadError`] if the document as a whole cannot be read. Errors of single operations are
    /// reported when they are read.
    pub fn parse(bytes: Vec<u8>, url: Option<Url>) -> Result<Self, LoadError> {
        let file = DocumentFile::parse(0, "", bytes)?;
        let index = Index::new(file.root())?;
        let url = index
            .own_name
            .as_deref()
            .and_then(|name| Url::options().base_url(url.as_ref()).parse(name).ok())
            .or(url);
        Ok(Self {
            files: vec![file],
            links: HashMap::default(),
            url,
            index,
            opened: Mutex::default(),
            named: OnceLock::new(),
            seen: Vec::new(),
        })
    }

    /// Takes in the files that references lead to, and what each such reference means;
    /// [`self::external`] reads them.
    pub(crate) fn extend(
        &mut self,
        files: Vec<DocumentFile>,
        links: HashMap<(u32, String), Result<u32, String>>,
        seen: Vec<Revision>,
    ) {
        self.files.extend(files);
        self.seen = seen;
        self.links = links;
        self.named = OnceLock::new();
    }

    pub(crate) fn named(&self) -> &NamedSchemas {
        self.named.get_or_init(|| NamedSchemas::of(&self.files))
    }

    /// All files, the document itself first.
    #[must_use]
    pub fn files(&self) -> &[DocumentFile] {
        &self.files
    }

    /// Returns a diagnostic for each part of the files that was read differently from how it is
    /// written.
    #[must_use]
    pub fn remarks(&self) -> Vec<Diagnostic> {
        let of_file = |file: &DocumentFile| -> Vec<Diagnostic> {
            let placed = file.remarks.iter().cloned().map(|mut remark| {
                let tokens = remark.pointer.strip_prefix('#').and_then(pointer::tokens);
                remark.span = tokens
                    .and_then(|tokens| pointer::target(file.root(), &tokens))
                    .map(Node::span);
                remark
            });
            placed.collect()
        };
        self.files.iter().flat_map(of_file).collect()
    }

    /// The other files, as they were when they were read.
    #[must_use]
    pub fn seen(&self) -> &[Revision] {
        &self.seen
    }

    /// The OpenAPI version.
    #[must_use]
    pub fn version(&self) -> Version {
        self.index.version
    }

    /// Returns `info.title`, or `API` if there is none.
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

    /// `info.summary` (3.1).
    #[must_use]
    pub fn summary(&self) -> Option<&str> {
        self.index.summary.as_deref()
    }

    /// `externalDocs.url`, if it is an `https` URL.
    #[must_use]
    pub fn website(&self) -> Option<&Url> {
        self.index.website.as_ref()
    }

    /// `info.x-logo.url`, which documentation tools read, if it is an `https` URL.
    #[must_use]
    pub fn logo(&self) -> Option<&Url> {
        self.index.logo.as_ref()
    }

    /// The value at `span`.
    #[must_use]
    pub fn node(&self, span: Span) -> Node<'_> {
        let file = self.files.get(span.file as usize);
        file.map_or_else(|| Node::new("null"), |file| file.node(span))
    }

    /// The whole document.
    pub(crate) fn root(&self) -> Node<'_> {
        self.files
            .first()
            .map_or_else(|| Node::new("null"), DocumentFile::root)
    }

    /// A member of the root object.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<Node<'_>> {
        self.root().member(name)
    }

    /// File name (empty for the document itself), line and column of what a diagnostic points to.
    #[must_use]
    pub fn locate(&self, diagnostic: &Diagnostic) -> Option<(&str, usize, usize)> {
        self.places_of(&[diagnostic]).pop().flatten()
    }

    /// Returns the positions of many diagnostics. It costs about as much as [`Document::locate`]
    /// for one.
    #[must_use]
    pub fn places_of(&self, diagnostics: &[&Diagnostic]) -> Vec<Option<(&str, usize, usize)>> {
        let span = |diagnostic: &Diagnostic| {
            diagnostic.span.or_else(|| {
                let tokens = pointer::tokens(diagnostic.pointer.strip_prefix('#')?)?;
                Some(pointer::target(self.root(), &tokens)?.span())
            })
        };
        let spans: Vec<Option<Span>> = diagnostics
            .iter()
            .map(|diagnostic| span(diagnostic))
            .collect();
        let mut found = vec![None; spans.len()];
        for (number, file) in self.files.iter().enumerate() {
            let here = |span: &Option<Span>| {
                span.filter(|span| span.file as usize == number)
                    .map(|span| span.start as usize)
            };
            let (indexes, offsets): (Vec<usize>, Vec<usize>) = spans
                .iter()
                .enumerate()
                .filter_map(|(index, span)| Some((index, here(span)?)))
                .unzip();
            if offsets.is_empty() {
                continue;
            }
            for (index, position) in indexes.into_iter().zip(file.positions(&offsets)) {
                if let Some(place) = found.get_mut(index) {
                    *place = position.map(|(line, column)| (file.name.as_str(), line, column));
                }
            }
        }
        found
    }
}

fn version(root: &Object<'_>) -> Result<Version, LoadError> {
    if root.get("swaggerVersion").is_some() {
        return Err(LoadError::Version("1.x (Swagger)".into()));
    }
    if let Some(swagger) = root.text("swagger") {
        return if swagger.starts_with("2.") || swagger == "2" {
            Ok(Version::V2_0)
        } else {
            Err(LoadError::Version(swagger))
        };
    }
    let Some(version) = root.text("openapi") else {
        let known = name_other_format(root).map(|format| format!("it is {format}"));
        let what =
            known.unwrap_or_else(|| "it has no `openapi` member that names the version".into());
        return Err(LoadError::NotOpenApi(what));
    };
    let mut numbers = version.split(['.', '-']);
    match (numbers.next(), numbers.next()) {
        (Some("3"), Some("0")) => Ok(Version::V3_0),
        (Some("3"), Some("1")) => Ok(Version::V3_1),
        (Some("3"), Some("2")) => Ok(Version::V3_2),
        _ => Err(LoadError::Version(version)),
    }
}

/// Recognizes documents of other formats, and says what to do with them.
fn name_other_format(root: &Object<'_>) -> Option<&'static str> {
    let has = |name| root.get(name).is_some();
    let data = root.get("data").and_then(Node::object);
    let is_introspection = data.is_some_and(|data| data.get("__schema").is_some());
    [
        (
            has("asyncapi"),
            "an AsyncAPI document, which describes messages; OpenAPI describes HTTP operations",
        ),
        (
            has("overlay"),
            "an OpenAPI Overlay; name it in `overlay`, and the document that it changes with --spec",
        ),
        (
            has("mcpServers"),
            "the configuration of an MCP client; the document is what its --spec names",
        ),
        (
            has("__schema") || is_introspection,
            "a GraphQL schema; only OpenAPI documents can be served",
        ),
        (
            has("spec"),
            "a configuration file of openapi-mcp, as it seems; give it with --config",
        ),
        (
            has("$schema") && has("properties"),
            "a JSON Schema; an OpenAPI document has `openapi`, `info` and `paths`",
        ),
    ]
    .into_iter()
    .find_map(|(is_it, format)| is_it.then_some(format))
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
            assert_eq!(
                (document.version(), document.title()),
                (Version::V3_0, "T"),
                "{text}"
            );
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
            (
                "openapi: 4.0.0\npaths: {}",
                "OpenAPI 4.0.0 is not supported",
            ),
            ("swagger: '1.2'\npaths: {}", "OpenAPI 1.2 is not supported"),
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
        let target = |reference: &str| document.target(reference, document.files()[0].root());
        assert_eq!(
            target("#/components/schemas/A").unwrap().text(),
            r#"{"type":"string"}"#
        );
        assert_eq!(
            target("#/paths/~1a%20b~1%7Bc%7D/get/parameters/0")
                .unwrap()
                .object()
                .unwrap()
                .text("name")
                .unwrap(),
            "x"
        );
        assert!(
            target("#/components/schemas/B")
                .unwrap_err()
                .contains("points to nothing")
        );
        assert!(target("other.yaml#/x").unwrap_err().contains("outside"));
        assert!(
            document
                .resolve(target("#/components/parameters/P").unwrap())
                .unwrap_err()
                .contains("never ends")
        );
    }
}
