//! The selection of operations: `--tool-include`, `--tool-exclude`, `--read-only` and
//! `--no-destructive`.

use std::borrow::Cow;
use std::fmt;

use globset::{GlobBuilder, GlobMatcher};

use super::annotations::Hints;
use crate::spec::Operation;

/// Field that a pattern is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum PatternField {
    /// Its tool name and its operationId.
    Operation,
    /// Its tags.
    Tag,
    /// Its HTTP method, in any case.
    Method,
    /// Its path template.
    Path,
}

/// `operation:list_*`, `tag:pets`, `method:GET`, `path:/pets/**`; a pattern without a field looks
/// at the operation, that is at its tool name and its operationId. `*` stays within a path segment,
/// `**` does not, and a final `/**` matches the folder itself as well. `{a,b}` matches either. A
/// leading `?` marks a pattern that may match no operation.
#[derive(Debug, Clone)]
pub struct Pattern {
    /// The pattern as it is written, without the mark.
    text: String,
    /// Where its glob begins in that.
    glob_start: usize,
    pub(crate) field: PatternField,
    pub(crate) is_optional: bool,
    glob: GlobMatcher,
    /// For a path that ends with `/**`: the part before that.
    folder: Option<GlobMatcher>,
}

/// The operations that become tools.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// If there are any, an operation must match one of them.
    pub include: Vec<Pattern>,
    /// Patterns of operations that are left out, even if they match an include.
    pub exclude: Vec<Pattern>,
    /// True to offer only tools that count as read-only.
    pub read_only: bool,
    /// True to offer no tool that counts as destructive.
    pub no_destructive: bool,
}

/// The setting by which an operation does not become a tool, in words.
pub(crate) type LeftOut = Cow<'static, str>;

/// Share of the tools that a token of `auth_tokens` may call.
#[derive(Debug, Clone)]
pub(crate) struct TokenShare {
    /// Name of the token.
    pub(crate) name: String,
    pub(crate) selection: Selection,
}

impl TokenShare {
    /// Returns true if the tool belongs to the share. Patterns know it with and without the prefix
    /// of its API.
    pub(crate) fn has(
        &self,
        tool: &str,
        prefix: &str,
        operation: &Operation,
        hints: &Hints,
    ) -> bool {
        let names = [tool, tool.strip_prefix(prefix).unwrap_or(tool)];
        self.selection.admits(names, operation, hints)
    }

    /// Describes a pattern of it that matches no tool.
    pub(crate) fn describe_idle(&self, key: &str, pattern: &Pattern) -> String {
        format!(
            "`{key}` of the token `{}`: `{pattern}` matches no tool of any API; write `?{pattern}` if it may match nothing",
            self.name
        )
    }

