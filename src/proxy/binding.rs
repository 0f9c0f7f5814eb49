//! Decisions at start about an operation's calls: their destination, their credentials, and the
//! contract of their results.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use http::header::HeaderMap;
use secrecy::{ExposeSecret as _, SecretString};
use url::Origin;

use super::arguments::ruled::ArgumentRules;
use super::request::ExpectedReply;
use super::request::target::{BaseUrl, BaseUrls, Destination};
use super::tenants::{Tenant, TenantEntry, TenantOptions, Tenants};
use super::upstream::{Upstream, UpstreamOptions};
use crate::caller::client_grant::NamedTool;
use crate::credentials::authenticator::{Authenticator, RefusedTokens};
use crate::credentials::credential_part::basic_forms;
use crate::credentials::forward::Forwarding;
use crate::credentials::login::Login;
use crate::credentials::resolve::{AccessResolver, OperationAccess};
use crate::credentials::scheme::{ApiLocation, SchemeResolver, is_api_key_header};
use crate::credentials::signatures::{headers_set_twice, wrong_signatures};
use crate::credentials::values::Credentials;
use crate::observe::metrics::labels::ApiLabel;
use crate::outbound::Clients;
use crate::redact::{Redactor, carries_credential, words_of_secret_header};
use crate::results::render::OutputContract;
use crate::results::reply_headers::{DeclaredHeader, EtagUse, declared_headers, if_match_argument};
use crate::spec::operation::security::Requirements;
use crate::spec::operation::server_template::ServerError;
use crate::spec::{
    Diagnostic, Document, Location, Operation, Parameter, SecurityRequirement, SecurityScheme,
};
use crate::text;

/// The operator's settings for the destination and the credentials of calls.
#[derive(Clone, Default)]
pub(crate) struct BindingOptions {
    /// Destination of requests.
    pub(crate) destination: Destination,
    /// Headers that every request carries; no argument can replace them. Values that are marked
    /// sensitive are secrets.
    pub(crate) headers: HeaderMap,
    /// Credentials for the document's security schemes; `None` if no credential is needed, as with
    /// a mock.
    pub(crate) credentials: Option<Credentials>,
    /// Headers of clients that go upstream.
    pub(crate) forward: Forwarding,
    /// Other secrets that must not appear in a reply, such as the password of a proxy.
    pub(crate) secrets: Vec<SecretString>,
    /// Secrets of all APIs of a server, in each form in which they are sent.
    pub(crate) secrets_of_all: Vec<SecretString>,
    /// Limits of an upstream.
    pub(crate) upstream: UpstreamOptions,
    /// The API's label in metrics.
    pub(crate) api: ApiLabel,
    /// True if calls go to tenants, which [`Binder::bind_tenants`] binds.
    pub(crate) has_tenants: bool,
}

/// An operation, and everything about its calls that is decided at start.
pub(crate) struct BoundOperation {
    pub(crate) operation: Arc<Operation>,
    /// The name of its tool.
    pub(super) tool: Arc<str>,
    /// Base URL; `None` if the tools are only listed.
    pub(super) base: Option<Arc<BaseUrl>>,
    pub(super) upstream: Option<Arc<Upstream>>,
    pub(super) access: OperationAccess,
    /// New access tokens that it has refused.
    pub(super) refused_tokens: RefusedTokens,
    /// The number of what it requires of credentials, by which each tenant knows what its calls
    /// carry; 0 without tenants.
    pub(super) requirements: usize,
    /// True if a request may be sent again, by the hints.
    pub(crate) repeats: bool,
    /// Its hints.
    pub(crate) is_read_only: bool,
    pub(crate) is_destructive: bool,
    /// Contract of the tool for its results.
    pub(crate) contract: OutputContract,
    /// Made on first use: most tools of a large API are never called.
    pub(super) expected: OnceLock<ExpectedReply>,
    /// The headers that are declared for replies, read on first use.
    pub(super) declared_headers: OnceLock<Vec<DeclaredHeader>>,
    /// Use of an `ETag` of a reply.
    pub(crate) etag_use: Option<EtagUse>,
    /// Rules for its arguments.
    pub(crate) rules: Option<Box<ArgumentRules>>,
    /// Redactor of the values that rules mask in its replies.
    pub(crate) masks: Option<Box<Redactor>>,
}

