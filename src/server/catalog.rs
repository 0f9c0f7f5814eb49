//! What one endpoint serves: tools of one API or of several, under the names by which clients call them.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, ServerConfig};

use super::auth::scopes::{Scopes, ToolScopes};
use super::gates::{Gates, InnerCall, describe_operations, read_inner_call, search_operations};
use crate::annotate::gate_names::GateKind;
use crate::api::{Api, Caller, OfferedTool, OnMissingCredential, ToolIndex};
use crate::observe::metrics::labels::ApiLabel;
use crate::proxy::{Request, ToolResult};
use crate::text;

/// How the JSON of a tool begins; its name follows.
const JSON_BEFORE_NAME: &str = "{\"name\":\"";

/// The tools of an endpoint, and how its server introduces itself. It never changes: a changed document makes another one.
pub(crate) struct Catalog {
    apis: Vec<CatalogApi>,
    view: View,
    /// The prefixes of tool names of the APIs that are still loading.
    awaited: Vec<String>,
    config: ServerConfig,
    /// In search mode, the tools that stand for all operations.
    gates: Option<Gates>,
    /// The list for clients that may list all tools, made for the first of them.
    whole_list: OnceLock<Bytes>,
}

/// What a message asks for.
#[derive(Clone)]
pub(crate) enum Resolution {
    /// A call of an operation.
    Call(ResolvedCall),
    /// A search among the operations, or their description: nothing is sent.
    Lookup(Lookup),
    /// Nothing that can be done, and the result that says so.
    Refused(CallToolResult),
}

/// A search among the operations, or their description.
#[derive(Clone)]
pub(crate) struct Lookup {
    catalog: Arc<Catalog>,
    is_search: bool,
    arguments: Option<JsonObject>,
}

/// An API of a catalog.
#[derive(Clone)]
pub(crate) struct CatalogApi {
    pub(crate) api: Arc<Api>,
    /// Scopes that its calls need besides those of the whole server.
    pub(crate) scopes: Arc<ToolScopes>,
}

/// What an endpoint shows of its APIs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    /// The path of the endpoint.
    pub(crate) path: Arc<str>,
    /// Whether names stand without the prefix of their API.
    pub(crate) strips_prefix: bool,
    /// Whether there are only tools that read, by what is enforced of them.
    pub(crate) reads_only: bool,
}

/// A call of one operation. The tool's name and the arguments of a message are read once, into this value; the scope check, the
/// confirmation, the limits and the request all use it, so that no two of them can judge different calls.
#[derive(Clone)]
pub(crate) struct ResolvedCall {
    api: Arc<Api>,
    scopes: Arc<ToolScopes>,
    endpoint: Arc<str>,
    tool: ToolIndex,
    arguments: Option<JsonObject>,
    /// The gate through which the operation is called.
    gate: Option<GateKind>,
    /// What was read otherwise than it was written.
    remarks: Vec<String>,
}

impl Catalog {
    /// The tools of these APIs, as the endpoint shows them.
    pub(crate) fn new(apis: Vec<CatalogApi>, view: View, awaited: Vec<String>, config: ServerConfig) -> Self {
        Self {
            apis,
            view,
            awaited,
            config,
            gates: None,
            whole_list: OnceLock::new(),
        }
    }

    /// The same tools behind gates: only of one API, all of whose tools the endpoint shows under their own names.
    pub(crate) fn with_gates(self, gates: Option<Gates>) -> Self {
        Self { gates, ..self }
    }

    /// How the server introduces itself.
    pub(crate) fn config(&self) -> &ServerConfig {
        &self.config
    }

    /// Whether every API is there, or is known not to come.
    pub(crate) fn is_decided(&self) -> bool {
        self.awaited.is_empty()
    }

    /// Whether an API that may still come may have a tool of that name.
    pub(crate) fn awaits(&self, name: &str) -> bool {
        self.view.strips_prefix && !self.awaited.is_empty() || self.awaited.iter().any(|prefix| name.starts_with(prefix.as_str()))
    }

    /// All tools that a client with these scopes may list, as one text, separated by commas. Clients that may list all tools share it:
    /// one that reads slowly holds no list of its own.
    pub(crate) fn list(&self, scopes: Option<&Scopes>) -> Bytes {
        let scopes = scopes.filter(|_| self.depends_on_scopes());
        if scopes.is_some() {
            return self.join_texts(scopes);
        }
        if let [only] = self.apis.as_slice()
            && self.stripped(only).is_none()
            && !self.view.reads_only
            && self.gates.is_none()
        {
            return only.api.list().clone();
        }
        self.whole_list.get_or_init(|| self.join_texts(None)).clone()
    }

