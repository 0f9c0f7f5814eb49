//! The next page: its arguments, if a reply says that there is one.

use std::sync::Arc;

use http::header::{HeaderName, LINK};
use serde_json::{Value, json};
use url::Url;

use super::Reply;
use super::page_numbers::{NumberedPage, first_parameter};
use crate::json::JsonObject;
use crate::redact::secrets::MARK;
use crate::spec::links::link_targets;
use crate::spec::node::{Node, Object};
use crate::spec::operation::parameter::{Serialization, Style};
use crate::spec::paging::normalized_name;
use crate::spec::{Document, Location, Operation, Parameter};
use crate::text::is_word_of;

/// Fields that hold a value for the next call, and the arguments that take it, in names without
/// case and punctuation.
const CURSORS: [(&str, &str); 13] = [
    ("nextcursor", "cursor nextcursor after startingafter"),
    ("nextpagetoken", "pagetoken nextpagetoken token"),
    ("nexttoken", "nexttoken token pagetoken"),
    ("continuationtoken", "continuationtoken token"),
    ("continuation", "continuation continuationtoken"),
    ("continue", "continue"),
    ("endcursor", "after cursor"),
    ("nextmarker", "marker nextmarker"),
    ("nextoffset", "offset"),
    ("nextpage", "page pagenumber"),
    ("after", "after"),
    ("next", "cursor next page after pagetoken"),
    ("cursor", "cursor"),
];
/// Objects that contain such fields.
const AROUND: &str = "meta metadata pagination paging pageinfo responsemetadata links cursors page";

/// The next page of a reply.
#[derive(Clone, PartialEq)]
pub(crate) enum NextPage {
    /// The arguments that get it and differ from those of the call.
    Arguments(JsonObject),
    /// A next page that no arguments of the tool get.
    Unreachable,
}

/// A call whose reply may name a next page.
#[derive(Clone, Copy)]
pub(crate) struct PageCall<'c> {
    pub(crate) operation: &'c Operation,
    /// Document, which has the types of arguments.
    pub(crate) document: &'c Document,
    pub(crate) arguments: &'c JsonObject,
    /// The URL of its request.
    pub(crate) url: &'c dyn Fn() -> Option<Url>,
}

/// Reads the next page of a successful reply: by its `Link` header (RFC 8288), or by a field that
/// many APIs use.
pub(crate) fn next(call: PageCall<'_>, response: &Reply) -> Option<NextPage> {
    let link = link_targets(response.headers.get_all(LINK).iter(), "next").next();
    let by_link = link.map(|url| call.of_url(url));
    // Every way of a body to a next page ends in an argument of the query: most operations need not
    // be looked at.
    let mut parameters = call.operation.parameters.iter();
    if matches!(by_link, Some(NextPage::Arguments(_)))
        || !parameters.any(|parameter| parameter.location == Location::Query)
    {
        return by_link;
    }
    // An API with `Link` headers names the next page there, if there is one.
    let has_links = response.headers.contains_key(LINK);
    let in_body = || {
        let object = Node::new(response.json()?).object()?;
        let by_number = || (!has_links).then(|| call.by_number(&object)).flatten();
        call.of_object(&object).or_else(by_number)
    };
    in_body().or(by_link)
}