/// Binds the operations of one API, one after the other.
pub(crate) struct Binder<'a> {
    schemes: &'a BTreeMap<String, SecurityScheme>,
    options: &'a BindingOptions,
    credentials: &'a Credentials,
    requirements: Requirements<'a>,
    bases: BaseUrls<'a>,
    access: AccessResolver<'a>,
    /// The upstreams by their origins; almost all APIs have one.
    upstreams: HashMap<Origin, Arc<Upstream>>,
    location: ApiLocation,
    /// The different requirements of all operations, each with how many operations have it.
    distinct: Vec<(Rc<[SecurityRequirement]>, usize)>,
    /// Their numbers, by their allocations.
    numbers: HashMap<*const [SecurityRequirement], usize>,
    diagnostics: Vec<Diagnostic>,
}

impl BoundOperation {
    /// The base URL of its calls; `None` if the tools are only listed, or calls go to tenants.
    pub(crate) fn base_url(&self) -> Option<&url::Url> {
        self.base.as_deref().map(BaseUrl::url)
    }

    /// The headers that the document declares for its replies.
    pub(super) fn declared_headers(&self, document: &Document) -> &[DeclaredHeader] {
        self.declared_headers
            .get_or_init(|| declared_headers(document, &self.operation))
    }
}

/// Finds for each operation the tools of the same path that take an `ETag` of its replies as
/// `If-Match`.
pub(crate) fn link_etags<'b>(operations: impl Iterator<Item = &'b mut BoundOperation>) {
    let mut operations: Vec<&mut BoundOperation> = operations.collect();
    let mut takers: HashMap<String, EtagUse> = HashMap::new();
    for (place, target) in operations.iter().enumerate() {
        if let Some(argument) = if_match_argument(&target.operation) {
            let known = takers.entry(target.operation.path.clone());
            let known = known.or_insert_with(|| EtagUse {
                argument: argument.into(),
                tools: Vec::new(),
            });
            if *known.argument == *argument {
                known.tools.push(NamedTool {
                    name: Arc::clone(&target.tool),
                    place,
                    is_read_only: target.is_read_only,
                    is_destructive: target.is_destructive,
                });
            }
        }
    }
    for target in &mut operations {
        target.etag_use = takers.get(&target.operation.path).cloned();
    }
}

impl BoundOperation {
    /// The security scheme and the scopes with which it is called as the user.
    pub(crate) fn asked_as_user(&self) -> Option<(&str, Option<&str>)> {
        match self.access.as_ref().ok()?.authenticator.as_ref()? {
            Authenticator::Exchange(exchange) => Some(exchange.asked()),
            Authenticator::Token(_) | Authenticator::Signature(_) => None,
        }
    }
}

impl<'a> Binder<'a> {
    /// A binder for a document with these security schemes. `credentials` are those of the options,
    /// or none.
    pub(crate) fn new(
        document: &'a Document,
        schemes: &'a BTreeMap<String, SecurityScheme>,
        options: &'a BindingOptions,
        credentials: &'a Credentials,
        clients: Clients,
    ) -> Self {
        let mut diagnostics = Vec::new();
        let requirements = Requirements::new(document, schemes, &mut diagnostics);
        let bases = BaseUrls::new(document, &options.destination, credentials.origins.clone());
        let location = bases.site(clients);
        let access = AccessResolver::new(SchemeResolver {
            schemes,
            credentials,
            headers: &options.headers,
            forward: &options.forward,
            site: location.clone(),
        });
        Self {
            schemes,
            options,
            credentials,
            requirements,
            bases,
            access,
            upstreams: HashMap::new(),
            location,
            distinct: Vec::new(),
            numbers: HashMap::new(),
            diagnostics,
        }
    }

