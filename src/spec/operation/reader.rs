//! Reads the operations of a document one by one, so that a bad one costs itself.

use std::sync::Arc;

use foldhash::HashMap;
use http::Method;

use super::alternatives::describe_quotes;
use super::parameters::Parameters;
use super::request_body::RequestBody;
use super::server_template::ServerTemplate;
use super::special_bodies::describe_unsendable;
use super::template::PathTemplate;
use super::{Operation, body, server, swagger2, tool_extensions};
use crate::spec::diagnostic::Diagnostic;
use crate::spec::document::{Document, Version};
use crate::spec::long_running::LongRunning;
use crate::spec::node::{Node, Object, Span};
use crate::spec::pointer;
use crate::text::is_word_of;

/// The methods of every version of OpenAPI.
pub(crate) const METHODS: &str = "get put post delete options head patch trace";

/// All operations of a document in its order, and what is wrong with those that are not among them.
#[must_use]
pub fn operations(document: &Document) -> (Vec<Box<Operation>>, Vec<Diagnostic>) {
    let mut reader = Reader {
        document,
        operations: Vec::new(),
        indexes: HashMap::default(),
        parameters: Parameters::new(document),
        diagnostics: Vec::new(),
    };
    if let Some(paths) = document.member("paths") {
        match paths.members() {
            Some(paths) => paths.for_each(|(path, item)| reader.path_item(&path, item)),
            None => reader
                .diagnostics
                .push(Diagnostic::error("#/paths", "`paths` is not an object")),
        }
    }
    reader.report_duplicate_ids();
    let operations = reader.operations.into_iter().flatten();
    (operations.collect(), reader.diagnostics)
}

struct Reader<'a> {
    document: &'a Document,
    /// `None` in place of those that a later one with the same method and path replaces.
    operations: Vec<Option<Box<Operation>>>,
    /// Index of each operation by its method and path.
    indexes: HashMap<(Method, String), usize>,
    parameters: Parameters<'a>,
    diagnostics: Vec<Diagnostic>,
}

/// The parts of a path item that its operations share.
struct Shared<'p, 'a> {
    path: &'p str,
    /// The path, read; or what is wrong with it.
    template: Result<Arc<PathTemplate>, String>,
    summary: Option<String>,
    description: Option<String>,
    parameters: Vec<Node<'a>>,
    servers: Vec<ServerTemplate>,
    extensions: Vec<(Box<str>, Span)>,
}

impl<'a> Reader<'a> {
    fn path_item(&mut self, path: &str, item: Node<'a>) {
        if path.starts_with("x-") {
            return;
        }
        let Some(mut item) = item.object() else {
            let pointer = pointer::fragment(["paths", path]);
            let what = "this path item is not an object; its operations are left out";
            self.diagnostics.push(Diagnostic::error(pointer, what));
            return;
        };
        let mut beside = None;
        if let Some(reference) = item.get("$ref") {
            match self.referred(reference, "its `$ref` does not name a path item") {
                // Operations beside the reference are kept (OAS leaves that open); those of its
                // target come after.
                Ok(target) => beside = Some(std::mem::replace(&mut item, target)),
                Err(why) => {
                    let pointer = pointer::fragment(["paths", path, "$ref"]);
                    let what = format!("{why}; this path's operations are left out");
                    self.diagnostics
                        .push(Diagnostic::error(pointer, what).at(reference.span()));
                    return;
                }
            }
        }
        let shared = Shared::of(path, beside.as_ref(), &item);
        for (key, node) in item.iter().chain(beside.iter().flat_map(Object::iter)) {
            if key == "additionalOperations" && self.document.version() >= Version::V3_2 {
                for (method, node) in node.object().unwrap_or_default().iter() {
                    self.operation(&shared, &[key, method], method, node);
                }
            } else if is_method(key, self.document.version()) {
                self.operation(&shared, &[key], &key.to_ascii_uppercase(), node);
            }
        }
    }

