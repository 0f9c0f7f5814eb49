//! `openapi-mcp bundle`: this program, a document and settings in one file that a host installs with a
//! click. It is a zip archive whose bytes depend on nothing but its content: fixed times, fixed order,
//! Unix modes on every system.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{Cursor, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use url::Url;
use zip::result::ZipResult;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::document_files;
use super::manifest::{ManifestParts, manifest};
use super::program::BundledProgram;
use crate::annotate::KnownClient;
use crate::api::Api;
use crate::api::about::AboutIcon;
use crate::cli::check::require_server;
use crate::cli::load::{self, LoadPurpose};
use crate::cli::operating_system::OperatingSystem;
use crate::cli::settings::{self, SettingsUse};
use crate::cli::{ConfigFile, output};
use crate::config::about::{is_server_name, web_address};
use crate::config::overrides::{secrets_of_rules, variables_of_rules};
use crate::config::settings::{
    ApiSettings, CommandSettings, LogLevel, ProcessSettings, ServerSettings,
};
use crate::config::{self, ApiConfig, LayeredSettings, NamedSettings, Problems, variables};
use crate::error::Failure;
use crate::spec::Document;
use crate::spec::operation::server;
use crate::spec::operation::server_template::ServerTemplate;
use crate::text::{counted, hex, name_from_title};

/// Restores the executable bit that a host may have lost, and becomes the server.
const START: &str = "#!/bin/sh\nfolder=$(CDPATH= cd -- \"$(dirname -- \"$0\")\" && pwd)\nchmod u+x \"$folder/openapi-mcp\" 2>/dev/null\nexec \"$folder/openapi-mcp\" serve --config \"$folder/openapi-mcp.json\"\n";

#[derive(clap::Args)]
#[command(
    after_help = "The bundle holds one binary, the document with its overlays, and the settings; secrets are asked for by the host."
)]
pub(crate) struct BundleCommand {
    #[command(flatten)]
    settings: CommandSettings,
    #[command(flatten)]
    config: ConfigFile,
    /// The file to write [default: NAME-SYSTEM-PROCESSOR.mcpb]
    #[arg(short, long, value_name = "PATH", help_heading = "Bundle")]
    output: Option<PathBuf>,
    /// Replace that file if it is there and holds something else
    #[arg(long, help_heading = "Bundle")]
    force: bool,
    /// The bundle's name [default: from the document's title]
    #[arg(long, value_name = "NAME", help_heading = "Bundle")]
    name: Option<String>,
    /// The bundle's version [default: the document's, if it is a semantic version, else 1.0.0]
    #[arg(long, value_name = "VERSION", help_heading = "Bundle")]
    bundle_version: Option<String>,
    /// The URL of a privacy policy for what the API does with the user's data (repeatable)
    #[arg(long, value_name = "URL", value_parser = policy_address, help_heading = "Bundle")]
    privacy_policy: Vec<Url>,
    /// The openapi-mcp binary to put in, for another system than this one [default: this program]
    #[arg(
        long,
        value_name = "PATH",
        requires = "platform",
        help_heading = "Bundle"
    )]
    binary: Option<PathBuf>,
    /// The system of that binary
    #[arg(
        long,
        value_enum,
        value_name = "SYSTEM",
        requires = "binary",
        help_heading = "Bundle"
    )]
    platform: Option<OperatingSystem>,
}

fn policy_address(text: &str) -> Result<Url, String> {
    web_address(text, &["https"]).map_err(|why| format!("the URL {why}"))
}

