//! `openapi-mcp call`: one call that is resolved and sent like a client's, without confirmation and
//! observation.

mod arguments;
mod caller;

use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use self::arguments::GivenArguments;
use self::caller::caller_of_tenant;
use super::each_api::{ConfiguredApi, LoadedApis, catalog_of, load_each};
use super::end_signals::{EndSignals, INTERRUPTED};
use super::load::{self, LoadPurpose};
use super::settings;
use super::{ConfigFile, help, output};
use crate::annotate::names;
use crate::caller::{Caller, WaitPlace};
use crate::config::ApiConfig;
use crate::config::saved_files::SavedFileSettings;
use crate::config::settings::CommandSettings;
use crate::error::Failure;
use crate::json::{JsonObject, object_with};
use crate::mcp::calls::gate::Gate;
use crate::mcp::calls::plan::{NotAdmitted, OperationCall, Plan};
use crate::mcp::meta_tools::why_meta_tool_is_missing;
use crate::proxy::waiting::handle::seal_handles_with;
use crate::proxy::{OnMissingCredential, TenantSource};
use crate::results::tool_result::ToolResult;

/// Time for the result of a call that waits, after a signal.
const INTERRUPTION_GRACE: Duration = Duration::from_millis(500);

#[derive(clap::Args)]
#[command(after_help = help::CALL_EXAMPLES)]
pub(crate) struct CallCommand {
    #[command(flatten)]
    settings: CommandSettings,
    #[command(flatten)]
    config: ConfigFile,
    #[command(flatten)]
    saved_files: SavedFileSettings,
    /// All arguments as one JSON object; single ones are put over it
    #[arg(long, value_name = "JSON")]
    args: Option<String>,
    /// Show the whole result as clients get it
    #[arg(long)]
    json: bool,
    /// The tenant whose call it is, if the API has tenants: the value of its claim or header
    #[arg(long, value_name = "VALUE")]
    tenant: Option<String>,
    /// Call as the user whose access token is in this variable; it is verified as a server with
    /// these settings does
    #[arg(long, value_name = "VARIABLE", hide_short_help = true)]
    as_token_env: Option<String>,
    /// Send nothing: show the request that would be sent, with *** for credentials
    #[arg(long, value_enum, value_name = "SHAPE", num_args = 0..=1, require_equals = true, default_missing_value = "http", conflicts_with = "json")]
    dry_run: Option<DryRunFormat>,
    /// Go on waiting for an operation of the tool: the handle is in the result of the call that
    /// started it
    #[arg(long, value_name = "HANDLE", hide_short_help = true, conflicts_with_all = ["args", "arguments", "dry_run"])]
    handle: Option<String>,
    /// The tool's name
    tool: String,
    /// Arguments: key=value (repeat for a list), body.key=value, key=@FILE (its text, or the file),
    /// key:=JSON
    #[arg(value_name = "KEY=VALUE")]
    arguments: Vec<String>,
}

/// Format of the request.
#[derive(Clone, Copy, ValueEnum)]
enum DryRunFormat {
    /// As an HTTP/1.1 message
    Http,
    /// As a command for a shell
    Curl,
}

pub(crate) async fn run(command: &CallCommand) -> Result<ExitCode, Failure> {
    let given = GivenArguments::read(command.args.as_deref(), &command.arguments)
        .map_err(Failure::setting)?;
    let is_client = command.as_token_env.is_some();
    let config = settings::read_for_calls(
        &command.settings,
        &command.saved_files,
        &command.config,
        is_client,
    )?;
    let user = match &command.as_token_env {
        Some(variable) => Some(
            caller::caller_of_token(variable, &config)
                .await
                .map_err(Failure::setting)?,
        ),
        None => None,
    };
    let has_keys = config.process.state_keys.is_some();
    let mut gate = Gate::default();
    if user.is_some() {
        gate.demand = Some(Arc::new(caller::scope_demand(&config)));
    }
    seal_handles_with(config.process.state_keys.as_ref());
    // What the calls of a mock go to lives as long as this.
    let apis = load_called(config.apis, &command.tool).await?;
    let schema = apis.iter().find_map(|(_, loaded)| {
        let text = loaded.api.tool_json(loaded.api.find(&command.tool)?);
        let mut tool = serde_json::from_str::<JsonObject>(&text).ok()?;
        match tool.remove("inputSchema")? {
            Value::Object(schema) => Some(schema),
            _ => None,
        }
    });
    let arguments = given
        .of_tool(&schema.unwrap_or_default())
        .map_err(Failure::setting)?;
    let Some(catalog) = catalog_of(&apis)? else {
        return Err(unknown_tool(&command.tool, &apis));
    };
    let wait_tool = catalog.wait_tool();
    let (tool, arguments) = match &command.handle {
        None => (command.tool.clone(), arguments),
        Some(handle) => {
            let tool = wait_tool.clone().ok_or_else(|| {
                Failure::setting(format!(
                    "--handle: no operation of the API of `{}` is known to take long, so that there are no handles",
                    command.tool
                ))
            })?;
            (tool, object_with("handle", handle.as_str().into()))
        }
    };
    // A handle belongs to a tenant as well.
    let caller = if wait_tool.is_some_and(|wait_tool| wait_tool == tool) {
        let config = config_of(&apis, &command.tool).or(apis.first().map(|(config, _)| config));
        caller_of(command, config, user.clone())?
    } else {
        Caller::default()
    };
    match catalog.plan(
        &tool,
        Some(arguments),
        user.as_ref().map(Caller::granted),
        &caller,
    ) {
        Some(Plan::Call(call)) => {
            run_call(command, with_types(call), &apis, user, has_keys, &gate).await
        }
        Some(Plan::Answer(answer)) => print_result(command, &*answer.await),
        None => Err(unknown_tool(&command.tool, &apis)),
    }
}