/// Returns the number of items in all pages that a reply counts, with the name of the member or
/// header.
pub(crate) fn declared_count(response: &Reply) -> Option<(String, u64)> {
    let root = response
        .json()
        .map(Node::new)
        .and_then(Node::object)
        .unwrap_or_default();
    let is_around = |name: &str| is_word_of(AROUND, &normalized_name(name));
    let around = root.iter().filter(|(name, _)| is_around(name));
    let around = around.filter_map(|(name, node)| Some((format!("{name}/"), node.object()?)));
    let objects: Vec<(String, Object<'_>)> = std::iter::once((String::new(), root.clone()))
        .chain(around)
        .collect();
    let members = objects.iter().flat_map(|(place, object)| {
        let counts = object.iter().filter(|(name, _)| is_count(name));
        counts.map(move |(name, node)| (format!("{place}{name}"), node.text().trim()))
    });
    let headers = count_headers(response).map(|(name, value)| (name.to_string(), value));
    members
        .chain(headers)
        .find_map(|(name, count)| Some((name, count.parse().ok()?)))
}

/// The headers with a number of items.
fn count_headers(response: &Reply) -> impl Iterator<Item = (&HeaderName, &str)> {
    let headers = response.headers.iter();
    let counts = headers.filter(|(name, _)| is_count(name.as_str()));
    counts.filter_map(|(name, value)| Some((name, value.to_str().ok()?)))
}

/// Returns true if a name is that of a number of items.
fn is_count(name: &str) -> bool {
    let name = normalized_name(name);
    (name.contains("total") && !name.contains("page")) || name == "count"
}

/// Returns the number of items that an API counts, if it counts some and the reply has none.
pub(crate) fn count_without_items(response: &Reply) -> Option<u64> {
    /// Larger replies hold something.
    const MAX_EMPTY_BYTES: usize = 4096;
    // Most replies have no empty list, and are not read for it.
    if response.body.len() > MAX_EMPTY_BYTES || !has_empty_list(&response.body) {
        return None;
    }
    let json = response.json()?;
    let root = Node::new(json);
    let members = root.object().unwrap_or_default();
    let is_list = |node: &Node<'_>| node.text().starts_with('[');
    let mut lists = members
        .iter()
        .map(|(_, node)| node)
        .chain([root])
        .filter(is_list)
        .peekable();
    lists.peek()?;
    if !lists.all(|list| list.items().is_some_and(|mut items| items.next().is_none())) {
        return None;
    }
    let counts = members
        .iter()
        .filter(|(name, _)| is_count(name))
        .map(|(_, node)| node.text().trim());
    let mut counts = counts.chain(count_headers(response).map(|(_, value)| value));
    counts.find_map(|count| count.parse().ok().filter(|count| *count > 0))
}

/// Returns true if `[` and `]` are adjacent somewhere, except for white space.
fn has_empty_list(json: &[u8]) -> bool {
    memchr::memchr_iter(b'[', json).any(|at| {
        let rest = json.get(at + 1..).unwrap_or_default();
        rest.trim_ascii_start().starts_with(b"]")
    })
}

impl<'c> PageCall<'c> {
    fn of_url(self, link: &str) -> NextPage {
        let found = self
            .changed_arguments(link)
            .filter(|found| !found.is_empty());
        found.map_or(NextPage::Unreachable, NextPage::Arguments)
    }

    /// Returns the arguments by which the query of a link differs from the request; `None` if the
    /// link has another target, or a value that no argument can give.
    fn changed_arguments(self, link: &str) -> Option<JsonObject> {
        let sent = (self.url)()?;
        let url = sent.join(link).ok()?;
        // An API may have a second path to the same list: GitHub's links have the number of a
        // repository for its name.
        let last_segment = |url: &Url| {
            url.path()
                .trim_end_matches('/')
                .rsplit('/')
                .next()
                .map(str::to_owned)
        };
        if url.host() != sent.host() || last_segment(&url) != last_segment(&sent) {
            return None;
        }
        let mut found = JsonObject::new();
        for (name, value) in url.query_pairs() {
            let mut of_name = sent
                .query_pairs()
                .filter(|(sent, _)| *sent == name)
                .peekable();
            let is_sent = of_name.peek().is_some();
            if of_name.any(|(_, sent)| sent == value) {
                continue;
            }
            match self.query_parameter(&name) {
                Some((parameter, None)) => {
                    let value = self.typed(self.schema(parameter), value.into_owned().into())?;
                    // Of several values, which are new is not known.
                    if found.insert(parameter.key.clone(), value).is_some() {
                        return None;
                    }
                }
                Some((parameter, Some(member))) => {
                    let schema = self.schema(parameter).and_then(|schema| {
                        schema.object()?.get("properties")?.object()?.get(member)
                    });
                    let value = self.typed(schema, value.into_owned().into())?;
                    let sent = || self.arguments.get(&parameter.key).cloned();
                    let object = found.entry(parameter.key.clone());
                    let object = object.or_insert_with(|| sent().unwrap_or_else(|| json!({})));
                    object.as_object_mut()?.insert(member.to_owned(), value);
                }
                // A credential that the server sends by itself.
                None if is_sent && value.contains(MARK) => {}
                None => return None,
            }
        }
        Some(found)
    }

    /// The parameter of a name in a query; of `page[number]`, the one of style `deepObject` that is
    /// called `page`, and the member.
    fn query_parameter<'n>(self, name: &'n str) -> Option<(&'c Parameter, Option<&'n str>)> {
        let named = |name: &str| {
            let mut parameters = self.operation.parameters.iter().map(Arc::as_ref);
            parameters
                .find(|parameter| parameter.location == Location::Query && parameter.name == name)
        };
        let member = || {
            let (object, member) = name.strip_suffix(']')?.split_once('[')?;
            let parameter = named(object)?;
            let Serialization::Style { style, .. } = parameter.serialization else {
                return None;
            };
            let is_member = style == Style::DeepObject && !member.contains('[');
            is_member.then_some((parameter, Some(member)))
        };
        named(name)
            .map(|parameter| (parameter, None))
            .or_else(member)
    }

    /// The schema of a parameter.
    fn schema(self, parameter: &Parameter) -> Option<Node<'c>> {
        let schema = self.document.node(parameter.schema?);
        self.document.resolve(schema).ok()
    }

    /// A text as the type that its schema declares; `None` if it is not of that type.
    fn typed(self, schema: Option<Node<'_>>, value: Value) -> Option<Value> {
        let Value::String(text) = &value else {
            return Some(value);
        };
        let schema = schema.and_then(|schema| self.document.resolve(schema).ok()?.object());
        let Some(kinds) = schema.and_then(|schema| Some(schema.get("type")?.text().to_owned()))
        else {
            return Some(value);
        };
        if kinds.contains("\"string\"") {
            Some(value)
        } else if kinds.contains("\"integer\"") {
            text.parse::<i64>().ok().map(Value::from)
        } else {
            serde_json::from_str(text).ok().filter(|value: &Value| {
                (value.is_number() && kinds.contains("\"number\""))
                    || (value.is_boolean() && kinds.contains("\"boolean\""))
            })
        }
    }

    fn of_value(self, parameter: &Parameter, value: Value) -> NextPage {
        let value = self.typed(self.schema(parameter), value);
        match value.filter(|value| self.arguments.get(&parameter.key) != Some(value)) {
            Some(value) => {
                NextPage::Arguments(JsonObject::from_iter([(parameter.key.clone(), value)]))
            }
            None => NextPage::Unreachable,
        }
    }

    fn of_object(self, object: &Object<'_>) -> Option<NextPage> {
        let around = objects_around(object);
        let parameter_of = |names: &str| first_parameter(self.operation, names);
        let after_last = |names| Some(self.of_value(parameter_of(names)?, last_id(object)?));
        if let Some(found) = after_last("startingafter") {
            return Some(found);
        }
        let mut unreachable = None;
        // At the top, `after`, `next` and `cursor` may be anything; around them is a word that says
        // what they are.
        let places =
            std::iter::once((object, false)).chain(around.iter().map(|object| (object, true)));
        for (object, is_paging) in places {
            let members = object
                .iter()
                .map(|(key, node)| (normalized_name(key), node));
            let members: Vec<_> = members
                .filter(|(name, _)| CURSORS.iter().any(|(field, _)| field == name))
                .collect();
            for (field, parameters) in CURSORS {
                let vague = matches!(field, "after" | "cursor" | "continue");
                let member = members.iter().find(|(name, _)| name == field);
                let Some((_, node)) = member.filter(|_| is_paging || !vague) else {
                    continue;
                };
                let Some(value) = node.value().filter(is_cursor) else {
                    continue;
                };
                let found = match value
                    .as_str()
                    .filter(|text| text.contains("://") || text.starts_with(['/', '?']))
                {
                    Some(url) if url.contains('?') => self.of_url(url),
                    Some(_) => continue,
                    None => match parameter_of(parameters) {
                        Some(parameter) => self.of_value(parameter, value),
                        None => continue,
                    },
                };
                match found {
                    NextPage::Arguments(_) => return Some(found),
                    // It may be the cursor of this page.
                    NextPage::Unreachable if vague => {}
                    NextPage::Unreachable => unreachable = Some(found),
                }
            }
        }
        let link = object.get("@odata.nextLink").and_then(Node::string);
        let href = || {
            let links = object.get("_links")?.object()?;
            links.get("next")?.object()?.get("href")?.string()
        };
        let by_link = link.or_else(href).map(|url| self.of_url(&url));
        by_link
            .or_else(|| after_last("afterid after"))
            .or(unreachable)
    }

    /// The next page of a reply that does not name one, by the numbers that it has.
    fn by_number(self, object: &Object<'_>) -> Option<NextPage> {
        let around = objects_around(object);
        let page = NumberedPage {
            operation: self.operation,
            arguments: self.arguments,
            objects: std::iter::once(object).chain(&around).collect(),
        };
        match page.next(|parameter| self.first_value(parameter)) {
            Some((parameter, value)) => Some(self.of_value(parameter, value.into())),
            None => (page.says_more() == Some(true)).then_some(NextPage::Unreachable),
        }
    }

    /// The number that a parameter has if a call does not give it: its default, or the least one.
    fn first_value(self, parameter: &Parameter) -> Option<u64> {
        let schema = self.schema(parameter)?.object()?;
        let number = |key| {
            schema
                .get(key)
                .and_then(|node| node.text().trim().parse().ok())
        };
        number("default").or_else(|| number("minimum"))
    }
}

