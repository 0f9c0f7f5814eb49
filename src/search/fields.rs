//! Fields of an operation that are searched, and the weight of a word in each.

use std::borrow::Cow;
use std::sync::LazyLock;

use foldhash::{HashMap, HashSet};
use regex::Regex;

use super::verbs::Verb;
use super::words::{Term, Vocabulary, Writing, each_word};
use crate::annotate::Tool;
use crate::spec::node::Node;
use crate::spec::operation::request_body::{BodySchema, properties};
use crate::spec::operation::response::successes;
use crate::spec::{Document, Operation, Span};

/// Depth to which lists of lists are opened.
const MAX_LISTS: usize = 4;

/// A place of an operation that has words.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Field {
    Title,
    Keywords,
    Name,
    Path,
    /// The first sentence of the description.
    Opening,
    Tags,
    Description,
    /// The names of parameters.
    Parameters,
    BodyProperties,
    ResponseProperties,
}

impl Field {
    /// Returns the weight of a word in the field.
    pub(crate) fn weight(self) -> f32 {
        match self {
            Self::Title | Self::Keywords => 4.0,
            Self::Name | Self::Path | Self::Opening => 2.0,
            Self::Tags => 1.0,
            Self::Description | Self::Parameters => 0.5,
            Self::BodyProperties => 0.3,
            Self::ResponseProperties => 0.2,
        }
    }
}

/// Reads the words of operations, as terms. What many operations share is read once.
pub(crate) struct FieldReader<'d, 'o> {
    document: &'d Document,
    vocabulary: Vocabulary,
    /// The words of each text of a field that operations share, such as a tag or the name of a
    /// parameter.
    shared: HashMap<(Field, &'o str), Vec<Term>>,
    /// The names of the properties of each schema that was opened.
    property_names: HashMap<Span, Vec<Term>>,
    /// The words of a text of one operation.
    own: Vec<Term>,
}

impl<'d, 'o> FieldReader<'d, 'o> {
    pub(crate) fn new(document: &'d Document) -> Self {
        Self {
            document,
            vocabulary: Vocabulary::default(),
            shared: HashMap::default(),
            property_names: HashMap::default(),
            own: Vec::new(),
        }
    }

    /// All terms.
    pub(crate) fn finish(self) -> HashMap<Box<str>, Term> {
        self.vocabulary.into_terms()
    }

    /// The description of an operation.
    pub(crate) fn description(&self, operation: &Operation) -> Option<Cow<'d, str>> {
        let document = self.document;
        document
            .node(operation.span?)
            .member("description")?
            .string()
    }

    /// Shows the words of an operation field by field; a field may come in several parts, one after
    /// the other.
    pub(crate) fn each_field(
        &mut self,
        tool: &'o Tool,
        description: &str,
        mut visit: impl FnMut(Field, &[Term]),
    ) {
        let operation = &tool.operation;
        visit(Field::Title, self.own(&tool.title, Writing::Prose));
        for keyword in &tool.keywords {
            visit(Field::Keywords, self.own(keyword, Writing::Prose));
        }
        visit(Field::Name, self.own(&tool.name, Writing::Identifier));
        // The name was made of it, as a rule; then it says nothing new.
        let id = operation.id.as_deref();
        if let Some(id) = id.filter(|id| !tool.name.ends_with(id)) {
            visit(Field::Name, self.own(id, Writing::Identifier));
        }
        for text in literal_parts(&operation.path) {
            visit(Field::Path, self.shared(Field::Path, text));
        }
        let description = without_markup(description);
        let (opening, rest) = split_opening(&description);
        visit(Field::Opening, self.own(opening, Writing::Prose));
        let tags = operation.tags.iter().map(String::as_str);
        for tag in tags.chain(tool.category.as_deref()) {
            visit(Field::Tags, self.shared(Field::Tags, tag));
        }
        visit(Field::Description, self.own(rest, Writing::Prose));
        for parameter in &operation.parameters {
            let terms = self.shared(Field::Parameters, &parameter.name);
            visit(Field::Parameters, terms);
        }
        match operation.body.as_ref().map(|body| &body.media_type.schema) {
            Some(BodySchema::At(span) | BodySchema::Items(span, _)) => {
                let terms = self.names_at(self.document.node(*span));
                visit(Field::BodyProperties, terms);
            }
            Some(BodySchema::Fields(fields)) => {
                for field in fields {
                    let terms = self.own(&field.name, Writing::Identifier);
                    visit(Field::BodyProperties, terms);
                }
            }
            _ => {}
        }
        let first = successes(self.document, operation).into_iter().next();
        if let Some(schema) = first.and_then(|response| response.media.first()?.schema) {
            visit(Field::ResponseProperties, self.names_at(schema));
        }
    }

