//! `openapi-mcp tools`: the tools as a person wants to see them before an agent does.

use std::io::Write as _;
use std::process::ExitCode;

use clap::ValueEnum;
use comfy_table::{ContentArrangement, Table};
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Value, json};

use super::ConfigFile;
use super::load::{self, Purpose};
use crate::config::settings::{ApiSettings, LogLevel};
use crate::error::Failure;
use crate::spec::Operation;

#[derive(Debug, clap::Args)]
pub(super) struct ToolsCommand {
    #[command(flatten)]
    api: ApiSettings,
    #[command(flatten)]
    config: ConfigFile,
    /// How the tools are shown
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// For people
    Table,
    /// An array of the tools as clients get them, each with its method and path
    Json,
}

pub(super) async fn run(command: &ToolsCommand) -> Result<ExitCode, Failure> {
    let config = load::settings(&command.api, None, command.config.config.as_deref(), LogLevel::Warn)?;
    let (api, _) = load::api(&config, Purpose::Looks).await?;
    let text = match command.format {
        Format::Table => table(api.iter()),
        Format::Json => {
            let whole = api.iter().zip(api.texts()).map(|((_, operation), text)| {
                let tool: Value = serde_json::from_str(text).unwrap_or_default();
                json!({ "method": operation.method.as_str(), "path": operation.path, "tool": tool })
            });
            let tools: Vec<Value> = whole.collect();
            serde_json::to_string_pretty(&tools).map_err(|error| Failure::Io("the tools cannot be written".into(), error.into()))? + "\n"
        }
    };
    // A closed pipe (`| head`) is no failure.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(ExitCode::SUCCESS)
}

fn table<'t>(tools: impl Iterator<Item = (&'t Tool, &'t Operation)>) -> String {
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
        "TITLE",
    ]);
    let (mut count, mut read_only) = (0_usize, 0_usize);
    for (tool, operation) in tools {
        count += 1;
        let hints = tool.annotations.clone().unwrap_or_else(ToolAnnotations::new);
        read_only += usize::from(hints.read_only_hint == Some(true));
        let mark = |hint: Option<bool>| match hint {
            Some(true) => "yes",
            Some(false) => "no",
            None => "-",
        };
        table.add_row([
            tool.name.as_ref(),
            operation.method.as_str(),
            &crate::spec::text::one_line(&operation.path),
            mark(hints.read_only_hint),
            mark(hints.destructive_hint),
            mark(hints.idempotent_hint),
            mark(hints.open_world_hint),
            tool.title.as_deref().unwrap_or_default(),
        ]);
    }
    let rows: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    format!("{}\n\n{count} tools, {read_only} of them read-only\n", rows.join("\n"))
}
