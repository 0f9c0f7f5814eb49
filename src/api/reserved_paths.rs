//! Paths that a value must not reach: those of other operations, in particular hidden ones. A value with slashes must reach none; if callers
//! have different tools, a value without slashes must not either: servers prefer `/reports/payroll` to `/reports/{id}`.

use std::collections::{HashMap, HashSet};

use http::Method;
use percent_encoding::percent_decode_str;

use super::bound_tool::BoundTool;
use crate::annotate::AnnotateOptions;
use crate::proxy::PathPattern;
use crate::proxy::request::reserved_path::{MAYBE_SLASH, normalized};
use crate::spec::node::Node;
use crate::spec::operation::template::TemplatePart;
use crate::spec::{Document, Operation, PathTemplate, pointer};

/// An operation of the document, whether or not there is a tool for it.
pub(crate) struct KnownPath {
    pointer: String,
    method: Method,
    template: PathTemplate,
    /// True if the operation has servers of its own.
    has_own_base: bool,
}

/// The methods of operations in a path item (OpenAPI 3.2 section 4.9.1).
const METHODS: [&str; 9] = ["get", "put", "post", "delete", "options", "head", "patch", "trace", "query"];

/// Returns the paths of all operations of the document, before any is hidden, and those that could not be read; none if no rule lets values
/// hold slashes, and all callers have the same tools.
pub(crate) fn known_paths(document: &Document, operations: &[Box<Operation>], options: &AnnotateOptions) -> Vec<KnownPath> {
    let mut rules = options.layers.rules.iter();
    if rules.all(|rule| rule.says.slashes.is_empty()) && !depends_on_caller(options) {
        return Vec::new();
    }
    let known = |operation: &Operation| KnownPath {
        pointer: operation.pointer.clone(),
        method: operation.method.clone(),
        template: PathTemplate::clone(&operation.template),
        has_own_base: !operation.servers.is_empty(),
    };
    let mut all: Vec<KnownPath> = operations.iter().map(Box::as_ref).map(known).collect();
    all.extend(unread_paths(document, operations));
    all
}

/// The operations that could not be read: the API serves them nevertheless.
fn unread_paths(document: &Document, operations: &[Box<Operation>]) -> Vec<KnownPath> {
    let read: HashSet<&str> = operations.iter().map(|operation| operation.pointer.as_str()).collect();
    let mut unread = Vec::new();
    let Some(paths) = document.member("paths").and_then(Node::object) else {
        return unread;
    };
    for (path, item) in paths.iter() {
        let (Ok(template), Some(item)) = (PathTemplate::parse(path), item.object()) else {
            continue;
        };
        for (key, operation) in item.iter().filter(|(key, _)| METHODS.contains(key)) {
            let pointer = pointer::fragment(["paths", path, key]);
            if let Ok(method) = Method::from_bytes(key.to_ascii_uppercase().as_bytes())
                && !read.contains(pointer.as_str())
            {
                unread.push(KnownPath {
                    pointer,
                    method,
                    template: template.clone(),
                    has_own_base: operation.object().is_some_and(|operation| operation.get("servers").is_some()),
                });
            }
        }
    }
    unread
}

/// Path of a GET operation of the document.
pub(super) struct ReadPath {
    pub(super) pattern: PathPattern,
    /// Place of its tool; `None` if there is none.
    pub(super) tool: Option<usize>,
}

