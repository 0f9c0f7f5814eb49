//! The paths of all operations of a document, so that no value and no URL of a reply reaches one
//! that its caller may not call. Servers differ in how they read a path: see `path_readings.rs`.

use std::collections::{HashMap, HashSet};

use http::Method;

use super::path_readings::{
    ANY_VALUE, Segment, folded, fully_decoded, path_readings, without_format,
};
use crate::caller::client_grant::ShownTools;
use crate::spec::operation::template::TemplatePart;
use crate::spec::{Operation, PathTemplate};

/// An operation of the document, whether or not there is a tool for it.
pub(crate) struct DeclaredOperation<'d> {
    /// Its method.
    pub(crate) method: Method,
    /// Its path.
    pub(crate) template: &'d PathTemplate,
    /// The path parameters that may hold slashes.
    pub(crate) slashes: Vec<&'d str>,
    /// True if it has servers of its own, whose base path is not compared.
    pub(crate) has_own_base: bool,
    /// Its tool; `None` if there is none.
    pub(crate) tool: Option<DeclaredTool>,
}

/// The tool of an operation.
#[derive(Clone, Copy)]
pub(crate) struct DeclaredTool {
    /// Its place among the tools of the API.
    pub(crate) place: usize,
    /// True if it is read-only.
    pub(crate) is_read_only: bool,
    /// True if a person must confirm each call.
    pub(crate) must_confirm: bool,
}

/// A path that is to be requested.
pub(crate) struct AskedPath<'p> {
    /// The path of the URL.
    pub(crate) full: &'p str,
    /// The number of bytes of its base path.
    pub(crate) base: usize,
    /// True if that base path is not the one of the other operations.
    pub(crate) has_own_base: bool,
    /// For each slash below the base path, true if it is in a value; `None` if no value may hold
    /// slashes.
    pub(crate) in_value: Option<Vec<bool>>,
}

/// Keeps the path of a call, and the URLs of its replies, from operations that the caller may not
/// call.
#[derive(Clone, Copy)]
pub(crate) struct PathGuard<'a> {
    /// The paths of all operations.
    pub(crate) paths: &'a ClosedPaths,
    /// The tools that the caller may list.
    pub(crate) shown: &'a ShownTools,
    /// True if only what reads may be reached: hosts allow a tool that reads without a question.
    pub(crate) reads_only: bool,
}

/// The paths of all operations of a document, as a tree of their segments.
pub(crate) struct ClosedPaths {
    nodes: Vec<PathNode>,
    operations: Vec<KnownOperation>,
    /// Methods of which every caller may not call some operation.
    closed_methods: HashSet<Method>,
    /// Methods of tools that are not read-only.
    writing_methods: HashSet<Method>,
}

/// The root of the paths below the base path, and that of the paths below any base path.
const ROOT: usize = 0;
const ROOT_OF_ANY_BASE: usize = 1;

#[derive(Default)]
struct PathNode {
    literals: HashMap<Box<str>, usize>,
    patterns: HashMap<SegmentPattern, usize>,
    /// The pattern of its own segment, if that has variables.
    pattern: Option<SegmentPattern>,
    /// The operations whose paths end here.
    operations: Vec<usize>,
}

struct KnownOperation {
    method: Method,
    tool: Option<DeclaredTool>,
}

/// A segment with variables, each of which stands for at least one character.
#[derive(Clone, PartialEq, Eq, Hash)]
struct SegmentPattern {
    /// The literal texts, with `None` for each variable.
    pieces: Vec<Option<String>>,
    /// True if a variable may hold slashes.
    has_slashes: bool,
}

