//! The next page: where a reply says that there is more, the arguments that get it.

use std::sync::Arc;

use http::header::{HeaderMap, LINK};
use serde_json::{Map, Value};
use url::Url;

use crate::spec::node::{Node, Object};
use crate::spec::{Document, Location, Operation, Parameter};

/// Fields that hold what the next call needs, and where it goes, in names without case and punctuation.
const CURSORS: [(&str, &[&str]); 12] = [
    ("nextcursor", &["cursor", "nextcursor", "after", "startingafter"]),
    ("nextpagetoken", &["pagetoken", "nextpagetoken", "token"]),
    ("nexttoken", &["nexttoken", "token", "pagetoken"]),
    ("continuationtoken", &["continuationtoken", "token"]),
    ("continuation", &["continuation", "continuationtoken"]),
    ("endcursor", &["after", "cursor"]),
    ("nextmarker", &["marker", "nextmarker"]),
    ("nextoffset", &["offset"]),
    ("nextpage", &["page", "pagenumber"]),
    ("after", &["after"]),
    ("next", &["cursor", "next", "page", "after", "pagetoken"]),
    ("cursor", &["cursor"]),
];
/// Objects in which such fields stand.
const AROUND: [&str; 9] = [
    "meta",
    "metadata",
    "pagination",
    "paging",
    "pageinfo",
    "responsemetadata",
    "links",
    "cursors",
    "page",
];
/// Parameters that say how much comes at once.
const SIZES: [&str; 12] = [
    "limit",
    "perpage",
    "pagesize",
    "maxresults",
    "maxitems",
    "count",
    "size",
    "top",
    "first",
    "max",
    "rows",
    "take",
];

/// The arguments that get the next page, where the reply names one: by its `Link` header (RFC 8288), or by a field that
/// many APIs use. `body` is its JSON.
#[must_use]
pub(crate) fn next(operation: &Operation, document: Option<&Document>, headers: &HeaderMap, body: &str) -> Option<Map<String, Value>> {
    /// A cursor that is longer is not an argument for a model.
    const MAX_CURSOR_BYTES: usize = 2048;
    let mut found = next_page(operation, headers, body)?;
    if let Some(document) = document {
        type_numbers(document, operation, &mut found);
    }
    (Value::Object(found.clone()).to_string().len() <= MAX_CURSOR_BYTES).then_some(found)
}

/// A text of digits becomes the integer that its parameter declares.
fn type_numbers(document: &Document, operation: &Operation, arguments: &mut Map<String, Value>) {
    for parameter in &operation.parameters {
        let is_integer = || {
            let schema = parameter.schema.map(|span| document.node(span))?;
            let schema = document.resolve(schema).ok()?.object()?;
            Some(schema.get("type")?.string()? == "integer")
        };
        if let Some(value) = arguments.get_mut(&parameter.key)
            && let Some(number) = value.as_str().and_then(|text| text.parse::<i64>().ok())
            && is_integer() == Some(true)
        {
            *value = number.into();
        }
    }
}

fn next_page(operation: &Operation, headers: &HeaderMap, body: &str) -> Option<Map<String, Value>> {
    // Every way to a next page ends in an argument of the query: most operations need not be looked at.
    if !operation.parameters.iter().any(|parameter| parameter.location == Location::Query) {
        return None;
    }
    let by_link = headers
        .get_all(LINK)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .find_map(next_link)
        .and_then(|url| of_url(operation, url));
    by_link.or_else(|| of_object(operation, &Node::new(body).object()?))
}

/// The argument that says how much comes at once.
#[must_use]
pub(crate) fn page_size_argument(operation: &Operation) -> Option<&str> {
    SIZES
        .iter()
        .find_map(|name| parameter(operation, name))
        .map(|parameter| parameter.key.as_str())
}

/// The target of `rel=next` in a `Link` header.
fn next_link(header: &str) -> Option<&str> {
    let mut rest = header;
    while let Some((_, tail)) = rest.split_once('<') {
        let (url, tail) = tail.split_once('>')?;
        let parameters = tail.split('<').next().unwrap_or_default();
        let is_next = parameters.split([';', ',']).any(|parameter| {
            parameter.split_once('=').is_some_and(|(name, value)| {
                let relations = value.trim().trim_matches('"').split_whitespace();
                name.trim().eq_ignore_ascii_case("rel") && relations.into_iter().any(|relation| relation.eq_ignore_ascii_case("next"))
            })
        });
        if is_next {
            return Some(url);
        }
        rest = tail;
    }
    None
}

/// The query of a URL as arguments of the operation; what it does not declare is not told.
fn of_url(operation: &Operation, url: &str) -> Option<Map<String, Value>> {
    let base = Url::parse("http://h.invalid/").ok()?;
    let url = base.join(url).ok()?;
    let found: Map<String, Value> = url
        .query_pairs()
        .filter_map(|(name, value)| {
            let declared = operation
                .parameters
                .iter()
                .find(|parameter| parameter.location == Location::Query && parameter.name == name)?;
            Some((declared.key.clone(), Value::String(value.into_owned())))
        })
        .collect();
    (!found.is_empty()).then_some(found)
}

