//! The problems of a value, in words a model can act on.
//!
//! The search goes from the root inwards, schema by schema, and ends when it has found enough, so
//! that neither its time nor its memory grows with the number of problems. The errors of
//! `jsonschema` come all at once, with those of all branches.

use std::collections::HashMap;
use std::rc::Rc;

use jsonschema::ValidationError;
use serde_json::{Map, Value};

use super::problem::{
    BranchChoice, Problem, ProblemKind, describe_no_form, describe_place, describe_problem,
    meant_branch, quote_value,
};
use super::validate::{LenientPlaces, compile_schema, with_definitions};
use crate::json::JsonObject;
use crate::spec::pointer;
use crate::spec::schema::reference;

/// Deeper than this no schema reaches.
const MAX_DEPTH: usize = 128;
/// Number of comparisons of a value with a schema: a second or two of work.
const MAX_STEPS: usize = 2_000_000;

/// More problems than this help no caller.
const MAX_PROBLEMS: usize = 20;
/// Number of problems that are shown of arguments that were sent.
const MAX_SHOWN: usize = 3;

/// The keywords whose schemas the search enters.
const ENTERED: [&str; 9] = [
    "$defs",
    "$ref",
    "allOf",
    "anyOf",
    "oneOf",
    "items",
    "prefixItems",
    "properties",
    "patternProperties",
];
/// Keywords that judge a value by the results of other schemas.
const DEPENDENT: [&str; 6] = [
    "oneOf",
    "patternProperties",
    "propertyNames",
    "dependentSchemas",
    "contains",
    "not",
];

/// Assertions of a schema about a value.
struct Assertions {
    /// Assertions about the value itself, without its parts.
    own: Option<jsonschema::Validator>,
    /// All assertions, if a keyword depends on the results of other schemas.
    whole: Option<jsonschema::Validator>,
}

/// Describes the arguments that do not match their `format`, in a sentence for the model; `schema`
/// is the input schema.
pub(crate) fn describe_format_mismatch(schema: &JsonObject, arguments: &Value) -> Option<String> {
    let (mut problems, _) = search("", schema, true, MAX_SHOWN, arguments);
    problems.retain(|problem| problem.kind == ProblemKind::Format);
    (!problems.is_empty()).then(|| format!("{}.", join_clauses(problems)))
}

/// Describes the parts of a body that do not fit the input schema and are sent nevertheless, in a
/// sentence for the model.
pub(crate) fn describe_body_problems(schema: &JsonObject, arguments: &Value) -> Option<String> {
    let (problems, _) = search("", schema, false, MAX_SHOWN, arguments);
    (!problems.is_empty()).then(|| describe_sent(problems))
}

/// The same, if nothing but the properties at the places does not fit.
pub(crate) fn describe_lenient_problems(
    schema: &JsonObject,
    arguments: &Value,
    places: &LenientPlaces,
) -> Option<String> {
    if places.0.is_empty() {
        return None;
    }
    let (problems, is_complete) = search("", schema, false, MAX_PROBLEMS + 1, arguments);
    let is_known = is_complete && !problems.is_empty() && problems.len() <= MAX_PROBLEMS;
    let is_lenient = is_known
        && problems
            .iter()
            .all(|problem| places.contain(&problem.pointer));
    is_lenient.then(|| describe_sent(problems))
}

fn join_clauses(problems: Vec<Problem>) -> String {
    let shown = problems.into_iter().take(MAX_SHOWN);
    let clauses: Vec<String> = shown.map(|problem| problem.text).collect();
    clauses.join("; ")
}

fn describe_sent(problems: Vec<Problem>) -> String {
    let clauses = join_clauses(problems);
    format!(
        "The body does not fit its schema, and was sent because the server's settings allow it: {clauses}."
    )
}

