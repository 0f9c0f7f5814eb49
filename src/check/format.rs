//! A report for people, for programs, for code scanning (SARIF 2.1.0) and for GitHub's annotations.

use std::collections::HashMap;
use std::fmt::Write as _;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::{Finding, Report};
use crate::spec::Severity;
use crate::text::{counted, one_line};

/// More kinds of findings than this are counted, not shown, in the text for people.
const MAX_KINDS: usize = 50;

/// Number of tags that are listed.
const MAX_TAGS: usize = 10;

/// Writes the report for users.
pub(crate) fn report_as_text(report: &Report) -> String {
    let mut out = String::new();
    push_costs(&mut out, report);
    push_findings(&mut out, report);
    push_credentials(&mut out, report);
    for line in &report.tenants {
        let _ = writeln!(out, "{line}");
    }
    let rules = suggested_rules(report).count();
    if rules > 0 {
        let rules = counted(rules, "rule");
        let _ = writeln!(out, "{rules} for these hints: --format rules prints them");
    }
    let [errors, warnings, notes] = [Severity::Error, Severity::Warning, Severity::Note]
        .map(|severity| counted(report.count(severity), severity.into()));
    let _ = writeln!(out, "{errors}, {warnings}, {notes}");
    out
}

/// A line for each kind of finding.
fn push_findings(out: &mut String, report: &Report) {
    let kinds = kinds_of(&report.findings);
    if !kinds.is_empty() {
        out.push('\n');
    }
    for kind in kinds.iter().take(MAX_KINDS) {
        let Some((first, others)) = kind.split_first() else {
            continue;
        };
        let place = finding_place(report, first);
        let (level, message) = (<&str>::from(first.level), one_line(&first.message));
        let _ = write!(out, "{level}: {place}: {message}");
        if let Some(second) = others.first() {
            let place = finding_place(report, second);
            let more = if others.len() > 1 { ", …" } else { "" };
            let _ = write!(out, " (and {} more like this: {place}{more})", others.len());
        }
        out.push('\n');
    }
    if kinds.len() > MAX_KINDS {
        let hidden = kinds.iter().skip(MAX_KINDS).map(Vec::len).sum();
        let hidden = counted(hidden, "finding");
        let _ = writeln!(out, "and {hidden} more; --format json shows all");
    }
    if !kinds.is_empty() {
        out.push('\n');
    }
}

/// The findings by kind, in their order: messages that differ only in names, numbers and paths are
/// of one kind.
fn kinds_of(findings: &[Finding]) -> Vec<Vec<&Finding>> {
    let mut kinds: Vec<Vec<&Finding>> = Vec::new();
    let mut known: HashMap<(Severity, &str, Option<&str>, String), usize> = HashMap::new();
    for finding in findings {
        let key = (
            finding.level,
            finding.rule,
            finding.word,
            message_pattern(&finding.message),
        );
        let index = *known.entry(key).or_insert(kinds.len());
        match kinds.get_mut(index) {
            Some(kind) => kind.push(finding),
            None => kinds.push(vec![finding]),
        }
    }
    kinds
}

/// A message without what is quoted or in brackets, and without words that are methods, paths or
/// numbers.
fn message_pattern(message: &str) -> String {
    let is_fixed = |word: &&str| {
        let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
        let is_method = word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_uppercase());
        !has_digit && !is_method && !word.starts_with(['/', '#', '(', '\''])
    };
    let unquoted = message.split('`').step_by(2);
    let words = unquoted.flat_map(str::split_whitespace);
    words.filter(is_fixed).collect::<Vec<_>>().join(" ")
}

fn push_costs(out: &mut String, report: &Report) {
    let tools = counted(report.tools, "tool");
    let _ = writeln!(
        out,
        "{}: {tools}, {} of them read-only",
        report.title, report.read_only
    );
    let (bytes, tokens) = (
        counted(report.bytes, "byte"),
        counted(report.tokens, "token"),
    );
    let _ = writeln!(out, "tools/list takes {bytes}, about {tokens}");
    if let Some(client) = &report.client {
        let _ = writeln!(out, "{client}");
    }
    if !report.clients.is_empty() {
        out.push_str("what clients make of this list, and the setting that helps:\n");
        for cost in &report.clients {
            let takes = match cost.max_tools.filter(|_| !cost.takes_all) {
                Some(most) => format!("takes {most} of these tools; "),
                None => String::new(),
            };
            let _ = writeln!(out, "  {}: {takes}{}", cost.client, cost.setting);
        }
    }
    if report.brief_tokens > 0 {
        let added = counted(report.brief_tokens, "token");
        let _ = writeln!(out, "`describe: brief` adds about {added}");
    }
    if report.tools > 1 {
        out.push_str("the largest tools, in bytes:\n");
        for cost in &report.largest {
            let _ = writeln!(out, "  {:>8}  {}", cost.bytes, cost.tool);
        }
    }
    if report.by_tag.len() > 1 {
        out.push_str("by tag, with the flag that offers one of them:\n");
        for cost in report.by_tag.iter().take(MAX_TAGS) {
            let flag = match &cost.include {
                Some(pattern) => {
                    let quoted = one_line(pattern).replace('\'', "'\\''");
                    format!("--tool-include '{quoted}'")
                }
                None => "(no tag)".to_owned(),
            };
            let tools = counted(cost.tools, "tool");
            let tokens = counted(cost.tokens, "token");
            let _ = writeln!(out, "  {flag}: {tools}, about {tokens}");
        }
        if report.by_tag.len() > MAX_TAGS {
            let more = counted(report.by_tag.len() - MAX_TAGS, "more tag");
            let _ = writeln!(out, "  and {more}; --format json shows all");
        }
    }
}