pub(crate) async fn run(command: &BundleCommand) -> Result<ExitCode, Failure> {
    let settings = BundleSettings::read(command)?;
    let loaded = load::load_api(&settings.config, LoadPurpose::Inspect).await?;
    let api = &loaded.api;
    let document = api.document();
    if api.tools().is_empty() {
        return Err(Failure::setting(
            "no tool is left, and a bundle without tools has no use; `openapi-mcp check` says why"
                .into(),
        ));
    }
    let unasked = settings.config.profile.confirmation_warning();
    if let Some(warning) = unasked.filter(|_| settings.needs_client) {
        output::print_remark(&format!("warning: {warning}"));
    }
    let servers = server::declared_servers(document);
    let asked_server = settings.asked_server(&servers);
    warn_about_servers(&settings.config, api, asked_server.is_some())?;
    let name = bundle_name(
        command.name.as_deref(),
        settings.config.options.about.name.as_deref(),
        api.title(),
    )?;
    let icon = settings.config.options.about.icon.as_ref();
    let icon = icon.and_then(BundledIcon::of);
    let program = BundledProgram::read(command.binary.as_deref().zip(command.platform))?;
    let version = bundle_version(command.bundle_version.as_deref(), document.api_version())?;
    let manifest = manifest(&ManifestParts {
        api,
        icon: icon
            .as_ref()
            .filter(|icon| icon.is_png)
            .map(|icon| icon.name),
        privacy_policies: &command.privacy_policy,
        name: &name,
        version: &version,
        platform: program.platform,
        named_variables: &settings.named_variables,
        server: asked_server,
        server_variables: &settings.config.server.variables,
        fetched_on: document.url.as_ref().map(|_| today()),
    });
    let names = document_files::file_names(document, &settings.config.document.source)
        .map_err(Failure::setting)?;
    let root = names.first().map_or("api.json", String::as_str);
    let inner = inner_settings(
        &settings,
        root,
        settings.base_url(document, &servers),
        icon.as_ref(),
    );
    let bytes = write_bundle(&manifest, &inner, document, &names, icon.as_ref(), &program);
    let bytes = bytes
        .map_err(|error| Failure::setting(format!("the archive cannot be written: {error}")))?;
    let default_path = || PathBuf::from(format!("{name}-{}.mcpb", program.suffix));
    let path = command.output.clone().unwrap_or_else(default_path);
    write_file(&path, &bytes, command.force)?;
    output::print_result(&format!("{}\n", path.display()))?;
    output::print_remark(&format!(
        "{} for {}, {} bytes, sha256 {}",
        counted(api.tools().len(), "tool"),
        program.suffix,
        bytes.len(),
        sha256(&bytes)
    ));
    Ok(ExitCode::SUCCESS)
}

/// The file of an icon, which a bundle carries.
struct BundledIcon {
    /// Its name in the bundle.
    name: &'static str,
    is_png: bool,
    bytes: Vec<u8>,
}

impl BundledIcon {
    /// The file that a setting names, which its `data:` URL holds.
    fn of(icon: &AboutIcon) -> Option<Self> {
        let is_png = icon.media_type? == "image/png";
        let (_, data) = icon.src.split_once(',')?;
        Some(Self {
            name: if is_png { "icon.png" } else { "icon.svg" },
            is_png,
            bytes: STANDARD.decode(data).ok()?,
        })
    }
}

/// The settings of the API in a bundle.
struct BundleSettings {
    /// Settings as they were given.
    given: CommandSettings,
    /// Those of a server and of a configuration file alone: who agrees to calls, memory, and rules.
    beside: Map<String, Value>,
    /// The variables of headers and rules, for whose values the host asks the user.
    named_variables: BTreeSet<String>,
    /// True if the client must ask its user about some calls.
    needs_client: bool,
    /// The same settings, checked, without the values of the variables of headers.
    config: ApiConfig,
}

impl BundleSettings {
    /// Reads and checks the settings.
    ///
    /// # Errors
    /// There is not exactly one API, or something in the settings is wrong, secret, or of this
    /// machine.
    fn read(command: &BundleCommand) -> Result<Self, Failure> {
        let mut layered = LayeredSettings::read(
            &command.settings,
            &ServerSettings::default(),
            &command.config,
        );
        let agreed = ServerSettings {
            confirm: layered.server.confirm.clone(),
            confirm_by: layered.server.confirm_by,
            max_memory: layered.server.max_memory,
            ..ServerSettings::default()
        };
        layered.forget_server();
        layered.server = agreed.clone();
        let process = layered.process.clone();
        let only = layered.keep_one_without_name().map_err(|found| {
            Failure::setting(format!(
                "a bundle holds one API, and the settings have {found}; choose one with --api NAME and make a bundle of each, or let `openapi-mcp install --config FILE` write an entry that serves all"
            ))
        })?;
        let given = only.map_or_else(NamedSettings::default, |only| {
            let client = &mut only.api.common.client;
            *client = client.or(Some(KnownClient::ClaudeDesktop));
            let given = only.clone();
            only.api.header_env.clear();
            given
        });
        let NamedSettings {
            api: given, rules, ..
        } = given;
        let of_headers = config::named_variables(&given.header_env);
        let named_variables = of_headers.chain(variables_of_rules(&rules.overrides));
        let named_variables: BTreeSet<String> = named_variables.map(str::to_owned).collect();
        let mut problems = config::secret_headers(&given.header, &given.document.spec_header);
        problems.extend(secrets_of_rules(&rules.overrides));
        problems.extend(unportable(&given, &process));
        problems.extend(variables::not_variable_names(
            named_variables.iter().map(String::as_str),
        ));
        Problems::from(problems).check()?;
        let mut beside = config::given_settings(&agreed);
        beside.extend(rules.written);
        let (checked, config) =
            settings::resolve_one_api(layered, SettingsUse::Bundle, LogLevel::Error)?;
        Ok(Self {
            given: CommandSettings {
                api: given,
                process,
            },
            beside,
            named_variables,
            needs_client: checked.asked_by.needs_client(),
            config,
        })
    }

