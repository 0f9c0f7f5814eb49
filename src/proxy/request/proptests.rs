//! Properties of requests: in the styles that can be read back, each value is read back; and for all
//! arguments, no part of a value becomes anything but a value.

use http::header::COOKIE;
use percent_encoding::percent_decode_str;
use proptest::prelude::*;
use serde_json::{Value, json};
use url::Url;

use super::target::BaseUrl;
use super::{ExpectedReply, RequestTemplate, build};
use crate::call_error::CallError;
use crate::credentials::authenticator::Injected;
use crate::json::JsonObject;
use crate::outbound::request::Request;
use crate::spec::{Document, operations};

fn request(path: &str, operation: &Value, arguments: &Value) -> Result<Request, CallError> {
    let text = json!({"openapi": "3.2.0", "paths": { path: { "post": operation } }}).to_string();
    let document = Document::parse(text.into_bytes(), None).unwrap();
    let (operations, diagnostics) = operations(&document);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let base = BaseUrl::new(Url::parse("https://h.example:8443/v1").unwrap());
    let template = RequestTemplate {
        document: &document,
        operation: &operations[0],
        base: &base,
        expected: &ExpectedReply::new(&document, &operations[0]),
        injected: &Injected::default(),
        files: None,
        guard: None,
    };
    build(&template, arguments.as_object().unwrap())
}

/// A style in a location, with the separators of its values, which the values must not contain.
#[derive(Debug, Clone, Copy)]
struct Cell {
    location: &'static str,
    style: &'static str,
    explode: bool,
    /// Separator of items or members.
    separator: &'static str,
    /// Separator of a member and its value.
    pair: &'static str,
    /// Characters that are not encoded in a value, and so not distinguishable from a separator.
    ambiguous: &'static str,
}

const fn cell(
    location: &'static str,
    style: &'static str,
    explode: bool,
    (separator, pair): (&'static str, &'static str),
    ambiguous: &'static str,
) -> Cell {
    Cell {
        location,
        style,
        explode,
        separator,
        pair,
        ambiguous,
    }
}

/// Every cell of the style table (OAS "Style Values") whose values can be read back.
const CELLS: [Cell; 17] = [
    cell("path", "simple", false, (",", ","), ""),
    cell("path", "simple", true, (",", "="), ""),
    cell("path", "label", false, (",", ","), ""),
    cell("path", "label", true, (".", "="), "."),
    cell("path", "matrix", false, (",", ","), ""),
    cell("path", "matrix", true, (";", "="), ""),
    cell("query", "form", false, (",", ","), ""),
    cell("query", "form", true, ("&", "="), ""),
    cell("query", "spaceDelimited", false, ("%20", "%20"), " "),
    cell("query", "pipeDelimited", false, ("%7C", "%7C"), "|"),
    cell("query", "deepObject", true, ("&", "="), ""),
    cell("header", "simple", false, (",", ","), ",\t "),
    cell("header", "simple", true, (",", "="), ",=\t "),
    cell("cookie", "form", false, (",", ","), ""),
    cell("cookie", "form", true, ("&", "="), ""),
    cell("cookie", "cookie", false, (",", ","), ",%"),
    cell("cookie", "cookie", true, ("; ", "="), "%"),
];

impl Cell {
    /// The text of the parameter in the request, without what every value of this cell begins with.
    fn written(&self, request: &Request) -> String {
        let after = |text: &str, start: &str| {
            text.strip_prefix(start)
                .unwrap_or_else(|| panic!("{text} after {start}"))
                .to_owned()
        };
        match self.location {
            "path" => {
                let segment = after(request.url.path(), "/v1/a/");
                match self.style {
                    "label" => after(&segment, "."),
                    "matrix" => after(&segment, ";"),
                    _ => segment,
                }
            }
            "query" => request.url.query().unwrap_or_default().to_owned(),
            "header" => request.headers["p"].to_str().unwrap().to_owned(),
            _ => request.headers[COOKIE].to_str().unwrap().to_owned(),
        }
    }

    fn decoded(&self, text: &str) -> String {
        if self.location == "header" {
            text.to_owned()
        } else {
            percent_decode_str(text).decode_utf8().unwrap().into_owned()
        }
    }

