//! `openapi-mcp call`: one call through the very path that a client's call takes.

mod dry_run;
mod tenant;

use std::io::Read as _;
use std::process::ExitCode;
use std::sync::Arc;

use rmcp::model::{CallToolResult, ContentBlock, JsonObject, ResourceContents};
use serde_json::Value;

use self::tenant::TenantClient;
use super::each_api::{LoadedApis, load_each};
use super::load::{self, LoadPurpose, Loaded};
use super::{ConfigFile, help, output};
use crate::api::OnMissingCredential;
use crate::config::ApiConfig;
use crate::config::settings::{ApiSettings, LogLevel};
use crate::error::Failure;
use crate::text::counted;

#[derive(Debug, clap::Args)]
#[command(after_help = help::CALL_EXAMPLES)]
pub(crate) struct CallCommand {
    #[command(flatten)]
    api: ApiSettings,
    #[command(flatten)]
    config: ConfigFile,
    /// All arguments as one JSON object; single ones are put over it
    #[arg(long, value_name = "JSON")]
    args: Option<String>,
    /// Show the whole result as clients get it
    #[arg(long)]
    json: bool,
    /// The tenant whose call it is, where the API has tenants: the value of its claim or header
    #[arg(long, value_name = "VALUE")]
    tenant: Option<String>,
    /// Send nothing: show the request that would be sent, with *** for credentials
    #[arg(long, value_enum, value_name = "SHAPE", num_args = 0..=1, require_equals = true, default_missing_value = "http", conflicts_with = "json")]
    dry_run: Option<dry_run::DryRunFormat>,
    /// The tool's name
    tool: String,
    /// Arguments: key=value, key=@FILE (the file's text), key:=JSON
    #[arg(value_name = "KEY=VALUE")]
    arguments: Vec<String>,
}