    /// A sentence for each setting of a credential that cannot take effect with the document.
    pub(crate) fn wrong_credentials(&self, tenants: Option<&TenantOptions>) -> Vec<String> {
        let is_sent = !matches!(self.options.destination, Destination::Nowhere);
        let own = (self.credentials, self.location.base.as_ref(), is_sent);
        let tenants = tenants.iter().flat_map(|tenants| tenants.entries.values());
        let of_tenants = tenants.map(|tenant| (&tenant.credentials, Some(&tenant.base_url), true));
        let all = of_tenants.chain([own]);
        let wrong = all.flat_map(|(credentials, base, is_sent)| {
            let has_other = |scheme: &str| !credentials.of(scheme).is_empty();
            let (signatures, is_sent) = (&credentials.signatures, is_sent || base.is_some());
            let mut wrong = credentials.wrong_grants(self.schemes);
            wrong.extend(wrong_signatures(
                signatures,
                has_other,
                self.schemes,
                base,
                is_sent,
            ));
            wrong
        });
        let set_twice = headers_set_twice(&self.credentials.signatures, &self.options.headers);
        wrong.chain(set_twice).collect()
    }

    /// Takes away the parameters that no argument may set, because the operator, a client or a
    /// security scheme does.
    pub(crate) fn drop_set_parameters(&mut self, operation: &mut Operation) {
        let needs = self
            .requirements
            .of(operation, self.schemes, &mut self.diagnostics);
        // The headers of W3C Trace Context.
        let is_of_trace = |parameter: &Parameter| {
            let is_named = |name| parameter.is(Location::Header, name);
            self.options.upstream.propagates_trace
                && (is_named("traceparent") || is_named("tracestate"))
        };
        operation
            .parameters
            .retain(|parameter| self.access.offers(parameter, &needs) && !is_of_trace(parameter));
    }

    /// Decides about the calls of an operation, whose tool has that name.
    ///
    /// # Errors
    /// An error if the server of its requests is not usable; a diagnostic reports that it is left
    /// out.
    pub(crate) fn bind(
        &mut self,
        operation: Arc<Operation>,
        tool: Arc<str>,
    ) -> Result<BoundOperation, ServerError> {
        let base = self.bases.of(&operation).inspect_err(|error| {
            let text = format!("{} is left out: {error}", operation.label());
            self.diagnostics
                .push(Diagnostic::error(operation.pointer.clone(), text));
        })?;
        let declared = self
            .requirements
            .of(&operation, self.schemes, &mut self.diagnostics);
        let none: Rc<[SecurityRequirement]> = Rc::from([]);
        let has_credentials = self.options.credentials.is_some();
        let needs = if has_credentials { &declared } else { &none };
        let cross_origin = self.bases.leads_elsewhere(base.as_deref());
        let access = if cross_origin {
            if !self.options.headers.is_empty() || !needs.is_empty() {
                self.diagnostics.push(cross_origin_warning(&operation));
            }
            self.access.elsewhere(needs)
        } else {
            self.access.access(needs, 1)
        };
        let upstream = base.as_deref().map(|base| {
            let BindingOptions { upstream, api, .. } = self.options;
            let clients = &self.location.clients;
            let client = if cross_origin {
                &clients.other
            } else {
                &clients.own
            };
            let propagates_trace = upstream.propagates_trace && self.bases.is_own(base);
            let fresh = || Upstream::watched(client, base, upstream, api, propagates_trace);
            let known = self.upstreams.entry(base.url().origin());
            Arc::clone(known.or_insert_with(fresh))
        });
        let numbered = self.options.has_tenants.then(|| self.number(&declared));
        let rule = operation.rules.response.as_ref();
        let masks = rule.filter(|rule| !rule.masks.is_empty());
        Ok(BoundOperation {
            masks: masks.map(|rule| Redactor::for_masks(&rule.masks).into()),
            requirements: numbered.unwrap_or_default(),
            upstream,
            operation,
            tool,
            base,
            access,
            refused_tokens: RefusedTokens::default(),
            repeats: false,
            is_read_only: false,
            is_destructive: false,
            contract: OutputContract::None,
            expected: OnceLock::new(),
            declared_headers: OnceLock::new(),
            etag_use: None,
            rules: None,
        })
    }

    /// The number of a list of requirements.
    fn number(&mut self, requirements: &Rc<[SecurityRequirement]>) -> usize {
        let next = self.distinct.len();
        let number = self.numbers.entry(Rc::as_ptr(requirements));
        let number = *number.or_insert(next);
        match self.distinct.get_mut(number) {
            Some((_, operations)) => *operations += 1,
            None => self.distinct.push((Rc::clone(requirements), 1)),
        }
        number
    }

