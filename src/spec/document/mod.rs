//! A whole OpenAPI document: its JSON text, which version it speaks, and where its reusable parts lie.

pub(crate) mod anchors;
pub(crate) mod external;
pub(crate) mod file;
pub(crate) mod overlay;
pub(crate) mod positions;
pub(crate) mod reference;
pub(crate) mod revision;
pub(crate) mod source;
pub(crate) mod yaml;

use foldhash::HashMap;
use std::sync::{Mutex, OnceLock};

use thiserror::Error;
use url::Url;

use self::anchors::Named;
use self::file::DocumentFile;
use self::reference::walk;
use self::revision::Revision;
use super::diagnostic::Diagnostic;
use super::node::{self, Node, Object};
use super::pointer;

/// The OpenAPI versions that are read.
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
    /// A version from the future or from nowhere.
    #[error("OpenAPI {0} is not supported; 2.0, 3.0, 3.1 and 3.2 are")]
    Version(String),
}

/// Where a value lies in the document's text, so that it can be opened again without borrowing from anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    pub(crate) file: u32,
    pub(crate) start: u32,
    end: u32,
}

impl Span {
    /// Whether the other one lies in this one, or is it.
    pub(crate) fn holds(self, other: Self) -> bool {
        self.file == other.file && self.start <= other.start && other.end <= self.end
    }
}

/// An OpenAPI document: one file, and those that it refers to.
#[derive(Debug)]
pub struct Document {
    /// The document itself comes first.
    pub(crate) files: Vec<DocumentFile>,
    /// What a reference to another file leads to, by the file it stands in: a file, or why there is none.
    pub(crate) links: HashMap<(u32, String), Result<u32, String>>,
    /// Where the texts lie in memory, sorted, to tell which file a node is of.
    places: Vec<(usize, usize, u32)>,
    /// Where the document came from, to resolve relative server URLs against.
    pub url: Option<Url>,
    pub(crate) index: Index,
    /// Large objects that references lead through, opened.
    pub(crate) opened: Mutex<HashMap<Span, HashMap<String, Span>>>,
    /// Looked for when a reference first needs it.
    named: OnceLock<Named>,
    seen: Vec<Revision>,
}

/// What the root object says, and where its parts lie.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) version: Version,
    title: String,
    api_version: Option<String>,
    description: Option<String>,
    /// 3.2 `$self`: the document's own name in references.
    pub(crate) own_name: Option<String>,
    members: HashMap<String, (usize, usize)>,
    /// Components by kind and name; of 2.0, `definitions`, `parameters` and `responses`.
    pub(crate) components: HashMap<String, HashMap<String, (usize, usize)>>,
}

