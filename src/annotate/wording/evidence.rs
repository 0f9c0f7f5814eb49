//! What policies read beside the method of an operation, besides the words in `caution.rs`: what an
//! operation requires, which is evidence and not a guess, for each policy but `method`; and for
//! `infer`, words that make a tool look less dangerous than its method does.

use http::Method;

use super::lexicon::{KnownWord, Meaning};
use super::operation_verbs::{NamePart, OperationVerbs};
use crate::annotate::annotations::{Hint, Hints, Reason};
use crate::spec::node::Node;
use crate::spec::operation::request_body::{BodySchema, RequestBody};
use crate::spec::{Document, Location, Operation, Parameter};

/// Number of schemas of one body, including those joined by `allOf`, that are searched for required
/// fields.
const MAX_SCHEMAS: usize = 32;

/// Corrects the hints of the method by what the operation says it needs.
pub(crate) fn apply_evidence(hints: &mut Hints, operation: &Operation, document: &Document) {
    if !hints.is_set() || hints.effective(Hint::ReadOnly) {
        return;
    }
    let required = || {
        operation
            .parameters
            .iter()
            .filter(|parameter| parameter.required)
    };
    let mut set = |value, evidence| hints.set(Hint::Idempotent, value, Reason::Evidence(evidence));
    // The API remembers the key: the same key has the same effect, once.
    if matches!(operation.method, Method::POST | Method::PATCH)
        && required().any(|parameter| parameter.is(Location::Header, "Idempotency-Key"))
    {
        set(true, "a required `Idempotency-Key` header");
    }
    // RFC 9110 section 13.1: the same arguments fail the second time, because the version moved on.
    // Looked at last, because it is the more careful evidence of the two.
    let evidence = required()
        .find_map(|parameter| parameter_evidence(parameter, &operation.method))
        .or_else(|| body_evidence(operation, document));
    if let Some(evidence) = evidence {
        set(false, evidence);
    }
}

/// Returns the evidence of a required parameter about a repeated call.
fn parameter_evidence(parameter: &Parameter, method: &Method) -> Option<&'static str> {
    match parameter.location {
        Location::Header => match parameter.name.to_ascii_lowercase().as_str() {
            "if-match" => Some("a required `If-Match` header"),
            "if-none-match" => Some("a required `If-None-Match` header"),
            "if-unmodified-since" => Some("a required `If-Unmodified-Since` header"),
            _ => version_evidence(&parameter.name, method),
        },
        Location::Query => version_evidence(&parameter.name, method),
        // A version in the path names the resource, or the version of the API.
        _ => None,
    }
}

/// Returns the evidence of a required value of that name, which is the state that the call expects.
fn version_evidence(name: &str, method: &Method) -> Option<&'static str> {
    let letters: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    match letters.to_ascii_lowercase().as_str() {
        "etag" => Some("a required `etag`"),
        "ifmatch" => Some("a required `if_match`"),
        "revision" => Some("a required `revision`"),
        "resourceversion" => Some("a required `resourceVersion`"),
        // A POST may set the version of what it creates.
        "version" if method != Method::POST => Some("a required `version`"),
        _ => None,
    }
}

/// Returns the evidence of a required top-level field of the request body.
fn body_evidence(operation: &Operation, document: &Document) -> Option<&'static str> {
    let method = &operation.method;
    let mut media_types = operation.body.iter().flat_map(RequestBody::media_types);
    media_types.find_map(|media_type| match &media_type.schema {
        BodySchema::At(span) | BodySchema::JsonPatch(Some(span)) => {
            schema_evidence(document, document.node(*span), method)
        }
        BodySchema::Fields(fields) => {
            let mut required = fields.iter().filter(|field| field.required);
            required.find_map(|field| version_evidence(&field.name, method))
        }
        _ => None,
    })
}

fn schema_evidence(document: &Document, schema: Node<'_>, method: &Method) -> Option<&'static str> {
    let mut open = vec![schema];
    for _ in 0..MAX_SCHEMAS {
        // Searching the text is cheaper than opening the object.
        let schema = document.resolve(open.pop()?).ok().filter(|schema| {
            let mut keys = ["\"required\"", "\"allOf\""].iter();
            keys.any(|key| schema.text().contains(key))
        });
        let object = schema.and_then(Node::object).unwrap_or_default();
        let mut required = object.strings("required").into_iter();
        let evidence = required.find_map(|name| version_evidence(&name, method));
        if evidence.is_some() {
            return evidence;
        }
        open.extend(object.array("allOf").into_iter().take(MAX_SCHEMAS));
    }
    None
}

/// Returns the word at the begin or end of the name that says that a POST reads, if no other word
/// says that it acts; and true if its description begins with such a word as well.
pub(super) fn reading_word(words: &OperationVerbs) -> Option<(&'static str, bool)> {
    let acts = Meaning::Destroys | Meaning::Changes | Meaning::Adds;
    let reads = |part: &NamePart| {
        let mut ends = part.head().into_iter().chain(part.last());
        ends.find(|entry| entry.is(Meaning::Reads))
    };
    let named = match words.id.as_slice() {
        [] => reads(&words.action),
        parts => parts.iter().find_map(reads),
    };
    let is_said = words.texts.first().is_some_and(|entry| {
        entry.is(Meaning::Reads) && !entry.is(Meaning::Destroys | Meaning::Changes)
    });
    let acts = words
        .heads()
        .chain(words.all())
        .any(|entry| entry.is(acts) && !entry.is(Meaning::Noun | Meaning::Reads));
    // What is computed of a thing may be kept in it: `/messages/{id}/translate`.
    let may_keep = |entry: &KnownWord| {
        words.path.follows_variable && !words.path.is_followed && !entry.is(Meaning::SaysRead)
    };
    let named = named.filter(|entry| !acts && !may_keep(entry))?;
    Some((&named.word, is_said))
}

/// The word that says that a repeated call leaves the same state.
pub(super) fn setting_word(words: &OperationVerbs) -> Option<&'static str> {
    let harms = words.all().any(|entry| entry.is(Meaning::Destroys));
    let head = words.heads().find(|entry| entry.is(Meaning::Sets))?;
    (!harms).then_some(&head.word)
}