    /// The server for whose variables the host asks the user.
    fn asked_server<'s>(&self, servers: &'s [ServerTemplate]) -> Option<&'s ServerTemplate> {
        let is_chosen = self.given.api.base_url.is_some() || self.given.api.server.is_some();
        servers.first().filter(|_| !is_chosen)
    }

    /// Returns the base URL if the document's server is relative to the document's address, because
    /// a document in a bundle has none.
    fn base_url(&self, document: &Document, servers: &[ServerTemplate]) -> Option<Url> {
        let address = document
            .url
            .as_ref()
            .filter(|_| self.config.base_url.is_none())?;
        let is_relative = server::root_url(servers, None, &self.config.server).is_err();
        server::root_url(servers, Some(address), &self.config.server)
            .ok()
            .filter(|_| is_relative)
    }
}

/// Warns of operations that have no server. `asks` says that the host asks for the variables of a
/// server.
fn warn_about_servers(config: &ApiConfig, api: &Api, asks: bool) -> Result<(), Failure> {
    match require_server(config, api) {
        Err(Failure::Server(error)) if asks && error.is_of_variable => {}
        found => {
            if let Some(error) = found? {
                output::print_remark(&format!(
                    "warning: not all operations can be called: {error}"
                ));
            }
        }
    }
    Ok(())
}

/// The digest by which a registry knows a file, in hexadecimal.
pub(super) fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    hex(&sha2::Sha256::digest(bytes))
}

/// Lists the settings for which a file of this machine would be needed on others.
fn unportable(settings: &ApiSettings, process: &ProcessSettings) -> Vec<String> {
    let (upstream, shared) = (&settings.upstream, &process.shared_state);
    let flags = [
        ("--ca-cert", !upstream.ca_cert.is_empty()),
        ("`client_cert`", upstream.client_cert.is_some()),
        ("`client_key`", upstream.client_key.is_some()),
        ("--allow-file-args", settings.allow_file_args.is_some()),
        ("--header-file", !settings.header_file.is_empty()),
        ("--proxy", upstream.proxy.is_some()),
        ("auth", !settings.credentials.auth.is_empty()),
        ("`token_store`", settings.credentials.token_store.is_some()),
        ("`tenants`", settings.tenants.is_some()),
        ("--shared-state", shared.shared_state.is_some()),
        ("`state_key_env`", shared.state_key_env.is_some()),
        ("`state_key_file`", shared.state_key_file.is_some()),
    ];
    let given = flags.into_iter().filter(|(_, is_given)| *is_given);
    given
        .map(|(flag, _)| format!("{flag} names something of this machine or a secret, which a bundle cannot carry; leave it out"))
        .collect()
}

/// The settings inside a bundle: what concerns the document is done, and no flag names it again.
fn inner_settings(
    settings: &BundleSettings,
    root: &str,
    base_url: Option<Url>,
    icon: Option<&BundledIcon>,
) -> Value {
    const DONE: [&str; 6] = [
        "spec",
        "spec_header",
        "spec_header_env",
        "overlay",
        "external_refs",
        "log_level",
    ];
    let mut map = config::given_settings(&settings.given);
    for key in DONE {
        map.remove(key);
    }
    map.extend(settings.beside.clone());
    map.insert("spec".into(), format!("../document/{root}").into());
    if let Some(url) = base_url {
        map.insert("base_url".into(), String::from(url).into());
    }
    if let (Some(icon), Some(Value::Object(about))) = (icon, map.get_mut("about")) {
        about.insert("icon".into(), format!("../{}", icon.name).into());
    }
    map.into()
}