pub(crate) async fn run(command: &CallCommand) -> Result<ExitCode, Failure> {
    let config = load::api_settings(&command.api, &command.config, LogLevel::Warn)?;
    let arguments = arguments(command).map_err(Failure::setting)?;
    let (config, Loaded { api, mock: _mock, .. }) = load_called(config.apis, &command.tool).await?;
    let client =
        TenantClient::new(config.tenants.as_ref().filter(|_| !config.mock), command.tenant.as_deref()).map_err(Failure::setting)?;
    let caller = client.caller();
    if let Some(shape) = command.dry_run
        && let Some(prepared) = api.preview(&command.tool, Some(arguments.clone()), OnMissingCredential::Omit, &caller)
    {
        return Ok(match prepared {
            Ok(request) => {
                output::print_result(&(dry_run::format_request(&request, shape) + "\n"))?;
                // A request is shown also where a credential is missing, without which it would not be sent.
                if let Some(Err(refusal)) = api.preview(&command.tool, Some(arguments), OnMissingCredential::Refuse, &caller) {
                    output::print_remark(&format!("note: this would not be sent: {}", format_result(&refusal)));
                }
                ExitCode::SUCCESS
            }
            Err(result) => {
                output::print_result(&(format_result(&result) + "\n"))?;
                ExitCode::FAILURE
            }
        });
    }
    let Some(result) = api.call(&command.tool, Some(arguments), caller).await else {
        let hint = api.nearest(&command.tool).map_or_else(
            || "`openapi-mcp tools` lists them".to_owned(),
            |name| format!("did you mean `{name}`?"),
        );
        return Err(Failure::setting(format!("there is no tool `{}`; {hint}", command.tool)));
    };
    let text = if command.json {
        serde_json::to_string_pretty(&result).unwrap_or_default()
    } else {
        format_result(&result)
    };
    output::print_result(&(text + "\n"))?;
    if !command.json && result.structured_content.is_some() {
        // A remark on a reply is not a part of it: `| jq` must still work.
        for remark in result.content.iter().skip(1).filter_map(ContentBlock::as_text) {
            output::print_remark(&remark.text);
        }
    }
    Ok(if result.is_error == Some(true) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// The API of a tool, with its settings. Of several, only those are loaded whose tools' names may be like this.
async fn load_called(mut configs: Vec<ApiConfig>, tool: &str) -> Result<(Arc<ApiConfig>, Loaded), Failure> {
    let all: Vec<String> = configs
        .iter()
        .filter_map(|config| config.name.as_ref())
        .map(ToString::to_string)
        .collect();
    configs.retain(|config| config.name.is_none() || tool.starts_with(config.annotate.names.prefix.as_str()));
    configs.iter().for_each(load::caution);
    let LoadedApis { apis, .. } = load_each(configs, LoadPurpose::Serve).await?;
    let (mut others, mut found) = (Vec::new(), None);
    for (config, loaded) in apis {
        if found.is_none() && loaded.api.get(tool).is_some() {
            found = Some((config, loaded));
        } else {
            others.push((config, loaded));
        }
    }
    found.or_else(|| others.into_iter().next()).ok_or_else(|| {
        let problem = format!(
            "there is no tool `{tool}`: the name begins with that of none of the APIs ({}); `openapi-mcp tools` lists them",
            all.join(", ")
        );
        Failure::setting(problem)
    })
}

/// The arguments of the command line. Plain values stay text here; what the schema wants as a number, a list or an object
/// is read as that on the way, exactly as for a client that gives text.
fn arguments(command: &CallCommand) -> Result<JsonObject, String> {
    let mut arguments = match &command.args {
        None => JsonObject::new(),
        Some(text) => serde_json::from_str(text).map_err(|error| format!("--args is not a JSON object: {error}"))?,
    };
    for argument in &command.arguments {
        let (key, value) = argument
            .split_once('=')
            .ok_or_else(|| format!("`{argument}` is not an argument; write key=value"))?;
        let (key, value) = match (key.strip_suffix(':'), value.strip_prefix('@')) {
            (Some(key), Some(path)) => {
                return Err(format!(
                    "the value of `{key}` is not JSON; for the text of a file, write {key}=@{path}"
                ));
            }
            (Some(key), None) => (
                key,
                serde_json::from_str(value)
                    .map_err(|error| format!("the value of `{key}` is not JSON: {error}; for plain text, write {key}={value}"))?,
            ),
            (None, Some(path)) => (
                key,
                Value::String(file(path).map_err(|error| format!("`{path}` cannot be read: {error}"))?),
            ),
            (None, None) => (key, Value::String(value.to_owned())),
        };
        arguments.insert(key.to_owned(), value);
    }
    Ok(arguments)
}

/// A file's text; of a file that is not text, its bytes as base64, as a client would give them.
fn file(path: &str) -> std::io::Result<String> {
    use base64::Engine as _;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.read_to_end(&mut bytes)?;
    Ok(String::from_utf8(bytes).unwrap_or_else(|error| base64::engine::general_purpose::STANDARD.encode(error.as_bytes())))
}

fn encoded_bytes(media_type: &str, base64: &str) -> String {
    format!("[{media_type}, {} of base64; --json shows them]", counted(base64.len(), "byte"))
}

fn format_result(result: &CallToolResult) -> String {
    if let Some(structured) = &result.structured_content {
        return serde_json::to_string_pretty(structured).unwrap_or_default();
    }
    let blocks = result.content.iter().map(|block| match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => encoded_bytes(&image.mime_type, &image.data),
        ContentBlock::Audio(audio) => encoded_bytes(&audio.mime_type, &audio.data),
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::BlobResourceContents { mime_type, blob, .. } => encoded_bytes(mime_type.as_deref().unwrap_or("bytes"), blob),
            ResourceContents::TextResourceContents { text, .. } => text.clone(),
            other => serde_json::to_string(other).unwrap_or_default(),
        },
        other => serde_json::to_string(other).unwrap_or_default(),
    });
    blocks.collect::<Vec<_>>().join("\n")
}
