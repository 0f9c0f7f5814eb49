//! The whole product without a transport: an API as a list of tools that can be called.
//!
//! Built once, then only read: a call takes no lock and allocates nothing in proportion to the document.

pub(crate) mod bound_tool;

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use futures_util::FutureExt;
use http::header::{AUTHORIZATION, HeaderMap};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Tool};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use self::bound_tool::{BoundTool, accept, filtered, promise};
use crate::annotate::enforcement::may_repeat;
pub(crate) use crate::annotate::enforcement::{Confirm, must_confirm};
use crate::annotate::{AnnotateOptions, Annotated, Hints, OutputSchemas, annotate};
use crate::outbound::Clients;
pub(crate) use crate::proxy::Request;
use crate::proxy::auth::resolve::AccessResolver;
use crate::proxy::auth::scheme::SchemeResolver;
use crate::proxy::auth::values::forms;
use crate::proxy::redact::Redactor;
use crate::proxy::request::base_url::BaseUrls;
pub use crate::proxy::request::base_url::Destination;
pub(crate) use crate::proxy::request::body::payload::Payload;
pub(crate) use crate::proxy::response::filter;
use crate::proxy::response::render::{self, Rendering};
use crate::proxy::upstream::{OutgoingCall, Upstreams};
use crate::proxy::{
    self, BaseUrl, CallError, CallOptions, Credential, Credentials, Forwarding, Injected, OperationAccess, Progress, Sandbox,
    UpstreamOptions,
};
use crate::spec::operation::security::{self, Requirements};
use crate::spec::operation::server::ServerError;
use crate::spec::{Diagnostic, Document, Operation, SecurityRequirement, operations};
use crate::text;

/// What an operator sets about an API.
#[derive(Debug, Clone, Default)]
pub struct ApiOptions {
    /// How tools look and which there are.
    pub annotate: AnnotateOptions,
    /// Where requests go.
    pub destination: Destination,
    /// Headers that every request carries; no argument can replace them.
    pub headers: HeaderMap,
    /// Credentials for the document's security schemes. Without any, nothing is asked for: a mock wants none.
    pub credentials: Option<Credentials>,
    /// Headers of clients that go upstream.
    pub forward: Forwarding,
    /// What else must not come back in a reply, such as the password of a proxy.
    pub secrets: Vec<SecretString>,
    /// Limits of a call.
    pub call: CallOptions,
    /// Limits of an upstream.
    pub upstream: UpstreamOptions,
    /// What runs filters of replies, where they are offered.
    pub sandbox: Option<Sandbox>,
}

/// Who calls, as far as a call needs to know.
#[derive(Default)]
pub struct Caller<'c> {
    /// Is told how a reply comes in.
    pub progress: Option<Progress<'c>>,
    /// The headers of the client's HTTP request.
    pub headers: Option<&'c HeaderMap>,
}

/// What becomes of a call that is only looked at, where a credential is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnMissingCredential {
    /// It is refused, as the call would be.
    Refuse,
    /// It is shown without.
    Omit,
}

/// An API as tools.
pub struct Api {
    document: Arc<Document>,
    /// The tools without what is long: schemas and descriptions.
    tools: Vec<Tool>,
    entries: Vec<BoundTool>,
    by_name: HashMap<String, usize>,
    redactor: Redactor,
    warnings: Vec<String>,
    forward: Forwarding,
    call: CallOptions,
    sandbox: Option<Sandbox>,
}

/// A tool as it is offered.
#[derive(Clone, Copy)]
pub struct OfferedTool<'a> {
    /// The tool without what is long: name, title and annotations.
    pub tool: &'a Tool,
    /// The operation that a call makes.
    pub operation: &'a Operation,
    /// Its hints, each with where it came from.
    pub hints: &'a Hints,
    /// What it belongs to.
    pub category: Option<&'a str>,
    /// The whole tool as clients get it, as JSON.
    pub text: &'a str,
}