/// The settings of the API that has a tool.
fn config_of<'a>(apis: &'a [ConfiguredApi], tool: &str) -> Option<&'a Arc<ApiConfig>> {
    let mut apis = apis.iter();
    apis.find_map(|(config, loaded)| loaded.api.find(tool).map(|_| config))
}

/// The caller of a tool of an API with these settings.
fn caller_of(
    command: &CallCommand,
    config: Option<&Arc<ApiConfig>>,
    user: Option<Caller>,
) -> Result<Caller, Failure> {
    let tenants = config
        .filter(|config| !config.mock)
        .and_then(|config| config.options.tenants.as_ref());
    let is_told_by_token = user.is_some()
        && tenants.is_some_and(|tenants| matches!(tenants.source, TenantSource::Claim(_)));
    let caller = match &command.tenant {
        None if is_told_by_token => Caller::default(),
        tenant => caller_of_tenant(tenants, tenant.as_deref()).map_err(Failure::setting)?,
    };
    Ok(match user {
        Some(user) => user.with_headers(caller.headers),
        None => caller,
    })
}

fn lacks_scopes(missing: &[String]) -> Failure {
    Failure::setting(format!(
        "--as-token-env: the token lacks a scope that this needs: {}",
        missing.join(" ")
    ))
}

/// Place of the call, from which the command with `--handle` goes on.
fn wait_place(
    call: &OperationCall,
    caller: &Caller,
    has_keys: bool,
    ending: CancellationToken,
) -> Option<Arc<WaitPlace>> {
    let mut place = call.wait_place(caller, ending)?;
    place.how = if has_keys {
        Ok("`openapi-mcp call` with the same settings and tool goes on with --handle".to_owned())
    } else {
        Err("Do not start it again: look for it at the API. With a state key (--state-key-env or --state-key-file), such a call gives a handle with which the next one goes on.".to_owned())
    };
    place.report = Some(Arc::new(|state: &str| output::print_remark(state)));
    Some(Arc::new(place))
}

/// Makes the call of an operation, or shows its request.
async fn run_call(
    command: &CallCommand,
    call: OperationCall,
    apis: &[ConfiguredApi],
    user: Option<Caller>,
    has_keys: bool,
    gate: &Gate,
) -> Result<ExitCode, Failure> {
    if command.handle.is_some() && *call.offered().name != *command.tool {
        return Err(Failure::setting(format!(
            "--handle: the handle belongs to a call of `{}`, and not of `{}`; name that tool to go on",
            call.offered().name,
            command.tool
        )));
    }
    if let Some(user) = &user {
        let missing = gate.missing_scopes(&call, user);
        if !missing.is_empty() {
            return Err(lacks_scopes(&missing));
        }
    }
    let mut caller = caller_of(command, config_of(apis, &call.offered().name), user)?;
    let ending = CancellationToken::new();
    caller.waiting = wait_place(&call, &caller, has_keys, ending.clone());
    if let Some(shape) = command.dry_run {
        return print_request(&call, shape, &caller);
    }
    let mut signals = EndSignals::listen()
        .map_err(|error| Failure::Io("signals cannot be handled".into(), error))?;
    let mut calling = pin!(async {
        match gate.admit(call, caller, None).await {
            Ok(admitted) => Ok(*admitted.run().await),
            Err(NotAdmitted::Refused(refused)) => Ok(*refused),
            Err(NotAdmitted::Scopes(missing)) => Err(lacks_scopes(&missing)),
            Err(NotAdmitted::Ask(_)) => {
                Err(Failure::setting("nobody can be asked here".to_owned()))
            }
        }
    });
    tokio::select! {
        result = &mut calling => print_result(command, &result?),
        _ = signals.next() => {
            // A call that waits ends with its handle. Any other is dropped, and the file that it
            // writes is removed.
            ending.cancel();
            match tokio::time::timeout(INTERRUPTION_GRACE, &mut calling).await {
                Ok(result) => {
                    print_result(command, &result?)?;
                }
                Err(_) => output::print_remark("interrupted; the API may have received the request"),
            }
            Ok(ExitCode::from(INTERRUPTED))
        }
    }
}