    /// The target of a reference in place of a path item or an operation, which must be an object.
    fn referred(&self, reference: Node<'a>, otherwise: &str) -> Result<Object<'a>, String> {
        let text = reference.string().ok_or("its `$ref` is not a string")?;
        let target = self
            .document
            .resolve(self.document.target(&text, reference.span())?)?;
        target.object().ok_or_else(|| otherwise.to_owned())
    }

    /// OAS: `operationId` is unique among all operations of an API.
    fn report_duplicate_ids(&mut self) {
        let mut first_uses: HashMap<&str, &Operation> = HashMap::default();
        for operation in self.operations.iter().flatten() {
            let Some(id) = operation.id.as_deref() else {
                continue;
            };
            let Some(first) = first_uses.get(id) else {
                first_uses.insert(id, operation);
                continue;
            };
            let what = format!(
                "{} has the operationId `{id}` of {} ({}); neither tool has that name",
                operation.label(),
                first.label(),
                first.pointer
            );
            self.diagnostics.push(Diagnostic {
                span: operation.span,
                ..Diagnostic::warning(operation.pointer.as_str(), what)
            });
        }
    }

    /// Reads an operation. The keys lead to it from its path item.
    fn operation(&mut self, shared: &Shared<'_, 'a>, keys: &[&str], method: &str, node: Node<'a>) {
        let pointer = pointer::fragment(["paths", shared.path].iter().chain(keys).copied());
        let read = self.read(shared, method, node);
        let mut warnings = std::mem::take(&mut self.parameters.warnings);
        let mut report = |diagnostic: Diagnostic| {
            self.diagnostics.push(diagnostic.at(node.span()));
        };
        match read {
            Ok(mut operation) => {
                operation.pointer.clone_from(&pointer);
                operation.span = Some(node.span());
                let body = operation.body.as_ref();
                if let Some(quotes) = body.and_then(|body| describe_quotes(self.document, body)) {
                    report(Diagnostic::note(&pointer, quotes));
                }
                // As in every JSON parser, of two with one key the last one counts.
                let key = (operation.method.clone(), operation.path.clone());
                let earlier = self.indexes.insert(key, self.operations.len());
                if let Some(earlier) = earlier.and_then(|index| self.operations.get_mut(index)) {
                    *earlier = None;
                    warnings.push(format!(
                        "{} is written twice; the last one is served",
                        operation.label()
                    ));
                }
                self.operations.push(Some(Box::new(operation)));
            }
            Err(why) => {
                let method = method.to_ascii_uppercase();
                let what = format!("{method} {} is left out: {why}", shared.path);
                report(Diagnostic::error(&pointer, what));
            }
        }
        for warning in warnings {
            report(Diagnostic::warning(&pointer, warning));
        }
    }

    fn read(
        &mut self,
        shared: &Shared<'_, 'a>,
        method: &str,
        node: Node<'a>,
    ) -> Result<Operation, String> {
        // That an operation is a reference is not legal OpenAPI, but common in documents of many
        // files.
        let mut object = node.object().ok_or("it is not an object")?;
        if let Some(reference) = object.get("$ref") {
            object = self.referred(reference, "it is not an object")?;
        }
        let method = Method::from_bytes(method.as_bytes())
            .map_err(|_| format!("`{method}` is not an HTTP method"))?;
        let template = shared.template.clone()?;
        let own = self.parameters.resolved(&object.array("parameters"));
        let of_path = self.parameters.resolved(&shared.parameters);
        let swagger = self.document.version() == Version::V2_0;
        let (mut body, produces) = if swagger {
            let all: Vec<Node<'a>> = own.iter().chain(&of_path).map(|found| found.0).collect();
            let consumes = swagger2::consumed(self.document, &object, &all);
            let produces = swagger2::media_types(self.document, &object, "produces");
            let body = swagger2::read_body(self.document, &all, &consumes, &method);
            (body, produces)
        } else {
            (self.body(&object, &method)?, Vec::new())
        };
        let unsendable = body
            .as_ref()
            .and_then(|body| describe_unsendable(self.document, body));
        self.parameters.warnings.extend(unsendable);
        let parameters = self.parameters.of(&of_path, &own, &template, body.as_mut());
        Ok(Operation {
            id: words(&object, "operationId"),
            method,
            path: shared.path.to_owned(),
            template,
            summary: words(&object, "summary").or_else(|| shared.summary.clone()),
            description: words(&object, "description").or_else(|| shared.description.clone()),
            tags: object.strings("tags"),
            deprecated: object.is_true("deprecated"),
            parameters,
            body,
            servers: match object.get("schemes") {
                Some(schemes) if swagger => swagger2::operation_servers(self.document, schemes),
                _ => match server::servers(object.get("servers")) {
                    own if !own.is_empty() => own,
                    _ => shared.servers.clone(),
                },
            },
            security: object.get("security").map(Node::span),
            responses: object.get("responses").map(Node::span),
            produces,
            extensions: shared
                .extensions
                .iter()
                .cloned()
                .chain(tool_extensions(object.iter()))
                .collect(),
            pointer: String::new(),
            span: None,
            long_running: LongRunning::read(self.document, &object),
            waits_by: Vec::new(),
            rules: Box::default(),
        })
    }

    fn body(
        &mut self,
        operation: &Object<'a>,
        method: &Method,
    ) -> Result<Option<RequestBody>, String> {
        let Some(declared) = operation.get("requestBody") else {
            return Ok(None);
        };
        let body = body::read_request_body(self.document, declared, method)?;
        if body.is_none() {
            self.parameters.warnings.push(
                "the request body declares no media type; it is served without a body".into(),
            );
        }
        Ok(body)
    }
}

impl<'p, 'a> Shared<'p, 'a> {
    /// Reads the parts that the operations of a path item share. Members beside a reference
    /// override those of its target.
    fn of(path: &'p str, beside: Option<&Object<'a>>, item: &Object<'a>) -> Self {
        let both: Vec<&Object<'a>> = beside.into_iter().chain([item]).collect();
        let weakest_first = || both.iter().rev();
        Self {
            path,
            template: PathTemplate::parse(path).map(Arc::new),
            summary: both.iter().find_map(|object| words(object, "summary")),
            description: both.iter().find_map(|object| words(object, "description")),
            parameters: weakest_first()
                .flat_map(|object| object.array("parameters"))
                .collect(),
            servers: server::servers(both.iter().find_map(|object| object.get("servers"))),
            extensions: weakest_first()
                .flat_map(|object| tool_extensions(object.iter()))
                .collect(),
        }
    }
}

/// The text under `key`; a blank one says nothing.
fn words(object: &Object<'_>, key: &str) -> Option<String> {
    object.text(key).filter(|text| !text.trim().is_empty())
}

/// `TRACE` and any method of 3.2 are operations too; their hints are decided in `annotate`.
fn is_method(key: &str, version: Version) -> bool {
    is_word_of(METHODS, key) || (key == "query" && version >= Version::V3_2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(paths: &str) -> (Vec<Box<Operation>>, Vec<Diagnostic>) {
        let text = format!(
            r#"{{"openapi":"3.1.0","info":{{"title":"T"}},"paths":{paths},"components":{{
                "parameters":{{"Limit":{{"name":"limit","in":"query","schema":{{"type":"integer"}}}}}},
                "pathItems":{{"Pets":{{"get":{{"operationId":"listed"}}}}}}}}}}"#
        );
        operations(&Document::parse(text.into_bytes(), None).unwrap())
    }

    #[test]
    fn parameters_of_the_path_item_are_inherited_and_overridden() {
        let (operations, diagnostics) = read(
            r##"{"/a/{id}":{"parameters":[{"name":"id","in":"path","description":"shared"},{"$ref":"#/components/parameters/Limit"}],
                "get":{"parameters":[{"name":"id","in":"path","description":"own"}]},"delete":{}}}"##,
        );
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        let shown: Vec<_> = operations
            .iter()
            .map(|operation| {
                operation
                    .parameters
                    .iter()
                    .map(|p| (p.name.as_str(), p.description.as_deref()))
                    .collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(
            shown,
            [
                vec![("id", Some("own")), ("limit", None)],
                vec![("id", Some("shared")), ("limit", None)]
            ]
        );
    }

    #[test]
    fn what_is_said_beside_a_reference_counts_more() {
        let paths = r##"{"/a":{"put":{"parameters":[{"$ref":"#/components/parameters/P","description":"beside"}],
            "requestBody":{"$ref":"#/components/requestBodies/B","description":"beside"}}}}"##;
        for (version, expected) in [("3.0.3", "own"), ("3.1.0", "beside"), ("3.2.0", "beside")] {
            let text = format!(
                r#"{{"openapi":"{version}","paths":{paths},"components":{{"parameters":{{"P":{{"name":"p","in":"query","description":"own"}}}},
                    "requestBodies":{{"B":{{"description":"own","content":{{"application/json":{{}}}}}}}}}}}}"#
            );
            let (operations, _) = operations(&Document::parse(text.into_bytes(), None).unwrap());
            let operation = &operations[0];
            assert_eq!(
                operation.parameters[0].description.as_deref(),
                Some(expected),
                "{version}"
            );
            assert_eq!(
                operation.body.as_ref().unwrap().description.as_deref(),
                Some(expected),
                "{version}"
            );
        }
    }

    #[test]
    fn a_bad_operation_costs_itself() {
        let (operations, diagnostics) = read(
            r#"{"/good":{"get":{}},"/bad":{"get":"nonsense","post":{},"put":{"$ref":"other.yaml"}},"bad":{"get":{}},"/worse":7,"x-ext":{}}"#,
        );
        assert_eq!(
            operations
                .iter()
                .map(|operation| operation.label())
                .collect::<Vec<_>>(),
            ["GET /good", "POST /bad"]
        );
        let pointers: Vec<_> = diagnostics.iter().map(|d| d.pointer.as_str()).collect();
        assert_eq!(
            pointers,
            [
                "#/paths/~1bad/get",
                "#/paths/~1bad/put",
                "#/paths/bad/get",
                "#/paths/~1worse"
            ]
        );
    }

    #[test]
    fn a_path_item_may_be_a_reference() {
        let (operations, diagnostics) = read(
            r##"{"/pets":{"$ref":"#/components/pathItems/Pets"},"/none":{"$ref":"#/components/pathItems/None"}}"##,
        );
        assert_eq!(
            operations
                .iter()
                .map(|operation| operation.label())
                .collect::<Vec<_>>(),
            ["GET /pets"]
        );
        assert!(
            diagnostics[0].message.contains("points to nothing"),
            "{diagnostics:?}"
        );
    }

    #[test]
    fn names_that_clash_get_their_location() {
        let (operations, _) = read(
            r#"{"/a/{id}":{"post":{"parameters":[{"name":"id","in":"query"},{"name":"id","in":"header"},{"name":"id","in":"path"},{"name":"body","in":"query"},{"name":"$top","in":"query"}],
                "requestBody":{"content":{"application/json":{}}}}}}"#,
        );
        let keys: Vec<_> = operations[0]
            .parameters
            .iter()
            .map(|parameter| parameter.key.as_str())
            .collect();
        assert_eq!(keys, ["id_query", "id_header", "id", "body_query", "top"]);
    }

    #[test]
    fn headers_that_a_call_may_not_set_are_no_parameters() {
        let (operations, _) = read(
            r#"{"/a":{"get":{"parameters":[{"name":"ACCEPT","in":"header"},{"name":"Authorization","in":"header"},{"name":"Content-Length","in":"header"},{"name":"Proxy-X","in":"header"},{"name":"X-Ok","in":"header"}]}}}"#,
        );
        assert_eq!(
            operations[0]
                .parameters
                .iter()
                .map(|p| p.name.as_str())
                .collect::<Vec<_>>(),
            ["X-Ok"]
        );
        let names = [
            "content-encoding",
            "Accept-Encoding",
            "HTTP2-Settings",
            "Via",
            "X-HTTP-Method-Override",
            "X-HTTP-Method",
            "X-Method-Override",
            "X-Original-URL",
            "X-Rewrite-URL",
            "X-Real-IP",
            "Origin",
            "Set-Cookie",
            "Host",
        ];
        for name in names {
            let (operations, diagnostics) = read(&format!(
                r#"{{"/a":{{"get":{{"parameters":[{{"name":"{name}","in":"header"}},{{"name":"Accept","in":"header"}}]}}}}}}"#
            ));
            assert!(operations[0].parameters.is_empty(), "{name}");
            assert!(
                matches!(&diagnostics[..], [only] if only.message.contains(&format!("`{name}`")) && only.message.contains("left out")),
                "{diagnostics:?}"
            );
        }
    }

    #[test]
    fn an_undeclared_path_variable_is_served_as_a_required_string() {
        let (operations, diagnostics) =
            read(r#"{"/a/{x}":{"get":{"parameters":[{"name":"y","in":"path"}]}}}"#);
        assert_eq!(
            operations[0]
                .parameters
                .iter()
                .map(|p| (p.name.as_str(), p.required))
                .collect::<Vec<_>>(),
            [("x", true)]
        );
        assert_eq!(diagnostics.len(), 2);
    }
}