impl Api {
    /// Reads all operations of the document and pairs each with its tool.
    ///
    /// # Errors
    /// Where requests should go to the declared servers, and no operation has a usable one.
    pub fn build(
        document: impl Into<Arc<Document>>,
        options: ApiOptions,
        clients: impl Into<Clients>,
    ) -> Result<(Self, Vec<Diagnostic>), ServerError> {
        let (document, clients) = (document.into(), clients.into());
        let (mut operations, mut diagnostics) = operations(&document);
        let (schemes, remarks) = security::schemes(&document);
        diagnostics.extend(remarks);
        let mut requirements = Requirements::new(&document, &schemes, &mut diagnostics);
        let credentials = options.credentials.clone().unwrap_or_default();
        let mut bases = BaseUrls::new(&document, &options.destination, credentials.origins.clone());
        let mut resolver = AccessResolver::new(SchemeResolver {
            schemes: &schemes,
            credentials: &credentials,
            headers: &options.headers,
            forward: &options.forward,
            site: bases.site(&document, clients.clone()),
        });
        for operation in &mut operations {
            let needs = requirements.of(operation, &schemes, &mut diagnostics);
            operation.parameters.retain(|parameter| resolver.offers(parameter, &needs));
        }
        let is_strict = options.annotate.output == OutputSchemas::Strict;
        let (annotated, remarks) = annotate(&document, operations, &options.annotate);
        diagnostics.extend(remarks);
        let mut api = Self {
            tools: Vec::with_capacity(annotated.len()),
            entries: Vec::with_capacity(annotated.len()),
            by_name: HashMap::with_capacity(annotated.len()),
            redactor: Redactor::default(),
            warnings: Vec::new(),
            forward: options.forward.clone(),
            call: options.call,
            sandbox: options.sandbox,
            document: Arc::clone(&document),
        };
        let mut upstreams = Upstreams::new(clients, &options.upstream);
        let nothing: Rc<[SecurityRequirement]> = Rc::from([]);
        let mut first_error = None;
        for annotated in annotated {
            let Annotated {
                tool,
                operation,
                has_output,
                wire,
                hints,
                category,
                json,
                ..
            } = annotated;
            let base = match bases.of(&operation) {
                Ok(base) => base,
                Err(error) => {
                    let text = format!("{} is left out: {error}", operation.label());
                    diagnostics.push(Diagnostic::error(operation.pointer.clone(), text));
                    first_error.get_or_insert(error);
                    continue;
                }
            };
            let needs = requirements.of(&operation, &schemes, &mut diagnostics);
            let needs = options.credentials.as_ref().map_or(&nothing, |_| &needs);
            let elsewhere = bases.leads_elsewhere(base.as_deref());
            let access = if elsewhere {
                if !options.headers.is_empty() || !needs.is_empty() {
                    diagnostics.push(stray(&operation));
                }
                resolver.elsewhere(needs)
            } else {
                resolver.access(needs)
            };
            let upstream = base.as_deref().map(|base| upstreams.of(base, elsewhere));
            let repeats = may_repeat(&hints);
            api.by_name.insert(tool.name.to_string(), api.tools.len());
            api.tools.push(tool);
            api.entries.push(BoundTool {
                operation,
                base,
                hints,
                category: category.map(String::into_boxed_str),
                access,
                upstream,
                repeats,
                wire,
                json,
                promise: promise(has_output, is_strict),
                checks: OnceLock::new(),
                accept: OnceLock::new(),
            });
        }
        let mut sent = resolver.sent();
        for secret in options.secrets.iter().map(SecretString::expose_secret) {
            sent.push(secret.as_bytes().to_vec());
            sent.extend(forms(secret).into_iter().flatten().map(String::into_bytes));
        }
        api.redactor = Redactor::new(&options.headers, &credentials, &sent);
        if options.credentials.is_some() {
            api.warnings = resolver.warnings();
        }
        match first_error {
            Some(error) if api.tools.is_empty() => Err(error),
            _ => Ok((api, diagnostics)),
        }
    }