/// Shows the request of a call, which holds no credential, even if one is missing without which it
/// would not be sent.
fn print_request(
    call: &OperationCall,
    shape: DryRunFormat,
    caller: &Caller,
) -> Result<ExitCode, Failure> {
    match call.preview(OnMissingCredential::Omit, caller) {
        Ok(request) => {
            let text = match shape {
                DryRunFormat::Http => request.http_text(),
                DryRunFormat::Curl => request.curl_text(),
            };
            output::print_result(&(text + "\n"))?;
            if let Err(refusal) = call.preview(OnMissingCredential::Refuse, caller) {
                output::print_remark(&format!(
                    "note: this would not be sent: {}",
                    format_result(&refusal)
                ));
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(result) => {
            output::print_result(&(format_result(&result) + "\n"))?;
            Ok(ExitCode::FAILURE)
        }
    }
}

fn print_result(command: &CallCommand, result: &ToolResult) -> Result<ExitCode, Failure> {
    let text = if command.json {
        format!("{:#}", result.to_json())
    } else {
        format_result(result)
    };
    output::print_result(&(text + "\n"))?;
    if !command.json {
        // A note on a reply is not a part of it: `| jq` must still work.
        result
            .notes()
            .iter()
            .for_each(|note| output::print_remark(note));
    }
    Ok(if result.is_error() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// The APIs that may have a tool. Of several, only those are loaded whose tools' names may be like
/// this.
async fn load_called(
    mut configs: Vec<ApiConfig>,
    tool: &str,
) -> Result<Vec<ConfiguredApi>, Failure> {
    let all: Vec<String> = configs
        .iter()
        .filter_map(|config| config.options.name.as_ref())
        .map(ToString::to_string)
        .collect();
    // The tools of search mode serve all APIs.
    let is_meta_tool = names::kind_of(tool).is_some();
    configs.retain(|config| {
        is_meta_tool
            || config.options.name.is_none()
            || tool.starts_with(config.options.annotate.names.prefix.as_str())
    });
    configs.iter().for_each(load::warn_about_insecure_upstream);
    let LoadedApis { apis, .. } = load_each(configs, LoadPurpose::SERVE).await?;
    if apis.is_empty() {
        return Err(Failure::setting(format!(
            "there is no tool `{tool}`: the name begins with that of none of the APIs ({}); `openapi-mcp tools` lists them",
            all.join(", ")
        )));
    }
    Ok(apis)
}

/// Describes why there is no tool of that name, with advice.
fn unknown_tool(tool: &str, apis: &[ConfiguredApi]) -> Failure {
    if let Some(why) = apis
        .iter()
        .find_map(|(_, loaded)| loaded.api.why_left_out(tool))
    {
        return Failure::setting(format!("the tool `{tool}` is left out by {why}"));
    }
    // Only an API without a name gives its prefix to the meta-tools.
    let own = apis
        .iter()
        .find(|(config, _)| config.options.name.is_none());
    let bare = own
        .and_then(|(config, _)| tool.strip_prefix(config.options.annotate.names.prefix.as_str()));
    if let Some(kind) = names::kind_of(bare.unwrap_or(tool)) {
        return Failure::setting(format!("`{tool}` {}", why_meta_tool_is_missing(kind)));
    }
    let hint = apis
        .iter()
        .find_map(|(_, loaded)| loaded.api.nearest(tool))
        .map_or_else(
            || "`openapi-mcp tools` lists them".to_owned(),
            |name| format!("did you mean `{name}`?"),
        );
    Failure::setting(format!("there is no tool `{tool}`; {hint}"))
}

/// Reads the texts of the command line as the types that the schema declares: they are no mistakes
/// that a note must report.
fn with_types(mut call: OperationCall) -> OperationCall {
    let given = call.arguments.clone().unwrap_or_default();
    let typed = call.repaired_arguments();
    let differs_in_texts = given.len() == typed.len()
        && given.iter().all(|(key, value)| {
            typed
                .get(key)
                .is_some_and(|typed| typed == value || value.is_string())
        });
    if differs_in_texts {
        call.arguments = Some(typed);
    }
    call
}

fn format_result(result: &ToolResult) -> String {
    let json = result.structured_body().filter(|_| result.json().is_some());
    match json {
        Some(json) => format!("{json:#}"),
        None => result.body_text().to_owned(),
    }
}