    fn join_texts(&self, scopes: Option<&Scopes>) -> Bytes {
        let mut list = Vec::new();
        for [head, tail] in self.texts(scopes) {
            if !list.is_empty() {
                list.push(b',');
            }
            list.extend_from_slice(head.as_bytes());
            list.extend_from_slice(tail.as_bytes());
        }
        list.into()
    }

    /// All tools that a client with these scopes may list, in the order in which they are listed, each as the two pieces of its
    /// JSON. Without scopes, a client may list all.
    pub(crate) fn texts<'c>(&'c self, scopes: Option<&'c Scopes>) -> impl Iterator<Item = [&'c str; 2]> {
        let gates = self.gates.iter().flat_map(Gates::texts).map(|text| [text, ""]);
        let pins = self.gates.iter().flat_map(Gates::pinned);
        let pinned = pins.filter_map(|index| Some([self.apis.first()?.api.offered(*index).text, ""]));
        let plain = self.gates.is_none().then(|| self.tools(scopes)).into_iter().flatten();
        let plain = plain.map(|(api, offered)| match self.stripped(api) {
            Some(prefix) => {
                let rest = offered.text.get(JSON_BEFORE_NAME.len() + prefix.len()..).unwrap_or_default();
                [JSON_BEFORE_NAME, rest]
            }
            None => [offered.text, ""],
        });
        gates.chain(pinned).chain(plain)
    }

    /// Each tool that a client with these scopes may list, with its API.
    pub(crate) fn tools<'c>(&'c self, scopes: Option<&'c Scopes>) -> impl Iterator<Item = (&'c CatalogApi, OfferedTool<'c>)> {
        self.apis.iter().flat_map(move |api| {
            let is_listed = move |offered: &OfferedTool<'_>| self.shows(offered) && is_granted(api, offered, scopes);
            api.api.iter().filter(is_listed).map(move |offered| (api, offered))
        })
    }

    /// Whether a client with these scopes may list no tool.
    pub(crate) fn is_empty(&self, scopes: Option<&Scopes>) -> bool {
        self.tools(scopes).next().is_none()
    }

    /// Whether the list depends on what a client's token allows.
    pub(crate) fn depends_on_scopes(&self) -> bool {
        self.apis.iter().any(|api| !api.scopes.is_empty())
    }

    /// What a message asks for; `None` where no tool has that name.
    pub(crate) fn resolve(self: &Arc<Self>, name: &str, arguments: Option<JsonObject>) -> Option<Resolution> {
        if let (Some(gates), [api]) = (&self.gates, self.apis.as_slice())
            && let Some(gate) = gates.kind_of(name)
        {
            let Some(effect) = gate.effect() else {
                return Some(Resolution::Lookup(Lookup {
                    catalog: Arc::clone(self),
                    is_search: gate == GateKind::Search,
                    arguments,
                }));
            };
            return Some(match read_inner_call(gates, effect, arguments, &api.api) {
                Ok(InnerCall { tool, arguments, remarks }) => Resolution::Call(ResolvedCall {
                    api: Arc::clone(&api.api),
                    scopes: Arc::clone(&api.scopes),
                    endpoint: Arc::clone(&self.view.path),
                    tool,
                    arguments: Some(arguments),
                    gate: Some(gate),
                    remarks,
                }),
                Err(refused) => Resolution::Refused(*refused),
            });
        }
        let (api, tool) = self.apis.iter().find_map(|api| Some((api, self.find_in(api, name)?)))?;
        Some(Resolution::Call(ResolvedCall {
            tool,
            api: Arc::clone(&api.api),
            scopes: Arc::clone(&api.scopes),
            endpoint: Arc::clone(&self.view.path),
            arguments,
            gate: None,
            remarks: Vec::new(),
        }))
    }

    /// The name nearest to one that no tool has.
    pub(crate) fn nearest(&self, name: &str) -> Option<String> {
        let names = self.tools(None).map(|(api, offered)| {
            let prefix = self.stripped(api).unwrap_or_default();
            offered.tool.name.get(prefix.len()..).unwrap_or_default()
        });
        text::nearest(name, names, 0.8).map(str::to_owned)
    }

    fn find_in(&self, api: &CatalogApi, name: &str) -> Option<ToolIndex> {
        let name = match self.stripped(api) {
            Some(prefix) => Cow::Owned(format!("{prefix}{name}")),
            // Names begin with the prefix, and looking at it is less work than looking for the name.
            None if !name.starts_with(api.api.prefix()) => return None,
            None => Cow::Borrowed(name),
        };
        let index = api.api.find(&name)?;
        self.shows(&api.api.offered(index)).then_some(index)
    }

    /// The prefix that names of the API stand without here.
    fn stripped<'a>(&self, api: &'a CatalogApi) -> Option<&'a str> {
        let prefix = api.api.prefix();
        (self.view.strips_prefix && !prefix.is_empty()).then_some(prefix)
    }

    fn shows(&self, offered: &OfferedTool<'_>) -> bool {
        !self.view.reads_only || offered.enforcement.is_read_only()
    }
}