    /// Returns true if each item is written with the parameter's name.
    fn is_named(&self) -> bool {
        matches!(self.location, "query" | "cookie") || self.style == "matrix"
    }

    fn unnamed<'t>(&self, text: &'t str) -> &'t str {
        if self.is_named() {
            // RFC 6570 section 3.2.7: `;p` is an empty `p`.
            let rest = text.strip_prefix('p').unwrap();
            rest.strip_prefix('=').unwrap_or(rest)
        } else {
            text
        }
    }

    fn list(&self, text: &str) -> Vec<String> {
        if self.explode {
            return text
                .split(self.separator)
                .map(|item| self.decoded(self.unnamed(item)))
                .collect();
        }
        self.unnamed(text)
            .split(self.separator)
            .map(|item| self.decoded(item))
            .collect()
    }

    fn object(&self, text: &str) -> Vec<(String, String)> {
        if !self.explode {
            let all: Vec<_> = self
                .unnamed(text)
                .split(self.separator)
                .map(|item| self.decoded(item))
                .collect();
            return all
                .chunks(2)
                .map(|pair| (pair[0].clone(), pair[1].clone()))
                .collect();
        }
        let pairs = text
            .split(self.separator)
            .map(|pair| pair.split_once(self.pair).unwrap());
        pairs
            .map(|(key, value)| {
                let key = self.decoded(key);
                let key = match self.style {
                    "deepObject" => key
                        .strip_prefix("p[")
                        .unwrap()
                        .strip_suffix(']')
                        .unwrap()
                        .to_owned(),
                    _ => key,
                };
                (key, self.decoded(value))
            })
            .collect()
    }

    fn request(&self, value: &Value) -> Result<Request, CallError> {
        let parameter = json!({"name": "p", "in": self.location, "required": self.location == "path", "style": self.style, "explode": self.explode});
        let path = if self.location == "path" {
            "/a/{p}"
        } else {
            "/a"
        };
        request(
            path,
            &json!({"parameters": [parameter]}),
            &json!({ "p": value }),
        )
    }

    /// Reduces a text to the characters that this cell can carry.
    fn fit(&self, text: &str) -> String {
        let fits = |character: &char| {
            !self.ambiguous.contains(*character)
                && (self.location != "header" || character.is_ascii())
        };
        text.chars().filter(fits).collect()
    }
}