fn of_object(operation: &Operation, object: &Object<'_>) -> Option<Map<String, Value>> {
    let around: Vec<Object<'_>> = object
        .iter()
        .filter(|(key, _)| AROUND.contains(&normalized_name(key).as_str()))
        .filter_map(|(_, node)| node.object())
        .collect();
    // `pagination.cursors.after` and the like.
    let deeper: Vec<Object<'_>> = around
        .iter()
        .flat_map(Object::iter)
        .filter(|(key, _)| AROUND.contains(&normalized_name(key).as_str()))
        .filter_map(|(_, node)| node.object())
        .collect();
    if let Some(last) = last_id(object) {
        let parameter = parameter(operation, "startingafter")?;
        return Some(Map::from_iter([(parameter.key.clone(), last)]));
    }
    // At the top, `after`, `next` and `cursor` may be anything; around them is a word that says what they are.
    let places = std::iter::once((object, false)).chain(around.iter().chain(&deeper).map(|object| (object, true)));
    for (object, is_paging) in places {
        let members: Vec<_> = object.iter().map(|(key, node)| (normalized_name(key), node)).collect();
        for (field, parameters) in CURSORS {
            let vague = matches!(field, "after" | "cursor");
            let member = members.iter().find(|(name, _)| name == field);
            let Some((_, node)) = member.filter(|_| is_paging || !vague) else {
                continue;
            };
            let Some(value) = node.value().filter(is_cursor) else {
                continue;
            };
            if let Some(text) = value.as_str().filter(|text| text.contains("://") || text.starts_with(['/', '?'])) {
                if let Some(found) = of_url(operation, text) {
                    return Some(found);
                }
                continue;
            }
            if let Some(parameter) = parameters.iter().find_map(|name| parameter(operation, name)) {
                return Some(Map::from_iter([(parameter.key.clone(), value)]));
            }
        }
    }
    let link = object.get("@odata.nextLink").and_then(Node::string);
    let href = || {
        let links = object.get("_links")?.object()?;
        links.get("next")?.object()?.get("href")?.string()
    };
    of_url(operation, &link.or_else(href)?)
}

/// `has_more` beside a list: the id of its last item.
fn last_id(object: &Object<'_>) -> Option<Value> {
    if !object.boolean("has_more")? {
        return None;
    }
    object.get("data")?.array()?.last()?.object()?.get("id")?.value()
}

fn is_cursor(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.is_empty(),
        Value::Number(_) => true,
        _ => false,
    }
}

fn parameter<'o>(operation: &'o Operation, name: &str) -> Option<&'o Parameter> {
    let mut parameters = operation.parameters.iter().map(Arc::as_ref);
    parameters.find(|parameter| parameter.location == Location::Query && normalized_name(&parameter.name) == name)
}

/// A name without case and punctuation.
pub(crate) fn normalized_name(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|character| character.to_ascii_lowercase())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Document, operations};
    use serde_json::json;

    fn hinted(parameters: &[&str], link: &str, body: &Value) -> Value {
        let parameter = |name: &&str| match name.strip_suffix('#') {
            Some(name) => json!({"name": name, "in": "query", "schema": {"type": "integer"}}),
            None => json!({"name": name, "in": "query"}),
        };
        let parameters: Vec<Value> = parameters.iter().map(parameter).collect();
        let text = json!({"openapi": "3.1.0", "paths": {"/a": {"get": {"parameters": parameters}}}}).to_string();
        let document = Document::parse(text.into_bytes(), None).unwrap();
        let (operations, _) = operations(&document);
        let mut headers = HeaderMap::new();
        if !link.is_empty() {
            headers.insert(LINK, link.parse().unwrap());
        }
        next(&operations[0], Some(&document), &headers, &body.to_string()).map_or(Value::Null, Value::Object)
    }

    #[test]
    fn a_next_page_becomes_arguments() {
        let next = r#"<https://api.example/a?page=1>; rel="prev", <https://api.example/a?page=3&per_page=5&key=x>; rel="next last""#;
        for (parameters, link, body, expected) in [
            (&["page", "per_page"][..], next, json!([]), json!({"page": "3", "per_page": "5"})),
            (&["page#"], next, json!([]), json!({"page": 3})),
            (&["page#"], "", json!({"next": "/a?page=007x"}), json!({"page": "007x"})),
            (&["q"], next, json!([]), Value::Null),
            (&["page"], "<?page=2>; rel=next", json!([]), json!({"page": "2"})),
            (
                &["cursor"],
                "",
                json!({"next_cursor": "abc", "items": []}),
                json!({"cursor": "abc"}),
            ),
            (&["pageToken"], "", json!({"nextPageToken": "t"}), json!({"pageToken": "t"})),
            (&["page"], "", json!({"meta": {"next_page": 2}}), json!({"page": 2})),
            (
                &["after"],
                "",
                json!({"paging": {"cursors": {"after": "z"}}}),
                json!({"after": "z"}),
            ),
            (&["after"], "", json!({"after": "noon"}), Value::Null),
            (&["page"], "", json!({"next": "https://h/a?page=9"}), json!({"page": "9"})),
            (&["page"], "", json!({"links": {"next": "/a?page=4"}}), json!({"page": "4"})),
            (
                &["page"],
                "",
                json!({"_links": {"next": {"href": "/a?page=5"}}}),
                json!({"page": "5"}),
            ),
            (
                &["$skip"],
                "",
                json!({"@odata.nextLink": "https://h/a?$skip=10"}),
                json!({"skip": "10"}),
            ),
            (
                &["starting_after"],
                "",
                json!({"has_more": true, "data": [{"id": "a"}, {"id": "b"}]}),
                json!({"starting_after": "b"}),
            ),
            (&["cursor"], "", json!({"next_cursor": ""}), Value::Null),
            (&["cursor"], "", json!({"next_cursor": null}), Value::Null),
        ] {
            assert_eq!(hinted(parameters, link, &body), expected, "{parameters:?} {link} {body}");
        }
    }
}
