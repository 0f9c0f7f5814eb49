//! The files of a document in a bundle: at their paths in the document's own folder, so that
//! references still resolve.

use std::path::{Component, Path, PathBuf};

use percent_encoding::percent_decode_str;
use url::Url;

use crate::spec::{Document, Source};
use crate::text::one_line;

/// The path of each file of the document in the folder of the documents, with `/` between its
/// parts; the document itself is the first.
///
/// # Errors
/// A sentence about a file outside the document's folder, and about a reference that would lead
/// elsewhere in a bundle.
pub(super) fn file_names(document: &Document, source: &Source) -> Result<Vec<String>, String> {
    let mut names = vec![String::new()];
    for file in document.files.iter().skip(1) {
        let name = match (&document.url, source) {
            (Some(url), _) => below_url(url, &file.name),
            (None, Source::Path(path)) => below_folder(path, &file.name),
            (None, _) => None,
        };
        names.push(name.ok_or_else(|| {
            format!(
                "the document refers to `{}`, which is outside its own folder; a bundle holds files of that folder only",
                one_line(&file.name)
            )
        })?);
    }
    let root = free_name(&names);
    if let Some(first) = names.first_mut() {
        *first = root;
    }
    for ((from, uri), target) in &document.links {
        let name = |number: u32| {
            usize::try_from(number)
                .ok()
                .and_then(|index| names.get(index))
        };
        let (Some(from), Ok(target)) = (name(*from), target) else {
            continue;
        };
        if name(*target) != resolved(from, uri).as_ref() {
            return Err(format!(
                "the document refers to `{}`, which would lead elsewhere in a bundle; refer to it by the path from the file that names it",
                one_line(uri)
            ));
        }
    }
    Ok(names)
}

/// Returns a name for the document itself that no other file has, compared without case.
fn free_name(names: &[String]) -> String {
    let is_taken = |name: &str| names.iter().any(|taken| taken.eq_ignore_ascii_case(name));
    let mut name = "api.json".to_owned();
    let mut number = 1;
    while is_taken(&name) {
        number += 1;
        name = format!("api-{number}.json");
    }
    name
}

/// The names of files have their symbolic links resolved, and so must the document's own folder.
fn below_folder(document: &Path, file: &str) -> Option<String> {
    let document = document.canonicalize().ok()?;
    let inside = Path::new(file).strip_prefix(document.parent()?).ok()?;
    joined(inside)
}

fn below_url(document: &Url, file: &str) -> Option<String> {
    let folder = document.join(".").ok()?;
    let file = Url::parse(file).ok()?;
    if folder.origin() != file.origin() || file.query().is_some() {
        return None;
    }
    let inside = file.path().strip_prefix(folder.path())?;
    let inside = percent_decode_str(inside).decode_utf8().ok()?;
    joined(Path::new(inside.as_ref()))
}

/// The parts of a path that leads nowhere but down.
fn joined(path: &Path) -> Option<String> {
    let part = |component: Component<'_>| match component {
        Component::Normal(part) => part
            .to_str()
            .filter(|part| !part.contains(['\\', ':']))
            .map(str::to_owned),
        _ => None,
    };
    let parts: Option<Vec<String>> = path.components().map(part).collect();
    parts
        .filter(|parts| !parts.is_empty())
        .map(|parts| parts.join("/"))
}

/// The file that a reference in the file `from` names.
fn resolved(from: &str, uri: &str) -> Option<String> {
    let relative = percent_decode_str(uri).decode_utf8().ok()?;
    let mut path = PathBuf::new();
    for component in Path::new(from)
        .parent()?
        .join(relative.as_ref())
        .components()
    {
        match component {
            Component::Normal(part) => path.push(part),
            Component::CurDir => {}
            Component::ParentDir if path.pop() => {}
            _ => return None,
        }
    }
    joined(&path)
}
