//! Schemas named by `$id`, `$anchor` or `$dynamicAnchor` (JSON Schema 2020-12 core section 8.2).

use std::iter::successors;

use foldhash::HashMap;
use url::Url;

use super::file::DocumentFile;
use crate::spec::node::Node;
use crate::spec::span::Span;

/// All named schemas of all files.
#[derive(Debug, Default)]
pub(crate) struct NamedSchemas {
    /// In the order of the text.
    resources: Vec<Resource>,
    /// The first resource with each URL.
    urls: HashMap<Url, Span>,
    /// By name, in the order of the text.
    anchors: HashMap<String, Vec<Anchor>>,
}

/// A schema with an `$id`.
#[derive(Debug)]
struct Resource {
    url: Url,
    span: Span,
    /// The index of the nearest one around it.
    outer: Option<usize>,
}

#[derive(Debug)]
struct Anchor {
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

    /// Adds the names in a value. `home` is the index of the nearest resource around it.
    fn collect(&mut self, node: Node<'_>, base: &Url, mut home: Option<usize>, depth: usize) {
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
        if let Some(url) = own.clone() {
            self.urls.entry(url.clone()).or_insert(span);
            self.resources.push(Resource {
                url,
                span,
                outer: home,
            });
            home = Some(self.resources.len() - 1);
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

    fn anchor(&mut self, name: &str, is_dynamic: bool, span: Span, home: Option<usize>) {
        let home = home
            .and_then(|index| self.resources.get(index))
            .map(|resource| resource.span);
        let anchors = self.anchors.entry(name.to_owned()).or_default();
        anchors.push(Anchor {
            is_dynamic,
            span,
            home,
        });
    }

    /// The anchors of that name.
    fn anchors(&self, name: &str) -> impl Iterator<Item = &Anchor> {
        self.anchors.get(name).into_iter().flatten()
    }

    /// Returns the number of resources that begin before `from` or with it.
    fn count_until(&self, from: Span) -> usize {
        let begins = |span: Span| (span.file, span.start);
        self.resources
            .partition_point(|resource| begins(resource.span) <= begins(from))
    }

    /// The resources that `from` is in, innermost first.
    fn enclosing(&self, from: Span) -> impl Iterator<Item = &Resource> {
        let nearest = self
            .count_until(from)
            .checked_sub(1)
            .and_then(|index| self.resources.get(index));
        successors(nearest, |resource| self.resources.get(resource.outer?))
            .filter(move |resource| resource.span.holds(from))
    }

    /// The resources that references in `from` may be relative to: the enclosing ones, innermost
    /// first, then those inside `from`.
    fn around(&self, from: Span) -> impl Iterator<Item = &Resource> {
        let later = self.resources.iter().skip(self.count_until(from));
        let inner = later.take_while(move |resource| from.holds(resource.span));
        self.enclosing(from).chain(inner)
    }

    /// The schemas that a fragment without a file may be relative to: the enclosing schemas with an
    /// `$id`, innermost first, and the component that contains the reference.
    pub(crate) fn scopes(&self, from: Span) -> impl Iterator<Item = Span> {
        self.around(from)
            .map(|resource| resource.span)
            .chain([from])
    }

    /// The schema with that anchor: that of the schema with an `$id` around the reference (2020-12
    /// core section 8.2.2), else the one nearest to the reference, else the first of all.
    pub(crate) fn anchored(&self, name: &str, from: Span) -> Option<Span> {
        let home = self.enclosing(from).next().map(|resource| resource.span);
        if let Some(own) = self
            .anchors(name)
            .find(|anchor| anchor.home == home && anchor.span.file == from.file)
        {
            return Some(own.span);
        }
        let near = self
            .scopes(from)
            .find_map(|scope| self.anchors(name).find(|anchor| scope.holds(anchor.span)));
        near.or_else(|| self.anchors(name).next())
            .map(|anchor| anchor.span)
    }

    /// The schema with that anchor inside of `resource`.
    pub(crate) fn anchored_in(&self, name: &str, resource: Span) -> Option<Span> {
        let own = self
            .anchors(name)
            .find(|anchor| anchor.home == Some(resource));
        let found = own.or_else(|| {
            self.anchors(name)
                .find(|anchor| resource.holds(anchor.span))
        });
        found.map(|anchor| anchor.span)
    }

    /// The schema whose `$id` a reference in `from` means, in a document with that URL.
    pub(crate) fn identified(&self, uri: &str, from: Span, document: Option<&Url>) -> Option<Span> {
        let own = base_url(document, from.file as usize);
        let mut bases = self
            .around(from)
            .map(|resource| &resource.url)
            .chain(own.as_ref());
        bases.find_map(|base| self.urls.get(&base.join(uri).ok()?).copied())
    }

    /// Returns true if more than one schema has that `$dynamicAnchor`.
    pub(crate) fn is_ambiguous(&self, dynamic_anchor: &str) -> bool {
        self.anchors(dynamic_anchor)
            .filter(|anchor| anchor.is_dynamic)
            .count()
            > 1
    }
}

/// Returns the URL that `$id`s of a file are relative to; a reserved one if the URL of the file is
/// not known.
fn base_url(document: Option<&Url>, file: usize) -> Option<Url> {
    let known = document.cloned().filter(|_| file == 0);
    known.or_else(|| Url::parse(&format!("https://file-{file}.invalid/")).ok())
}
