//! Schemas named by `$id`, `$anchor` or `$dynamicAnchor` (JSON Schema 2020-12 core section 8.2).

use url::Url;

use super::file::DocumentFile;
use crate::spec::node::Node;
use crate::spec::span::Span;

/// All named schemas of all files, in the order of the text.
#[derive(Debug, Default)]
pub(crate) struct NamedSchemas {
    resources: Vec<Resource>,
    anchors: Vec<Anchor>,
}

/// A schema with an `$id`.
#[derive(Debug)]
struct Resource {
    url: Url,
    span: Span,
}

#[derive(Debug)]
struct Anchor {
    name: String,
    is_dynamic: bool,
    span: Span,
    /// The schema with an `$id` that it belongs to: the nearest one around it, if there is any.
    home: Option<Span>,
}

impl NamedSchemas {
    /// Reads the names; nearly all documents have none, which one scan of the text shows.
    pub(crate) fn of(files: &[DocumentFile], url: Option<&Url>) -> Self {
        let mut named = Self::default();
        for (number, file) in files.iter().enumerate() {
            if let Some(base) = base_url(url, number) {
                named.collect(file.root(), &base, None, 0);
            }
        }
        named
    }

    fn collect(&mut self, node: Node<'_>, base: &Url, home: Option<Span>, depth: usize) {
        const MAX_DEPTH: usize = 128;
        let text = node.text();
        if depth > MAX_DEPTH || !(text.contains("nchor\"") || text.contains("\"$id\"")) {
            return;
        }
        for item in node.array().unwrap_or_default() {
            self.collect(item, base, home, depth + 1);
        }
        let Some(object) = node.object() else { return };
        let span = node.span();
        let mut own = None;
        if let Some(id) = object.text("$id") {
            match id.strip_prefix('#') {
                // The form of anchors before draft 2019-09.
                Some(name) => self.anchor(name, false, span, home),
                None => own = base.join(&id).ok(),
            }
        }
        let home = if own.is_some() { Some(span) } else { home };
        if let Some(url) = &own {
            self.resources.push(Resource { url: url.clone(), span });
        }
        for (key, is_dynamic) in [("$anchor", false), ("$dynamicAnchor", true)] {
            if let Some(name) = object.text(key) {
                self.anchor(&name, is_dynamic, span, home);
            }
        }
        for (key, inner) in object.iter() {
            // There, an object with these keys is a value, not a schema.
            if !matches!(key, "example" | "examples" | "default" | "const" | "enum") {
                self.collect(inner, own.as_ref().unwrap_or(base), home, depth + 1);
            }
        }
    }

    fn anchor(&mut self, name: &str, is_dynamic: bool, span: Span, home: Option<Span>) {
        self.anchors.push(Anchor {
            name: name.to_owned(),
            is_dynamic,
            span,
            home,
        });
    }

    /// The resources that references in `from` may be relative to: the enclosing ones, innermost first, then those inside `from`.
    fn around(&self, from: Span) -> impl Iterator<Item = &Resource> {
        let outer = self.resources.iter().rev().filter(move |resource| resource.span.holds(from));
        let inner = self
            .resources
            .iter()
            .filter(move |resource| from.holds(resource.span) && resource.span != from);
        outer.chain(inner)
    }

    /// The schemas that a fragment without a file may be relative to: the enclosing schemas with an `$id`, innermost first, and the
    /// component that contains the reference.
    pub(crate) fn scopes(&self, from: Span) -> impl Iterator<Item = Span> {
        self.around(from).map(|resource| resource.span).chain([from])
    }

    /// The schema with that anchor: that of the schema with an `$id` around the reference (2020-12 core section 8.2.2), else the one
    /// nearest to the reference, else the first of all.
    pub(crate) fn anchored(&self, name: &str, from: Span) -> Option<Span> {
        let anchors = || self.anchors.iter().filter(|anchor| anchor.name == name);
        let mut around = self.resources.iter().rev().map(|resource| resource.span);
        let home = around.find(|span| span.holds(from));
        if let Some(own) = anchors().find(|anchor| anchor.home == home && anchor.span.file == from.file) {
            return Some(own.span);
        }
        let near = self
            .scopes(from)
            .find_map(|scope| anchors().find(|anchor| scope.holds(anchor.span)));
        near.or_else(|| anchors().next()).map(|anchor| anchor.span)
    }

    /// The schema with that anchor inside of `resource`.
    pub(crate) fn anchored_in(&self, name: &str, resource: Span) -> Option<Span> {
        let anchors = || self.anchors.iter().filter(|anchor| anchor.name == name);
        let own = anchors().find(|anchor| anchor.home == Some(resource));
        let found = own.or_else(|| anchors().find(|anchor| resource.holds(anchor.span)));
        found.map(|anchor| anchor.span)
    }

    /// The schema whose `$id` a reference in `from` means, in a document with that URL.
    pub(crate) fn identified(&self, uri: &str, from: Span, document: Option<&Url>) -> Option<Span> {
        let own = base_url(document, from.file as usize);
        let mut bases = self.around(from).map(|resource| &resource.url).chain(own.as_ref());
        bases.find_map(|base| {
            let url = base.join(uri).ok()?;
            self.resources
                .iter()
                .find(|resource| resource.url == url)
                .map(|resource| resource.span)
        })
    }

    /// Returns true if more than one schema has that `$dynamicAnchor`.
    pub(crate) fn is_ambiguous(&self, dynamic_anchor: &str) -> bool {
        let named = |anchor: &&Anchor| anchor.is_dynamic && anchor.name == dynamic_anchor;
        self.anchors.iter().filter(named).count() > 1
    }
}

/// Returns the URL that `$id`s of a file are relative to; a reserved one if the URL of the file is not known.
fn base_url(document: Option<&Url>, file: usize) -> Option<Url> {
    let known = document.cloned().filter(|_| file == 0);
    known.or_else(|| Url::parse(&format!("https://file-{file}.invalid/")).ok())
}