/// Whether a token with these scopes may list the tool: it needs what its API asks for besides the rest of the server.
fn is_granted(api: &CatalogApi, offered: &OfferedTool<'_>, scopes: Option<&Scopes>) -> bool {
    let lacks = |scopes| api.scopes.lacking(scopes, offered.enforcement.is_read_only()).is_some();
    !scopes.is_some_and(lacks)
}

impl Lookup {
    /// The tool that is called.
    pub(crate) fn gate(&self) -> GateKind {
        if self.is_search { GateKind::Search } else { GateKind::Describe }
    }

    /// The answer. The first search of an API builds its index, which takes long for a large one: not on an asynchronous thread.
    pub(crate) fn answer(self) -> CallToolResult {
        let Self {
            catalog,
            is_search,
            arguments,
        } = self;
        match (&catalog.gates, catalog.apis.as_slice()) {
            (Some(gates), [api]) if is_search => search_operations(gates, &api.api, arguments),
            (Some(gates), [api]) => describe_operations(gates, &api.api, arguments),
            _ => CallToolResult::error(Vec::new()),
        }
    }
}

impl ResolvedCall {
    /// The gate through which the operation is called; none for a call by its own name.
    pub(crate) fn gate(&self) -> Option<GateKind> {
        self.gate
    }

    /// The tool.
    pub(crate) fn offered(&self) -> OfferedTool<'_> {
        self.api.offered(self.tool)
    }

    /// The name of the API that its operator gave it, else the title of its document.
    pub(crate) fn api_label(&self) -> &str {
        self.api.name().map_or_else(|| self.api.document().title(), |name| name.as_str())
    }

    /// The label of the API in metrics.
    pub(crate) fn metrics_label(&self) -> ApiLabel {
        self.api.metrics_label()
    }

    /// The name of the tool as metrics and logs have it: without the prefix of one of several APIs.
    pub(crate) fn tool_label(&self) -> &str {
        let name = self.offered().tool.name.as_ref();
        let prefix = self.api.name().map_or("", |_| self.api.prefix());
        name.strip_prefix(prefix).unwrap_or(name)
    }

    /// The scopes that calls of its API need besides those of the whole server.
    pub(crate) fn scopes(&self) -> &ToolScopes {
        &self.scopes
    }

    /// The path of the endpoint at which the call was asked for.
    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The arguments as the client gave them.
    pub(crate) fn arguments(&self) -> Option<&JsonObject> {
        self.arguments.as_ref()
    }

    /// The request that the call would make, without credentials, or the result that it would end in before anything is sent.
    pub(crate) fn prepare(&self, on_missing: OnMissingCredential) -> Result<Request, Box<CallToolResult>> {
        self.api.prepare_at(self.tool, self.arguments.clone(), on_missing)
    }

    /// Makes the call. Dropping the future ends the request.
    pub(crate) async fn call(self, caller: Caller<'_>) -> ToolResult {
        if let Some(gate) = self.gate {
            tracing::debug!(tool = %self.offered().tool.name, gate = gate.name(), "called through a gate");
        }
        let result = self.api.call_at(self.tool, self.arguments, caller).await;
        if self.remarks.is_empty() {
            return result;
        }
        let mut result = CallToolResult::from(result);
        result.content.extend(self.remarks.into_iter().map(ContentBlock::text));
        ToolResult::from(result)
    }
}