fn push_credentials(out: &mut String, report: &Report) {
    if !report.credentials.is_empty() {
        out.push_str("the API asks for credentials:\n");
        for need in &report.credentials {
            let tools = counted(need.tools, "tool");
            let _ = writeln!(out, "  `{}`, of {tools}: {}", need.scheme, need.setting);
        }
    }
    if !report.as_user.is_empty() {
        out.push_str("tools that are called as the user, whose token is exchanged:\n");
        for line in &report.as_user {
            let _ = writeln!(out, "  {line}");
        }
    }
    for warning in &report.warnings {
        let _ = writeln!(out, "serve would warn: {}", one_line(warning));
    }
}

fn suggested_rules(report: &Report) -> impl Iterator<Item = &str> {
    report
        .findings
        .iter()
        .filter_map(|finding| finding.suggestion.as_deref())
}

/// Writes all suggested rules, as the configuration file has them.
pub(crate) fn rules(report: &Report) -> String {
    let mut out = "# Rules that would set the hints that `check` reports; keep those that are right.\noverrides:\n".to_owned();
    for rule in suggested_rules(report) {
        let _ = writeln!(out, "- {rule}");
    }
    out
}

/// GitHub's workflow commands, one line a finding.
pub(crate) fn github(report: &Report) -> String {
    let mut out = String::new();
    for finding in &report.findings {
        let word = match finding.level {
            Severity::Note => "notice",
            other => other.into(),
        };
        let data = |text: &str| {
            text.replace('%', "%25")
                .replace('\r', "%0D")
                .replace('\n', "%0A")
        };
        let file = data(finding.file(report))
            .replace(':', "%3A")
            .replace(',', "%2C");
        let _ = write!(out, "::{word} file={file}");
        if let (Some(line), Some(column)) = (finding.line, finding.column) {
            let _ = write!(out, ",line={line},col={column}");
        }
        let message = format!("{}: {}", finding.pointer, finding.whole_message());
        let _ = writeln!(out, "::{}", data(&message));
    }
    out
}

/// SARIF 2.1.0, with a run for each report.
pub(crate) fn sarif<'r>(reports: impl Iterator<Item = &'r Report>) -> Value {
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": reports.map(sarif_run).collect::<Vec<_>>()
    })
}

fn sarif_run(report: &Report) -> Value {
    let result = |finding: &Finding| {
        let mut location = json!({ "artifactLocation": { "uri": uri(finding.file(report)) } });
        if let (Some(line), Some(column), Value::Object(location)) =
            (finding.line, finding.column, &mut location)
        {
            location.insert(
                "region".into(),
                json!({ "startLine": line, "startColumn": column }),
            );
        }
        json!({
            "ruleId": finding.rule,
            "level": finding.level,
            "message": { "text": finding.whole_message() },
            "locations": [{ "physicalLocation": location, "logicalLocations": [{ "fullyQualifiedName": finding.pointer }] }]
        })
    };
    let rules = [
        (
            "document",
            "What the document says cannot be served as it is",
        ),
        ("client", "What a client would hide or refuse"),
        ("annotation", "A name that contradicts its method"),
    ];
    json!({
        "tool": { "driver": { "name": "openapi-mcp", "version": env!("CARGO_PKG_VERSION"), "rules": rules.map(|(id, text)| json!({ "id": id, "shortDescription": { "text": text } })) } },
        "results": report.findings.iter().map(result).collect::<Vec<_>>()
    })
}

/// A path as a URI reference (SARIF 2.1.0 section 3.4.3); a URL stays one.
fn uri(source: &str) -> String {
    const KEPT: &AsciiSet = &NON_ALPHANUMERIC
        .remove(b'/')
        .remove(b'-')
        .remove(b'.')
        .remove(b'_')
        .remove(b'~');
    if source.starts_with("http://") || source.starts_with("https://") {
        source.to_owned()
    } else {
        utf8_percent_encode(source, KEPT).to_string()
    }
}

impl Finding {
    /// The file that has the fault.
    fn file<'r>(&'r self, report: &'r Report) -> &'r str {
        self.file.as_deref().unwrap_or(&report.source)
    }
}

fn finding_place(report: &Report, finding: &Finding) -> String {
    let file = finding.file(report);
    let pointer = one_line(&finding.pointer);
    match (finding.line, finding.column) {
        (Some(line), Some(column)) => format!("{file}:{line}:{column} {pointer}"),
        _ => format!("{file} {pointer}"),
    }
}
