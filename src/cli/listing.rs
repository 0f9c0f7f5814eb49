//! A list of tools for people, for programs, and as a page for a directory of servers.

use std::fmt::Write as _;

use serde_json::{Value, json};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::annotate::{Hint, Hints};
use crate::api::BoundTool;
use crate::json::JsonObject;
use crate::mcp::page_tools::describe_tool;
use crate::spec::operation::rules::{ArgumentRule, OperationRules};
use crate::text::{counted, one_line};
use crate::transport::http::page::page_as_file;

/// The tools that are shown.
pub(crate) struct Shown<'a> {
    /// The document's title.
    pub(crate) title: String,
    pub(crate) tools: &'a [&'a BoundTool],
}

impl Shown<'_> {
    /// The number of tools, and how many of them only read.
    fn counted(&self) -> String {
        let read_only = self
            .tools
            .iter()
            .filter(|offered| offered.hints.is_read_only())
            .count();
        format!(
            "{}, {read_only} of them read-only",
            counted(self.tools.len(), "tool")
        )
    }
}

/// Returns `yes` or `no`; in brackets if it is MCP's default and not explicit.
fn mark(hints: &Hints, hint: Hint) -> String {
    let word = if hints.effective(hint) { "yes" } else { "no" };
    match hints.get(hint) {
        Some(_) => word.to_owned(),
        None => format!("({word})"),
    }
}

/// The page that a server shows to people, with these tools in it.
pub(crate) fn html(shown: &Shown<'_>) -> String {
    let tools: Value = shown
        .tools
        .iter()
        .map(|offered| describe_tool(offered, offered.text()))
        .collect();
    page_as_file(&shown.title, &tools)
}

/// Writes a row for each tool, in short columns if the terminal is too narrow for the long ones.
pub(crate) fn table(shown: &Shown<'_>, terminal_columns: Option<usize>) -> String {
    let is_silent = shown.tools.iter().any(|offered| !offered.hints.is_set());
    let long = aligned(&long_rows(shown));
    let fits = |columns| long.iter().all(|line| line.width() <= columns);
    match terminal_columns.filter(|columns| !fits(*columns)) {
        None => {
            let legend = if is_silent {
                "; (in brackets: MCP's default, not written out)"
            } else {
                ""
            };
            format!("{}\n\n{}{legend}\n", long.join("\n"), shown.counted())
        }
        Some(columns) => {
            let default = if is_silent {
                ";\n(in brackets) MCP's default"
            } else {
                ""
            };
            format!(
                "{}\n\n{}\nRO read-only, DE destructive, ID idempotent, OW open-world; y yes, n no{default}\n",
                short_lines(shown, columns).join("\n"),
                shown.counted()
            )
        }
    }
}

fn long_rows(shown: &Shown<'_>) -> Vec<Vec<String>> {
    let header = [
        "NAME",
        "METHOD",
        "PATH",
        "READ-ONLY",
        "DESTRUCTIVE",
        "IDEMPOTENT",
        "OPEN-WORLD",
        "CATEGORY",
        "TITLE",
    ];
    let row = |offered: &&BoundTool| {
        let mut row = Vec::from(first_cells(offered));
        row.extend(Hint::ALL.map(|hint| mark(&offered.hints, hint)));
        row.push(offered.category.as_deref().unwrap_or("-").to_owned());
        row.push(offered.title.to_string());
        row
    };
    std::iter::once(header.map(str::to_owned).into())
        .chain(shown.tools.iter().map(row))
        .collect()
}

/// Lines of at most so many columns, as long as names and methods fit into them: paths are cut.
fn short_lines(shown: &Shown<'_>, columns: usize) -> Vec<String> {
    let mut rows: Vec<Vec<String>> = vec![
        ["NAME", "METHOD", "RO", "DE", "ID", "OW", "PATH"]
            .map(str::to_owned)
            .into(),
    ];
    for offered in shown.tools {
        let [name, method, path] = first_cells(offered);
        let marks = Hint::ALL.map(|hint| {
            let mark = mark(&offered.hints, hint);
            mark.replace("yes", "y").replace("no", "n")
        });
        let row = [name, method].into_iter().chain(marks).chain([path]);
        rows.push(row.collect());
    }
    aligned(&rows)
        .into_iter()
        .map(|line| cut_to_width(&line, columns))
        .collect()
}

fn first_cells(offered: &BoundTool) -> [String; 3] {
    [
        offered.name.to_string(),
        offered.operation.method.to_string(),
        one_line(&offered.operation.path),
    ]
}

/// Rows as lines, in which columns begin below each other.
fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = (*widest).max(cell.width());
        }
    }
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths);
        let padded = cells.map(|(cell, width)| format!(" {cell}{:1$} ", "", width - cell.width()));
        padded.collect::<String>().trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

fn cut_to_width(line: &str, columns: usize) -> String {
    if line.width() <= columns {
        return line.to_owned();
    }
    let mut cut = String::new();
    for character in line.chars() {
        if cut.width() + character.width().unwrap_or(0) + 1 > columns {
            break;
        }
        cut.push(character);
    }
    cut + "…"
}

