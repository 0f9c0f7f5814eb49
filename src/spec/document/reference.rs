//! Resolves the `$ref`s of a document (RFC 6901 pointers, `$anchor`, `$id`, other files).

use super::{Document, Version};
use crate::spec::node::{Node, Object};
use crate::spec::pointer;
use crate::spec::span::Span;

/// The maximum length of a chain of references.
const MAX_CHAIN: usize = 32;
const ENDLESS: &str = "a chain of references that never ends";

impl Document {
    /// Returns the value that a `$ref` names. `from` is a value of the file that contains the
    /// reference.
    ///
    /// # Errors
    /// A sentence with the reason: the reference is dangling, or names a file that is not read.
    pub fn target<'a>(&'a self, reference: &str, from: Node<'_>) -> Result<Node<'a>, String> {
        self.target_from(reference, from.span())
    }

    /// Returns the value that a `$ref` in the file of `from` names, like [`Document::target`].
    ///
    /// # Errors
    /// As [`Document::target`].
    pub fn target_from(&self, reference: &str, from: Span) -> Result<Node<'_>, String> {
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let file = if uri.is_empty() {
            from.file
        } else if self.index.own_name.as_deref() == Some(uri) {
            0
        } else {
            match self.links.get(&(from.file, uri.to_owned())) {
                Some(Ok(file)) => *file,
                link => {
                    let outside =
                        || format!("`{reference}` lies outside this document, and is not read");
                    let why = || {
                        link.and_then(|link| link.as_ref().err().cloned())
                            .unwrap_or_else(outside)
                    };
                    return self.by_id(uri, fragment, from).ok_or_else(why);
                }
            }
        };
        let dangling = || format!("`{reference}` points to nothing");
        // In another file, the schemas around the reference have no meaning.
        let place = if file == from.file {
            Some(from)
        } else {
            self.files.get(file as usize).map(|file| file.root().span())
        };
        let otherwise = || {
            place
                .and_then(|place| self.by_fragment(fragment, place))
                .ok_or_else(dangling)
        };
        let Some(tokens) = pointer::tokens(fragment) else {
            return otherwise();
        };
        if file == 0
            && let Some((kind, name)) = self.component_tokens(&tokens)
        {
            let found = self
                .index
                .components
                .get(kind)
                .and_then(|entries| entries.get(name));
            return found.map_or_else(otherwise, |place| Ok(self.node(*place)));
        }
        let root = self.files.get(file as usize).ok_or_else(dangling)?.root();
        // A pointer into a component is followed from the component, not from the root.
        let start = tokens
            .get(..3)
            .filter(|_| file == 0)
            .and_then(|head| self.component_tokens(head))
            .and_then(|(kind, name)| self.index.components.get(kind)?.get(name));
        let found = match start {
            Some(place) => self.walk(self.node(*place), tokens.get(3..).unwrap_or_default()),
            None => self.walk(root, &tokens),
        };
        found.map_or_else(otherwise, Ok)
    }

    /// Follows the tokens of a pointer like [`pointer::target`], but opens large objects once and
    /// keeps them.
    pub(crate) fn walk<'a>(&'a self, mut node: Node<'a>, tokens: &[String]) -> Option<Node<'a>> {
        const MIN_REMEMBERED_BYTES: usize = 16 << 10;
        for (index, token) in tokens.iter().enumerate() {
            if node.text().len() < MIN_REMEMBERED_BYTES || !node.text().starts_with('{') {
                return pointer::target(node, tokens.get(index..)?);
            }
            let mut opened = self
                .opened
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            let members = opened.entry(node.span()).or_insert_with(|| {
                node.object()
                    .unwrap_or_default()
                    .iter()
                    .map(|(key, inner)| (key.to_owned(), inner.span()))
                    .collect()
            });
            node = self.node(*members.get(token)?);
        }
        Some(node)
    }

    /// Returns kind and name if the tokens name a component as a whole.
    fn component_tokens<'t>(&self, tokens: &'t [String]) -> Option<(&'t str, &'t str)> {
        match tokens {
            [components, kind, name] if components == "components" => Some((kind, name)),
            [kind, name]
                if self.index.version == Version::V2_0
                    && self.index.components.contains_key(kind) =>
            {
                Some((kind, name))
            }
            _ => None,
        }
    }

    /// Follows `$ref`s until there is none (of path items, parameters, bodies, responses, headers
    /// and examples; schemas are resolved during translation, because they may recurse).
    ///
    /// # Errors
    /// As for [`Document::target`]; or a sentence that the chain of references is circular or too
    /// long.
    pub fn resolve<'a>(&'a self, mut node: Node<'a>) -> Result<Node<'a>, String> {
        for _ in 0..MAX_CHAIN {
            // Most objects are not references; searching for the key is cheaper than opening them.
            if !node.text().contains("\"$ref\"") {
                return Ok(node);
            }
            match node
                .object()
                .as_ref()
                .and_then(|object| object.get("$ref"))
                .and_then(Node::string)
            {
                None => return Ok(node),
                Some(reference) => node = self.target(&reference, node)?,
            }
        }
        Err(ENDLESS.into())
    }

    /// Resolves a node like [`Document::resolve`] and opens its target; `None` if the target is not
    /// an object.
    ///
    /// # Errors
    /// As [`Document::resolve`].
    pub fn resolve_object<'a>(&'a self, mut node: Node<'a>) -> Result<Option<Object<'a>>, String> {
        for _ in 0..MAX_CHAIN {
            let Some(object) = node.object() else {
                return Ok(None);
            };
            match object.get("$ref").and_then(Node::string) {
                None => return Ok(Some(object)),
                Some(reference) => node = self.target(&reference, node)?,
            }
        }
        Err(ENDLESS.into())
    }

    /// The `description` beside a `$ref`, which overrides the referenced one (OAS 3.1 and later,
    /// "Reference Object").
    pub(crate) fn said_beside(&self, node: Node<'_>) -> Option<String> {
        if self.index.version < Version::V3_1 || !node.text().contains("\"$ref\"") {
            return None;
        }
        let object = node.object()?;
        object.get("$ref")?;
        object.text("description")
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

    /// Returns the target of a `$dynamicRef`, like [`Document::target_from`]. The target may depend
    /// on the references that led there.
    ///
    /// # Errors
    /// As for [`Document::target_from`]; or a sentence that several schemas have that anchor,
    /// because any of them may be meant.
    pub fn dynamic_target_from(&self, reference: &str, from: Span) -> Result<Node<'_>, String> {
        let anchor = reference.find('#').and_then(|start| reference.get(start..));
        if anchor.is_some_and(|anchor| self.named().count(anchor) > 1) {
            return Err(format!(
                "`{reference}` means different schemas in different places"
            ));
        }
        self.target_from(reference, from)
    }
}