/// The objects in a reply that are about its pages: `meta`, and `cursors` in `pagination`, and the
/// like.
fn objects_around<'a>(object: &Object<'a>) -> Vec<Object<'a>> {
    let inside = |object: &Object<'a>| -> Vec<Object<'a>> {
        let named = object
            .iter()
            .filter(|(key, _)| is_word_of(AROUND, &normalized_name(key)));
        named.filter_map(|(_, node)| node.object()).collect()
    };
    let mut around = inside(object);
    let deeper: Vec<Object<'a>> = around.iter().flat_map(inside).collect();
    around.extend(deeper);
    around
}

/// `has_more` beside a list: the id of its last item.
fn last_id(object: &Object<'_>) -> Option<Value> {
    if object.boolean("has_more") != Some(true) {
        return None;
    }
    let items = object.get("data")?.items()?;
    items.last()?.object()?.get("id")?.value()
}

fn is_cursor(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.is_empty(),
        Value::Number(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Document, operations};

    const UNREACHABLE: &str = "unreachable";

    fn hinted(parameters: &[&str], sent: &str, link: &str, body: &Value) -> Value {
        let parameter = |name: &&str| match name.strip_suffix('#') {
            Some(name) => {
                json!({"name": name, "in": "query", "schema": {"type": ["null", "integer"]}})
            }
            None if *name == "deep" => json!({
                "name": "deep", "in": "query", "style": "deepObject",
                "schema": {"type": "object", "properties": {"number": {"type": "integer"}, "size": {"type": "integer"}}},
            }),
            None => json!({"name": name, "in": "query"}),
        };
        let parameters: Vec<Value> = parameters.iter().map(parameter).collect();
        let text =
            json!({"openapi": "3.1.0", "paths": {"/a": {"get": {"parameters": parameters}}}})
                .to_string();
        let document = Document::parse(text.into_bytes(), None).unwrap();
        let (operations, _) = operations(&document);
        let mut response = Reply {
            body: body.to_string().into(),
            ..Reply::default()
        };
        if !link.is_empty() {
            response.headers.insert(LINK, link.parse().unwrap());
        }
        let url = Url::parse("https://api.example/v1/a")
            .unwrap()
            .join(sent)
            .unwrap();
        let arguments = url
            .query_pairs()
            .map(|(name, value)| (name.into_owned(), Value::from(value.into_owned())));
        let call = PageCall {
            operation: &operations[0],
            document: &document,
            arguments: &arguments.collect(),
            url: &|| Some(url.clone()),
        };
        match next(call, &response) {
            None => Value::Null,
            Some(NextPage::Arguments(arguments)) => Value::Object(arguments),
            Some(NextPage::Unreachable) => UNREACHABLE.into(),
        }
    }

    #[test]
    fn a_link_becomes_arguments_only_if_they_get_its_page() {
        let next = |url: &str| {
            format!("<https://api.example/v1/a?page=1>; rel=\"prev\", <{url}>; rel=\"next last\"")
        };
        let page = json!({"page": 3});
        for (parameters, sent, link, expected) in [
            (
                &["page#", "per_page#"][..],
                "",
                "?page=3&per_page=5",
                json!({"page": 3, "per_page": 5}),
            ),
            (
                &["page#", "per_page#"],
                "?per_page=5",
                "?page=3&per_page=5",
                page.clone(),
            ),
            // What the server sends by itself.
            (
                &["page#"],
                "?size=5&key=abc&tag=a&tag=b",
                "?page=3&size=5&key=[redacted]&tag=a&tag=b",
                page.clone(),
            ),
            (
                &["page#"],
                "",
                "https://api.example/v1/a?page=3",
                page.clone(),
            ),
            (
                &["page#"],
                "",
                "https://api.example/repositories/7/a?page=3",
                page,
            ),
            (
                &["page#"],
                "",
                "https://other.example/v1/a?page=3",
                UNREACHABLE.into(),
            ),
            (&["page#"], "", "/v1/a/more?page=3", UNREACHABLE.into()),
            (&["page#"], "", "?page=3&after=x", UNREACHABLE.into()),
            (
                &["per_page#"],
                "?page=2",
                "?page=3&per_page=5",
                UNREACHABLE.into(),
            ),
            (&["page#"], "?page=3", "?page=3", UNREACHABLE.into()),
            (&["page#"], "", "?page=abc", UNREACHABLE.into()),
            (&["page"], "", "?page=3&page=4", UNREACHABLE.into()),
            (&[], "", "?page=3", UNREACHABLE.into()),
            // A member of an object, with the others that were sent.
            (
                &["deep"],
                "",
                "?deep%5Bnumber%5D=2&deep[size]=5",
                json!({"deep": {"number": 2, "size": 5}}),
            ),
            (&["deep"], "", "?deep[number][a]=2", UNREACHABLE.into()),
            (&["page"], "", "?page[number]=2", UNREACHABLE.into()),
        ] {
            assert_eq!(
                hinted(parameters, sent, &next(link), &json!([])),
                expected,
                "{parameters:?} {sent} {link}"
            );
        }
    }

    #[test]
    fn a_count_contradicts_a_reply_without_items() {
        let count = |body: &str, header: &str| {
            let headers = [("x-total-count".parse().unwrap(), header.parse().unwrap())];
            count_without_items(&Reply {
                body: body.to_owned().into(),
                headers: headers.into_iter().collect(),
                ..Reply::default()
            })
        };
        for (body, header, expected) in [
            ("[]", "40", Some(40)),
            (r#"{"items":[],"total":40}"#, "", Some(40)),
            (r#"{"results":[ ],"count":2}"#, "", Some(2)),
            ("[]", "0", None),
            ("[1]", "40", None),
            (r#"{"items":[],"total_pages":4}"#, "", None),
            (r#"{"items":[1],"tags":[],"total":40}"#, "", None),
            (r#"{"total":40}"#, "", None),
        ] {
            assert_eq!(count(body, header), expected, "{body} {header}");
        }
    }

    #[test]
    fn a_next_page_becomes_arguments() {
        for (parameters, link, body, expected) in [
            (
                &["page#"][..],
                "",
                json!({"next": "/a?page=007x"}),
                UNREACHABLE.into(),
            ),
            (&["page#"], "", json!({"next": "/a/b"}), Value::Null),
            (
                &["page"],
                "<?page=2>; rel=next",
                json!([]),
                json!({"page": "2"}),
            ),
            (
                &["cursor"],
                "",
                json!({"next_cursor": "abc", "items": []}),
                json!({"cursor": "abc"}),
            ),
            (
                &["pageToken"],
                "",
                json!({"nextPageToken": "t"}),
                json!({"pageToken": "t"}),
            ),
            (
                &["page"],
                "",
                json!({"meta": {"next_page": 2}}),
                json!({"page": 2}),
            ),
            (
                &["after"],
                "",
                json!({"paging": {"cursors": {"after": "z"}}}),
                json!({"after": "z"}),
            ),
            (&["after"], "", json!({"after": "noon"}), Value::Null),
            (
                &["page"],
                "",
                json!({"next": "https://api.example/a?page=9"}),
                json!({"page": "9"}),
            ),
            (
                &["page"],
                "",
                json!({"links": {"next": "/a?page=4"}}),
                json!({"page": "4"}),
            ),
            (
                &["page"],
                "",
                json!({"_links": {"next": {"href": "/a?page=5"}}}),
                json!({"page": "5"}),
            ),
            (
                &["$skip"],
                "",
                json!({"@odata.nextLink": "https://api.example/a?$skip=10"}),
                json!({"skip": "10"}),
            ),
            (
                &["starting_after"],
                "",
                json!({"has_more": true, "data": [{"id": "a"}, {"id": "b"}]}),
                json!({"starting_after": "b"}),
            ),
            (
                &["after"],
                "",
                json!({"has_more": true, "data": [{"id": "a"}, {"id": "b"}]}),
                json!({"after": "b"}),
            ),
            (
                &["cursor", "after"],
                "",
                json!({"has_more": true, "data": [{"id": "a"}], "next_cursor": "c"}),
                json!({"cursor": "c"}),
            ),
            (
                &["after"],
                "",
                json!({"has_more": false, "data": [{"id": "a"}]}),
                Value::Null,
            ),
            (
                &["continue"],
                "",
                json!({"metadata": {"continue": "c"}, "items": []}),
                json!({"continue": "c"}),
            ),
            (
                &["continue"],
                "",
                json!({"continue": "c", "items": []}),
                Value::Null,
            ),
            (&["cursor"], "", json!({"next_cursor": ""}), Value::Null),
            (&["cursor"], "", json!({"next_cursor": null}), Value::Null),
        ] {
            assert_eq!(
                hinted(parameters, "", link, &body),
                expected,
                "{parameters:?} {link} {body}"
            );
        }
        let same = "?cursor=q&after=z";
        assert_eq!(
            hinted(&["cursor"], same, "", &json!({"next_cursor": "q"})),
            UNREACHABLE
        );
        assert_eq!(
            hinted(
                &["after"],
                same,
                "",
                &json!({"paging": {"cursors": {"after": "z"}}})
            ),
            Value::Null
        );
    }
}
