//! The needs of an entry besides its command: variables, the limits of the client, and a document
//! that can be served.

use std::collections::{BTreeMap, BTreeSet};

use super::clients::InstallableClient;
use super::entry::name_limit;
use super::flags;
use crate::annotate::KnownClient;
use crate::api::{ApiName, scheme_fields};
use crate::check::{self, used_schemes};
use crate::cli::ConfigFile;
use crate::cli::check::require_server;
use crate::cli::each_api::{self, ConfiguredApi, LoadedApis};
use crate::cli::load::{LoadPurpose, Loaded};
use crate::cli::log::LogDelivery;
use crate::cli::settings::{self, SettingsUse};
use crate::config::auth::settings::SchemeSettings;
use crate::config::observability::shared_state::SharedStateSettings;
use crate::config::overrides::variables_of_rules;
use crate::config::settings::{CommandSettings, LogLevel, ServerSettings};
use crate::config::{self, ApiConfig, Config, LayeredSettings, Problems, Transport, variables};
use crate::error::Failure;
use crate::mcp::api_slot::ListMode;
use crate::spec::operation::parameter::Location;
use crate::spec::{SecurityScheme, Severity};
use crate::text::{counted, error_in_a_line, one_line};

/// A note for clients that have a window and hand over variables of their environment.
const DOCK_REMARK: &str = "note: a client that is started from a dock or a menu does not see variables of a shell profile; set them where the system's sessions get theirs";

/// Facts about the server that an entry starts.
#[derive(Default)]
pub(super) struct EntryNeeds {
    /// The name of the server, if the settings or the only document name it.
    pub(super) name: Option<String>,
    /// The title of the only document, or the names of several APIs.
    pub(super) title: String,
    /// The variables that secrets come from.
    pub(super) variables: Vec<String>,
    /// Those that the settings name.
    named: NamedVariables,
    errors: Problems,
    warnings: usize,
    longest_tool: String,
    max_tools: Option<(usize, usize)>,
    has_several_apis: bool,
    /// True if the client must ask its user about some calls.
    confirms: bool,
    /// The commands by which a person signs in.
    logins: Vec<String>,
}

/// The variables that the settings name.
#[derive(Default)]
struct NamedVariables {
    /// Variables without which the server does not start.
    required: BTreeSet<String>,
    /// The flags that read from a file what these variables hold.
    file_flags: Vec<&'static str>,
    /// The settings of the credentials of each API.
    auth: BTreeMap<Option<ApiName>, BTreeMap<String, SchemeSettings>>,
}

impl NamedVariables {
    /// Takes the settings of the whole process that have no value here, and those that cannot be
    /// read without that value.
    fn take_process_wide(&mut self, layered: &mut LayeredSettings) {
        let shared = &mut layered.process.shared_state;
        let has_key = shared.state_key_env.is_some();
        let names = [
            (
                &mut layered.server.observability.audit_key_env,
                "`audit_key_file`",
            ),
            (
                &mut shared.shared_state_password_env,
                "--shared-state-password-file",
            ),
            (&mut shared.state_key_env, "--state-key-file"),
        ];
        for (name, file_flag) in names {
            self.required.extend(name.clone());
            self.file_flags.extend(name.as_ref().map(|_| file_flag));
            name.take_if(|name| variables::read_variable(name).is_none());
        }
        if has_key && shared.state_key_env.is_none() {
            *shared = SharedStateSettings::default();
        }
    }

