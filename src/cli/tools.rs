//! `openapi-mcp tools`: the tools as a person wants to see them before an agent does.

use std::process::ExitCode;
use std::sync::Arc;

use clap::ValueEnum;

use super::each_api::{LoadedApis, UNREADABLE, catalog_of, load_each, title_of};
use super::listing::{self, Shown};
use super::load::{self, LoadPurpose};
use super::log::spinner::Spinner;
use super::{ConfigFile, Failure, help, output};
use crate::annotate::Hint;
use crate::api::{Api, OfferedTool};
use crate::config::ApiConfig;
use crate::config::apis::tenants::resolve::describe_tenants;
use crate::config::settings::{ApiSettings, LogLevel};

#[derive(Debug, clap::Args)]
#[command(after_help = help::TOOLS_EXAMPLES)]
pub(crate) struct ToolsCommand {
    #[command(flatten)]
    api: ApiSettings,
    #[command(flatten)]
    config: ConfigFile,
    #[command(flatten)]
    filter: Filter,
    /// Say of each hint where it comes from
    #[arg(long)]
    explain: bool,
    /// How the tools are shown
    #[arg(long, value_enum, default_value = "table")]
    format: ToolsFormat,
}

/// Which of the tools are shown, by the hints that count: those written out, else MCP's defaults.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Filters")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
struct Filter {
    /// Show only tools that are not marked as read-only
    #[arg(long)]
    no_read_only: bool,
    /// Show only tools that may change or remove what exists
    #[arg(long)]
    destructive: bool,
    /// Show only tools whose repetition changes nothing more
    #[arg(long, hide_short_help = true)]
    idempotent: bool,
    /// Show only those whose repetition may
    #[arg(long, hide_short_help = true, conflicts_with = "idempotent")]
    no_idempotent: bool,
    /// Show only tools that deal with things outside
    #[arg(long, hide_short_help = true)]
    open_world: bool,
    /// Show only those that do not
    #[arg(long, hide_short_help = true, conflicts_with = "open_world")]
    no_open_world: bool,
    /// Show only tools with this tag (repeatable: any of them)
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// Show only tools of this category (repeatable: any of them)
    #[arg(long, hide_short_help = true, value_name = "CATEGORY")]
    category: Vec<String>,
    /// Show only tools that answer this question, best match first: words of what they do, a name, or a path
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Show at most this many
    #[arg(long, value_name = "NUMBER")]
    limit: Option<usize>,
    /// Pass over this many first
    #[arg(long, hide_short_help = true, value_name = "NUMBER", default_value = "0")]
    offset: usize,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ToolsFormat {
    /// For people
    Table,
    /// An array of the tools as clients get them, each with its method, path and hints
    Json,
    /// A page for people, with a reason for each hint: fit for a directory of servers
    Markdown,
    /// For spreadsheets
    Csv,
    /// The page that a server shows to people, as a file
    Html,
}

pub(crate) async fn run(command: &ToolsCommand) -> Result<ExitCode, Failure> {
    let config = load::api_settings(&command.api, &command.config, LogLevel::Warn)?;
    let spinner = Spinner::start("reading the document");
    let LoadedApis { apis, is_complete } = load_each(config.apis, LoadPurpose::Inspect).await?;
    drop(spinner);
    let catalog = catalog_of(&apis)?;
    let configs: Vec<Arc<ApiConfig>> = apis.iter().map(|(config, _)| Arc::clone(config)).collect();
    let apis = apis.iter().map(|(_, loaded)| loaded.api.as_ref());
    let all = command.filter.apply(apis.clone());
    let total = all.len();
    let page: Vec<OfferedTool<'_>> = all
        .into_iter()
        .skip(command.filter.offset)
        .take(command.filter.limit.unwrap_or(usize::MAX))
        .collect();
    let shown = Shown {
        title: title_of(apis),
        tools: &page,
        offset: command.filter.offset,
        total,
    };
    let text = match command.format {
        ToolsFormat::Table if command.explain => explained_tenants(&configs) + &listing::explained(&shown),
        ToolsFormat::Table => listing::table(&shown, terminal_columns()),
        ToolsFormat::Json => {
            listing::tools_as_json(&shown).map_err(|error| Failure::Io("the tools cannot be written".into(), error.into()))?
        }
        ToolsFormat::Markdown => listing::markdown(&shown),
        ToolsFormat::Csv => listing::csv(&shown),
        ToolsFormat::Html => listing::html(&shown),
    };
    output::print_result(&text)?;
    if page.len() < total && matches!(command.format, ToolsFormat::Json | ToolsFormat::Csv) {
        // These formats have no room for it.
        output::print_remark(&shown.counted());
    }
    if let Some(gates) = catalog.as_ref().and_then(|catalog| catalog.gates()) {
        let pinned = match gates.pinned().len() {
            0 => String::new(),
            pinned => format!(" and {pinned} with --pin"),
        };
        let names: Vec<String> = gates.names().collect();
        output::print_remark(&format!(
            "note: in search mode, clients list {}{pinned} in place of these; `openapi-mcp call` takes them as well",
            names.join(", ")
        ));
    }
    Ok(if is_complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(UNREADABLE)
    })
}

/// Where the calls of APIs with tenants go.
fn explained_tenants(configs: &[Arc<ApiConfig>]) -> String {
    let with_tenants = configs.iter().filter(|config| !config.mock);
    let lines = with_tenants.filter_map(|config| {
        let lines = describe_tenants(config.tenants.as_ref()?).join("\n");
        let name = config.name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
        Some(format!("{name}{lines}\n\n"))
    });
    lines.collect()
}

/// The width of the terminal that standard output is; nothing where it is something else.
fn terminal_columns() -> Option<usize> {
    let (terminal_size::Width(columns), _) = terminal_size::terminal_size_of(std::io::stdout())?;
    Some(usize::from(columns))
}

impl Filter {
    fn apply<'a>(&self, apis: impl Iterator<Item = &'a Api>) -> Vec<OfferedTool<'a>> {
        let Some(question) = &self.search else {
            return apis.flat_map(Api::iter).filter(|offered| self.admits(offered)).collect();
        };
        let found = apis.flat_map(|api| {
            let found = api.search(question, &|index| self.admits(&api.offered(index)));
            found.hits.into_iter().map(|index| api.offered(index)).collect::<Vec<_>>()
        });
        found.collect()
    }

    fn admits(&self, offered: &OfferedTool<'_>) -> bool {
        let hints = offered.hints;
        let wanted = [
            (self.no_read_only, !hints.is_read_only()),
            (self.destructive, hints.is_destructive()),
            (self.idempotent, hints.effective(Hint::Idempotent)),
            (self.no_idempotent, !hints.effective(Hint::Idempotent)),
            (self.open_world, hints.effective(Hint::OpenWorld)),
            (self.no_open_world, !hints.effective(Hint::OpenWorld)),
        ];
        let any = |wanted: &[String], has: &[&str]| {
            let is_wanted = |has: &&str| wanted.iter().any(|wanted| wanted.to_lowercase() == has.to_lowercase());
            wanted.is_empty() || has.iter().any(is_wanted)
        };
        let tags: Vec<&str> = offered.operation.tags.iter().map(String::as_str).collect();
        wanted.into_iter().all(|(asked, is)| !asked || is) && any(&self.tag, &tags) && any(&self.category, offered.category.as_slice())
    }
}
