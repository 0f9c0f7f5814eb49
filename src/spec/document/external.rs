//! References into other files: which of them are read.
//!
//! A document may be untrusted, and its author chooses the files and URLs that it refers to. By
//! default, only files next to the document are read: below its own folder after symbolic links are
//! resolved, with the extension of a document, and within limits of count and size. For a document
//! from a URL, only URLs below the same address are read.

use std::collections::VecDeque;

use std::path::{Component, Path, PathBuf};

use foldhash::HashMap;
use memchr::memmem;
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use url::Url;

use super::Document;
use super::file::DocumentFile;
use super::revision::Revision;
use super::source::{Source, SourceReader};
use crate::spec::diagnostic::Diagnostic;
use crate::spec::jumps::{string_end, unquoted};

/// The extensions of documents.
const EXTENSIONS: [&str; 3] = ["json", "yaml", "yml"];
/// The maximum number of files; the largest known document has about 2,900.
const MAX_FILES: usize = 5000;

/// The references into other files that are followed.
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
pub enum ExternalReferences {
    /// None
    None,
    /// Those into the document's own folder, or below its own address
    #[default]
    Local,
    /// Any file and any URL; only for a document whose author you trust
    Any,
}

/// A file of the document, and how it is reached.
#[derive(Clone)]
struct OpenedFile {
    /// The source; a path with symbolic links resolved.
    place: Source,
    /// Path of a file as the references spell it, with its symbolic links. The target of a link may
    /// be deleted when the link is changed (a Kubernetes `ConfigMap` volume), so this is the path
    /// to watch.
    written: Option<PathBuf>,
}

struct Loader<'l> {
    /// Its headers are sent to the document's own origin only.
    reader: &'l SourceReader,
    policy: ExternalReferences,
    /// The folder or URL that contains all files that may be read.
    root: Source,
    numbers: HashMap<Source, Result<u32, String>>,
    files: Vec<DocumentFile>,
    /// Revisions of what was read, including files that could not be used.
    seen: Vec<Revision>,
    /// Number of bytes that all further files together may have.
    room: usize,
    /// Files that were read, by their numbers, and the references in them that leave them.
    queue: VecDeque<(u32, OpenedFile, Vec<String>)>,
}

/// Reads all files that the document refers to, directly or through other files, and reports those
/// that cannot be read. A reference that cannot be followed affects only what uses it. All files
/// together may have twice as many bytes as `reader` reads of each.
pub async fn complete_document(
    document: &mut Document,
    source: &Source,
    policy: ExternalReferences,
    reader: &SourceReader,
) -> Vec<Diagnostic> {
    let first = match document.files.first() {
        Some(file) if policy != ExternalReferences::None => outside(file.text()),
        _ => Vec::new(),
    };
    if first.is_empty() {
        return Vec::new();
    }
    let place = match source {
        Source::Path(path) => path.canonicalize().ok().map(Source::Path),
        Source::Url(_) => Some(source.clone()),
        Source::Stdin => None,
    };
    let Some(place) = place else {
        return Vec::new();
    };
    let written = source.path().cloned();
    let origin = OpenedFile { place, written };
    let mut loader = Loader {
        reader,
        policy,
        root: folder(&origin.place),
        queue: VecDeque::from([(0, origin, first)]),
        numbers: HashMap::default(),
        files: Vec::new(),
        seen: Vec::new(),
        room: reader.max_bytes.saturating_mul(2),
    };
    let mut links = HashMap::default();
    let mut diagnostics = Vec::new();
    while let Some((file, found, references)) = loader.queue.pop_front() {
        for uri in references {
            if links.contains_key(&(file, uri.clone()))
                || (file == 0 && document.named().count(&uri) > 0)
            {
                continue;
            }
            let number = loader.number(&uri, &found).await;
            if let Err(why) = &number {
                let warning = Diagnostic::warning("#", why.as_str());
                if !diagnostics.contains(&warning) {
                    diagnostics.push(warning);
                }
            }
            links.insert((file, uri), number);
        }
    }
    document.extend(loader.files, links, loader.seen);
    diagnostics
}