    /// Takes them out of the settings: nothing is called, so that nothing but the address of a
    /// document needs a value now.
    ///
    /// # Errors
    /// A text in place of a variable's name is not one.
    fn take(layered: &mut LayeredSettings) -> Result<Self, Failure> {
        let mut named = Self::default();
        let pairs = layered
            .apis
            .iter()
            .flat_map(|named| [&named.api.header_env, &named.api.document.spec_header_env]);
        if pairs.flatten().any(|pair| !pair.contains('=')) {
            let problem = "--header-env and --spec-header-env must be `Name=VARIABLE` or `Name=Scheme VARIABLE`, as in `Authorization=Bearer GITHUB_TOKEN`";
            return Err(Failure::setting(problem.into()));
        }
        for config::NamedSettings {
            name, api, rules, ..
        } in &mut layered.apis
        {
            let of_headers = [&api.header_env, &api.document.spec_header_env].into_iter();
            let of_headers = of_headers.flat_map(|pairs| config::named_variables(pairs));
            let others = of_headers
                .chain(variables_of_rules(&rules.overrides))
                .chain(api.upstream.proxy_auth_env.as_deref());
            named.required.extend(others.map(str::to_owned));
            let auth = std::mem::take(&mut api.credentials.auth);
            let of_schemes = auth.values().flat_map(SchemeSettings::variables);
            named.required.extend(of_schemes);
            named.auth.insert(name.clone(), auth);
            if !api.header_env.is_empty() {
                named.file_flags.push("--header-file NAME=PATH");
            }
            api.header_env.clear();
            api.upstream.proxy_auth_env = None;
        }
        named.take_process_wide(layered);
        let not_names = variables::not_variable_names(named.required.iter().map(String::as_str));
        Problems::from(not_names).check()?;
        Ok(named)
    }

    /// Returns true if some of them hold credentials of schemes.
    fn has_scheme_variables(&self) -> bool {
        let mut schemes = self.auth.values().flat_map(BTreeMap::values);
        schemes.any(|settings| !settings.variables().is_empty())
    }

    /// The schemes for which a person signs in.
    fn logins(&self) -> BTreeSet<&String> {
        let schemes = self.auth.values().flatten();
        let of_people = schemes.filter(|(_, settings)| settings.needs_login());
        of_people.map(|(scheme, _)| scheme).collect()
    }
}

impl EntryNeeds {
    /// Reads the documents as the server will. Values of variables are not needed, only their
    /// names, but for those that rules name.
    ///
    /// # Errors
    /// The settings or the documents are not fit for a server that a client starts.
    pub(super) async fn find(
        given: &CommandSettings,
        server: &ServerSettings,
        file: &ConfigFile,
        arguments: &[String],
    ) -> Result<Self, Failure> {
        let mut layered = LayeredSettings::read(given, server, file);
        let named = NamedVariables::take(&mut layered)?;
        let Config { process, apis } = settings::resolve(
            layered,
            SettingsUse::Serve,
            LogLevel::Error,
            LogDelivery::Direct,
        )?;
        if matches!(process.transport, Transport::Http { .. }) {
            return Err(Failure::setting(
                "--transport http: a client starts its server over stdio; start this one yourself, and install its address with --url"
                    .into(),
            ));
        }
        let LoadedApis { apis, is_complete } =
            each_api::load_each(apis, LoadPurpose::Inspect).await?;
        let (name, title) = match apis.as_slice() {
            [(config, loaded)] if config.options.name.is_none() => (
                config.options.about.name.clone(),
                loaded.api.title().to_owned(),
            ),
            _ => {
                let names = apis.iter().filter_map(|(_, loaded)| loaded.api.name());
                let names: Vec<&str> = names.map(ApiName::as_str).collect();
                (process.about.name, names.join("-"))
            }
        };
        let mut needs = Self {
            has_several_apis: apis.iter().any(|(config, _)| config.options.name.is_some()),
            name,
            title,
            confirms: process.asked_by.needs_client(),
            logins: named
                .logins()
                .into_iter()
                .map(|scheme| login_command(file, scheme))
                .collect(),
            ..Self::default()
        };
        if !is_complete {
            needs
                .errors
                .push("an API is left out, because its document cannot be served");
        }
        let (mut of_schemes, mut query_keys) = (BTreeSet::new(), Vec::new());
        for (config, loaded) in &apis {
            needs.check_document(config, loaded)?;
            let (schemes, used) = used_schemes(&loaded.api);
            query_keys.extend(schemes.values().filter_map(|scheme| match scheme {
                SecurityScheme::ApiKey {
                    location: Location::Query,
                    name,
                } => Some(name.clone()),
                _ => None,
            }));
            let place = &loaded.api.credential_place;
            let given = named.auth.get(&config.options.name);
            let is_unset = |scheme: &&String| {
                !config.mock && !given.is_some_and(|given| given.contains_key(*scheme))
            };
            let fields = used
                .keys()
                .filter(is_unset)
                .flat_map(|scheme| scheme_fields(place, scheme, schemes.get(scheme)));
            of_schemes.extend(fields.map(|field| field.variable));
        }
        let secrets = flags::written_out_secrets(&given.api, arguments, &query_keys);
        Problems::from(secrets).check()?;
        needs.look_at_list(&apis)?;
        needs.variables = named
            .required
            .iter()
            .chain(of_schemes.difference(&named.required))
            .cloned()
            .collect();
        needs.named = named;
        Ok(needs)
    }