/// The name that was given, which is part of a file's name, else that of `about`, else one made of
/// the title.
fn bundle_name(given: Option<&str>, about: Option<&str>, title: &str) -> Result<String, Failure> {
    match given.or(about) {
        Some(name) if !is_server_name(name) => Err(Failure::setting(
            "--name takes letters, digits, `-`, `_` and `.`, at most 60 of them, and must not begin with `.`".into(),
        )),
        Some(name) => Ok(name.to_owned()),
        None => Ok(name_from_title(title, 60)),
    }
}

/// A semantic version: MAJOR.MINOR.PATCH.
fn bundle_version(given: Option<&str>, declared: Option<&str>) -> Result<String, Failure> {
    let is_semantic = |text: &&str| {
        let core = text.split(['-', '+']).next().unwrap_or_default();
        let parts: Vec<&str> = core.split('.').collect();
        parts.len() == 3
            && parts
                .iter()
                .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    match given {
        Some(version) if !is_semantic(&version) => Err(Failure::setting(
            "--bundle-version must be a semantic version, as in 1.2.3".into(),
        )),
        Some(version) => Ok(version.to_owned()),
        None => Ok(declared.filter(is_semantic).unwrap_or("1.0.0").to_owned()),
    }
}

/// The date, or that of `SOURCE_DATE_EPOCH`
/// (<https://reproducible-builds.org/specs/source-date-epoch/>), as in `28 Jul 2026`.
fn today() -> String {
    let epoch = variables::read_variable("SOURCE_DATE_EPOCH")
        .and_then(|seconds| seconds.parse::<u32>().ok());
    let time = epoch.map_or_else(SystemTime::now, |seconds| {
        UNIX_EPOCH + Duration::from_secs(seconds.into())
    });
    // `Tue, 28 Jul 2026 12:34:56 GMT`
    httpdate::fmt_http_date(time)
        .get(5..16)
        .unwrap_or_default()
        .to_owned()
}

/// Writes a file that does not exist yet; with `replaces`, also over an existing one. A file with
/// the same bytes stays.
fn write_file(path: &Path, bytes: &[u8], replaces: bool) -> Result<(), Failure> {
    let failed = |error| Failure::Io(format!("`{}` cannot be written", path.display()), error);
    let is_same = || std::fs::read(path).is_ok_and(|there| there == bytes);
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => file.write_all(bytes).map_err(failed),
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(failed(error)),
        Err(_) if is_same() => Ok(()),
        Err(_) if replaces => std::fs::write(path, bytes).map_err(failed),
        Err(_) => Err(Failure::setting(format!(
            "`{}` is already there and holds something else; --force replaces it, --output names another file",
            path.display()
        ))),
    }
}

/// The archive's bytes.
///
/// # Errors
/// The archive would be too large for its format.
fn write_bundle(
    manifest: &Value,
    settings: &Value,
    document: &Document,
    names: &[String],
    icon: Option<&BundledIcon>,
    program: &BundledProgram,
) -> ZipResult<Vec<u8>> {
    const DATA: u32 = 0o644;
    const PROGRAM: u32 = 0o755;
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let mut add = |name: &str, bytes: &[u8], mode: u32| -> ZipResult<()> {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .last_modified_time(DateTime::default())
            .unix_permissions(mode);
        writer.start_file(name, options)?;
        Ok(writer.write_all(bytes)?)
    };
    add("manifest.json", format!("{manifest:#}\n").as_bytes(), DATA)?;
    let settings = format!("{settings:#}\n");
    add("server/openapi-mcp.json", settings.as_bytes(), DATA)?;
    for (name, file) in names.iter().zip(&document.files) {
        add(&format!("document/{name}"), file.text().as_bytes(), DATA)?;
    }
    if let Some(icon) = icon {
        add(icon.name, &icon.bytes, DATA)?;
    }
    if program.platform != OperatingSystem::Win32 {
        add("server/start.sh", START.as_bytes(), PROGRAM)?;
    }
    let name = format!("server/{}", program.platform.binary());
    add(&name, &program.bytes, PROGRAM)?;
    Ok(writer.finish()?.into_inner())
}