impl Loader<'_> {
    /// The number of the file that `uri`, read in the file at `from`, names.
    async fn number(&mut self, uri: &str, from: &OpenedFile) -> Result<u32, String> {
        let refused = |why: String| format!("`{uri}` is not read: {why}");
        let place = self
            .place(uri, &from.place)
            .map_err(refused)
            .inspect_err(|_| self.seen.extend(absent(uri, from, self.reader)))?;
        let found = OpenedFile {
            written: written_path(uri, from, &place),
            place,
        };
        if let Some(known) = self.numbers.get(&found.place) {
            return known.clone();
        }
        let number = self.read(&found).await.map_err(refused);
        self.numbers.insert(found.place, number.clone());
        number
    }

    async fn read(&mut self, file: &OpenedFile) -> Result<u32, String> {
        let place = &file.place;
        if self.files.len() >= MAX_FILES {
            return Err(format!("the document has more than {MAX_FILES} files"));
        }
        let is_own = matches!((place, &self.root), (Source::Url(url), Source::Url(root)) if root.origin() == url.origin());
        let reader = if is_own {
            self.reader.clone()
        } else {
            self.reader.without_headers()
        };
        let max_bytes = reader.max_bytes.min(self.room);
        let within_room = SourceReader {
            max_bytes,
            ..reader.clone()
        };
        let found = match place {
            // A redirect could lead to a URL that may not be read.
            Source::Url(url) => within_room.fetch(url, 0).await,
            _ => within_room.read(place).await,
        };
        let found = found.map_err(|error| {
            let is_room_over = error.is_too_large && max_bytes < reader.max_bytes;
            let most = reader.max_bytes.saturating_mul(2);
            if is_room_over {
                format!(
                    "the files that the document refers to are larger than {most} bytes together, \
                     the most that is read"
                )
            } else {
                error.to_string()
            }
        })?;
        let source = file.written.clone().map(Source::Path);
        let source = source.unwrap_or_else(|| place.clone());
        self.seen.push(Revision::new(source, reader, &found));
        self.room = self.room.saturating_sub(found.bytes.len());
        // The document itself is file 0.
        let number = u32::try_from(self.files.len() + 1).map_err(|error| error.to_string())?;
        let read = DocumentFile::parse(number, &place.name(), found.bytes)
            .map_err(|error| error.to_string())?;
        let references = outside(read.text());
        self.queue.push_back((number, file.clone(), references));
        self.files.push(read);
        Ok(number)
    }

    /// The file or URL that the reference names, if it may be read.
    fn place(&self, uri: &str, from: &Source) -> Result<Source, String> {
        let any = self.policy == ExternalReferences::Any;
        if let Ok(url) = Url::parse(uri) {
            let is_of_http = matches!(url.scheme(), "http" | "https");
            return match from {
                Source::Url(_) if is_of_http => self.within(url),
                _ if is_of_http && any => Ok(Source::Url(url)),
                _ => Err("it is not a file that lies with the document".into()),
            };
        }
        match from {
            Source::Stdin => Err("it is not a file that lies with the document".into()),
            Source::Url(base) => {
                let url = base.join(uri).map_err(|_| "it is not an address")?;
                self.within(url)
            }
            Source::Path(base) => {
                let path = percent_decode_str(uri)
                    .decode_utf8()
                    .map_err(|_| "it is not a path")?;
                if !any && (path.starts_with(['/', '\\']) || path.contains(['\\', '\0', ':'])) {
                    return Err("it is not a relative path".into());
                }
                let path = base.parent().unwrap_or(Path::new(".")).join(path.as_ref());
                if !is_document(&path) {
                    return Err("its name does not end in .json, .yaml or .yml".into());
                }
                // Resolves symbolic links, so that none leads out of the folder.
                let path = path.canonicalize().map_err(|error| error.to_string())?;
                match &self.root {
                    Source::Path(root) if any || path.starts_with(root) => Ok(Source::Path(path)),
                    _ => Err("it lies outside of the document's folder".into()),
                }
            }
        }
    }

    /// The URL, if it has the origin and the folder of the document's own, or any may be read.
    fn within(&self, url: Url) -> Result<Source, String> {
        let is_below = |root: Url| {
            url.origin() == root.origin()
                && url.path().starts_with(root.path())
                && url.username().is_empty()
                && url.password().is_none()
        };
        if self.policy == ExternalReferences::Any || self.root.url().is_some_and(is_below) {
            return Ok(Source::Url(url));
        }
        Err("it lies outside of the document's own address".into())
    }
}