    /// Decides about the calls of each tenant, once all operations are bound. The second value is
    /// what the operator should know before the first call, in sentences.
    pub(crate) fn bind_tenants(&self, tenants: &TenantOptions) -> (Tenants, Vec<String>) {
        let mut warnings = Vec::new();
        let tenant = |(value, entry): (&String, &TenantEntry)| {
            let base = BaseUrl::new(entry.base_url.clone());
            let shared = self.options.upstream.shared.as_ref();
            let shared = shared.map(|shared| shared.of_tenant(value));
            let credentials = Credentials {
                shared: shared.clone(),
                api: self.credentials.api.clone(),
                ..entry.credentials.clone()
            };
            let upstream = UpstreamOptions {
                shared,
                ..self.options.upstream.clone()
            };
            let (client, api) = (&self.location.clients.own, &self.options.api);
            let propagates_trace = upstream.propagates_trace;
            let mut access = AccessResolver::new(SchemeResolver {
                schemes: self.schemes,
                credentials: &credentials,
                headers: &self.options.headers,
                forward: &self.options.forward,
                site: ApiLocation {
                    base: Some(entry.base_url.clone()),
                    ..self.location.clone()
                },
            });
            let tenant = Tenant {
                value: value.as_str().into(),
                access: self
                    .distinct
                    .iter()
                    .map(|(needs, operations)| access.access(needs, *operations))
                    .collect(),
                redactor: Redactor::for_values(
                    access.sent().into_iter().chain(credentials.exposed()),
                ),
                // One of its own, even if another tenant has the same origin.
                upstream: Upstream::watched(client, &base, &upstream, api, propagates_trace),
                base: Arc::new(base),
            };
            let own = access.warnings().into_iter();
            warnings.extend(
                own.map(|warning| format!("the tenant `{}`: {warning}", text::one_line(value))),
            );
            (tenant.value.clone(), tenant)
        };
        let by_value = tenants.entries.iter().map(tenant).collect();
        let source = (&tenants.source).into();
        (Tenants { source, by_value }, warnings)
    }

    /// Ends the binding: what takes the operator's secrets out of replies, and what was found.
    pub(crate) fn finish(self) -> Bound {
        let mut sent = [self.access.sent(), self.credentials.exposed()].concat();
        let of_all = self.options.secrets_of_all.iter();
        sent.extend(of_all.map(|secret| secret.expose_secret().as_bytes().to_vec()));
        for secret in self.options.secrets.iter().map(SecretString::expose_secret) {
            sent.push(secret.as_bytes().to_vec());
            let forms = basic_forms(secret).into_iter().flatten();
            sent.extend(forms.map(String::into_bytes));
        }
        // The headers of every request that are secret: those whose values were given as secrets,
        // those whose names say so, and those that the document calls API keys.
        for (name, value) in &self.options.headers {
            if value.is_sensitive()
                || carries_credential(name)
                || is_api_key_header(self.schemes, name)
            {
                sent.extend(words_of_secret_header(name, value));
            }
        }
        let (warnings, logins) = match &self.options.credentials {
            Some(_) => (self.access.warnings(), self.access.logins()),
            None => (Vec::new(), Vec::new()),
        };
        Bound {
            redactor: Redactor::for_values(sent),
            warnings,
            logins,
            diagnostics: self.diagnostics,
        }
    }
}

/// Result of binding all operations.
pub(crate) struct Bound {
    /// Takes the operator's secrets out of replies.
    pub(crate) redactor: Redactor,
    /// Warnings for the operator, in sentences: credentials that are missing or misnamed.
    pub(crate) warnings: Vec<String>,
    /// Each security scheme of OAuth, with the login that gives its tokens, or the reason for which
    /// there is none.
    pub(crate) logins: Vec<(String, Result<Arc<Login>, String>)>,
    /// Diagnostics about the document.
    pub(crate) diagnostics: Vec<Diagnostic>,
}

fn cross_origin_warning(operation: &Operation) -> Diagnostic {
    let label = operation.label();
    let text = format!(
        "{label} goes to a server of its own, and without your headers and credentials; `credential_origin` allows them there, --base-url sends everything to one server"
    );
    Diagnostic::warning(operation.pointer.clone(), text)
}