/// The word that names a local thing.
pub(super) fn near_word(words: &OperationVerbs) -> Option<&'static str> {
    let mut all = words
        .all()
        .chain(words.action.words.iter().copied().flatten());
    Some(&all.find(|entry| entry.is(Meaning::Near))?.word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::operations;

    fn idempotent(method: &str, parameters: &str) -> bool {
        operation_is_idempotent(method, &format!(r#""parameters":[{parameters}]"#))
    }

    fn operation_is_idempotent(method: &str, members: &str) -> bool {
        let text = format!(
            r##"{{"openapi":"3.1.0","paths":{{"/a/{{version}}":{{"{method}":{{{members}}}}}}},"components":{{"schemas":{{
            "Note":{{"type":"object","required":["title","etag"],"properties":{{"title":{{}},"etag":{{}}}}}},
            "Draft":{{"allOf":[{{"$ref":"#/components/schemas/Note"}}]}}}}}}}}"##
        );
        let document = Document::parse(text.into_bytes(), None).unwrap();
        let (operations, _) = operations(&document);
        let mut hints = Hints::of_method(&operations[0].method);
        apply_evidence(&mut hints, &operations[0], &document);
        hints.effective(Hint::Idempotent)
    }

    const SCHEMA: &str = r#""in":"header","schema":{"type":"string"}"#;

    #[test]
    fn b1_a_required_precondition_ends_idempotency() {
        for (method, header, expected) in [
            ("put", "If-Match", false),
            ("delete", "if-match", false),
            ("put", "If-Unmodified-Since", false),
            ("put", "If-None-Match", false),
            ("put", "ETag", false),
            ("put", "X-Version", true),
        ] {
            let parameter = format!(r#"{{"name":"{header}","required":true,{SCHEMA}}}"#);
            assert_eq!(
                idempotent(method, &parameter),
                expected,
                "{method} {header}"
            );
        }
    }

    #[test]
    fn b1_a_required_version_in_the_query_or_in_the_body_ends_idempotency() {
        let query = |name: &str| {
            format!(
                r#"{{"name":"{name}","in":"query","required":true,"schema":{{"type":"string"}}}}"#
            )
        };
        for name in ["etag", "if_match", "version", "revision", "resourceVersion"] {
            assert!(!idempotent("put", &query(name)), "{name}");
        }
        assert!(
            idempotent("put", &query("api-version")) && idempotent("delete", &query("versions"))
        );
        let path = r#"{"name":"version","in":"path","required":true,"schema":{"type":"string"}}"#;
        assert!(idempotent("put", path), "it names what is written");
        let body = |schema: &str| {
            format!(r#""requestBody":{{"content":{{"application/json":{{"schema":{schema}}}}}}}"#)
        };
        for (schema, expected) in [
            (r##"{"$ref":"#/components/schemas/Note"}"##, false),
            (r##"{"$ref":"#/components/schemas/Draft"}"##, false),
            (
                r#"{"required":["version"],"properties":{"version":{"type":"integer"}}}"#,
                false,
            ),
            (r#"{"properties":{"version":{"type":"integer"}}}"#, true),
            (r#"{"properties":{"inner":{"required":["etag"]}}}"#, true),
        ] {
            assert_eq!(
                operation_is_idempotent("put", &body(schema)),
                expected,
                "{schema}"
            );
        }
        let key =
            format!(r#""parameters":[{{"name":"Idempotency-Key","required":true,{SCHEMA}}}]"#);
        let created = body(r#"{"required":["version"]}"#);
        assert!(
            operation_is_idempotent("post", &format!("{key},{created}")),
            "a POST sets the version"
        );
    }

    #[test]
    fn b1_an_optional_precondition_proves_nothing() {
        assert!(idempotent(
            "put",
            &format!(r#"{{"name":"If-Match",{SCHEMA}}}"#)
        ));
        assert!(idempotent(
            "put",
            r#"{"name":"etag","in":"query","schema":{"type":"string"}}"#
        ));
    }

    #[test]
    fn b2_a_required_idempotency_key_makes_a_post_idempotent() {
        let key = |required: bool| {
            format!(r#"{{"name":"idempotency-KEY","required":{required},{SCHEMA}}}"#)
        };
        assert!(idempotent("post", &key(true)) && idempotent("patch", &key(true)));
        assert!(!idempotent("post", &key(false)));
    }

    #[test]
    fn b3_put_and_delete_without_a_precondition_stay_idempotent() {
        assert!(idempotent("put", "") && idempotent("delete", ""));
    }

    #[test]
    fn b4_of_two_that_disagree_the_more_careful_one_wins() {
        let both = format!(
            r#"{{"name":"Idempotency-Key","required":true,{SCHEMA}}},{{"name":"If-Match","required":true,{SCHEMA}}}"#
        );
        assert!(!idempotent("patch", &both));
    }

    #[test]
    fn b5_a_read_with_a_precondition_is_still_a_read() {
        assert!(idempotent(
            "get",
            &format!(r#"{{"name":"If-Match","required":true,{SCHEMA}}}"#)
        ));
    }
}