impl PathGuard<'_> {
    fn shows(&self, tool: DeclaredTool) -> bool {
        (!self.reads_only || tool.is_read_only) && self.shown.has(tool.place, tool.is_read_only)
    }

    /// Returns true if the request of an operation may not be sent, because servers may read its
    /// path as that of an operation that the caller may not call freely: one without a tool, one
    /// that the caller may not list, or one that a person must confirm. A value that may hold
    /// slashes must reach no other operation.
    pub(crate) fn refuses(&self, operation: &Operation, asked: &AskedPath<'_>) -> bool {
        let &Self { paths, shown, .. } = self;
        let method = merged(&operation.method);
        let has_slashes = asked.in_value.is_some();
        let may_be_closed = paths.closed_methods.contains(&method)
            || shown.permissions.is_some()
            || (self.reads_only || shown.reads_only) && paths.writing_methods.contains(&method);
        if !has_slashes && !may_be_closed {
            return false;
        }
        let Some(mut reached) = paths.reached(asked, &method) else {
            return true;
        };
        let is_closed = |tool: DeclaredTool| tool.must_confirm || !self.shows(tool);
        reached.retain(|other| has_slashes || paths.tool(*other).is_none_or(is_closed));
        // What answers every path of the operation is not reached by a value.
        !reached.is_empty()
            && !reached.is_subset(&paths.reached_by_template(&operation.template, asked, &method))
    }

    /// Returns true if servers may read the path of a URL as that of a GET operation that acts, or
    /// that the caller may not list. The operation that a rule names counts as listed, and so does
    /// one that answers every path of it.
    pub(crate) fn refuses_url(&self, asked: &AskedPath<'_>, named: Option<&PathTemplate>) -> bool {
        let paths = self.paths;
        let own = named
            .map(|named| paths.reached_by_template(named, asked, &Method::GET))
            .unwrap_or_default();
        let is_listed = |other: usize| {
            let tool = paths.tool(other);
            own.contains(&other) || tool.is_some_and(|tool| tool.is_read_only && self.shows(tool))
        };
        let reached = paths.reached(asked, &Method::GET);
        !reached.is_some_and(|reached| reached.into_iter().all(is_listed))
    }
}

