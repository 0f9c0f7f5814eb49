//! The whole product without a transport: an API as a list of tools that can be called.
//!
//! The document and the list of tools never change once the API is built, and a call allocates
//! nothing in proportion to the document. The state of an API is in its parts: limits, circuit
//! breakers, the budget of retries, access tokens, and what is made on first use, among it validators,
//! the search index, and in search mode input schemas, of which the most recently used are kept.

pub(crate) mod about;
pub(crate) mod bound_tool;
pub(crate) mod calling;
pub(crate) mod clashes;
mod closed_paths;
mod on_use;
#[cfg(test)]
mod repair_proptests;
mod scheme_fields;
pub(crate) mod search;

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use foldhash::HashMap;
use http::header::HeaderMap;
use secrecy::SecretString;
use thiserror::Error;

use self::about::About;
pub use self::about::ApiName;
pub use self::bound_tool::BoundTool;
use self::bound_tool::{RecentTexts, bind_tools};
pub(crate) use self::scheme_fields::scheme_fields;
use crate::annotate::hint_review::{Restriction, describe_loosened, summarize_restrictions};
use crate::annotate::names::nearest_name;
use crate::annotate::{AnnotateOptions, LeftOut, Pattern, Rule, annotate};
use crate::caller::Caller;
use crate::credentials::forward::Forwarding;
use crate::credentials::login::Login;
use crate::credentials::values::{CredentialPlace, Credentials};
use crate::observe::call::CalledOperation;
use crate::observe::metrics::labels::ApiLabel;
use crate::outbound::Clients;
use crate::proxy::request::closed_paths::ClosedPaths;
use crate::proxy::waiting::handle::OpenedWait;
use crate::proxy::{
    ApiProxy, Binder, BindingOptions, CallOptions, CheckedArguments, Destination, TenantOptions,
    UpstreamOptions, link_etags,
};
use crate::results::filter::Sandbox;
use crate::search::SearchIndex;
use crate::spec::operation::rules::{AccessDemand, ValueSource};
use crate::spec::operation::security;
use crate::spec::operation::server_template::ServerError;
use crate::spec::{Diagnostic, Document, Severity, operations};

/// Reason for which a document does not become an API.
#[derive(Debug, Error)]
pub enum BuildError {
    /// Requests should go to the declared servers, and no operation has a usable one.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// Patterns of the settings that must match an operation match none: a sentence for each.
    #[error("{}", .0.join("\n"))]
    Patterns(Vec<String>),
    /// Settings of credentials do not go with the security schemes: a sentence for each.
    #[error("{}", .0.join("\n"))]
    CredentialSettings(Vec<String>),
}

/// The start of a call.
pub(crate) enum CallStart {
    /// Arguments that fit the input schema.
    Checked(CheckedArguments),
    /// The state of a call that goes on.
    Wait(Box<OpenedWait>),
}

/// Index of a tool in its API.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ToolIndex(usize);

impl ToolIndex {
    /// Returns its place among the tools of its API.
    pub(crate) fn place(self) -> usize {
        self.0
    }
}

/// An API as tools.
pub struct Api {
    tools: Vec<BoundTool>,
    /// All tools as clients get them, separated by commas; those are missing whose input schemas are
    /// made on first use.
    pub(crate) list: Bytes,
    by_name: HashMap<Arc<str>, ToolIndex>,
    /// The tools that settings leave out or ask about because of their words.
    pub(crate) restrictions: Vec<Restriction>,
    /// Least number of bytes of its list if it is too long, in which case most tools have no input
    /// schema yet.
    pub(crate) too_long: Option<usize>,
    left_out: Vec<(String, LeftOut)>,
    warnings: Vec<String>,
    name: Option<ApiName>,
    /// Its introduction: what the operator set, and else what its document has.
    pub(crate) about: About,
    /// The settings that its tools were made with.
    pub(crate) options: AnnotateOptions,
    /// The place in which the operator sets its credentials.
    pub(crate) credential_place: CredentialPlace,
    /// Each security scheme of OAuth, with the login that gives its tokens, or the reason for which
    /// there is none.
    pub(crate) logins: Vec<(String, Result<Arc<Login>, String>)>,
    proxy: ApiProxy,
    search_index: OnceLock<SearchIndex>,
    recent_texts: RecentTexts,
    /// The paths of all operations, read on first use.
    closed_paths: OnceLock<ClosedPaths>,
    /// The hash of the document, made on first use.
    document_digest: OnceLock<[u8; 32]>,
}

