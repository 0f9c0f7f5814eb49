//! What an entry needs besides its command: which variables, which the client's limits are, whether the document is fit.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::flags;
use crate::api::{Api, SchemeField, scheme_fields};
use crate::check::{self, used_schemes};
use crate::cli::check::require_server;
use crate::cli::load::{self, LoadPurpose, Loaded};
use crate::config::credentials::SchemeSettings;
use crate::config::settings::{ApiSettings, ClientName, LogLevel, ServerSettings};
use crate::config::{self, ApiChoice, ApiConfig, ConfigError, LayeredSettings, Transport, variables};
use crate::error::Failure;
use crate::server::gates::listed_tools;
use crate::spec::operation::parameter::Location;
use crate::spec::{SecurityScheme, Severity};
use crate::text::{counted, one_line};

/// Said for every client that hands over variables of its environment.
pub(super) const DOCK_REMARK: &str = "note: a client that is started from a dock or a menu does not see variables of a shell profile; set them where the system's sessions get theirs";

/// What is known of the server that an entry starts.
pub(super) struct EntryNeeds {
    pub(super) title: String,
    /// The variables that secrets come from.
    pub(super) variables: Vec<String>,
    /// Those without which the server does not start.
    required: Vec<String>,
    errors: Vec<String>,
    warnings: usize,
    longest_tool: String,
    max_tools: Option<(usize, usize)>,
}

impl EntryNeeds {
    /// Reads the document as the server will. Values of variables are not needed, only their names.
    ///
    /// # Errors
    /// The settings or the document are not fit for a server that a client starts.
    pub(super) async fn find(
        api: &ApiSettings,
        server: &ServerSettings,
        file: Option<&Path>,
        arguments: &[String],
    ) -> Result<Self, Failure> {
        let mut layered = LayeredSettings::read(api, server, &ApiChoice::default(), file);
        let mut required = BTreeSet::new();
        let mut of_schemes = BTreeSet::new();
        required.extend(config::named_variables(&layered.api.header_env).map(str::to_owned));
        required.extend(config::named_variables(&layered.api.spec_header_env).map(str::to_owned));
        required.extend(layered.api.upstream.proxy_auth_env.clone());
        let schemes = layered.api.credentials.auth.values();
        required.extend(schemes.flat_map(SchemeSettings::variables).map(str::to_owned));
        let not_names = variables::not_variable_names(required.iter().map(String::as_str));
        if !not_names.is_empty() {
            return Err(Failure::Settings(ConfigError(not_names)));
        }
        let configured: BTreeSet<String> = layered.api.credentials.auth.keys().cloned().collect();
        // Nothing is called, so that nothing but the document's own address needs a value now.
        layered.api.header_env.clear();
        layered.api.credentials.auth.clear();
        layered.api.upstream.proxy_auth_env = None;
        let (process, config) = load::resolve_one_api(layered, LogLevel::Error)?;
        if matches!(process.transport, Transport::Http { .. }) {
            return Err(Failure::setting(
                "--transport http: a client starts its server over stdio; start this one yourself, and install its address with --url"
                    .into(),
            ));
        }
        let Loaded {
            api: loaded, diagnostics, ..
        } = load::load_api(&config, LoadPurpose::Inspect).await?;
        let loaded = Arc::new(loaded);
        let (schemes, used) = used_schemes(&loaded);
        let query_keys: Vec<String> = schemes
            .values()
            .filter_map(|scheme| match scheme {
                SecurityScheme::ApiKey {
                    location: Location::Query,
                    name,
                } => Some(name.clone()),
                _ => None,
            })
            .collect();
        let unserved = require_server(&config, &loaded)?;
        let secrets = flags::written_out_secrets(api, arguments, &query_keys);
        if !secrets.is_empty() {
            return Err(Failure::Settings(ConfigError(secrets)));
        }
        if !config.mock {
            for name in used.keys().filter(|name| !configured.contains(*name)) {
                of_schemes.extend(
                    scheme_fields(name, schemes.get(name))
                        .into_iter()
                        .map(|field: SchemeField| field.variable),
                );
            }
        }
        let mut needs = Self::of(&config, &loaded, &diagnostics, required, &of_schemes);
        needs.errors.extend(unserved.map(|error| format!("#/servers: {error}")));
        Ok(needs)
    }

