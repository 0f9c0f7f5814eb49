//! Schemas that have names of their own: `$id`, `$anchor`, `$dynamicAnchor` (JSON Schema 2020-12 core section 8.2).

use url::Url;

use super::reference::walk;
use super::{Document, Span};
use crate::spec::node::Node;
use crate::spec::pointer;

/// All named schemas of all files, in the order of the text.
#[derive(Debug, Default)]
pub(crate) struct Named {
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
}

impl Named {
    /// Nearly every document has none, which one scan tells.
    pub(crate) fn of(document: &Document) -> Self {
        let mut named = Self::default();
        for (number, file) in document.files().iter().enumerate() {
            if let Some(base) = base(document, number) {
                named.collect(document, file.root(), &base, 0);
            }
        }
        named
    }

    fn collect(&mut self, document: &Document, node: Node<'_>, base: &Url, depth: usize) {
        const MAX_DEPTH: usize = 128;
        let text = node.text();
        if depth > MAX_DEPTH || !(text.contains("nchor\"") || text.contains("\"$id\"")) {
            return;
        }
        for item in node.array().unwrap_or_default() {
            self.collect(document, item, base, depth + 1);
        }
        let Some(object) = node.object() else { return };
        let span = document.span(node);
        let mut own = None;
        if let Some(id) = object.text("$id") {
            match id.strip_prefix('#') {
                // Before 2019-09 an anchor was written so.
                Some(name) => self.anchor(name, false, span),
                None => own = base.join(&id).ok(),
            }
        }
        if let Some(url) = &own {
            self.resources.push(Resource { url: url.clone(), span });
        }
        for (key, is_dynamic) in [("$anchor", false), ("$dynamicAnchor", true)] {
            if let Some(name) = object.text(key) {
                self.anchor(&name, is_dynamic, span);
            }
        }
        for (key, inner) in object.iter() {
            // What looks like a schema there is a value.
            if !matches!(key, "example" | "examples" | "default" | "const" | "enum") {
                self.collect(document, inner, own.as_ref().unwrap_or(base), depth + 1);
            }
        }
    }

    fn anchor(&mut self, name: &str, is_dynamic: bool, span: Span) {
        self.anchors.push(Anchor {
            name: name.to_owned(),
            is_dynamic,
            span,
        });
    }

    /// The resources that references in `from` may be relative to: those around it, the nearest first, then those in it.
    fn around(&self, from: Span) -> impl Iterator<Item = &Resource> {
        let outer = self.resources.iter().rev().filter(move |resource| resource.span.holds(from));
        let inner = self
            .resources
            .iter()
            .filter(move |resource| from.holds(resource.span) && resource.span != from);
        outer.chain(inner)
    }
}

/// What `$id`s of a file are relative to; where nobody knows, something that no document means.
fn base(document: &Document, file: usize) -> Option<Url> {
    let known = document.url.clone().filter(|_| file == 0);
    known.or_else(|| Url::parse(&format!("https://file-{file}.invalid/")).ok())
}

impl Document {
    /// What a fragment without a place means beyond pointers from the root: an anchor, or a pointer from the schema with an
    /// `$id` around the reference, or, as people write it, from the component that the reference is in.
    pub(crate) fn by_fragment(&self, fragment: &str, from: Span) -> Option<Node<'_>> {
        let named = self.named();
        let scopes = named.around(from).map(|resource| resource.span).chain([from]);
        if let Some(tokens) = pointer::tokens(fragment) {
            return scopes.into_iter().find_map(|root| walk(self.node(root), &tokens));
        }
        let anchors = || named.anchors.iter().filter(|anchor| anchor.name == fragment);
        let near = scopes
            .into_iter()
            .find_map(|scope| anchors().find(|anchor| scope.holds(anchor.span)));
        near.or_else(|| anchors().next()).map(|anchor| self.node(anchor.span))
    }

    /// A schema with that `$id`, or what the fragment names inside of it.
    pub(crate) fn by_id(&self, uri: &str, fragment: &str, from: Span) -> Option<Node<'_>> {
        let named = self.named();
        let own = base(self, from.file as usize);
        let bases = named.around(from).map(|resource| &resource.url).chain(own.as_ref());
        let resource = bases.into_iter().find_map(|base| {
            let url = base.join(uri).ok()?;
            named.resources.iter().find(|resource| resource.url == url)
        })?;
        if let Some(tokens) = pointer::tokens(fragment) {
            return walk(self.node(resource.span), &tokens);
        }
        let mut anchors = named.anchors.iter().filter(|anchor| anchor.name == fragment);
        anchors
            .find(|anchor| resource.span.holds(anchor.span))
            .map(|anchor| self.node(anchor.span))
    }

    /// Whether a schema of the document itself is called so, so that no file is meant.
    pub(crate) fn has_id(&self, uri: &str) -> bool {
        let root = self.files().first().map(|file| self.span(file.root()));
        root.is_some_and(|root| self.by_id(uri, "", root).is_some())
    }

    /// As [`Document::target_from`], of a `$dynamicRef`: which schema that means may depend on how one came there.
    ///
    /// # Errors
    /// As there; or where several schemas have that dynamic name, because none of them is meant for sure.
    pub fn dynamic_target_from(&self, reference: &str, from: Span) -> Result<Node<'_>, String> {
        let name = reference.split_once('#').map_or("", |(_, fragment)| fragment);
        let anchors = self.named().anchors.iter();
        if anchors.filter(|anchor| anchor.is_dynamic && anchor.name == name).count() > 1 {
            return Err(format!("`{reference}` means different schemas in different places"));
        }
        self.target_from(reference, from)
    }
}
