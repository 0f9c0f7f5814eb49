//! A report for people, for programs, for code scanning (SARIF 2.1.0) and for GitHub's annotations.

use std::fmt::Write as _;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::{Finding, FindingSeverity, Report};
use crate::text::one_line;

/// More findings of a level than this are counted, not shown, in the text for people.
const MAX_LINES: usize = 50;

/// For people.
#[must_use]
pub(crate) fn report_as_text(report: &Report) -> String {
    let mut out = String::new();
    for (level, word) in [
        (FindingSeverity::Error, "error"),
        (FindingSeverity::Warning, "warning"),
        (FindingSeverity::Note, "note"),
    ] {
        let all: Vec<&Finding> = report.findings.iter().filter(|finding| finding.level == level).collect();
        for finding in all.iter().take(MAX_LINES) {
            let _ = writeln!(out, "{word}: {}: {}", finding_place(report, finding), one_line(&finding.message));
        }
        if all.len() > MAX_LINES {
            let _ = writeln!(out, "{word}: and {} more; --format json shows all", all.len() - MAX_LINES);
        }
    }
    if !report.findings.is_empty() {
        out.push('\n');
    }
    let _ = writeln!(
        out,
        "{}: {} tools, {} of them read-only",
        report.title, report.tools, report.read_only
    );
    let _ = writeln!(out, "tools/list takes {} bytes, about {} tokens", report.bytes, report.tokens);
    if report.tools > 1 {
        let _ = writeln!(out, "the dearest tools:");
        for cost in &report.dearest {
            let _ = writeln!(out, "  {:>8}  {}", cost.bytes, cost.tool);
        }
    }
    let _ = writeln!(
        out,
        "{} errors, {} warnings, {} notes",
        report.count(FindingSeverity::Error),
        report.count(FindingSeverity::Warning),
        report.count(FindingSeverity::Note)
    );
    out
}

/// For programs.
#[must_use]
pub(crate) fn report_as_json(report: &Report) -> String {
    serde_json::to_string_pretty(report).unwrap_or_default() + "\n"
}

/// GitHub's workflow commands, one line a finding.
#[must_use]
pub(crate) fn github(report: &Report) -> String {
    let mut out = String::new();
    for finding in &report.findings {
        let word = match finding.level {
            FindingSeverity::Error => "error",
            FindingSeverity::Warning => "warning",
            FindingSeverity::Note => "notice",
        };
        let property = |text: &str| {
            text.replace('%', "%25")
                .replace('\r', "%0D")
                .replace('\n', "%0A")
                .replace(':', "%3A")
                .replace(',', "%2C")
        };
        let data = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
        let _ = write!(out, "::{word} file={}", property(finding.file.as_deref().unwrap_or(&report.source)));
        if let (Some(line), Some(column)) = (finding.line, finding.column) {
            let _ = write!(out, ",line={line},col={column}");
        }
        let _ = writeln!(out, "::{}", data(&format!("{}: {}", finding.pointer, finding.message)));
    }
    out
}

/// SARIF 2.1.0.
#[must_use]
pub(crate) fn sarif(report: &Report) -> String {
    let result = |finding: &Finding| {
        let level = match finding.level {
            FindingSeverity::Error => "error",
            FindingSeverity::Warning => "warning",
            FindingSeverity::Note => "note",
        };
        let mut location = json!({ "artifactLocation": { "uri": uri(finding.file.as_deref().unwrap_or(&report.source)) } });
        if let (Some(line), Some(column), Value::Object(location)) = (finding.line, finding.column, &mut location) {
            location.insert("region".into(), json!({ "startLine": line, "startColumn": column }));
        }
        json!({
            "ruleId": finding.rule,
            "level": level,
            "message": { "text": finding.message },
            "locations": [{ "physicalLocation": location, "logicalLocations": [{ "fullyQualifiedName": finding.pointer }] }]
        })
    };
    let rule = |(id, text): (&str, &str)| json!({ "id": id, "shortDescription": { "text": text } });
    let rules = [
        ("document", "What the document says cannot be served as it is"),
        ("client", "What a client would hide or refuse"),
        ("annotation", "A name that speaks against its method"),
    ];
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "openapi-mcp", "version": env!("CARGO_PKG_VERSION"), "rules": rules.map(rule) } },
            "results": report.findings.iter().map(result).collect::<Vec<_>>()
        }]
    });
    serde_json::to_string_pretty(&log).unwrap_or_default() + "\n"
}

/// A path as a URI reference (SARIF 2.1.0 section 3.4.3); a URL stays one.
fn uri(source: &str) -> String {
    const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    if source.starts_with("http://") || source.starts_with("https://") {
        source.to_owned()
    } else {
        utf8_percent_encode(source, KEPT).to_string()
    }
}

fn finding_place(report: &Report, finding: &Finding) -> String {
    let file = finding.file.as_deref().unwrap_or(&report.source);
    let pointer = one_line(&finding.pointer);
    match (finding.line, finding.column) {
        (Some(line), Some(column)) => format!("{file}:{line}:{column} {pointer}"),
        _ => format!("{file} {pointer}"),
    }
}