/// Returns the paths of all GET operations of the document, those without a tool included. It opens each path item, and no operation.
pub(super) fn read_paths(document: &Document, tools: &[BoundTool]) -> Vec<ReadPath> {
    let places: HashMap<&str, usize> = tools
        .iter()
        .enumerate()
        .map(|(place, tool)| (tool.target.operation.pointer.as_str(), place))
        .collect();
    let paths = document.member("paths").and_then(Node::object).unwrap_or_default();
    let read = |(path, item): (&str, Node<'_>)| {
        let item = item.object()?;
        let referred = item.get("$ref").and_then(|reference| {
            let target = document.target(&reference.string()?, reference).ok()?;
            document.resolve(target).ok()?.object()
        });
        let operation = item.get("get").or_else(|| referred.as_ref()?.get("get"))?;
        let tool = places.get(pointer::fragment(["paths", path, "get"]).as_str()).copied();
        let spans = tool
            .and_then(|place| tools.get(place))
            .map(|tool| spanning(&tool.target.operation).1);
        let spans = spans.unwrap_or_default();
        let template = PathTemplate::parse(path).ok()?;
        let pattern = PathPattern::of(&template, |name| spans.iter().any(|spanning| spanning == name));
        let mut around = [Some(&item), referred.as_ref()].into_iter().flatten();
        let has_own_base = around.any(|item| item.get("servers").is_some())
            || operation.object().is_some_and(|operation| operation.get("servers").is_some());
        Some(ReadPath {
            pattern: if has_own_base { pattern.behind_any_base() } else { pattern },
            tool,
        })
    };
    paths.iter().filter_map(read).collect()
}

/// Returns the readings of a path by servers: as it is; decoded until nothing is encoded; so without parameters of segments and without
/// empty segments; and so without the name of a format at its end. A slash or backslash that is encoded is [`MAYBE_SLASH`] in them.
pub(super) fn path_readings(path: &str) -> [String; 5] {
    let decoded: Vec<String> = path.split('/').map(decoded_segment).collect();
    let decoded = decoded.join("/");
    let by_slash = without_parameters(&decoded, |character| character == '/');
    let by_any_slash = without_parameters(&decoded, |character| matches!(character, '/' | MAYBE_SLASH));
    let without_format = without_format(&by_any_slash).to_owned();
    [path.to_owned(), decoded, by_slash, by_any_slash, without_format]
}

/// Drops the name of a format: some servers answer `/reports.json` with what is at `/reports`.
fn without_format(path: &str) -> &str {
    let is_format = |format: &str| (1..=5).contains(&format.len()) && format.bytes().all(|byte| byte.is_ascii_alphanumeric());
    match path.rsplit_once('.') {
        Some((plain, format)) if is_format(format) && !plain.ends_with(['/', MAYBE_SLASH]) => plain,
        _ => path,
    }
}

/// Decodes a segment until nothing is encoded.
fn decoded_segment(segment: &str) -> String {
    let mut decoded = segment.to_owned();
    loop {
        let next = percent_decode_str(&decoded).decode_utf8_lossy().into_owned();
        if next == decoded {
            return decoded.replace(['/', '\\'], &MAYBE_SLASH.to_string());
        }
        decoded = next;
    }
}

/// Drops parameters of segments (RFC 3986 section 3.3), and empty segments.
fn without_parameters(path: &str, is_slash: impl Fn(char) -> bool) -> String {
    let mut plain = String::new();
    for segment in path.split_inclusive(&is_slash).scan('/', |before, segment| {
        let slash = std::mem::replace(before, segment.chars().next_back().unwrap_or('/'));
        Some((slash, segment.trim_end_matches(&is_slash)))
    }) {
        let (slash, name) = (segment.0, segment.1.split(';').next().unwrap_or_default());
        if !name.is_empty() {
            plain.push(slash);
            plain.push_str(name);
        }
    }
    if plain.is_empty() { "/".to_owned() } else { plain }
}

/// Returns true if callers have different tools.
fn depends_on_caller(options: &AnnotateOptions) -> bool {
    !options.access.is_empty() || !options.shares.is_empty()
}

/// Gives each tool whose values may hold slashes the paths of other operations of its method; if callers have different tools, also each
/// other tool with variables. The variables of an operation without a tool may span segments, because their values are unknown; those of a
/// tool span one segment, unless the operator says otherwise.
pub(crate) fn reserve_paths(tools: &mut [BoundTool], known: &[KnownPath], options: &AnnotateOptions) {
    let guards_all = depends_on_caller(options);
    let offered: Vec<(String, Vec<String>)> = tools.iter().map(|tool| spanning(&tool.target.operation)).collect();
    for (tool, (own, spans)) in tools.iter_mut().zip(&offered) {
        let operation = &tool.target.operation;
        if spans.is_empty() && !guards_all {
            continue;
        }
        let others = known
            .iter()
            .filter(|other| is_same_to_servers(&other.method, &operation.method) && other.pointer != *own)
            .filter(|other| !spans.is_empty() || may_meet(&operation.template, &other.template));
        let patterns = others.map(|other| {
            let shown = offered.iter().find(|(pointer, _)| *pointer == other.pointer);
            let pattern = PathPattern::of(&other.template, |name| {
                shown.is_none_or(|(_, spans)| spans.iter().any(|spanning| spanning == name))
            });
            let pattern = if other.has_own_base { pattern.behind_any_base() } else { pattern };
            if guards_all { pattern.against_any_value() } else { pattern }
        });
        let reserved = patterns.filter(|pattern| !pattern.covers(&operation.template)).collect();
        tool.target.reserved_paths = reserved;
    }
}

