//! Settings of how tools look (names, selection, size limits, and the sources of hints and words), how
//! they are listed, and which calls are confirmed.

use super::problems::Problems;
use super::settings::{ApiSettings, FileRules, ResponseFilter};
use crate::annotate::options::{Confirm, ConfirmLevel};
use crate::annotate::{
    AnnotateOptions, ClientProfile, Files, Hint, Layers, NameOptions, OutputSchemas, Override,
    Pattern, Rule, Selection,
};
use crate::api::about::ApiName;
use crate::mcp::api_slot::{ListMode, ListOptions};
use crate::text::MIN_BYTES_PER_TOKEN;

const MIN_NAME_LIMIT: usize = 16;
/// The longest prefix of an API among several, and the shortest name that must be possible behind
/// it.
const MAX_PREFIX_BYTES: usize = 40;
const MIN_NAME_AFTER_PREFIX: usize = 24;

/// The parts of a list in one text: split at commas, except those within the braces of a glob.
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

/// The parts of all lists of a setting. One without any is a problem, whose sentence ends with `lacks`.
fn parts_of<'t>(
    flag: &str,
    texts: &'t [String],
    lacks: &str,
    problems: &mut Problems,
) -> Vec<&'t str> {
    let mut all = Vec::new();
    for text in texts {
        let parts = split_outside_braces(text);
        if parts.is_empty() {
            problems.push(format!("{flag}: `{text}` {lacks}"));
        }
        all.extend(parts);
    }
    all
}

/// Reads the settings of tools. The API has a `name` if there are several. Faults are pushed to
/// `problems`.
pub(crate) fn options(
    api: &ApiSettings,
    rules: &FileRules,
    name: Option<&ApiName>,
    problems: &mut Problems,
) -> AnnotateOptions {
    let mut patterns = |flag: &str, texts: &[String]| -> Vec<Pattern> {
        let lacks =
            "holds no pattern; leave the setting out, or write patterns such as `tag:admin`";
        parts_of(flag, texts, lacks, problems)
            .into_iter()
            .filter_map(|text| problems.ok(flag, Pattern::parse(text)))
            .collect()
    };
    let selection = Selection {
        include: patterns("--tool-include", &api.tool_include),
        exclude: patterns("--tool-exclude", &api.tool_exclude),
        read_only: api.read_only.unwrap_or(false),
        no_destructive: api.no_destructive.unwrap_or(false),
    };
    let profile = client_profile(api);
    let mut names = NameOptions {
        max_bytes: profile.max_name_bytes,
        ..NameOptions::default()
    };
    if let Some(max_bytes) = api.max_tool_name_length {
        names.max_bytes = max_bytes;
    }
    resolve_prefix(api, name, &mut names, problems);
    let mut options = AnnotateOptions {
        names,
        selection,
        layers: Layers {
            policy: api.annotation_policy,
            trust: api.document_hints.unwrap_or_default(),
            rules: rules.overrides.clone(),
            commands: api
                .hint
                .iter()
                .filter_map(|text| hint(text, problems))
                .collect(),
        },
        access: rules.access.clone(),
        filter: api.response_filter == Some(ResponseFilter::Jq),
        collect_pages: api.collect_pages.unwrap_or_default(),
        files: if api.allow_file_args.is_some() {
            Files::Paths
        } else {
            Files::Inline
        },
        ..AnnotateOptions::default()
    };
    options.schemas.inline_all = !profile.knows_references;
    if profile.reads_max_result_size {
        options.max_result_chars = api.common.max_result_tokens.and_then(raised_result_size);
    }
    options.describe = api.describe.unwrap_or_default();
    options.output = match api.output_schemas.unwrap_or_default() {
        // What a filter makes of a reply does not fit the document's schema.
        OutputSchemas::Strict if options.filter => OutputSchemas::Lenient,
        output => output,
    };
    if let Some(bytes) = api.max_schema_bytes {
        options.schemas.budget = bytes;
    }
    options
}

/// The longest result of which a tool can say that it is taken whole, in characters.
const MAX_RESULT_CHARACTERS: usize = 500_000;
/// Number of characters for notes beside the budget of a result.
const NOTES_CHARACTERS: usize = 5_000;
/// The largest budget of a client that reads such sizes, in bytes.
pub(super) const MAX_ANNOUNCED_BUDGET: usize = MAX_RESULT_CHARACTERS - NOTES_CHARACTERS;

/// Returns the size that tools declare for a client that takes 25,000 tokens of a result, or more
/// characters if a tool declares them; 0 tokens are no limit.
fn raised_result_size(tokens: usize) -> Option<usize> {
    match tokens {
        0 => Some(MAX_RESULT_CHARACTERS),
        1..=25_000 => None,
        _ => Some(
            tokens
                .saturating_mul(MIN_BYTES_PER_TOKEN)
                .min(MAX_ANNOUNCED_BUDGET)
                + NOTES_CHARACTERS,
        ),
    }
}