    fn of(
        config: &ApiConfig,
        api: &Arc<Api>,
        diagnostics: &[crate::spec::Diagnostic],
        required: BTreeSet<String>,
        variables: &BTreeSet<String>,
    ) -> Self {
        let report = check::check(String::new(), api, diagnostics, &config.profile, config.annotate.layers.local);
        let errors = report.findings.iter().filter(|finding| finding.level == Severity::Error);
        let mut errors: Vec<String> = errors.map(|finding| format!("{}: {}", finding.pointer, finding.message)).collect();
        if report.tools == 0 {
            errors.push("no tool is left to serve".into());
        }
        let listed = listed_tools(&config.list, api);
        Self {
            title: one_line(api.document().title()),
            errors,
            warnings: report.count(Severity::Warning),
            max_tools: config
                .profile
                .max_tools
                .filter(|most| listed.len() > *most)
                .map(|most| (listed.len(), most)),
            longest_tool: listed.into_iter().max_by_key(String::len).unwrap_or_default(),
            variables: required.iter().cloned().chain(variables.difference(&required).cloned()).collect(),
            required: required.into_iter().collect(),
        }
    }

    /// What stops the installation, and what the user should know.
    ///
    /// # Errors
    /// Operations are lost and `force` is not set; a name is too long for the client; a variable cannot be handed over.
    pub(super) fn check(&self, client: ClientName, name: &str, force: bool) -> Result<Vec<String>, Failure> {
        let mut problems = Vec::new();
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
        if let Some((whole, limit)) = name_limit(client, name, &self.longest_tool)
            && whole > limit
        {
            problems.push(format!(
                "with the server's name `{name}`, the tool `{}` has {whole} characters in {client}, which takes {limit}; a shorter --name or --max-tool-name-length {} helps",
                self.longest_tool,
                self.longest_tool.len().saturating_sub(whole - limit)
            ));
        }
        let hands_over = super::entry::hands_over_variables(client);
        if !hands_over && !self.required.is_empty() {
            problems.push(format!(
                "{client} hands over no variables, and the server needs {}; write a configuration file with `auth: {{ SCHEME: {{ file: PATH }} }}` and give --config, or make a bundle with `openapi-mcp bundle`",
                self.required.join(", ")
            ));
        }
        if !problems.is_empty() {
            return Err(Failure::Settings(ConfigError(problems)));
        }
        Ok(self.remarks(client, hands_over))
    }

    fn remarks(&self, client: ClientName, hands_over: bool) -> Vec<String> {
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
        let needed = self.variables.join(", ");
        if !self.variables.is_empty() && !hands_over {
            remarks.push(format!(
                "note: calls that need a credential ({needed}) are refused, because {client} hands over no variables; either write a configuration file with `auth: {{ SCHEME: {{ file: PATH }} }}`, readable by you alone, and give --config FILE, or make a bundle with `openapi-mcp bundle`"
            ));
        } else if client == ClientName::Vscode && !self.variables.is_empty() {
            remarks.push(format!("note: VS Code asks for {needed} at the first start"));
        } else if !self.variables.is_empty() {
            remarks.push(format!(
                "note: set {needed} where {client} is started; the file holds only the names"
            ));
            remarks.push(DOCK_REMARK.into());
        }
        remarks
    }
}

/// How long the longest tool's name is in the client, and how long it may be.
fn name_limit(client: ClientName, server: &str, tool: &str) -> Option<(usize, usize)> {
    let both = server.len() + tool.len();
    match client {
        // mcp__SERVER__TOOL
        ClientName::ClaudeCode | ClientName::ClaudeDesktop | ClientName::Codex => Some((both + 7, 64)),
        // mcp_SERVER_TOOL
        ClientName::Gemini => Some((both + 5, 63)),
        ClientName::Vscode => Some((both + 5, 64)),
        ClientName::Cursor => Some((both, 60)),
        _ => None,
    }
}