    /// Returns its patterns, each with the key that has it.
    pub(crate) fn patterns(&self) -> impl Iterator<Item = (&'static str, &Pattern)> {
        let Selection {
            include, exclude, ..
        } = &self.selection;
        let included = include.iter().map(|pattern| ("tool_include", pattern));
        included.chain(exclude.iter().map(|pattern| ("tool_exclude", pattern)))
    }
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// An unknown field or a broken glob; in a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (text, is_optional) = text
            .strip_prefix('?')
            .map_or((text, false), |text| (text, true));
        let (field, glob) = match text.split_once(':') {
            Some((field, glob)) if field.bytes().all(|byte| byte.is_ascii_lowercase()) => {
                let why = format!("`{field}` is not one of operation, tag, method, path");
                (field.parse().map_err(|_| refused(text, &why))?, glob)
            }
            _ => (PatternField::Operation, text),
        };
        Ok(Self {
            is_optional,
            ..Self::of(field, glob, text)?
        })
    }

    /// A pattern on that field; `text`, its name in messages, ends with the glob.
    ///
    /// # Errors
    /// An empty or broken glob; in a sentence.
    pub fn of(field: PatternField, glob: &str, text: &str) -> Result<Self, String> {
        let is_path = field == PatternField::Path;
        if glob.is_empty() {
            return Err(refused(text, "it is empty"));
        }
        let compile = |glob: &str| {
            let compiled = GlobBuilder::new(glob)
                .literal_separator(is_path)
                .case_insensitive(field == PatternField::Method)
                .build();
            match compiled {
                Ok(glob) => Ok(glob.compile_matcher()),
                Err(error) => Err(refused(text, &error.kind().to_string())),
            }
        };
        let glob_start = text.len().saturating_sub(glob.len());
        let glob = if is_path {
            with_literal_variables(glob)
        } else {
            glob.to_owned()
        };
        let folder = glob
            .strip_suffix("/**")
            .filter(|folder| is_path && !folder.is_empty());
        Ok(Self {
            text: text.into(),
            glob_start,
            field,
            is_optional: false,
            folder: folder.map(compile).transpose()?,
            glob: compile(&glob)?,
        })
    }

    /// The same, but it may match nothing.
    pub(crate) fn into_optional(self) -> Self {
        Self {
            is_optional: true,
            ..self
        }
    }

    /// Returns the field as it is written before the glob; empty if there is none.
    pub(crate) fn prefix(&self) -> &str {
        self.text.get(..self.glob_start).unwrap_or_default()
    }

    /// The glob as it is written.
    pub(crate) fn glob_text(&self) -> &str {
        self.text.get(self.glob_start..).unwrap_or_default()
    }

    /// Returns true if the pattern matches the operation under one of its tool names.
    pub(crate) fn matches<const N: usize>(&self, names: [&str; N], operation: &Operation) -> bool {
        match self.field {
            PatternField::Operation => {
                let mut names = names.into_iter().chain(operation.id.as_deref());
                names.any(|name| self.glob.is_match(name))
            }
            PatternField::Tag => operation.tags.iter().any(|tag| self.glob.is_match(tag)),
            PatternField::Method => self.glob.is_match(operation.method.as_str()),
            PatternField::Path => {
                let mut globs = self.folder.iter().chain([&self.glob]);
                globs.any(|glob| glob.is_match(&operation.path))
            }
        }
    }
}

fn refused(pattern: &str, why: &str) -> String {
    format!("`{pattern}` is not a valid pattern: {why}")
}

/// A glob on path templates in which the braces of variables are literal: `{petId}`. Braces around
/// commas are alternatives, as in any glob: `{customers/{id},refunds}`.
fn with_literal_variables(glob: &str) -> String {
    // For each open brace, its place in the output, and true if a comma was met in it.
    let mut open: Vec<(usize, bool)> = Vec::new();
    let mut out = String::with_capacity(glob.len());
    let mut class = false;
    for character in glob.chars() {
        match character {
            '{' if !class => {
                open.push((out.len(), false));
                out.push_str("[{]");
            }
            '}' if !class => match open.pop() {
                Some((start, true)) => {
                    out.replace_range(start..start + "[{]".len(), "{");
                    out.push('}');
                }
                _ => out.push_str("[}]"),
            },
            _ => {
                if let Some((_, has_comma)) = open.last_mut().filter(|_| !class) {
                    *has_comma |= character == ',';
                }
                out.push(character);
            }
        }
        class = (class || character == '[') && character != ']';
    }
    out
}