/// Describes the problems of the arguments of `tool`, one line each; `schema` is the input schema.
pub(crate) fn describe_problems(tool: &str, schema: &JsonObject, arguments: &Value) -> String {
    let (problems, is_complete) = search(tool, schema, false, MAX_PROBLEMS + 1, arguments);
    let mut text = format!("The arguments of {tool} are not valid; nothing was sent.");
    let mut shown: Vec<&str> = Vec::new();
    for problem in problems.iter().take(MAX_PROBLEMS) {
        if !shown.contains(&problem.text.as_str()) {
            text.push_str("\n- ");
            text.push_str(&problem.text);
            shown.push(&problem.text);
        }
    }
    if problems.len() > MAX_PROBLEMS {
        text.push_str("\n- and more");
    } else if !is_complete {
        text.push_str(
            "\n- they are too large to be searched for all problems; give less in one call",
        );
    }
    text
}

/// Returns the problems of the arguments of `tool` by its input schema `root`, from the root inwards
/// and at most `max_problems`, and whether all of the arguments was looked at. With
/// `asserts_formats`, a text that does not match its `format` is one.
fn search(
    tool: &str,
    root: &JsonObject,
    asserts_formats: bool,
    max_problems: usize,
    arguments: &Value,
) -> (Vec<Problem>, bool) {
    let mut search = ProblemSearch {
        tool,
        root,
        asserts_formats,
        max_problems,
        steps_left: MAX_STEPS,
        compiled: HashMap::new(),
        place: String::new(),
        depth: 0,
        found: Vec::new(),
    };
    search.compare(root, arguments);
    (search.found, search.steps_left > 0)
}

/// A search for the problems of the arguments of one tool.
struct ProblemSearch<'s> {
    tool: &'s str,
    root: &'s JsonObject,
    asserts_formats: bool,
    max_problems: usize,
    steps_left: usize,
    /// Compiled assertions by the address of a schema in `root`.
    compiled: HashMap<*const JsonObject, Rc<Assertions>>,
    /// The JSON Pointer of the value that is compared with a schema.
    place: String,
    /// Number of schemas around the one that it is compared with.
    depth: usize,
    /// The problems so far: of the arguments, or in a choice of one of its branches.
    found: Vec<Problem>,
}

impl<'s> ProblemSearch<'s> {
    fn is_over(&self) -> bool {
        self.found.len() >= self.max_problems || self.steps_left == 0
    }

    fn compare_any(&mut self, schema: &'s Value, value: &Value) {
        match schema {
            Value::Object(schema) => self.compare(schema, value),
            Value::Bool(false) => {
                let (prefix, value) = (describe_place(&self.place), quote_value(value));
                self.push(format!("{prefix}{value} is not allowed here"));
            }
            _ => {}
        }
    }

    fn compare(&mut self, schema: &'s JsonObject, value: &Value) {
        if self.depth > MAX_DEPTH || self.is_over() {
            return;
        }
        self.steps_left -= 1;
        self.depth += 1;
        let before = self.found.len();
        let assertions = self.assertions(schema);
        if let Some(own) = assertions.own.as_ref().filter(|own| !own.is_valid(value)) {
            for error in own.iter_errors(value) {
                self.describe(&error);
            }
        }
        if let Some(target) = reference(schema).and_then(|name| self.root.get("$defs")?.get(name)) {
            self.compare_any(target, value);
        }
        for branch in listed(schema, "allOf") {
            self.compare_any(branch, value);
        }
        for key in ["anyOf", "oneOf"] {
            self.compare_branches(listed(schema, key), value);
        }
        match value {
            Value::Object(members) => self.compare_members(schema, members),
            Value::Array(items) => self.compare_items(schema, items),
            _ => {}
        }
        if self.found.len() == before
            && !self.is_over()
            && let Some(error) = assertions
                .whole
                .as_ref()
                .and_then(|whole| whole.validate(value).err())
        {
            self.describe(&error);
        }
        self.depth -= 1;
    }