/// Returns true if the name of a file is that of a document.
fn is_document(path: &Path) -> bool {
    let extension = path.extension();
    extension.is_some_and(|own| {
        EXTENSIONS
            .iter()
            .any(|known| own.eq_ignore_ascii_case(known))
    })
}

/// The path of a file that does not exist yet: it is watched, because its author may create it
/// later.
fn absent(uri: &str, from: &OpenedFile, reader: &SourceReader) -> Option<Revision> {
    let base = from.written.as_ref().or(from.place.path())?;
    let relative = percent_decode_str(uri).decode_utf8().ok()?;
    // Paths outside the folder are not checked at all.
    let is_below = Path::new(relative.as_ref())
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let path = base.parent().filter(|_| is_below)?.join(relative.as_ref());
    (is_document(&path) && !path.exists())
        .then(|| Revision::absent(Source::Path(path), reader.clone()))
}

/// Returns the path that a relative reference spells, if it leads to the file at `place`.
fn written_path(uri: &str, from: &OpenedFile, place: &Source) -> Option<PathBuf> {
    let target = place.path()?;
    let relative = percent_decode_str(uri).decode_utf8().ok()?;
    let path = from.written.as_ref()?.parent()?.join(relative.as_ref());
    (path.canonicalize().ok()? == *target).then_some(path)
}

fn folder(place: &Source) -> Source {
    match place {
        Source::Path(path) => Source::Path(path.parent().unwrap_or(path).to_owned()),
        Source::Url(url) => Source::Url(url.join(".").unwrap_or_else(|_| url.clone())),
        Source::Stdin => Source::Stdin,
    }
}