/// Texts full of what means something in a URL, a header, a cookie, a form, or a multipart body.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z./\\\\?#&=;,:@%+|\\[\\]\"' $!*()<>{}^`~_-]{1,10}",
        "[ -~ä漢😀]{1,12}",
        Just("%2e%2e%2f".to_owned()),
        Just("a&admin=1; sid=2, b".to_owned()),
        Just("[0]".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn every_style_that_can_be_read_back_reads_back_as_it_was(
        items in proptest::collection::vec(text(), 1..4), members in proptest::collection::btree_map(text(), text(), 1..4)
    ) {
        for cell in CELLS {
            let items: Vec<String> = items.iter().map(|item| cell.fit(item)).collect();
            let members: JsonObject = members.iter().map(|(key, value)| (cell.fit(key), Value::String(cell.fit(value)))).collect();
            // A path may refuse what would be a dot segment or none at all; nothing else is
            // refused.
            let made = |value: &Value| match cell.request(value) {
                Ok(request) => Some(cell.written(&request)),
                Err(error) => {
                    assert_eq!(cell.location, "path", "{cell:?} {value}: {error}");
                    None
                }
            };
            if !matches!(cell.style, "spaceDelimited" | "pipeDelimited" | "deepObject") {
                let first = &items[0];
                if let Some(written) = made(&json!(first)) {
                    prop_assert_eq!(&cell.decoded(cell.unnamed(&written)), first, "{:?}", cell);
                }
            }
            if cell.style != "deepObject" && let Some(written) = made(&json!(items)) {
                prop_assert_eq!(cell.list(&written), items, "{:?} {}", cell, written);
            }
            // A member with the name of the parameter itself is not another parameter.
            if let Some(written) = made(&Value::Object(members.clone())) {
                let expected: Vec<_> = members.iter().map(|(key, value)| (key.clone(), value.as_str().unwrap().to_owned())).collect();
                prop_assert_eq!(cell.object(&written), expected, "{:?} {}", cell, written);
            }
        }
    }

    #[test]
    fn no_text_becomes_anything_but_a_value(any in prop_oneof![3 => text(), 1 => any::<String>()], key in text(), kept: bool) {
        let parameters = json!([
            {"name": "p", "in": "path", "required": true, "allowReserved": kept}, {"name": "m", "in": "path", "required": true, "style": "matrix"},
            {"name": "q", "in": "query", "allowReserved": kept}, {"name": "deep", "in": "query", "style": "deepObject"},
            {"name": "flat", "in": "query", "explode": false, "allowReserved": kept}, {"name": "json", "in": "query", "content": {"application/json": {}}},
            {"name": "X-H", "in": "header"}, {"name": "c", "in": "cookie"}, {"name": "d", "in": "cookie", "explode": false}
        ]);
        let encoding = json!({"styled": {"style": "deepObject", "explode": true}, "open": {"allowReserved": true}});
        for media_type in ["application/x-www-form-urlencoded", "multipart/form-data"] {
            let operation = json!({"parameters": parameters, "requestBody": {"content": {media_type: {"encoding": encoding}}}});
            let made = |any: &str, key: &str, in_path: &str, in_header: &str| {
                let value = json!({
                    "p": in_path, "m": in_path, "q": any, "deep": {key: any}, "flat": {key: any}, "json": {key: any}, "X-H": in_header, "c": any, "d": [any, any],
                    "body": {"plain": any, "open": any, "styled": {key: any}, "object": {key: any}, "list": [any, any], format!("k{key}"): any}
                });
                request("/a/{p}/b/{m}", &operation, &value).map(|request| shape(&request))
            };
            let plain = made("x", "k", "x", "x").unwrap();
            for (in_path, in_header) in [("x", "x"), (any.as_str(), "x"), ("x", any.as_str())] {
                match made(&any, &key, in_path, in_header) {
                    Ok(shape) => prop_assert_eq!(&shape, &plain),
                    // What a segment, a header, or any URL cannot hold is refused.
                    Err(_) => prop_assert!(in_path != "x" || in_header != "x" || any.chars().any(char::is_control)),
                }
            }
        }
    }
}

/// All parts of a request but its values.
fn shape(request: &Request) -> Vec<String> {
    let url = &request.url;
    let mut shape = vec![format!("{}", url.origin().ascii_serialization())];
    let segments: Vec<&str> = url.path().split('/').collect();
    shape.push(format!(
        "{} segments, {:?} and {}",
        segments.len(),
        &segments[..3],
        segments[4]
    ));
    shape.push(format!(
        "fragment {:?}, user {:?}",
        url.fragment(),
        url.username()
    ));
    let keys = url
        .query()
        .unwrap_or_default()
        .split('&')
        .map(|pair| pair.split('=').next().unwrap());
    shape.extend(keys.map(|key| key.split("%5B").next().unwrap().to_owned()));
    shape.extend(request.headers.keys().map(ToString::to_string));
    let cookies = request.headers[COOKIE].to_str().unwrap();
    shape.extend(
        cookies
            .split([';', ','])
            .map(|cookie| cookie.split('=').next().unwrap().to_owned())
            .filter(|name| name.starts_with([' ', 'c', 'd']))
            .take(2),
    );
    shape.push(format!("{} cookies", cookies.matches(';').count() + 1));
    let bytes = request.body.as_ref().unwrap().bytes().unwrap();
    let text = std::str::from_utf8(bytes).unwrap();
    let content_type = request.headers["content-type"].to_str().unwrap();
    let parts = match content_type.split_once("boundary=") {
        Some((_, boundary)) => text
            .split(&format!("--{boundary}"))
            .map(|part| {
                part.matches("Content-Disposition: form-data; name=")
                    .count()
            })
            .filter(|count| *count > 0)
            .count(),
        None => text.split('&').count(),
    };
    shape.push(format!("{parts} parts"));
    shape
}