    fn compare_members(&mut self, schema: &'s JsonObject, members: &JsonObject) {
        let properties = schema.get("properties").and_then(Value::as_object);
        // Which members patterns are about is judged with the whole schema.
        let others = schema
            .get("additionalProperties")
            .filter(|others| others.is_object() && !schema.contains_key("patternProperties"));
        if properties.is_none() && others.is_none() {
            return;
        }
        for (name, member) in members {
            if self.is_over() {
                return;
            }
            let own = properties.and_then(|properties| properties.get(name));
            if let Some(inner) = own.or(others) {
                self.compare_part(name, inner, member);
            }
        }
    }

    fn compare_items(&mut self, schema: &'s JsonObject, items: &[Value]) {
        let first = listed(schema, "prefixItems");
        let rest = schema.get("items");
        if first.is_empty() && rest.is_none() {
            return;
        }
        for (index, item) in items.iter().enumerate() {
            if self.is_over() {
                return;
            }
            if let Some(inner) = first.get(index).or(rest) {
                self.compare_part(&index.to_string(), inner, item);
            }
        }
    }

    /// Compares a member or an item.
    fn compare_part(&mut self, name: &str, schema: &'s Value, value: &Value) {
        let length = self.place.len();
        pointer::push(&mut self.place, name);
        self.compare_any(schema, value);
        self.place.truncate(length);
    }

    /// Compares a value with the branches of a choice. If none accepts it, the problems are those
    /// of the branch that is meant.
    fn compare_branches(&mut self, branches: &'s [Value], value: &Value) {
        let before = std::mem::take(&mut self.found);
        let mut refused: Vec<Vec<Problem>> = Vec::new();
        for branch in branches {
            self.compare_any(branch, value);
            let problems = std::mem::take(&mut self.found);
            if problems.is_empty() {
                refused.clear();
                break;
            }
            refused.push(problems);
        }
        self.found = before;
        if refused.is_empty() {
            return;
        }
        let room = self.max_problems.saturating_sub(self.found.len());
        match meant_branch(refused, &self.place) {
            BranchChoice::Meant(problems) => self.found.extend(problems.into_iter().take(room)),
            BranchChoice::Nearest(problems) if value.is_object() || value.is_array() => {
                let text = describe_no_form(&self.place, value);
                self.push(format!("{text}; what is wrong by the nearest one follows"));
                let rest = problems.into_iter().take(room.saturating_sub(1));
                self.found.extend(rest);
            }
            BranchChoice::Nearest(_) => self.push(describe_no_form(&self.place, value)),
        }
    }

    fn assertions(&mut self, schema: &'s JsonObject) -> Rc<Assertions> {
        let (root, asserts_formats) = (self.root, self.asserts_formats);
        let entry = self.compiled.entry(std::ptr::from_ref(schema));
        Rc::clone(
            entry.or_insert_with(|| Rc::new(Assertions::compile(schema, root, asserts_formats))),
        )
    }

    fn push(&mut self, text: String) {
        self.found.push(Problem {
            text,
            kind: ProblemKind::Other,
            pointer: self.place.clone(),
        });
    }

    fn describe(&mut self, error: &ValidationError<'_>) {
        let pointer = format!("{}{}", self.place, error.instance_path());
        let room = self.max_problems.saturating_sub(self.found.len());
        let texts = describe_problem(&pointer, error, self.tool, self.root, room);
        let kind = ProblemKind::of(error);
        self.found.extend(texts.into_iter().map(|text| Problem {
            text,
            kind,
            pointer: pointer.clone(),
        }));
    }
}