    /// The document.
    #[must_use]
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// What the operator should know before the first call, in sentences: credentials that are missing or misnamed.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// All tools in the order of the document, without what is long: name, title and hints.
    #[must_use]
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// All tools as clients get them, in the order of the document, each as JSON.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.json.as_ref())
    }

    /// Each tool with everything that is known of it, in the order of the document.
    pub fn iter(&self) -> impl Iterator<Item = OfferedTool<'_>> {
        self.tools.iter().zip(&self.entries).map(|(tool, entry)| entry.offered(tool))
    }

    /// The tool of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<OfferedTool<'_>> {
        let (tool, entry) = self.find(name)?;
        Some(entry.offered(tool))
    }

    fn find(&self, name: &str) -> Option<(&Tool, &BoundTool)> {
        let index = *self.by_name.get(name)?;
        Some((self.tools.get(index)?, self.entries.get(index)?))
    }

    /// The tool names nearest to one that does not exist.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Option<&str> {
        text::nearest(name, self.tools.iter().map(|tool| tool.name.as_ref()), 0.8)
    }

    /// Calls a tool. Everything that goes wrong, here or at the API, is a result with `isError`; `None` means that there is
    /// no such tool. Dropping the future ends the request.
    pub async fn call(&self, name: &str, arguments: Option<JsonObject>, caller: Caller<'_>) -> Option<CallToolResult> {
        let (tool, entry) = self.find(name)?;
        // A panic is a bug of ours; it must not take down the calls of others.
        let outcome = AssertUnwindSafe(self.run(tool, entry, arguments, caller)).catch_unwind().await;
        Some(outcome.unwrap_or_else(|_| {
            tracing::error!(tool = name, "a call ended in a panic; please report this");
            CallToolResult::error(vec![ContentBlock::text("The call failed because of an error inside this server.")])
        }))
    }

    /// The request that a call would make, with `***` for the operator's credentials; or the result with `isError` that it
    /// would end in before anything is sent. `None` means that there is no such tool.
    #[must_use]
    pub fn prepare(
        &self,
        name: &str,
        arguments: Option<JsonObject>,
        lack: OnMissingCredential,
    ) -> Option<Result<Request, Box<CallToolResult>>> {
        let (tool, entry) = self.find(name)?;
        let make = || {
            let masked = match (&entry.access, lack) {
                (OperationAccess::Granted(credential), _) => credential.masked(),
                (OperationAccess::Missing(why), OnMissingCredential::Refuse) => return Err(CallError::Credential(Arc::clone(why))),
                (OperationAccess::Missing(_), OnMissingCredential::Omit) => Injected::default(),
            };
            let (base, _, arguments) = entry.ready(tool, arguments.unwrap_or_default())?;
            self.request(entry, base, &arguments, &masked)
        };
        Some(make().map_err(|error| Box::new(render::render_error(&entry.operation, &error))))
    }

    fn request(&self, entry: &BoundTool, base: &BaseUrl, arguments: &JsonObject, fixed: &Injected) -> Result<Request, CallError> {
        let operation = &entry.operation;
        let accept = entry.accept.get_or_init(|| accept(&self.document, operation));
        proxy::request::build(&self.document, operation, base, arguments, accept, fixed, self.call.files.as_ref())
    }

    async fn run(&self, tool: &Tool, entry: &BoundTool, arguments: Option<JsonObject>, caller: Caller<'_>) -> CallToolResult {
        let started = std::time::Instant::now();
        let operation = &entry.operation;
        let credential = match &entry.access {
            OperationAccess::Granted(credential) => credential,
            OperationAccess::Missing(why) => return render::render_error(operation, &CallError::Credential(Arc::clone(why))),
        };
        let (base, upstream, arguments) = match entry.ready(tool, arguments.unwrap_or_default()) {
            Ok(ready) => ready,
            Err(error) => return render::render_error(operation, &error),
        };
        let forwarded = match self.forwarded(credential, caller.headers) {
            Ok(forwarded) => forwarded,
            Err(error) => return render::render_error(operation, &error),
        };
        let make = || {
            let mut request = self.request(entry, base, &arguments, &credential.fixed)?;
            if let Some((headers, _)) = &forwarded {
                request
                    .headers
                    .extend(headers.iter().map(|(name, value)| (name.clone(), value.clone())));
            }
            Ok(request)
        };
        let outgoing = OutgoingCall {
            make,
            credential,
            repeats: entry.repeats,
            options: &self.call,
            progress: caller.progress,
        };
        match upstream.call(outgoing).await {
            Ok(mut response) => {
                self.redactor.redact(&mut response);
                if let Some((_, redactor)) = &forwarded {
                    redactor.redact(&mut response);
                }
                tracing::debug!(tool = %tool.name, status = response.status.as_u16(), bytes = response.body.len(), ms = started.elapsed().as_millis(), "called");
                let remark = if let Some(sandbox) = &self.sandbox
                    && let Some(filter) = arguments.get(&operation.filter_key()).and_then(Value::as_str)
                {
                    let left = self.call.timeout.saturating_sub(started.elapsed());
                    filtered(sandbox, filter, &mut response, left).await.err()
                } else {
                    None
                };
                let rendering = Rendering {
                    promise: entry.promise,
                    most_bytes: self.call.max_result_bytes,
                    advice: credential.advice.as_ref(),
                };
                let mut result = render::render_reply(operation, &response, rendering);
                result.content.extend(remark.map(ContentBlock::text));
                // Charsets and escapes are off only now.
                let own = std::iter::once(&self.redactor).chain(forwarded.as_ref().map(|(_, own)| own));
                for redactor in own.chain(response.redactors.iter().map(Arc::as_ref)) {
                    redactor.redact_result(&mut result);
                }
                result
            }
            Err(error) if error.is_the_callers() => render::render_error(operation, &error),
            Err(error) => {
                let host = base.url().host_str().unwrap_or_default();
                let port = base.url().port_or_known_default().unwrap_or_default();
                tracing::warn!(tool = %tool.name, host, port, ms = started.elapsed().as_millis(), "the call failed: {error}");
                render::render_error(operation, &error)
            }
        }
    }

    /// What goes upstream of the client's headers, but for what the operator sets: that is stronger.
    fn forwarded(&self, credential: &Credential, client: Option<&HeaderMap>) -> Result<Option<(HeaderMap, Redactor)>, CallError> {
        if self.forward.headers.is_empty() || !credential.forwards {
            return Ok(None);
        }
        let mut picked = client.map(|client| self.forward.pick(client)).unwrap_or_default();
        for name in credential.fixed.headers.keys() {
            picked.remove(name);
        }
        if credential.signer.is_some() {
            picked.remove(AUTHORIZATION);
        }
        if let Some((ours, _)) = credential.of_client.iter().find(|(_, theirs)| !picked.contains_key(theirs)) {
            let why = format!("nothing was sent, because the API asks for a credential that the client has to send in its `{ours}` header");
            return Err(CallError::Credential(why.into()));
        }
        let redactor = proxy::auth::forward::redactor(&picked, &credential.of_client);
        Ok(Some((picked, redactor)))
    }
}

fn stray(operation: &Operation) -> Diagnostic {
    let label = operation.label();
    let text = format!(
        "{label} goes to a server of its own, and without headers and credentials of yours; --credential-origin allows them there, --base-url sends everything to one server"
    );
    Diagnostic::warning(operation.pointer.clone(), text)
}
