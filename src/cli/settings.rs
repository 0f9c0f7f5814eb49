//! The settings of a command, read and checked; logging starts with them.

use super::load;
use super::log::{self, LogDelivery};
use super::{ConfigFile, whole_command};
use crate::config::saved_files::{FileStoreSettings, SavedFileSettings, resolve_delivery};
use crate::config::settings::{CommandSettings, LogLevel, ServerSettings};
use crate::config::tables::check_tables;
use crate::config::{self, ApiConfig, Config, LayeredSettings, Problems, ProcessConfig};
use crate::error::Failure;

/// What a command does with the settings of the server that a file may hold.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingsUse {
    /// Serves with them, or calls as a client of that server.
    Serve,
    /// Serves nothing, so that they do not count.
    Inspect,
    /// Works for the server that is started later, with the APIs that are chosen.
    Prepare,
    /// Makes a server that is started later over stdio, with the API that is chosen.
    Bundle,
}

/// Reads and checks the settings of a command that has none of the server, and starts logging.
pub(crate) fn read(
    flags: &CommandSettings,
    file: &ConfigFile,
    usage: SettingsUse,
    level: LogLevel,
) -> Result<Config, Failure> {
    let layered = LayeredSettings::read(flags, &ServerSettings::default(), file);
    resolve(layered, usage, level, LogDelivery::Direct)
}

/// Reads and checks the settings of a command that makes calls itself, and starts logging. With
/// `is_client`, what a file says of the server counts as well, except for links to files, because
/// no server is there to answer them.
pub(crate) fn read_for_calls(
    flags: &CommandSettings,
    saved: &SavedFileSettings,
    file: &ConfigFile,
    is_client: bool,
) -> Result<Config, Failure> {
    let server = ServerSettings {
        saved_files: saved.clone(),
        ..ServerSettings::default()
    };
    let mut layered = LayeredSettings::read(flags, &server, file);
    let mut problems = Problems::default();
    let saved = std::mem::take(&mut layered.server.saved_files).without_store();
    let saved = check_tables(&saved, &mut problems);
    layered.server.file_store = FileStoreSettings::default();
    let usage = if is_client {
        SettingsUse::Serve
    } else {
        SettingsUse::Inspect
    };
    let mut config = resolve(layered, usage, LogLevel::Warn, LogDelivery::Direct)?;
    let delivery = resolve_delivery(
        &saved,
        &FileStoreSettings::default(),
        false,
        None,
        None,
        &mut problems,
    );
    problems.check()?;
    for api in &mut config.apis {
        api.options.call.delivery = delivery.clone();
    }
    Ok(config)
}

/// Checks what a server needs of the clients that its APIs are for.
fn check_clients(config: &Config) -> Result<(), Problems> {
    let mut problems = Problems::default();
    for api in &config.apis {
        let transport = &config.process.transport;
        let mut own =
            config::overrides::check_client_values(&api.options.annotate.layers.rules, transport);
        own.extend(config::tenants::check_tenant_source(
            api.options.tenants.as_ref().filter(|_| !api.mock),
            transport,
        ));
        own.extend(config::auth::oauth_client::check_grants(
            api.scheme_with_grant(),
            &api.options.forward,
            transport,
        ));
        own.extend(config::clients::access_rules::check_access(
            &api.options.annotate.access,
            transport,
        ));
        problems.of_api(api.options.name.as_ref(), |problems| problems.extend(own));
    }
    problems.check()
}

/// Checks settings that are read already, of a command that takes exactly one API, and starts
/// logging.
pub(crate) fn resolve_one_api(
    layered: LayeredSettings,
    usage: SettingsUse,
    level: LogLevel,
) -> Result<(ProcessConfig, ApiConfig), Failure> {
    let Config { process, apis } = resolve(layered, usage, level, LogDelivery::Direct)?;
    let count = apis.len();
    let only = <[ApiConfig; 1]>::try_from(apis);
    only.map(|[api]| (process, api)).map_err(|_| {
        Failure::setting(format!(
            "this command takes one API, and the settings have {count}; use the settings of one API, with --spec"
        ))
    })
}

/// Checks settings that are read already, and starts logging.
pub(crate) fn resolve(
    mut layered: LayeredSettings,
    usage: SettingsUse,
    level: LogLevel,
    delivery: LogDelivery,
) -> Result<Config, Failure> {
    log::start_logging(&layered.process, level, delivery);
    let unfilled = config::variables::unfilled_variables();
    for warning in config::variables::unknown_variables(whole_command)
        .iter()
        .chain(&unfilled)
    {
        tracing::warn!("{warning}");
    }
    match usage {
        SettingsUse::Serve => layered.refuse_choice(),
        SettingsUse::Inspect => layered.forget_server(),
        SettingsUse::Prepare | SettingsUse::Bundle => {}
    }
    let config = layered.resolve()?;
    for api in &config.apis {
        let _entered = load::span_of(api).entered();
        api.warnings
            .iter()
            .for_each(|warning| tracing::warn!("{warning}"));
    }
    if matches!(usage, SettingsUse::Serve | SettingsUse::Bundle) {
        check_clients(&config)?;
    }
    Ok(config)
}