/// Each tool with a line a hint: value and source.
pub(crate) fn explained(shown: &Shown<'_>) -> String {
    let mut out = String::new();
    for offered in shown.tools {
        let _ = writeln!(
            out,
            "{}  {}",
            offered.name,
            one_line(&offered.operation.label())
        );
        for hint in Hint::ALL {
            let _ = writeln!(
                out,
                "  {}={} · {}",
                hint.word(),
                offered.hints.effective(hint),
                offered.hints.source(hint)
            );
        }
        if let Some((scheme, scopes)) = offered.as_user() {
            let scopes = scopes.unwrap_or("none");
            let _ = writeln!(
                out,
                "  called as the user · `{}`, scopes asked for: {}",
                one_line(scheme),
                one_line(scopes)
            );
        }
        explain_rules(&offered.operation.rules, &mut out);
    }
    let _ = writeln!(out, "\n{}", shown.counted());
    out
}

/// Writes the settings of rules for arguments and replies, a line each, without values.
fn explain_rules(rules: &OperationRules, out: &mut String) {
    for rule in &rules.arguments {
        let said = match rule.closed_source() {
            Some(source) => format!("always sent, {}", source.describe()),
            None if rule.is_closed() => "never sent".to_owned(),
            None => describe_open(rule),
        };
        let origins: Vec<&str> = rule
            .origins
            .iter()
            .map(|(origin, _)| origin.as_str())
            .collect();
        let _ = writeln!(
            out,
            "  {} · {} · {}",
            one_line(&rule.target.to_string()),
            said,
            origins.join(", ")
        );
    }
    if rules.takes_any_body() {
        let _ = writeln!(out, "  validate · lenient");
    }
    if rules.max_pages > 0 {
        let _ = writeln!(out, "  collect_pages · {}", rules.max_pages);
    }
    if let Some(rule) = &rules.response {
        let _ = writeln!(out, "  response · {}", rule.keys_in_words());
    }
    if let Some(rule) = &rules.wait {
        let _ = writeln!(out, "  wait · {}", rule.keys_in_words());
    }
}

/// The settings of a rule for an argument that calls may give.
fn describe_open(rule: &ArgumentRule) -> String {
    let is_required = rule
        .required
        .map(|is_required| if is_required { "required" } else { "optional" }.to_owned());
    let is_lenient = rule.lenient.map(|is_lenient| {
        let how = if is_lenient { "leniently" } else { "strictly" };
        format!("checked {how}")
    });
    let values = rule.values.as_ref();
    let described = rule.description.as_ref();
    let said = [
        rule.name.as_ref().map(|name| format!("called `{name}`")),
        rule.default.as_ref().map(|_| "has a default".to_owned()),
        values.map(|values| format!("one of {}", counted(values.len(), "value"))),
        is_required,
        is_lenient,
        described.map(|_| "described anew".to_owned()),
    ];
    said.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The tools as a JSON array: each as clients get it, with its operation and the source of each
/// hint.
pub(crate) fn tools_as_json(shown: &Shown<'_>) -> String {
    let tools: Value = shown
        .tools
        .iter()
        .map(|offered| {
            let hints: JsonObject = Hint::ALL
                .into_iter()
                .map(|hint| {
                    let said = json!({
                        "value": offered.hints.effective(hint),
                        "explicit": offered.hints.get(hint).is_some(),
                        "source": offered.hints.source(hint),
                        "because": offered.hints.because(hint, &offered.operation.method),
                    });
                    (hint.key().to_owned(), said)
                })
                .collect();
            let tool: Value = serde_json::from_str(offered.text()).unwrap_or_default();
            json!({
                "method": offered.operation.method.as_str(),
                "path": offered.operation.path,
                "category": offered.category,
                "tags": offered.operation.tags,
                "hints": hints,
                "tool": tool,
            })
        })
        .collect();
    format!("{tools:#}\n")
}

/// A page for people, with a reason for each hint.
pub(crate) fn markdown(shown: &Shown<'_>) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "# {}: tools and their hints\n", cell(&shown.title));
    let _ = writeln!(out, "{}.\n", shown.counted());
    out.push_str("| Tool | Title | Read-only | Destructive | Idempotent | Open world | Why |\n|---|---|---|---|---|---|---|\n");
    for offered in shown.tools {
        let marks = Hint::ALL.map(|hint| mark(&offered.hints, hint));
        let why = Hint::ALL.map(|hint| {
            let because = offered.hints.because(hint, &offered.operation.method);
            format!("{}: {}", hint.word(), cell(&because))
        });
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} |",
            offered.name,
            cell(&offered.title),
            marks.join(" | "),
            why.join("<br>")
        );
    }
    if shown.tools.iter().any(|offered| !offered.hints.is_set()) {
        out.push_str(
            "\nIn brackets: MCP's default, which applies because the tool says nothing.\n",
        );
    }
    out
}

/// A text that can neither end a cell nor be markup; a bare address still reads as one.
fn cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in one_line(text).chars() {
        match character {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '|' | '\\' | '[' | ']' | '*' | '_' | '`' | '~' | '#' => {
                out.push('\\');
                out.push(character);
            }
            other => out.push(other),
        }
    }
    out
}