/// A glob that matches one path template and nothing else. The braces of variables are literal
/// there, unless they hold a comma.
pub(crate) fn literal_path(path: &str) -> String {
    let glob = globset::escape(path);
    if path.contains(',') {
        return glob;
    }
    glob.replace("[{]", "{").replace("[}]", "}")
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Selection {
    /// Returns true if the operation is offered (see [`Self::leaves_out`]).
    pub(crate) fn admits(&self, names: [&str; 2], operation: &Operation, hints: &Hints) -> bool {
        self.leaves_out(names, operation, hints).is_none()
    }

    /// Returns the setting by which the operation is not offered, by its tool name (the generated
    /// or the requested one) and its hints; `None` if it is offered.
    pub(crate) fn leaves_out(
        &self,
        names: [&str; 2],
        operation: &Operation,
        hints: &Hints,
    ) -> Option<LeftOut> {
        if self.read_only && !hints.is_read_only() {
            return Some("--read-only".into());
        }
        if self.no_destructive && hints.is_destructive() {
            return Some("--no-destructive".into());
        }
        let mut included = self.include.iter();
        if !self.include.is_empty() && !included.any(|pattern| pattern.matches(names, operation)) {
            return Some("--tool-include, of which no pattern matches it".into());
        }
        let mut excluding = self.exclude.iter();
        let pattern = excluding.find(|pattern| pattern.matches(names, operation))?;
        Some(format!("--tool-exclude {pattern}").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Document, operations};

    const PATHS: &str = r#"{"/pets":{"get":{"operationId":"pets/list","tags":["pets"]},"post":{"operationId":"pets/create","tags":["pets","admin"]}},
        "/pets/{id}/photos":{"get":{}},"/users":{"delete":{"operationId":"dropUsers","tags":["users"]}}}"#;

    fn selected(include: &[&str], exclude: &[&str]) -> Vec<String> {
        let text = format!(r#"{{"openapi":"3.1.0","paths":{PATHS}}}"#);
        let (operations, _) = operations(&Document::parse(text.into_bytes(), None).unwrap());
        let parse = |patterns: &[&str]| {
            patterns
                .iter()
                .map(|pattern| Pattern::parse(pattern).unwrap())
                .collect()
        };
        let selection = Selection {
            include: parse(include),
            exclude: parse(exclude),
            ..Selection::default()
        };
        operations
            .iter()
            .filter(|operation| {
                selection.admits(["tool_name", "given"], operation, &Hints::default())
            })
            .map(|operation| operation.label())
            .collect()
    }

    #[test]
    fn operations_are_chosen_by_operation_tag_method_and_path() {
        for (include, exclude, expected) in [
            (
                vec![],
                vec![],
                vec![
                    "GET /pets",
                    "POST /pets",
                    "GET /pets/{id}/photos",
                    "DELETE /users",
                ],
            ),
            (vec!["pets/*"], vec![], vec!["GET /pets", "POST /pets"]),
            (vec!["operation:dropUsers"], vec![], vec!["DELETE /users"]),
            (vec!["tag:pets"], vec!["tag:admin"], vec!["GET /pets"]),
            (
                vec!["method:get"],
                vec![],
                vec!["GET /pets", "GET /pets/{id}/photos"],
            ),
            (
                vec!["path:/pets/**"],
                vec![],
                vec!["GET /pets", "POST /pets", "GET /pets/{id}/photos"],
            ),
            (vec!["path:/pet/**"], vec![], vec![]),
            (
                vec!["path:/*/**"],
                vec!["path:/pets/{id}/**"],
                vec!["GET /pets", "POST /pets", "DELETE /users"],
            ),
            (
                vec!["path:/{pets/{id},users}/**"],
                vec![],
                vec!["GET /pets/{id}/photos", "DELETE /users"],
            ),
            (
                vec!["path:/{pets,users}"],
                vec!["{pets/create,x}"],
                vec!["GET /pets", "DELETE /users"],
            ),
            (vec!["path:/pets/*"], vec![], vec![]),
            (
                vec!["path:/pets/{id}/photos"],
                vec![],
                vec!["GET /pets/{id}/photos"],
            ),
            (
                vec![],
                vec!["path:/pets*"],
                vec!["GET /pets/{id}/photos", "DELETE /users"],
            ),
        ] {
            assert_eq!(
                selected(&include, &exclude),
                expected,
                "{include:?} {exclude:?}"
            );
        }
    }

    #[test]
    fn a_literal_glob_matches_itself_alone() {
        for path in [
            "/a/*/b",
            "/m[e]/{id}",
            "/x?",
            "/v1/{a}.{b}",
            "/v1/{a,b}",
            "/v1/{a,b}/**",
        ] {
            let glob = Pattern::of(PatternField::Path, &literal_path(path), path)
                .unwrap()
                .glob;
            assert!(glob.is_match(path), "{path}");
            assert!(
                !glob.is_match("/a/c/b") && !glob.is_match("/me/{id}") && !glob.is_match("/xy"),
                "{path}"
            );
        }
    }

    #[test]
    fn a_pattern_that_means_nothing_is_refused() {
        for text in ["taq:pets", "tag:", "path:[", ""] {
            assert!(Pattern::parse(text).is_err(), "{text}");
        }
    }
}
