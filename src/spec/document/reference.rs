//! Resolves the `$ref`s of a document (RFC 6901 pointers, `$anchor`, `$id`, other files).

use std::collections::hash_map::Entry;

use super::file::DocumentFile;
use super::{Document, Version};
use crate::spec::node::{Node, Object, Span};
use crate::spec::pointer;

/// The maximum length of a chain of references.
const MAX_CHAIN: usize = 32;
const ENDLESS: &str = "a chain of references that never ends";

impl Document {
    /// Returns the value that a `$ref` names. `from` is a value of the file that contains the
    /// reference.
    ///
    /// # Errors
    /// A sentence with the reason: the reference is dangling, or names a file that is not read.
    pub fn target(&self, reference: &str, from: Span) -> Result<Node<'_>, String> {
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let file = if uri.is_empty() {
            from.file
        } else if self.own_name.as_deref() == Some(uri) {
            0
        } else {
            match self.links.get(&(from.file, uri.to_owned())) {
                Some(Ok(file)) => *file,
                link => {
                    let why = || match link {
                        Some(Err(why)) => why.clone(),
                        _ => format!("`{reference}` lies outside this document, and is not read"),
                    };
                    return self.by_id(uri, fragment, from).ok_or_else(why);
                }
            }
        };
        let root = self.files.get(file as usize).map(DocumentFile::root);
        // In another file, the schemas around the reference have no meaning.
        let place = if file == from.file {
            Some(from)
        } else {
            root.map(Node::span)
        };
        pointer::tokens(fragment)
            .and_then(|tokens| self.walk(root?, &tokens))
            .or_else(|| self.by_fragment(fragment, place?))
            .ok_or_else(|| format!("`{reference}` points to nothing"))
    }

    /// Follows the tokens of a pointer like [`pointer::target`], but opens long objects once and
    /// keeps them.
    fn walk<'a>(&'a self, node: Node<'a>, tokens: &[String]) -> Option<Node<'a>> {
        const MIN_REMEMBERED_BYTES: usize = 2 << 10;
        let mut opened = self.opened.lock();
        let mut span = node.span();
        for (index, token) in tokens.iter().enumerate() {
            let members = match opened.entry(span) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    let node = self.node(span);
                    let long = Some(node).filter(|node| node.text().len() >= MIN_REMEMBERED_BYTES);
                    let Some(members) = long.and_then(Node::members) else {
                        return pointer::target(node, tokens.get(index..)?);
                    };
                    let spans = members.map(|(key, inner)| (key.into_owned(), inner.span()));
                    new.insert(spans.collect())
                }
            };
            span = *members.get(token)?;
        }
        Some(self.node(span))
    }

    /// Follows `$ref`s until there is none (of path items, parameters, bodies, responses, headers
    /// and examples; schemas are resolved during translation, because they may recurse).
    ///
    /// # Errors
    /// As for [`Document::target`]; or a sentence that the chain of references is circular or too
    /// long.
    pub fn resolve<'a>(&'a self, mut node: Node<'a>) -> Result<Node<'a>, String> {
        for _ in 0..MAX_CHAIN {
            match node.member("$ref").and_then(Node::string) {
                None => return Ok(node),
                Some(reference) => node = self.target(&reference, node.span())?,
            }
        }
        Err(ENDLESS.into())
    }

    /// Resolves a node like [`Document::resolve`] and opens its target; `None` if that fails, or if
    /// the target is not an object.
    pub(crate) fn object<'a>(&'a self, mut node: Node<'a>) -> Option<Object<'a>> {
        for _ in 0..MAX_CHAIN {
            let object = node.object()?;
            match object.get("$ref").and_then(Node::string) {
                None => return Some(object),
                Some(reference) => node = self.target(&reference, node.span()).ok()?,
            }
        }
        None
    }

    /// Resolves a node and opens its target; itself if that cannot be resolved, and an empty object
    /// if it is none.
    pub(crate) fn open<'a>(&'a self, node: Node<'a>) -> Object<'a> {
        let target = self.resolve(node).unwrap_or(node);
        target.object().unwrap_or_default()
    }

    /// The object at a place that may be missing; an empty one if there is none.
    pub(crate) fn object_at(&self, span: Option<Span>) -> Object<'_> {
        let node = span.map(|span| self.node(span));
        node.and_then(Node::object).unwrap_or_default()
    }

    /// The `description` beside a `$ref`, which overrides the referenced one (OAS 3.1 and later,
    /// "Reference Object").
    pub(crate) fn said_beside(&self, node: Node<'_>) -> Option<String> {
        if self.version < Version::V3_1 {
            return None;
        }
        node.member("$ref")?;
        node.object()?.text("description")
    }

    /// Resolves a fragment that is not a pointer from the root: an anchor, or, as some documents
    /// write it, a pointer from the component around the reference.
    fn by_fragment(&self, fragment: &str, from: Span) -> Option<Node<'_>> {
        match pointer::tokens(fragment) {
            Some(_) if self.named().is_divided(from) => None,
            Some(tokens) => self.walk(self.node(from), &tokens),
            None => self.by_name(&format!("#{fragment}"), from),
        }
    }

    /// A schema with that `$id`, or what the fragment names inside of it.
    fn by_id(&self, uri: &str, fragment: &str, from: Span) -> Option<Node<'_>> {
        let resource = self.by_name(uri, from)?;
        match pointer::tokens(fragment) {
            Some(tokens) => pointer::target(resource, &tokens),
            None => self.by_name(&format!("#{fragment}"), resource.span()),
        }
    }

    fn by_name(&self, name: &str, place: Span) -> Option<Node<'_>> {
        Some(self.node(self.named().get(name, place)?))
    }

    /// Returns the target of a `$dynamicRef`, like [`Document::target`]. The target may depend
    /// on the references that led there.
    ///
    /// # Errors
    /// As for [`Document::target`]; or a sentence that several schemas have that anchor,
    /// because any of them may be meant.
    pub fn dynamic_target(&self, reference: &str, from: Span) -> Result<Node<'_>, String> {
        let anchor = reference.find('#').and_then(|start| reference.get(start..));
        if anchor.is_some_and(|anchor| self.named().count(anchor) > 1) {
            return Err(format!(
                "`{reference}` means different schemas in different places"
            ));
        }
        self.target(reference, from)
    }
}