impl Index {
    fn new(text: &str) -> Result<Self, LoadError> {
        let no_object = || LoadError::NotOpenApi("it is no object with an `openapi` member".into());
        let (root, kinds) = node::open_with_components(text)
            .map_err(LoadError::NotJson)?
            .ok_or_else(no_object)?;
        let version = version(&root)?;
        let has = |member| root.get(member).is_some_and(|node| node.text().starts_with('{'));
        if !has("paths") && !has("webhooks") && !has("components") {
            return Err(LoadError::NotOpenApi("it has no `paths`".into()));
        }
        let info = root.get("info").and_then(Node::object).unwrap_or_default();
        let members = root.iter().map(|(key, node)| (key.to_owned(), position_of(text, node))).collect();
        let places = |entries: Object<'_>| {
            entries
                .iter()
                .map(|(name, node)| (name.to_owned(), position_of(text, node)))
                .collect::<HashMap<_, _>>()
        };
        let components = if version == Version::V2_0 {
            let kinds = ["definitions", "parameters", "responses"].into_iter();
            kinds
                .filter_map(|kind| Some((kind.to_owned(), places(root.get(kind)?.object()?))))
                .collect()
        } else {
            kinds
                .into_iter()
                .map(|(kind, entries)| (kind.into_owned(), places(entries.unwrap_or_default())))
                .collect()
        };
        Ok(Self {
            version,
            title: info
                .text("title")
                .filter(|title| !title.trim().is_empty())
                .unwrap_or_else(|| "API".into()),
            api_version: info.text("version"),
            description: info.text("description"),
            own_name: root.text("$self"),
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
        let (file, index) = DocumentFile::parse("", bytes, Index::new)?;
        let url = index
            .own_name
            .as_deref()
            .and_then(|name| Url::options().base_url(url.as_ref()).parse(name).ok())
            .or(url);
        let mut document = Self {
            files: vec![file],
            links: HashMap::default(),
            places: Vec::new(),
            url,
            index,
            opened: Mutex::default(),
            named: OnceLock::new(),
            seen: Vec::new(),
        };
        document.place_files();
        Ok(document)
    }

    /// Takes in the files that references lead to, and what each such reference means; [`self::external`] reads them.
    pub(crate) fn extend(&mut self, files: Vec<DocumentFile>, links: HashMap<(u32, String), Result<u32, String>>, seen: Vec<Revision>) {
        self.files.extend(files);
        self.seen = seen;
        self.links = links;
        self.place_files();
        self.named = OnceLock::new();
    }

    pub(crate) fn named(&self) -> &Named {
        self.named.get_or_init(|| Named::of(self))
    }

    fn place_files(&mut self) {
        let place = |(number, file): (usize, &DocumentFile)| {
            let start = file.text().as_ptr() as usize;
            (start, start + file.text().len(), u32::try_from(number).unwrap_or(0))
        };
        self.places = self.files.iter().enumerate().map(place).collect();
        self.places.sort_unstable();
    }

    /// All files, the document itself first.
    #[must_use]
    pub fn files(&self) -> &[DocumentFile] {
        &self.files
    }

    /// What was read differently from how it is written in any of the files, before anything was made of it.
    #[must_use]
    pub fn remarks(&self) -> Vec<Diagnostic> {
        let of_file = |file: &DocumentFile| -> Vec<Diagnostic> {
            let placed = file.remarks.iter().cloned().map(|mut remark| {
                let tokens = remark.pointer.strip_prefix('#').and_then(pointer::tokens);
                remark.span = tokens.and_then(|tokens| walk(file.root(), &tokens)).map(|node| self.span(node));
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
        let text = self.files.get(span.file as usize).map_or("", DocumentFile::text);
        Node::new(text.get(span.start as usize..span.end as usize).unwrap_or("null"))
    }

    /// Where `node`, a value of this document, lies.
    #[must_use]
    pub fn span(&self, node: Node<'_>) -> Span {
        let address = node.text().as_ptr() as usize;
        let found = self
            .places
            .partition_point(|(start, ..)| *start <= address)
            .checked_sub(1)
            .and_then(|at| self.places.get(at));
        match found {
            Some((start, end, file)) if address <= *end => span(*file, address - start, address - start + node.text().len()),
            _ => span(0, 0, 0),
        }
    }

    /// A member of the root object.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<Node<'_>> {
        self.index.members.get(name).map(|place| self.at(*place))
    }

    /// The members of the root whose names begin like that, in no particular order.
    pub fn members(&self, prefix: &str) -> impl Iterator<Item = (&str, Node<'_>)> {
        let found = self.index.members.iter().filter(move |(name, _)| name.starts_with(prefix));
        found.map(|(name, place)| (name.as_str(), self.at(*place)))
    }

    /// The components of a kind (`schemas`, `parameters`, …; of 2.0 `definitions`), in no particular order.
    pub fn components(&self, kind: &str) -> impl Iterator<Item = (&str, Node<'_>)> {
        self.index
            .components
            .get(kind)
            .into_iter()
            .flatten()
            .map(|(name, place)| (name.as_str(), self.at(*place)))
    }

    pub(crate) fn at(&self, (start, end): (usize, usize)) -> Node<'_> {
        self.node(span(0, start, end))
    }

    /// File name (empty for the document itself), line and column of what a diagnostic points to.
    #[must_use]
    pub fn locate(&self, diagnostic: &Diagnostic) -> Option<(&str, usize, usize)> {
        self.places_of(&[diagnostic]).pop().flatten()
    }

    /// As [`Document::locate`], of many at the price of about one.
    #[must_use]
    pub fn places_of(&self, diagnostics: &[&Diagnostic]) -> Vec<Option<(&str, usize, usize)>> {
        let span = |diagnostic: &Diagnostic| {
            diagnostic.span.or_else(|| {
                let tokens = pointer::tokens(diagnostic.pointer.strip_prefix('#')?)?;
                Some(self.span(self.walk(self.files.first()?.root(), &tokens)?))
            })
        };
        let spans: Vec<Option<Span>> = diagnostics.iter().map(|diagnostic| span(diagnostic)).collect();
        let mut found = vec![None; spans.len()];
        for (number, file) in self.files.iter().enumerate() {
            let here = |span: &Option<Span>| span.filter(|span| span.file as usize == number).map(|span| span.start as usize);
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

/// Offset and end of a node in its text. Nodes are slices, so that the difference of the addresses is the offset.
pub(crate) fn position_of(text: &str, node: Node<'_>) -> (usize, usize) {
    let start = (node.text().as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    (start, start + node.text().len())
}

/// A document is at most 32 MiB, or what its YAML may expand to: far below 4 GiB.
fn span(file: u32, start: usize, end: usize) -> Span {
    Span {
        file,
        start: u32::try_from(start).unwrap_or(0),
        end: u32::try_from(end).unwrap_or(0),
    }
}

fn version(root: &Object<'_>) -> Result<Version, LoadError> {
    if let Some(swagger) = root.text("swagger") {
        return if swagger.starts_with("2.") || swagger == "2" {
            Ok(Version::V2_0)
        } else {
            Err(LoadError::Version(swagger))
        };
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
        assert_eq!(target("#/components/schemas/A").unwrap().text(), r#"{"type":"string"}"#);
        assert_eq!(
            target("#/paths/~1a%20b~1%7Bc%7D/get/parameters/0")
                .unwrap()
                .object()
                .unwrap()
                .text("name")
                .unwrap(),
            "x"
        );
        assert!(target("#/components/schemas/B").unwrap_err().contains("points to nothing"));
        assert!(target("other.yaml#/x").unwrap_err().contains("outside"));
        assert!(
            document
                .resolve(target("#/components/parameters/P").unwrap())
                .unwrap_err()
                .contains("never ends")
        );
    }
}
