//! An OpenAPI document: its JSON text, its version, and the positions of its components.
//!
//! YAML is converted to JSON once, by a visitor of this crate, so that `on`, `0200:` and merge keys
//! mean what the author meant.
//!
//! # Adding a version of OpenAPI
//!
//! - A variant of `Version` in `spec/document/mod.rs`, which `version` there reads. Comparisons
//!   with `>=` hold for a later version.
//! - The message of `unsupported` in `spec/document/mod.rs`.
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
    version: Version,
    title: String,
    api_version: Option<String>,
    description: Option<String>,
    summary: Option<String>,
    /// Addresses that the document gives people, if they are `https`.
    website: Option<Url>,
    logo: Option<Url>,
    /// 3.2 `$self`: the document's own name in references.
    own_name: Option<String>,
    /// Long objects that references lead through, opened.
    opened: Mutex<HashMap<Span, HashMap<String, Span>>>,
    /// Read when a reference first needs it.
    named: OnceLock<NamedSchemas>,
    /// The other files, as they were when they were read.
    pub(crate) seen: Vec<Revision>,
}

/// The longest address of a document that people or clients may open, in bytes.
const MAX_URL_BYTES: usize = 2048;

impl Document {
    /// Reads bytes that contain JSON or YAML; the content determines the format, not the file name.
    ///
    /// # Errors
    /// [`LoadError`] if the document as a whole cannot be read. Errors of single operations are
    /// reported when they are read.
    pub fn parse(bytes: Vec<u8>, url: Option<Url>) -> Result<Self, LoadError> {
        let file = DocumentFile::parse(0, "", bytes)?;
        let root = file.root().object().ok_or_else(|| {
            LoadError::not_open_api("it is not an object with an `openapi` member")
        })?;
        let version = version(&root)?;
        let parts = ["paths", "webhooks", "components"].map(|name| root.get(name));
        if !parts
            .iter()
            .flatten()
            .any(|part| part.text().starts_with('{'))
        {
            return Err(LoadError::not_open_api("it has no `paths`"));
        }
        let info = root.object("info");
        let own_name = root.text("$self");
        let own_url = own_name
            .as_deref()
            .and_then(|name| Url::options().base_url(url.as_ref()).parse(name).ok());
        Ok(Self {
            url: own_url.or(url),
            version,
            title: match info.text("title") {
                Some(title) if !title.trim().is_empty() => title,
                _ => "API".into(),
            },
            api_version: info.text("version"),
            description: info.text("description"),
            summary: info.text("summary"),
            website: https_url(&root.object("externalDocs")),
            logo: https_url(&info.object("x-logo")),
            own_name,
            files: vec![file],
            links: HashMap::default(),
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

    /// Returns a diagnostic for each part of the files that was read differently from how it is
    /// written.
    #[must_use]
    pub fn remarks(&self) -> Vec<Diagnostic> {
        let of_file = |file: &DocumentFile| {
            let remark = file.remark.clone()?;
            Some(remark.at(file.root().span()))
        };
        self.files.iter().filter_map(of_file).collect()
    }

    /// The OpenAPI version.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns `info.title`, or `API` if there is none.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// `info.version`.
    #[must_use]
    pub fn api_version(&self) -> Option<&str> {
        self.api_version.as_deref()
    }

    /// `info.description`.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// `info.summary` (3.1).
    #[must_use]
    pub fn summary(&self) -> Option<&str> {
        self.summary.as_deref()
    }

    /// `externalDocs.url`, if it is an `https` URL.
    #[must_use]
    pub fn website(&self) -> Option<&Url> {
        self.website.as_ref()
    }

    /// `info.x-logo.url`, which documentation tools read, if it is an `https` URL.
    #[must_use]
    pub fn logo(&self) -> Option<&Url> {
        self.logo.as_ref()
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
        let span = |diagnostic: &&Diagnostic| {
            diagnostic.span.or_else(|| {
                let tokens = pointer::tokens(diagnostic.pointer.strip_prefix('#')?)?;
                Some(pointer::target(self.root(), &tokens)?.span())
            })
        };
        let spans: Vec<Option<Span>> = diagnostics.iter().map(span).collect();
        let mut found = vec![None; spans.len()];
        for (number, file) in self.files.iter().enumerate() {
            let here = spans.iter().enumerate().filter_map(|(index, span)| {
                let span = span.filter(|span| span.file as usize == number)?;
                Some((span.start as usize, index))
            });
            let mut places: Vec<(usize, usize)> = here.collect();
            if places.is_empty() {
                continue;
            }
            places.sort_unstable();
            file.locate(&places, &mut |index, (line, column)| {
                if let Some(place) = found.get_mut(index) {
                    *place = Some((file.name.as_str(), line, column));
                }
            });
        }
        found
    }
}

/// The `url` of an object, if people may open it.
fn https_url(object: &Object<'_>) -> Option<Url> {
    let text = object.text("url")?;
    let url = Url::parse(text.trim()).ok()?;
    let is_plain = url.username().is_empty() && url.password().is_none();
    (url.scheme() == "https" && is_plain && text.len() <= MAX_URL_BYTES).then_some(url)
}

fn version(root: &Object<'_>) -> Result<Version, LoadError> {
    if root.get("swaggerVersion").is_some() {
        return Err(unsupported("1.x (Swagger)"));
    }
    if let Some(swagger) = root.text("swagger") {
        return if swagger.starts_with("2.") || swagger == "2" {
            Ok(Version::V2_0)
        } else {
            Err(unsupported(&swagger))
        };
    }
    let Some(version) = root.text("openapi") else {
        return Err(LoadError::not_open_api(name_other_format(root)));
    };
    let mut numbers = version.split(['.', '-']);
    match (numbers.next(), numbers.next()) {
        (Some("3"), Some("0")) => Ok(Version::V3_0),
        (Some("3"), Some("1")) => Ok(Version::V3_1),
        (Some("3"), Some("2")) => Ok(Version::V3_2),
        _ => Err(unsupported(&version)),
    }
}

fn unsupported(version: &str) -> LoadError {
    LoadError::new(format!(
        "OpenAPI {version} is not supported; 2.0, 3.0, 3.1 and 3.2 are"
    ))
}

/// Recognizes documents of other formats, and says what to do with them.
fn name_other_format(root: &Object<'_>) -> &'static str {
    let has = |name| root.get(name).is_some();
    if has("asyncapi") {
        "it is an AsyncAPI document, which describes messages; OpenAPI describes HTTP operations"
    } else if has("overlay") {
        "it is an OpenAPI Overlay; name it in `overlay`, and the document that it changes with --spec"
    } else if has("mcpServers") {
        "it is the configuration of an MCP client; the document is what its --spec names"
    } else if has("__schema") || root.object("data").get("__schema").is_some() {
        "it is a GraphQL schema; only OpenAPI documents can be served"
    } else if has("spec") {
        "it is a configuration file of openapi-mcp, as it seems; give it with --config"
    } else if has("$schema") && has("properties") {
        "it is a JSON Schema; an OpenAPI document has `openapi`, `info` and `paths`"
    } else {
        "it has no `openapi` member that names the version"
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
        let target = |reference: &str| document.target(reference, document.root().span());
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