    /// Notes what of a document cannot be served, and how many warnings there are.
    ///
    /// # Errors
    /// The server of the only API is not usable.
    fn check_document(&mut self, config: &ApiConfig, loaded: &Loaded) -> Result<(), Failure> {
        let report = check::check(
            String::new(),
            &loaded.api,
            &loaded.diagnostics,
            &config.profile,
            config.list.mode == ListMode::Search,
        );
        let errors = report
            .findings
            .iter()
            .filter(|finding| finding.level == Severity::Error);
        let mut errors: Vec<String> = errors
            .map(|finding| format!("{}: {}", finding.pointer, finding.message))
            .collect();
        if report.tools == 0 {
            errors.push("no tool is left to serve".into());
        }
        match require_server(config, &loaded.api) {
            Ok(unserved) => errors.extend(unserved.map(|error| format!("#/servers: {error}"))),
            Err(failure) if config.options.name.is_some() => errors.push(error_in_a_line(&failure)),
            Err(failure) => return Err(failure),
        }
        let name = config.options.name.as_ref();
        self.errors.of_api(name, |problems| problems.extend(errors));
        self.warnings += report.count(Severity::Warning);
        Ok(())
    }

    /// Notes what clients count and measure of the list.
    ///
    /// # Errors
    /// Names of tools clash.
    fn look_at_list(&mut self, apis: &[ConfiguredApi]) -> Result<(), Failure> {
        let catalog = each_api::catalog_of(apis)?;
        let listed = catalog.map(|catalog| catalog.names()).unwrap_or_default();
        let most = apis
            .iter()
            .filter_map(|(config, _)| config.profile.max_tools)
            .min();
        self.max_tools = most
            .filter(|most| listed.len() > *most)
            .map(|most| (listed.len(), most));
        self.longest_tool = listed
            .into_iter()
            .max_by_key(String::len)
            .unwrap_or_default();
        Ok(())
    }

    /// The maximum length of the server's name with which the client takes the longest name of a
    /// tool, in bytes.
    pub(super) fn max_server_name(&self, client: &InstallableClient) -> usize {
        name_limit(client, "", &self.longest_tool)
            .map_or(usize::MAX, |(whole, limit)| limit.saturating_sub(whole))
    }