/// Returns true if a path can have both templates, although they differ: as many segments, of which none is another text in each.
fn may_meet(ours: &PathTemplate, theirs: &PathTemplate) -> bool {
    let is_variable = |segment: &[TemplatePart]| segment.iter().any(|part| matches!(part, TemplatePart::Variable(_)));
    let text = |segment: &[TemplatePart]| normalized(&segment.iter().map(literal).collect::<String>());
    let is_same = |ours: &[TemplatePart], theirs: &[TemplatePart]| is_variable(ours) || is_variable(theirs) || text(ours) == text(theirs);
    ours.segments.len() == theirs.segments.len()
        && ours.segments.iter().any(|segment| is_variable(segment))
        && ours
            .segments
            .iter()
            .zip(&theirs.segments)
            .all(|(ours, theirs)| is_same(ours, theirs))
}

fn literal(part: &TemplatePart) -> &str {
    match part {
        TemplatePart::Literal(literal) => literal,
        TemplatePart::Variable(_) => "",
    }
}

/// Many servers run what answers GET for HEAD as well (RFC 9110 section 9.3.2).
fn is_same_to_servers(one: &Method, other: &Method) -> bool {
    one == other || matches!((one, other), (&Method::GET, &Method::HEAD) | (&Method::HEAD, &Method::GET))
}

/// The operation's place, and which of its path parameters may hold slashes.
fn spanning(operation: &Operation) -> (String, Vec<String>) {
    let spanning = operation.parameters.iter().filter(|parameter| parameter.slashes);
    (
        operation.pointer.clone(),
        spanning.map(|parameter| parameter.name.clone()).collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p1_no_reading_of_a_path_passes_by_a_closed_template() {
        let reaches = |template: &str, path: &str| {
            let pattern = PathPattern::of(&PathTemplate::parse(template).unwrap(), |_| false);
            path_readings(path).iter().any(|reading| pattern.is_reached_by(reading, reading))
        };
        for path in [
            "/projects/1/variables",
            "/Projects/1/variables/",
            "/projects/group%2Fapp/variables",
            "/projects/group%252Fapp/variables",
            "/projects/%2Fa/variables",
            "/projects/a%3Bb/variables",
            "/projects/%3Ba/variables",
            "/projects/;a/variables",
            "/projects/a;x%2Fy/variables",
            "/projects/a%5Cb/variables",
            "/projects%2F1%2Fvariables",
            "/projects%5C1%5Cvariables%5C",
            "/projects/1/variables%5C",
            "/projects/1/variables%2F",
            "//projects;x=%2F//1/variables;y",
            "/projects%2fa%252Fb%2Fvariables",
            "/%70rojects/1/%2576ariables",
            "/projects/1/variables.json",
            "/projects/1/variables%2Exml/",
            "/projects/1/variables;x.json",
        ] {
            assert!(reaches("/projects/{id}/variables", path), "{path}");
        }
        for path in [
            "/projects/a/b/variables",
            "/projects/1",
            "/projects/variables",
            "/projects/1/variables/2",
            "/projects/1/variables/.json",
            "/projects/1/variables.of-others",
            "/projects/group%2Fapp/exports",
        ] {
            assert!(!reaches("/projects/{id}/variables", path), "{path}");
        }
        assert!(!reaches("/projects/{id}", "/projects/group%2Fapp/exports/7"));
        assert!(reaches("/", "/%2F") && reaches("/admin/keys", "/admin%5Ckeys") && reaches("/payroll", "/payroll;a%2Fb"));
    }
}