/// The URIs, without fragments and each once, of all references in the text that leave it. Looks
/// for the word instead of reading the structure: a document without such references, which is
/// nearly every one, pays one fast scan.
fn outside(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for at in memmem::find_iter(text.as_bytes(), b"\"$ref\"") {
        let rest = text.get(at + 6..).unwrap_or_default().trim_start();
        let value = rest.strip_prefix(':').unwrap_or_default().trim_start();
        if value.starts_with("\"#") || !value.starts_with('"') {
            continue;
        }
        let reference = string_end(value.as_bytes(), 0).and_then(|end| unquoted(value.get(..end)?));
        let reference = reference.unwrap_or_default();
        let uri = reference.split('#').next().unwrap_or_default();
        if !uri.is_empty() && !found.iter().any(|known| known == uri) {
            found.push(uri.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;
    use crate::outbound;
    use crate::spec::operations;

    fn reader() -> SourceReader {
        let client = outbound::http_client(&outbound::OutboundOptions {
            tls: false,
            ..Default::default()
        });
        SourceReader::new(client.unwrap(), HeaderMap::new())
    }

    fn load(files: &[(&str, &str)], policy: ExternalReferences) -> (Document, Vec<Diagnostic>) {
        load_with(&reader(), files, policy)
    }

    fn load_with(
        reader: &SourceReader,
        files: &[(&str, &str)],
        policy: ExternalReferences,
    ) -> (Document, Vec<Diagnostic>) {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let source = Source::Path(directory.path().join(files[0].0));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut document =
                Document::parse(reader.read(&source).await.unwrap().bytes, None).unwrap();
            let diagnostics = complete_document(&mut document, &source, policy, reader).await;
            (document, diagnostics)
        })
    }

    const ROOT: &str = "openapi: 3.1.0\npaths:\n  /pets: {get: {$ref: 'paths/pets.yml'}}\n  /x: {$ref: 'paths/x.json#/item'}\n";
    const PETS: &str = "operationId: listed\nparameters: [{$ref: '../shared/p.yaml#/limit'}]\n";

    #[test]
    fn references_are_relative_to_the_file_they_stand_in() {
        let (document, diagnostics) = load(
            &[
                ("api/openapi.yaml", ROOT),
                ("api/paths/pets.yml", PETS),
                (
                    "api/paths/x.json",
                    r#"{"item":{"get":{"operationId":"x"}}}"#,
                ),
                ("api/shared/p.yaml", "limit: {name: limit, in: query}"),
            ],
            ExternalReferences::Local,
        );
        assert_eq!(diagnostics, []);
        let (operations, diagnostics) = operations(&document);
        assert_eq!(diagnostics, []);
        assert_eq!(
            operations
                .iter()
                .map(|operation| operation.id.as_deref().unwrap())
                .collect::<Vec<_>>(),
            ["listed", "x"]
        );
        assert_eq!(operations[0].parameters[0].name, "limit");
    }

    #[test]
    fn files_may_together_take_twice_the_limit_of_one() {
        let within = |max_bytes| {
            let reader = SourceReader {
                max_bytes,
                ..reader()
            };
            let root = r#"{"openapi":"3.1.0","paths":{"/1":{"$ref":"1.json"},"/2":{"$ref":"2.json"},"/3":{"$ref":"3.json"},"/4":{"$ref":"4.json"}}}"#;
            let item = |id: &str, bytes: usize| {
                let text = format!(r#"{{"get":{{"operationId":"{id}"}}}}"#);
                format!("{text:bytes$}")
            };
            let items = [("1", 1001), ("2", 900), ("3", 900), ("4", 201)];
            let [one, two, three, four] = items.map(|(id, bytes)| item(id, bytes));
            let files = [
                ("openapi.json", root),
                ("1.json", &one),
                ("2.json", &two),
                ("3.json", &three),
                ("4.json", &four),
            ];
            let (document, diagnostics) = load_with(&reader, &files, ExternalReferences::Local);
            let read: Vec<String> = operations(&document)
                .0
                .iter()
                .filter_map(|operation| operation.id.as_deref().map(str::to_owned))
                .collect();
            (read, format!("{diagnostics:?}"))
        };
        let (read, said) = within(1000);
        assert_eq!(read, ["2", "3"], "{said}");
        assert!(
            said.contains("`1.json` is not read") && said.contains("is larger than 1000 bytes"),
            "{said}"
        );
        assert!(
            said.contains("`4.json` is not read: the files that the document refers to are larger than 2000 bytes together"),
            "{said}"
        );
        assert_eq!(within(2000).0, ["1", "2", "3", "4"]);
    }

    #[test]
    fn nothing_outside_of_the_documents_folder_is_read() {
        for reference in [
            "../secret.yaml",
            "/etc/passwd",
            "/proc/self/environ",
            "file:///etc/passwd",
            "http://127.0.0.1:1/x.yaml",
            "..\\secret.yaml",
            "%2e%2e/secret.yaml",
            "link.yaml",
            "notes.txt",
            "//host/x.yaml",
            "C:/x.yaml",
        ] {
            let root = format!(
                "openapi: 3.1.0\npaths: {{/a: {{get: {{$ref: '{reference}'}}}}, /b: {{get: {{}}}}}}"
            );
            let (document, diagnostics) = load(
                &[
                    ("api/openapi.yaml", &root),
                    ("secret.yaml", "operationId: stolen"),
                    ("api/notes.txt", "operationId: stolen"),
                ],
                ExternalReferences::Local,
            );
            assert_eq!(
                (document.files.len(), diagnostics.len()),
                (1, 1),
                "{reference}: {diagnostics:?}"
            );
            let (operations, lost) = operations(&document);
            assert_eq!((operations.len(), lost.len()), (1, 1), "{reference}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_symbolic_link_leads_nowhere_outside() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("api")).unwrap();
        std::fs::write(directory.path().join("secret.yaml"), "operationId: stolen").unwrap();
        std::os::unix::fs::symlink("../secret.yaml", directory.path().join("api/link.yaml"))
            .unwrap();
        let place = Loader {
            reader: &reader(),
            policy: ExternalReferences::Local,
            root: Source::Path(directory.path().join("api").canonicalize().unwrap()),
            numbers: HashMap::default(),
            files: Vec::new(),
            seen: Vec::new(),
            room: 2 << 20,
            queue: VecDeque::new(),
        }
        .place(
            "link.yaml",
            &Source::Path(directory.path().join("api/openapi.yaml")),
        );
        assert!(place.unwrap_err().contains("outside"));
    }

    #[test]
    fn the_policy_none_reads_nothing() {
        assert_eq!(
            load(
                &[("a.yaml", ROOT), ("paths/pets.yml", PETS)],
                ExternalReferences::None
            )
            .0
            .files
            .len(),
            1
        );
    }

    #[test]
    fn only_references_that_leave_are_found() {
        assert_eq!(
            outside(
                r##"{"$ref":"#/a","x":{"$ref" : "b.yaml#/c"},"y":[{"$ref":"b.yaml"},{"$ref":5},{"$ref":"d\u002ejson"}]}"##
            ),
            ["b.yaml", "d.json"]
        );
    }
}