impl Api {
    /// Reads all operations of the document and pairs each with its tool.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn build(
        document: impl Into<Arc<Document>>,
        options: ApiOptions,
        clients: impl Into<Clients>,
    ) -> Result<(Self, Vec<Diagnostic>), BuildError> {
        let document = document.into();
        let (mut operations, mut diagnostics) = operations(&document);
        let (schemes, remarks) = security::schemes(&document);
        diagnostics.extend(remarks);
        let ApiOptions {
            annotate: tool_options,
            name,
            tenants: tenant_options,
            mut secrets,
            ..
        } = options;
        secrets.extend(tool_options.layers.rules.iter().flat_map(rule_secrets));
        let credentials = options.credentials.clone().unwrap_or_default();
        let binding = BindingOptions {
            destination: options.destination,
            headers: options.headers,
            credentials: options.credentials,
            forward: options.forward.clone(),
            secrets,
            secrets_of_all: options.secrets_of_all,
            upstream: options.upstream,
            api: ApiName::metrics_label(name.as_ref()),
            has_tenants: tenant_options.is_some(),
        };
        let mut binder = Binder::new(&document, &schemes, &binding, &credentials, clients.into());
        let mut wrong = binder.wrong_credentials(tenant_options.as_ref());
        if name.is_some() {
            wrong.extend(credentials.ambiguous_variables(&schemes));
        }
        if !wrong.is_empty() {
            return Err(BuildError::CredentialSettings(wrong));
        }
        // No argument may set them.
        for operation in &mut operations {
            binder.drop_set_parameters(operation);
        }
        let annotated = annotate(&document, operations, &tool_options);
        let mut problems = Vec::new();
        let (mut tools, list) =
            bind_tools(annotated.tools, &mut binder, &tool_options, &mut problems)?;
        let tenants = tenant_options.as_ref();
        let (tenants, of_tenants) = tenants.map(|tenants| binder.bind_tenants(tenants)).unzip();
        link_etags(tools.iter_mut().map(|tool| &mut tool.target));
        let found = binder.finish();
        diagnostics.extend(found.diagnostics);
        diagnostics.extend(annotated.diagnostics);
        if !annotated.unmatched.is_empty() || !problems.is_empty() {
            let mut all = annotated.unmatched;
            if !all.is_empty() {
                all = explain_unmatched(all, &diagnostics);
            }
            all.extend(problems);
            return Err(BuildError::Patterns(all));
        }
        let api = Self {
            by_name: tools
                .iter()
                .enumerate()
                .map(|(index, tool)| (Arc::clone(&tool.name), ToolIndex(index)))
                .collect(),
            tools,
            list,
            warnings: summarize_restrictions(&annotated.restrictions)
                .into_iter()
                .chain(describe_loosened(annotated.loosened))
                .chain(found.warnings)
                .chain(of_tenants.into_iter().flatten())
                .collect(),
            restrictions: annotated.restrictions,
            too_long: annotated.too_long,
            left_out: annotated.left_out,
            name,
            about: options.about.complete(&document),
            options: tool_options,
            credential_place: tenant_options
                .as_ref()
                .map_or_else(|| credentials.place(), |_| CredentialPlace::Tenants),
            logins: found.logins,
            proxy: ApiProxy {
                document,
                options: options.call,
                forward: options.forward,
                redactor: found.redactor,
                sandbox: options.sandbox,
                tenants,
            },
            search_index: OnceLock::new(),
            recent_texts: RecentTexts::default(),
            closed_paths: OnceLock::new(),
            document_digest: OnceLock::new(),
        };
        Ok((api, diagnostics))
    }

    /// The document.
    #[must_use]
    pub fn document(&self) -> &Document {
        &self.proxy.document
    }

    /// Its title, as clients and people see it.
    pub(crate) fn title(&self) -> &str {
        self.about.title.as_deref().unwrap_or_default()
    }

    /// Returns its name, if a server has several APIs.
    #[must_use]
    pub fn name(&self) -> Option<&ApiName> {
        self.name.as_ref()
    }

    /// Returns the prefix of every tool name; usually empty.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.options.names.prefix
    }

    /// Returns warnings for the operator, in sentences: restrictions because of words, and missing
    /// or misnamed credentials.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the reason for which the settings leave out the tool of that name; `None` if they do
    /// not.
    pub(crate) fn why_left_out(&self, name: &str) -> Option<&LeftOut> {
        let found = self.left_out.iter().find(|(tool, _)| tool == name);
        found.map(|(_, why)| why)
    }

    /// All tools, in the order of the document.
    #[must_use]
    pub fn tools(&self) -> &[BoundTool] {
        &self.tools
    }

    /// The tool of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&BoundTool> {
        Some(self.tool(self.find(name)?))
    }

    /// Returns the index of the tool of that name.
    pub(crate) fn find(&self, name: &str) -> Option<ToolIndex> {
        self.by_name.get(name).copied()
    }

    /// Returns true if a rule makes files of the replies of one of its operations.
    pub(crate) fn has_files_by_rule(&self) -> bool {
        let mut rules = self
            .tools
            .iter()
            .filter_map(|tool| tool.operation.rules.response.as_ref());
        rules.any(|rule| rule.file == Some(true))
    }

    /// Returns true if the pattern matches a tool, with or without the prefix of its name.
    pub(crate) fn has_match(&self, pattern: &Pattern) -> bool {
        self.tools
            .iter()
            .any(|tool| tool.is_pinned(std::slice::from_ref(pattern), self.prefix()))
    }

    /// Returns all demands on callers of operations.
    pub(crate) fn access_demands(&self) -> impl Iterator<Item = &AccessDemand> {
        self.options.access.iter().map(|rule| &rule.says)
    }

    /// Returns those of [`Self::access_demands`] that concern the tool at that index.
    pub(crate) fn demands_of(
        &self,
        index: ToolIndex,
    ) -> impl Iterator<Item = (usize, &AccessDemand)> {
        self.tool(index)
            .access
            .iter()
            .filter_map(|place| Some((*place, &self.options.access.get(*place)?.says)))
    }

    /// A tool of this API.
    #[expect(
        clippy::indexing_slicing,
        reason = "an index is made for this API, whose tools never change"
    )]
    pub(crate) fn tool(&self, index: ToolIndex) -> &BoundTool {
        &self.tools[index.0]
    }

    /// The name of a tool that is nearest to one that does not exist.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Option<&str> {
        nearest_name(name, || self.tools.iter().map(|tool| tool.name.as_ref()))
    }

    /// The value that identifies the tenant of a caller, if there are tenants and the caller
    /// belongs to one.
    pub(crate) fn tenant(&self, caller: &Caller) -> Option<&str> {
        let tenants = self.proxy.tenants.as_ref()?;
        Some(&tenants.of(caller).ok()?.value)
    }

    /// The name that the operator gave it, else the title of its document.
    pub(crate) fn label(&self) -> &str {
        self.name
            .as_ref()
            .map_or_else(|| self.document().title(), ApiName::as_str)
    }

    /// Its label in metrics.
    pub(crate) fn metrics_label(&self) -> ApiLabel {
        ApiName::metrics_label(self.name.as_ref())
    }

    /// The name of a tool as metrics and logs have it: without the prefix of one of several APIs.
    pub(crate) fn tool_label(&self, index: ToolIndex) -> &str {
        let name = self.tool(index).name.as_ref();
        let prefix = self.name.as_ref().map_or("", |_| self.prefix());
        name.strip_prefix(prefix).unwrap_or(name)
    }

    /// The operation of a tool, with all its names. They are made when it is first called.
    pub(crate) fn called_operation(&self, index: ToolIndex) -> Arc<CalledOperation> {
        let tool = self.tool(index);
        let name = || {
            let operation = &tool.operation;
            Arc::new(CalledOperation {
                api: self.label().to_owned(),
                label: self.metrics_label(),
                tool: self.tool_label(index).to_owned(),
                method: operation.method.to_string(),
                path_template: operation.path.clone(),
                effect: tool.hints.effect().word(),
            })
        };
        Arc::clone(tool.called.get_or_init(name))
    }
}