    /// Refuses what the client cannot use, and returns remarks for the user.
    ///
    /// # Errors
    /// Operations are lost and `force` is not set; a name is too long for the client; a variable
    /// cannot be handed over.
    pub(super) fn check(
        &self,
        row: &InstallableClient,
        name: &str,
        force: bool,
    ) -> Result<Vec<String>, Failure> {
        let (client, mut problems) = (row.client, Problems::default());
        if !self.errors.is_empty() && !force {
            problems.extend(self.errors.iter().take(10).cloned());
            let lost = match self.errors.len() {
                1 => "1 part of the document is".to_owned(),
                count => format!("{count} parts of the document are"),
            };
            problems.push(format!(
                "{lost} not served; --force installs the rest, `openapi-mcp check` lists them"
            ));
        }
        if let Some((whole, limit)) = name_limit(row, name, &self.longest_tool)
            && whole > limit
        {
            let length = self.longest_tool.len().saturating_sub(whole - limit);
            let setting = if self.has_several_apis {
                format!("`max_tool_name_length: {length}` under the API")
            } else {
                format!("`max_tool_name_length: {length}`")
            };
            problems.push(format!(
                "with the server's name `{name}`, the tool `{}` has {whole} characters in {client}, which takes {limit}; a shorter --name or {setting} helps",
                self.longest_tool
            ));
        }
        let hands_over = super::entry::hands_over_variables(client);
        let named = &self.named;
        if !hands_over && !named.required.is_empty() {
            let required: Vec<&str> = named.required.iter().map(String::as_str).collect();
            let mut ways: Vec<String> = named
                .file_flags
                .iter()
                .map(|flag| format!("{flag} in place of the variable"))
                .collect();
            if client == KnownClient::ClaudeDesktop {
                ways.insert(
                    0,
                    "a bundle, which asks for the values: `openapi-mcp bundle`".to_owned(),
                );
            }
            if named.has_scheme_variables() || ways.is_empty() {
                ways.push(
                    "`file` in place of `env` under `auth` in the configuration file".to_owned(),
                );
            }
            problems.push(format!(
                "{client} hands over no variables, and the server needs {}; use {}",
                required.join(", "),
                ways.join(", or ")
            ));
        }
        problems.check()?;
        Ok(self.remarks(client, hands_over))
    }

    fn remarks(&self, client: KnownClient, hands_over: bool) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.warnings > 0 {
            remarks.push(format!(
                "note: {}; `openapi-mcp check --client {client}` lists them",
                counted(self.warnings, "warning")
            ));
        }
        if let Some((tools, most)) = self.max_tools {
            remarks.push(format!(
                "warning: {tools} tools would be listed, and {client} takes {most}; --tools search lists a few that call all of them, and --tool-include chooses"
            ));
        }
        let profile = client.profile();
        if !profile.remark.is_empty() {
            remarks.push(format!("note: {}", profile.remark));
        }
        let unasked = profile.confirmation_warning().filter(|_| self.confirms);
        remarks.extend(unasked.map(|warning| format!("warning: {warning}")));
        let logins = self.logins.iter();
        remarks.extend(logins.map(|command| {
            format!("note: calls need a login; unless you are signed in, run `{command}` once")
        }));
        let needed = self.variables.join(", ");
        if !self.variables.is_empty() && !hands_over {
            remarks.push(format!(
                "note: calls that need a credential ({needed}) are refused, because {client} hands over no variables; either write a configuration file with `auth: {{ SCHEME: {{ file: PATH }} }}`, readable by you alone, and give --config FILE, or make a bundle with `openapi-mcp bundle`"
            ));
        } else if client == KnownClient::Vscode && !self.variables.is_empty() {
            remarks.push(format!(
                "note: VS Code asks for {needed} at the first start"
            ));
        } else if !self.variables.is_empty() {
            remarks.push(format!(
                "note: set {needed} where {client} is started; the file holds only the names"
            ));
            remarks.extend(dock_remark(client));
        }
        remarks
    }
}

/// The note about variables for a client that is not started from a shell.
pub(super) fn dock_remark(client: KnownClient) -> Option<String> {
    use KnownClient::{ClaudeCode, Codex, Gemini, Opencode};
    let is_of_shell = matches!(client, ClaudeCode | Codex | Gemini | Opencode);
    (!is_of_shell).then(|| DOCK_REMARK.to_owned())
}

/// The command by which a person signs in for a scheme.
fn login_command(file: &ConfigFile, scheme: &str) -> String {
    let config = file
        .config
        .as_ref()
        .map(|path| format!(" --config {}", path.display()));
    format!(
        "openapi-mcp login{} {}",
        config.unwrap_or_default(),
        one_line(scheme)
    )
}
