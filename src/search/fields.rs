//! What of an operation is searched, and how much a word counts in each place.

use std::borrow::Cow;

use foldhash::{HashMap, HashSet};

use super::words::Writing;
use crate::annotate::Effect;
use crate::spec::node::Node;
use crate::spec::operation::body_properties::properties;
use crate::spec::operation::request_body::BodySchema;
use crate::spec::operation::response::successes;
use crate::spec::{Document, Operation, Span};

/// An operation as it is put into the index.
#[derive(Clone, Copy)]
pub(crate) struct SearchedOperation<'a> {
    /// The name under which it is served.
    pub(crate) name: &'a str,
    /// The title of its tool.
    pub(crate) title: &'a str,
    /// The operation.
    pub(crate) operation: &'a Operation,
    /// What a call of it does.
    pub(crate) effect: Effect,
    /// Its category.
    pub(crate) category: Option<&'a str>,
    /// Words by which it should be found as well.
    pub(crate) keywords: &'a [String],
}

/// A place in which words stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Field {
    Summary,
    Keywords,
    Name,
    Path,
    Opening,
    Tags,
    Description,
    Parameters,
    BodyProperties,
    Details,
    ResponseProperties,
}

/// How many fields there are.
pub(crate) const FIELDS: usize = 11;

impl Field {
    /// How much a word counts in each field, by its number.
    pub(crate) const WEIGHTS: [f32; FIELDS] = [4.0, 4.0, 2.0, 2.0, 2.0, 1.0, 0.5, 0.5, 0.3, 0.2, 0.2];
}

/// Reads the texts of operations; what many of them share is read once.
pub(crate) struct FieldReader<'d> {
    document: &'d Document,
    /// The names of the properties of each schema that was opened.
    property_names: HashMap<Span, Vec<String>>,
}

impl<'d> FieldReader<'d> {
    pub(crate) fn new(document: &'d Document) -> Self {
        Self {
            document,
            property_names: HashMap::default(),
        }
    }

    /// Shows each text of an operation with its field.
    pub(crate) fn each_text(&mut self, searched: &SearchedOperation<'_>, mut visit: impl FnMut(Field, &str, Writing)) {
        let operation = searched.operation;
        visit(Field::Summary, searched.title, Writing::Prose);
        for keyword in searched.keywords {
            visit(Field::Keywords, keyword, Writing::Prose);
        }
        visit(Field::Name, searched.name, Writing::Identifier);
        if let Some(id) = operation.id.as_deref().filter(|id| *id != searched.name) {
            // The name was made of it, as a rule; then it says nothing new.
            if !searched.name.ends_with(id) {
                visit(Field::Name, id, Writing::Identifier);
            }
        }
        for text in literal_parts(&operation.path) {
            visit(Field::Path, text, Writing::Identifier);
        }
        for tag in operation.tags.iter().map(String::as_str).chain(searched.category) {
            visit(Field::Tags, tag, Writing::Prose);
        }
        let object = operation
            .span
            .and_then(|span| self.document.node(span).object())
            .unwrap_or_default();
        if let Some(description) = object.get("description").and_then(Node::string) {
            let description = without_markup(&description);
            let (opening, rest) = split_opening(&description);
            visit(Field::Opening, opening, Writing::Prose);
            visit(Field::Description, rest, Writing::Prose);
        }
        for parameter in &operation.parameters {
            visit(Field::Parameters, &parameter.name, Writing::Identifier);
            if let Some(description) = &parameter.description {
                visit(Field::Details, &without_markup(description), Writing::Prose);
            }
        }
        match operation.body.as_ref().map(|body| &body.media_type.schema) {
            Some(BodySchema::At(span) | BodySchema::Items(span, _)) => {
                for name in self.names_at(self.document.node(*span)) {
                    visit(Field::BodyProperties, name, Writing::Identifier);
                }
            }
            Some(BodySchema::Fields(fields)) => {
                for field in fields {
                    visit(Field::BodyProperties, &field.name, Writing::Identifier);
                }
            }
            _ => {}
        }
        let document = self.document;
        let first = successes(document, operation).into_iter().next();
        if let Some(schema) = first.and_then(|response| response.media.first().and_then(|media| media.schema)) {
            for name in self.names_at(schema) {
                visit(Field::ResponseProperties, name, Writing::Identifier);
            }
        }
    }

    /// The names of the properties of a schema, or of the items of a list.
    fn names_at(&mut self, schema: Node<'d>) -> &[String] {
        let document = self.document;
        let schema = document.resolve(schema).unwrap_or(schema);
        self.property_names.entry(schema.span()).or_insert_with(|| {
            let items = schema.object().and_then(|object| object.get("items"));
            let mut seen = HashSet::default();
            let found = properties(document, Some(items.unwrap_or(schema)), &mut seen);
            found.into_iter().map(|(name, _)| name).collect()
        })
    }
}

/// What of a path is not a variable.
pub(crate) fn literal_parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('{').enumerate().map(|(index, part)| {
        if index == 0 {
            part
        } else {
            part.split_once('}').map_or("", |(_, literal)| literal)
        }
    })
}

/// A description without what is not words: code, addresses of links, HTML tags.
fn without_markup(text: &str) -> Cow<'_, str> {
    if !text.contains(['<', '`', ']', '*']) && !text.contains("://") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['<', ']', 'h']) {
        let (before, found) = rest.split_at(at);
        out.push_str(before);
        let after = if found.starts_with("](") {
            found.find(')').map(|end| end + 1)
        } else if found.starts_with('<') {
            found.find('>').filter(|end| *end < 200).map(|end| end + 1)
        } else if found.starts_with("http://") || found.starts_with("https://") {
            Some(
                found
                    .find(|c: char| c.is_whitespace() || matches!(c, ')' | '"' | '\'' | '<'))
                    .unwrap_or(found.len()),
            )
        } else {
            None
        };
        let skipped = after.unwrap_or_else(|| {
            let first = found.chars().next();
            out.extend(first);
            first.map_or(1, char::len_utf8)
        });
        if after.is_some() {
            out.push(' ');
        }
        rest = found.get(skipped..).unwrap_or_default();
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The first sentence of a text, and the rest.
fn split_opening(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let end = text
        .match_indices(['.', '!', '?', '\n', '。'])
        .map(|(at, end)| at + end.len())
        .find(|end| {
            text.get(*end..)
                .is_none_or(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace) || !rest.is_ascii())
        })
        .unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_not_searched() {
        let text = "See [the guide](https://example.com/deep/path) for `code`, <b>bold</b> and https://example.com/x. Then more";
        let plain = without_markup(text);
        assert!(
            !plain.contains("example") && !plain.contains("<b") && plain.contains("the guide"),
            "{plain}"
        );
    }

    #[test]
    fn the_first_sentence_stands_apart() {
        assert_eq!(split_opening("Lists v1.2 pets. Then more."), ("Lists v1.2 pets.", " Then more."));
        assert_eq!(split_opening("One line"), ("One line", ""));
    }
}