/// Returns the values of a rule that only the API may read.
fn rule_secrets(rule: &Rule) -> impl Iterator<Item = SecretString> {
    rule.says
        .arguments
        .iter()
        .filter_map(|argument| match &argument.value {
            Some(ValueSource::Secret { value, .. }) => Some(value.clone()),
            _ => None,
        })
}

/// Rules cannot match operations that cannot be read.
fn explain_unmatched(mut unmatched: Vec<String>, diagnostics: &[Diagnostic]) -> Vec<String> {
    let lost = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .count();
    if lost > 0 {
        unmatched.push(format!(
            "{lost} operations of the document are left out, and no rule matches them; `openapi-mcp check` without these rules lists them"
        ));
    }
    unmatched
}

/// The operator's settings for an API.
#[derive(Debug, Clone, Default)]
pub struct ApiOptions {
    /// Settings for tools.
    pub annotate: AnnotateOptions,
    /// Destination of requests.
    pub destination: Destination,
    /// Headers that every request carries; no argument can replace them. Values that are marked
    /// sensitive are secrets, which are taken out of replies; so are those of `Authorization`,
    /// `Cookie` and other names that say so.
    pub headers: HeaderMap,
    /// Credentials for the document's security schemes. Without any, nothing is asked for: a mock
    /// wants none.
    pub credentials: Option<Credentials>,
    /// Headers of clients that go upstream.
    pub forward: Forwarding,
    /// Other secrets that must not appear in a reply, such as the password of a proxy.
    pub secrets: Vec<SecretString>,
    /// Limits of a call.
    pub call: CallOptions,
    /// Limits of an upstream.
    pub upstream: UpstreamOptions,
    /// Sandbox that runs filters of replies, if they are offered.
    pub sandbox: Option<Sandbox>,
    /// The introduction of the server; what it leaves out comes from the document.
    pub about: About,
    /// The name of the API, if a server has several.
    pub name: Option<ApiName>,
    /// Secrets of all APIs of a server, which must not come back in a reply of this one either.
    pub secrets_of_all: Vec<SecretString>,
    /// The tenants to which calls go; then nothing goes to [`ApiOptions::destination`], and each
    /// has credentials of its own.
    pub tenants: Option<TenantOptions>,
}
