//! Settings of the look of tools: names, selection, budgets, and who has a say in hints and words.

use serde_json::Value;

use super::settings::{AnnotationPolicy, ApiSettings, ClientName, DocumentHints, OutputSchemasName, ResponseFilter};
use crate::annotate::confirm::{Confirm, ConfirmLevel, ConfirmPattern};
use crate::annotate::selection::PatternField;
use crate::annotate::{
    AnnotateOptions, Files, Hint, HintTrust, KnownClient, Layers, NameOptions, OutputSchemas, Override, Pattern, Policy, Rule, Selection,
};

const MIN_NAME_LIMIT: usize = 16;
const MAX_NAME_LIMIT: usize = 128;
/// Less than this no schema fits into.
const MIN_BUDGET: usize = 512;

/// The parts of a list in one text: split at commas, but not at those of a glob's braces.
fn split_outside_braces(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    text.split(|character| {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
    .collect()
}

/// What is set about the look of tools.
pub(crate) fn options(api: &ApiSettings, problems: &mut Vec<String>) -> AnnotateOptions {
    let mut patterns = |flag: &str, texts: &[String]| -> Vec<Pattern> {
        texts
            .iter()
            .flat_map(|text| split_outside_braces(text))
            .filter_map(|text| Pattern::parse(text).map_err(|error| problems.push(format!("{flag}: {error}"))).ok())
            .collect()
    };
    let selection = Selection {
        include: patterns("--tool-include", &api.tool_include),
        exclude: patterns("--tool-exclude", &api.tool_exclude),
        read_only: api.read_only.unwrap_or(false),
        no_destructive: api.no_destructive.unwrap_or(false),
    };
    let profile = known_client(api).profile();
    let mut names = NameOptions {
        longest: profile.longest_name,
        ..NameOptions::default()
    };
    if let Some(longest) = api.max_tool_name_length {
        if (MIN_NAME_LIMIT..=MAX_NAME_LIMIT).contains(&longest) {
            names.longest = longest;
        } else {
            problems.push(format!(
                "--max-tool-name-length must be between {MIN_NAME_LIMIT} and {MAX_NAME_LIMIT}"
            ));
        }
    }
    if let Some(prefix) = &api.tool_prefix {
        let legal = prefix.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        if legal && prefix.len() + MIN_NAME_LIMIT / 2 <= names.longest {
            names.prefix.clone_from(prefix);
        } else {
            problems.push("--tool-prefix must be short and hold only letters, digits, `_` and `-`".into());
        }
    }
    let mut options = AnnotateOptions {
        names,
        selection,
        layers: layers(api, problems),
        filter: api.response_filter == Some(ResponseFilter::Jq),
        files: if api.allow_file_args.is_some() {
            Files::Paths
        } else {
            Files::Inline
        },
        ..AnnotateOptions::default()
    };
    options.schemas.inline_all = !profile.knows_references;
    options.output = match api.output_schemas {
        None | Some(OutputSchemasName::Auto) => OutputSchemas::Auto,
        Some(OutputSchemasName::Lenient) => OutputSchemas::Lenient,
        Some(OutputSchemasName::Strict) => OutputSchemas::Strict,
        Some(OutputSchemasName::Off) => OutputSchemas::Off,
    };
    for (flag, given, budget) in [
        ("--max-schema-bytes", api.max_schema_bytes, &mut options.schemas.budget),
        ("--max-list-bytes", api.max_list_bytes, &mut options.list_budget),
    ] {
        match given {
            Some(bytes) if bytes < MIN_BUDGET => problems.push(format!("{flag} must be at least {MIN_BUDGET}")),
            Some(bytes) => *budget = bytes,
            None => {}
        }
    }
    options
}

/// `--confirm`: a level, patterns, or both.
pub(crate) fn confirm(texts: &[String], problems: &mut Vec<String>) -> Confirm {
    let mut confirm = Confirm::default();
    let all: Vec<&str> = texts.iter().flat_map(|text| split_outside_braces(text)).collect();
    for text in &all {
        let level = match *text {
            "none" if all.len() > 1 => {
                problems.push("--confirm: `none` cannot be combined with anything else".into());
                continue;
            }
            "none" => ConfirmLevel::None,
            "destructive" => ConfirmLevel::Destructive,
            "write" => ConfirmLevel::Write,
            _ => {
                let optional = text.strip_prefix('?');
                match Pattern::parse(optional.unwrap_or(text)) {
                    Ok(pattern) => confirm.patterns.push(ConfirmPattern {
                        pattern,
                        is_optional: optional.is_some(),
                    }),
                    Err(error) => problems.push(format!("--confirm: {error}")),
                }
                continue;
            }
        };
        confirm.level = confirm.level.max(level);
    }
    confirm
}

/// The client that the tools are shaped for.
pub(crate) fn known_client(api: &ApiSettings) -> KnownClient {
    match api.client {
        None | Some(ClientName::Generic) => KnownClient::Generic,
        Some(ClientName::Claude) => KnownClient::Claude,
        Some(ClientName::Openai) => KnownClient::OpenAi,
        Some(ClientName::Vscode) => KnownClient::VsCode,
        Some(ClientName::Cursor) => KnownClient::Cursor,
        Some(ClientName::Gemini) => KnownClient::Gemini,
        Some(ClientName::Codex) => KnownClient::Codex,
    }
}

/// What a rule of `overrides` looks like, for the published schema.
#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[expect(dead_code, reason = "only its shape counts")]
pub(crate) struct OverrideSchema {
    /// Which operations it is about: all that match a glob of each key; without it, all
    #[schemars(rename = "match")]
    matches: Option<MatchSchema>,
    /// Whether there is a tool
    enabled: Option<bool>,
    /// Its name
    name: Option<String>,
    /// Its title
    title: Option<String>,
    /// Its description
    description: Option<String>,
    /// Its category
    category: Option<String>,
    /// Its hints, each where it is mentioned
    annotations: Option<AnnotationsSchema>,
}

#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[expect(dead_code, reason = "only its shape counts")]
struct MatchSchema {
    /// Globs on the tool name and the operationId
    operation: Option<Globs>,
    /// Globs on the tags
    tag: Option<Globs>,
    /// Globs on the path; `*` stays within a segment, `**` does not
    path: Option<Globs>,
    /// HTTP methods
    method: Option<Globs>,
}

#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its shape counts")]
pub(crate) enum Globs {
    One(String),
    Any(Vec<String>),
}

#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its shape counts")]
struct AnnotationsSchema {
    /// A title beside the tool's own
    title: Option<String>,
    read_only_hint: Option<bool>,
    destructive_hint: Option<bool>,
    idempotent_hint: Option<bool>,
    open_world_hint: Option<bool>,
}

fn layers(api: &ApiSettings, problems: &mut Vec<String>) -> Layers {
    let mut remarks = Vec::new();
    let rules = api.overrides.iter().enumerate();
    let rules = rules
        .filter_map(|(index, value)| read_rule(index + 1, value, problems, &mut remarks))
        .collect();
    Layers {
        policy: match api.annotation_policy {
            None | Some(AnnotationPolicy::Method) => Policy::Method,
            Some(AnnotationPolicy::Spec) => Policy::Spec,
            Some(AnnotationPolicy::Infer) => Policy::Infer,
        },
        local: api.local_api.unwrap_or(false),
        trust: match api.document_hints {
            None | Some(DocumentHints::Tighten) => HintTrust::Tighten,
            Some(DocumentHints::Trust) => HintTrust::Trust,
            Some(DocumentHints::Ignore) => HintTrust::Ignore,
        },
        rules,
        commands: api.hint.iter().filter_map(|text| hint(text, problems)).collect(),
        remarks,
    }
}

/// One rule of `overrides`. What it says is read leniently, whom it is about is not: a slip there would change other tools
/// than were meant.
fn read_rule(number: usize, value: &Value, problems: &mut Vec<String>, remarks: &mut Vec<String>) -> Option<Rule> {
    let Value::Object(members) = value else {
        problems.push(format!(
            "rule {number} of `overrides` must be a mapping with `match` and what is said"
        ));
        return None;
    };
    let mut said = members.clone();
    let before = problems.len();
    let mut matches = Vec::new();
    match said.remove("match") {
        None => {}
        Some(Value::Object(fields)) => {
            for (field, globs) in fields {
                let of = match field.as_str() {
                    "operation" => PatternField::Operation,
                    "tag" => PatternField::Tag,
                    "path" => PatternField::Path,
                    "method" => PatternField::Method,
                    _ => {
                        problems.push(format!(
                            "rule {number} of `overrides` has the unknown `match` key `{field}`; it may have operation, tag, path and method"
                        ));
                        continue;
                    }
                };
                let globs = match globs {
                    Value::Array(globs) => globs,
                    one => vec![one],
                };
                let patterns = globs.iter().map(|glob| match glob.as_str() {
                    Some(glob) => Pattern::of(of, glob, &format!("{field}:{glob}")).map_err(|error| error.to_string()),
                    None => Err(format!("`match.{field}` must be a text or a list of texts")),
                });
                match patterns.collect::<Result<Vec<Pattern>, String>>() {
                    Ok(patterns) => matches.push(patterns),
                    Err(error) => problems.push(format!("rule {number} of `overrides`: {error}")),
                }
            }
        }
        Some(_) => problems.push(format!("rule {number} of `overrides`: `match` must be a mapping")),
    }
    let everybody = !members.contains_key("match");
    let mut wrong = Vec::new();
    let says = Override::read(&Value::Object(said), &mut wrong);
    // Most likely `match` in other letters: what was meant for some would be said of all.
    if let Some((path, _)) = wrong.iter().find(|(path, _)| everybody && path.len() == 1) {
        let key = path.concat();
        problems.push(format!(
            "rule {number} of `overrides` has no `match`, and a wrong key `{key}`; write `match: {{}}` where it is about all operations"
        ));
    }
    for (path, message) in wrong {
        let place: String = path.iter().map(|key| format!("/{key}")).collect();
        remarks.push(format!("the configuration's rule {number} of `overrides`, `{place}`: {message}"));
    }
    (problems.len() == before).then_some(Rule { matches, says })
}

/// `PATTERN HINT=BOOL …`: hints are read from the end, so that a pattern may hold spaces and commas as a tag does.
fn hint(text: &str, problems: &mut Vec<String>) -> Option<Rule> {
    let mut pattern = text.trim();
    let mut hints: Vec<(Hint, bool)> = Vec::new();
    while let Some((before, last)) = pattern.rsplit_once([' ', ',']) {
        let Some((key, value)) = last.split_once('=') else {
            if last.is_empty() {
                pattern = before;
                continue;
            }
            break;
        };
        match (Hint::parse(key), value.parse::<bool>()) {
            (Some(hint), Ok(value)) => hints.insert(0, (hint, value)),
            (None, _) => {
                problems.push(format!(
                    "--hint `{text}`: `{key}` is not one of readOnly, destructive, idempotent, openWorld"
                ));
                return None;
            }
            (_, Err(_)) => {
                problems.push(format!("--hint `{text}`: `{key}` wants =true or =false"));
                return None;
            }
        }
        pattern = before.trim_end();
    }
    if hints.is_empty() {
        problems.push(format!(
            "--hint `{text}` sets nothing; write it as in --hint \"searchPets readOnly=true\""
        ));
        return None;
    }
    match Pattern::parse(pattern) {
        Ok(pattern) => Some(Rule {
            matches: vec![vec![pattern]],
            says: Override {
                hints,
                ..Override::default()
            },
        }),
        Err(error) => {
            problems.push(format!("--hint `{text}`: {error}"));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_rule_that_is_about_nobody_known_is_refused_and_one_that_says_too_much_is_not() {
        let (mut problems, mut remarks) = (Vec::new(), Vec::new());
        let wide = json!({"match": {"operationid": "x"}, "title": "t"});
        assert!(read_rule(1, &wide, &mut problems, &mut remarks).is_none());
        assert!(problems[0].contains("`operationid`"), "{problems:?}");
        let slip = json!({"matsch": {"method": "GET"}, "title": "t"});
        assert!(read_rule(1, &slip, &mut problems, &mut remarks).is_none());
        assert!(problems[1].contains("`matsch`"), "{problems:?}");
        remarks.clear();
        let fine = json!({"match": {"tag": ["a", "b"], "method": "get"}, "annotations": {"readOnlyHint": true, "safe": 1}});
        let read = read_rule(2, &fine, &mut Vec::new(), &mut remarks).unwrap();
        assert_eq!((read.matches.len(), read.says.hints.as_slice()), (2, &[(Hint::ReadOnly, true)][..]));
        assert!(remarks[0].contains("/annotations/safe"), "{remarks:?}");
    }

    #[test]
    fn a_hint_of_the_command_line_names_a_pattern_and_values() {
        let mut problems = Vec::new();
        let read = hint("tag:pets readOnly=true,openWorldHint=false", &mut problems).unwrap();
        assert_eq!(read.says.hints, [(Hint::ReadOnly, true), (Hint::OpenWorld, false)]);
        let read = hint("tag:User Management, readOnly=true", &mut problems).unwrap();
        assert_eq!(
            (read.matches[0][0].to_string().as_str(), read.says.hints.len()),
            ("tag:User Management", 1)
        );
        assert!(hint("{getPet,x} readOnly=false", &mut problems).is_some());
        assert_eq!(problems, Vec::<String>::new());
        for wrong in ["", "a", "a safe=true", "a readOnly=maybe", "taq:x readOnly=true"] {
            assert!(hint(wrong, &mut problems).is_none(), "{wrong}");
        }
        assert_eq!(problems.len(), 5);
    }
}