impl ClosedPaths {
    /// Reads the paths of all operations of a document.
    pub(crate) fn new<'d>(declared: impl Iterator<Item = DeclaredOperation<'d>>) -> Self {
        let mut paths = Self {
            nodes: vec![PathNode::default(), PathNode::default()],
            operations: Vec::new(),
            closed_methods: HashSet::new(),
            writing_methods: HashSet::new(),
        };
        declared.for_each(|operation| paths.add(&operation));
        paths
    }

    fn add(&mut self, declared: &DeclaredOperation<'_>) {
        // Many servers run what answers GET for HEAD as well (RFC 9110 section 9.3.2).
        let method = merged(&declared.method);
        if declared.tool.is_some_and(|tool| !tool.is_read_only) {
            self.writing_methods.insert(method.clone());
        }
        if declared.tool.is_none_or(|tool| tool.must_confirm) {
            self.closed_methods.insert(method.clone());
        }
        let root = if declared.has_own_base {
            ROOT_OF_ANY_BASE
        } else {
            ROOT
        };
        let segments = declared.template.segments.iter();
        let mut patterns: Vec<SegmentPattern> = segments
            .map(|segment| SegmentPattern::of(segment, &declared.slashes))
            .filter(|pattern| pattern.literal() != Some(""))
            .collect();
        let mut ends = vec![self.node_at(root, &patterns)];
        // Servers that take the name of a format behind a path also answer it without.
        if let Some(without_format) = patterns.last().and_then(SegmentPattern::without_format) {
            patterns.pop();
            patterns.push(without_format);
            ends.push(self.node_at(root, &patterns));
        }
        for end in ends {
            if let Some(node) = self.nodes.get_mut(end) {
                node.operations.push(self.operations.len());
            }
        }
        self.operations.push(KnownOperation {
            method,
            tool: declared.tool,
        });
    }

    /// Returns the node of a path, which is made if it is not there.
    fn node_at(&mut self, root: usize, patterns: &[SegmentPattern]) -> usize {
        patterns.iter().fold(root, |parent, pattern| {
            let next = self.nodes.len();
            let Some(node) = self.nodes.get_mut(parent) else {
                return parent;
            };
            let literal = pattern.literal();
            let child = match literal {
                Some(literal) => *node.literals.entry(literal.into()).or_insert(next),
                None => *node.patterns.entry(pattern.clone()).or_insert(next),
            };
            if child == next {
                self.nodes.push(PathNode {
                    pattern: literal.is_none().then(|| pattern.clone()),
                    ..PathNode::default()
                });
            }
            child
        })
    }

    fn tool(&self, operation: usize) -> Option<DeclaredTool> {
        self.operations.get(operation)?.tool
    }

    /// Returns the operations of a method that answer every path of a template.
    fn reached_by_template(
        &self,
        template: &PathTemplate,
        asked: &AskedPath<'_>,
        method: &Method,
    ) -> HashSet<usize> {
        let mut path = String::new();
        for segment in &template.segments {
            path.push('/');
            for part in segment {
                path.push_str(match part {
                    TemplatePart::Literal(literal) => literal,
                    TemplatePart::Variable(_) => ANY_VALUE,
                });
            }
        }
        let base = asked.full.get(..asked.base).unwrap_or_default();
        let own = AskedPath {
            full: &format!("{base}{path}"),
            in_value: None,
            ..*asked
        };
        self.reached(&own, method).unwrap_or_default()
    }

    /// Returns the operations of a method that a path may be read as; `None` if it has too many
    /// readings.
    fn reached(&self, asked: &AskedPath<'_>, method: &Method) -> Option<HashSet<usize>> {
        let mut reached = HashSet::new();
        let in_value = asked.in_value.as_deref().unwrap_or_default();
        if !asked.has_own_base {
            for reading in path_readings(asked.full.get(asked.base..)?, in_value)? {
                self.walk(ROOT, &reading, false, &mut reached);
            }
        }
        let of_any_base = self.nodes.get(ROOT_OF_ANY_BASE);
        if asked.has_own_base || of_any_base.is_some_and(|root| !root.is_leaf()) {
            let base_slashes = asked.full.get(..asked.base)?.matches('/').count();
            let in_value = [&vec![false; base_slashes], in_value].concat();
            for reading in path_readings(asked.full, &in_value)? {
                self.walk(ROOT_OF_ANY_BASE, &reading, true, &mut reached);
                if asked.has_own_base {
                    self.walk(ROOT, &reading, true, &mut reached);
                }
            }
        }
        let has_method = |known: &KnownOperation| known.method == *method;
        reached.retain(|operation| self.operations.get(*operation).is_some_and(has_method));
        Some(reached)
    }

    /// Collects the operations at whose paths a reading ends; with `begins_anywhere`, behind any
    /// number of segments.
    fn walk(
        &self,
        root: usize,
        reading: &[Segment],
        begins_anywhere: bool,
        reached: &mut HashSet<usize>,
    ) {
        // The nodes at which what was read so far may be, each with whether its own segment may be
        // complete: a variable can go on over the slashes of a value.
        let mut places = vec![(root, true)];
        for segment in reading {
            let text = segment.text.as_str();
            let mut next = Vec::new();
            for (place, is_complete) in places {
                let Some(node) = self.nodes.get(place) else {
                    continue;
                };
                let goes_on =
                    |pattern: &&SegmentPattern| segment.is_in_value || pattern.has_slashes;
                if let Some(pattern) = node.pattern.as_ref().filter(goes_on) {
                    next.push((place, false));
                    next.extend(pattern.may_end(text).then_some((place, true)));
                }
                if is_complete {
                    next.extend(node.literals.get(text).map(|child| (*child, true)));
                    let patterns = node.patterns.iter();
                    for (pattern, child) in patterns.filter(|(pattern, _)| pattern.may_begin(text))
                    {
                        next.push((*child, false));
                        next.extend(pattern.fits(text).then_some((*child, true)));
                    }
                }
            }
            // The length of a base path of an operation is not known.
            next.extend(begins_anywhere.then_some((root, true)));
            next.sort_unstable();
            next.dedup();
            places = next;
        }
        let complete = places.into_iter().filter(|(_, is_complete)| *is_complete);
        let ends = complete.filter_map(|(place, _)| self.nodes.get(place));
        reached.extend(ends.flat_map(|node| node.operations.iter().copied()));
    }
}

impl PathNode {
    fn is_leaf(&self) -> bool {
        self.literals.is_empty() && self.patterns.is_empty() && self.operations.is_empty()
    }
}

