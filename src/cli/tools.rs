//! `openapi-mcp tools`: the tools as a person wants to see them before an agent does.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::ValueEnum;
use serde_json::Value;

use super::each_api::{LoadedApis, UNREADABLE, catalog_of, load_each, title_of};
use super::listing::{self, Shown};
use super::load::LoadPurpose;
use super::log::Spinner;
use super::settings::{self, SettingsUse};
use super::{ConfigFile, Failure, help, output};
use crate::api::{Api, BoundTool, ToolIndex};
use crate::caller::Caller;
use crate::config::ApiConfig;
use crate::config::settings::{CommandSettings, LogLevel};
use crate::config::tenants::describe_tenants;
use crate::json;

#[derive(clap::Args)]
#[command(after_help = help::TOOLS_EXAMPLES)]
pub(crate) struct ToolsCommand {
    #[command(flatten)]
    settings: CommandSettings,
    #[command(flatten)]
    config: ConfigFile,
    #[command(flatten)]
    filter: Filter,
    /// Show the source of each hint
    #[arg(long)]
    explain: bool,
    /// Show the tools that a user with these claims may list: a file with the claims of an access
    /// token, as JSON
    #[arg(long = "as", value_name = "FILE", hide_short_help = true)]
    claims: Option<PathBuf>,
    /// The format of the list
    #[arg(long, value_enum, default_value = "table")]
    format: ToolsFormat,
}

/// The tools that are shown, of those that the settings leave.
#[derive(clap::Args)]
#[command(next_help_heading = "List")]
struct Filter {
    /// Show only tools that have this tag (repeatable: any of them)
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// Show only tools that answer this question, best match first
    ///
    /// A question has words of what a tool does, or is the name or the path of one.
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum ToolsFormat {
    /// For people
    Table,
    /// An array of the tools as clients get them, each with its method, path and hints
    Json,
    /// A page for people, with a reason for each hint: fit for a directory of servers
    Markdown,
    /// The page that a server shows to people, as a file
    Html,
}

pub(crate) async fn run(command: &ToolsCommand) -> Result<ExitCode, Failure> {
    let config = settings::read(
        &command.settings,
        &command.config,
        SettingsUse::Inspect,
        LogLevel::Warn,
    )?;
    let spinner = Spinner::start("reading the document");
    let LoadedApis { apis, is_complete } = load_each(config.apis, LoadPurpose::Inspect).await?;
    drop(spinner);
    let catalog = catalog_of(&apis)?;
    let configs: Vec<Arc<ApiConfig>> = apis.iter().map(|(config, _)| Arc::clone(config)).collect();
    let apis = apis.iter().map(|(_, loaded)| loaded.api.as_ref());
    let user = command.claims.as_deref().map(user_of_claims).transpose()?;
    let granted = user.as_ref().map(Caller::granted);
    let seen = catalog.as_ref().map(|catalog| catalog.visible(granted));
    let is_listed = |place: usize, index: ToolIndex| {
        let api = seen.as_ref().and_then(|seen| seen.apis.get(place));
        user.is_none() || api.is_some_and(|api| api.shows(index))
    };
    let tools = command.filter.apply(apis.clone(), &is_listed);
    let shown = Shown {
        title: title_of(apis),
        tools: &tools,
    };
    let text = match command.format {
        ToolsFormat::Table if command.explain => {
            explained_tenants(&configs) + &listing::explained(&shown)
        }
        ToolsFormat::Table => listing::table(&shown, terminal_columns()),
        ToolsFormat::Json => listing::tools_as_json(&shown),
        ToolsFormat::Markdown => listing::markdown(&shown),
        ToolsFormat::Html => listing::html(&shown),
    };
    output::print_result(&text)?;
    if let Some(meta_tools) = catalog.as_ref().and_then(|catalog| catalog.search_tools()) {
        let pinned = match meta_tools.pinned.len() {
            0 => String::new(),
            pinned => format!(" and {pinned} with `pin`"),
        };
        let names: Vec<String> = meta_tools.names().collect();
        output::print_remark(&format!(
            "note: in search mode, clients list {}{pinned} in place of these; `openapi-mcp call` takes them as well",
            names.join(", ")
        ));
    }
    let beside = catalog
        .as_ref()
        .filter(|catalog| catalog.search_tools().is_none());
    if let Some(tool) = beside.and_then(|catalog| catalog.wait_tool()) {
        output::print_remark(&format!(
            "note: clients list {tool} as well, which waits for operations that take long"
        ));
    }
    Ok(if is_complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(UNREADABLE)
    })
}

/// Describes the destinations of the calls of APIs with tenants.
fn explained_tenants(configs: &[Arc<ApiConfig>]) -> String {
    let with_tenants = configs.iter().filter(|config| !config.mock);
    let lines = with_tenants.filter_map(|config| {
        let lines = describe_tenants(config.options.tenants.as_ref()?).join("\n");
        let name = config
            .options
            .name
            .as_ref()
            .map(|name| format!("{name}: "))
            .unwrap_or_default();
        Some(format!("{name}{lines}\n\n"))
    });
    lines.collect()
}

/// Returns the width of the terminal of standard output; `None` if it is not one.
fn terminal_columns() -> Option<usize> {
    let (terminal_size::Width(columns), _) = terminal_size::terminal_size_of(std::io::stdout())?;
    Some(usize::from(columns))
}

/// Returns the user whose access token has the claims of a file.
fn user_of_claims(path: &Path) -> Result<Caller, Failure> {
    let wrong = |why: String| Failure::setting(format!("--as: `{}` {why}", path.display()));
    let text = std::fs::read(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    match json::parse_value(&text) {
        Ok(Value::Object(claims)) => Ok(Caller::default().with_claims(claims)),
        Ok(_) => Err(wrong("is not a JSON object of claims".into())),
        Err(error) => Err(wrong(format!("is not valid JSON: {error}"))),
    }
}

impl Filter {
    /// Returns the tools of all APIs that it admits. `is_listed` decides by the index of the API
    /// and of the tool.
    fn apply<'a>(
        &self,
        apis: impl Iterator<Item = &'a Api>,
        is_listed: &dyn Fn(usize, ToolIndex) -> bool,
    ) -> Vec<&'a BoundTool> {
        let found = apis.enumerate().flat_map(|(place, api)| {
            let admits = |index: ToolIndex| is_listed(place, index) && self.admits(api.tool(index));
            let found: Vec<ToolIndex> = match &self.search {
                Some(question) => api.search(question, None, &admits).hits,
                None => api.indexes().filter(|index| admits(*index)).collect(),
            };
            found
                .into_iter()
                .map(|index| api.tool(index))
                .collect::<Vec<_>>()
        });
        found.collect()
    }

    fn admits(&self, offered: &BoundTool) -> bool {
        let has_tag = |tag: &String| {
            let tags = &offered.operation.tags;
            tags.iter()
                .any(|found| found.to_lowercase() == tag.to_lowercase())
        };
        self.tag.is_empty() || self.tag.iter().any(has_tag)
    }
}
