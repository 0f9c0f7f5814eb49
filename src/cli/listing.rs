//! A list of tools for people, for programs, for spreadsheets, and as a page for a directory of servers.

use std::fmt::Write as _;
use std::io;

use comfy_table::{ContentArrangement, Table};
use serde_json::{Value, json};

use crate::annotate::{Hint, Hints};
use crate::api::OfferedTool;
use crate::text::one_line;

/// What is shown.
pub(crate) struct Shown<'a> {
    /// The document's title.
    pub(crate) title: String,
    /// The tools of this page.
    pub(crate) tools: &'a [OfferedTool<'a>],
    /// How many come before.
    pub(crate) offset: usize,
    /// How many there are in all.
    pub(crate) total: usize,
}

impl Shown<'_> {
    /// How many there are, and which of them are shown.
    pub(crate) fn counted(&self) -> String {
        let read_only = self.tools.iter().filter(|offered| offered.hints.is_read_only()).count();
        if self.tools.len() == self.total {
            let tools = if self.total == 1 { "tool" } else { "tools" };
            format!("{} {tools}, {read_only} of them read-only", self.total)
        } else if self.tools.is_empty() {
            format!("none shown, {} tools in all", self.total)
        } else {
            let (first, last) = (self.offset + 1, self.offset + self.tools.len());
            format!("tools {first} to {last} of {}, {read_only} of these read-only", self.total)
        }
    }
}

/// `yes` or `no`; in brackets where it is MCP's default and not written out.
fn mark(hints: &Hints, hint: Hint) -> String {
    let word = if hints.effective(hint) { "yes" } else { "no" };
    match hints.get(hint) {
        Some(_) => word.to_owned(),
        None => format!("({word})"),
    }
}

fn source(hints: &Hints, hint: Hint) -> String {
    hints
        .get(hint)
        .map_or_else(|| "MCP default, not written out".to_owned(), |sourced| sourced.reason.to_string())
}

/// A row a tool.
pub(crate) fn table(shown: &Shown<'_>) -> String {
    let mut table = Table::new();
    table
        .load_style(comfy_table::presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    table.set_header([
        "NAME",
        "METHOD",
        "PATH",
        "READ-ONLY",
        "DESTRUCTIVE",
        "IDEMPOTENT",
        "OPEN-WORLD",
        "CATEGORY",
        "TITLE",
    ]);
    for offered in shown.tools {
        let [read_only, destructive, idempotent, open_world] = Hint::ALL.map(|hint| mark(offered.hints, hint));
        table.add_row([
            offered.tool.name.as_ref(),
            offered.operation.method.as_str(),
            &one_line(&offered.operation.path),
            &read_only,
            &destructive,
            &idempotent,
            &open_world,
            offered.category.unwrap_or("-"),
            offered.tool.title.as_deref().unwrap_or_default(),
        ]);
    }
    let rows: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    let silent = shown.tools.iter().any(|offered| !offered.hints.is_set());
    let legend = if silent {
        "; (in brackets: MCP's default, not written out)"
    } else {
        ""
    };
    format!("{}\n\n{}{legend}\n", rows.join("\n"), shown.counted())
}

/// Each tool with a line a hint: value and source.
pub(crate) fn explained(shown: &Shown<'_>) -> String {
    let mut out = String::new();
    for offered in shown.tools {
        let _ = writeln!(out, "{}  {}", offered.tool.name, one_line(&offered.operation.label()));
        for hint in Hint::ALL {
            let _ = writeln!(
                out,
                "  {}={} · {}",
                hint.word(),
                offered.hints.effective(hint),
                source(offered.hints, hint)
            );
        }
    }
    let _ = writeln!(out, "\n{}", shown.counted());
    out
}

/// An array of tools as clients get them.
pub(crate) fn tool_as_json(shown: &Shown<'_>) -> serde_json::Result<String> {
    let tools: Vec<Value> = shown
        .tools
        .iter()
        .map(|offered| {
            let hints: serde_json::Map<String, Value> = Hint::ALL
                .into_iter()
                .map(|hint| {
                    let said = json!({
                        "value": offered.hints.effective(hint),
                        "explicit": offered.hints.get(hint).is_some(),
                        "source": source(offered.hints, hint),
                        "because": offered.hints.because(hint, &offered.operation.method),
                    });
                    (hint.key().to_owned(), said)
                })
                .collect();
            let tool: Value = serde_json::from_str(offered.text).unwrap_or_default();
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
    Ok(serde_json::to_string_pretty(&tools)? + "\n")
}

/// A row a tool, RFC 4180.
pub(crate) fn csv(shown: &Shown<'_>) -> io::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut header: Vec<String> = ["name", "title", "method", "path", "category", "tags"].map(str::to_owned).into();
    header.extend(Hint::ALL.map(|hint| hint.key().to_owned()));
    header.extend(Hint::ALL.map(|hint| format!("{} source", hint.key())));
    writer.write_record(&header)?;
    for offered in shown.tools {
        let mut row = vec![
            offered.tool.name.to_string(),
            offered.tool.title.clone().unwrap_or_default(),
            offered.operation.method.to_string(),
            one_line(&offered.operation.path),
            offered.category.unwrap_or_default().to_owned(),
            offered.operation.tags.join(" "),
        ];
        row.extend(Hint::ALL.map(|hint| offered.hints.effective(hint).to_string()));
        row.extend(Hint::ALL.map(|hint| source(offered.hints, hint)));
        // A spreadsheet takes a cell that begins like this for a formula; the texts are a stranger's.
        for cell in &mut row {
            if cell.starts_with(['=', '+', '-', '@', '\t']) {
                cell.insert(0, '\'');
            }
        }
        writer.write_record(&row)?;
    }
    let bytes = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
    String::from_utf8(bytes).map_err(io::Error::other)
}

/// A page for people, with a reason for each hint.
pub(crate) fn markdown(shown: &Shown<'_>) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "# {}: tools and their hints\n", cell(&shown.title));
    let _ = writeln!(out, "{}.\n", shown.counted());
    out.push_str("| Tool | Title | Read-only | Destructive | Idempotent | Open world | Why |\n|---|---|---|---|---|---|---|\n");
    for offered in shown.tools {
        let [read_only, destructive, idempotent, open_world] = Hint::ALL.map(|hint| mark(offered.hints, hint));
        let why = Hint::ALL.map(|hint| {
            let because = offered.hints.because(hint, &offered.operation.method);
            format!("{}: {}", hint.word(), cell(&because))
        });
        let _ = writeln!(
            out,
            "| `{}` | {} | {read_only} | {destructive} | {idempotent} | {open_world} | {} |",
            offered.tool.name,
            cell(offered.tool.title.as_deref().unwrap_or_default()),
            why.join("<br>")
        );
    }
    if shown.tools.iter().any(|offered| !offered.hints.is_set()) {
        out.push_str("\nIn brackets: MCP's default, which applies because the tool says nothing.\n");
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