    /// The distinct words of a title, verbs left out.
    pub(crate) fn subjects(&mut self, title: &str) -> Box<[Term]> {
        let mut found = Vec::new();
        let vocabulary = &mut self.vocabulary;
        each_word(title, Writing::Prose, |word| {
            if let Some(term) = vocabulary.term(word).filter(|_| !Verb::is_verb(word))
                && !found.contains(&term)
            {
                found.push(term);
            }
        });
        found.into()
    }

    /// The words of a text that is read once.
    fn own(&mut self, text: &str, writing: Writing) -> &[Term] {
        self.own.clear();
        self.vocabulary.add_terms(text, writing, &mut self.own);
        &self.own
    }

    /// The words of a text of a field that other operations may have as well. Tags are prose.
    fn shared(&mut self, field: Field, text: &'o str) -> &[Term] {
        let vocabulary = &mut self.vocabulary;
        self.shared.entry((field, text)).or_insert_with(|| {
            let mut terms = Vec::new();
            let writing = match field {
                Field::Tags => Writing::Prose,
                _ => Writing::Identifier,
            };
            vocabulary.add_terms(text, writing, &mut terms);
            terms
        })
    }

    /// The names of the properties of a schema, or of the items of a list.
    fn names_at(&mut self, schema: Node<'d>) -> &[Term] {
        let described = self.past_lists(schema);
        let (document, vocabulary) = (self.document, &mut self.vocabulary);
        let names = self.property_names.entry(described.span());
        names.or_insert_with(|| {
            let mut terms = Vec::new();
            for (name, _) in properties(document, Some(described), &mut HashSet::default()) {
                vocabulary.add_terms(&name, Writing::Identifier, &mut terms);
            }
            terms
        })
    }

    /// The schema that is not one of a list any more: many operations list what has one schema.
    fn past_lists(&self, mut schema: Node<'d>) -> Node<'d> {
        for _ in 0..MAX_LISTS {
            schema = self.document.resolve(schema).unwrap_or(schema);
            if self.property_names.contains_key(&schema.span()) {
                return schema;
            }
            match schema.object().and_then(|object| object.get("items")) {
                Some(items) => schema = items,
                None => return schema,
            }
        }
        schema
    }
}

/// Returns the parts of a path that are not variables.
fn literal_parts(path: &str) -> impl Iterator<Item = &str> {
    let mut parts = path.split('{');
    let first = parts.next().into_iter();
    first.chain(parts.map(|part| part.split_once('}').map_or("", |(_, literal)| literal)))
}

/// What is not words in a description: addresses of links, and HTML tags.
static MARKUP: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let markup = r#"\]\([^)]*\)|<[^>]{0,198}>|https?://[^\s)"'<]*"#;
    Regex::new(markup).ok()
});

/// A description without markup.
fn without_markup(text: &str) -> Cow<'_, str> {
    let markup = MARKUP.as_ref();
    markup.map_or(Cow::Borrowed(text), |markup| markup.replace_all(text, " "))
}

/// The first sentence of a text, and the rest.
fn split_opening(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let is_end = |end: &usize| {
        text.get(*end..).is_none_or(|rest| {
            rest.is_empty() || rest.starts_with(char::is_whitespace) || !rest.is_ascii()
        })
    };
    let ends = text.match_indices(['.', '!', '?', '\n', '。']);
    let mut ends = ends.map(|(at, end)| at + end.len());
    let end = ends.find(is_end).unwrap_or(text.len());
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
        let text = "a[0] < b, and c > d: [x](y";
        assert_eq!(without_markup(text), text.replace("< b, and c >", " "));
        assert_eq!(without_markup("a < b: [x](y"), "a < b: [x](y");
    }

    #[test]
    fn the_first_sentence_stands_apart() {
        assert_eq!(
            split_opening("Lists v1.2 pets. Then more."),
            ("Lists v1.2 pets.", " Then more.")
        );
        assert_eq!(split_opening("One line"), ("One line", ""));
    }
}