impl Assertions {
    fn compile(schema: &JsonObject, root: &JsonObject, asserts_formats: bool) -> Self {
        let is_dependent = DEPENDENT.iter().any(|key| schema.contains_key(*key));
        let mut own = JsonObject::new();
        for (key, value) in schema {
            match key.as_str() {
                // Closed objects accept what these name.
                "properties" | "patternProperties"
                    if schema.get("additionalProperties") == Some(&Value::Bool(false)) =>
                {
                    let names = value.as_object().into_iter().flat_map(Map::keys);
                    let any = names.map(|name| (name.clone(), Value::Bool(true)));
                    own.insert(key.clone(), any.collect());
                }
                "additionalProperties" if value.is_object() => {}
                key if ENTERED.contains(&key) || DEPENDENT.contains(&key) => {}
                _ => {
                    own.insert(key.clone(), value.clone());
                }
            }
        }
        let compile = |schema| compile_schema(&schema, asserts_formats).ok();
        let whole = is_dependent.then(|| with_definitions(schema.clone(), root));
        let own = (!own.is_empty()).then(|| own.into());
        Self {
            own: own.and_then(compile),
            whole: whole.and_then(compile),
        }
    }
}

fn listed<'s>(schema: &'s JsonObject, key: &str) -> &'s [Value] {
    schema
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::proxy::arguments::validate::compile_schema;

    fn explain(schema: &Value, arguments: &Value) -> String {
        let validator = compile_schema(schema, false).unwrap();
        assert!(!validator.is_valid(arguments));
        describe_problems("list_pets", schema.as_object().unwrap(), arguments)
    }

    #[test]
    fn all_problems_are_told_at_once_and_the_nearest_name_with_them() {
        let schema = json!({"type": "object", "additionalProperties": false, "required": ["status"],
            "properties": {"limit": {"type": "integer", "maximum": 100}, "status": {"enum": ["sold", "available"], "description": "What state.\nMore."}}});
        let text = explain(&schema, &json!({"collect_pages": 3}));
        assert!(
            text.contains("the setting `collect_pages: N` gives it to tools that can use it"),
            "{text}"
        );
        let text = explain(&schema, &json!({"limt": 1, "limit": 500}));
        for expected in [
            "`limt` is not an argument of list_pets; did you mean `limit`?",
            "`/limit`: 500 is more than 100",
            "`status` is missing: What state.",
        ] {
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn the_problems_of_the_form_that_is_meant_are_told() {
        let form = |kind: &str| json!({"type": "object", "required": ["kind", kind], "properties": {"kind": {"const": kind}, kind: {"type": "integer"}}});
        let schema = json!({"type": "object", "properties": {"a": {"anyOf": [form("x"), form("y"), {"type": "null"}]}, "b": {"anyOf": [
            {"type": "array", "items": {"type": "string"}, "maxItems": 2},
            {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
        ]}}});
        let text = explain(&schema, &json!({"a": {"kind": "y", "y": "no"}}));
        assert_eq!(
            text.lines().skip(1).collect::<Vec<_>>(),
            [r#"- `/a/y`: "no" is not of type integer"#]
        );
        let text = explain(&schema, &json!({"b": ["m", 5]}));
        let expected = [
            r#"- `/b`: ["m",5] fits none of the forms that are allowed here; what is wrong by the nearest one follows"#,
            "- `/b/1`: 5 is not of type string",
        ];
        assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_only_the_whole_schema_refuses_is_named() {
        for (schema, value) in [
            (json!({"not": {}}), json!({"a": 1})),
            (
                json!({"patternProperties": {"^x": {"type": "integer"}}}),
                json!({"x1": "no"}),
            ),
            (
                json!({"properties": {"l": {"contains": {"$ref": "#/$defs/T"}}}, "$defs": {"T": {"type": "integer"}}}),
                json!({"l": ["a"]}),
            ),
            (json!({"properties": {"a": false}}), json!({"a": 1})),
        ] {
            assert!(explain(&schema, &value).lines().count() > 1, "{schema}");
        }
    }

    #[test]
    fn what_is_shown_is_bounded() {
        let schema = json!({"type": "object", "properties": {"l": {"type": "array", "items": {"type": "integer"}}}});
        let text = explain(&schema, &json!({"l": vec!["x".repeat(1000); 50]}));
        assert!(
            text.ends_with("\n- and more")
                && text.lines().count() == MAX_PROBLEMS + 2
                && text.len() < 4000,
            "{text}"
        );
    }
}