/// The prefix of every name. That of an API among several is its name unless another one is set, so
/// that a second API renames nothing.
fn resolve_prefix(
    api: &ApiSettings,
    name: Option<&ApiName>,
    names: &mut NameOptions,
    problems: &mut Problems,
) {
    let is_legal = |prefix: &str| {
        prefix
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    match (name, &api.tool_prefix) {
        (None, None) => {}
        (None, Some(prefix))
            if is_legal(prefix) && prefix.len() + MIN_NAME_LIMIT / 2 <= names.max_bytes =>
        {
            names.prefix.clone_from(prefix);
        }
        (None, Some(_)) => problems
            .push("--tool-prefix must be short and contain only letters, digits, `_` and `-`"),
        (Some(name), prefix) => {
            let prefix = prefix.clone().unwrap_or_else(|| format!("{name}_"));
            let has_room = prefix.len() <= MAX_PREFIX_BYTES
                && prefix.len() + MIN_NAME_AFTER_PREFIX <= names.max_bytes;
            if is_legal(&prefix) && has_room {
                names.prefix = prefix;
            } else {
                problems.push(format!(
                    "`tool_prefix`: `{}` must be at most {MAX_PREFIX_BYTES} letters, digits, `_` and `-`, and leave at least {MIN_NAME_AFTER_PREFIX} characters of a tool name of {}",
                    crate::text::truncate(&crate::text::one_line(&prefix), 64),
                    names.max_bytes
                ));
            }
        }
    }
}

/// `--tools`, `max_list_tokens` and `pin`: how the list of tools is made.
pub(crate) fn list_options(api: &ApiSettings, problems: &mut Problems) -> ListOptions {
    let usual = ListOptions::default();
    let profile = client_profile(api);
    let implied = if profile.max_tools.is_some() {
        ListMode::Auto
    } else {
        ListMode::Unset
    };
    let pins = api.pin.iter().flat_map(|text| split_outside_braces(text));
    ListOptions {
        mode: api.common.tools.unwrap_or(implied),
        max_tokens: api.common.max_list_tokens.unwrap_or(usual.max_tokens),
        max_tools: profile.max_tools,
        pins: pins
            .filter_map(|text| problems.ok("`pin`", Pattern::parse(text)))
            .collect(),
    }
}

/// `--confirm`: a level, patterns, or both.
pub(crate) fn confirm(texts: &[String], problems: &mut Problems) -> Confirm {
    let mut confirm = Confirm::default();
    let lacks = "holds neither a level nor a pattern; write none, destructive, write or patterns";
    let all = parts_of("--confirm", texts, lacks, problems);
    for text in &all {
        let level = match *text {
            "none" if all.len() > 1 => {
                problems.push("--confirm: `none` cannot be combined with anything else");
                continue;
            }
            "none" => ConfirmLevel::None,
            "destructive" => ConfirmLevel::Destructive,
            "write" => ConfirmLevel::Write,
            _ => {
                let pattern = problems.ok("--confirm", Pattern::parse(text));
                confirm.patterns.extend(pattern);
                continue;
            }
        };
        confirm.level = confirm.level.max(level);
    }
    confirm
}

/// Returns the profile of the client for which tools are shaped, with the tokens of a result that
/// the settings allow.
pub(super) fn client_profile(api: &ApiSettings) -> ClientProfile {
    let profile = api.common.client.unwrap_or_default().profile();
    ClientProfile {
        result_tokens: api
            .common
            .max_result_tokens
            .unwrap_or(profile.result_tokens),
        ..profile
    }
}

/// `PATTERN HINT=BOOL …`: hints are read from the end, so that a pattern may hold spaces and commas
/// as a tag does.
fn hint(text: &str, problems: &mut Problems) -> Option<Rule> {
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
                let known = Hint::ALL.map(Hint::word).join(", ");
                problems.push(format!("--hint `{text}`: `{key}` is not one of {known}"));
                return None;
            }
            (_, Err(_)) => {
                problems.push(format!("--hint `{text}`: `{key}` must be =true or =false"));
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
    let name = format!("--hint `{text}`");
    let pattern = problems.ok(&name, Pattern::parse(pattern))?;
    Some(Rule {
        name,
        remedy: format!("write `?{pattern}`"),
        optional: false,
        matches: vec![vec![pattern]],
        says: Override {
            hints,
            ..Override::default()
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_of_the_command_line_names_a_pattern_and_values() {
        let mut problems = Problems::default();
        let read = hint("tag:pets readOnly=true,openWorldHint=false", &mut problems).unwrap();
        assert_eq!(
            read.says.hints,
            [(Hint::ReadOnly, true), (Hint::OpenWorld, false)]
        );
        let read = hint("tag:User Management, readOnly=true", &mut problems).unwrap();
        assert_eq!(
            (
                read.matches[0][0].to_string().as_str(),
                read.says.hints.len()
            ),
            ("tag:User Management", 1)
        );
        assert!(hint("{getPet,x} readOnly=false", &mut problems).is_some());
        assert!(problems.is_empty(), "{problems:?}");
        for wrong in [
            "",
            "a",
            "a safe=true",
            "a readOnly=maybe",
            "taq:x readOnly=true",
        ] {
            assert!(hint(wrong, &mut problems).is_none(), "{wrong}");
        }
        assert_eq!(problems.len(), 5);
    }
}