fn merged(method: &Method) -> Method {
    if *method == Method::HEAD {
        Method::GET
    } else {
        method.clone()
    }
}

impl SegmentPattern {
    fn of(segment: &[TemplatePart], slashes: &[&str]) -> Self {
        let mut pattern = Self {
            pieces: Vec::new(),
            has_slashes: false,
        };
        for part in segment {
            pattern.pieces.push(match part {
                TemplatePart::Literal(literal) => Some(folded(&fully_decoded(literal))),
                TemplatePart::Variable(name) => {
                    pattern.has_slashes |= slashes.contains(&name.as_str());
                    None
                }
            });
        }
        pattern
    }

    /// Returns its text if it has no variable.
    fn literal(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [] => Some(""),
            [Some(literal)] => Some(literal),
            _ => None,
        }
    }

    /// Returns true if a value can begin with this text. The pattern of a literal has no node.
    fn may_begin(&self, text: &str) -> bool {
        let literal = self.pieces.first().and_then(Option::as_deref);
        literal.is_none_or(|literal| text.starts_with(literal))
    }

    /// Returns true if a value can end with this text.
    fn may_end(&self, text: &str) -> bool {
        let literal = self.pieces.last().and_then(Option::as_deref);
        literal.is_none_or(|literal| text.ends_with(literal))
    }

    /// Returns true if the text is a segment of this pattern.
    fn fits(&self, text: &str) -> bool {
        if !self.may_end(text) {
            return false;
        }
        let mut rest = text;
        let mut is_behind_variable = false;
        for (index, piece) in self.pieces.iter().enumerate() {
            match piece {
                None => {
                    let mut characters = rest.chars();
                    if characters.next().is_none() {
                        return false;
                    }
                    rest = characters.as_str();
                }
                Some(literal) if !is_behind_variable => match rest.strip_prefix(literal.as_str()) {
                    Some(after) => rest = after,
                    None => return false,
                },
                Some(literal) if index + 1 == self.pieces.len() => {
                    return rest.ends_with(literal.as_str());
                }
                Some(literal) => match rest.split_once(literal.as_str()) {
                    Some((_, after)) => rest = after,
                    None => return false,
                },
            }
            is_behind_variable = piece.is_none();
        }
        is_behind_variable || rest.is_empty()
    }

    /// Returns the same without the name of a format at its end: `.json`, or a variable behind a
    /// dot.
    fn without_format(&self) -> Option<Self> {
        let (before, plain) = match self.pieces.as_slice() {
            [before @ .., Some(last)] => (before, without_format(last)?),
            [before @ .., Some(last), None] => (before, last.strip_suffix('.')?),
            _ => return None,
        };
        let mut pieces = before.to_vec();
        if !plain.is_empty() {
            pieces.push(Some(plain.to_owned()));
        }
        (!pieces.is_empty()).then_some(Self {
            pieces,
            has_slashes: self.has_slashes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paths of GET operations without a tool.
    fn hidden(templates: &[&str]) -> ClosedPaths {
        let templates: Vec<PathTemplate> = templates
            .iter()
            .map(|path| PathTemplate::parse(path).unwrap())
            .collect();
        ClosedPaths::new(templates.iter().map(|template| DeclaredOperation {
            method: Method::GET,
            template,
            slashes: Vec::new(),
            has_own_base: false,
            tool: None,
        }))
    }

    fn asked(path: &str) -> AskedPath<'_> {
        AskedPath {
            full: path,
            base: 0,
            has_own_base: false,
            in_value: None,
        }
    }

    fn reaches(templates: &[&str], path: &str) -> bool {
        let reached = hidden(templates).reached(&asked(path), &Method::GET);
        reached.is_none_or(|reached| !reached.is_empty())
    }

    #[test]
    fn p1_no_reading_of_a_path_passes_by_a_closed_template() {
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
            "/%70rojects/a;x%2Fy/variables",
            "/projects/a%3Bx%252Fy/variables",
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
            "/projects/1/variables%00x",
            "/projects/1/variables%00%2Fx",
            "/projects/1/variables%20",
            "/projects/1/variables.",
            "/projects/1/variables%0A",
            "/projects/1/variables.geojson",
            "/projects/1/variables.turbo-stream",
            "/projects/1/var\u{131}ables",
            "/projects/1/variable%C5%BF",
            "/projects/a%25252525252Fb/x",
        ] {
            assert!(reaches(&["/projects/{id}/variables"], path), "{path}");
        }
        for path in [
            "/projects/a/b/variables",
            "/projects/1",
            "/projects/variables",
            "/projects/1/variables/2",
            "/projects/1/variables/x.json",
            "/projects/1/variables.of-others-of-others",
            "/projects/group%2Fapp/exports",
        ] {
            assert!(!reaches(&["/projects/{id}/variables"], path), "{path}");
        }
        assert!(!reaches(
            &["/projects/{id}"],
            "/projects/group/app/exports/7"
        ));
        assert!(reaches(
            &["/projects/{id}"],
            "/projects/group%2Fapp%2Fexports"
        ));
        assert!(reaches(&["/"], "/%2F") && reaches(&["/admin/keys"], "/admin%5Ckeys"));
        assert!(reaches(&["/payroll"], "/payroll;a%2Fb"));
        assert!(reaches(&["/reports/payroll.{format}"], "/reports/payroll"));
        assert!(reaches(&["/reports/payroll.json"], "/reports/payroll"));
        assert!(reaches(&["/files/{path}/acl"], "/files/a%2Fb%2Facl"));
        assert!(!reaches(
            &["/repos/{repo}/topics"],
            "/repos/r/contents/docs%2Ftopics"
        ));
        assert!(reaches(&["/users/{id}/keys/"], "/users/7%2Fkeys"));
        assert!(reaches(&["/files/{path}"], "/files%2F") && !reaches(&["/files/{path}"], "/files"));
        for honest in ["/clans/%232PP", "/clans/%3F", "/clans/;id=7"] {
            assert!(!reaches(&["/clans"], honest), "{honest}");
        }
    }

    #[test]
    fn a_pattern_fits_the_segments_of_its_template() {
        for (template, path, expected) in [
            ("/v1/projects/{p}:purge", "/v1/projects/a%3Apurge", true),
            ("/v1/projects/{p}:purge", "/V1/Projects/a:PURGE", true),
            ("/v1/projects/{p}:purge", "/v1/projects/a%2Fb:purge", true),
            ("/v1/projects/{p}:purge", "/v1/projects/:purge", false),
            ("/v1/projects/{p}:purge", "/v1/projects/a/b:purge", false),
            ("/v1/{a}/{b}", "/v1/x/y", true),
            ("/v1/{a}/{b}", "/v1/x/y/z", false),
            ("/v1/{a}/{b}", "/v1/x", false),
            ("/v1/{a}.{b}/raw", "/v1/x.y.z/raw", true),
            ("/v1/{a}.{b}/raw", "/v1/x./raw", false),
            ("/v1/a{b}c{d}e", "/v1/a-c-c-e", true),
            ("/v1/a{b}c{d}e", "/v1/a-c-ce", true),
            ("/v1/a{b}c{d}e", "/v1/a-ce", false),
            ("/v1/{a}{b}", "/v1/x", false),
            ("/v1/{a}{b}", "/v1/xy", true),
            ("/", "/", true),
        ] {
            assert_eq!(reaches(&[template], path), expected, "{template} {path}");
        }
    }

    #[test]
    fn an_operation_that_answers_every_path_of_a_template_is_not_reached_by_a_value() {
        for (other, own, expected) in [
            ("/v1/{topic}", "/v1/{name}", true),
            ("/{version}/{name}", "/v1/{name}", true),
            ("/v1/{id}.{format}", "/v1/{name}", true),
            ("/v1/projects/{p}:purge", "/v1/{name}", false),
            ("/v1/{a}/{b}", "/v1/{name}", false),
        ] {
            let own = PathTemplate::parse(own).unwrap();
            let reached = hidden(&[other]).reached_by_template(&own, &asked(""), &Method::GET);
            assert_eq!(!reached.is_empty(), expected, "{other}");
        }
    }
}
